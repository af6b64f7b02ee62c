"""Progress of a search on standard error: a bar where tqdm is installed, else lines."""

import sys
import time
from typing import Any

_LINE_SECONDS = 5.0


class Progress:
    """Counts candidates; shows nothing if `shown` is False."""

    def __init__(self, shown: bool):
        self._shown = shown
        self._bar: Any = None
        self._said = 0.0
        self._what = ""
        self._done = self._total = 0

    def begin(self, what: str, total: int) -> None:
        """The next stage."""
        self.end()
        self._what, self._done, self._total = what, 0, total
        self._said = time.monotonic()
        if not self._shown or total == 0:
            return
        try:
            import tqdm
        except ImportError:
            return
        # Not on stderr of a file or a pipe: there lines are better.
        if sys.stderr.isatty():
            self._bar = tqdm.tqdm(total=total, desc=what, unit="", file=sys.stderr, leave=False)

    def advance(self, note: str = "") -> None:
        """One more."""
        self._done += 1
        if self._bar is not None:
            self._bar.set_postfix_str(note, refresh=False)
            self._bar.update()
        elif self._shown and time.monotonic() - self._said >= _LINE_SECONDS:
            self._said = time.monotonic()
            rest = f", {note}" if note else ""
            print(f"tpusim: {self._what} {self._done} of {self._total}{rest}", file=sys.stderr)

    def end(self) -> None:
        """Takes the bar away."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None
