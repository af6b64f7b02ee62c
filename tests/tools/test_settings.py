"""`--set` changes what it names, and nothing silently."""

import pytest

from tests.tools.command_line import SLICE, example


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


def compiled(run, name: str, *options: str) -> str:
    """The program that the chips execute."""
    done = run("compile", example(name), "--config", SLICE, *options)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_speed_changes_the_machine_and_not_the_program(run, report_of):
    name, fast = "collective_matmul_int32", ("--set", "chip.hbm.bytes_per_second=1.638e12")
    assert compiled(run, name, *fast) == compiled(run, name)
    base, faster = report_of(name), report_of(name, *fast)

    def executed(report: dict) -> list[tuple[str, int, int]]:
        ops = [(op["name"], op["count"], op["hbm_bytes"]) for op in report["ops"]]
        return sorted(ops)  # reports list the longest first

    assert executed(faster) == executed(base)
    assert faster["step_time_ns"] < base["step_time_ns"]


def test_recompile_lets_the_compiler_know(run):
    name, fast = "collective_matmul_int32", ("--set", "chip.hbm.bytes_per_second=3.276e12")
    assert compiled(run, name, *fast, "--recompile") != compiled(run, name)
    assert compiled(run, name, "--recompile") == compiled(run, name)
    assert "--recompile has no effect" in run("run", example(name), "--recompile").stderr


def test_a_size_changes_the_program_without_being_asked(run):
    size = ("--set", "chip.vmem.scoped_bytes=1048576")
    changed = compiled(run, "collective_matmul_int32", *size)
    assert changed != compiled(run, "collective_matmul_int32")
    assert changed == compiled(run, "collective_matmul_int32", *size, "--recompile")


def test_a_part_comes_with_its_rate(run):
    """The rate of a memory that v5e does not have is no speed: there is none to compile for."""
    cmem = ("--set", "chip.cmem.bytes=134217728", "--set", "chip.cmem.bytes_per_second=5e12")
    changed = compiled(run, "collective_matmul_int32", *cmem)
    assert changed == compiled(run, "collective_matmul_int32", *cmem, "--recompile")


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


def test_xla_flags_say_when_gathers_are_asynchronous(report_of):
    """A v6e has synchronous all-gathers only, by default."""
    plain = report_of("fully_sharded_layers_large", "--config", "v6e-8x8")
    flags = ("--xla-flags", "--xla_enable_async_all_gather=true")
    beside = report_of("fully_sharded_layers_large", "--config", "v6e-8x8", *flags)
    gathers = [c for c in plain["collectives"] if c["kind"] == "all-gather"]
    assert gathers
    assert not any(c["hidden_ns"] for c in gathers)
    assert any(c["hidden_ns"] for c in beside["collectives"] if c["kind"] == "all-gather")
    assert beside["step_time_ns"] < plain["step_time_ns"]


def test_xla_flags_forbid_windowed_einsums(report_of):
    """People switch the collective matmul off so."""
    threshold = "--xla_jf_spmd_threshold_for_windowed_einsum_mib=1000000"
    windowed = report_of("fully_sharded_layers_large", "--config", "v5e-4x4")
    whole = report_of("fully_sharded_layers_large", "--config", "v5e-4x4", "--xla-flags", threshold)
    kinds = [{c["kind"] for c in r["collectives"]} for r in (windowed, whole)]
    assert "collective-permute" in kinds[0]
    assert "collective-permute" not in kinds[1]


def test_xla_flags_without_effect_are_named(run, rejects):
    done = run("run", example("matmul_square"), "--xla-flags", "--xla_tpu_rwb_fusion=false")
    assert done.returncode == 0
    assert "--xla-flags: without effect here: xla_tpu_rwb_fusion" in done.stderr
    said = rejects("run", example("matmul_square"), "--xla-flags", "xla_tpu_rwb_fusion")
    assert '"xla_tpu_rwb_fusion" is no flag of the compiler' in said
