"""Makes the corpus of compiled modules: programs of this project as the TPU compiler leaves them.

    python tools/validation/compiled_modules.py --list
    python tools/validation/compiled_modules.py --only 'matmul*' --slices v5e-1x1 [--again]

tests/data/compiled/SLICE/PROGRAM.pb.gz is what `tpusim.export(..., compiled=True)` writes, and
README.md beside them names the versions. Compiling needs the public `libtpu` wheel (CONTRIBUTING.md
says how to install it); reading and simulating them does not. Those that exist are skipped unless
--again is given; one program is compiled after the other, at low priority.
"""

import argparse
import collections
import dataclasses
import fnmatch
import functools
import json
import os
import pathlib
import sys
import time
from collections.abc import Iterator
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[2]
if __name__ == "__main__":
    sys.path[:0] = [str(ROOT), str(ROOT / "tools" / "python"), str(ROOT / "tools" / "validation")]
    os.environ.setdefault("JAX_PLATFORMS", "cpu")

import tpusim  # noqa: E402
from compiler_programs import PROGRAMS  # noqa: E402
from compiler_programs.decoder import Decoder, train  # noqa: E402
from compiler_store import one_line, set_aside  # noqa: E402

from validation.workloads.programs import PROGRAMS as MEASURED  # noqa: E402
from validation.workloads.training import TRAINING  # noqa: E402
from workloads.examples.example import Example  # noqa: E402

CORPUS = ROOT / "tests" / "data" / "compiled"
MEASUREMENTS = ROOT / "validation" / "measurements.json"

# Train steps of four layers, two sequences of 512 tokens on each of eight devices.
_LAYERS = Decoder(layers=4, width=512, hidden=1408, heads=4, sequence=512, batch=16)
_MESHES = {
    "fsdp": {"fsdp": 8},
    "tensor_parallel": {"data": 2, "tp": 4},
    "fsdp_tensor_parallel": {"fsdp": 4, "tp": 2},
}
_GROUPS = {"tensor_parallel": 4}
DECODERS = {
    f"decoder_4_layers_{name}": Example(
        f"decoder_4_layers_{name}",
        mesh,
        "v5e-4x2",
        functools.partial(train, dataclasses.replace(_LAYERS, groups=_GROUPS.get(name, 2))),
    )
    for name, mesh in _MESHES.items()
}

_ONE_DEVICE = """
    matmul matmul_f32 matmul_s8 mlp_gradient attention attention_flash decode_step conv_3x3_128
    conv_depthwise softmax_f32 layer_norm rms_norm_gradient gelu adamw_update embedding segment_sum
    transpose update_slice reduce_rows cumsum top_k sort_rows moe_routing ragged_product decode_scan
    pallas_matmul_4096
"""
_EIGHT_DEVICES = """
    all_gather all_reduce_64mib_4x2 psum_scatter all_to_all ring_shift collective_matmul_bf16
    sharded_gather_contracted_large sharded_scatter_columns_large sharded_gather_weight_rows_large
    moe_all_to_all decode_heads_sharded weights_from_host
    decoder_4_layers_fsdp decoder_4_layers_tensor_parallel decoder_4_layers_fsdp_tensor_parallel
"""
# Programs by slice, small slices first.
SELECTION = {
    "v5e-1x1": _ONE_DEVICE
    + """
        matmul_few_rows matmul_bias_gelu matmul_master_weights batched_matmul logits_f32
        attention_causal attention_gradient attention_grouped conv_stem_7x7 conv_3x3_gradients
        conv_1d_causal_depthwise max_pool rope dropout random_normal momentum_update softmax_bf16
        batch_norm_statistics cross_entropy embedding_gradient one_hot_matmul take_along_rows
        transpose_heads concatenate pad roll physics_step reduce_all_bf16 bias_gradient argmax
        moe_dispatch moe_experts decode_carry decode_layers mlp_train_1 decoder_1
    """,
    "v5p-1x1x1": _ONE_DEVICE,
    "v6e-1x1": _ONE_DEVICE,
    "v7x-1x1x1": _ONE_DEVICE,
    "v5e-2x2": "ring_attention_large pipeline_large activations_on_host_large",
    "v5e-4x2": _EIGHT_DEVICES
    + """
        psum axis_index batch_roll reshards_explicit collective_matmul_unrolled_bf16
        all_reduce_matmul_one_way reduce_scatter_matmul_two_ways allgather_matmul_bf16
        sharded_scatter_weight_gradient_large ring_attention pipeline moe_ragged_dot
        moe_top_2_capacity cross_entropy_gathered prefill_heads_sharded decode_context_sharded
        activations_on_host moments_on_host transformer_block_auto mlp_scan_8_layers
        residual_mlp_train_scan_fully_sharded language_model_train_fully_sharded
        language_model_train_tensor_parallel decoder_scan_remat
    """,
    "v5e-2x4": "all_gather all_reduce_64mib_4x2 sharded_gather_contracted_large",
    "v5p-2x2x2": _EIGHT_DEVICES,
    "v6e-4x2": _EIGHT_DEVICES,
    "v7x-2x2x1": _EIGHT_DEVICES,
    "v5e-4x4": "fully_sharded_layers_large decoder_fsdp_16",
    "v7x-2x2x2": "data_parallel_layers_large",
    "v5e-8x8": "sharded_scatter_columns_large_of_8 decoder_fsdp_tensor_parallel_64",
    "v6e-8x8": "sharded_gather_contracted_large_of_8",
    "v5p-4x4x4": "sharded_gather_contracted_large_of_16 train_64b_v5p_64",
    "v5p-4x4x8": "train_128b_v5p_128",
    "v5p-4x8x8": "train_128b_v5p_256",
    "v5p-8x8x8": "train_256b_v5p_512 train_512b_v5p_512 train_llama3_405b_v5p_512",
    "v5p-8x8x16": "train_1024b_v5p_1024",
    "v5e-8x16": "all_reduce_64mib_8x16",
    "v5e-16x16": """
        all_reduce_64mib_16x16 train_16b_v5e_256 train_64b_v5e_256 train_128b_v5e_256
    """,
}


