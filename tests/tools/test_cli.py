"""The command line: what goes in, what comes out, and what every kind of bad input is told."""

import gzip
import json
import os
import pathlib
import random
import re
import subprocess
import sys
from collections.abc import Callable

import jax
import jax.numpy as jnp
import pytest
import tpusim
from jax.sharding import PartitionSpec as P

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "workloads" / "examples"
SLICE = "v5e-4x2"

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(binary: str, tmp_path: pathlib.Path) -> Run:
    """Runs tpusim in an empty folder."""

    def run(*arguments: object) -> subprocess.CompletedProcess[str]:
        command = [binary, *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)

    return run


@pytest.fixture
def report_of(run: Run, tmp_path: pathlib.Path) -> Callable[..., dict]:
    """The report of a run that must succeed."""

    def report_of(workload: str | pathlib.Path, *options: object) -> dict:
        path = workload if isinstance(workload, pathlib.Path) else example(workload)
        done = run("run", path, "--quiet", "--report", tmp_path / "r.json", *options)
        assert done.returncode == 0, done.stderr
        return json.loads((tmp_path / "r.json").read_text())

    return report_of


@pytest.fixture
def rejects(run: Run, tmp_path: pathlib.Path) -> Callable[..., str]:
    """Asserts one line of error, exit code 1 and no file left; returns the line."""

    def rejects(*arguments: object, code: int = 1) -> str:
        before = sorted(tmp_path.rglob("*"))
        done = run(*arguments)
        assert done.returncode == code, (done.returncode, done.stderr)
        assert done.stdout == ""
        assert done.stderr.startswith("tpusim: error: "), done.stderr
        assert done.stderr.count("\n") == 1, done.stderr
        assert done.stderr.endswith("\n")
        assert sorted(tmp_path.rglob("*")) == before
        return done.stderr

    return rejects


def example(name: str) -> pathlib.Path:
    return EXAMPLES / f"{name}.pb"


def outputs(folder: pathlib.Path) -> list[object]:
    return ["--report", folder / "r.json", "--trace", folder / "t.pftrace"]


def line_of(text: str) -> int:
    """The line of this file that contains `text`."""
    lines = pathlib.Path(__file__).read_text().splitlines()
    return next(i for i, line in enumerate(lines, 1) if text in line)


# --- bad workloads ---


def test_missing_file(rejects, tmp_path):
    message = rejects("--config", SLICE, tmp_path / "no.pb", *outputs(tmp_path))
    assert "no.pb" in message
    assert "No such file" in message


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("empty.pb", b"", "empty"),
        ("text.pb", b"HloModule m\n\nENTRY e {\n  ROOT p = f32[] parameter(0)\n}\n", "HLO text"),
        ("mlir.pb", b"module @jit_f {\n  func.func public @main() {\n  }\n}\n", "StableHLO"),
        ("json.pb", b'{"traceEvents": []}', "JSON"),
        ("image.pb", b"\x89PNG\r\n\x1a\n" + bytes(64), ""),
        ("damaged.pb.gz", gzip.compress(bytes(range(256)) * 40)[:60], "gzip"),
        ("zeros.pb", bytes(4096), ""),
    ],
)
def test_other_formats(rejects, tmp_path, name, content, says):
    path = tmp_path / name
    path.write_bytes(content)
    message = rejects("--config", SLICE, path, *outputs(tmp_path))
    assert name in message
    assert says in message


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.999])
def test_truncated_file(rejects, tmp_path, share):
    whole = example("collective_matmul_int32").read_bytes()
    path = tmp_path / "cut.pb"
    path.write_bytes(whole[: int(len(whole) * share)])
    assert "cut.pb" in rejects("--config", SLICE, path, *outputs(tmp_path))


def test_random_bytes(rejects, tmp_path):
    path = tmp_path / "noise.pb"
    generator = random.Random(1)
    for length in (1, 20, 4000):
        path.write_bytes(generator.randbytes(length))
        assert "noise.pb" in rejects("--config", SLICE, path)


