"""Recipes: what a framework's command line leaves open when nothing is trained, as data.

A recipe is a module with a `RECIPE`; `tpusim.sweep(..., recipe="maxtext")` takes one of this
package by its name, and `recipe="mine.py"` one of the user's.
"""

import dataclasses
import importlib
import importlib.util
from collections.abc import Mapping, Sequence
from typing import Any

from tpusim import scripts
from tpusim.errors import ArgumentValueError


@dataclasses.dataclass(frozen=True)
class Recipe:
    """Facts about the command line of a framework."""

    # Arguments `name=value` in place of the command's own, or beside them: data that need no disk,
    # no checkpoints, no profiles.
    arguments: Sequence[str] = ()
    # Modules that run in place of others: the training itself in place of what only compiles it.
    modules: Mapping[str, str] = dataclasses.field(default_factory=dict)
    # Arguments that name the slice and the number of slices; they are no arguments of the training.
    slice: str = ""
    slices: str = ""
    # Values that are varied if the caller names none.
    vary: Mapping[str, Sequence[Any]] = dataclasses.field(default_factory=dict)


def recipe_of(name: str) -> Recipe:
    """Returns a recipe by its name, or from a file; an empty one for an empty name."""
    if not name:
        return Recipe()
    if name.endswith(".py"):
        found = scripts.load(name)
    elif name.isidentifier() and importlib.util.find_spec(f"tpusim.recipes.{name}"):
        found = importlib.import_module(f"tpusim.recipes.{name}")
    else:
        raise ArgumentValueError(f"recipe: {name!r}: neither maxtext, tunix nor a Python file")
    recipe = getattr(found, "RECIPE", None)
    if not isinstance(recipe, Recipe):
        raise ArgumentValueError(f"recipe: {name}: has no RECIPE = tpusim.recipes.Recipe(...)")
    return recipe
