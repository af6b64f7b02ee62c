"""Programs in StableHLO: the report of the function that they were lowered from, or one line."""

import gzip
import json
import os
import pathlib
import re
import subprocess
import sys
from typing import Any

import jax
import jax.numpy as jnp
import pytest
import tpusim
import tpusim.export
from jax import export
from tpusim import exporter, stablehlo, stablehlo_files

from workloads.examples import EXAMPLES

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Constraints, explicit axes, shard_map, loops over layers, memory of the host.
PROGRAMS = (
    "contract_constrained_output",
    "layers_explicit",
    "layers_manual",
    "residual_mlp_train_scan_fully_sharded",
    "weights_from_host",
)


@pytest.fixture(autouse=True)
def _simulator(binary: str) -> None:
    """Every test needs it."""


def tpu_lowered(name: str) -> jax.stages.Lowered:
    step, arguments = EXAMPLES[name]()
    return step.trace(*arguments).lower(lowering_platforms=("tpu",))


def bytecode_of(lowered: jax.stages.Lowered) -> bytes:
    return stablehlo.mlir.bytecode(lowered.compiler_ir("stablehlo"))


@pytest.mark.parametrize("name", PROGRAMS)
def test_same_report_as_the_function(name: str, tmp_path: pathlib.Path):
    example = EXAMPLES[name]
    step, arguments = example()
    given: dict[str, Any] = {"config": example.config, "trip_counts": dict(example.trip_counts)}
    expected = tpusim.simulate(step, *arguments, **given)
    lowered = tpu_lowered(name)
    exported = export.export(step, platforms=["tpu"])(*arguments)
    text = lowered.as_text(debug_info=True)
    assert tpusim.simulate(lowered, **given).text == expected.text
    assert tpusim.simulate(text, **given).text == expected.text
    assert tpusim.simulate(bytecode_of(lowered), **given).text == expected.text
    assert tpusim.simulate(exported, **given).step_time_ns == expected.step_time_ns
    files = {
        "step.mlir": text.encode(),
        "step.mlir.gz": gzip.compress(text.encode()),
        "step.mlirbc": bytecode_of(lowered),
    }
    for file, data in files.items():
        (tmp_path / file).write_bytes(data)
        assert tpusim.simulate(tmp_path / file, **given).text == expected.text, file
    # Without locations operations have other names, and take the same time.
    bare = tpusim.simulate(lowered.as_text(), **given)
    assert bare.step_time_ns == expected.step_time_ns
    assert bare.peak_hbm_bytes == expected.peak_hbm_bytes


@pytest.mark.parametrize("name", ["layers_explicit", "layers_manual", "weights_from_host"])
def test_serialised_exports(name: str, tmp_path: pathlib.Path):
    pytest.importorskip("flatbuffers")
    step, arguments = EXAMPLES[name]()
    exported = export.export(step, platforms=["tpu"])(*arguments)
    data = bytes(exported.serialize())
    artifact = stablehlo_files.artifact_of(data)
    assert artifact is not None
    assert artifact.module == exported.mlir_module_serialized
    assert artifact.name == exported.fun_name
    assert artifact.num_devices == exported.nr_devices == EXAMPLES[name].num_devices
    assert artifact.platforms == ("tpu",)
    (tmp_path / "step.bin").write_bytes(data)
    assert stablehlo_files.holds(tmp_path / "step.bin")
    in_memory, of_file = (
        exporter.exported(p, (), {}) for p in (exported, str(tmp_path / "step.bin"))
    )
    assert of_file == in_memory


def test_damaged_exports(tmp_path: pathlib.Path):
    pytest.importorskip("flatbuffers")
    exported = export.export(jax.jit(jnp.sin))(jax.ShapeDtypeStruct((8,), jnp.float32))
    data = bytes(exported.serialize())
    start = data.index(stablehlo_files.BYTECODE)
    file = tmp_path / "step.bin"
    for length in range(start + 4, len(data) - 1, 97):
        file.write_bytes(data[:length])
        assert stablehlo_files.holds(file)
        with pytest.raises(tpusim.Error, match=r"step.bin: .*(cut short or damaged|is not read)"):
            exporter.exported(file, (), {})


