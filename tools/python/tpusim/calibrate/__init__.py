"""Parameters of a chip, fitted to a profile of XProf: `tpusim calibrate`.

    found = tpusim.calibrate("step.pb", profile="logdir", config="v5e-4x2")
    found.parameters          # what the profile determines, and what it does not
    found.write_chip("calibrated.json")

The package is callable: `tpusim.calibrate(...)` is the function.
"""

import inspect
import sys
import types
from typing import Any

from tpusim.calibrate.driver import calibrate
from tpusim.calibrate.results import Calibration

__all__ = ["Calibration", "calibrate"]


class _CallablePackage(types.ModuleType):
    def __call__(self, *args: Any, **kwargs: Any) -> Calibration:
        return calibrate(*args, **kwargs)


# `inspect.signature(tpusim.calibrate)` reads it.
__signature__ = inspect.signature(calibrate)

sys.modules[__name__].__class__ = _CallablePackage
