"""Libraries that only some functions need: imported when they are, with an error that helps."""

import importlib
from typing import Any

from tpusim.errors import Error


def require(library: str, purpose: str) -> Any:
    """The module, or an error that says what to install."""
    try:
        return importlib.import_module(library)
    except ImportError as error:
        package = library.partition(".")[0]
        raise Error(f"{purpose} needs {package}: pip install {package}") from error
