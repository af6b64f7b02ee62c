"""Runs the tpusim binary and reads what it reports."""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any


class TpusimError(RuntimeError):
    """The simulator refused or failed; the message is its own."""


def find_binary() -> str:
    """The tpusim binary: $TPUSIM_BINARY, else on PATH, else build/tpusim of this source tree."""
    named = os.environ.get("TPUSIM_BINARY")
    built = pathlib.Path(__file__).resolve().parents[3] / "build" / "tpusim"
    candidate = named or shutil.which("tpusim") or (str(built) if built.exists() else None)
    if candidate is None:
        raise TpusimError(
            "no tpusim binary: build it (tools/demo), put it on PATH, or set TPUSIM_BINARY"
        )
    return candidate


def run(
    path: str | os.PathLike[str],
    *,
    config: str = "",
    settings: Mapping[str, Any] | None = None,
    trace: str | os.PathLike[str] | None = None,
    options: Sequence[str] = (),
) -> dict[str, Any]:
    """Simulates a workload file and returns the report.

    Args:
      path: what `tpusim.export` wrote, or any HLO file the binary reads.
      config: the slice, "v5e-4x2"; by default the one named while exporting.
      settings: parameters to override, {"chip.hbm.bytes_per_second": 1.6e12}.
      trace: also write a Perfetto trace here.
      options: more command line options, passed on as they are.
    """
    with tempfile.TemporaryDirectory(prefix="tpusim-") as folder:
        report = pathlib.Path(folder) / "report.json"
        command = [find_binary(), "run", os.fspath(path), "--report", str(report), "--quiet"]
        if config:
            command += ["--config", config]
        for key, value in (settings or {}).items():
            command += ["--set", f"{key}={value}"]
        if trace is not None:
            command += ["--trace", os.fspath(trace)]
        done = subprocess.run([*command, *options], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            message = done.stderr.strip() or f"exit code {done.returncode}"
            raise TpusimError(f"tpusim: {message}")
        return json.loads(report.read_text())
