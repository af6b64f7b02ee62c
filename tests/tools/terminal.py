"""Running the binary on a terminal of some width, as a person does."""

import os
import pty
import subprocess


def on_terminal(
    *command: object, columns: int, stated: str | None = None, errors: bool = False
) -> str:
    """Returns what a terminal of so many columns shows of stdout, or of stderr.

    `stated` is $COLUMNS, which shells set; no variable by default.
    """
    ours, theirs = pty.openpty()
    subprocess.run(["stty", "-onlcr", "cols", str(columns)], stdin=theirs, check=True)
    environment = {key: value for key, value in os.environ.items() if key != "COLUMNS"}
    if stated is not None:
        environment["COLUMNS"] = stated
    process = subprocess.Popen(
        [str(word) for word in command],
        stdout=subprocess.DEVNULL if errors else theirs,
        stderr=theirs if errors else subprocess.DEVNULL,
        env=environment,
    )
    os.close(theirs)
    text = b""
    try:
        while piece := os.read(ours, 65536):
            text += piece
    except OSError:  # The terminal is gone with the program.
        pass
    os.close(ours)
    assert process.wait() == 0, text
    return text.decode()