def test_a_directory(rejects, tmp_path):
    assert "directory" in rejects("--config", SLICE, tmp_path)


def test_flipped_bytes_never_crash(run, tmp_path):
    """Damage that still parses may simulate or be refused, in one line."""
    whole = bytearray(example("matmul_square").read_bytes())
    path = tmp_path / "damaged.pb"
    generator = random.Random(2)
    for _ in range(40):
        damaged = bytearray(whole)
        for _ in range(generator.randrange(1, 4)):
            damaged[generator.randrange(len(damaged))] = generator.randrange(256)
        path.write_bytes(damaged)
        done = run("--config", SLICE, "--quiet", path)
        assert done.returncode in (0, 1), (done.returncode, done.stderr)
        assert done.stderr.count("\n") == done.returncode


def test_more_partitions_than_devices(rejects, tmp_path):
    message = rejects("--config", "v5e-2x2", example("matmul_square"), *outputs(tmp_path))
    assert "8 partitions" in message
    assert "v5e-2x2" in message
    assert "4 devices" in message


def test_op_without_a_rule(rejects, tmp_path):
    def transform(x):
        return jnp.linalg.eigh(x)  # the op without a rule

    path = tmp_path / "eigh.pb"
    tpusim.export(transform, jax.ShapeDtypeStruct((256, 256), jnp.float32), path=path)
    message = rejects("--config", "v5e-1x1", path, *outputs(tmp_path))
    assert "Eigh" in message
    assert f"test_cli.py:{line_of('the op without a rule')}" in message


def test_tensor_that_does_not_fit(rejects, tmp_path):
    def scale(x):
        return x * 2

    path = tmp_path / "large.pb"
    # 2^33 bf16 are 16384 MiB; argument and result on the 16384 - 256 that are usable.
    tpusim.export(scale, jax.ShapeDtypeStruct((2**16, 2**17), jnp.bfloat16), path=path)
    message = rejects("--config", "v5e-1x1", path, *outputs(tmp_path))
    assert "HBM" in message
    assert "16640.0 MiB more" in message, "by how much: 2 * 16384 - 16128"
    assert message.count("bf16[65536,131072] 16384.0 MiB") == 2, "the largest buffers"


