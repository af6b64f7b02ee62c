"""Replays what the TPU compiler printed of collectives against the rows of its choices.

    python tools/validation/collective_choices.py           # how many agree, by chip and collective
    python tools/validation/collective_choices.py --show    # and those that do not
    python tools/validation/collective_choices.py --page    # into docs/validation/collectives.md

The sweep (validation/collectives/choices.jsonl) is what the rows of
configs/compilers/collectives/libtpu-*.json were made from. Whole programs (validation/compiler) are
not: where a collective of theirs goes over all devices of the slice, its emitter is compared, apart
for programs that are set aside, from which no rule may be made.
"""

import argparse
import collections
import dataclasses
import json
import os
import pathlib
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[2]
if __name__ == "__main__":
    sys.path[:0] = [str(ROOT), str(ROOT / "tools" / "python"), str(ROOT / "tools" / "validation")]

import compiler_store  # noqa: E402
import compiler_summaries  # noqa: E402
from tpusim.slices import parse  # noqa: E402

SWEEP = ROOT / "validation" / "collectives" / "choices.jsonl"
PAGE = ROOT / "docs" / "validation" / "collectives.md"
HEADING = "## Algorithms that the TPU compiler chooses"

Row = dict[str, Any]

KINDS = {
    "psum": "all-reduce",
    "all_gather": "all-gather",
    "all_gather_minor": "all-gather",
    "psum_scatter": "reduce-scatter",
    "psum_scatter_minor": "reduce-scatter",
    "all_to_all": "all-to-all",
    "ppermute": "collective-permute",
}
# Printed properties of a collective of the sweep.
PRINTED = ("done_as", "emitter", "strategy", "colors", "phases")
# Sources of rows, by how sure it is that no rule was made from them.
SOURCES = ("sweep", "programs, seen", "programs, set aside")


@dataclasses.dataclass
class Compared:
    """A printed collective beside what the rows say."""

    source: str
    chip: str
    kind: str
    name: str
    printed: dict[str, Any]
    chosen: dict[str, Any]

    @property
    def agrees(self) -> bool:
        """Whether everything that is printed is chosen."""
        return all(self.chosen.get(field) == value for field, value in self.printed.items())


def swept() -> list[Row]:
    """Rows of the sweep."""
    return [json.loads(line) for line in SWEEP.read_text().splitlines()]


def of_programs(summaries: Iterable[dict[str, Any]]) -> Iterator[Row]:
    """Collectives of whole programs over all devices, as rows of a sweep."""
    for summary in summaries:
        slice_name = parse(summary["slice"])
        assert slice_name is not None
        extents = [int(n) for n in summary["slice"].partition("-")[2].split("x")]
        axes = "".join(axis for axis, n in zip("xyz", extents, strict=False) if n > 1)
        axes += "c" if slice_name.devices > slice_name.chips else ""
        for row in summary.get("collectives", ()):  # the compiler refuses some programs
            if row.get("group_size") != slice_name.devices or "emitter" not in row:
                continue
            members = slice_name.devices if row["kind"] == "all-gather" else 1
            yield {
                "program": summary["program"],
                "chip": slice_name.chip,
                "slice": extents,
                "axes": axes,
                "op": row["kind"],
                "operand_bytes": row["bytes"] // members,
                "emitter": row["emitter"],
            }


def which_emitter(emitter: str) -> str:
    """Without the dimension that is gathered, of which the summary of a program says nothing."""
    return re.sub("(On|Non)MajorDim", "", emitter)


