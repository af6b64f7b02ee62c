"""Checkpoints that a captured script saves: nothing is written.

What it would save is zeros, over or beside what it has really trained, and managers of checkpoints
remove older ones. Their public functions for saving do nothing inside of a block, and say so.
"""

import contextlib
import sys
from collections.abc import Callable
from typing import Any

from tpusim.assumptions import Assumptions, users_place

# Module, owner (a class, or "" for the module), what saves, and what it returns then.
_SAVING = (
    ("orbax.checkpoint", "CheckpointManager", "save", False),
    ("orbax.checkpoint", "Checkpointer", "save", None),
    ("orbax.checkpoint", "AsyncCheckpointer", "save", None),
    ("orbax.checkpoint", "StandardCheckpointer", "save", None),
    ("orbax.checkpoint", "PyTreeCheckpointer", "save", None),
    ("flax.training.checkpoints", "", "save_checkpoint", ""),
    ("flax.training.checkpoints", "", "save_checkpoint_multiprocess", ""),
)


class LeftOut:
    """The saving that is left out, from when a library is first seen to the end of the block."""

    def __init__(self, assumptions: Assumptions, stack: contextlib.ExitStack):
        self._assumptions = assumptions
        self._stack = stack
        self._done: set[tuple[str, str, str]] = set()

    def look(self) -> None:
        """Replaces the functions of libraries that have been imported since the last call."""
        for module, kind, name, result in _SAVING:
            loaded = sys.modules.get(module)
            if loaded is None or (module, kind, name) in self._done:
                continue
            owner = getattr(loaded, kind, None) if kind else loaded
            # A library that is being imported has some of it later.
            if owner is None or name not in vars(owner):
                continue
            self._done.add((module, kind, name))
            self._stack.callback(setattr, owner, name, vars(owner)[name])
            setattr(owner, name, self._nothing(result))

    def _nothing(self, result: Any) -> Callable[..., Any]:
        def save(*_: Any, **__: Any) -> Any:
            self._assumptions.add(
                f"{users_place()} saves a checkpoint: nothing is written, since no jitted function "
                "is executed",
                warn=True,
            )
            return result

        return save