@pytest.fixture(scope="module")
def data_dependent_loop(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    def power(x):
        return jax.lax.while_loop(  # stops when it is large
            lambda y: jnp.sum(y) < 1e6, lambda y: y @ y, x
        )

    path = tmp_path_factory.mktemp("loop") / "loop.pb"
    tpusim.export(power, jax.ShapeDtypeStruct((256, 256), jnp.bfloat16), path=path)
    return path


def test_loop_without_trip_count(rejects, report_of, data_dependent_loop, tmp_path):
    on = ("--config", "v5e-1x1")
    message = rejects(*on, data_dependent_loop, *outputs(tmp_path))
    assert "while" in message
    assert "--trip-count" in message
    assert "test_cli.py:" in message
    few = report_of(data_dependent_loop, *on, "--trip-count", "*=2")
    many = report_of(data_dependent_loop, *on, "--trip-count", "while*=20")
    assert many["flops"] > 9 * few["flops"]
    assert many["step_time_ns"] > 5 * few["step_time_ns"]
    assert any("2" in a and "while" in a for a in few["assumptions"])


def test_trip_count_without_a_loop_is_a_warning(run, data_dependent_loop):
    done = run("--config", SLICE, example("psum"), "--trip-count", "while.7=3")
    assert done.returncode == 0
    warning = "tpusim: warning: trip count while.7=3 has no effect: the program has no loop\n"
    assert done.stderr == warning
    stated = ("--trip-count", "*=2", "--trip-count", "loop=3")
    done = run("--config", "v5e-1x1", data_dependent_loop, *stated)
    assert done.returncode == 0
    assert re.search(r"loop=3 has no effect: its loops are while\.\d+$", done.stderr.strip())


def test_trip_count_can_be_in_the_workload(report_of, data_dependent_loop, tmp_path):
    import dataclasses

    workload = tpusim.Workload.from_bytes(data_dependent_loop.read_bytes())
    stated = dataclasses.replace(workload, trip_counts=(tpusim.TripCount("*", 2),))
    path = tmp_path / "stated.pb"
    path.write_bytes(stated.to_bytes())
    on = ("--config", "v5e-1x1")
    expected = report_of(data_dependent_loop, *on, "--trip-count", "*=2")["step_time_ns"]
    assert report_of(path, *on)["step_time_ns"] == expected


# --- bad configurations ---


def test_slice_that_does_not_exist(rejects, tmp_path):
    message = rejects("--config", "v5e-3x5", example("matmul_square"), *outputs(tmp_path))
    assert "v5e-3x5" in message or "3x5" in message
    for valid in ("4x2", "16x16"):
        assert valid in message


def test_unknown_chip(rejects):
    message = rejects("--config", "v5ee-4x2", example("matmul_square"))
    assert "v5ee" in message
    assert re.search(r"\bv5e\b", message)


def test_unknown_setting(rejects, tmp_path):
    message = rejects(
        "--config", SLICE, "--set", "chip.hbm.byte_per_second=1e12", example("matmul_square")
    )
    assert "chip.hbm.byte_per_second" in message
    assert "chip.hbm.bytes_per_second" in message
    assert "nearest is chip.hbm." in rejects("--set", "hbm=3", "-c", SLICE, example("psum"))
    for bad in ("chip.hbm.bytes_per_second", "chip.hbm.bytes_per_second=fast", "ici.links=-1"):
        message = rejects("--config", SLICE, "--set", bad, example("matmul_square"))
        assert bad.split("=")[0] in message


def test_no_configuration_at_all(rejects, tmp_path):
    workload = tpusim.Workload.from_bytes(example("matmul_square").read_bytes())
    path = tmp_path / "bare.pb"
    path.write_bytes(workload.hlo_module)
    assert "--config v5e-" in rejects(path)


def test_bad_device_order(rejects):
    for order in ("0,1,2", "0,0,1,2,3,4,5,6", "0,1,2,3,4,5,6,8", "sideways"):
        message = rejects("--config", SLICE, "--device-order", order, example("matmul_square"))
        assert "device" in message


# --- outputs that cannot be written ---


@pytest.mark.parametrize("flag", ["--report", "--trace"])
@pytest.mark.parametrize("path", ["no/such/folder/out", "/proc/out", "."])
def test_unwritable_output(rejects, flag, path):
    message = rejects("--config", SLICE, example("matmul_square"), flag, path)
    assert flag in message
    assert path in message


def test_unwritable_output_of_compile(rejects):
    message = rejects("compile", "--config", SLICE, example("psum"), "-o", "no/such/out.txt")
    assert "no/such/out.txt" in message


def test_the_workload_is_never_overwritten(rejects, tmp_path):
    path = tmp_path / "w.pb"
    path.write_bytes(example("psum").read_bytes())
    rejects("--config", SLICE, path, "--report", path)
    rejects("--config", SLICE, path, "--report", "a", "--trace", "a")
    assert path.read_bytes() == example("psum").read_bytes()


def test_a_failed_run_leaves_earlier_results_alone(rejects, tmp_path):
    (tmp_path / "r.json").write_text("earlier")
    rejects("--config", "v5e-2x2", example("matmul_square"), "--report", tmp_path / "r.json")
    assert (tmp_path / "r.json").read_text() == "earlier"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_full_stdout(binary):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [binary, "--config", SLICE, str(example("psum"))],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 1
    assert "cannot write to stdout" in done.stderr


# --- usage ---


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--config", SLICE],
        ["--no-such-flag", "w.pb"],
        ["run", "--config"],
        ["--config", SLICE, "--config", SLICE, "w.pb"],
        ["--config", SLICE, "w.pb", "--trip-count", "while.1"],
        ["--config", SLICE, "w.pb", "--trip-count", "while.1=-3"],
        ["--config", SLICE, "w.pb", "--trace-chips", "all"],
        ["--config", SLICE, "w.pb", "--trace", "t", "--trace-chips", "0,x"],
        ["--config", SLICE, "w.pb", "--quiet", "--verbose"],
        ["compile", "--config", SLICE, "w.pb", "--emit", "optimised"],
        ["compile", "--config", SLICE, "w.pb", "--emit", "streams", "-o", "s.pb"],
        ["compare", "--config", SLICE, "w.pb"],
        ["configs", "v5e", "v5p"],
    ],
)
def test_usage_errors(rejects, arguments):
    assert "--help" in rejects(*arguments, code=2)


