"""Several slices: `--config "2x(v5e-2x2)"`, from the command line to the report."""

import pytest

from tests.tools.command_line import example


def test_a_collective_between_slices_is_bound_by_their_network(report_of):
    one = report_of("all_reduce_64mib_4x2", "--config", "v5e-4x2")
    two = report_of("all_reduce_64mib_4x2", "--config", "2x(v5e-2x2)")
    assert one["bound_ns"]["dcn"] == 0
    assert (two["config"], two["chips"]) == ("2x(v5e-2x2)", 8)
    # Each slice has to receive the sum of the other, 64 MiB over the cards of four
    # chips, 3.125e9 B/s each.
    assert two["bound_ns"]["dcn"] == pytest.approx(2**26 / (4 * 3.125e9) * 1e9, rel=1e-6)
    (collective,) = two["collectives"]
    assert collective["algorithm"] == "2-color 2-D line 2x2 and 2 slices"
    assert collective["total_ns"] == pytest.approx(collective["expected_ns"], rel=0.01)
    assert collective["bound_ns"] <= collective["expected_ns"]
    assert two["step_time_ns"] > one["step_time_ns"]


@pytest.mark.parametrize("workload", ["all_to_all", "language_model_train_fully_sharded"])
def test_folded_slices_equal_all_chips(report_of, workload):
    folded = report_of(workload, "--config", "2x(v5e-2x2)")
    alone = report_of(workload, "--config", "2x(v5e-2x2)", "--fold=off")
    assert folded["step_time_ns"] == pytest.approx(alone["step_time_ns"], rel=1e-9)
    assert folded["chip_classes"] < alone["chip_classes"] == 8


def test_a_program_that_fits_into_one_slice_stays_there(report_of):
    small = report_of("all_reduce_64mib_4x2", "--config", "2x(v5e-4x2)")
    assert small["bound_ns"]["dcn"] == 0
    assert (
        small["step_time_ns"]
        == report_of("all_reduce_64mib_4x2", "--config", "v5e-4x2")["step_time_ns"]
    )


def test_several_slices_from_a_file(report_of, tmp_path):
    file = tmp_path / "two.json"
    file.write_text('{"chip": "v5e", "slice": "2x2", "slices": 2}')
    assert report_of("all_reduce_64mib_4x2", "--config", file)["config"] == "2x(v5e-2x2)"


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ("2(v5e-2x2)", "several slices are written as 2x(v5e-16x16)"),
        ("3x(v5e-2x2)", "cannot be divided among the 3 slices"),
        ("2x(v5e-3x2)", "v5e has no slice 3x2"),
    ],
)
def test_what_cannot_be_is_refused(rejects, config, says):
    assert says in rejects(example("all_reduce_64mib_4x2"), "--config", config)
