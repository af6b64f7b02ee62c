"""Plots of reports; they need matplotlib."""

import pathlib
import sys

import pytest
import tpusim

from tests.tools.command_line import SLICE, example


@pytest.fixture(scope="module")
def report() -> tpusim.Report:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    return tpusim.simulate(example("allgather_matmul_int32"), config=SLICE)


def test_timeline_has_a_row_for_each_track(report: tpusim.Report, tmp_path: pathlib.Path):
    axes = report.plot_timeline()
    rows = [label.get_text() for label in axes.get_yticklabels()]
    assert {"TensorCore", "MXU", "Collectives", "HBM DMA"} <= set(rows)
    # In microseconds, the whole step.
    assert axes.get_xlim() == (0, pytest.approx(report.step_time_ns / 1e3))
    assert len(rows) == len(set(rows))
    assert "convolution fusion" in axes.get_legend_handles_labels()[1]
    axes.figure.savefig(tmp_path / "timeline.png")
    assert (tmp_path / "timeline.png").stat().st_size > 1000


def test_roofline_has_a_point_for_each_operation(report: tpusim.Report):
    axes = report.plot_roofline()
    points = [tuple(p) for c in axes.collections for p in c.get_offsets()]
    op = report.op_records[0]
    assert (op.flops / op.hbm_bytes, op.flops / op.total_ns * 1e9) in [
        pytest.approx(p) for p in points
    ]
    # Both ceilings meet at peak / bandwidth.
    (slope, roof) = axes.get_lines()
    assert slope.get_xydata()[-1] == pytest.approx(roof.get_xydata()[0])
    assert roof.get_xydata()[0] == pytest.approx((197e12 / 819e9, 197e12))


def test_memory_reaches_the_peak(report: tpusim.Report):
    axes = report.plot_memory()
    (line,) = axes.get_lines()
    owners = sum(bar.get_height() for bar in axes.patches)
    holes = report.memory_at_peak.fragmentation_bytes / 2**20
    peak = report.peak_hbm_bytes / 2**20
    assert max(line.get_ydata()) == pytest.approx(peak - holes)
    assert owners == pytest.approx(peak - holes)


def test_into_given_axes(report: tpusim.Report):
    from matplotlib import figure

    axes = figure.Figure().subplots()
    assert report.plot_roofline(axes=axes) is axes


def test_without_matplotlib_an_error_says_what_to_install(report: tpusim.Report, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(tpusim.Error, match="needs matplotlib: pip install matplotlib"):
        report.plot_roofline()
