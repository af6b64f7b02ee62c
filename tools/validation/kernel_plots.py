"""Draws docs/validation/kernels-measured-CHIP.svg out of `tpusim validate --kernels`.

    pip install matplotlib
    python tools/validation/kernel_plots.py [--binary build/tpusim]

One plot per chip, measured against simulated, both axes logarithmic; an operation has a color.
"""

import argparse
import json
import pathlib
import subprocess
from typing import Any

from measurements import DOCS, ROOT, plot


def rows_by_chip(binary: pathlib.Path) -> dict[str, list[dict[str, Any]]]:
    """Runs the sample; returns the rows that ran, in the form that `plot` takes."""
    result = subprocess.run(
        [binary, "validate", "--kernels", "--json"],
        check=True,
        cwd=ROOT,
        capture_output=True,
    )
    chips: dict[str, list[dict[str, Any]]] = {}
    for row in json.loads(result.stdout)["rows"]:
        if row.get("simulated_ns") is not None:
            operation = row["group"].partition(",")[0]
            chips.setdefault(row["chip"], []).append(
                {**row, "kind": operation, "role": "validation"}
            )
    return chips


def main() -> None:
    """Simulates the sample and draws the plots."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", type=pathlib.Path, default=ROOT / "build" / "tpusim")
    for chip, rows in sorted(rows_by_chip(parser.parse_args().binary.resolve()).items()):
        plot(chip, rows, DOCS / f"kernels-measured-{chip}.svg")


if __name__ == "__main__":
    main()
