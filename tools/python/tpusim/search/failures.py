"""Errors of the user's code and of the simulator, as a line of a table."""

import functools
import importlib.util
import pathlib
import traceback

from tpusim.errors import Error


@functools.cache
def _libraries() -> tuple[str, ...]:
    """Folders of code that is not the user's."""
    here = pathlib.Path(__file__).resolve().parents[1]
    jax = importlib.util.find_spec("jax")
    others = (str(pathlib.Path(jax.origin).parent),) if jax and jax.origin else ()
    return (str(here), *others)


def text_of(error: BaseException) -> str:
    """The error in a line, with the user's line that raised it."""
    if isinstance(error, Error):
        return " ".join(str(error).split())
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if not f.filename.startswith(_libraries())]
    place = f" ({own[-1].filename.rpartition('/')[2]}:{own[-1].lineno})" if own else ""
    return f"{type(error).__name__}: {' '.join(str(error).split())}{place}"
