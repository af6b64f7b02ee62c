"""`tpusim compile`."""

import json

import pytest

from tests.tools.command_line import SLICE, example


@pytest.mark.parametrize(
    ("stage", "says"),
    [
        ("sharded", "sharding="),
        ("partitioned", "all-reduce"),
        ("optimized", "fusion"),
        ("schedule", "fusion"),
        ("executable", "dot("),
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


@pytest.mark.parametrize("stage", ["partitioned", "executable"])
def test_compile_writes_a_module(run, tmp_path, stage):
    for name in ("1.pb", "2.pb"):
        done = run(
            *("compile", "--config", SLICE, "--emit", stage, "-o", name),
            example("matmul_square"),
        )
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "1.pb").read_bytes() == (tmp_path / "2.pb").read_bytes()
    from jax._src.lib import xla_client

    module = xla_client.XlaComputation((tmp_path / "1.pb").read_bytes())
    assert "all-reduce" in module.as_hlo_text()


def test_dump_after(run, rejects):
    on = ("compile", "--config", SLICE, example("mlp_two_layers"))
    done = run(*on, "--dump-after", "fusion")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("// after fusion\n")
    assert "fusion" in done.stdout
    assert "fusion" in rejects(*on, "--dump-after", "fuzion")


@pytest.mark.parametrize("stage", ["sharded", "partitioned"])
def test_passes_come_after_what_they_work_on(run, stage):
    program = example("mlp_two_layers")
    for asked in ("--dump-after", "--explain"):
        done = run("compile", "--config", SLICE, "--emit", stage, asked, "fusion", program)
        assert done.returncode == 2
        assert f"{asked}: is of passes, and they come after this stage" in done.stderr


def test_passes_can_be_chosen(run, rejects):
    on = ("compile", "--config", SLICE, "--emit", "optimized", example("mlp_two_layers"))
    assert "fusion" in run(*on).stdout
    assert "fusion" not in run(*on, "--passes=-fusion").stdout
    assert "fusion" in run(*on, "--passes", "fixpoint(simplify,layout),fusion").stdout
    assert "nearest is fusion" in rejects(*on, "--passes", "fuzion", code=2)
    assert "no option 'depth'" in rejects(*on, "--passes", "fusion{depth=2}", code=2)
    # Without a schedule a program runs in its own order.
    assert (
        "step time" in run("--config", SLICE, example("mlp_two_layers"), "--passes=fusion").stdout
    )


def test_pass_timings(run):
    done = run("--config", SLICE, example("mlp_two_layers"), "--pass-timings")
    rows = [line.split() for line in done.stderr.splitlines()]
    table = {row[1]: row[2:] for row in rows if row[0] == "tpusim:"}
    assert table["fusion"][:2] == ["1", "1"]
    assert int(table["all"][0]) >= 8


def test_opt_runs_passes_on_a_partitioned_module(run, rejects, tmp_path):
    module = str(tmp_path / "module.pb")
    partitioned = ("compile", "--config", SLICE, "--emit", "partitioned")
    assert run(*partitioned, "-o", module, example("mlp_two_layers")).returncode == 0
    done = run("opt", "--config", SLICE, "--passes=fusion", module)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("HloModule")
    assert "fusion" in done.stdout
    dumped = run(
        "opt", "--config", SLICE, "--passes=simplify,fusion", "--dump-after", "simplify", module
    )
    assert dumped.stdout.startswith("// after simplify\n")
    ordered = run("opt", "--config", SLICE, module)
    assert "is_scheduled=true" in ordered.stdout
    assert run("opt", module).stdout == ordered.stdout  # it says for which slice it is
    text = tmp_path / "module.hlo"
    text.write_text(run(*partitioned, example("mlp_two_layers")).stdout)
    assert "names no slice" in rejects("opt", text)


def test_explain(run, rejects):
    on = ("compile", "--config", SLICE, example("mlp_two_layers"))
    done = run(*on, "--explain", "fusion")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("// decisions of fusion\n")
    assert " is computed in " in done.stdout
    assert "fusion" in rejects(*on, "--explain", "fuzion")


def test_partitioned_modules_run_as_the_program_that_they_are_of(run, tmp_path):
    for name in ("mlp_two_layers", "ring_attention_large", "activations_on_host"):
        module = tmp_path / f"{name}.pb"
        assert run("compile", "--emit", "partitioned", "-o", module, example(name)).returncode == 0
        whole, part = (json.loads(run(file, "--json").stdout) for file in (example(name), module))
        for field in ("workload", "config", "step_time_ns", "peak_hbm_bytes", "flops"):
            assert whole[field] == part[field], (name, field)


def test_json(run):
    compiled = json.loads(run("compile", "--json", "--emit", "partitioned", example("psum")).stdout)
    assert compiled["schema"] == "tpusim.compile/1"
    assert "all-reduce(" in compiled["text"]
    assert compiled["config"] == SLICE
