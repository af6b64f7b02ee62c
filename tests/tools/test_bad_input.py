"""Bad input of every kind ends in one line and exit code 1, with nothing half-written."""

import gzip
import os
import pathlib
import random
import re
import subprocess

import jax
import jax.numpy as jnp
import pytest
import tpusim

from tests.tools.command_line import SLICE, example, example_bytes, line_of, outputs


def test_missing_file(rejects, tmp_path):
    message = rejects("--config", SLICE, tmp_path / "no.pb", *outputs(tmp_path))
    assert "no.pb" in message
    assert "No such file" in message


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("empty.pb", b"", "empty"),
        ("text.pb", b"HloModule m\n\nENTRY e {\n  ROOT p = f33[] p()\n}\n", "line 4, column 12"),
        ("mlir.pb", b"module @jit_f {\n  func.func public @main() {\n  }\n}\n", "StableHLO"),
        ("json.pb", b'{"traceEvents": []}', "JSON"),
        ("image.pb", b"\x89PNG\r\n\x1a\n" + bytes(64), ""),
        ("damaged.pb.gz", gzip.compress(bytes(range(256)) * 40, mtime=0)[:60], "gzip"),
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
    whole = example_bytes("collective_matmul_int32")
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
    whole = bytearray(example_bytes("matmul_square"))
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
        whole = jax.ShapeDtypeStruct(x.shape, x.dtype)
        return jax.ffi.ffi_call("Transform", whole)(x)  # the op without a rule

    path = tmp_path / "transform.pb"
    tpusim.export(transform, jax.ShapeDtypeStruct((256, 256), jnp.float32), path=path)
    message = rejects("--config", "v5e-1x1", path, *outputs(tmp_path))
    assert "custom call to 'Transform' has no cost" in message
    assert f"test_bad_input.py:{line_of('the op without a rule', __file__)}" in message


def test_tensor_that_does_not_fit(rejects, tmp_path):
    def scale(x):
        return x * 2

    path = tmp_path / "large.pb"
    # 2^33 bf16 are 16 GiB; argument and result on the 15.75 GiB that are usable.
    tpusim.export(scale, jax.ShapeDtypeStruct((2**16, 2**17), jnp.bfloat16), path=path)
    message = rejects("--config", "v5e-1x1", path, *outputs(tmp_path))
    assert "HBM" in message
    assert "16.25 GiB more" in message, "by how much: 32 - 15.75"
    assert message.count("bf16[65536,131072]{1,0} 16.00 GiB") == 2, "the largest arrays"
    assert "arguments 16.00 GiB, results 16.00 GiB" in message, "whose they are"


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
    assert "test_bad_input.py:" in message
    few = report_of(data_dependent_loop, *on, "--trip-count", "*=2")
    many = report_of(data_dependent_loop, *on, "--trip-count", "while*=20")
    assert many["flops"] > 9 * few["flops"]
    assert many["step_time_ns"] > 5 * few["step_time_ns"]
    assert any("2" in a and "while" in a for a in few["assumptions"])


