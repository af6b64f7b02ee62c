"""`tpusim.simulate` and the `Report` it returns."""

import dataclasses
import decimal
import json
import re
import typing

import jax
import jax.numpy as jnp
import pytest
import tpusim
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P
from tpusim import records
from tpusim.quantities import flops, shares, size, time

from tests.tools.command_line import SLICE, example, without_command


def step(a: jax.Array, w: jax.Array) -> jax.Array:
    return a @ w


def arguments() -> tuple[jax.ShapeDtypeStruct, jax.ShapeDtypeStruct]:
    mesh = AbstractMesh((2, 4), ("x", "y"), (AxisType.Auto,) * 2)

    def array(shape, *axes):
        return jax.ShapeDtypeStruct(shape, jnp.bfloat16, sharding=NamedSharding(mesh, P(*axes)))

    return array((1024, 2048), "x", "y"), array((2048, 8192), None, "y")


@pytest.fixture(scope="module")
def report() -> tpusim.Report:
    return tpusim.simulate(step, *arguments(), config=SLICE)


def keys_without_a_field(of: typing.Any, value: typing.Any, path: str) -> list[str]:
    """Returns the keys of the JSON without a field in the classes, at any depth."""
    if typing.get_origin(of) is tuple:
        element = typing.get_args(of)[0]
        return [p for v in value for p in keys_without_a_field(element, v, f"{path}[]")]
    if not dataclasses.is_dataclass(of):
        return []
    known = records.keys_of(of)
    return [
        p
        for key, v in value.items()
        for p in (
            keys_without_a_field(known[key][1], v, f"{path}.{key}")
            if key in known
            else [f"{path}.{key}"]
        )
    ]


# Between them they have rows of every kind: CMEM, several reasons, owners, folding steps.
@pytest.mark.parametrize(
    ("name", "config", "options"),
    [
        ("allgather_matmul_int32", "v4-2x2x2", []),
        ("data_parallel_layers_large", "v7x-2x2x2", ["--slow", "chip=1:0.5"]),
    ],
)
def test_every_field_of_a_report_is_typed(name: str, config: str, options: list[str]):
    report = tpusim.simulate(example(name), config=config, options=options)
    written = json.loads(report.text)
    assert sorted(set(keys_without_a_field(tpusim.Report, written, "report"))) == []
    # And the other way round: no field is one that reports have not.
    top = {key for key in records.keys_of(tpusim.Report) if not key.endswith("cmem_bytes")}
    assert top <= written.keys()
    assert ("usable_cmem_bytes" in written) == (report.usable_cmem_bytes > 0)


def test_decisions_are_read_back():
    report = tpusim.simulate(example("mlp_two_layers"), options=["--explain", "fusion"])
    first = next(d for d in report.decision_records if d.reason == "fusion.inlined")
    assert (first.action, first.pass_) == ("changed", "fusion")
    assert first.text.startswith(f"{first.subject} is computed in {first.values['readers']}")
    assert first.values["less_us"] > 0
    assumed = [d.text for d in report.decision_records if d.action == "assumed"]
    assert assumed == list(report.assumptions)


def test_fields_are_those_of_the_report(report: tpusim.Report):
    written = json.loads(report.text)
    assert report.workload == "step"
    assert report.config == SLICE
    assert report.step_time_ns == written["step_time_ns"]
    assert report.bound_ns.ici == written["bound_ns"]["ici"] > 0
    assert [op.name for op in report.op_records] == [op["name"] for op in written["ops"]]
    # The product on eight devices, and the additions of its parts (no more than a tenth of it).
    product = 2 * 1024 * 2048 * 8192 // 8
    assert product <= report.flops < 1.1 * product
    # v5e, as published; the utilization is against that.
    assert report.peak_flops_per_second == 197e12
    assert report.hbm_bytes_per_second == 819e9
    used = report.flops / (report.step_time_ns * 1e-9)
    assert report.hfu == pytest.approx(used / 197e12, rel=1e-6)
    assert repr(report).startswith("<tpusim.Report step on v5e-4x2: step ")


def test_a_file_and_a_workload_give_the_same(report: tpusim.Report, tmp_path):
    workload = tpusim.export(step, *arguments(), path=tmp_path / "step.pb", config=SLICE)
    assert tpusim.simulate(tmp_path / "step.pb", config=SLICE) == report
    assert tpusim.simulate(workload, config=SLICE).text == report.text
    # The slice that was named while exporting.
    assert tpusim.simulate(workload).step_time_ns == report.step_time_ns


def test_options_reach_the_simulator(report: tpusim.Report):
    slow = tpusim.simulate(
        step, *arguments(), config=SLICE, settings={"chip.clock_hz": 0.75e9}, algorithm="best"
    )
    assert slow.step_time_ns > report.step_time_ns
    order = [0, 1, 2, 3, 4, 5, 7, 6]
    moved = tpusim.simulate(step, *arguments(), config=SLICE, device_order=order, fold="off")
    assert moved.chip_classes == 8


def test_keyword_arguments_and_counts_of_loops():
    def loop(x, *, most):
        return jax.lax.while_loop(lambda c: c[0] < most, lambda c: (c[0] + 1, c[1] * 2), (0, x))[1]

    given = {"most": jax.ShapeDtypeStruct((), jnp.int32)}
    x = jax.ShapeDtypeStruct((1 << 20,), jnp.float32)
    steps = [
        tpusim.simulate(
            loop, x, keyword_arguments=given, config="v5e-1x1", trip_counts={"*": n}
        ).step_time_ns
        for n in (2, 4)
    ]
    assert 1.5 < steps[1] / steps[0] < 2.5
    with pytest.raises(tpusim.Error, match="--trip-count"):
        tpusim.simulate(loop, x, keyword_arguments=given, config="v5e-1x1")


