"""Sizes that are data: `--ragged`; and statements about what the program has not."""

import json
import pathlib
import subprocess
from collections.abc import Callable

import jax
import jax.numpy as jnp
import pytest
import tpusim
from jax.experimental.pallas.ops.tpu import megablox
from jax.sharding import PartitionSpec as P

from tests.conftest import BINARY
from tests.tools.command_line import SLICE, example


def exchange_by_size(block: jax.Array, sizes: jax.Array) -> jax.Array:
    """Every device sends runs of its 1024 rows to the four others of its row of the mesh."""
    begins = jnp.cumsum(sizes) - sizes
    return jax.lax.ragged_all_to_all(
        block, jnp.zeros_like(block), begins, sizes, begins, sizes, axis_name="x"
    )


@pytest.fixture
def ragged_exchange(tmp_path: pathlib.Path) -> pathlib.Path:
    mesh = jax.make_mesh((4, 2), ("x", "y"))
    by_size = jax.shard_map(
        exchange_by_size, mesh=mesh, in_specs=(P("x"), P()), out_specs=P("x"), check_vma=False
    )
    rows = jax.ShapeDtypeStruct(
        (4096, 512), jnp.bfloat16, sharding=jax.sharding.NamedSharding(mesh, P("x"))
    )
    sizes = jax.ShapeDtypeStruct((4,), jnp.int32, sharding=jax.sharding.NamedSharding(mesh, P()))
    path = tmp_path / "exchange.pb"
    tpusim.export(jax.jit(by_size), rows, sizes, path=path)
    return path


def test_ragged_exchange(run, report_of, ragged_exchange, tmp_path):
    row = 512 * 2

    def exchange(*options: object) -> tuple[dict, dict]:
        report = report_of(ragged_exchange, "--config", SLICE, *options)
        (found,) = report["collectives"]
        assert found["bound_ns"] <= found["total_ns"]
        return report, found

    report, equal = exchange()
    assert equal["bytes"] == 1024 * row
    assert any("equally large: their sizes are data" in a for a in report["assumptions"])
    _, stated = exchange("--ragged", "*=256,256,256,256")
    assert (stated["bytes"], stated["total_ns"]) == (equal["bytes"], equal["total_ns"])
    report, one = exchange("--ragged", "ragged*=1024,0,0,0")
    assert any("sends 1024, 0, 0, 0 rows" in a and "as stated" in a for a in report["assumptions"])
    assert one["bytes"] == 1024 * row
    # Three megabytes into one corner of a line: over one link, against half of that.
    assert one["total_ns"] > 1.5 * equal["total_ns"]
    _, few = exchange("--ragged", "*=0.05,0.05,0.05,0.1")
    assert few["bytes"] == pytest.approx(0.25 * 1024 * row, rel=0.01)
    assert few["total_ns"] < 0.6 * equal["total_ns"]


def test_ragged_exchange_fills_its_result(report_of, tmp_path):
    """1024 rows go into a result of 256: that many are sent, which is what arrives."""
    mesh = jax.make_mesh((4, 2), ("x", "y"))
    row = 512 * 2

    def exchange(room: int, *options: object) -> tuple[dict, dict]:
        def by_size(block: jax.Array, sizes: jax.Array) -> jax.Array:
            begins = jnp.cumsum(sizes) - sizes
            result = jnp.zeros((room, 512), block.dtype)
            return jax.lax.ragged_all_to_all(
                block, result, begins, sizes, begins, sizes, axis_name="x"
            )

        mapped = jax.shard_map(
            by_size, mesh=mesh, in_specs=(P("x"), P()), out_specs=P("x"), check_vma=False
        )
        sharding = jax.sharding.NamedSharding(mesh, P("x"))
        rows = jax.ShapeDtypeStruct((4096, 512), jnp.bfloat16, sharding=sharding)
        whole = jax.sharding.NamedSharding(mesh, P())
        sizes = jax.ShapeDtypeStruct((4,), jnp.int32, sharding=whole)
        path = tmp_path / f"{room}.pb"
        tpusim.export(jax.jit(mapped), rows, sizes, path=path)
        report = report_of(path, "--config", SLICE, *options)
        (found,) = report["collectives"]
        assert found["bound_ns"] <= found["total_ns"]
        return report, found

    def says_cap(report: dict) -> bool:
        return any(
            "of its 1024 rows, as many as its result holds" in a for a in report["assumptions"]
        )

    report, small = exchange(256)
    assert small["bytes"] == 256 * row
    assert says_cap(report)
    assert any("equally large" in a for a in report["assumptions"])
    report, stated = exchange(256, "--ragged", "*=64,64,64,64")
    assert (stated["bytes"], stated["total_ns"]) == (small["bytes"], small["total_ns"])
    assert not says_cap(report)
    report, uniform = exchange(256, "--ragged", "*=uniform")
    assert uniform["bytes"] == small["bytes"]
    assert says_cap(report)
    for room in (1024, 2048):
        report, large = exchange(room)
        assert large["bytes"] == 1024 * row
        assert large["total_ns"] > small["total_ns"]
        assert not says_cap(report)


