"""`tpusim check`: reports against limits and baselines, with exit codes for CI."""

import json
import pathlib
import subprocess

import pytest

from tests.tools.command_line import SLICE, example

PSUM = example("psum")


@pytest.fixture
def report(run, tmp_path: pathlib.Path) -> dict:
    """Writes the report of a step of 14.16 us with a peak of 512 KiB to r.json."""
    assert run(PSUM, "--config", SLICE, "--report", "r.json", "--quiet").returncode == 0
    return json.loads((tmp_path / "r.json").read_text())


def changed(path: pathlib.Path, report: dict, **fields: object) -> str:
    path.write_text(json.dumps(report | fields))
    return str(path)


def test_limits(run, report: dict):
    done = run("check", "r.json", "--max-step", "16us", "--max-peak", "1MiB", "--min-mfu", "0%")
    assert (done.returncode, done.stderr) == (0, "")
    assert "psum on v5e-4x2  ok   15.81 us  at most 16.00 us   step time" in done.stdout
    assert "3 of 3 limits of 1 steps hold" in done.stdout
    for limit, what in (
        (("--max-step", "15us"), "step time 15.81 us, at most 15.00 us"),
        (("--max-step", "0.000015s"), "step time 15.81 us, at most 15.00 us"),
        (("--max-peak", "500KiB"), "peak HBM 512.0 KiB, at most 500.0 KiB"),
        (("--min-mfu", "0.4"), "MFU 0.0%, at least 40.0%"),
    ):
        broken = run("check", "r.json", *limit)
        assert broken.returncode == 3
        assert broken.stderr == f"tpusim: error: psum on v5e-4x2: {what}\n"
        assert "BROKEN" in broken.stdout
    # The step is exactly as long as the limit.
    exactly = f"{report['step_time_ns']}ns"
    assert run("check", "r.json", "--max-step", exactly).returncode == 0