def test_errors_have_the_text_of_the_terminal(run, tmp_path, monkeypatch):
    said = run("run", "no.pb", "--config", SLICE).stderr.strip()
    assert said.startswith("tpusim: error: no.pb")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(tpusim.Error) as raised:
        tpusim.simulate("no.pb", config=SLICE)
    assert str(raised.value) == said
    with pytest.raises(tpusim.Error, match="nothing"):
        tpusim.simulate(example("psum"), config="nothing-4x2")


def test_what_only_functions_take_is_an_error_with_a_file():
    with pytest.raises(TypeError, match="arguments, name: only with a function"):
        tpusim.simulate(example("psum"), 1, name="x")
    with pytest.raises(TypeError, match="remote_bytes: only with a function"):
        tpusim.simulate(example("psum"), kernel_costs={"k": {"remote_bytes": 1}})


def test_save_and_load(report: tpusim.Report, run, tmp_path):
    report.save(tmp_path / "r.json", trace=tmp_path / "t.pftrace")
    assert tpusim.Report.load(tmp_path / "r.json") == report
    # The same as from a shell.
    tpusim.export(step, *arguments(), path=tmp_path / "step.pb", config=SLICE)
    run("step.pb", "--config", SLICE, "--report", "shell.json", "--trace", "shell.pftrace")
    ours, shell = (json.loads((tmp_path / name).read_text()) for name in ("r.json", "shell.json"))
    assert without_command(ours) == without_command(shell)
    # A program in memory has no path, least of all that of a file that is gone.
    assert ours["command_line"] == ["tpusim", "run", f"--config={SLICE}", "workload.pb"]
    assert shell["command_line"] == ["tpusim", "run", f"--config={SLICE}", "step.pb"]
    assert (tmp_path / "t.pftrace").read_bytes() == (tmp_path / "shell.pftrace").read_bytes()
    assert sorted(p.name for p in tmp_path.iterdir() if p.name.startswith(".")) == []


def test_a_loaded_report_has_no_trace(report: tpusim.Report, tmp_path):
    report.save(tmp_path / "r.json")
    loaded = tpusim.Report.load(tmp_path / "r.json")
    with pytest.raises(tpusim.Error, match="a trace needs the program"):
        loaded.save(tmp_path / "r2.json", trace=tmp_path / "t.pftrace")
    (tmp_path / "other.json").write_text('{"schema": "other"}')
    with pytest.raises(tpusim.Error, match=r"schema is not tpusim\.report/1"):
        tpusim.Report.load(tmp_path / "other.json")


def test_a_program_that_changed_has_no_trace(tmp_path):
    path = tmp_path / "w.pb"
    path.write_bytes(example("psum").read_bytes())
    report = tpusim.simulate(path, config=SLICE)
    path.write_bytes(example("all_gather").read_bytes())
    with pytest.raises(tpusim.Error, match="not the program any more"):
        report.save(tmp_path / "r.json", trace=tmp_path / "t.pftrace")
    assert not (tmp_path / "t.pftrace").exists()


def test_timeline_is_that_of_the_report(report: tpusim.Report):
    tracks = {t.name: t for t in report.timeline().first_device()}
    (whole,) = tracks["Steps"].slices
    # Perfetto counts whole nanoseconds.
    assert (whole.start_ns, whole.end_ns) == (0, int(report.step_time_ns))
    longest = next(op for op in report.op_records if op.engine == "tensor_core")
    busy = [s.end_ns - s.start_ns for s in tracks["TensorCore"].slices if s.name == longest.name]
    assert len(busy) == longest.count
    assert sum(busy) == pytest.approx(longest.total_ns, abs=1 + longest.count)
    # Arguments and results may not all be live at once, but holes count only in the peak.
    most = max(value for _, value in tracks["Live HBM"].samples)
    holes = report.memory_at_peak.fragmentation_bytes
    assert most == pytest.approx(report.peak_hbm_bytes - holes, rel=1e-9)


def test_a_notebook_shows_the_figures(report: tpusim.Report):
    page = report._repr_html_()
    assert time(report.step_time_ns) in page
    assert report.rollup.op[0].name in page
    assert report.collective_records[0].name in page
    hostile = dataclasses.replace(report, workload="<script>", warnings=("a < b",))
    assert "<script>" not in hostile._repr_html_()
    assert "a &lt; b" in hostile._repr_html_()


def test_shares_in_a_notebook_add_up(report: tpusim.Report):
    """Shares of the table of operations, of the bar, and of the critical path add up."""
    page = report._repr_html_()
    table = page.split('<th style="text-align:left">operation</th>')[1].split("</table>")[0]
    bar = re.findall(r'title="[a-z ]+ ([\d.]+)%"', page)
    path = re.search(r"bound by</td><td[^>]*>([a-z/]+) \(([^)]*)\)", page)
    assert path is not None
    in_path = re.findall(r"(\S+) ([\d.]+)%", path[2])
    assert in_path[0][0] == path[1]  # What is named has most.
    for parts in (re.findall(r">([\d.]+)%<", table), bar, [share for _, share in in_path]):
        assert len(parts) > 1
        assert sum(decimal.Decimal(share) for share in parts) == 100


def test_shares_add_up():
    assert shares([1, 1, 1]) == ["33.4%", "33.3%", "33.3%"]
    assert shares([2, 1, 0]) == ["66.7%", "33.3%", "0.0%"]
    assert shares([0, 0]) == ["0.0%", "0.0%"]


def test_quantities():
    assert time(309_600.0) == "309.6 us"
    assert time(0) == "0 ns"
    assert size(16_911_433_728) == "15.75 GiB"
    assert flops(4_294_967_296) == "4.295 GFLOP"
