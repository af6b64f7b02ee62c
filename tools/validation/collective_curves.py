"""Writes docs/validation/collective-curves.md and its plots: collectives from 1 KiB to 4 GiB.

    pip install matplotlib
    python tools/validation/collective_curves.py [--binary build/tpusim_collective_rows]

Every collective runs alone over all chips of a slice, with the algorithm that the TPU compiler
would choose and with the fastest. Stops with an error if one is faster than the wires allow, is off
its closed form by more than 3 %, or (fastest, large, every axis closes) off the bound at the
effective rate of rings by more than 5 %.
"""

import argparse
import json
import pathlib
import subprocess
from collections.abc import Iterable
from typing import Any

import pictures
from measurements import table, time_text

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs" / "validation"

Row = dict[str, Any]

SLICES = {
    "v5e": ["v5e-4x2", "v5e-4x4", "v5e-8x8", "v5e-8x16", "v5e-16x16"],
    "v5p": ["v5p-2x2x4", "v5p-4x4x4", "v5p-4x4x8", "v5p-8x8x8", "v5p-8x8x16"],
    "v4": ["v4-2x2x2", "v4-4x4x4", "v4-4x4x12"],
    "v6e": ["v6e-4x4", "v6e-16x16"],
    "v7x": ["v7x-2x2x1", "v7x-4x4x4", "v7x-4x4x8"],
}
# Beside them: where something else than the wires is the limit.
OTHERS = ["v5p-4x4x8_twisted", "v5p-4x8x8_twisted", "v3-4x4", "v3-8x8", "v3-32x32"]
KINDS = ["all-reduce", "all-gather", "reduce-scatter", "all-to-all"]
ALGORITHMS = ["compiler", "best"]
SIZES = [4**exponent for exponent in range(5, 17)]  # 1 KiB to 4 GiB

CLOSED_FORM = 0.03
BOUND = 0.05

INTRODUCTION = """# Collectives from 1 KiB to 4 GiB

Written by `python tools/validation/collective_curves.py`; do not edit.

Every collective is simulated alone over all chips of a slice, with the algorithm that the TPU
compiler would choose (`--algorithm compiler`, the default) and with the fastest (`best`). Sizes
are V, the whole array per device; of an all-to-all what each device sends. The *closed form* is
the one of the algorithm used, at the effective rate of the links; the *bound* is what the wires
allow at their nominal rate, without any latency (`docs/models.md`). A ring reaches 0.94 of the
nominal rate on v5e and 0.66 on v6e, so on slices whose axes close 1 / 0.94 = 6.4 % or 1 / 0.66 =
52 % above the bound is all that can be had. The best algorithm stays within 5 % of that where all
axes have one length and chips one device; elsewhere equal colors leave links idle.

Measured collectives from which the effective rate of links was derived: v5e (a ring of 16, a line
of 4), v7x (lines of 2) and v6e (an all-reduce over both axes of 16x16, which says nothing of one
axis alone; [chips](../chips.md)). **v4 and v5p borrow theirs from v5e**, 0.94 on rings and 0.867
on lines, lines of v6e as well, and all three 5.4 us per launch; `tpusim configs v5p --verbose`
says so beside each value. The published all-reduces over a ring of four on v5p, which set nothing,
are in [measurements](measurements.md).
"""


def run(binary: pathlib.Path, slices: Iterable[str]) -> list[Row]:
    """Simulates the collectives of these slices."""
    requests = [
        {"config": config, "kind": kind, "bytes": size, "algorithm": algorithm}
        for config in slices
        for kind in KINDS
        for size in SIZES
        for algorithm in ALGORITHMS
    ]
    lines = "".join(json.dumps(request) + "\n" for request in requests)
    done = subprocess.run([binary], input=lines, capture_output=True, text=True, check=True)
    rows: list[Row] = [json.loads(line) for line in done.stdout.splitlines()]
    for row in rows:
        if "error" in row:
            raise SystemExit(f"{row['config']} {row['kind']} of {row['bytes']} B: {row['error']}")
        if row["simulated_ns"] < row["bound_ns"]:
            raise SystemExit(f"{describe(row)}: faster than its bound")
    return rows


def describe(row: Row) -> str:
    """The case, for a message."""
    return f"{row['kind']} of {row['bytes']} B on {row['config']} by {row['name']}"


def off_form(row: Row) -> float:
    """Simulated against the closed form."""
    return float(row["simulated_ns"] / row["expected_ns"] - 1)


def off_bound(row: Row) -> float:
    """Simulated against the bound."""
    return float(row["simulated_ns"] / row["bound_ns"] - 1)


def equal_axes(config: str) -> bool:
    """Whether colors in rotated orders load all links alike: axes of one length, one device."""
    chip, shape = config.split("-")
    return chip != "v7x" and len(set(shape.split("x")) - {"1"}) == 1


def check(rows: list[Row]) -> None:
    """Asserts what must hold on these slices."""
    for row in rows:
        if abs(off_form(row)) > CLOSED_FORM:
            raise SystemExit(f"{describe(row)}: {off_form(row):+.1%} off its closed form")
        large = row["bytes"] == SIZES[-1] and row["algorithm"] == "best"
        reached = row["efficiency"]
        alike = large and reached > 0 and equal_axes(row["config"])
        if alike and reached * (1 + off_bound(row)) > 1 + BOUND:
            raise SystemExit(f"{describe(row)}: {off_bound(row):+.1%} off the bound")


