"""A Python session for the blocks of a document, one after the other, as if pasted into a file.

Reads a JSON string per line, a block; answers with {"printed", "error"} per line. What was run is
in the file named on the command line, so that lines of errors, and of operations in reports, are
those of the blocks put together.
"""

import contextlib
import io
import json
import linecache
import pathlib
import sys
import traceback


def main() -> None:
    """Until stdin ends."""
    script = pathlib.Path(sys.argv[1]).absolute()
    script.write_text("")
    answers = sys.stdout
    names = {"__name__": "__main__", "__file__": str(script)}
    sys.path.insert(0, str(script.parent))
    done = ""
    for line in sys.stdin:
        block = json.loads(line)
        empty = "\n" * done.count("\n")
        done += block.rstrip("\n") + "\n\n"
        script.write_text(done)
        linecache.checkcache(str(script))
        printed, error = io.StringIO(), ""
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            try:
                exec(compile(empty + block, script, "exec"), names)
            except BaseException:
                error = traceback.format_exc()
        answers.write(json.dumps({"printed": printed.getvalue(), "error": error}) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