@pytest.fixture
def ragged_products(tmp_path: pathlib.Path) -> pathlib.Path:
    """Tokens over x, the columns of eight experts over y: 2048 rows on a device."""
    auto = (jax.sharding.AxisType.Auto,) * 2
    mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=auto)

    def array(shape: tuple[int, ...], dtype: object, *spec: str | None) -> jax.ShapeDtypeStruct:
        sharding = jax.sharding.NamedSharding(mesh, P(*spec))
        return jax.ShapeDtypeStruct(shape, dtype, sharding=sharding)

    path = tmp_path / "products.pb"
    tpusim.export(
        jax.jit(jax.lax.ragged_dot),
        array((8192, 1024), jnp.bfloat16, "x"),
        array((8, 1024, 2048), jnp.bfloat16, None, None, "y"),
        array((8,), jnp.int32),
        path=path,
    )
    return path


def test_ragged_dot(rejects, report_of, ragged_products):
    on = ("--config", SLICE)

    def dot(*options: object) -> tuple[dict, dict]:
        report = report_of(ragged_products, *on, *options)
        return report, next(op for op in report["ops"] if op["flops"] > 1e6)

    report, equal = dot()
    assert any("equally large" in a and "--ragged" in a for a in report["assumptions"])
    assert equal["flops"] == pytest.approx(2 * 2048 * 1024 * 1024, rel=0.01)
    _, stated = dot("--ragged", "*=" + ",".join(["1024"] * 8))
    # Each device has rows of two groups only, and reads two matrices instead of eight.
    saved = equal["hbm_bytes"] - stated["hbm_bytes"]
    assert saved == pytest.approx(6 * 1024 * 1024 * 2, rel=1e-3)
    assert stated["flops"] == equal["flops"]
    assert stated["total_ns"] < equal["total_ns"]
    report, few = dot("--ragged", "ragged*=128,64,0,0,0,0,0,0")
    assert any("128, 64, 0, 0, 0, 0, 0, 0 rows" in a for a in report["assumptions"])
    assert few["flops"] == pytest.approx(2 * 192 * 1024 * 1024, rel=0.01)
    assert few["total_ns"] < 0.5 * stated["total_ns"]
    assert report["mfu"] <= 1
    message = rejects(*on, ragged_products, "--ragged", "*=1,2,3")
    assert "3 sizes for" in message
    assert "8 groups" in message


def test_ragged_without_effect_is_a_warning(run):
    done = run("--config", SLICE, example("psum"), "--ragged", "ragged-dot.1=1,2")
    assert done.returncode == 0
    assert done.stderr == (
        "tpusim: warning: --ragged ragged-dot.1 has no effect: the program has no ragged "
        "operation\n"
    )


@pytest.mark.parametrize("text", ["x", "x=", "=1,2", "x=1,,2", "x=-1", "x=0.9,0.9", "x=a"])
def test_ragged_syntax(run, text):
    done = run("--config", SLICE, example("psum"), "--ragged", text)
    assert done.returncode == 2
    assert "is not NAME=SIZE,SIZE" in done.stderr


@pytest.mark.parametrize(
    ("option", "says"),
    [
        (
            ("--branch", "conditional.9=1"),
            "--branch conditional.9=1 has no effect: the program has",
        ),
        (("--kernel-cost", "flash*=1,2"), "--kernel-cost flash* has no effect: the program has no"),
    ],
)
def test_statement_without_effect_is_a_warning(run, option, says):
    done = run("--config", SLICE, example("psum"), *option)
    assert done.returncode == 0
    assert says in done.stderr


def _there_and_back(
    rows: jax.Array, sizes: jax.Array, work: Callable[[jax.Array], jax.Array]
) -> jax.Array:
    """Brings rows to where their experts are, room for 4096, works on them, brings them back."""
    begins = jnp.cumsum(sizes) - sizes
    there = jnp.zeros((4096, 512), rows.dtype)
    brought = jax.lax.ragged_all_to_all(rows, there, begins, sizes, begins, sizes, axis_name="x")
    back = jnp.zeros_like(rows)
    return jax.lax.ragged_all_to_all(
        work(brought), back, begins, sizes, begins, sizes, axis_name="x"
    )


