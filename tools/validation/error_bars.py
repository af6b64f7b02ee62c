"""Writes validation/errors.json: how far simulations are from measurements.

    python tools/validation/error_bars.py [--binary build/tpusim]

Of the rows to which nothing is fitted, and whose program is known. They are inside the binary,
which shows them beside step times as their error bars: build it again afterwards.
"""

import argparse
import json
import pathlib
import subprocess
from typing import Any

from measurements import ROOT

ERRORS = ROOT / "validation" / "errors.json"
SCHEMA = "tpusim.validation-errors/1"
# Classes of rows whose program and conditions are known, exactly or nearly.
_KNOWN = ("A", "B")
# Sources round more than this.
_DIGITS = 4


def errors_of(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Selects the rows of `tpusim validate --long --json` that say how well the model predicts."""
    return [
        {key: row[key] for key in ("id", "chip", "kind")} | {"error": round(row["error"], _DIGITS)}
        for row in rows
        if row["role"] == "validation" and row["reproducibility"] in _KNOWN
    ]


def text_of(errors: list[dict[str, Any]]) -> str:
    """A row per line, so that a change of the model shows which rows it moves."""
    lines = ",\n".join(f"  {json.dumps(row)}" for row in errors)
    return f'{{"schema": "{SCHEMA}", "rows": [\n{lines}\n]}}\n'


def main() -> None:
    """Simulates all rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", type=pathlib.Path, default=ROOT / "build" / "tpusim")
    flags = parser.parse_args()
    measurements = ROOT / "validation" / "measurements.json"
    command = [flags.binary, "validate", measurements, "--long", "--json"]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    ERRORS.write_text(text_of(errors_of(json.loads(done.stdout)["rows"])))


if __name__ == "__main__":
    main()
