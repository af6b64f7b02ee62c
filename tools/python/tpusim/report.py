"""`Report`: what tpusim found out about one step, with a type for everything.

It has the fields of the report that `tpusim run --report` writes, under the same names
(report_fields.py), and tables, plots and pages made of them.
Lists of rows are there twice: as tuples of records (`op_records`), which need no other library, and
as pandas DataFrames (`ops`):

    report = tpusim.simulate(step, *avals, config="v5e-4x2")
    report.step_time_ns, report.mfu, report.bound_ns.ici
    report.ops.groupby("category").total_ns.sum()
    max(report.collective_records, key=lambda c: c.exposed_ns).exposed_by[0].text
"""

import dataclasses
import os
import pathlib
import tempfile
from typing import TYPE_CHECKING, Protocol

from tpusim import arguments as checks
from tpusim import files, frames, notebook, plots, records
from tpusim.errors import ArgumentTypeError, Error
from tpusim.quantities import percent, time
from tpusim.report_fields import ReportFields

if TYPE_CHECKING:
    import matplotlib.axes
    import pandas

    from tpusim.timeline import Timeline

SCHEMA = "tpusim.report/1"


class Simulation(Protocol):
    """Simulates a step again, for what its report does not have."""

    def write_trace(self, path: str | os.PathLike[str], report: "Report") -> None:
        """Writes the trace of what `report` reports."""

    def write_page(self, path: str | os.PathLike[str], report: "Report") -> None:
        """Writes the page for a browser of what `report` reports."""

    def timeline(self, chip: int, report: "Report") -> "Timeline":
        """Returns the timeline of one chip."""


@dataclasses.dataclass(frozen=True, repr=False)
class Report(ReportFields):
    """One simulated step: what was found out, as typed fields, tables and plots."""

    # The report as it was written, and what can simulate the same again.
    text: str = dataclasses.field(default="", compare=False, metadata=records.NO_KEY)
    simulation: Simulation | None = dataclasses.field(
        default=None, compare=False, metadata=records.NO_KEY
    )

    @classmethod
    def from_json(cls, text: str, simulation: Simulation | None = None) -> "Report":
        """Reads what `tpusim run --report` wrote; tpusim.Error if it is something else."""
        if not isinstance(text, str):
            raise ArgumentTypeError(
                f"Report.from_json: text: {type(text).__name__}: expected a str"
            )
        try:
            report = records.read(cls, records.parse(text, SCHEMA))
            if report.step_time_ns < 0:
                raise ValueError(f"step_time_ns is {report.step_time_ns:g}: no time of a step")
        except ValueError as error:
            raise Error(f"not a report of tpusim: {error}") from error
        return dataclasses.replace(report, text=text, simulation=simulation)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Report":
        """Reads a report file; tpusim.Error if it cannot be read, or is something else."""
        data = files.read_bytes(path)
        try:
            return cls.from_json(files.text_of(data))
        except ValueError as error:
            raise Error(f"{os.fspath(path)}: not a report of tpusim: {error}") from error
        except Error as error:
            raise Error(f"{os.fspath(path)}: {error}") from error

    def save(
        self, path: str | os.PathLike[str], *, trace: str | os.PathLike[str] | None = None
    ) -> None:
        """Writes the report and, if asked for, a Perfetto trace (by simulating again).

        The report is JSON, or if `path` ends in .html a page for a browser with timeline, roofline
        and all else (by simulating again, too).
        """
        target = files.path_of(path, "path")
        traced = files.path_of(trace, "trace") if trace is not None else ""
        if pathlib.Path(target).suffix == ".html":
            self._simulation_of("a page").write_page(target, self)
        else:
            files.write_atomically(target, self.text.encode())
        if traced:
            self._simulation_of("a trace").write_trace(traced, self)

    def open_perfetto(self) -> None:
        """Opens the trace in the Perfetto UI, in a browser on this machine (simulates again)."""
        from tpusim import perfetto

        with tempfile.TemporaryDirectory(prefix="tpusim-") as folder:
            trace = pathlib.Path(folder) / "trace"
            self._simulation_of("a trace").write_trace(trace, self)
            perfetto.open_trace(trace)

    @property
    def ops(self) -> "pandas.DataFrame":
        """Operations, longest first, as a DataFrame (needs pandas)."""
        return frames.ops(self)

    @property
    def scopes(self) -> "pandas.DataFrame":
        """Time by prefix of op_name paths as a DataFrame (needs pandas)."""
        return frames.scopes(self)

    @property
    def collectives(self) -> "pandas.DataFrame":
        """Collectives, longest first, as a DataFrame (needs pandas)."""
        return frames.collectives(self)

    @property
    def memory(self) -> "pandas.DataFrame":
        """Arrays live at the peak, largest first, as a DataFrame (needs pandas)."""
        return frames.memory(self)

    @property
    def links(self) -> "pandas.DataFrame":
        """Every link of the slice as a DataFrame (needs pandas)."""
        return frames.links(self)

    def where(self, by: str = "scope") -> "pandas.DataFrame":
        """Tables the step by "op", "scope", "source", "category", "collective" or "path"."""
        return frames.where(self, by)

    def timeline(self, chip: int = 0) -> "Timeline":
        """Returns the timeline of one chip (simulates again)."""
        return self._simulation_of("a timeline").timeline(checks.chip(chip), self)

    def plot_timeline(
        self, chip: int = 0, *, axes: "matplotlib.axes.Axes | None" = None
    ) -> "matplotlib.axes.Axes":
        """Draws what the engines and links of one device did over the step (matplotlib)."""
        return plots.timeline(self, self.timeline(chip), chip, axes)

    def plot_roofline(
        self, *, axes: "matplotlib.axes.Axes | None" = None
    ) -> "matplotlib.axes.Axes":
        """Draws FLOP/s over FLOP per byte of every operation (matplotlib)."""
        return plots.roofline(self, axes)

    def plot_memory(
        self, chip: int = 0, *, axes: "matplotlib.axes.Axes | None" = None
    ) -> "matplotlib.axes.Axes":
        """Draws live HBM over the step and whose it is at the peak (matplotlib)."""
        return plots.memory(self, self.timeline(chip), axes)

    def _simulation_of(self, what: str) -> Simulation:
        if self.simulation is None:
            raise Error(f"{what} needs the program, which a report that was loaded does not have")
        return self.simulation

    def __repr__(self) -> str:
        return (
            f"<tpusim.Report {self.workload} on {self.config}: step {time(self.step_time_ns)}, "
            f"MFU {percent(self.mfu)}>"
        )

    def _repr_html_(self) -> str:
        return notebook.html_of(self)
