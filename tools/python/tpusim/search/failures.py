"""Errors of the user's code and of the simulator, as a line of a table."""

import re
import traceback

from tpusim.errors import Error
from tpusim.source_files import is_installed

# The compiler's message when no rematerialisation makes a program fit.
_DOES_NOT_FIT = re.compile(
    r"the program does not fit in HBM: it needs (.+?) per device .*? than the (.+?) that .*"
)


def does_not_fit(error: BaseException) -> re.Match[str] | None:
    """Returns what the compiler says of a program without enough HBM: needed, usable."""
    return _DOES_NOT_FIT.search(text_of(error)) if isinstance(error, Error) else None


def text_of(error: BaseException) -> str:
    """The error in a line, with the user's line that raised it."""
    if isinstance(error, Error):
        return " ".join(str(error).split())
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if not is_installed(f.filename)]
    place = f" ({own[-1].filename.rpartition('/')[2]}:{own[-1].lineno})" if own else ""
    return f"{type(error).__name__}: {' '.join(str(error).split())}{place}"
