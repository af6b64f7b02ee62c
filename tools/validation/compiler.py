"""Compiles programs with the TPU compiler, keeps what it chose, and puts tpusim beside it.

    python tools/validation/compiler.py --list                  # programs and slices
    python tools/validation/compiler.py --only 'matmul*' --chips v5e
    python tools/validation/compiler.py --page                  # docs/validation/compiler.md

Compiling needs the public `libtpu` wheel, which is no dependency of this project and no part of it
(CONTRIBUTING.md says how to install it); no TPU is needed. A summary per program and slice goes to
`validation/compiler/SLICE/PROGRAM.json.gz`, unless the compiled module is in `tests/data/compiled`.
Programs that have one of the two are skipped unless --again is given.
--page needs JAX and the tpusim binary, not libtpu.

Compiling happens in a child process, program after program; one that takes longer than --timeout
is ended, and noted like a program that the compiler refuses. The texts of compiled modules stay in
build/compiler, so that --summarize can write all summaries anew without the compiler.
"""

import argparse
import gzip
import importlib.util
import json
import os
import pathlib
import select
import subprocess
import sys
import time
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[2]
if __name__ == "__main__":
    sys.path[:0] = [str(ROOT), str(ROOT / "tools" / "python"), str(ROOT / "tools" / "validation")]

from compiler_store import SUMMARIES, one_line, pack, selected, set_aside, topology_name, unpack  # noqa: E402
from compiler_summaries import has_summary, is_derived, summary_of  # noqa: E402

TEXTS = ROOT / "build" / "compiler"
_DONE = "compiled:"


class Compiler:
    """A child process that compiles one program after the other."""

    def __init__(self, timeout: float):
        self._timeout = timeout
        self._process: subprocess.Popen[bytes] | None = None

    def _start(self) -> subprocess.Popen[bytes]:
        TEXTS.mkdir(parents=True, exist_ok=True)
        settings = {
            "JAX_PLATFORMS": "cpu",
            "TPU_SKIP_MDS_QUERY": "1",
            "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
        }
        with (TEXTS / "log.txt").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, __file__, "--child"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env={**os.environ, **settings},
            )

    def compile(self, program: str, slice_name: str) -> dict[str, Any]:
        """The text and memory of the compiled program, or {"error": why there is none}."""
        if self._process is None or self._process.poll() is not None:
            self._process = self._start()
        process = self._process
        assert process.stdin
        assert process.stdout
        process.stdin.write(f"{program} {slice_name}\n".encode())
        process.stdin.flush()
        end, answer = time.monotonic() + self._timeout, b""
        # What libtpu prints itself is no answer.
        while f"\n{_DONE}".encode() not in b"\n" + answer or not answer.endswith(b"\n"):
            left = end - time.monotonic()
            if left <= 0 or not select.select([process.stdout], [], [], left)[0]:
                self.stop()
                return {"error": f"not compiled within {self._timeout:.0f} s"}
            piece = os.read(process.stdout.fileno(), 1 << 16)
            if not piece:
                code = process.wait()
                return {"error": f"the compiler's process ended with code {code}"}
            answer += piece
        path = answer.decode().rpartition(_DONE)[2].strip()
        compiled: dict[str, Any] = json.loads(gzip.decompress(pathlib.Path(path).read_bytes()))
        return compiled

    def stop(self) -> None:
        """Ends the child."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


def child() -> None:
    """Compiles what standard input names, line by line."""
    from compiler_programs import PROGRAMS
    from compiler_topology import compile_program

    for line in sys.stdin:
        program, slice_name = line.split()
        try:
            compiled = compile_program(
                PROGRAMS[program].example, topology_name(slice_name), slice_name
            )
        except Exception as error:  # Whatever the compiler says is the result.
            compiled = {"error": one_line(f"{type(error).__name__}: {error}")}
        path = TEXTS / slice_name / f"{program}.json.gz"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(pack(compiled))
        print(f"{_DONE}{path}", flush=True)


def write(summary: dict[str, Any]) -> None:
    """Writes the summary into the tree, unless it can be derived from a kept module."""
    if is_derived(summary["program"], summary["slice"]):
        return
    path = SUMMARIES / summary["slice"] / f"{summary['program']}.json.gz"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(pack(summary))


def compile_all(flags: argparse.Namespace) -> None:
    """Compiles what is asked for and not there."""
    if importlib.util.find_spec("libtpu") is None:
        sys.exit("no libtpu in this Python: see CONTRIBUTING.md, or use --page or --summarize")
    compiler = Compiler(flags.timeout)
    for program, slice_name in selected(flags):
        if has_summary(program, slice_name) and not flags.again:
            continue
        begin = time.monotonic()
        summary = summary_of(program, slice_name, compiler.compile(program, slice_name))
        write(summary)
        what = summary.get("error") or f"{sum(k['count'] for k in summary['kernels'])} kernels"
        print(f"{time.monotonic() - begin:6.1f} s {slice_name:10} {program}: {what}", flush=True)
    compiler.stop()


def summarize_all(flags: argparse.Namespace) -> None:
    """Writes the summaries of texts that are still there."""
    for program, slice_name in selected(flags):
        path = TEXTS / slice_name / f"{program}.json.gz"
        if path.exists():
            write(summary_of(program, slice_name, unpack(path)))


def main() -> None:
    """Does what the command line says."""
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--list", action="store_true", help="programs, and whether there are summaries")
    p.add_argument("--only", default="*", help="globs of programs, comma-separated")
    p.add_argument("--chips", default="v5e,v5p,v6e,v7x", help="comma-separated, in this order")
    p.add_argument("--slices", default="", help="comma-separated; default all")
    p.add_argument("--families", default="", help="comma-separated; default all")
    p.add_argument("--again", action="store_true", help="also what has a summary")
    p.add_argument("--timeout", type=float, default=200, help="seconds per program")
    p.add_argument("--summarize", action="store_true", help="from texts in build/compiler")
    p.add_argument("--page", action="store_true", help="run tpusim and write the page")
    p.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    flags = p.parse_args()
    flags.chips = flags.chips.split(",")
    flags.only = flags.only.split(",")
    flags.slices = [name for name in flags.slices.split(",") if name]
    flags.families = [name for name in flags.families.split(",") if name]
    if flags.child:
        child()
    elif flags.list:
        for program, slice_name in selected(flags):
            there = has_summary(program, slice_name)
            aside = "set aside" if set_aside(program) else ""
            print(f"{'+' if there else '-'} {slice_name:10} {program:44} {aside}".rstrip())
    elif flags.summarize:
        summarize_all(flags)
    elif flags.page:
        import compiler_page

        compiler_page.write(flags)
    else:
        compile_all(flags)


if __name__ == "__main__":
    main()
