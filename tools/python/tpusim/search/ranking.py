"""The order of candidates, and why each is behind the best.

Of two candidates the parts of the step (or of memory) are compared, scaled as the objective scales
them: by tokens for tokens per second, by model FLOPs for MFU. The differences of the parts add up
to the difference of the costs, so "+31 %: exposed all-gather +24 %, compute +9 %" accounts for it.
"""

import dataclasses
import functools
import math
from collections.abc import Sequence

from tpusim import quantities
from tpusim.search.candidate import Candidate
from tpusim.search.objective import Objective
from tpusim.search.row import Row, Status
from tpusim.sharding import FoundShardings

# Differences below this share of the best are not worth a word, nor are more than three.
_LEAST_SHARE = 0.005
_MOST_PARTS = 3
# After what was simulated.
_ORDER = (Status.PRUNED, Status.DOES_NOT_FIT, Status.ERROR, Status.CRASHED, Status.EXPORTED)


@dataclasses.dataclass(frozen=True)
class Entry:
    """One candidate with what was found out; `rank` counts from 1, None: not simulated."""

    rank: int | None
    candidate: Candidate
    row: Row
    value: float | None  # of the objective
    tokens: float | None
    reason: str  # why it is behind the best, or why there is no value

    @functools.cached_property
    def found(self) -> FoundShardings | None:
        """Mesh and shardings that were found for it (shardings="auto"), the best alone."""
        return FoundShardings.from_json(self.row.found) if self.row.found else None


Known = tuple[Candidate, Row, float | None]


def ranked(known: Sequence[Known], objective: Objective) -> list[Entry]:
    """The best first; equal ones in the order of the space. Then what has no value."""
    done = [k for k in known if k[1].status is Status.SIMULATED]
    numbers = {id(k): objective.cost(k[1], k[2]) for k in done}
    # A function may say that it does not know.
    done.sort(key=lambda k: (math.isnan(numbers[id(k)]), numbers[id(k)]))
    entries = []
    for rank, (candidate, row, tokens) in enumerate(done, 1):
        value = objective.value(row, tokens)
        known_value = None if math.isnan(value) else value
        why = "" if rank == 1 else reason(objective, (row, tokens), (done[0][1], done[0][2]))
        entries.append(Entry(rank, candidate, row, known_value, tokens, why))
    rest = sorted(
        (k for k in known if k[1].status is not Status.SIMULATED),
        key=lambda k: _ORDER.index(k[1].status),
    )
    return entries + [Entry(None, c, row, None, t, row.why or row.status) for c, row, t in rest]


def reason(
    objective: Objective, this: tuple[Row, float | None], best: tuple[Row, float | None]
) -> str:
    """Returns how much of the difference from the best is due to which part."""
    if objective.name == "peak_hbm":
        mine, least = _memory(this[0]), _memory(best[0])
    else:
        mine, least = dict(this[0].parts), dict(best[0].parts)
    scale, scale_best = _scale(objective, *this), _scale(objective, *best)
    base = sum(least.values()) * scale_best
    if base <= 0 or scale is None:
        return ""
    shares = {
        part: (mine.get(part, 0.0) * scale - least.get(part, 0.0) * scale_best) / base
        for part in [*mine, *(p for p in least if p not in mine)]
    }
    total = sum(shares.values())
    of = {"tokens_per_chip_second": " per token and chip", "mfu": " per model FLOP"}
    if objective.name not in ("step_time", "peak_hbm", *of):
        head = f"step {_signed(total)} against the best"
    elif abs(total) < 5e-5:
        return "as good as the best"
    else:
        absolute = ""
        if objective.name in ("step_time", "peak_hbm"):
            text = quantities.time if objective.name == "step_time" else quantities.size
            absolute = f" ({text(total * base)})"
        head = f"{_signed(total)}{absolute}{of.get(objective.name, '')}"
    largest = sorted(
        ((part, share) for part, share in shares.items() if abs(share) >= _LEAST_SHARE),
        # What makes it longer first.
        key=lambda item: -item[1] if total >= 0 else item[1],
    )[:_MOST_PARTS]
    parts = ", ".join(f"{part} {_signed(share)}" for part, share in largest)
    return f"{head}: {parts}" if parts else head


def _scale(objective: Objective, row: Row, tokens: float | None) -> float:
    """The cost is in proportion to this times the step."""
    if objective.name == "tokens_per_chip_second":
        return (row.chips or 1) / tokens if tokens else 0.0
    if objective.name == "mfu":
        # MFU is model FLOPs over step and peak.
        work = (row.mfu or 0.0) * (row.step_time_ns or 0.0)
        return 1 / work if work else 0.0
    return 1.0


def _memory(row: Row) -> dict[str, float]:
    owners: dict[str, float] = dict(row.owners)
    # Holes between arrays are nobody's.
    owners["fragmentation"] = (row.peak_hbm_bytes or 0) - sum(owners.values())
    return owners


def _signed(share: float) -> str:
    return f"{100 * share:+.1f}%"