@pytest.fixture
def routed_experts(tmp_path: pathlib.Path) -> pathlib.Path:
    """Four devices hold two experts each: 1024 rows of each go there, are multiplied, come back."""
    mesh = jax.make_mesh((4, 2), ("x", "y"))

    def layer(
        rows: jax.Array, weights: jax.Array, groups: jax.Array, sizes: jax.Array
    ) -> jax.Array:
        return _there_and_back(rows, sizes, lambda x: jax.lax.ragged_dot(x, weights, groups))

    mapped = jax.shard_map(
        layer,
        mesh=mesh,
        in_specs=(P("x"), P("x"), P("x"), P()),
        out_specs=P("x"),
        check_vma=False,
    )

    def array(shape: tuple[int, ...], dtype: object, *spec: str) -> jax.ShapeDtypeStruct:
        sharding = jax.sharding.NamedSharding(mesh, P(*spec))
        return jax.ShapeDtypeStruct(shape, dtype, sharding=sharding)

    path = tmp_path / "experts.pb"
    tpusim.export(
        jax.jit(mapped),
        array((4096, 512), jnp.bfloat16, "x"),
        array((8, 512, 512), jnp.bfloat16, "x"),
        array((8,), jnp.int32, "x"),
        array((4,), jnp.int32),
        path=path,
    )
    return path


def _dot(report: dict) -> dict:
    return max(report["ops"], key=lambda op: op["flops"])


def test_routing(run, report_of, routed_experts, tmp_path):
    def routed(routing: str) -> dict:
        return report_of(routed_experts, "--config", SLICE, "--routing", routing)

    plain = report_of(routed_experts, "--config", SLICE)
    # Each device gets as many rows as it sends, though it has room for those of all.
    assert _dot(plain)["flops"] == pytest.approx(2 * 1024 * 512 * 512, rel=0.01)
    assert any("1024 of its 4096 rows" in a for a in plain["assumptions"])
    uniform = routed("uniform")
    for report in (plain, uniform):
        del report["command_line"]
    assert uniform == plain

    path = tmp_path / "counts.json"
    path.write_text("[[100, 100, 100, 100, 100, 100, 100, 100]]")
    even = routed(str(path))
    assert even["step_time_ns"] == pytest.approx(plain["step_time_ns"], rel=0.01)
    assert even["routing"]["imbalance"] == 1
    path.write_text("[[0, 0, 0, 0, 300, 100, 0, 0]]")
    one = routed(str(path))
    assert one["routing"]["hot_device"] == 2
    assert one["routing"]["imbalance"] == 4
    assert one["routing"]["dropped_percent"] == 0
    assert one["routing"]["balanced_step_time_ns"] == plain["step_time_ns"]
    assert _dot(one)["flops"] == pytest.approx(4 * 2 * 1024 * 512 * 512, rel=0.01)
    zipf = routed("zipf:1.1")
    # Ranks 0 and 4 are on device 0.
    shares = [rank**-1.1 for rank in range(1, 9)]
    imbalance = 4 * (shares[0] + shares[4]) / sum(shares)
    assert zipf["routing"]["imbalance"] == pytest.approx(imbalance)
    assert plain["step_time_ns"] < zipf["step_time_ns"] < one["step_time_ns"]
    summary = run(routed_experts, "--config", SLICE, "--routing", "zipf:1.1").stdout
    assert "zipf:1.1: device 0 of its group gets 1.86 times the mean" in summary


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[[1, 2, 3]]", "layer 0 has 3 counts, expected are 8"),
        ("[[1, 1, 1, 1, 1, 1, 1, 1], [1]]", "layer 1 has 1 counts, expected are 8"),
        ("[[1, 1, 1, -1, 1, 1, 1, 1]]", "layer 0: -1 of expert 3 is no whole number"),
        ("[[1, 1.5, 1, 1, 1, 1, 1, 1]]", "layer 0: 1.5 of expert 1 is no whole number"),
        ("[[0, 0]]", "layer 0 routes no row"),
        ("{}", "is no JSON list of layers"),
        ("[[1", "is no JSON list of layers"),
    ],
)
def test_routing_files_that_are_wrong(run, routed_experts, tmp_path, text, says):
    path = tmp_path / "counts.json"
    path.write_text(text)
    done = run("--config", SLICE, routed_experts, "--routing", path)
    # A file that no program could mean is a wrong option, other experts are an error of this one.
    assert done.returncode == 2
    assert says in done.stderr