def test_help_and_version(run):
    assert run("--version").stdout.startswith("tpusim ")
    top = run("--help")
    assert top.returncode == 0
    for command in ("run", "compile", "compare", "configs"):
        assert re.search(rf"^\s+{command}\s", top.stdout, re.MULTILINE)
        assert run(command, "--help").returncode == 0


# --- results ---

FIELDS = {
    "schema": str,
    "workload": str,
    "config": str,
    "step_time_ns": float,
    "bound_ns": dict,
    "mfu": float,
    "hfu": float,
    "flops": int,
    "exposed_communication_ns": float,
    "hidden_communication_ns": float,
    "peak_hbm_bytes": int,
    "usable_hbm_bytes": int,
    "devices": int,
    "chips": int,
    "chip_classes": int,
    "events": int,
    "ops": list,
    "scopes": list,
    "collectives": list,
    "links": list,
    "assumptions": list,
    "warnings": list,
}
ROWS = {
    "ops": "name category scope count total_ns flops hbm_bytes engine source",
    "scopes": "scope total_ns exposed_communication_ns flops",
    "collectives": "name kind bytes group_size axes algorithm count total_ns exposed_ns "
    "expected_ns bound_ns",
    "links": "chip direction bytes utilization",
}


def test_report(report_of):
    report = report_of("allgather_matmul_int32", "--config", SLICE)
    assert list(report) == list(FIELDS)
    for field, kind in FIELDS.items():
        assert isinstance(report[field], kind), field
    for field, columns in ROWS.items():
        assert report[field], field
        for row in report[field]:
            assert list(row) == columns.split(), field
    assert report["schema"] == "tpusim.report/1"
    assert report["workload"] == "allgather_matmul_int32"
    assert report["config"] == SLICE
    assert set(report["bound_ns"]) == {"compute", "hbm", "ici", "host", "dcn"}
    assert report["chips"] == report["devices"] == 8
    # 2 * 512 * 2048 * 2048 on each device, beside little else.
    assert report["flops"] == pytest.approx(2 * 512 * 2048 * 2048, rel=0.01)
    assert report["step_time_ns"] >= max(report["bound_ns"].values())
    # A 4x2 box has 3*2 links in x and 4 in y, both ways.
    assert len(report["links"]) == 2 * (3 * 2 + 4)
    (gather,) = report["collectives"]
    assert gather["kind"] == "all-gather"
    assert gather["group_size"] == 4
    assert gather["bytes"] == 512 * 2048 * 4
    assert gather["bound_ns"] <= gather["expected_ns"]


