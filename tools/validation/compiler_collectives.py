"""Pairs the collectives of both sides of a program, and says how they run."""

import collections
import dataclasses
from collections.abc import Sequence
from typing import Any

# Kind, bytes of the whole array, members of a group (0: permutes), and how it runs.
Key = tuple[str, int, int, str]
Counts = collections.Counter[Key]

# Permutes are windowed where a product was made of them.
_OF_PRODUCTS = "dot_general"


def of_compiler(summary: dict[str, Any]) -> Counts:
    """Executed ones."""
    found: Counts = collections.Counter()
    for row in summary["collectives"]:
        key = (row["kind"], row["bytes"], row.get("group_size") or 0, row["mode"])
        found[key] += row["count"]
    return found


def of_tpusim(report: dict[str, Any]) -> Counts:
    """Executed ones."""
    started = {
        op["name"].removesuffix("-start")
        for op in report["ops"]
        if op["category"].endswith("-start")
    }
    scopes = {op["name"]: op["scope"] for op in report["ops"]}
    found: Counts = collections.Counter()
    for row in report["collectives"]:
        name, kind = row["name"], row["kind"]
        permute = kind == "collective-permute"
        mode = "async" if name in started else "sync"
        if permute and scopes.get(name, "").endswith(_OF_PRODUCTS):
            mode = "windowed"
        found[kind, row["bytes"], 0 if permute else row["group_size"], mode] += row["count"]
    return found


# The first of these that runs between start and done of a collective covers it.
COVERS = {"product": "products", "other": "other kernels", "collective": "collectives"}
NOTHING = "nothing"
Covers = collections.Counter[tuple[Key, str]]


def covers(summary: dict[str, Any]) -> Covers:
    """Counts what covers the executed collectives that are not synchronous."""
    found: Covers = collections.Counter()
    for row in summary["collectives"]:
        if row["mode"] == "sync":
            continue
        key = (row["kind"], row["bytes"], row.get("group_size") or 0, row["mode"])
        between = row.get("between", ())
        found[key, next((c for k, c in COVERS.items() if k in between), NOTHING)] += row["count"]
    return found


def cover_table(groups: dict[str, Sequence[tuple[Covers, Covers]]]) -> list[str]:
    """A line per group of programs, given as ours and theirs."""
    kinds = [*COVERS.values(), NOTHING]
    lines = [
        f"| programs | asynchronous in both | covered alike | {' | '.join(kinds)} |",
        "|---" * (len(kinds) + 3) + "|",
    ]
    for name, pairs in groups.items():
        both = alike = 0
        shares: collections.Counter[tuple[str, bool]] = collections.Counter()
        for ours, theirs in pairs:
            for key in dict.fromkeys(key for key, _ in (*ours, *theirs)):
                mine = collections.Counter({c: ours[key, c] for c in kinds})
                other = collections.Counter({c: theirs[key, c] for c in kinds})
                matched = min(mine.total(), other.total())
                both += matched
                alike += min(matched, (mine & other).total())
                for side, counts in ((True, mine), (False, other)):
                    for cover, count in counts.items():
                        shares[cover, side] += count * matched / max(1, counts.total())
        if both:
            cells = [
                f"{share(shares[cover, True], both)} / {share(shares[cover, False], both)}"
                for cover in kinds
            ]
            lines.append(f"| {name} | {both} | {share(alike, both)} | {' | '.join(cells)} |")
    return lines


def without_mode(counts: Counts) -> collections.Counter[tuple[str, int, int]]:
    """Collectives, however they run."""
    found: collections.Counter[tuple[str, int, int]] = collections.Counter()
    for (kind, size, members, _), count in counts.items():
        found[kind, size, members] += count
    return found


@dataclasses.dataclass
class Agreement:
    """Over some programs."""

    programs: int = 0
    alike: int = 0  # the same collectives by kind, bytes and groups
    collectives: int = 0  # of the side that has more of them
    same: int = 0  # on both sides, by kind, bytes and groups
    same_mode: int = 0  # of these, those that run alike

    def add(self, ours: Counts, theirs: Counts) -> None:
        """One more program; those without any collective say nothing."""
        if not ours and not theirs:
            return
        mine, other = without_mode(ours), without_mode(theirs)
        self.programs += 1
        self.alike += mine == other
        self.collectives += max(mine.total(), other.total())
        self.same += (mine & other).total()
        self.same_mode += (ours & theirs).total()


def share(part: float, whole: int) -> str:
    """In percent."""
    return f"{part / whole:.0%}" if whole else ""


def table(groups: dict[str, Sequence[tuple[Counts, Counts]]]) -> list[str]:
    """A line per group of programs, given as ours and theirs."""
    lines = [
        "| programs | with collectives | the same in | collectives | the same | and run alike |",
        "|---|---|---|---|---|---|",
    ]
    for name, pairs in groups.items():
        found = Agreement()
        for ours, theirs in pairs:
            found.add(ours, theirs)
        if found.programs:
            lines.append(
                f"| {name} | {found.programs} | {share(found.alike, found.programs)}"
                f" | {found.collectives} | {share(found.same, found.collectives)}"
                f" | {share(found.same_mode, found.collectives)} |"
            )
    return lines