def test_routing_and_workload_may_be_pipes(report_of, routed_experts, tmp_path):
    path = tmp_path / "counts.json"
    path.write_text("[[1, 1, 1, 1, 3, 1, 1, 1]]")
    expected = report_of(routed_experts, "--config", SLICE, "--routing", str(path))
    done = subprocess.run(
        f"'{BINARY}' run - --config {SLICE} --json --routing <(cat '{path}') < '{routed_experts}'",
        shell=True,
        executable="/bin/bash",
        capture_output=True,
        text=True,
        check=True,
    )
    read = json.loads(done.stdout)
    assert read["step_time_ns"] == expected["step_time_ns"]
    for figure in ("hot_device", "imbalance", "balanced_step_time_ns"):
        assert read["routing"][figure] == expected["routing"][figure]


def test_routing_without_effect_is_a_warning(run):
    done = run("--config", SLICE, example("psum"), "--routing", "zipf:1")
    assert done.returncode == 0
    assert "--routing zipf:1 has no effect: the program has no ragged operation" in done.stderr
    for text in ("zipf:", "zipf:-1", "zipf:nan", "steep"):
        assert run("--config", SLICE, example("psum"), "--routing", text).returncode == 2


def _grouped_product(rows: jax.Array, weights: jax.Array, sizes: jax.Array) -> jax.Array:
    return megablox.gmm(rows, weights, sizes, jnp.bfloat16, tiling=(128, 512, 512))


@pytest.fixture
def routed_kernels(tmp_path: pathlib.Path) -> pathlib.Path:
    """Three layers of megablox's gmm, each with rows that an exchange brings: room for 4096."""
    mesh = jax.make_mesh((4, 2), ("x", "y"))

    def layer(
        rows: jax.Array, weights: jax.Array, groups: jax.Array, sizes: jax.Array
    ) -> jax.Array:
        return _there_and_back(
            rows,
            sizes,
            lambda x: _grouped_product(_grouped_product(x, weights, groups), weights, groups),
        )

    def layers(
        rows: jax.Array, weights: jax.Array, groups: jax.Array, sizes: jax.Array
    ) -> jax.Array:
        for n in range(3):
            rows = layer(rows, weights, groups[n], sizes[n])
        return rows

    mapped = jax.shard_map(
        layers,
        mesh=mesh,
        in_specs=(P("x"), P("x"), P(None, "x"), P()),
        out_specs=P("x"),
        check_vma=False,
    )

    def array(shape: tuple[int, ...], dtype: object, *spec: str | None) -> jax.ShapeDtypeStruct:
        sharding = jax.sharding.NamedSharding(mesh, P(*spec))
        return jax.ShapeDtypeStruct(shape, dtype, sharding=sharding)

    path = tmp_path / "kernels.pb"
    tpusim.export(
        jax.jit(mapped),
        array((4096, 512), jnp.bfloat16, "x"),
        array((8, 512, 512), jnp.bfloat16, "x"),
        array((3, 8), jnp.int32, None, "x"),
        array((3, 4), jnp.int32),
        path=path,
    )
    return path


def _steps(report: dict) -> list[str]:
    """Returns what the report says of the steps of grouped products, without their names."""
    return [a[a.index(" takes ") + 1 :] for a in report["assumptions"] if " steps, as " in a]