@pytest.mark.parametrize(
    "workload",
    ["collective_matmul_int32", "collective_matmul_unrolled_bf16", "mlp_scan_8_layers", "psum"],
)
def test_two_runs_give_the_same_bytes(run, tmp_path, workload):
    files = []
    for number in (1, 2):
        folder = tmp_path / str(number)
        folder.mkdir()
        done = run(
            *("--config", SLICE, example(workload), "--quiet"),
            *outputs(folder),
            *("--trace-chips", "all", "--trace-totals", folder / "totals.json"),
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout == done.stderr == ""
        files.append({path.name: path.read_bytes() for path in folder.iterdir()})
    assert set(files[0]) == {"r.json", "t.pftrace", "totals.json"}
    assert files[0] == files[1]


@pytest.mark.parametrize("how", ["allgather", "local", "collective"])
def test_a_small_program_is_quick_and_light(binary, tmp_path, how):
    """From file to report: a fifth of a second of one processor, 200 MB."""
    if b"__asan_init" in pathlib.Path(binary).read_bytes():
        pytest.skip("a sanitizer costs more")
    command = [binary, "--config", SLICE, "--quiet", example(f"{how}_matmul_int32")]
    command += ["--report", tmp_path / "r.json"]
    # A small parent, as the peak of a child is never below that of what it was forked from.
    measure = (
        "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True); "
        "used = resource.getrusage(resource.RUSAGE_CHILDREN); "
        "print(used.ru_utime + used.ru_stime, used.ru_maxrss)"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", measure, *map(str, command)],
        capture_output=True,
        text=True,
        check=True,
    )
    seconds, kibibytes = map(float, done.stdout.split())
    assert seconds < 0.2
    assert kibibytes * 1024 < 200e6


def test_summary_is_one_screen(run):
    done = run("--config", SLICE, example("allgather_matmul_int32"))
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 100
    for word in ("step time", "bound by", "MFU", "exposed", "hidden", "peak", "all-gather"):
        assert word in done.stdout
    assert done.stdout == run("run", "-c", SLICE, example("allgather_matmul_int32")).stdout


def test_slice_from_the_workload(report_of):
    report = report_of("psum")
    named = tpusim.Workload.from_bytes(example("psum").read_bytes()).config
    assert report["config"] == named
    assert any("--config" in a and named in a for a in report["assumptions"])
    assert not any("--config" in a for a in report_of("psum", "-c", named)["assumptions"])


def test_containers(report_of, tmp_path):
    """The same program bare, and gzipped, is the same step."""
    on = ("--config", SLICE, "--device-order", "ids")
    data = example("matmul_square").read_bytes()
    expected = report_of("matmul_square", *on)["step_time_ns"]
    for name, content in (
        ("bare.pb", tpusim.Workload.from_bytes(data).hlo_module),
        ("packed.pb.gz", gzip.compress(data)),
    ):
        (tmp_path / name).write_bytes(content)
        assert report_of(tmp_path / name, *on)["step_time_ns"] == expected


def test_trace_chips(run, tmp_path):
    def chips(*options: object) -> set[str]:
        totals = tmp_path / "totals.json"
        done = run(
            *("--config", SLICE, example("psum"), "--quiet", "--trace", tmp_path / "t.pftrace"),
            *("--trace-totals", totals, *options),
        )
        assert done.returncode == 0, done.stderr
        return set(re.findall(r"chip (\d+)", totals.read_text()))

    assert chips("--trace-chips", "all") == set("01234567")
    assert chips("--trace-chips", "3,0") == set("03")
    assert len(chips()) >= 1
    done = run("--config", SLICE, example("psum"), "--trace", "t", "--trace-chips", "8")
    assert done.returncode == 1
    assert "chips 0 to 7" in done.stderr


def test_readme_shows_what_is_printed(run):
    """The example output of the README is the output of today."""
    readme = (EXAMPLES.parents[1] / "README.md").read_text()
    example_output = r"^    \$ build/tpusim (.*)\n((?:    .*\n|\n)+)"
    command, shown = re.search(example_output, readme, re.MULTILINE).groups()
    shown = "".join(line.removeprefix("    ") for line in shown.splitlines(keepends=True))
    options = command.split()
    done = run(*options[:-1], EXAMPLES.parents[1] / options[-1])
    assert shown.strip() == done.stdout.strip(), "paste the new output into README.md"


# --- --set changes what it names ---


def test_set_hbm_bandwidth(report_of):
    on = ("--config", SLICE)
    base = report_of("elementwise_chain", *on)
    fast = report_of("elementwise_chain", *on, "--set", "chip.hbm.bytes_per_second=1.638e12")
    assert fast["step_time_ns"] < base["step_time_ns"]
    assert fast["bound_ns"]["hbm"] == pytest.approx(base["bound_ns"]["hbm"] / 2, rel=1e-6)
    assert fast["bound_ns"]["compute"] == base["bound_ns"]["compute"]


def test_set_link_rate(report_of):
    on = ("--config", SLICE)
    base = report_of("all_gather", *on)
    slow = report_of("all_gather", *on, "--set", "ici.link_bytes_per_second=2.25e10")
    (before,), (after,) = base["collectives"], slow["collectives"]
    assert after["total_ns"] > before["total_ns"]
    assert after["bound_ns"] == pytest.approx(2 * before["bound_ns"], rel=1e-6)


def test_set_launch(report_of):
    on = ("--config", SLICE)
    base = report_of("all_gather", *on)["collectives"][0]
    late = report_of("all_gather", *on, "--set", "ici.launch_ns=15400")["collectives"][0]
    assert late["total_ns"] - base["total_ns"] == pytest.approx(10000 * base["count"], abs=1)
    assert late["expected_ns"] - base["expected_ns"] == pytest.approx(10000, abs=1)


def test_set_clock(report_of):
    on = ("--config", SLICE)
    base = report_of("local_matmul_int32", *on)
    fast = report_of("local_matmul_int32", *on, "--set", "chip.clock_hz=3e9")
    assert fast["bound_ns"]["compute"] == pytest.approx(base["bound_ns"]["compute"] / 2, rel=1e-6)
    # Launch, first load and last store are nothing that a clock shortens.
    saved = base["step_time_ns"] - fast["step_time_ns"]
    assert saved == pytest.approx(base["bound_ns"]["compute"] / 2, rel=0.02)
    assert fast["mfu"] * fast["step_time_ns"] == pytest.approx(base["mfu"] * base["step_time_ns"])


def test_set_memory(report_of):
    on = ("--config", SLICE)
    base = report_of("psum", *on)
    larger = report_of("psum", *on, "--set", f"chip.hbm.bytes={2**35}")
    assert larger["usable_hbm_bytes"] - base["usable_hbm_bytes"] == 2**34
    assert larger["peak_hbm_bytes"] == base["peak_hbm_bytes"]
    assert larger["step_time_ns"] == base["step_time_ns"]


def test_set_hop_latency(report_of):
    """A hop more costs its latency once per step of a line, and no bandwidth."""
    on = ("--config", SLICE, "--device-order", "0,2,1,3,5,7,4,6")
    base = report_of("ring_shift", *on)
    late = report_of("ring_shift", *on, "--set", "ici.hop_latency_ns=3000")
    assert late["step_time_ns"] - base["step_time_ns"] == pytest.approx(2000, abs=0.01)
    assert late["links"][0]["bytes"] == base["links"][0]["bytes"]
    assert late["bound_ns"] == base["bound_ns"]


def test_set_passes(report_of):
    on = ("--config", SLICE)
    base = report_of("local_matmul_int32", *on)
    half = report_of("local_matmul_int32", *on, "--set", "chip.mxu.passes_int32=5")
    assert half["bound_ns"]["compute"] <= base["bound_ns"]["compute"]
    assert half["step_time_ns"] == pytest.approx(base["step_time_ns"] / 2, rel=0.1)


def test_set_without_effect_is_a_warning(run):
    done = run(
        *("--config", SLICE, example("local_matmul_bf16")),
        *("--set", "ici.hop_latency_ns=500", "--set", "chip.mxu.passes_int32=9"),
        *("--set", "chip.clock_hz=1.5e9"),
    )
    assert done.returncode == 0
    warnings = done.stderr.splitlines()
    assert len(warnings) == 3
    assert all(line.startswith("tpusim: warning: ") for line in warnings)
    for name in ("ici.hop_latency_ns", "chip.mxu.passes_int32", "chip.clock_hz"):
        assert name in done.stderr


def test_device_order(report_of):
    """A ring of partitions 0 2 4 6 fits a box of 2x2 chips without a detour."""
    on = ("--config", SLICE, "--device-order")
    near = report_of("ring_shift", *on, "0,2,1,3,5,7,4,6")
    # 5.4 us of launch, a hop of 1 us, 2^18 bytes at 0.867 * 45 GB/s.
    assert near["step_time_ns"] == pytest.approx(5400 + 1000 + 2**18 / 39.015, rel=1e-6)
    assert sum(link["bytes"] for link in near["links"]) == 8 * 2**18
    # Every device reads what it sends and is written what it receives.
    assert [o["hbm_bytes"] for o in near["ops"] if o["name"] == "ppermute.2"] == [2**19]
    assert near["bound_ns"]["hbm"] == pytest.approx(2**19 / 819, rel=1e-6)
    far = report_of("ring_shift", *on, "0,1,7,6,3,2,4,5")
    assert far["step_time_ns"] > near["step_time_ns"] + 3000


# --- the other subcommands ---


@pytest.mark.parametrize(
    ("stage", "says"),
    [
        ("sharded", "sharding="),
        ("partitioned", "all-reduce"),
        ("optimized", "fusion"),
        ("schedule", "fusion"),
        ("streams", "kernel"),
    ],
)
def test_compile_emits(run, tmp_path, stage, says):
    command = ("compile", "--config", SLICE, "--emit", stage, example("mlp_two_layers"))
    printed = run(*command)
    assert printed.returncode == 0, printed.stderr
    assert says in printed.stdout
    assert run(*command, "-o", "out.txt").stdout == ""
    assert (tmp_path / "out.txt").read_text() == printed.stdout


def test_compile_writes_a_module(run, tmp_path):
    for name in ("1.pb", "2.pb"):
        done = run(
            *("compile", "--config", SLICE, "--emit", "partitioned", "-o", name),
            example("matmul_square"),
        )
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "1.pb").read_bytes() == (tmp_path / "2.pb").read_bytes()
    from jax._src.lib import xla_client

    module = xla_client.XlaComputation((tmp_path / "1.pb").read_bytes())
    assert "all-reduce" in module.as_hlo_text()