GSPMD = """
module @jit_f {
  func.func public @main(%arg0: tensor<8x16xf32> {jax.arg_info = "x", mhlo.sharding = "{devices=[4,1]<=[4]}"}) -> tensor<8x16xf32> {
    %0 = stablehlo.custom_call @Sharding(%arg0) {mhlo.sharding = "{devices=[4,1]<=[4]}"} : (tensor<8x16xf32>) -> tensor<8x16xf32>
    %1 = stablehlo.custom_call @SPMDFullToShardShape(%0) {mhlo.sharding = "{manual}"} : (tensor<8x16xf32>) -> tensor<2x16xf32>
    BODY
    %6 = stablehlo.custom_call @Sharding(%5) {mhlo.sharding = "{manual}"} : (tensor<2x16xf32>) -> tensor<2x16xf32>
    %7 = stablehlo.custom_call @SPMDShardToFullShape(%6) {mhlo.sharding = "{devices=[4,1]<=[4]}"} : (tensor<2x16xf32>) -> tensor<8x16xf32>
    return %7 : tensor<8x16xf32>
  }
FUNCTION}
"""  # noqa: E501
SHIFTED = """%2 = stablehlo.constant dense<2.0> : tensor<2x16xf32>
    %3 = stablehlo.multiply VALUE, %2 : tensor<2x16xf32>
    %5 = "stablehlo.collective_permute"(%3) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, source_target_pairs = dense<[[0, 1], [1, 2], [2, 3], [3, 0]]> : tensor<4x2xi64>}> : (tensor<2x16xf32>) -> tensor<2x16xf32>"""  # noqa: E501


def test_shard_map_in_place_is_that_of_a_call():
    """The older partitioner's markers, with the body between them or in a function."""
    in_place = GSPMD.replace("BODY", SHIFTED.replace("VALUE", "%1")).replace("FUNCTION", "")
    call = "%5 = call @body(%1) : (tensor<2x16xf32>) -> tensor<2x16xf32>"
    function = (
        "  func.func private @body(%arg0: tensor<2x16xf32>) -> tensor<2x16xf32> {\n    "
        + SHIFTED.replace("VALUE", "%arg0")
        + "\n    return %5 : tensor<2x16xf32>\n  }\n"
    )
    called = GSPMD.replace("BODY", call).replace("FUNCTION", function)
    workloads = [exporter.exported(text, (), {}) for text in (in_place, called)]
    assert [w.num_partitions for w in workloads] == [4, 4]
    reports = [tpusim.simulate(w, config="v5e-2x2") for w in workloads]
    assert reports[0].step_time_ns == reports[1].step_time_ns
    assert [len(r.collectives) for r in reports] == [1, 1]
    assert "x.1" in reports[0].text, "the argument has the name that an attribute says"


REPLICAS = """
module @pmap_step attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 4 : i32} {
  func.func public @main(%arg0: tensor<256x512xf32>) -> (tensor<256x512xf32>, tensor<ui32>) {
    %0 = "stablehlo.all_reduce"(%arg0) <{ATTRIBUTES}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %3 = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %3 : tensor<f32>
    }) : (tensor<256x512xf32>) -> tensor<256x512xf32>
    %1 = stablehlo.replica_id : tensor<ui32>
    return %0, %1 : tensor<256x512xf32>, tensor<ui32>
  }
}
"""


@pytest.mark.parametrize("channel", [False, True])
@pytest.mark.parametrize("groups", [((0, 1, 2, 3),), ((0, 1), (2, 3))])
def test_replicas_are_devices(groups: tuple[tuple[int, ...], ...], channel: bool):
    rows = str([list(group) for group in groups])
    attributes = f"replica_groups = dense<{rows}> : tensor<{len(groups)}x{len(groups[0])}xi64>"
    if channel:
        attributes += ", channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>"
    workload = exporter.exported(REPLICAS.replace("ATTRIBUTES", attributes), (), {})
    assert (workload.name, workload.num_partitions) == ("step", 4)
    assert b"replica-id" not in workload.hlo_module
    report = tpusim.simulate(workload, config="v5e-2x2")
    (collective,) = json.loads(report.text)["collectives"]
    assert collective["group_size"] == len(groups[0])


def test_replicas_and_partitions_are_refused():
    text = REPLICAS.replace("ATTRIBUTES", "replica_groups = dense<0> : tensor<1x1xi64>")
    text = text.replace("num_partitions = 1", "num_partitions = 2")
    with pytest.raises(tpusim.Error, match="4 replicas of 2 partitions"):
        exporter.exported(text, (), {})


def test_branch_of_the_platform():
    """Programs for several platforms run what they have for TPUs."""

    def of_platform(x: jax.Array) -> jax.Array:
        return jax.lax.platform_dependent(x, tpu=lambda x: x @ x, default=lambda x: x @ (x @ x))

    shape = jax.ShapeDtypeStruct((256, 256), jnp.bfloat16)

    def exported(*platforms: str) -> Any:
        return export.export(jax.jit(of_platform), platforms=platforms)(shape)

    expected, several, other = (
        tpusim.simulate(exported(*platforms), config="v5e-1")
        for platforms in (("tpu",), ("cpu", "tpu", "cuda"), ("cpu",))
    )
    assert several.flops == expected.flops == 2 * 256**3
    assert other.flops == 2 * expected.flops
    assert not any("lowered for" in said for said in several.assumptions)
    assert any("lowered for cpu" in said for said in other.assumptions)
    with pytest.raises(tpusim.Error, match="for several platforms"):
        tpusim.simulate(str(exported("cpu", "tpu").mlir_module()), config="v5e-1")