def test_routing_of_kernels(run, report_of, routed_kernels, tmp_path):
    """Groups of a Pallas kernel are data as well: tiles of the hot device's rows are its grid."""

    def routed(*options: object) -> dict:
        return report_of(routed_kernels, "--config", SLICE, *options)

    plain, uniform = routed(), routed("--routing", "uniform")
    # 1024 rows in two groups: 448 to 576, so that no group ends with one of the tiles of 128.
    assert _steps(plain) == ["takes 9 steps, as 2 groups of 448 to 576 rows make them"]
    brought = [a for a in plain["assumptions"] if "has 1024 of its 4096 rows" in a]
    assert len(brought) == 1
    assert "(as 5 more)" in brought[0]
    for report in (plain, uniform):
        del report["command_line"]
    assert uniform == plain

    zipf = routed("--routing", "zipf:1.1")
    # Ranks 0 and 4 are on device 0. Shares of 1 and 5^-1.1 of the sum, 2.5115, of all 4096 rows:
    # 1631 and 278. Tiles 0 to 12, and 12 to 14.
    assert _steps(zipf) == ["takes 16 steps, as 2 groups of 278 to 1631 rows make them"]
    assert zipf["routing"]["hot_device"] == 0
    assert zipf["routing"]["imbalance"] == pytest.approx(1.8638, abs=1e-4)
    assert zipf["routing"]["balanced_step_time_ns"] == plain["step_time_ns"]
    assert zipf["step_time_ns"] > plain["step_time_ns"]

    path = tmp_path / "counts.json"
    path.write_text("[[5, 5, 5, 5, 5, 5, 5, 5]]")
    even = routed("--routing", path)
    assert _steps(even) == _steps(plain)
    # Experts 4 and 5 of device 2 get 3/4 and 1/4 of 4096 rows in the second layer, one of device 0
    # all of them in the third.
    path.write_text("[[1,1,1,1,1,1,1,1], [0,0,0,0,3,1,0,0], [0,1,0,0,0,0,0,0]]")
    layers = routed("--routing", path)
    assert sorted(_steps(layers)) == [
        "takes 32 steps, as 2 groups of 0 to 4096 rows make them",
        "takes 33 steps, as 2 groups of 960 to 3136 rows make them",
        "takes 9 steps, as 2 groups of 448 to 576 rows make them",
    ]
    assert layers["routing"]["imbalance"] == 4
    path.write_text("[[1,1,1,1,1,1,1,1], [1,1,1]]")
    done = run(routed_kernels, "--config", SLICE, "--routing", path)
    assert done.returncode == 2
    assert "layer 1 has 3 counts, expected are 8" in done.stderr
    path.write_text("[[1,1,1,1,1,1,1,1], [1,1,1,1,1,1,1,1]]")
    done = run(routed_kernels, "--config", SLICE, "--routing", path)
    assert done.returncode == 2
    assert "2 layers, expected are 3" in done.stderr


def test_sizes_of_a_kernel(run, report_of, routed_kernels):
    def stated(*options: object) -> dict:
        return report_of(routed_kernels, "--config", SLICE, *options)

    sizes = stated("--ragged", "pallas_call*=1024,1024", "--routing", "zipf:1.1")
    assert _steps(sizes) == ["takes 16 steps, as 2 groups of 1024 to 1024 rows make them"]
    # Of all devices: the third has most, whose groups share tile 7 of 16.
    sizes = stated("--ragged", "pallas_call*=0,0,100,100,1000,1000,0,0")
    assert _steps(sizes) == ["takes 17 steps, as 2 groups of 1000 to 1000 rows make them"]
    on = (routed_kernels, "--config", SLICE)
    done = run(*on, "--ragged", "pallas_call*=1,2,3")
    assert done.returncode == 1
    assert "which has 2 groups on a device" in done.stderr
    done = run(*on, "--ragged", "pallas_call*=4096,1")
    assert "sizes add up to 4097 rows" in done.stderr
    # A count of steps, or a cost, is what counts then.
    for option in (("--trip-count", "kernel/grid.1=7"), ("--kernel-cost", "*=1e9,1e6")):
        assert _steps(stated(*option, "--routing", "zipf:1.1")) == []


def test_kernels_of_groups_that_are_elsewhere(report_of, tmp_path):
    """Each device has all rows, the tables of eight groups, and the matrices of two of them."""
    mesh = jax.make_mesh((4, 2), ("x", "y"))

    def products(rows: jax.Array, weights: jax.Array, sizes: jax.Array) -> jax.Array:
        first = (2 * jax.lax.axis_index("x")).astype(jnp.int32)
        done = megablox.gmm(
            rows, weights, sizes, jnp.float32, tiling=(128, 512, 512), group_offset=first
        )
        return jax.lax.psum(done, "x")

    mapped = jax.shard_map(
        products, mesh=mesh, in_specs=(P(), P("x"), P()), out_specs=P(), check_vma=False
    )
    shapes = [((8192, 512), jnp.bfloat16, P()), ((8, 512, 512), jnp.bfloat16, P("x"))]
    arrays = [
        jax.ShapeDtypeStruct(shape, dtype, sharding=jax.sharding.NamedSharding(mesh, spec))
        for shape, dtype, spec in [*shapes, ((8,), jnp.int32, P())]
    ]
    path = tmp_path / "elsewhere.pb"
    tpusim.export(jax.jit(mapped), *arrays, path=path)
    on = ("--config", SLICE)
    # A quarter of 64 tiles, and the one that the two groups share.
    (equal,) = _steps(report_of(path, *on))
    assert equal.startswith("takes 17 steps, as 2 groups of about equal size make them")
    # 3262 rows in tiles 0 to 25, 555 in tiles 25 to 29.
    routed = report_of(path, *on, "--routing", "zipf:1.1")
    assert _steps(routed) == ["takes 31 steps, as 2 groups of 555 to 3262 rows make them"]
    assert routed["routing"]["imbalance"] == pytest.approx(1.8638, abs=1e-4)
