"""Reads the Dockerfile: its instructions, and what of the tree they copy."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]


def instructions() -> list[tuple[str, str]]:
    """Each with its arguments, in order."""
    text = re.sub(r"^#.*\n", "", (ROOT / "Dockerfile").read_text(), flags=re.MULTILINE)
    lines = re.sub(r"\\\n\s*", "", text).splitlines()
    return [
        (name, rest.strip()) for name, _, rest in (line.partition(" ") for line in lines if line)
    ]


def copied() -> list[str]:
    """Files and folders of the tree that get into an image."""
    copies = [rest.split() for name, rest in instructions() if name == "COPY"]
    return [source for words in copies if words[0][:2] != "--" for source in words[:-1]]
