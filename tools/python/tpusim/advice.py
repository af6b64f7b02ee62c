"""`tpusim.advise`: what would make a step shorter, or fit, each answer by a simulation."""

import dataclasses
import html
import inspect
import json
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from tpusim import optional
from tpusim.errors import ArgumentTypeError, Error
from tpusim.quantities import size, time
from tpusim.records import parse, read
from tpusim.report import Report
from tpusim.simulation import simulate, simulation_of

if TYPE_CHECKING:
    import pandas

T = TypeVar("T")

_SCHEMA = "tpusim.advise/1"
_MEMORY_SCHEMA = "tpusim.advise-memory/1"
# Smaller changes of the step are none.
_SMALLEST_CHANGE = 0.0005


@dataclasses.dataclass(frozen=True)
class Variant:
    """The step with one thing changed."""

    kind: str
    """"device order", "slice", "algorithm", "compiler", "donation" or "chip"."""
    name: str
    why: str
    """What is behind it; may be empty."""
    options: tuple[str, ...]
    """Of `tpusim run`; `tpusim.simulate(..., options=variant.options)` simulates it."""
    step_time_ns: float
    change: float
    """Of the step time, as a share of it: below 0 is shorter."""
    peak_hbm_bytes: int
    peak_change: float
    """Of the peak of HBM, as a share of it."""


@dataclasses.dataclass(frozen=True)
class Advice:
    """Variants of a program that were simulated, the shortest step first."""

    workload: str
    config: str
    step_time_ns: float
    """As it is."""
    peak_hbm_bytes: int
    usable_hbm_bytes: int
    variants: tuple[Variant, ...]
    """What a user can change."""
    chip: tuple[Variant, ...]
    """Parts of the chip twice as fast or as large: what gains most binds the step."""

    @classmethod
    def from_json(cls, text: str) -> "Advice":
        """Reads what `tpusim advise --json` prints."""
        return _read(cls, text, _SCHEMA)

    @property
    def best(self) -> Variant | None:
        """The change a user can make that shortens the step most; None if none does."""
        return next((v for v in self.variants if v.change <= -_SMALLEST_CHANGE), None)

    def to_frame(self) -> "pandas.DataFrame":
        """One row per variant, those of the chip last (needs pandas)."""
        return _frame(Variant, (*self.variants, *self.chip))

    def _lines(self) -> list[tuple[str, str, str, str]]:
        shorter = [v for v in (*self.variants, *self.chip) if v.change <= -_SMALLEST_CHANGE]
        return [
            (v.name, time(v.step_time_ns), f"{v.change:+.1%}", v.why or " ".join(v.options))
            for v in shorter
        ]

    def __str__(self) -> str:
        head = (
            f"{self.workload} on {self.config}: {time(self.step_time_ns)}, peak "
            f"{size(self.peak_hbm_bytes)} of {size(self.usable_hbm_bytes)}"
        )
        return "\n".join([head, *("  ".join(line) for line in self._lines())])

    def _repr_html_(self) -> str:
        head, *_ = str(self).splitlines()
        rows = "".join(
            "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in line) + "</tr>"
            for line in self._lines()
        )
        return f"<div>{html.escape(head)}<table>{rows}</table></div>"


@dataclasses.dataclass(frozen=True)
class MemoryVariant:
    """A program that does not fit, with one thing changed."""

    kind: str
    """"donation", "compiler", "slice" or "chip"."""
    name: str
    why: str
    """What is behind it; may be empty."""
    options: tuple[str, ...]
    """Of `tpusim run`; `tpusim.simulate(..., options=variant.options)` simulates what fits."""
    fits: bool
    peak_hbm_bytes: int
    usable_hbm_bytes: int
    step_time_ns: float = math.nan
    """Of what fits."""


@dataclasses.dataclass(frozen=True)
class MemoryAdvice:
    """Variants of a program that needs more HBM than there is: those that fit first, by step."""

    workload: str
    config: str
    peak_hbm_bytes: int
    usable_hbm_bytes: int
    kept_hbm_bytes: int
    """The peak if nothing were computed again."""
    variants: tuple[MemoryVariant, ...]

    @classmethod
    def from_json(cls, text: str) -> "MemoryAdvice":
        """Reads what `tpusim advise --json` prints of a program that does not fit."""
        return _read(cls, text, _MEMORY_SCHEMA)

    @property
    def best(self) -> MemoryVariant | None:
        """The shortest step of those that fit; None if nothing does."""
        return next((v for v in self.variants if v.fits), None)

    def to_frame(self) -> "pandas.DataFrame":
        """One row per variant (needs pandas)."""
        return _frame(MemoryVariant, self.variants)

    def __str__(self) -> str:
        head = (
            f"{self.workload} on {self.config}: does not fit, peak "
            f"{size(self.peak_hbm_bytes)} of {size(self.usable_hbm_bytes)}"
        )
        return "\n".join([head, *("  ".join(_told(v)) for v in self.variants)])


def _read(cls: type[T], text: str, schema: str) -> T:
    if not isinstance(text, str):
        raise ArgumentTypeError(
            f"{cls.__name__}.from_json: text: {type(text).__name__}: expected a str"
        )
    try:
        return read(cls, parse(text, schema))
    except ValueError as error:
        raise Error(f"not advice of tpusim: {error}") from error


def _frame(cls: type, variants: Sequence[Any]) -> "pandas.DataFrame":
    library = optional.require("pandas", "a DataFrame")
    names = [field.name for field in dataclasses.fields(cls)]
    return library.DataFrame([dataclasses.asdict(v) for v in variants], columns=names)


def _told(variant: MemoryVariant) -> tuple[str, str, str, str]:
    peak = f"{size(variant.peak_hbm_bytes)} of {size(variant.usable_hbm_bytes)}"
    step = time(variant.step_time_ns) if variant.fits else "does not fit"
    return variant.name, peak, step, variant.why or " ".join(variant.options)


def advise(program: Any, *arguments: Any, **keywords: Any) -> Advice | MemoryAdvice:
    """Simulates a step with one thing changed at a time, as `tpusim advise` does.

        advice = tpusim.advise(train_step, params, batch, config="v5e-4x2")
        advice = tpusim.advise(report)

    Args:
      program: as for `tpusim.simulate`, or a report that it returned.
      *arguments: as for `tpusim.simulate`.
      **keywords: likewise.

    Returns:
      What was tried, the shortest step first. Of a program that does not fit a `MemoryAdvice`.

    Raises:
      tpusim.Error: what the simulator says on a terminal when it refuses.
    """
    if isinstance(program, Report):
        if arguments or keywords:
            raise ArgumentTypeError("tpusim.advise: a report has its arguments already")
        simulation = program.simulation
    else:
        bound = inspect.signature(simulate).bind(program, *arguments, **keywords)
        bound.apply_defaults()
        simulation = simulation_of(**bound.arguments)
    if simulation is None:
        raise Error("this report was read from a file: advice needs the program")
    text = simulation.advise()
    try:
        does_not_fit = json.loads(text)["schema"] == _MEMORY_SCHEMA
    except (ValueError, TypeError, LookupError):
        does_not_fit = False
    return MemoryAdvice.from_json(text) if does_not_fit else Advice.from_json(text)
