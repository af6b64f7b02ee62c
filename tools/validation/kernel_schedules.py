"""Schedules of the TPU compiler for single operations, bundle by bundle.

    pip install 'jax==0.10.2' 'jaxlib==0.10.2' 'libtpu==0.0.42.*'
    JAX_PLATFORMS=cpu TPU_SKIP_MDS_QUERY=1 python tools/validation/kernel_schedules.py v5e v6e

Compiles kernels of one operation ahead of time, without hardware, has the compiler write its final
bundles and how they use the slots of the core (--xla_jf_dump_llo_text), and puts the operations per
vector register of the result into validation/kernels/schedules.json. The rows of
configs/compilers/instructions whose source is "schedules" are from there. Narrow types: per
register as it lies in memory, which holds two of 32 bits for bf16.
"""

import json
import os
import pathlib
import re
import sys
import tempfile
from collections.abc import Callable
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "validation" / "kernels" / "schedules.json"
SLOTS = ["mxu", "xlu", "valu", "vpop", "eup", "vload", "fill", "vstore", "spill", "salu"]
TOPOLOGIES = {
    "v4": ("v4:2x2x1", {"chip_config_name": "megacore"}),
    "v5e": ("v5e:2x2", {}),
    "v5p": ("v5p:2x2x1", {}),
    "v6e": ("v6e:2x2", {}),
    "v7x": ("tpu7x:2x2x1", {}),
}
_SHAPE = (128, 1024)
_UNARY = (
    *("abs", "neg", "floor", "ceil", "round", "sign", "exp", "expm1", "log", "log1p", "tanh"),
    *("logistic", "sqrt", "rsqrt", "cbrt", "sin", "cos", "tan", "erf", "sinh", "cosh", "asin"),
    *("acos", "asinh", "acosh", "atanh"),
)
_BINARY = ("add", "mul", "max", "div", "rem", "pow", "atan2")
_INTEGER = ("add", "mul", "div", "rem")


def operations() -> dict[str, tuple[Callable[..., Any], list[Any]]]:
    """Functions, and the types of their operands."""
    import jax.numpy as jnp
    from jax import lax

    found: dict[str, tuple[Callable[..., Any], list[Any]]] = {}
    for kind, name in ((jnp.float32, "f32"), (jnp.bfloat16, "bf16")):
        for op in _UNARY:
            found[f"{op}_{name}"] = (getattr(lax, op), [kind])
        for op in _BINARY:
            found[f"{op}_{name}"] = (getattr(lax, op), [kind, kind])
    for op in _INTEGER:
        found[f"{op}_s32"] = (getattr(lax, op), [jnp.int32, jnp.int32])
    found["div_constant_s32"] = (lambda x: x // 7, [jnp.int32])
    found["sin_cos_f32"] = (lambda x: (lax.sin(x), lax.cos(x)), [jnp.float32])
    kinds = {"f32": jnp.float32, "bf16": jnp.bfloat16, "f16": jnp.float16}
    kinds |= {"s32": jnp.int32, "s8": jnp.int8}
    for source, target in (
        *(("f32", "bf16"), ("bf16", "f32"), ("f32", "s32"), ("s8", "f32")),
        *(("f16", "f32"), ("f32", "f16")),
    ):
        found[f"{source}_to_{target}"] = (lambda x, t=kinds[target]: x.astype(t), [kinds[source]])
    return found


def used(folder: pathlib.Path) -> tuple[list[int], dict[str, float]]:
    """Slots of a bundle, and what the one kernel in the folder uses per register that it stores."""
    for path in sorted(folder.glob("*final_hlo-static-per-bundle-utilization.txt")):
        if re.search(r"\d+-(TLP|<|main|barrier|copy|slice|bitcast)", path.name):
            continue
        lines = path.read_text().splitlines()
        rows = [[int(n) for n in line.split()] for line in lines[4:] if line.strip()]
        sums = dict(zip(SLOTS, map(sum, zip(*rows, strict=True)), strict=True))
        stored = sums["vstore"] - sums["spill"]
        if stored < 32:
            continue
        per = {k: round(sums[k] / stored, 2) for k in ("valu", "eup", "xlu") if sums[k]}
        return [int(n) for n in lines[2].split()], {**per, "bundles": round(len(rows) / stored, 2)}
    return [], {}


def main() -> None:
    """Writes the schedules for the chips named on the command line."""
    known = json.loads(PAGE.read_text()) if PAGE.exists() else {"chips": {}}
    with tempfile.TemporaryDirectory() as name:
        dumps = f"--xla_jf_dump_to={name} --xla_jf_dump_llo_text=true"
        os.environ["LIBTPU_INIT_ARGS"] = f"{dumps} --xla_jf_dump_llo_pass_label_regex=final"
        import jax
        from jax.experimental import topologies
        from jax.sharding import SingleDeviceSharding

        folder = pathlib.Path(name)
        for chip in sys.argv[1:]:
            topology, options = TOPOLOGIES[chip]
            described = topologies.get_topology_desc(
                platform="tpu", topology_name=topology, **options
            )
            place = SingleDeviceSharding(described.devices[0])
            entry: dict[str, Any] = {"slots": {}, "operations": {}}
            for op, (function, kinds) in operations().items():
                arrays = [jax.ShapeDtypeStruct(_SHAPE, k, sharding=place) for k in kinds]
                jax.jit(function, out_shardings=place).lower(*arrays).compile()
                slots, uses = used(folder)
                if uses:
                    entry["slots"] = dict(zip(SLOTS, slots, strict=True))
                    entry["operations"][op] = uses
                for path in folder.iterdir():
                    path.unlink()
            known["chips"][chip] = entry
    known["versions"] = {"jax": jax.__version__, "libtpu": "0.0.42.1"}
    PAGE.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
