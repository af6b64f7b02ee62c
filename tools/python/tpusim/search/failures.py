"""Errors of the user's code and of the simulator, as a line of a table."""

import traceback

from tpusim.errors import Error
from tpusim.source_files import is_installed


def text_of(error: BaseException) -> str:
    """The error in a line, with the user's line that raised it."""
    if isinstance(error, Error):
        return " ".join(str(error).split())
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if not is_installed(f.filename)]
    place = f" ({own[-1].filename.rpartition('/')[2]}:{own[-1].lineno})" if own else ""
    return f"{type(error).__name__}: {' '.join(str(error).split())}{place}"
