"""Whatever the parameters of a chip are, a run ends: with a result, or with one line that says why.

Every parameter at the smallest and the largest value that the schema takes; rates, latencies and
trip counts with which a step would last longer than can be simulated.
"""

import json
import pathlib

import pytest

from tests.tools.command_line import SLICE, example

SCHEMA = pathlib.Path(__file__).resolve().parents[2] / "configs" / "chips" / "schema.json"
LOOP = pathlib.Path(__file__).resolve().parents[1] / "workloads/hlo/data/data_loop.pb"
# Memory, arrays and vector units, a loop over what comes from the host; all-reduces over links and
# between slices.
PROGRAMS = {
    "chip": (("weights_from_host", SLICE), ("mlp_scan_8_layers", SLICE)),
    "ici": (("all_reduce_64mib_4x2", SLICE), ("all_reduce_64mib_4x2", "2x(v5e-2x2)")),
    "host": (("weights_from_host", SLICE), ("all_reduce_64mib_4x2", "2x(v5e-2x2)")),
}
TOO_LONG = "the step takes more than 30 days, the longest that is simulated"


def ranges() -> dict[str, tuple[float, float]]:
    """The smallest and the largest value of every number, by its path."""
    schema = json.loads(SCHEMA.read_text())
    found = {}

    def walk(node: dict, path: str) -> None:
        for name, child in node.get("properties", {}).items():
            if "$ref" in child:
                number = schema["$defs"][child["$ref"].split("/")[-1]]["anyOf"][1]
                found[f"{path}{name}"] = (number["minimum"], number["maximum"])
            else:
                walk(child, f"{path}{name}.")

    for part in PROGRAMS:
        walk(schema["properties"][part], f"{part}.")
    return found


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "setting" not in metafunc.fixturenames or "program" not in metafunc.fixturenames:
        return
    whole = metafunc.config.getoption("--long")
    cases = []
    for number, (path, (low, high)) in enumerate(sorted(ranges().items())):
        programs = PROGRAMS[path.split(".")[0]]
        # One of the programs, the other for the next parameter.
        for program in programs if whole else programs[number % 2 :][:1]:
            cases += [(f"{path}={value:.15g}", program) for value in (low, high)]
    metafunc.parametrize(("setting", "program"), cases)


def test_every_parameter_at_its_ends(run, setting: str, program: tuple[str, str]) -> None:
    name, config = program
    done = run("--config", config, example(name), "--set", setting, "--json", "--quiet")
    if done.returncode == 0:
        assert json.loads(done.stdout)["step_time_ns"] > 0
        return
    assert done.returncode == 1, done.stderr
    assert done.stderr.startswith("tpusim: error: ")
    assert done.stderr.count("\n") == 1, done.stderr


@pytest.mark.parametrize(
    ("setting", "config", "name"),
    [
        # 64 MiB: the four halves of rings each move more than 16 MiB per link, 6e6 s at 3 B/s.
        ("chip.hbm.bytes_per_second=3", SLICE, "all_reduce_64mib_4x2"),
        ("ici.link_bytes_per_second=1", SLICE, "all_reduce_64mib_4x2"),
        ("host.dcn_bytes_per_second=1", "2x(v5e-2x2)", "all_reduce_64mib_4x2"),
        ("host.pcie_bytes_per_second=1", "2x(v5e-2x2)", "all_reduce_64mib_4x2"),
    ],
)
def test_the_parameter_that_makes_a_step_too_long_is_named(
    rejects, setting: str, config: str, name: str
) -> None:
    said = rejects("--config", config, example(name), "--set", setting)
    assert TOO_LONG in said
    parameter, value = setting.split("=")
    assert f"({parameter} = {value})" in said


@pytest.mark.parametrize("count", [10**12, 2**63 - 1])
def test_a_loop_with_too_many_passes_is_named(rejects, count: int) -> None:
    said = rejects("--quiet", "--config", "v5e-1x1", LOOP, "--trip-count", f"*={count}")
    assert TOO_LONG in said or "more than can be counted" in said
    assert "--trip-count" in said


def test_many_passes_of_a_slow_step_name_the_parameter(rejects) -> None:
    """The passes of a loop are counted, not simulated: what makes each of them long is said."""
    said = rejects(
        *("--config", SLICE, example("mlp_scan_8_layers")),
        *("--set", "chip.hbm.bytes_per_second=1"),
    )
    assert TOO_LONG in said
    assert "(chip.hbm.bytes_per_second = 1)" in said


def test_a_chip_or_a_link_is_impaired_once(rejects) -> None:
    step = ("--config", SLICE, example("all_reduce_64mib_4x2"))
    assert "--slow: chip 3 is named twice" in rejects(
        *step, "--slow", "chip=3:0.5", "--slow", "chip=3:0.8"
    )
    assert "--link: 0:x+ is named twice" in rejects(
        *step, "--link", "0:x+=0.5", "--link", "0:x+=0.8"
    )


def test_stragglers_and_weak_links_at_the_ends(report_of) -> None:
    for flags in (("--slow", "chip=0:0.001"), ("--link", "0:x+=0.001")):
        slow = report_of("all_reduce_64mib_4x2", "--config", SLICE, *flags)
        assert slow["step_time_ns"] > 0
