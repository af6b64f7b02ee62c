"""Compares the collectives of tpusim's partitioner with those of XLA's, program by program.

    python tools/validation/collectives.py            # writes docs/validation/collectives.md
    python tools/validation/collectives.py moe --show # prints what differs, writes nothing
    python tools/validation/collectives.py --random 9200:9400        # random programs, too
    python tools/validation/collectives.py --random 9200:9400 --show # only these, writes nothing

Both partition the module that was lowered for TPU. `REASONS` explains the programs where tpusim
sends more, or multiplies another amount.
"""

import argparse
import collections
import contextlib
import dataclasses
import fnmatch
import os
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[2]
if __name__ == "__main__":
    sys.path[:0] = [str(ROOT), str(ROOT / "tools" / "python"), str(ROOT / "tools" / "validation")]
    from tpusim.cpu_devices import force_cpu_devices

    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    force_cpu_devices(8)

import collective_choices  # noqa: E402
import tpusim  # noqa: E402
import xla_partitioner  # noqa: E402
from communication import Communication, Groups, communication  # noqa: E402
from tpusim import hlo  # noqa: E402

from workloads.examples import EXAMPLES, Example  # noqa: E402

EXPORTS = ROOT / "workloads" / "examples"
REPORT = ROOT / "docs" / "validation" / "collectives.md"
CACHE = ROOT / "build" / "xla-partitioned"

# Why a program is not equal, by name or glob, where it is more than a reduce-scatter in place of an
# all-reduce and a slice. The first that matches counts.
REASONS: dict[str, str] = {
    "moe_top_2_capacity": "every group's top-k stays where it is; XLA gathers the scores",
    "prefill_context_sharded": "padding the cache takes two permutes where XLA has three; queries "
    "are computed in shares and gathered",
    "reshards_explicit": "partial sums are scattered, and axes exchanged by all-to-alls; XLA has "
    "an all-reduce, an all-to-all and a permute",
    "*_two_dimensional": "reduce-scatters where XLA has an all-reduce and a slice; biases change "
    "their axis in shares, which are then gathered",
    "language_model_train_data_parallel": "gradients of looked-up rows are gathered and added up "
    "in the table on every device; XLA sums tables",
    "language_model_train_sequence_parallel": "sums over the sequence's devices are scattered, and "
    "less is gathered again",
    "transformations_*": "reduce-scatters where XLA has an all-reduce and a slice; metrics are "
    "summed over both axes at once",
}


@dataclasses.dataclass
class Row:
    """One program; `ours` is None if tpusim cannot partition it, and then `error` says why."""

    name: str
    ours: Communication | None
    xla: Communication
    error: str = ""

    @property
    def verdict(self) -> str:
        """Says how our cost compares with XLA's."""
        if self.ours is None:
            return "not supported"
        if self.ours.sent == self.xla.sent:
            return "equal"
        if self.ours.cost == self.xla.cost:
            return "same cost"
        return "cheaper" if self.ours.cost < self.xla.cost else "dearer"

    @property
    def same_kinds(self) -> bool:
        """Whether both send by the same kinds of collectives."""
        return self.ours is not None and _by_kind(self.ours).keys() == _by_kind(self.xla).keys()

    @property
    def same_bytes(self) -> bool:
        """Whether both send the same number of bytes within a tenth."""
        if self.ours is None:
            return False
        ours, theirs = (sum(_by_kind(side).values()) for side in (self.ours, self.xla))
        return abs(ours - theirs) <= 0.1 * max(ours, theirs)

    @property
    def same_flops(self) -> bool:
        """Whether products add up to the same within one percent."""
        if self.ours is None:
            return False
        return abs(self.ours.dot_flops - self.xla.dot_flops) <= self.xla.dot_flops / 100


def _by_kind(side: Communication) -> dict[str, int]:
    """Bytes by kind. XLA makes a reduce-scatter of an all-reduce and a slice in a later pass."""
    total: collections.Counter[str] = collections.Counter()
    for (kind, _), size in side.sent.items():
        total["all-reduce" if kind == "reduce-scatter" else kind] += size
    return {kind: size for kind, size in total.items() if size}


