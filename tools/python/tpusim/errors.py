"""The exceptions that tpusim raises for what its user can mend."""


class Error(RuntimeError):
    """The simulator refused or failed: the text is what it prints on a terminal."""


class CaptureError(Error):
    """A block or a script ended without a call that could be captured."""


class ArgumentTypeError(Error, TypeError):
    """An argument is of another type than is expected; the text names it."""


class ArgumentValueError(Error, ValueError):
    """An argument has another value than is expected; the text names it."""
