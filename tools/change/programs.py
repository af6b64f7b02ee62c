"""The programs of the tree that `tools/snap` looks at, and which of them are its sample.

Whether a program is in the sample depends on its name alone, so that a sample of yesterday and one
of today have the same programs, and a program that is added displaces no other. Every folder has at
least one program in it: every kind, and of compiled modules every slice.
"""

import dataclasses
import fnmatch
import hashlib
import pathlib
from collections.abc import Sequence

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMPILED, PODS = "compiled", "pods"
# Kind, and where its programs are.
_FOLDERS = {
    "examples": "workloads/examples",
    PODS: "benchmarks/pod_programs",
    "validation": "validation/workloads",
    COMPILED: "tests/data/compiled",
}
_ENDINGS = (".pb.gz", ".hlo.gz")
# One of so many programs is in the sample.
_SAMPLE = 4
# Options for what programs leave open and need stated.
RAGGED_COST = ("--kernel-cost", "ragged-dot-metadata=1000,100000")
_STATED = {"compiled/*/ragged_product": RAGGED_COST, "compiled/*/moe_ragged_dot": RAGGED_COST}


@dataclasses.dataclass(frozen=True)
class Program:
    """A program with the options that it runs with."""

    name: str  # kind/[slice/]stem
    path: str  # from the root of the tree

    @property
    def kind(self) -> str:
        """The folder of the tree that it is from."""
        return self.name.partition("/")[0]

    @property
    def folder(self) -> str:
        """The kind, of a compiled module with its slice."""
        return self.name.rpartition("/")[0]

    @property
    def effort(self) -> tuple[bool, int]:
        """Orders programs by expected time: a pod is much work however small its file is."""
        return self.kind == PODS, (ROOT / self.path).stat().st_size

    @property
    def options(self) -> list[str]:
        """The options that a user would have to state, too."""
        stated = [words for glob, words in _STATED.items() if fnmatch.fnmatch(self.name, glob)]
        words = [word for each in stated for word in each]
        # Text does not say what it was compiled for.
        if self.path.endswith(".hlo.gz"):
            words += ["--config", pathlib.PurePath(self.path).parent.name]
        return words


def all_programs() -> list[Program]:
    """Returns the programs of the tree, by name."""
    found = []
    for kind, folder in _FOLDERS.items():
        for path in (ROOT / folder).rglob("*"):
            if path.name.endswith(_ENDINGS):
                within = path.relative_to(ROOT / folder).as_posix()
                name = within.removesuffix(".gz").removesuffix(".pb")
                found.append(Program(f"{kind}/{name}", path.relative_to(ROOT).as_posix()))
    return sorted(found, key=lambda program: program.name)


def selected(*, every: bool, only: Sequence[str]) -> list[Program]:
    """Returns every program, those that fit one of the globs, or else the sample."""
    programs = all_programs()
    if only:
        return [program for program in programs if fits(program.name, only)]
    return programs if every else _sample(programs)


def fits(name: str, globs: Sequence[str]) -> bool:
    """Whether it is one that any of the globs means."""
    return any(fnmatch.fnmatch(name, glob) for glob in globs)


def _sample(programs: Sequence[Program]) -> list[Program]:
    lot = {program: _lot(program.name) for program in programs}
    least = {program.folder: program for program in sorted(programs, key=lambda p: -lot[p])}
    return [p for p in programs if lot[p] % _SAMPLE == 0 or least[p.folder] == p]


def _lot(name: str) -> int:
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8])
