"""Policy values of the TPU compiler: they can be listed and set."""

import json
import pathlib
import re

import jax
import jax.numpy as jnp
import pytest
import tpusim
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from tests.tools.command_line import example

FILE = pathlib.Path(__file__).parents[2] / "configs" / "compilers" / "libtpu-0.0.42.json"
NEWEST = sorted(path.stem for path in FILE.parent.glob("libtpu-*.json"))[-1]
MOST_MEMBERS = "compiler.windowed_einsum_most_members=8"


@pytest.mark.parametrize("chip", ["v2", "v5e", "v6e", "v7x"])
def test_every_value_is_shown_with_what_is_known_of_it(run, chip):
    rows = json.loads(FILE.read_text())["values"]
    shown = run("configs", chip, "--compiler").stdout
    assert max(map(len, shown.splitlines())) <= 120
    blocks = {
        match[1]: match[2]
        for match in re.finditer(r"^compiler\.(\w+) = (.*\n(?: .*\n)+)", shown, re.MULTILINE)
    }
    assert list(blocks) == list(rows)
    for name, row in rows.items():
        for what in ("source", "bracket", "flag"):
            assert re.search(rf"^    {what}: +\S", blocks[name], re.MULTILINE), (name, what)
        if "flag" in row:
            assert f"--{row['flag']}\n" in blocks[name]
        if row["unit"] not in ("flag", "word"):
            assert blocks[name].split("\n")[0].endswith(f" {row['unit']}"), name
    assert "note:" not in shown
    assert "note:" in run("configs", chip, "--compiler", "--verbose").stdout


def test_json_has_the_same(run):
    (chip,) = json.loads(run("configs", "v4", "--compiler", "--json").stdout)["chips"]
    assert (chip["name"], chip["compiler"]) == ("v4", NEWEST)
    rows = {row["name"]: row for row in chip["parameters"]}
    values = [f"compiler.{name}" for name in json.loads(FILE.read_text())["values"]]
    assert [name for name in rows if not name.startswith("instructions.")] == values
    row = rows["compiler.windowed_flops_per_byte"]
    assert (row["value"], row["unit"]) == ("2080", "flops_per_byte")
    assert row["bracket"] == "between 1024 and 1536 for half of the rate"
    assert rows["compiler.gathers_in_flight"]["source"].startswith("borrowed from v5p")
    assert rows["compiler.gathers_in_flight"]["flag"] == "xla_enable_async_all_gather"
    assert rows["instructions.widen.f16"]["value"] == "15 VALU"
    assert "f16 to f32" in rows["instructions.widen.f16"]["source"]
    (plain,) = json.loads(run("configs", "v4", "--json").stdout)["chips"]
    assert not any(
        row["name"].startswith(("compiler.", "instructions.")) for row in plain["parameters"]
    )


def gathered(path: pathlib.Path, sizes: tuple[int, ...]) -> pathlib.Path:
    """Rows times weights, both split over the first axis; the weights are gathered."""
    mesh = AbstractMesh(sizes, ("a", "b")[: len(sizes)], (AxisType.Auto,) * len(sizes))
    rows, contracted = NamedSharding(mesh, P("a")), NamedSharding(mesh, P("a", None))
    x = jax.ShapeDtypeStruct((4096 * sizes[0], 4096), jnp.bfloat16, sharding=rows)
    w = jax.ShapeDtypeStruct((4096, 2048), jnp.bfloat16, sharding=contracted)
    tpusim.export(
        jax.jit(jnp.dot, out_shardings=rows), x, w, path=path, config="v5e-4x4", name="gathered"
    )
    return path


@pytest.mark.parametrize(
    ("sizes", "windowed", "set_windowed"), [((4, 4), True, True), ((16,), True, False)]
)
def test_a_value_changes_the_programs_that_it_is_about(
    run, tmp_path, sizes, windowed, set_windowed
):
    program = gathered(tmp_path / "w.pb", sizes)

    def is_windowed(*options: str) -> bool:
        done = run("compile", "--emit", "optimized", str(program), *options)
        assert done.returncode == 0, done.stderr
        text = done.stdout
        assert ("collective-permute" in text) != ("all-gather" in text)
        return "collective-permute" in text

    assert is_windowed() == windowed
    assert is_windowed("--set", MOST_MEMBERS) == set_windowed
    # Where it changes nothing, that is said.
    done = run("--config", "v5e-4x4", str(program), "--set", MOST_MEMBERS)
    assert done.returncode == 0, done.stderr
    unused = "--set compiler.windowed_einsum_most_members has no effect: the program is compiled"
    assert (unused in done.stderr) == (windowed == set_windowed)


def test_flags_of_the_file_are_understood(run, tmp_path):
    """The fastest dimension of the gradients is summed in one all-reduce, or in several."""
    program = example("data_parallel_layers_large")

    def all_reduces(*options: str) -> int:
        done = run("compile", "--emit", "optimized", str(program), *options)
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        return len(re.findall(r" all-reduce(?:-start)?\(", done.stdout))

    together = all_reduces()
    assert all_reduces("--xla-flags", "--xla_jf_crs_combiner_threshold_count=1") > together
    assert all_reduces("--set", "compiler.all_reduce_combined_arrays=1") > together
    done = run("compile", str(program), "--xla-flags", "--xla_tpu_rwb_fusion=false", "-o", "x")
    assert "without effect here: xla_tpu_rwb_fusion" in done.stderr


def test_the_policy_is_that_of_the_module_s_compiler(run, tmp_path):
    def policy(*arguments: str) -> tuple[str, str]:
        done = run(*arguments, "--report", str(tmp_path / "r.json"))
        assert done.returncode == 0, done.stderr
        found = re.findall("^compiler +policy of (.*)$", done.stdout, re.MULTILINE)
        return json.loads((tmp_path / "r.json").read_text())["compiler"], "".join(found)

    module = FILE.parents[2] / "tests/data/compiled/v5e-1x1/softmax_f32.pb.gz"
    assert tpusim.Workload.load(module).compilation.libtpu_version == "0.0.42.1"
    assert policy(str(module)) == ("libtpu-0.0.42", "libtpu-0.0.42")
    # The newest is not said.
    assert policy(str(module), "--compiler", NEWEST) == (NEWEST, "")
    program = example("psum")
    assert policy(str(program)) == (NEWEST, "")
    assert policy(str(program), "--compiler", "libtpu-0.0.42") == (FILE.stem, FILE.stem)
    none = run(str(program), "--compiler", "libtpu-0.0.1")
    assert none.returncode == 2
    assert f"libtpu-0.0.1 not in {{libtpu-0.0.42,{NEWEST}}}" in none.stderr


def test_what_is_no_value_is_said(rejects):
    program = example("psum")
    assert "the nearest is compiler.loop_weight" in rejects(
        "--config", "v5e-4x2", program, "--set", "compiler.loop_wait=3"
    )
    assert '"maybe" is not false or true' in rejects(
        "--config", "v5e-4x2", program, "--set", "compiler.products_in_vmem=maybe"
    )
    assert "--xla_jf_crs_combiner_threshold_count=many: a whole number from 1" in rejects(
        "--config", "v5e-4x2", program, "--xla-flags", "--xla_jf_crs_combiner_threshold_count=many"
    )


def test_completion_knows_them(run):
    assert "compiler.windowed_einsum_most_members=" in run("completion", "bash").stdout