@pytest.fixture(scope="module")
def three_loops(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Two loops that depend on data beside one of five passes."""

    def step(x):
        x = jax.lax.while_loop(lambda y: jnp.sum(y) < 1e6, lambda y: y @ y, x)
        x = jax.lax.fori_loop(0, 5, lambda _, y: y @ y, x)
        return jax.lax.while_loop(lambda y: jnp.max(y) < 1e6, lambda y: y @ x, x)

    path = tmp_path_factory.mktemp("loops") / "loops.pb"
    tpusim.export(step, jax.ShapeDtypeStruct((256, 256), jnp.bfloat16), path=path)
    return path


def test_all_missing_trip_counts_are_named_at_once(rejects, three_loops, tmp_path):
    message = rejects("--config", "v5e-1x1", three_loops, *outputs(tmp_path))
    named = re.findall(r"--trip-count (while\.\d+)=N", message)
    assert len(named) == len(set(named)) == 2
    assert "2 figures" in message
    assert message.count("test_bad_input.py:") == 2


def test_a_glob_leaves_known_trip_counts_alone(run, report_of, three_loops):
    on = ("--config", "v5e-1x1")
    # Products: 3 + 5 + 3, then 4 + 5 + 4.
    three = report_of(three_loops, *on, "--trip-count", "*=3")
    four = report_of(three_loops, *on, "--trip-count", "*=4")
    product = 2 * 256**3
    assert 11 * product <= three["flops"] < 11.2 * product
    assert 13 * product <= four["flops"] < 13.2 * product
    assert sum("as stated" in line for line in three["assumptions"]) == 2
    # The name of a loop overrides what the program says.
    message = run(*on, three_loops).stderr
    data = re.findall(r"--trip-count (while\.\d+)=N", message)
    (known,) = {op["name"] for op in three["ops"] if op["name"].startswith("while")} - set(data)
    stated = report_of(three_loops, *on, "--trip-count", "*=3", "--trip-count", f"{known}=6")
    assert 12 * product <= stated["flops"] < 12.2 * product


def test_a_glob_over_known_loops_only_is_a_warning(run):
    done = run("--config", SLICE, example("mlp_scan_8_layers"), "--trip-count", "*=3")
    assert done.returncode == 0
    assert "trip count *=3 has no effect: the program says how often while" in done.stderr


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

    workload = tpusim.Workload.load(data_dependent_loop)
    stated = dataclasses.replace(workload, trip_counts=(tpusim.TripCount("*", 2),))
    path = tmp_path / "stated.pb"
    path.write_bytes(stated.to_bytes())
    on = ("--config", "v5e-1x1")
    expected = report_of(data_dependent_loop, *on, "--trip-count", "*=2")["step_time_ns"]
    assert report_of(path, *on)["step_time_ns"] == expected


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
    for bad in ("chip.hbm.bytes_per_second", "chip.hbm.bytes_per_second=fast", "host.chips_x=-1"):
        message = rejects("--config", SLICE, "--set", bad, example("matmul_square"))
        assert bad.split("=")[0] in message


def test_no_configuration_at_all(rejects, tmp_path):
    workload = tpusim.Workload.load(example("matmul_square"))
    path = tmp_path / "bare.pb"
    path.write_bytes(workload.hlo_module)
    assert "--config v5e-" in rejects(path)


def test_bad_device_order(rejects):
    for order in ("0,1,2", "0,0,1,2,3,4,5,6", "0,1,2,3,4,5,6,8", "sideways"):
        message = rejects("--config", SLICE, "--device-order", order, example("matmul_square"))
        assert "device" in message


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


def nested_conditionals(depth: int) -> str:
    """A branch in a branch; both of each call one computation, which doubles with every level."""
    text = "HloModule k\n\n%f0 (p: f32[8]) -> f32[8] {\n  %p = f32[8] parameter(0)\n"
    text += "  ROOT %r = f32[8] negate(%p)\n}\n"
    for level in range(1, depth + 1):
        name = "ENTRY %main" if level == depth else f"%f{level}"
        both = f"true_computation=%f{level - 1}, false_computation=%f{level - 1}"
        text += f"\n{name} (p: f32[8]) -> f32[8] {{\n  %p = f32[8] parameter(0)\n"
        text += "  %c = pred[] constant(true)\n"
        text += f"  ROOT %r = f32[8] conditional(%c, %p, %p), {both}\n}}\n"
    return text


@pytest.mark.parametrize("command", ["run", "opt", "compile"])
def test_branches_that_double_with_each_level(run, rejects, tmp_path, command):
    (tmp_path / "deep.hlo").write_text(nested_conditionals(60))
    message = rejects(command, tmp_path / "deep.hlo", "--config", "v5e-1x1")
    assert "inlining the program's calls gives more than 4194304 instructions" in message
    # A few levels of the same are a program.
    (tmp_path / "flat.hlo").write_text(nested_conditionals(6))
    done = run(command, tmp_path / "flat.hlo", "--config", "v5e-1x1")
    assert done.returncode == 0, done.stderr


def nested_loops(depth: int) -> str:
    """A loop in a loop, all with one condition."""
    state = "(s32[], f32[8])"
    text = f"HloModule w\n\n%cond (q: {state}) -> pred[] {{\n  %q = {state} parameter(0)\n"
    text += "  %i = s32[] get-tuple-element(%q), index=0\n  %k = s32[] constant(3)\n"
    text += "  ROOT %l = pred[] compare(%i, %k), direction=LT\n}\n"
    for level in range(depth):
        text += f"\n%b{level} (p: {state}) -> {state} {{\n  %p = {state} parameter(0)\n"
        text += "  %i = s32[] get-tuple-element(%p), index=0\n  %one = s32[] constant(1)\n"
        text += "  %n = s32[] add(%i, %one)\n  %x = f32[8] get-tuple-element(%p), index=1\n"
        if level == 0:
            text += "  %y = f32[8] negate(%x)\n"
        else:
            text += f"  %z = s32[] constant(0)\n  %t = {state} tuple(%z, %x)\n"
            text += f"  %w = {state} while(%t), condition=%cond, body=%b{level - 1}\n"
            text += "  %y = f32[8] get-tuple-element(%w), index=1\n"
        text += f"  ROOT %r = {state} tuple(%n, %y)\n}}\n"
    text += "\nENTRY %main (p: f32[8]) -> f32[8] {\n  %p = f32[8] parameter(0)\n"
    text += f"  %z = s32[] constant(0)\n  %t = {state} tuple(%z, %p)\n"
    text += f"  %w = {state} while(%t), condition=%cond, body=%b{depth - 1}\n"
    return text + "  ROOT %y = f32[8] get-tuple-element(%w), index=1\n}\n"


@pytest.mark.parametrize("depth", [1, 2, 3, 6])
@pytest.mark.parametrize("options", [(), ("--passes", "schedule")])
def test_loops_that_share_a_condition(run, tmp_path, depth, options):
    (tmp_path / "loops.hlo").write_text(nested_loops(depth))
    done = run("opt", tmp_path / "loops.hlo", "--config", "v5e-1x1", *options)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(" while(") == depth
    assert run("run", tmp_path / "loops.hlo", "--config", "v5e-1x1").returncode == 0


HOST_RESULT = """HloModule m

ENTRY e {
  a = f32[8,128]{1,0} parameter(0)
  i = s32[3,1]{1,0} parameter(1)
  ROOT r = RESULT
}
"""


@pytest.mark.parametrize(
    "result",
    [
        "f32[8,128]{1,0:S(5)} tanh(a)",
        "f32[16,128]{1,0:S(5)} concatenate(a, a), dimensions={0}",
        "f32[8,8]{1,0:S(5)} dot(a, a), lhs_contracting_dims={1}, rhs_contracting_dims={1}",
        "f32[3,128]{1,0:S(5)} gather(a, i), offset_dims={1}, collapsed_slice_dims={0}, "
        "start_index_map={0}, index_vector_dim=1, slice_sizes={1,128}",
    ],
)
def test_no_kernel_writes_to_host_memory(rejects, tmp_path, result):
    (tmp_path / "m.hlo").write_text(HOST_RESULT.replace("RESULT", result))
    message = rejects("run", tmp_path / "m.hlo", "--config", "v5e-1x1")
    assert "it writes its result to host memory; compute it on the device" in message


TUPLE_COPY = """HloModule m, num_partitions=8

ENTRY e {
  p = f32[64,64] parameter(0), sharding={devices=[1,8]<=[8]}
  n = f32[64,64] negate(p)
  i = (f32[64,64], f32[64,64]) tuple(n, p)
  t = (f32[64,64], (f32[64,64], f32[64,64])) tuple(p, i)
  ROOT c = (f32[64,64], (f32[64,64], f32[64,64])) copy(t)
}
"""


def test_a_copy_of_a_tuple_is_copies_of_its_arrays(run, rejects, tmp_path):
    path = tmp_path / "copy.hlo"
    for text in (TUPLE_COPY, TUPLE_COPY.replace(", num_partitions=8", "")):
        path.write_text(text)
        for command in ("run", "opt"):
            done = run(command, path, "--config", SLICE)
            assert done.returncode == 0, done.stderr
    done = run("opt", path, "--config", SLICE, "--passes", "schedule")
    assert len(re.findall(r"= f32\[64,64\]\S* copy\(", done.stdout)) == 3
    # Of anything else with a tuple as an operand nothing is known.
    called = 'custom-call(t), custom_call_target="f"'
    path.write_text(TUPLE_COPY.replace("copy(t)", called))
    message = rejects("run", path, "--config", SLICE, "--kernel-cost", "c=1000,1000")
    assert "has no sharding rule" in message


STARTS = """HloModule s, is_scheduled=true

ENTRY e {
  p = f32[64,64] parameter(0)
  s = (f32[64,64], f32[64,64], u32[]) copy-start(p)
  d = f32[64,64] copy-done(s)
  ROOT r = f32[64,64] negate(d)
}
"""


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("copy-done(s)", "get-tuple-element(s), index=0", "d uses it, but no copy-done waits"),
        ("negate(d)", "get-tuple-element(s), index=0", "2 instructions use it, not one copy-done"),
        ("copy-done(s)", "async-done(s)", "s begins no async"),
        ("(f32[64,64], f32[64,64], u32[]) copy-start(p)", "f32[64,64] negate(p)", "s begins no"),
    ],
)
@pytest.mark.parametrize("command", ["run", "opt"])
def test_every_start_has_its_done(run, rejects, tmp_path, command, old, new, says):
    (tmp_path / "s.hlo").write_text(STARTS)
    assert run(command, tmp_path / "s.hlo", "--config", "v5e-1x1").returncode == 0
    (tmp_path / "s.hlo").write_text(STARTS.replace(old, new))
    message = rejects(command, tmp_path / "s.hlo", "--config", "v5e-1x1")
    assert says in message


def test_what_is_no_array_has_no_dimensions(rejects, tmp_path):
    (tmp_path / "t.hlo").write_text(STARTS.replace("p = f32[64,64]", "p = token[16,1024,2048]"))
    message = rejects("run", tmp_path / "t.hlo", "--config", "v5e-1x1")
    assert "token has no dimensions, not [16,1024,2048]" in message