def chosen(rows: Sequence[Row], binary: pathlib.Path) -> list[dict[str, Any]]:
    """Returns what the rows of choices say about each collective."""
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    done = subprocess.run(
        [binary, "--choices"], input=lines, capture_output=True, text=True, check=True
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    for answer in answers:
        if "error" in answer:
            raise SystemExit(f"{answer}: {answer['error']}")
    return [answer["chosen"] for answer in answers]


def compare(binary: pathlib.Path) -> list[Compared]:
    """Everything that was printed."""
    sweep = swept()
    programs = list(of_programs(compiler_summaries.all_summaries()))
    found = []
    for row, choice in zip(sweep + programs, chosen(sweep + programs, binary), strict=True):
        size = f"{row['op']} of {row['operand_bytes']} B over {row['axes']}"
        where = f"{row['chip']}-{'x'.join(map(str, row['slice']))}"
        if "program" in row:
            source = SOURCES[2] if compiler_store.set_aside(row["program"]) else SOURCES[1]
            printed = {"emitter": which_emitter(row["emitter"])}
            choice = {"emitter": which_emitter(choice.get("emitter", ""))}
            name = f"{row['program']}, {size} of {where}"
        else:
            source, name = SOURCES[0], f"{size} of {where}"
            printed = {field: row.get(field) for field in PRINTED}
        kind = KINDS.get(row["op"], row["op"])
        found.append(Compared(source, row["chip"], kind, name, printed, choice))
    return found


def share(found: Sequence[Compared]) -> str:
    """Counts those that agree: "12 of 14"."""
    return f"{sum(each.agrees for each in found)} of {len(found)}" if found else ""


def table(found: Sequence[Compared]) -> list[str]:
    """Agreement by chip and collective, and of all."""
    groups: dict[tuple[str, str], list[Compared]] = collections.defaultdict(list)
    for each in found:
        groups[each.chip, each.kind].append(each)
    lines = [
        f"| chip | collective | {' | '.join(SOURCES)} |",
        "|---|---|" + "---:|" * len(SOURCES),
    ]
    everything = [*sorted(groups.items()), (("all", ""), list(found))]
    for (chip, kind), members in everything:
        cells = [share([each for each in members if each.source == source]) for source in SOURCES]
        lines.append(f"| {chip} | {kind} | {' | '.join(cells)} |")
    return lines


def differing(found: Sequence[Compared], sources: Sequence[str]) -> list[str]:
    """Lists printed and chosen values where they differ, each once."""
    texts: collections.Counter[str] = collections.Counter()
    for each in found:
        if each.agrees or each.source not in sources:
            continue
        fields = [f for f in each.printed if each.printed[f] != each.chosen.get(f)]
        what = ", ".join(f"{each.printed[f]} (chosen: {each.chosen.get(f)})" for f in fields)
        texts[f"{each.name}: {what}"] += 1
    return [f"{text}{f' ({n} times)' if n > 1 else ''}" for text, n in texts.items()]


def section(found: Sequence[Compared]) -> str:
    """Returns the section of the page."""
    lines = [
        HEADING,
        "",
        "Written by `python tools/validation/collective_choices.py --page`. The rows of",
        "`configs/compilers/collectives/libtpu-*.json` say what the TPU compiler would print of a",
        "collective: emitter, strategy, colors and phases. *Sweep*: programs of one collective",
        "each (`validation/collectives`), from which the rows were made; all of that must be the",
        "same. *Programs*: whole programs (`validation/compiler`), from which they were not made;",
        "of the collectives that go over all devices the emitter is compared. Those *set aside*",
        "were never looked at.",
        "",
        *table(found),
        "",
    ]
    unlike = differing(found, SOURCES[:2])
    if unlike:
        lines += ["Not the same, of those that may be looked at:", ""]
        lines += [f"- {text}" for text in unlike] + [""]
    return "\n".join(lines)


def with_section(page: str, text: str) -> str:
    """The page with this section in place of the one that it has, at its end."""
    before = page.partition(HEADING)[0].rstrip("\n")
    return f"{before}\n\n{text}"


def main(argv: Sequence[str]) -> int:
    """The command; 1 if something of the sweep is not the same."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--show", action="store_true", help="print those that are not the same")
    parser.add_argument("--page", action="store_true", help=f"write {PAGE.relative_to(ROOT)}")
    parser.add_argument(
        "--binary",
        type=pathlib.Path,
        default=pathlib.Path(
            os.environ.get("TPUSIM_BINARY", str(ROOT / "build" / "tpusim"))
        ).with_name("tpusim_collective_rows"),
    )
    flags = parser.parse_args(argv)
    found = compare(flags.binary)
    print("\n".join(table(found)))
    if flags.show:
        print("\n".join(differing(found, SOURCES[:2])))
    if flags.page:
        PAGE.write_text(with_section(PAGE.read_text(), section(found)))
    return int(not all(each.agrees for each in found if each.source == SOURCES[0]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