def example_of(program: str) -> Example:
    """Returns the program by its name in the selection."""
    if program in DECODERS:
        return DECODERS[program]
    if program in TRAINING:
        return TRAINING[program]
    return PROGRAMS[program].example if program in PROGRAMS else MEASURED[program]


def path_of(program: str, slice_name: str) -> pathlib.Path:
    """Returns the path of a kept module."""
    return CORPUS / slice_name / f"{program}.pb.gz"


def options_of(program: str) -> dict[str, str]:
    """Options of the compiler that a published step was made with; none of other programs."""
    if program not in TRAINING:
        return {}
    for row in json.loads(MEASUREMENTS.read_text())["measurements"]:
        if row.get("workload") == f"workloads/{program}.pb.gz":
            flags = [flag.removeprefix("--").split("=", 1) for flag in row["xla_flags"].split()]
            return dict(flags)
    return {}


def compiled(program: str, slice_name: str, **compiler_options: Any) -> tpusim.Workload:
    """The module that the TPU compiler makes; tpusim.Error if it makes none.

    Options are added to those that the program has by itself.
    """
    example = example_of(program)
    step, arguments = example()
    return tpusim.export(
        step,
        *arguments,
        path=None,
        config=slice_name,
        name=program,
        trip_counts=example.trip_counts,
        compiled=True,
        compiler_options=(options_of(program) | compiler_options) or None,
    )


def selected(flags: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """Programs and slices that the command line asks for."""
    for slice_name, programs in SELECTION.items():
        if not any(fnmatch.fnmatchcase(slice_name, glob) for glob in flags.slices.split(",")):
            continue
        for program in programs.split():
            if any(fnmatch.fnmatchcase(program, glob) for glob in flags.only.split(",")):
                yield program, slice_name


def compile_all(flags: argparse.Namespace) -> None:
    """Compiles what is asked for and not there."""
    os.nice(10)
    # Source files in the modules are relative to it.
    os.chdir(ROOT)
    for program, slice_name in selected(flags):
        path = path_of(program, slice_name)
        if path.exists() and not flags.again:
            continue
        begin = time.monotonic()
        try:
            workload = compiled(program, slice_name)
        except tpusim.Error as error:
            print(f"{slice_name:10} {program}: {one_line(str(error))}", flush=True)
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        workload.save(path)
        seconds, size = time.monotonic() - begin, path.stat().st_size
        print(f"{seconds:6.1f} s {size:8} bytes {slice_name:10} {program}", flush=True)


def manifest() -> str:
    """Returns the README of the corpus, from its files."""
    versions: set[tuple[str, str]] = set()
    by_slice: dict[str, list[str]] = collections.defaultdict(list)
    for path in sorted(CORPUS.glob("*/*.pb.gz")):
        workload = tpusim.Workload.load(path)
        assert workload.compilation is not None
        versions.add((workload.jax_version, workload.compilation.libtpu_version))
        program = path.name.removesuffix(".pb.gz")
        by_slice[path.parent.name].append(f"*{program}*" if set_aside(program) else program)
    made = " and ".join(f"jax {jax}, libtpu {libtpu}" for jax, libtpu in sorted(versions))
    rows = [f"| {name} | {', '.join(by_slice[name])} |" for name in SELECTION if by_slice[name]]
    return "\n".join(
        [
            "# Compiled modules",
            "",
            f"`SLICE/PROGRAM.pb.gz`: {sum(map(len, by_slice.values()))} programs of this project,",
            "compiled by the TPU compiler ahead of time, as `tpusim.export(..., compiled=True)`",
            f"writes them ({made}; no TPU), compressed by gzip.",
            "`tools/validation/compiled_modules.py` makes them anew. The programs are those of",
            "`tools/validation/compiler_programs`, `workloads/examples`, `validation/workloads`,",
            "with default options; published train steps with the flags of their sources",
            "(`validation/measurements.json`). No rule of the simulator may be made from those in",
            "*italics*, which are set aside by a hash of the name",
            "(`tools/validation/compiler_store.py`).",
            "`PROGRAM.hlo.gz` is the text of the same module, where it is kept.",
            "",
            "| slice | programs |",
            "|---|---|",
            *rows,
            "",
        ]
    )


def main() -> None:
    """Does what the command line says."""
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--list", action="store_true", help="programs, and whether they are there")
    p.add_argument("--only", default="*", help="globs of programs, comma-separated")
    p.add_argument("--slices", default="*", help="globs of slices, comma-separated")
    p.add_argument("--again", action="store_true", help="also what is there")
    p.add_argument("--manifest", action="store_true", help="only write README.md")
    flags = p.parse_args()
    if flags.list:
        for program, slice_name in selected(flags):
            there = "+" if path_of(program, slice_name).exists() else "-"
            aside = "set aside" if set_aside(program) else ""
            print(f"{there} {slice_name:10} {program:44} {aside}".rstrip())
        return
    if not flags.manifest:
        compile_all(flags)
    (CORPUS / "README.md").write_text(manifest())


if __name__ == "__main__":
    main()
