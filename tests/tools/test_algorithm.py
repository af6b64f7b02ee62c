"""Algorithms of collectives: `--algorithm`."""

import pytest

from tests.tools.command_line import example


@pytest.fixture
def algorithm(report_of):
    """The algorithm of an all-reduce of 64 MiB over 4x2 chips, and what was assumed."""

    def run(*options: object) -> tuple[str, list[str]]:
        report = report_of("all_reduce_64mib_4x2", "--config", "v5e-4x2", *options)
        (collective,) = report["collectives"]
        return collective["algorithm"], report["assumptions"]

    return run


def test_default_is_the_compilers(algorithm):
    name, _ = algorithm()
    assert name == "2-color one-way Hamiltonian ring of 8 over 4x2"
    assert algorithm("--algorithm", "compiler") == algorithm()


def test_best_and_by_name(algorithm):
    assert algorithm("--algorithm", "best")[0] == "Hamiltonian ring of 8 over 4x2"
    assert algorithm("--algorithm", "rotated")[0] == "2-color 2-D line 4x2"
    assert algorithm("--algorithm", "all-reduce=rotated")[0] == "2-color 2-D line 4x2"
    assert algorithm("--algorithm", "all-gather=ring") == algorithm()


def test_an_unknown_choice_is_an_assumption(report_of):
    known = report_of("all_reduce_64mib_4x2", "--config", "v5e-4x2")["assumptions"]
    other = report_of("all_reduce_64mib_4x2", "--config", "v6e-4x2")["assumptions"]
    assert not any("choice is not known" in each for each in known)
    assert any("not known for v6e slices like 4x2" in each for each in other)


OFF_LOADED = "those that the TPU compiler off-loads are not printed; taken to go axis by axis"
SLICES = "not known for groups that span several slices; taken to go axis by axis in each slice"


def test_what_is_off_loaded_goes_axis_by_axis(report_of):
    on = ("data_parallel_layers_large", "--config", "v7x-2x2x2")
    report = report_of(*on)
    assert {row["algorithm"] for row in report["collectives"]} == {"3-color 4-D line 2x2x2x2"}
    assert any(OFF_LOADED in each for each in report["assumptions"])
    best = report_of(*on, "--algorithm", "best")
    assert not any("off-loads" in each for each in best["assumptions"])
    assert best["step_time_ns"] <= report["step_time_ns"]


def test_slices_exchange_what_is_summed_within_them(report_of):
    on = ("all_reduce_64mib_4x2", "--config", "2x(v5e-2x2)")
    report = report_of(*on)
    (collective,) = report["collectives"]
    assert collective["algorithm"] == "2-color 2-D line 2x2 and 2 slices"
    assert any(SLICES in each for each in report["assumptions"])
    best = report_of(*on, "--algorithm", "best")
    assert not any(SLICES in each for each in best["assumptions"])
    assert best["step_time_ns"] <= report["step_time_ns"]


def test_mistakes(rejects):
    on = ("--config", "v5e-4x2", example("all_reduce_64mib_4x2"), "--algorithm")
    line = rejects(*on, "ring")
    assert "all-reduce" in line
    assert "does not apply to its groups of 8 (4x2) on v5e-4x2; these do: " in line
    assert "there are compiler, best, ring" in rejects(*on, "rings", code=2)
