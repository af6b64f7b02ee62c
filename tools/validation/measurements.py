"""Writes docs/validation/measurements.md and its plots out of `tpusim validate`.

    pip install matplotlib
    python tools/validation/measurements.py [--binary build/tpusim]

One plot per chip, measured against simulated, both axes logarithmic: what lies on the diagonal
agrees. Filled marks were not fitted to; hollow ones set a parameter.
"""

import argparse
import json
import pathlib
import subprocess
import tempfile
from collections.abc import Iterable
from typing import Any

import pictures

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs" / "validation"

Row = dict[str, Any]

INTRODUCTION = """# Published measurements

Written by `python tools/validation/measurements.py` from `tpusim validate`; do not edit.

`validation/measurements.json` lists every published measurement that we know of, with its source.
Calibration rows set parameters of a chip; validation rows did not, and only they say how well the
model predicts. A: program and conditions are known exactly, B: nearly, C: doubtful. An upper bound
contains more than the program, such as dispatch from the host. Whole steps of models have a
[page of their own](training.md).
"""


def validate(binary: pathlib.Path) -> dict[str, Any]:
    """Runs `tpusim validate --json`."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "validation.json"
        subprocess.run(
            [binary, "validate", "validation/measurements.json", "--quiet", "--report", path],
            check=True,
            cwd=ROOT,
        )
        return json.loads(path.read_text())


def time_text(nanoseconds: float) -> str:
    """Four digits and a unit."""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if nanoseconds >= size:
            return f"{nanoseconds / size:.4g} {unit}"
    return f"{nanoseconds:.4g} ns"


def row_class(row: Row) -> str:
    """The role, of validation rows with their grade."""
    if row["role"] != "validation":
        return row["role"]
    return f"validation {row['reproducibility']}"


def table(header: str, rows: Iterable[Iterable[str]]) -> str:
    """A Markdown table; the header names the columns, separated by bars."""
    columns = header.count("|") + 1
    lines = [f"| {header} |", "|" + "---|" * columns]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def means(rows: list[Row]) -> Iterable[list[str]]:
    """Per chip, class and kind: rows, mean and worst absolute error."""
    keys = sorted(
        {(r["chip"], row_class(r), r["kind"]) for r in rows if r["role"] != "upper bound"}
    )
    classes = sorted({row_class(r) for r in rows if r["role"] != "upper bound"})
    for chip, name, kind in [*keys, *(("all", c, "all") for c in classes)]:
        errors = [
            abs(r["error"])
            for r in rows
            if row_class(r) == name and chip in (r["chip"], "all") and kind in (r["kind"], "all")
        ]
        mean = sum(errors) / len(errors)
        yield [chip, name, kind, str(len(errors)), f"{mean:.1%}", f"{max(errors):.1%}"]


def plot(chip: str, rows: list[Row], path: pathlib.Path) -> None:
    """Measured against simulated time of the chip's rows."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(5, 5))
    for kind in sorted({r["kind"] for r in rows}):
        for fitted in (False, True):
            points = [
                (r["measured_ns"] / 1e3, r["simulated_ns"] / 1e3)
                for r in rows
                if r["kind"] == kind and (r["role"] == "calibration") == fitted
            ]
            if not points:
                continue
            style: dict[str, Any] = {"facecolors": "none"} if fitted else {}
            axes.scatter(*zip(*points, strict=True), s=28, **style).set_label(
                f"{kind}, {'calibration' if fitted else 'not fitted'}"
            )
    times = [r[key] / 1e3 for r in rows for key in ("measured_ns", "simulated_ns")]
    ends = [min(times) / 1.5, max(times) * 1.5]
    axes.plot(ends, ends, linewidth=0.8, color="grey", label="equal")
    axes.set(xscale="log", yscale="log", xlabel="measured, us", ylabel="simulated, us", title=chip)
    axes.minorticks_off()
    axes.legend(fontsize=8)
    figure.tight_layout()
    pictures.save(figure, path)
    pyplot.close(figure)


def main() -> None:
    """Runs the measurements, writes the page and the plots."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", type=pathlib.Path, default=ROOT / "build" / "tpusim")
    binary = parser.parse_args().binary.resolve()
    result = validate(binary)
    rows: list[Row] = result["rows"]
    chips = sorted({r["chip"] for r in rows})
    for chip in chips:
        plot(chip, [r for r in rows if r["chip"] == chip], DOCS / f"measurements-{chip}.svg")
    page = [INTRODUCTION, "## Mean absolute errors\n"]
    page.append(table("chip | class | kind | rows | mean | worst", means(rows)))
    page.append("## Rows\n")
    page.append(
        table(
            "id | chip | what | class | measured | simulated | error | source",
            (
                [
                    r["id"],
                    r["chip"],
                    r["name"] + (f" ({r['note']})" if r["note"] else ""),
                    row_class(r),
                    time_text(r["measured_ns"]),
                    time_text(r["simulated_ns"]),
                    "below" if r["role"] == "upper bound" else f"{r['error']:+.1%}",
                    r["source"],
                ]
                for r in rows
            ),
        )
    )
    page += [f"![{chip}](measurements-{chip}.svg)\n" for chip in chips]
    page.append("## Pending\n")
    page.append(
        table(
            "id | chip | what | measured | because | source",
            (
                [p[k] for k in ("id", "chip", "what", "measured", "why", "source")]
                for p in result["pending"]
            ),
        )
    )
    (DOCS / "measurements.md").write_text("\n".join(page))


if __name__ == "__main__":
    main()