def test_dump_after(run, rejects):
    on = ("compile", "--config", SLICE, example("mlp_two_layers"))
    done = run(*on, "--dump-after", "fuse")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("// after fuse\n")
    assert "fusion" in done.stdout
    assert "fuse" in rejects(*on, "--dump-after", "fuze")


def test_compare_workloads(run):
    done = run(
        *("compare", "--config", SLICE),
        *(example("allgather_matmul_int32"), example("collective_matmul_int32")),
    )
    assert done.returncode == 0, done.stderr
    assert "allgather_matmul_int32" in done.stdout
    assert "collective_matmul_int32" in done.stdout
    assert re.search(r"^B is [\d.]+x faster than A ", done.stdout, re.MULTILINE)


def test_compare_slices(run):
    done = run("compare", "--config", SLICE, "--config", "v5e-2x4", example("psum"))
    assert done.returncode == 0, done.stderr
    assert SLICE in done.stdout
    assert "v5e-2x4" in done.stdout


def test_compare_tells_files_of_one_name_apart(run, tmp_path):
    for name in ("left.pb", "right.pb"):
        (tmp_path / name).write_bytes(example("psum").read_bytes())
    done = run("compare", "--config", SLICE, "left.pb", "right.pb")
    assert done.returncode == 0, done.stderr
    assert "left" in done.stdout
    assert "right" in done.stdout


