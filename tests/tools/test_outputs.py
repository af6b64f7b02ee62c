"""Outputs of a run are whole or absent, and its paths are meant."""

import pathlib
import resource
import subprocess

import pytest

from tests.tools.command_line import SLICE, example

# Smaller than each output below: the report of psum has 6 kB, its page 400 kB.
LARGEST = 1024


@pytest.mark.parametrize("output", ["--report", "--trace", "--html", "--xplane"])
def test_a_limit_of_file_sizes_leaves_nothing(
    binary: str, tmp_path: pathlib.Path, output: str
) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (LARGEST, LARGEST))

    done = subprocess.run(
        [binary, "--config", SLICE, str(example("psum")), output, "out", "--trace-chips", "all"]
        if output != "--report"
        else [binary, "--config", SLICE, str(example("psum")), output, "out"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        preexec_fn=limit,
    )
    assert done.returncode == 1, (done.returncode, done.stderr)
    assert done.stderr.startswith("tpusim: error: ")
    assert done.stderr.count("\n") == 1, done.stderr
    assert "File too large" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_profile_that_fails_leaves_what_was_there(binary: str, tmp_path: pathlib.Path) -> None:
    """Folders that the run made go again, others and their files stay."""
    kept = tmp_path / "profiles" / "plugins" / "notes.txt"
    kept.parent.mkdir(parents=True)
    kept.write_text("mine")

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (LARGEST, LARGEST))

    command = [binary, "--config", SLICE, str(example("psum")), "--xplane", "profiles"]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=tmp_path, preexec_fn=limit
    )
    assert done.returncode == 1, done.stderr
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["notes.txt", "plugins", "profiles"]
    assert kept.read_text() == "mine"


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "w.pb", "--report", ""),
        ("run", "w.pb", "--report="),
        ("run", "w.pb", "--trace", ""),
        ("run", "w.pb", "--html", ""),
        ("run", "w.pb", "--xplane", ""),
        ("run", "w.pb", "--config", ""),
        ("run", "w.pb", "--passes", ""),
        ("run", ""),
        ("compile", "w.pb", "-o", ""),
        ("opt", "m.hlo", "-o", ""),
        ("compare", "a.pb", ""),
        ("compare", "a.pb", "b.pb", "--report", ""),
        ("validate", "m.json", "--report", ""),
        ("page", "d.json", "-o", ""),
    ],
)
def test_empty_values_are_no_values(rejects, arguments: tuple[str, ...]) -> None:
    """Empty values come from a script whose variable is not set."""
    rejects(*arguments, code=2)


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "--report"),
        ("run", "--trace"),
        ("run", "--html"),
        ("compile", "-o"),
        ("compare", example("psum"), "--report"),
        ("compare", example("psum"), "--html"),
    ],
)
def test_a_folder_is_no_file(rejects, tmp_path: pathlib.Path, arguments: tuple[str, ...]) -> None:
    (tmp_path / "folder").mkdir()
    command, *more, option = arguments
    for folder in ("folder", "folder/", "new/"):
        said = rejects(command, "--config", SLICE, example("psum"), *more, option, folder)
        assert option in said
        assert "directory" in said
