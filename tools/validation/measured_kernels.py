"""Makes the programs of measured kernels: the operation of tokamax that was measured, exported.

    python tools/validation/measured_kernels.py FOLDER [--sample] [--only N,N,...]

FOLDER has rows.jsonl.gz (validation/kernels_measured); the program of row N becomes
programs/N.pb.gz. Needs tokamax 0.0.17 (Python 3.12, JAX 0.12) and this package, no TPU. The
operation has the configuration of the row, arguments are shapes. `tpusim validate --kernels`
simulates what is there.
"""

import argparse
import dataclasses
import gzip
import importlib
import inspect
import json
import os
import pathlib
import re
import sys
from typing import Any

import jax
import jax.numpy as jnp
import tpusim

_OPS = "tokamax._src.ops"
# The class of an operation's name in the rows, by module.
_OPERATIONS = {
    "dot_product_attention": ("attention.base", "DotProductAttention"),
    "dot_product_attention_vjp": ("attention.base", "DotProductAttentionVjp"),
    "pallas_mosaic_tpu_flash_attention": (
        "attention.pallas_mosaic_tpu",
        "PallasMosaicTpuFlashAttention",
    ),
    "pallas_mosaic_tpu_flash_attention_vjp": (
        "attention.pallas_mosaic_tpu_vjp",
        "PallasMosaicTpuFlashAttentionVjp",
    ),
    "linear_softmax_cross_entropy_loss": (
        "linear_softmax_cross_entropy_loss.base",
        "LinearSoftmaxCrossEntropyLoss",
    ),
    "linear_softmax_cross_entropy_loss_vjp": (
        "linear_softmax_cross_entropy_loss.base",
        "LinearSoftmaxCrossEntropyLossVjp",
    ),
    "chunked_xla_linear_softmax_cross_entropy_loss": (
        "linear_softmax_cross_entropy_loss.chunked_xla",
        "ChunkedXlaLinearSoftmaxCrossEntropyLoss",
    ),
    "pallas_mosaic_tpu_linear_softmax_cross_entropy_loss": (
        "linear_softmax_cross_entropy_loss.pallas_mosaic_tpu",
        "PallasMosaicTpuLinearSoftmaxCrossEntropyLoss",
    ),
    "pallas_mosaic_tpu_linear_softmax_cross_entropy_loss_vjp": (
        "linear_softmax_cross_entropy_loss.pallas_mosaic_tpu",
        "PallasMosaicTpuLinearSoftmaxCrossEntropyLossVjp",
    ),
    "ragged_dot": ("ragged_dot.base", "RaggedDot"),
    "pallas_mosaic_tpu_ragged_dot": ("ragged_dot.pallas_mosaic_tpu", "PallasMosaicTpuRaggedDot"),
    "normalization": ("normalization.base", "Normalization"),
    "normalization_vjp": ("normalization.base", "NormalizationVjp"),
    "gated_linear_unit": ("gated_linear_unit.base", "GatedLinearUnit"),
    "triangle_multiplication": ("triangle_multiplication.base", "TriangleMultiplication"),
}
# One device of each chip.
_SLICES = {
    "tpu7x": "v7x-1x1x1",
    "tpu_v5": "v5p-1x1x1",
    "tpu_v5_lite": "v5e-1x1",
    "tpu_v6_lite": "v6e-1x1",
}
_TYPES = {"bf16": "bfloat16", "f16": "float16", "f32": "float32", "i32": "int32", "i8": "int8"}
_ARRAY = re.compile(r"(\w+)\[([\d,]*)\]")
# Values of arguments that have no default, where a row does not state them.
_UNSAID = {"scale_offset": 0.0, "dropout_rate": 0.0}
# Products with the matrices turned, and the chips whose rows of them are older than the exchange of
# tile_k and tile_n in ops/ragged_dot/pallas_mosaic_tpu.py: with it, a row of products 512 deep with
# 7168 columns would have taken 14 times its work, at 8 times the chip's peak. Rows of other chips
# have tiles that only fit with it.
_TURNED = [[[1], [2]], [[], []]]
_TILES_AS_NAMED = {"tpu7x"}
# Every so many rows are in the sample of `tpusim validate --kernels`.
_SAMPLED = 17


def _module(name: str) -> Any:
    return importlib.import_module(f"{_OPS}.{name}")