def test_compare_passes_errors_on(rejects, tmp_path):
    message = rejects("compare", "--config", SLICE, example("psum"), tmp_path / "no.pb")
    assert "no.pb" in message


def test_configs(run, rejects):
    listed = run("configs").stdout
    assert re.search(r"^v5e .*\b4x2\b.*\b16x16\b", listed, re.MULTILINE)
    shown = run("configs", "v5e").stdout
    assert max(map(len, shown.splitlines())) <= 120
    assert re.search(
        r"chip\.hbm\.bytes_per_second +819000000000 +bytes_per_second = 819 GB/s", shown
    )
    assert "note:" in run("configs", "v5e", "--verbose").stdout
    assert run("configs", "v5e-4x2").stdout == shown
    assert "v5e" in rejects("configs", "v5ee")


CHIPS = ("v2", "v3", "v4", "v4i", "v5e", "v5p", "v6e", "v7x", "8i", "8t")


@pytest.mark.parametrize("chip", CHIPS)
def test_a_chip_fits_on_one_screen(run, chip):
    shown = run("configs", chip).stdout
    lines = shown.splitlines()
    assert len(lines) <= 60
    assert max(map(len, lines)) <= 120
    assert lines[0].startswith(f"{chip}: ")
    # Every row has a unit and a source.
    rows = [row for row in lines[lines.index("") + 1 : -1] if "more parameters" not in row]
    assert rows[0].split() == ["parameter", "value", "unit", "source"]
    assert all(len(re.split(r" {2,}", row.strip())) >= 4 for row in rows[1:])
    # What has its default is counted, and shown with the others on request.
    counted = re.search(r"^(\d+) more parameters have their defaults", shown, re.MULTILINE)
    everything = run("configs", chip, "--verbose").stdout
    assert everything.count("source: default:") == (int(counted[1]) if counted else 0)


