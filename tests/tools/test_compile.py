"""`tpusim compile`."""

import json
import pathlib
import subprocess

import pytest

from tests.tools.command_line import SLICE, example


@pytest.mark.parametrize(
    ("stage", "says"),
    [
        ("decisions", "dimensions of arguments"),
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


@pytest.mark.parametrize(
    "stated", [("--mesh", "x=2,y=4"), ("--shard", "*=P('x')"), ("--constrain", "dot=P('x')")]
)
def test_decisions_do_not_depend_on_what_is_stated(run, stated):
    command = ("compile", "--config", SLICE, "--emit", "decisions", example("mlp_two_layers"))
    done = run(*command, *stated)
    assert done.returncode == 1
    assert f"{stated[0]}: what there is to decide does not depend on it" in done.stderr


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


DUMPED = {
    "imported.hlo": None,
    "names.txt": "names",
    "decisions.txt": "decisions",
    "sharded.txt": "sharded",
    "partitioned.hlo": "partitioned",
    "simplified.hlo": None,
    "optimized.hlo": "optimized",
    "schedule.hlo": "schedule",
    "explained.txt": None,
    "plan.txt": None,
    "kernels.txt": None,
    "streams.txt": "streams",
}


def test_a_dump_has_every_stage(run, tmp_path):
    on = ("compile", "--config", SLICE, "--mesh", "x=2,y=4", example("mlp_two_layers"))
    done = run(*on, "--dump", "stages")
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    files = sorted(path.name for path in (tmp_path / "stages").iterdir())
    assert files == [f"{number:02}-{name}" for number, name in enumerate(DUMPED)]
    text = {name.partition("-")[2]: (tmp_path / "stages" / name).read_text() for name in files}
    for name, stage in DUMPED.items():
        if stage not in (None, "decisions"):
            assert text[name] == run(*on, "--emit", stage).stdout
    assert (
        text["decisions.txt"]
        == run(
            "compile", "--config", SLICE, "--emit", "decisions", example("mlp_two_layers")
        ).stdout
    )
    asked = run(*on, "--explain", "fusion").stdout
    assert asked.startswith("// decisions of fusion\n")
    assert asked.rstrip() in text["explained.txt"]
    assert "fusion(" not in text["simplified.hlo"]
    assert "memory" not in text["plan.txt"].splitlines()[0]
    peak = int(text["plan.txt"].split()[3])
    buffers = [line.split() for line in text["plan.txt"].split("until\n")[1].splitlines()]
    assert peak > 0
    assert all(
        int(offset) + int(size) <= peak for _, _, offset, size, *_ in buffers if offset != "-"
    )
    name = text["kernels.txt"].split(maxsplit=1)[0]
    assert text["kernels.txt"].startswith(
        run("kernel", "--config", SLICE, "--mesh", "x=2,y=4", on[-1], name).stdout.rstrip()
    )


def test_a_dump_of_one_device_begins_where_its_module_does(run, binary, tmp_path):
    partitioned = ("compile", "--config", SLICE, "--emit", "partitioned", "-o", "p.pb")
    assert run(*partitioned, example("matmul_square")).returncode == 0
    module = (tmp_path / "p.pb").read_bytes()
    (tmp_path / "new").mkdir()
    for name in ("p.pb", "-"):
        folder = tmp_path / ("new" if name == "-" else "other")
        command = [binary, "compile", name, "-c", SLICE, "--dump", folder]
        done = subprocess.run(command, input=module, capture_output=True, check=False, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (0, b""), done.stderr
        files = sorted(path.name for path in folder.iterdir())
        assert files[:3] == ["00-imported.hlo", "01-partitioned.hlo", "02-simplified.hlo"]
        assert files[-1] == "08-streams.txt"


def test_a_dump_is_whole_or_not_there(run, rejects, tmp_path):
    on = ("compile", "--config", SLICE, example("mlp_two_layers"))
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("kept")
    assert "--dump: cannot write 'full': the folder is not empty" in rejects(*on, "--dump", "full")
    assert "it is a file, and a folder is written" in rejects(*on, "--dump", "full/file")
    assert "create its folder first" in rejects(*on, "--dump", "no/where")
    # Found after most of the work.
    tiny = (
        "--set",
        "chip.hbm.bytes=2000000",
        "--set",
        "chip.hbm.reserved_bytes=0",
        "--dump",
        "tiny",
    )
    assert "fit" in rejects(*on, *tiny)
    assert [path.name for path in tmp_path.iterdir()] == ["full"]
    assert (tmp_path / "full" / "file").read_text() == "kept"
    for other in (("--emit", "names"), ("-o", "x"), ("--json",), ("--explain", "fusion")):
        assert " excludes --" in rejects(*on, "--dump", "d", *other, code=2)


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


TEXTS = pathlib.Path(__file__).parents[1] / "workloads" / "passes"
COMPILED = pathlib.Path(__file__).resolve().parents[1] / "workloads" / "hlo" / "data" / "text"


@pytest.mark.parametrize("name", ["collectives_compiled", "mlp_gradient_compiled"])
def test_opt_of_a_scheduled_module(run, name):
    # As XLA leaves them. A pass that changes the module drops its order, one that changes nothing
    # leaves it, and `schedule` makes another.
    on = ("opt", "--config", SLICE, COMPILED / f"{name}.hlo")
    whole = run(*on)
    assert (whole.returncode, whole.stderr) == (0, "")
    assert whole.stdout.startswith("HloModule")
    assert "is_scheduled=true" in whole.stdout
    assert "is_scheduled=true" in run(*on, "--passes=layout").stdout
    changed = run(*on, "--passes=async-collectives")
    assert changed.returncode == 0
    assert "is_scheduled" not in changed.stdout
    assert "pass async-collectives changed it" in changed.stderr
    again = run(*on, "--passes=async-collectives,schedule")
    assert again.stderr == ""
    assert "is_scheduled=true" in again.stdout


def test_an_order_that_comes_with_the_module_is_not_that_of_the_run(run, tmp_path):
    text = """HloModule scheduled, is_scheduled=true

ENTRY %main (p: f32[8]) -> f32[8] {
  %p = f32[8] parameter(0)
  ROOT %o = f32[8] negate(%p)
}
"""
    (tmp_path / "scheduled.hlo").write_text(text)
    (tmp_path / "free.hlo").write_text(text.replace(", is_scheduled=true", ""))
    done = run("--config", "v5e-1x1", "scheduled.hlo", "--json")
    assert done.returncode == 0
    assert "which is not kept" in done.stderr
    free = run("--config", "v5e-1x1", "free.hlo", "--json")
    assert free.stderr == ""
    times = [json.loads(run.stdout)["step_time_ns"] for run in (done, free)]
    assert times[0] == times[1]


def test_a_compiled_module_keeps_its_places(run, tmp_path):
    text = """HloModule compiled, is_scheduled=true

ENTRY %main (p: f32[1024,512]) -> f32[1024,512] {
  %p = f32[1024,512]{1,0} parameter(0)
  %a = f32[1024,512]{1,0:S(1)} negate(%p)
  %b = f32[1024,512]{1,0} cosine(%a)
  ROOT %c = f32[1024,512]{1,0} sine(%b)
}
"""
    (tmp_path / "compiled.hlo").write_text(text)
    (tmp_path / "free.hlo").write_text(text.replace(", is_scheduled=true", ""))
    on = ("compile", "--config", "v5e-1x1", "--emit", "schedule", "--passes=-fusion")
    compiled = run(*on, "compiled.hlo")
    assert "with arrays in VMEM or CMEM: they stay there" in compiled.stderr
    assert compiled.stdout.count("S(1)} negate(") == 1
    assert "S(1)} cosine(" not in compiled.stdout
    # The program's own: the rest is assigned beside it.
    free = run(*on, "free.hlo")
    assert free.stderr == ""
    assert "S(1)} negate(" in free.stdout
    assert "S(1)} cosine(" in free.stdout


def test_opt_takes_costs_of_kernels(run, rejects):
    # LAPACK's Cholesky, as XLA calls it on CPUs.
    on = ("opt", "--config", SLICE, COMPILED / "operations_compiled.hlo")
    assert "state it with --kernel-cost cholesky.0" in rejects(*on)
    assert run(*on, "--kernel-cost", "cholesky.0=1e6,1e3").returncode == 0


def test_opt_takes_stated_costs(run, rejects):
    """Stated costs are accepted; rematerialize/stated_costs.hlo has their effect."""
    module = TEXTS / "rematerialize" / "stated_costs.hlo"
    small = ("--set=chip.hbm.bytes=7MiB", "--set=chip.hbm.reserved_bytes=0")
    on = ("opt", "-c", "v5e-1x1", "--passes=rematerialize{percent=100}", *small, module)
    for cost, again in (("a=9us", "%b.remat"), ("[b]=9us", "%a.remat")):
        done = run(*on, "--cost", cost, "--cost", "?=2us")
        assert (done.returncode, done.stderr) == (0, "")
        assert f"  {again} = " in done.stdout
    done = run(*on, "--cost", "b=2us", "--cost", "x=1us", "--cost", "dot*=1us")
    assert done.returncode == 0
    assert done.stderr.splitlines() == [
        f"tpusim: warning: --cost {name}=...: no pass asked for a kernel, collective or transfer "
        "of this name"
        for name in ("x", "dot*")
    ]
    for wrong in ("p", "=1us", "p=1", "p=1e3,4", "p=0us", "p=1us,", "p=-1us"):
        assert "is not NAME=TIME or NAME=TIME,LATENCY" in rejects(*on, "--cost", wrong, code=2)
    rejects("run", module, "--cost", "p=1us", code=2)


def test_explain(run, rejects):
    on = ("compile", "--config", SLICE, example("mlp_two_layers"))
    done = run(*on, "--explain", "fusion")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("// decisions of fusion\n")
    assert " is computed in " in done.stdout
    assert "fusion" in rejects(*on, "--explain", "fuzion")


def test_explain_says_of_every_pass_what_it_did(run):
    on = ("compile", "--config", SLICE, example("mlp_two_layers"))
    done = run(*on, "--explain", "schedule", "--explain", "simplify", "--explain", "state-branches")
    assert done.stdout == (
        "// decisions of state-branches\nnone\n\n"
        "// decisions of simplify\nnone\n\n"
        "// decisions of schedule\nmain.1: 6 operations are in order\n\n"
    )
    json_ = json.loads(run(*on, "--explain", "schedule", "--json").stdout)
    assert "6 operations" in json_["dumps"][0]["text"]


def test_run_and_opt_explain(run, rejects, tmp_path):
    text = run("compile", "--emit", "partitioned", example("mlp_two_layers")).stdout
    module = tmp_path / "m.hlo"
    module.write_text(text)
    on = ("opt", "--config", SLICE, module, "--passes", "simplify,fusion")
    done = run(*on, "--explain", "fusion")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("// decisions of fusion\n")
    assert " is computed in " in done.stdout
    assert "--explain: no pass 'layout' runs" in rejects(*on, "--explain", "layout")

    report = tmp_path / "r.json"
    done = run(example("mlp_two_layers"), "--explain", "fusion", "--report", report)
    assert done.stdout.startswith("// decisions of fusion\n")
    assert "step time" in done.stdout
    decisions = [r for r in json.loads(report.read_text())["records"] if r["pass"] == "fusion"]
    inlined = next(d for d in decisions if d["reason"] == "fusion.inlined")
    assert inlined["action"] == "changed"
    assert inlined["values"]["less_us"] > 0
    assert inlined["text"].startswith(f"{inlined['subject']} is computed in ")
    assert inlined["text"] in done.stdout
    # A report that nothing was asked of has what is assumed, with ids, and no decisions.
    plain = json.loads(run(example("mlp_two_layers"), "--json").stdout)
    assert {r["action"] for r in plain["records"]} <= {"assumed", "warned"}
    assert [r["text"] for r in plain["records"] if r["action"] == "assumed"] == plain["assumptions"]


BRANCHES = """HloModule branches
short {
  ROOT a = f32[2048,2048] parameter(0)
}
long {
  b = f32[2048,2048] parameter(0)
  ROOT d = f32[2048,2048] dot(b, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
ENTRY main {
  x = f32[2048,2048] parameter(0)
  which = s32[] parameter(1)
  ROOT c = f32[2048,2048] conditional(which, x, x), branch_computations={short, long}
}
"""


def test_what_is_stated_is_in_the_module(run, rejects, tmp_path):
    module = tmp_path / "branches.hlo"
    module.write_text(BRANCHES)
    on = (module, "--config", "v5e-1x1", "--donate")
    times = {
        branch: json.loads(run(*on, "--branch", f"c={branch}", "--json").stdout)
        for branch in ("0", "1", "longest")
    }
    # 2 x 2048^3 FLOPs at 197 TFLOP/s are 87 us.
    assert times["1"]["step_time_ns"] == times["longest"]["step_time_ns"] > 87_000
    assert times["0"]["step_time_ns"] < 60_000
    assert times["0"]["flops"] == 0
    assert "takes branch 0, as stated" in times["0"]["assumptions"][0]
    assert times["0"]["records"][0]["reason"] == "lowering.branch-stated"

    # Every stage shows it, and a module that is read back needs no option.
    stated = ("--branch", "c=0")
    for stage in ("optimized", "schedule"):
        text = run("compile", *on, *stated, "--emit", stage).stdout
        assert 'tpusim.branch="0"' in text
        assert "buffer_donor={ (0, {}), (1, {}) }" in text
    written = tmp_path / "stated.hlo"
    text = run("opt", *on, *stated, "--passes", "simplify").stdout
    assert 'tpusim.branch="0"' in text
    written.write_text(text)
    again = json.loads(run(written, "--config", "v5e-1x1", "--json").stdout)
    for field in ("step_time_ns", "assumptions", "flops", "peak_hbm_bytes"):
        assert again[field] == times["0"][field], field
    # The last word is the user's.
    other = json.loads(run(written, "--config", "v5e-1x1", "--branch", "c=1", "--json").stdout)
    assert other["step_time_ns"] == times["1"]["step_time_ns"]

    wrong = ("--branch", "c=2", "--emit", "optimized")
    assert "has branches 0 to 1" in rejects("compile", *on, *wrong)
    unused = run("opt", *on, "--branch", "d=0", "--passes", "simplify")
    assert "--branch d=0 has no effect: its conditionals are c" in unused.stderr


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