def _value(name: str, said: Any) -> Any:
    """Returns what the operation takes for an argument that a row writes as JSON."""
    if isinstance(said, str):
        if array := _ARRAY.fullmatch(said):
            shape = tuple(int(size) for size in array[2].split(",") if size)
            return jax.ShapeDtypeStruct(shape, jnp.dtype(_TYPES.get(array[1], array[1])))
        if said.startswith("jax."):
            return getattr(jax.nn, said.rpartition(".")[2])
        if name == "precision":
            by_name = jax.lax.Precision if said in jax.lax.Precision.__members__ else None
            return (by_name or jax.lax.DotAlgorithmPreset)[said]
        return jnp.dtype(said) if name == "logits_dtype" else said
    if name == "mask" and isinstance(said, dict):
        return _module("attention.base").Mask(**{n: _value(n, v) for n, v in said.items()})
    if name == "group_sizes":
        count = said["num_groups"] if isinstance(said, dict) else len(said)
        sizes = said["total_size"] if isinstance(said, dict) else tuple(said)
        shape = jax.ShapeDtypeStruct((count,), jnp.int32)
        return _module("ragged_dot.base").GroupSizes(shape, sizes)
    if name == "ragged_dot_dimension_numbers":
        return jax.lax.RaggedDotDimensionNumbers(**said)
    return tuple(_value(name, v) for v in said) if isinstance(said, list) else said


def _operation(row: dict[str, Any]) -> Any:
    """Returns the operation of a row with its configuration.

    The caches hold what tokamax's public functions run (autotuning/api.py), which is the class as
    it is made without arguments but for one: chunked attention has chunks of 512 queries and 1,024
    keys there (ops/attention/api.py), the class alone 128 and 128. No row states them.
    """
    if row["op"] == "xla_chunked_dot_product_attention":
        return _module("attention.api").IMPLEMENTATIONS["xla_chunked"]
    module_name, class_name = _OPERATIONS[row["op"]]
    module = _module(module_name)
    if not row["config"]:
        return getattr(module, class_name)()
    fields = {field.name for field in dataclasses.fields(module.Config)}
    stated = {name: value for name, value in row["config"].items() if name in fields}
    numbers = row["args"].get("ragged_dot_dimension_numbers", {})
    if row["chip"] in _TILES_AS_NAMED and numbers.get("dot_dimension_numbers") == _TURNED:
        stated["tile_k"], stated["tile_n"] = stated["tile_n"], stated["tile_k"]
    for name in stated:
        if name.endswith("_layout"):
            stated[name] = module.splash.QKVLayout(stated[name])
    return getattr(module, class_name)(config=module.Config(**stated))


def program(row: dict[str, Any]) -> tuple[Any, list[Any]]:
    """Returns the function of a row and its arguments, as tokamax's benchmarks call it."""
    benchmarking = importlib.import_module("tokamax._src.benchmarking")
    operation = _operation(row)
    # The kernel takes it for granted.
    said = {name: value for name, value in row["args"].items() if name != "zero_initialize"}
    arguments = {name: _value(name, value) for name, value in said.items()}
    first = []
    if row["op"].endswith("_vjp"):
        first = [arguments.pop(name) for name in ("residuals", "out", "dout")]
        for name, parameter in inspect.signature(operation._fwd).parameters.items():
            required = parameter.default is parameter.empty
            if required and name not in {"residuals", "out", "dout", "config", *arguments}:
                arguments[name] = _UNSAID.get(name)
    function, arrays = benchmarking.standardize_function(
        operation, *first, kwargs=arguments, seed=None
    )
    return function, list(arrays)


def main() -> None:
    """Exports the rows that have no program yet; those that fail are named."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--sample", action="store_true", help="one row of 17")
    parser.add_argument("--only", default="", help="rows, such as 1,2,3")
    given = parser.parse_args()
    folder = given.folder.resolve()
    # Programs name source files relative to the working directory.
    os.chdir(pathlib.Path(__file__).parents[2])
    rows = gzip.decompress((folder / "rows.jsonl.gz").read_bytes()).decode().splitlines()
    numbers = [int(n) for n in given.only.split(",") if n] or range(len(rows))
    (folder / "programs").mkdir(exist_ok=True)
    failed = 0
    for number in numbers:
        path = folder / "programs" / f"{number}.pb.gz"
        if path.exists() or (given.sample and number % _SAMPLED):
            continue
        row = json.loads(rows[number])
        config = _SLICES[row["chip"]]
        try:
            with tpusim.seen_as(config):
                function, arrays = program(row)
                name = f"{row['op']}_{number}"
                tpusim.export(jax.jit(function), arrays, path=path, config=config, name=name)
        except Exception as error:  # of the library: the others go on
            failed += 1
            print(f"{number} {row['op']}: {str(error).splitlines()[:1]}", file=sys.stderr)
    if failed:
        sys.exit(f"{failed} rows have no program")


if __name__ == "__main__":
    main()
