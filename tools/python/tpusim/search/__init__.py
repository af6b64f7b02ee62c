"""Search over meshes, shardings, batches, slices, whatever a program can be built with.

The package is callable: `tpusim.search(...)` is the function, see `help(tpusim.search.search)`. In
a shell it is `tpusim search`, or `python -m tpusim.search`.
"""

import inspect
import sys
import types
from typing import Any

from tpusim.search.driver import search
from tpusim.search.results import SearchResults

__all__ = ["search"]


class _CallablePackage(types.ModuleType):
    def __call__(self, *args: Any, **kwargs: Any) -> SearchResults:
        return search(*args, **kwargs)


# `inspect.signature(tpusim.search)` reads it.
__signature__ = inspect.signature(search)

sys.modules[__name__].__class__ = _CallablePackage
