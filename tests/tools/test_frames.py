"""Tables of reports; they need pandas."""

import sys

import pytest
import tpusim
from tpusim import optional

from tests.tools.command_line import SLICE, example


@pytest.fixture(scope="module")
def report() -> tpusim.Report:
    return tpusim.simulate(example("allgather_matmul_int32"), config=SLICE)


def test_tables_have_a_row_for_each_record(report: tpusim.Report):
    pytest.importorskip("pandas")
    assert list(report.ops.name) == [op.name for op in report.op_records]
    assert report.ops.total_ns.sum() == sum(op.total_ns for op in report.op_records)
    top = report.ops.iloc[0]
    assert top.share_of_step == pytest.approx(report.op_records[0].total_ns / report.step_time_ns)
    assert list(report.scopes.scope) == [s.scope for s in report.scope_records]
    assert list(report.collectives.exposed_by) == ["synchronous"]
    assert report.memory.bytes.sum() == sum(a.bytes for a in report.memory_at_peak.arrays)
    assert report.memory.share_of_peak.sum() <= 1
    # Two links in x and one in y of each chip of a 4x2 that does not wrap, at most.
    assert set(report.links.chip) == set(range(8))


def test_where_adds_up_to_the_step(report: tpusim.Report):
    pytest.importorskip("pandas")
    for by in ("op", "scope", "source", "category", "collective"):
        assert report.where(by).time_ns.sum() == pytest.approx(report.step_time_ns)
    with pytest.raises(tpusim.Error, match="choose one of op, scope"):
        report.where("layer")


def test_tables_without_rows_have_columns():
    pytest.importorskip("pandas")
    alone = tpusim.simulate(example("elementwise"), config=SLICE)
    assert len(alone.collectives) == 0
    assert "exposed_ns" in alone.collectives.columns


def test_compare(report: tpusim.Report):
    pytest.importorskip("pandas")
    other = tpusim.simulate(example("collective_matmul_int32"), config=SLICE)
    table = tpusim.compare({"A": report, "B": other})
    assert list(table.index) == ["A", "B"]
    assert table.loc["B", "slowdown"] == 1.0
    assert table.loc["A", "slowdown"] == report.step_time_ns / other.step_time_ns
    parts = table.exposed_communication_ns + table.other_ns
    assert list(parts) == pytest.approx(list(table.step_time_ns))
    name = "allgather_matmul_int32 on v5e-4x2"
    assert list(tpusim.compare([report, report]).index) == [name, f"{name} (2)"]
    with pytest.raises(tpusim.Error, match="no reports"):
        tpusim.compare([])


def test_without_pandas_an_error_says_what_to_install(report: tpusim.Report, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    for table in ("ops", "collectives", "scopes", "memory", "links"):
        with pytest.raises(tpusim.Error, match="needs pandas: pip install pandas"):
            getattr(report, table)
    with pytest.raises(tpusim.Error, match="pip install pandas"):
        tpusim.compare([report])


def test_only_what_is_missing_is_named(monkeypatch):
    # Both names: a plot of an earlier test may have left the inner module behind.
    for name in ("matplotlib", "matplotlib.pyplot"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(tpusim.Error, match="a plot needs matplotlib: pip install matplotlib"):
        optional.require("matplotlib.pyplot", "a plot")
