"""Results of a calibration: values, how well the profile determines them, and a chip file."""

import dataclasses
import json
import statistics
from collections.abc import Sequence
from typing import Any

from tpusim import files, quantities
from tpusim.calibrate.parameters import Fitted
from tpusim.version import __version__


@dataclasses.dataclass(frozen=True)
class Operation:
    """An operation of the profile, or a place of the program, with what it took."""

    name: str
    category: str
    source: str
    measured_ns: float
    before_ns: float  # simulated with the chip as it was
    after_ns: float
    set_aside: bool  # not used by the fit

    @property
    def error_before(self) -> float:
        """Relative, negative: simulated faster."""
        return self.before_ns / self.measured_ns - 1

    @property
    def error_after(self) -> float:
        """Mean error with the fitted values, as `error_before`."""
        return self.after_ns / self.measured_ns - 1


@dataclasses.dataclass(frozen=True)
class Calibration:
    """The parameters that a profile determines, with what remains of every operation."""

    chip: str  # what the chip file starts from
    config: str
    slice_name: str  # "4x2"
    profile: str
    program: str  # as XProf has it
    parameters: tuple[Fitted, ...]
    operations: tuple[Operation, ...]  # longest first
    step_measured_ns: float
    step_before_ns: float
    step_after_ns: float
    gap_ns: float  # of the host, between executions; no parameter of a chip

    @property
    def determined(self) -> tuple[Fitted, ...]:
        """The fitted values that the profile determines."""
        return tuple(p for p in self.parameters if not p.refused)

    def chip_file(self, name: str) -> dict[str, Any]:
        """A chip of one's own: what was fitted, on the chip that the simulation was of."""
        chip: dict[str, Any] = {"base": self.chip, "name": name}
        for found in self.determined:
            *path, leaf = found.parameter.name.split(".")
            section = chip
            for part in path:
                section = section.setdefault(part, {})
            error = f"{100 * (found.error or 0):.1f} %"
            section[leaf] = {
                "value": float(f"{found.value:.6g}"),
                "source": f"fitted: tpusim calibrate, {self.program} on {self.config}",
                "note": f"standard error {error}; {found.before:g} before",
            }
        return chip

    def write_chip(self, path: str, name: str = "") -> None:
        """Writes the chip file; {"chip": PATH, "slice": "4x2"} is a --config of it."""
        chip = self.chip_file(
            name or f"{self.chip.rpartition('/')[2].removesuffix('.json')}-fitted"
        )
        files.write_atomically(path, (json.dumps(chip, indent=2) + "\n").encode())

    def errors(self, set_aside: bool) -> dict[str, float]:
        """Median and 90th percentile of what operations are off by, before and after."""
        rows = [o for o in self.operations if o.set_aside == set_aside]
        if not rows:
            return {}
        before = sorted(abs(o.error_before) for o in rows)
        after = sorted(abs(o.error_after) for o in rows)
        p90 = min(len(rows) - 1, round(0.9 * (len(rows) - 1)))
        return {
            "operations": len(rows),
            "median_before": statistics.median(before),
            "median_after": statistics.median(after),
            "p90_before": before[p90],
            "p90_after": after[p90],
        }

    def to_json(self, command_line: Sequence[str]) -> str:
        """Schema "tpusim.calibrate/1"."""
        data = {
            "schema": "tpusim.calibrate/1",
            "tpusim_version": __version__,
            "command_line": list(command_line),
            "chip": self.chip,
            "config": self.config,
            "program": self.program,
            "parameters": [
                {
                    "name": p.parameter.name,
                    "before": p.before,
                    "value": p.value,
                    "standard_error": p.error if p.error != float("inf") else None,
                    "refused": p.refused,
                }
                for p in self.parameters
            ],
            "fitted_on": self.errors(set_aside=False),
            "set_aside": self.errors(set_aside=True),
            "step_ns": {
                "measured": self.step_measured_ns,
                "before": self.step_before_ns,
                "after": self.step_after_ns,
            },
            "gap_ns": self.gap_ns,
            "operations": [dataclasses.asdict(o) for o in self.operations],
        }
        return json.dumps(data, indent=2)

    def text(self, top: int) -> str:
        """Tables of the parameters and of the operations that remain furthest off."""
        lines = [f"{'parameter':34} {'before':>9} {'fitted':>9} {'+-':>6}"]
        for p in self.parameters:
            if p.refused:
                lines.append(f"{p.parameter.name:34} {p.before:9.4g} {'-':>9} {'':6}  {p.refused}")
                continue
            error = quantities.percent(p.error or 0)
            lines.append(f"{p.parameter.name:34} {p.before:9.4g} {p.value:9.4g} {error:>6}")
        lines += ["", "operations, by how much they are off: median and 90th percentile"]
        for name, set_aside in (("fitted on", False), ("set aside", True)):
            if found := self.errors(set_aside):
                before = (
                    f"{100 * found['median_before']:.1f} % and {100 * found['p90_before']:.1f} %"
                )
                after = f"{100 * found['median_after']:.1f} % and {100 * found['p90_after']:.1f} %"
                lines.append(f"{name} ({found['operations']}): {before} before, {after} after")
        times = [self.step_measured_ns, self.step_before_ns, self.step_after_ns]
        measured, before, after = (quantities.time(t) for t in times)
        lines.append(f"step: {measured} measured, {before} before, {after} after")
        if self.gap_ns > 0:
            gap = quantities.time(self.gap_ns)
            lines.append(f"host: {gap} between executions, which no simulated step has")
        worst = sorted(
            self.operations, key=lambda o: abs(o.after_ns - o.measured_ns), reverse=True
        )[:top]
        lines += ["", f"{'measured':>10} {'after':>10} {'error':>8}  operation, furthest off first"]
        for o in worst:
            what = f"{o.name} ({o.category}) {o.source}" + (" [set aside]" if o.set_aside else "")
            lines.append(
                f"{quantities.time(o.measured_ns):>10} {quantities.time(o.after_ns):>10} "
                f"{100 * o.error_after:+7.1f}%  {what}"
            )
        return "\n".join(lines)
