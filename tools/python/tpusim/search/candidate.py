"""`Candidate`: one combination of what a search varies, as `build` gets it.

def build(candidate):
    mesh = AbstractMesh(candidate.mesh, ("data", "model"), (AxisType.Auto,) * 2)
    ...
"""

from collections.abc import Iterator, Mapping
from typing import Any


class Candidate(Mapping[str, Any]):
    """Values by name, as items and as attributes; `config` is the slice.

    `labels` says in a few words which value each is; `identities` tells values apart, also in
    another process, so that results can be found again.
    """

    def __init__(
        self,
        config: str,
        values: Mapping[str, Any],
        labels: Mapping[str, str],
        identities: Mapping[str, str],
    ):
        self._values = {"config": config, **values}
        self.config = config
        self.labels = dict(labels)
        self.identities = dict(identities)

    @property
    def name(self) -> str:
        """The name in tables: "v5e-4x2 mesh=4x2 rules=fsdp"."""
        return " ".join([self.config, *(f"{k}={v}" for k, v in self.labels.items())])

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __getattr__(self, name: str) -> Any:
        # Also asked while it is unpickled, when there are no values yet.
        if name != "_values" and name in self._values:
            return self._values[name]
        raise AttributeError(f"the space has no {name!r}")

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"<Candidate {self.name}>"