def size_text(size: int) -> str:
    """In KiB, MiB or GiB."""
    for unit, power in (("GiB", 30), ("MiB", 20)):
        if size >= 1 << power:
            return f"{size >> power} {unit}"
    return f"{size >> 10} KiB"


def form_rows(rows: list[Row], slices: list[str]) -> Iterable[list[str]]:
    """Per slice and algorithm: the case that is farthest off its closed form."""
    for config in slices:
        for algorithm in ALGORITHMS:
            mine = [r for r in rows if r["config"] == config and r["algorithm"] == algorithm]
            worst = max(mine, key=lambda row: abs(off_form(row)))
            yield [
                config,
                algorithm,
                f"{off_form(worst):+.2%}",
                f"{worst['kind']} of {size_text(worst['bytes'])}, {worst['name']}",
            ]


def bound_rows(rows: list[Row], slices: list[str]) -> Iterable[list[str]]:
    """Per slice and kind: the largest size against its bound."""
    for config in slices:
        for kind in KINDS:
            default, best = (
                next(
                    r
                    for r in rows
                    if (r["config"], r["kind"], r["algorithm"]) == (config, kind, algorithm)
                    and r["bytes"] == SIZES[-1]
                )
                for algorithm in ALGORITHMS
            )
            yield [
                config,
                kind,
                "all close" if best["efficiency"] else "some end",
                time_text(best["bound_ns"]),
                f"{off_bound(default):+.1%}",
                default["name"],
                f"{off_bound(best):+.1%}",
                best["name"],
            ]


def plot(chip: str, slices: list[str], rows: list[Row], path: pathlib.Path) -> None:
    """Time over size, one picture per slice and kind."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, grid = pyplot.subplots(
        len(slices), len(KINDS), figsize=(13, 3 * len(slices)), squeeze=False, sharex=True
    )
    for config, line in zip(slices, grid, strict=True):
        for kind, axes in zip(KINDS, line, strict=True):
            mine = [r for r in rows if r["config"] == config and r["kind"] == kind]
            for algorithm, style in (("compiler", "o-"), ("best", "s--")):
                points = [r for r in mine if r["algorithm"] == algorithm]
                sizes = [r["bytes"] for r in points]
                times = [r["simulated_ns"] / 1e3 for r in points]
                axes.plot(sizes, times, style, markersize=3, linewidth=1, label=algorithm)
            bounds = [r["bound_ns"] / 1e3 for r in points]
            axes.plot(sizes, bounds, color="grey", linewidth=0.8, label="bound")
            axes.set(xscale="log", yscale="log")
            axes.minorticks_off()
            axes.set_ylim(bottom=1)
            axes.set_title(f"{config}, {kind}", fontsize=9)
            axes.tick_params(labelsize=7)
    for axes in grid[-1]:
        axes.set_xlabel("V, bytes", fontsize=8)
    for line in grid:
        line[0].set_ylabel("us", fontsize=8)
    grid[0][0].legend(fontsize=7)
    figure.suptitle(chip, fontsize=10)
    figure.tight_layout()
    pictures.save(figure, path)
    pyplot.close(figure)


def page(rows: list[Row], others: list[Row]) -> str:
    """The whole document."""
    slices = [config for of_chip in SLICES.values() for config in of_chip]
    bound_header = (
        "slice | collective | axes | bound | default | by | best | by"  # of the largest size
    )
    assumptions = sorted({sentence for row in rows for sentence in row["assumptions"]})
    parts = [
        INTRODUCTION,
        f"{len(rows)} collectives; none is faster than its bound.\n",
        "## Farthest off the closed form\n",
        table("slice | algorithm | off | which", form_rows(rows, slices)),
        f"## {size_text(SIZES[-1])} against the bound\n",
        table(bound_header, bound_rows(rows, slices)),
        "On lines an all-reduce cannot come close: the bound counts all links of the mesh, of "
        "which many idle at any time.\n",
        "## Assumed\n",
        "".join(f"- {sentence}\n" for sentence in assumptions),
        "## Curves\n",
        *(f"![{chip}](collective-curves-{chip}.svg)\n" for chip in SLICES),
        "## Other slices\n",
        "On a twisted torus a short axis is a ring only for what has been gathered along the "
        "others, and a line for colors that take it first: on 4x4x8 these few bytes cost 4 %. The "
        "devices of v2 and v3 share the links of their chip and cannot write and read as fast as "
        "these and the way between the devices deliver: what binds there is HBM, of which the "
        "bound knows nothing.\n",
        table(bound_header, bound_rows(others, OTHERS)),
        table("slice | algorithm | off | which", form_rows(others, OTHERS)),
    ]
    return "\n".join(parts)


def main() -> None:
    """Runs everything, checks it, writes the page and the plots."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--binary", type=pathlib.Path, default=ROOT / "build" / "tpusim_collective_rows"
    )
    binary = parser.parse_args().binary.resolve()
    rows = run(binary, [config for slices in SLICES.values() for config in slices])
    check(rows)
    for chip, slices in SLICES.items():
        plot(chip, slices, rows, DOCS / f"collective-curves-{chip}.svg")
    (DOCS / "collective-curves.md").write_text(page(rows, run(binary, OTHERS)))


if __name__ == "__main__":
    main()