def partitioned(workload: pathlib.Path, config: str, binary: str) -> tuple[bytes, str]:
    """The module that tpusim makes of an export, or why it does not."""
    with tempfile.TemporaryDirectory() as folder:
        output = pathlib.Path(folder) / "partitioned.pb"
        command = [binary, "compile", str(workload), "--quiet"]
        done = subprocess.run(
            [*command, "--config", config, "--emit", "partitioned", "-o", str(output)],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            return b"", done.stderr.strip() or f"signal {-done.returncode}"
        return output.read_bytes(), ""


def compare(example: Example, binary: str) -> Row:
    """Both partitioners on one program."""
    mesh = list(example.mesh.values())
    trips = next(iter(example.trip_counts.values()), 1)
    theirs = hlo.Module(xla_partitioner.partition(example, CACHE))
    xla = communication(theirs, mesh, trips)
    export = EXPORTS / f"{example.name}.pb.gz"
    ours, error = partitioned(export, example.config, binary)
    if error:
        return Row(example.name, None, xla, error)
    return Row(example.name, communication(hlo.Module(ours), mesh, trips), xla)


def partitioned_function(function: Any, arguments: Sequence[Any], binary: str) -> bytes:
    """The module that tpusim makes of a jitted function over a mesh of four or eight devices."""
    config = "v5e-4x2" if arguments[0].sharding.mesh.size == 8 else "v5e-2x2"
    with tempfile.TemporaryDirectory() as folder:
        workload = pathlib.Path(folder) / "program.pb"
        tpusim.export(function, *arguments, path=workload, config=config)
        made, error = partitioned(workload, config, binary)
    if error:
        raise RuntimeError(error)
    return made


def compare_function(name: str, function: Any, arguments: Sequence[Any], binary: str) -> Row:
    """Both partitioners on such a function."""
    mesh = list(arguments[0].sharding.mesh.shape.values())
    theirs = xla_partitioner.partition_function(function, arguments, CACHE)
    ours = partitioned_function(function, arguments, binary)
    sides = (communication(hlo.Module(made), mesh) for made in (ours, theirs))
    return Row(name, *sides)


def compare_random(seed: int, binary: str) -> Row | None:
    """Both partitioners on the random program of a seed; None if XLA has no answer."""
    import jax
    import random_programs

    program = random_programs.make(seed)
    mesh = list(program.mesh.values())
    concrete = program.concrete_mesh(program.explicit)
    context = jax.set_mesh(concrete) if program.explicit else contextlib.nullcontext()
    try:
        with context, tempfile.TemporaryDirectory() as folder:
            theirs = xla_partitioner.partition_function(*program.build(concrete), None)
            ours = random_programs.compiled(program, binary, pathlib.Path(folder), "partitioned")
    except (random_programs.Unusable, RuntimeError):
        return None
    xla = communication(hlo.Module(theirs), mesh)
    return Row(f"seed {seed}", communication(hlo.Module(ours), mesh), xla)


def random_here(seeds: range, binary: str) -> None:
    """Prints the rows of random programs, what they differ in, and how they compare."""
    for seed in seeds:
        row = compare_random(seed, binary)
        if row is None or row.ours is None:
            continue
        if row.verdict == "dearer" or not row.same_flops:
            print(
                f"{row.name}: {row.verdict}, {row.ours.cost} link bytes, XLA {row.xla.cost}", end=""
            )
            print(f"; dot FLOPs {row.ours.dot_flops}, XLA {row.xla.dot_flops}")
            print("".join(f"    {line}\n" for line in differences(row)), end="")
        print(f"ROW {row.verdict}:{int(row.same_flops)}", flush=True)


def random_section(seeds: str, binary: str, show: bool) -> list[str]:
    """The page's lines about random programs."""
    first, end = map(int, seeds.split(":"))
    results = []
    # XLA ends its process on some programs; the next ten are not its.
    for start in range(first, end, 10):
        part = f"{start}:{min(start + 10, end)}"
        done = subprocess.run(
            [sys.executable, __file__, "--random", part, "--here"],
            env={**os.environ, "TPUSIM_BINARY": binary},
            capture_output=True,
            text=True,
            check=False,
        )
        if show:
            print(done.stdout, end="", flush=True)
        lines = [line.split()[1:] for line in done.stdout.splitlines() if line[:4] == "ROW "]
        results += [" ".join(words).split(":") for words in lines]
    return [
        f"`--random {seeds}` compares random programs of these seeds",
        "(`tests/jax/random_programs.py`), made of all kinds of operations over uneven shards:",
        "",
        *summary([verdict for verdict, _ in results], sum(int(same) for _, same in results)),
        "",
    ]


def summary(verdicts: Sequence[str], same_flops: int) -> list[str]:
    """Counts programs that are as cheap as XLA's, and that multiply as much."""
    count = collections.Counter(verdicts)
    number = max(len(verdicts), 1)
    good = number - count["dearer"] - count["not supported"]
    counts = ", ".join(f"{n} {what}" for what, n in sorted(count.items()))
    return [
        f"{len(verdicts)} programs: {counts}.",
        f"Equal or cheaper: {100 * good / number:.1f} %.",
        f"FLOPs of products per device within 1 % of XLA's: {same_flops} of {len(verdicts)}.",
    ]


def kinds(sent: dict[tuple[str, Groups], int]) -> str:
    """Kinds with their bytes, such as "all-reduce 2.0 KiB"."""
    total: dict[str, int] = collections.defaultdict(int)
    for (kind, _), size in sent.items():
        total[kind] += size
    return ", ".join(f"{kind} {bytes_text(size)}" for kind, size in sorted(total.items())) or "none"


def bytes_text(size: int) -> str:
    """Writes a size with a unit."""
    for unit in ("B", "KiB", "MiB"):
        if size < 1024 or unit == "MiB":
            return f"{size} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    raise AssertionError(size)


def differences(row: Row) -> list[str]:
    """Kinds and groups of which one side sends more, in bytes per device."""
    ours = row.ours.sent if row.ours else {}
    lines = []
    for kind, groups in sorted({*ours, *row.xla.sent}):
        mine, other = ours.get((kind, groups), 0), row.xla.sent.get((kind, groups), 0)
        if mine != other:
            shown = "".join("{" + ",".join(map(str, g)) + "}" for g in groups)
            lines.append(f"{kind} {shown}: {mine} bytes, XLA {other}")
    return lines


def report(rows: Sequence[Row], random: Sequence[str] = ()) -> str:
    """The page."""
    lines = [
        "# Collectives, compared with XLA's partitioner",
        "",
        "Written by `python tools/validation/collectives.py`. Every example for eight devices is",
        "partitioned by tpusim and by XLA (as it is right after its partitioner), from the same",
        "module, lowered for TPU. Bytes are per device, loops count as often as they run: sizes of",
        "results of all-gathers, of operands of all others. The link bytes are the sum over",
        "directed links of what has to cross them (`tools/validation/communication.py`); programs",
        "are ranked by it.",
        "",
        *summary([row.verdict for row in rows], sum(row.same_flops for row in rows)),
        "",
        *random,
        "| program | verdict | link bytes | XLA | collectives | XLA | dot FLOPs / XLA | why |",
        "|---|---|---:|---:|---|---|---:|---|",
    ]
    for row in rows:
        cells = [row.name, row.verdict]
        if row.ours is None:
            cells += ["", str(row.xla.cost), "", kinds(row.xla.sent), "", "no rule yet"]
        else:
            same = row.verdict == "equal"
            cells += [
                str(row.ours.cost),
                str(row.xla.cost),
                kinds(row.ours.sent),
                "same" if same else kinds(row.xla.sent),
                f"{row.ours.dot_flops / row.xla.dot_flops:.3f}" if row.xla.dot_flops else "-",
                reason(row),
            ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def reason(row: Row) -> str:
    """Why a program is not equal, in a line."""
    if row.ours is None or row.verdict == "equal":
        return ""
    for pattern, why in REASONS.items():
        if fnmatch.fnmatchcase(row.name, pattern):
            return why
    mine = {kind for kind, _ in row.ours.sent}
    theirs = {kind for kind, _ in row.xla.sent}
    if "reduce-scatter" in mine - theirs:
        return "reduce-scatter where XLA has an all-reduce and a slice"
    return ""


def main(argv: Sequence[str]) -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("programs", nargs="*", help="parts of names; all programs if none")
    parser.add_argument("--show", action="store_true", help="print differences, write nothing")
    parser.add_argument("--random", default="", help="seeds of random programs, FIRST:END")
    parser.add_argument("--here", action="store_true", help="those in this process, only printed")
    parser.add_argument("--output", default=str(REPORT))
    flags = parser.parse_args(argv)
    binary = os.environ.get("TPUSIM_BINARY", str(ROOT / "build" / "tpusim"))
    random: list[str] = []
    if flags.random:
        if flags.here:
            sys.path.append(str(ROOT / "tests" / "jax"))
            random_here(range(*map(int, flags.random.split(":"))), binary)
            return 0
        random = random_section(flags.random, binary, flags.show)
        if flags.show:
            print("\n".join(random))
            return 0
    rows = []
    for name, example in sorted(EXAMPLES.items()):
        wanted = not flags.programs or any(part in name for part in flags.programs)
        if not wanted or example.num_devices != 8:
            continue
        row = compare(example, binary)
        rows.append(row)
        if flags.show:
            cost = "" if row.ours is None else f"{row.ours.cost} link bytes, XLA {row.xla.cost}"
            dots = "" if row.same_flops or row.ours is None else f"; dot FLOPs {row.ours.dot_flops}"
            if dots:
                dots += f", XLA {row.xla.dot_flops}"
            print(f"{name}: {row.verdict} {cost}{dots}{row.error}", flush=True)
            if row.ours is not None:
                print("".join(f"    {line}\n" for line in differences(row)), end="")
    if not flags.show and not flags.programs:
        chosen = collective_choices.compare(
            pathlib.Path(binary).with_name("tpusim_collective_rows")
        )
        page = collective_choices.with_section(
            report(rows, random), collective_choices.section(chosen)
        )
        pathlib.Path(flags.output).write_text(page)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
