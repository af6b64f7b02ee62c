"""Counts how many of the HLO texts in XLA's sources tpusim reads and runs, by reason of the rest.

    python tools/validation/xla_texts.py ~/xla [--sample 500] [--binary build/tpusim] [--rows FILE]

Texts are the `.hlo` files and the modules inside of C++ tests (raw strings). Only those count that
XLA's own parser takes, asked through jaxlib in processes of their own: it aborts on some. A module
runs on the smallest v5e slice with its number of devices. Nothing of XLA's is kept in this project.
"""

import argparse
import collections
import contextlib
import json
import math
import pathlib
import random
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator

_RAW_STRING = re.compile(r'R"([A-Za-z0-9_]*)\((.*?)\)\1"', re.DOTALL)
_PLACEHOLDER = re.compile(r"\$\{|\$\d\b|%[sd]\b")
_DEVICE_LIST = re.compile(r"devices=\[[^\]]*\]([\d,]+)")
_IOTA = re.compile(r"<=\[([\d,]+)\]")
_MESH = re.compile(r"mesh\[([^\]]*)\]")
# Slices of v5e by the devices that they have at least.
_SLICES = {1: "1x1", 4: "2x2", 8: "4x2", 16: "4x4", 64: "8x8", 256: "16x16"}
_SECONDS = 30
_PARSE = """
import sys
from jaxlib import _hlo
for line in sys.stdin:
    name = line.rstrip("\\n")
    print(name, end="\\t", flush=True)
    try:
        _hlo.hlo_module_from_text(open(name).read())
    except Exception:
        print("no", flush=True)
    else:
        print("yes", flush=True)
"""


def texts(folder: pathlib.Path) -> Iterator[tuple[str, str]]:
    """Yields a name and a text of every module below `folder`."""
    for file in sorted(folder.rglob("*")):
        name = str(file.relative_to(folder)).replace("/", "__")
        if file.suffix == ".hlo":
            yield name, file.read_text(errors="replace")
        elif re.search(r"_tests?(_\w+)?\.cc$|_test_base\.cc$", file.name):
            strings = _RAW_STRING.finditer(file.read_text(errors="replace"))
            for number, string in enumerate(strings):
                text = string[2]
                module = "HloModule" in text or (
                    ("ROOT" in text or "ENTRY" in text) and "CHECK" not in text
                )
                if module and not _PLACEHOLDER.search(text):
                    yield f"{name}.{number}", text


def taken_by_xla(files: list[pathlib.Path]) -> list[pathlib.Path]:
    """Returns the files whose text XLA's parser takes."""
    taken, left = [], files
    while left:
        lines = "\n".join(map(str, left)) + "\n"
        command = [sys.executable, "-c", _PARSE]
        done = subprocess.run(command, input=lines, capture_output=True, text=True, check=False)
        answers = done.stdout.split("\n")
        asked = [answer.split("\t") for answer in answers if answer]
        taken += [pathlib.Path(row[0]) for row in asked if row[-1] == "yes"]
        if not asked:
            raise SystemExit(f"jaxlib has no parser of HLO: {done.stderr.strip()[-300:]}")
        left = left[len(asked) :]  # the last one asked may have ended the process
    return taken


def devices(text: str) -> int:
    """Returns the number of devices that a module is written for."""
    stated = [int(n) for n in re.findall(r"(?:num_partitions|replica_count)=(\d+)", text)]
    listed = [int(n) + 1 for ids in _DEVICE_LIST.findall(text) for n in ids.split(",") if n]
    products = [math.prod(map(int, dims.split(","))) for dims in _IOTA.findall(text)]
    meshes = [math.prod(map(int, re.findall(r"=(\d+)", mesh))) for mesh in _MESH.findall(text)]
    return max([1, *stated, *listed, *products, *meshes])


def outcome(binary: pathlib.Path, file: pathlib.Path) -> tuple[int | str, str]:
    """Returns the exit code of a run, or "timeout", and the first line that says why."""
    count = devices(file.read_text())
    shape = next((shape for most, shape in _SLICES.items() if count <= most), "16x16")
    command = [binary, "run", file, "--config", f"v5e-{shape}"]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_SECONDS,
            check=False,
            cwd=file.parent,
        )
    except subprocess.TimeoutExpired:
        return "timeout", f"more than {_SECONDS} s"
    errors = [line for line in done.stderr.splitlines() if "error" in line] or [""]
    return done.returncode, errors[0].removeprefix("tpusim: ").removeprefix("error: ")


def reason(message: str, file: pathlib.Path) -> str:
    """Returns a message without what is of one module alone: names, numbers, places."""
    general = message.replace(str(file), "FILE")
    general = re.sub(r"line \d+, column \d+", "line N", general)
    general = re.sub(
        r"(no rule to execute|no kernel for|of|as) [^ :]*\d*[:,]?", r"\1 NAME", general
    )
    return re.sub(r"\d+", "N", re.sub(r"^\S+( \S+)? has no", "NAME has no", general))[:90]


def main() -> None:
    """Prints exit codes and reasons; see the head of this file."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=pathlib.Path, help="XLA's sources")
    parser.add_argument("--binary", type=pathlib.Path, default=pathlib.Path("build/tpusim"))
    parser.add_argument("--sample", type=int, help="run so many, drawn by lot with seed 1")
    parser.add_argument("--rows", type=pathlib.Path, help="write a row per module as JSON lines")
    options = parser.parse_args()

    with tempfile.TemporaryDirectory() as scratch:
        files = []
        for name, text in texts(options.folder):
            files.append(pathlib.Path(scratch) / f"{name}.hlo")
            files[-1].write_text(text)
        taken = taken_by_xla(files)
        if options.sample and options.sample < len(taken):
            taken = sorted(random.Random(1).sample(taken, options.sample))
        rows = []
        with options.rows.open("w") if options.rows else contextlib.nullcontext() as written:
            for file in taken:
                rows.append((file, *outcome(options.binary.resolve(), file)))
                if written:
                    print(json.dumps([file.name, *rows[-1][1:]]), file=written, flush=True)

        codes = collections.Counter(code for _, code, _ in rows)
        unread = [row for row in rows if re.match(r"\S*: line \d+|FILE|.*: these bytes", row[2])]
        print(f"{len(files)} texts, {len(rows)} of those that XLA reads were run")
        for code, count in codes.most_common():
            print(f"  exit {code}: {count} ({count / len(rows):.1%})")
        reasons = collections.Counter(reason(row[2], row[0]) for row in rows if row[1] != 0)
        for text, count in reasons.most_common(40):
            print(f"{count:6d} {text}")
        print(f"not read as text: {len(unread)}")


if __name__ == "__main__":
    main()
