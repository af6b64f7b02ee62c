"""Contracts that programs rely on: schemas, the command line inside of outputs."""

import json
import pathlib
import subprocess

import pytest
import tpusim

from tests.tools import schemas
from tests.tools.command_line import SLICE, example

ROOT = pathlib.Path(__file__).resolve().parents[2]
PSUM = example("psum")
SCHEMAS = [path.stem for path in sorted((ROOT / "tools" / "schemas").glob("*.json"))]


def produced(run, *arguments: object) -> dict:
    done = run(*arguments)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", SCHEMAS)
def test_schemas_are_strict(binary: str, run, name: str):
    """They say of every object which keys it has, and of a const which output it is."""
    schema = json.loads(run("schema", name).stdout)
    assert schemas.validator(binary, name)
    assert schema["$id"] == f"urn:tpusim:{name}:1"
    assert schema["properties"]["schema"]["const"] == f"tpusim.{name}/1"

    def objects(part: object):
        if isinstance(part, dict):
            if part.get("type") == "object":
                yield part
            for inner in part.values():
                yield from objects(inner)
        elif isinstance(part, list):
            for inner in part:
                yield from objects(inner)

    for part in objects(schema):
        assert "additionalProperties" in part
        assert set(part.get("required", [])) <= set(part.get("properties", {}))


def test_schemas_are_listed(run):
    listed = [line.split()[0] for line in run("schema").stdout.splitlines()[1:]]
    assert listed == SCHEMAS


def test_what_is_wrong_is_found(binary: str, run):
    """A schema that lets everything through would let these through, too."""
    report = produced(run, PSUM, "--json")
    check = schemas.validator(binary, "report")
    assert check.is_valid(report)
    for key in report:
        assert not check.is_valid({k: v for k, v in report.items() if k != key}), key
    assert not check.is_valid(report | {"more": 1})
    assert not check.is_valid(report | {"step_time_ns": "14 us"})
    assert not check.is_valid(report | {"step_time_ns": -1})
    report["ops"][0]["engine"] = "gpu"
    assert not check.is_valid(report)


def test_a_comparison_contains_the_schema_of_reports(binary: str, run):
    compared = produced(run, "compare", PSUM, example("all_gather"), "--json")
    check = schemas.validator(binary, "compare")
    assert check.is_valid(compared)
    del compared["compared"][0]["report"]["rollup"]
    assert not check.is_valid(compared)


def test_other_files(binary: str, run, tmp_path: pathlib.Path):
    run(PSUM, "--trace", "t", "--trace-totals", "totals.json")
    assert schemas.validator(binary, "trace_totals").is_valid(
        json.loads((tmp_path / "totals.json").read_text())
    )
    measurements = json.loads((ROOT / "validation" / "measurements.json").read_text())
    assert schemas.validator(binary, "measurements").is_valid(measurements)
    too_much = produced(run, "advise", PSUM, "--set", "chip.hbm.bytes=270MiB", "--json")
    assert too_much["schema"] in ("tpusim.advise/1", "tpusim.advise-memory/1")


def test_the_command_line_makes_the_output_again(binary: str, run, tmp_path: pathlib.Path):
    """One form for all spellings: options by their long names, then arguments."""
    expected = [
        *("tpusim", "run", f"--config={SLICE}", "--trip-count=*=4", "--set=ici.launch_ns=9"),
        *("--set=chip.clock_hz=2x", "--fold=off", str(PSUM)),
    ]
    first = run(
        *("--fold", "off", PSUM, "--set", "ici.launch_ns=9", "--set=chip.clock_hz=2x"),
        *("-c", SLICE, "--trip-count=*=4", "--report", "r.json", "--html", "p.html", "--quiet"),
    )
    assert first.returncode == 0, first.stderr
    report = json.loads((tmp_path / "r.json").read_text())
    assert sorted(report["command_line"]) == sorted(expected)
    assert report["command_line"][-1] == str(PSUM)
    again = subprocess.run(
        [binary, *report["command_line"][1:], "--json"], capture_output=True, text=True, check=True
    )
    assert again.stdout == (tmp_path / "r.json").read_text()


def test_every_output_says_what_made_it(run):
    version = run("version").stdout.split()[1]
    for arguments in (
        ("run", PSUM, "--config", SLICE),
        ("compile", PSUM, "--emit", "partitioned"),
        ("compare", PSUM, example("all_gather")),
        ("fit", PSUM, "--chip", "v5e"),
        ("configs", "v5e"),
        ("collective", "all-reduce", "1MiB", SLICE),
        ("advise", PSUM),
    ):
        output = produced(run, *arguments, "--json")
        assert list(output)[:3] == ["schema", "tpusim_version", "command_line"]
        assert output["tpusim_version"] == version
        assert output["command_line"][:2] == ["tpusim", arguments[0]]
        assert "--json" not in output["command_line"]
        assert str(arguments[1]) in output["command_line"]


def test_bytes_that_are_no_text(binary: str, tmp_path: pathlib.Path):
    """A path may hold any bytes, and JSON may not."""
    path = bytes(tmp_path) + b"/\xff.pb"
    pathlib.Path(path.decode(errors="surrogateescape")).write_bytes(PSUM.read_bytes())
    done = subprocess.run(
        [binary.encode(), b"run", path, b"--json"], capture_output=True, check=True
    )
    assert json.loads(done.stdout)["command_line"][-1].endswith("/\ufffd.pb")


def test_python_knows_who_made_a_report(run):
    report = tpusim.simulate(PSUM, config=SLICE)
    assert report.command_line == ("tpusim", "run", f"--config={SLICE}", str(PSUM))
    assert report.tpusim_version == run("version").stdout.split()[1]
    # The same step is the same, however it was asked for.
    assert report == tpusim.simulate(PSUM, config=SLICE, fold="on", options=["--quiet"])


def test_versions_agree(run):
    """Versions of the binary, of the package, and of what pip installs are equal."""
    version = run("version").stdout.split()[1]
    assert tpusim.__version__ == version
    assert f'version = "{version}"' in (ROOT / "pyproject.toml").read_text()
