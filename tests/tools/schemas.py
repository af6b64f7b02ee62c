"""Outputs against the schemas that `tpusim schema` prints."""

import functools
import itertools
import json
import pathlib
import subprocess
from typing import Any

import jsonschema

# Lists are checked at both ends: a pod has a hundred thousand links.
_MOST = 60
# Options whose file is an output of a schema.
_FILES = ("--report", "--trace-totals", "--write-baseline")


@functools.cache
def validator(binary: str, name: str) -> jsonschema.protocols.Validator:
    """Returns the validator of the schema of this name."""
    done = subprocess.run([binary, "schema", name], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    schema = json.loads(done.stdout)
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def check(binary: str, text: str) -> None:
    """Asserts that an output is of the schema that it names; what is no output of JSON passes."""
    value = _json(text)
    if not isinstance(value, dict) or not str(value.get("schema", "")).startswith("tpusim."):
        return
    name, version = value["schema"].removeprefix("tpusim.").split("/")
    assert version == "1"
    errors = validator(binary, name).iter_errors(_shortened(value))
    wrong = [f"{error.json_path}: {error.message:.200}" for error in errors]
    assert not wrong, wrong[:5]


def check_run(
    binary: str, arguments: list[str], done: subprocess.CompletedProcess[str], folder: pathlib.Path
) -> None:
    """Validates every output of a run: what it printed, and the files it was asked for."""
    if done.returncode not in (0, 3):
        return
    check(binary, done.stdout)
    for option, path in itertools.pairwise(arguments):
        if option in _FILES and (file := folder / path).is_file():
            check(binary, file.read_text())


def _json(text: str) -> Any:
    if not text.startswith("{"):
        return None
    try:
        return json.loads(text)
    except ValueError:
        return None


def _shortened(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _shortened(inner) for key, inner in value.items()}
    if not isinstance(value, list):
        return value
    ends = value if len(value) <= _MOST else value[: _MOST // 2] + value[-_MOST // 2 :]
    return [_shortened(inner) for inner in ends]
