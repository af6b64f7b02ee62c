"""Writes the outputs that documents show anew.

    python -m tests.docs.update [FILE.md ...]

Without files: of all documents; that of the TPU compiler only where its wheel is installed. Read
what changed (git diff) and whether the text around it is still true.
"""

import os
import pathlib
import sys
import tempfile

from tests.docs.running import (
    HAS_COMPILER,
    OF_THE_COMPILER,
    ROOT,
    Output,
    Result,
    SnippetError,
    run_document,
)


def update(path: pathlib.Path, outputs: list[Output]) -> int:
    """Replaces what is stale; returns how much that is."""
    lines = path.read_text().splitlines()
    stale = [output for output in outputs if output.stale]
    for output in sorted(stale, key=lambda output: -output.line):
        first = output.line - 1
        shown = len("\n".join(output.shown).rstrip("\n").split("\n"))
        real = "\n".join(output.real).rstrip().split("\n")
        lines[first : first + shown] = [(output.indent + line).rstrip() for line in real]
    path.write_text("\n".join(lines) + "\n")
    return len(stale)


def main() -> int:
    """Exit code 1: a block failed."""
    binary = str(pathlib.Path(os.environ.get("TPUSIM_BINARY", ROOT / "build/tpusim")).absolute())
    given = [pathlib.Path(name).absolute() for name in sys.argv[1:]]
    code = 0
    for path in given or [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]:
        if path.name in OF_THE_COMPILER and not HAS_COMPILER:
            print(f"{path}: left as it is: no libtpu in this Python")
            continue
        result = Result()
        with tempfile.TemporaryDirectory() as folder:
            try:
                run_document(path, pathlib.Path(folder), binary, result)
            except SnippetError as error:
                print(f"{path}: {error}", file=sys.stderr)
                code = 1
        print(f"{path}: {update(path, result.outputs)} of {len(result.outputs)} outputs written")
    return code


if __name__ == "__main__":
    sys.exit(main())