def test_baseline(run, report: dict, tmp_path: pathlib.Path):
    step = report["step_time_ns"]
    old = tmp_path / "old.json"
    for before, options, code in (
        (step, (), 0),
        (step / 1.004, (), 0),  # 0.4 % longer now
        (step / 1.006, (), 3),
        (step / 1.006, ("--tolerance", "1%"), 0),
        (step / 1.006, ("--tolerance", "0.01"), 0),
        (step / 1.0001, ("--tolerance", "0"), 3),
        (step * 1.2, (), 0),  # shorter
        (step * 1.2, ("--two-sided",), 3),
        (step * 1.004, ("--two-sided",), 0),
    ):
        changed(old, report, step_time_ns=before)
        done = run("check", "r.json", "--baseline", "old.json", *options)
        assert done.returncode == code, (before / step, options, done.stdout)
    # More memory is a change, too.
    changed(old, report, peak_hbm_bytes=report["peak_hbm_bytes"] * 100 // 101)
    done = run("check", "r.json", "--baseline", "old.json")
    assert done.returncode == 3
    assert "peak HBM against baseline 512.0 KiB, up to 0.5% of 506.9 KiB" in done.stderr


def test_what_the_baseline_does_not_have(run, report: dict, tmp_path: pathlib.Path):
    changed(tmp_path / "old.json", report, config="v5e-2x4")
    done = run("check", "r.json", "--baseline", "old.json")
    assert done.returncode == 3
    assert "psum on v5e-4x2: old.json has no such step" in done.stderr
    assert "1 could not be compared" in done.stdout


def test_reports_of_other_versions(run, report: dict, tmp_path: pathlib.Path):
    """A report from before outputs said what made them."""
    for key in ("tpusim_version", "command_line", "error_bar", "rollup"):
        del report[key]
    changed(tmp_path / "old.json", report, more={"new": 1})
    assert run("check", "r.json", "--baseline", "old.json").returncode == 0


def test_several_steps(run, tmp_path: pathlib.Path):
    """Checks a comparison of several steps against a file."""
    both = ("compare", PSUM, example("all_gather"), "--report", "both.json", "--quiet")
    assert run(*both).returncode == 0
    assert run("check", "both.json", "--write-baseline", "steps.json").returncode == 0
    steps = json.loads((tmp_path / "steps.json").read_text())["steps"]
    assert [step["workload"] for step in steps] == ["all_gather", "psum"]
    assert run("check", "both.json", "--baseline", "steps.json").returncode == 0
    # Twice the launches: both are longer.
    slower = ("--set", "ici.launch_ns=20000")
    run(*both, *slower)
    done = run("check", "both.json", "--baseline", "steps.json", "--json")
    assert done.returncode == 3
    answer = json.loads(done.stdout)
    assert not answer["holds"]
    assert [step["holds"] for step in answer["steps"]] == [False, False]
    limits = answer["steps"][0]["limits"]
    assert [limit["holds"] for limit in limits] == [False, True]
    assert limits[0]["unit"] == "ns"
    assert limits[0]["measured"] > 1.005 * limits[0]["limit"]
    assert done.stderr.endswith("; and 1 more step\n")
    quiet = run("check", "both.json", "--baseline", "steps.json", "--quiet")
    assert (quiet.returncode, quiet.stdout) == (3, "")


def test_what_does_not_fit_breaks_limits(run, tmp_path: pathlib.Path):
    small = ("--set", "chip.hbm.bytes=270MiB")
    big = example("local_matmul_int32")
    run("compare", "-c", SLICE, big, PSUM, *small, "--report", "both.json", "--quiet")
    done = run("check", "both.json", "--max-step", "1s")
    assert done.returncode == 3
    assert "local_matmul_int32 on v5e-4x2: " in done.stderr
    assert run("check", "both.json", "--write-baseline", "steps.json").returncode == 1
    assert not (tmp_path / "steps.json").exists()


def test_stdin(binary: str, run):
    report = run(PSUM, "--config", SLICE, "--json").stdout
    for limit, code in (("16us", 0), ("15us", 3)):
        done = subprocess.run(
            [binary, "check", "-", "--max-step", limit],
            input=report,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code


def test_bad_files(rejects, report: dict, tmp_path: pathlib.Path):
    del report
    limit = ("--max-step", "1s")
    assert "no.json: cannot be read: No such file" in rejects("check", "no.json", *limit)
    for text in ("", "{", "[]", '"x"', "{}", '{"schema": "tpusim.fit/1"}', '{"schema": 1}'):
        (tmp_path / "bad.json").write_text(text)
        assert "bad.json: no report of" in rejects("check", "bad.json", *limit)
        assert "bad.json: no report of" in rejects("check", "r.json", "--baseline", "bad.json")
    for text in ('"step_time_ns": "1"', '"step_time_ns": 1', '"step_time_ns": 1, "workload": 2'):
        (tmp_path / "bad.json").write_text(f'{{"schema": "tpusim.report/1", {text}}}')
        assert "bad.json: no report of" in rejects("check", "bad.json", *limit)
    assert 'two reports have the name "psum on v5e-4x2"' in rejects(
        "check", "r.json", "r.json", *limit
    )
    assert "is the report itself" in rejects("check", "r.json", "--write-baseline", "r.json")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("step_time_ns", -5),
        ("step_time_ns", 0),
        ("step_time_ns", 1e300),
        ("peak_hbm_bytes", -1),
        ("peak_hbm_bytes", 1e30),
        ("mfu", -0.5),
    ],
)
def test_figures_that_no_step_has(rejects, report: dict, tmp_path: pathlib.Path, key, value):
    changed(tmp_path / "bad.json", report, **{key: value})
    for arguments in (("bad.json", "--max-step", "1s"), ("r.json", "--baseline", "bad.json")):
        said = rejects("check", *arguments)
        assert "bad.json: no report of" in said
        assert f"no step of a report: {key} is {value:g}" in said


@pytest.mark.parametrize(
    "arguments",
    [
        ("check",),
        ("check", "r.json"),
        ("check", "r.json", "--max-step", "62"),
        ("check", "r.json", "--max-step", "62GiB"),
        ("check", "r.json", "--max-step", "-1ms"),
        ("check", "r.json", "--max-step", "0ms"),
        ("check", "r.json", "--max-step", "2x"),
        ("check", "r.json", "--max-peak", "5ms"),
        ("check", "r.json", "--max-peak", "nan"),
        ("check", "r.json", "--min-mfu", "140%"),
        ("check", "r.json", "--baseline", "a", "--tolerance", "0.5 percent"),
        ("check", "r.json", "--baseline", "a", "--tolerance", "nan"),
        ("check", "r.json", "--max-step", "1ms", "--tolerance", "1%"),
        ("check", "r.json", "--max-step", "1ms", "--two-sided"),
        ("check", "r.json", "--max-step", ""),
    ],
)
def test_usage(rejects, arguments: tuple[str, ...]):
    rejects(*arguments, code=2)