def test_products_of_64_bit_integers():
    """Each word of int32 meets each of the other operand."""
    text = """module {
  func.func @main(%a: tensor<2048x2048xi32>) -> tensor<2048x2048xi32> {
    %0 = stablehlo.dot_general %a, %a, contracting_dims = [1] x [0] :
        (tensor<2048x2048xi32>, tensor<2048x2048xi32>) -> tensor<2048x2048xi32>
    return %0 : tensor<2048x2048xi32>
  }
}"""
    words, doubled = (
        tpusim.simulate(text.replace("i32", kind), config="v5e-1") for kind in ("i32", "i64")
    )
    assert doubled.critical_path_ns.mxu == pytest.approx(4 * words.critical_path_ns.mxu, rel=0.05)


def test_lines_of_text_are_sources(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    step = jax.jit(lambda x: x @ x)
    text = step.lower(jax.ShapeDtypeStruct((256, 256), jnp.bfloat16)).as_text()
    pathlib.Path("step.mlir").write_text(text)
    line = next(n for n, row in enumerate(text.splitlines(), 1) if "dot_general" in row)
    assert f'"source": "step.mlir:{line}"' in tpusim.simulate("step.mlir", config="v5e-1").text


def module(body: str) -> str:
    return f"module {{\n  func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {{\n{body}\n  }}\n}}"


@pytest.mark.parametrize(
    ("program", "said"),
    [
        (module("    %0 = stablehlo.twist %a : tensor<4xf32>"), "line 3: .*stablehlo.twist"),
        (module("    %0 = torch.add %a : tensor<4xf32>"), "line 3: .*torch.add"),
        (
            module("    %0 = arith.negf %a : tensor<4xf32>\n    return %0 : tensor<4xf32>"),
            "has no HLO: line 3: .*arith.negf",
        ),
        (module("    return %a : tensor<4xf32>").replace("main", "f"), "no function @main"),
        (module("    return %a : tensor<4xf32>").replace("<4x", "<?x"), "argument 0 of main is"),
        (b"HloModule f", "this is no StableHLO"),
        (b"ML\xefR\rStableHLO_v99.0.0\0", "bytecode that StableHLO_v99.0.0 wrote is not read"),
    ],
)
def test_refused_in_one_line(program: str | bytes, said: str):
    with pytest.raises(tpusim.Error, match=said) as refused:
        tpusim.simulate(program, config="v5e-1")
    assert "\n" not in str(refused.value)


def test_arguments_of_functions_are_refused():
    lowered = tpu_lowered("contract_constrained_output")
    with pytest.raises(TypeError, match="arguments, compiled: the program is lowered already"):
        tpusim.export(lowered, 1, path=None, compiled=True)


def ran(*words: str | pathlib.Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", *map(str, words)]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "tools" / "python")}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_commands(tmp_path: pathlib.Path, binary: str):
    lowered = tpu_lowered("layers_manual")
    program, workload = tmp_path / "layers.mlir", tmp_path / "layers.pb"
    program.write_text(lowered.as_text(debug_info=True))
    done = ran("tpusim.export", program, "--config", "v5e-2x4", "-o", workload)
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(rf"{workload}: \w+, 8 partitions \(.*\)\n", done.stdout)
    converted, direct = (
        ran("tpusim", "run", file, "--config", "v5e-2x4") for file in (workload, program)
    )
    assert direct.returncode == 0, direct.stderr
    assert direct.stdout == converted.stdout
    # The binary alone says what converts it.
    alone = subprocess.run([binary, program], capture_output=True, text=True, check=False)
    assert alone.returncode == 1
    assert f"`python -m tpusim.export {program} -o workload.pb` converts it" in alone.stderr
    refused = ran("tpusim.export", program, "--list")
    assert refused.returncode == 1
    assert "of scripts, not of StableHLO" in refused.stderr
    program.write_text("module { func.func @main() { stablehlo.twist } }")
    refused = ran("tpusim", program, "--config", "v5e-2x4")
    assert (refused.returncode, refused.stderr.count("\n")) == (1, 1)
    assert refused.stderr.startswith(f"tpusim: error: {program}: this StableHLO text is not read")