def test_configs_lists_every_chip_with_its_rings(run):
    listed = run("configs").stdout
    for chip in CHIPS:
        assert re.search(rf"^{chip} +\S", listed, re.MULTILINE)
    for marked in ("8x16+", "16x16*", "4x4x4*"):
        assert marked in listed
    assert max(map(len, listed.splitlines())) <= 120


@pytest.mark.parametrize(
    "config",
    [
        *("v2-1x1", "v3-2x2", "v4-1x1x1", "v4i-2x2", "v5e-1x1", "v5p-2x2x2", "v6e-4x2"),
        *("v7x-1x1x1", "v7x-2x2x1", "8i-1x1", "8t-1x1", "v5p-4x4x8_twisted"),
    ],
)
def test_a_product_runs_on_every_chip(run, config, tmp_path):
    workload, report = tmp_path / "w.pb", tmp_path / "r.json"
    x = jax.ShapeDtypeStruct((2048, 2048), jnp.bfloat16)
    tpusim.export(jax.jit(jnp.dot), x, x, path=workload, config=config)
    done = run("--config", config, "--report", str(report), str(workload))
    assert done.returncode == 0, done.stderr
    result = json.loads(report.read_text())
    assert result["config"] == config
    # No faster than its arithmetic and its bytes allow, and not ten times slower.
    bound = max(result["bound_ns"].values())
    assert 0 < bound <= result["step_time_ns"] < 10 * bound


@pytest.mark.parametrize("config", ["v4-2x2x2", "v5e-4x2", "v5p-2x2x2", "v6e-4x2"])
@pytest.mark.parametrize("name", ["matmul_square", "all_to_all", "ring_shift"])
def test_examples_run_on_other_chips(run, config, name):
    done = run("--config", config, example(name))
    assert done.returncode == 0, done.stderr


def test_verbose_goes_to_stderr(run):
    done = run("--config", SLICE, "--verbose", example("psum"))
    assert done.returncode == 0
    assert "import took" in done.stderr
    assert done.stdout == run("--config", SLICE, example("psum")).stdout


def test_python_runner_reports_the_binarys_words(binary, tmp_path):
    """`tpusim.run` raises with the one line that the binary printed."""
    script = f"import tpusim; tpusim.run({str(tmp_path / 'no.pb')!r}, config={SLICE!r})"
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "TPUSIM_BINARY": binary, "PYTHONPATH": ":".join(sys.path)},
    )
    assert done.returncode == 1
    assert "no.pb" in done.stderr


def test_sharded_export_end_to_end(report_of, tmp_path):
    """What the README shows: export over an abstract mesh, simulate, read the report."""
    mesh = jax.sharding.AbstractMesh((2, 4), ("x", "y"))

    def array(*axes: str | None) -> jax.ShapeDtypeStruct:
        sharding = jax.sharding.NamedSharding(mesh, P(*axes))
        return jax.ShapeDtypeStruct((1024, 1024), jnp.bfloat16, sharding=sharding)

    path = tmp_path / "step.pb"
    tpusim.export(lambda a, b: a @ b, array("x", "y"), array("y", None), path=path, config=SLICE)
    report = report_of(path)
    assert [c["kind"] for c in report["collectives"]] == ["all-reduce"]
