"""Options of the TPU compiler, and what they do to a program.

The package is callable: `tpusim.flags(...)` is the function, see `help(tpusim.flags.flags)`. In a
shell it is `tpusim flags`, or `python -m tpusim.flags`.
"""

import inspect
import sys
import types
from typing import Any

from tpusim.flags.driver import flags
from tpusim.flags.results import FlagResults

__all__ = ["flags"]


class _CallablePackage(types.ModuleType):
    def __call__(self, *args: Any, **kwargs: Any) -> FlagResults:
        return flags(*args, **kwargs)


# `inspect.signature(tpusim.flags)` reads it.
__signature__ = inspect.signature(flags)

sys.modules[__name__].__class__ = _CallablePackage
