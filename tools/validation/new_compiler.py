"""Says whether a new TPU compiler chooses otherwise than the known one, and drafts its file.

    VENV/bin/python tools/validation/new_compiler.py                       # a few minutes
    VENV/bin/python tools/validation/new_compiler.py --draft configs/compilers/libtpu-0.0.60.json

VENV has the JAX and the libtpu to try (CONTRIBUTING.md says how to install them; no TPU is needed).
Programs are compiled ahead of time and compared with what is kept of the compiler that the first
file is from:

* collectives, one each, a sample of validation/collectives: operation, emitter (whichever dimension
  it is for), strategy, colors, phases;
* products of sharded arrays (validation/compiler): collectives by kind, bytes and group, and
  whether they are windowed, asynchronous or synchronous;
* kernels of one device (tests/data/compiled): the compiler's estimate, and the most VMEM of one.

The version needs a file of its own if any of the first two differ, or the estimates of many of the
last; no policy value says how much VMEM a kernel takes. Products on slices whose devices this JAX
orders otherwise than that of the kept programs are left out: their groups are others.
"""

import argparse
import dataclasses
import json
import math
import os
import pathlib
import re
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[2]
if __name__ == "__main__":
    sys.path[:0] = [str(ROOT), str(ROOT / "tools" / "python"), str(ROOT / "tools" / "validation")]
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    os.environ.setdefault("TPU_SKIP_MDS_QUERY", "1")

import collective_choices  # noqa: E402
import compiler_collectives  # noqa: E402
import compiler_hlo  # noqa: E402
import compiler_store  # noqa: E402
import compiler_summaries  # noqa: E402
import compiler_summary  # noqa: E402
from compiler_programs import PROGRAMS  # noqa: E402

LIKE = "libtpu-0.0.42"
_COLLECTIVES, _EINSUMS, _KERNELS = 176, 40, 40
# Kernels that differ by more count as different; a version with more of them needs a file.
_APART, _MANY = 0.1, 0.1
# A field that is shown, and decides nothing.
_SHOWN = "vmem"
# Collectives that another core executes print nothing of themselves.
_OFFLOADED = "custom-call"
_ROW_BYTES = 2048
_NUMBERS = re.compile(r"\b(colors|phases):(\d+)")
_VMEM = re.compile(r'"used_scoped_memory_configs":\[\{"memory_space":"1",[^}]*"size":"(\d+)"')


@dataclasses.dataclass(frozen=True)
class Compared:
    """A program: what is kept of it, and what the new compiler made."""

    group: str
    name: str
    kept: dict[str, Any]
    made: dict[str, Any]

    @property
    def differing(self) -> dict[str, str]:
        """Fields that are not the same, with both values."""
        fields = dict.fromkeys([*self.kept, *self.made])
        return {
            field: f"{field}: {self.kept.get(field)} -> {self.made.get(field)}"
            for field in fields
            if not alike(self.kept.get(field), self.made.get(field))
        }

    @property
    def told(self) -> str:
        """The fields that are not the same, in a line."""
        return f"{self.name}: {'; '.join(self.differing.values())}"


def alike(kept: Any, made: Any) -> bool:
    """Whether two values are the same; quantities may be a little apart."""
    if isinstance(kept, float) and isinstance(made, float):
        return math.isclose(kept, made, rel_tol=_APART)
    return bool(kept == made)


def sample(rows: Sequence[Any], count: int) -> list[Any]:
    """So many of them, evenly."""
    return [rows[n * len(rows) // count] for n in range(count)] if len(rows) > count else [*rows]


def emitter(of: dict[str, Any]) -> str | None:
    """Returns the emitter of a collective: those of all dimensions run the same algorithm."""
    name = of.get("emitter")
    return name and collective_choices.which_emitter(name)


def printed(text: str) -> dict[str, Any]:
    """Returns the fields of the sweep that a module prints of its only collective."""
    module = compiler_hlo.parse(text)
    found: dict[str, Any] = {}
    for computation in module.computations.values():
        for i in computation.instructions:
            if i.opcode.removesuffix("-start") not in compiler_summary.COLLECTIVES:
                continue
            if "collective_offload_config" in i.config:
                return {"done_as": _OFFLOADED}
            algorithm = i.config.get("collective_algorithm_config", {})
            kind = "reduce-scatter" if "all-reduce-scatter" in computation.name else i.opcode
            found = {"done_as": kind, "emitter": emitter(algorithm)}
            found["strategy"] = algorithm.get("strategy")
            numbers = dict(_NUMBERS.findall(algorithm.get("debug", "")))
            found |= {
                field: int(numbers[field]) for field in ("colors", "phases") if field in numbers
            }
    return found


def of_kernels(summary: dict[str, Any], text: str) -> dict[str, Any]:
    """The estimate of all kernels in cycles, and the largest VMEM of one in bytes."""
    cycles = sum((k["cycles"] or 0) * k["count"] for k in summary["kernels"])
    return {"cycles": float(cycles), "vmem": float(max(map(int, _VMEM.findall(text)), default=0))}


def of_products(summary: dict[str, Any]) -> dict[str, Any]:
    """Collectives by kind, bytes, members and how they run."""
    counts = compiler_collectives.of_compiler(summary)
    return {" ".join(map(str, key)): count for key, count in sorted(counts.items())}


def verdict(found: Sequence[Compared]) -> tuple[bool, list[str]]:
    """Whether the version needs a file, and a line per group, with those that differ."""
    needs, lines = False, []
    for group in dict.fromkeys(each.group for each in found):
        rows = [each for each in found if each.group == group]
        unlike = [each for each in rows if each.differing]
        deciding = [each for each in rows if each.differing.keys() - {_SHOWN}]
        lines.append(f"{group}: {len(rows) - len(deciding)} of {len(rows)} the same")
        needs = needs or len(deciding) > (_MANY * len(rows) if group == "kernels" else 0)
        for field in sorted({f for each in rows for f, v in each.kept.items() if type(v) is float}):
            both = [(each.kept[field], each.made[field]) for each in rows if field in each.made]
            ratios = [made / kept for kept, made in both if kept]
            if ratios:
                spread = f"{min(ratios):.3f} to {max(ratios):.3f}"
                lines.append(
                    f"  {field}: median {statistics.median(ratios):.3f} of before, {spread}"
                )
        lines += [f"  {each.told}" for each in unlike]
    return needs, lines


def draft(name: str, build: str, jax_version: str, found: Sequence[Compared]) -> dict[str, Any]:
    """The file of this version: its values are to be filled in from what differs."""
    needs, lines = verdict(found)
    unlike = [each.told for each in found if each.differing]
    what = "Values that differ" if needs else "No value differs"
    heads = ". ".join(line for line in lines if not line.startswith("  "))
    return {
        "$schema": "schema.json",
        "name": name,
        "like": LIKE,
        "build": build,
        "description": f"{what} from those of {LIKE} by programs that JAX {jax_version} and this "
        f"compiler compiled ahead of time (tools/validation/new_compiler.py). {heads}.",
        "values": {"TO BE FOUND": unlike} if needs else {},
    }


def collective(row: dict[str, Any]) -> str:
    """Compiles a collective of the sweep; returns the text of its module."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    from compiler_topology import devices_of
    from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

    names = "xyz"[: len(row["slice"])]
    sizes = dict(zip(names, row["slice"], strict=True))
    slice_name = f"{row['chip']}-{'x'.join(map(str, row['slice']))}"
    devices = devices_of(compiler_store.topology_name(slice_name))
    order = sorted(devices, key=lambda d: (*d.coords, d.core_on_chip))
    if len(devices) > math.prod(row["slice"]):
        sizes["c"] = 2
    mesh = Mesh(
        np.array(order).reshape(tuple(sizes.values())),
        tuple(sizes),
        axis_types=(AxisType.Auto,) * len(sizes),
    )
    axes = tuple(row["axes"])
    members = math.prod(sizes[axis] for axis in axes)
    ring = [(n, (n + 1) % members) for n in range(members)]
    lax = jax.lax
    body = {
        "psum": lambda x: lax.psum(x, axes),
        "all_gather": lambda x: lax.all_gather(x, axes, tiled=True),
        "all_gather_minor": lambda x: lax.all_gather(x, axes, axis=1, tiled=True),
        "psum_scatter": lambda x: lax.psum_scatter(x, axes, tiled=True),
        "psum_scatter_minor": lambda x: lax.psum_scatter(x, axes, scatter_dimension=1, tiled=True),
        "all_to_all": lambda x: lax.all_to_all(x, axes, 0, 0, tiled=True),
        "ppermute": lambda x: lax.ppermute(x, axes, ring),
    }[row["op"]]
    spec = PartitionSpec(tuple(sizes))
    width = row.get("row_bytes", _ROW_BYTES)
    shape = (row["operand_bytes"] // width * len(order), width // 2)
    x = jax.ShapeDtypeStruct(shape, jnp.bfloat16, sharding=NamedSharding(mesh, spec))
    mapped = jax.shard_map(body, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False)
    text: str = jax.jit(mapped).lower(x).compile().as_text()
    return text


def compiled_collectives() -> Iterator[Compared]:
    """A sample of the sweep, on slices whose axes are those of the mesh."""
    rows = [row for row in collective_choices.swept() if row["slice"] != [2, 2]]
    rows = [row for row in rows if math.prod(row["slice"]) <= 64]  # number: seconds of compiling
    for row in sample(rows, _COLLECTIVES):
        kept = {field: row.get(field) for field in collective_choices.PRINTED}
        kept["emitter"] = emitter(row)
        where = f"{row['chip']}-{'x'.join(map(str, row['slice']))}"
        name = f"{row['op']} of {row['operand_bytes']} B over {row['axes']} of {where}"
        yield Compared("collectives", name, kept, tried(lambda of: printed(collective(of)), row))


def compiled(name: str, slice_name: str) -> tuple[dict[str, Any], str]:
    """Compiles a program; returns its summary and the text of its module."""
    from compiler_topology import compile_program

    topology = compiler_store.topology_name(slice_name)
    made = compile_program(PROGRAMS[name].example, topology, slice_name)
    return compiler_summaries.summary_of(name, slice_name, made), made["text"]


def reordered(slice_name: str, before: str, now: str) -> bool:
    """Whether the later JAX lays a mesh over the devices of a slice in another order."""
    chip, _, shape = slice_name.partition("-")
    facts = json.loads((compiler_store.ROOT / "configs" / "chips" / f"{chip}.json").read_text())

    def number(version: str) -> list[int]:
        return [int(part) for part in version.split(".") if part.isdecimal()]

    return any(
        "x".join(map(str, tray.get("shape", ()))) == shape
        and number(before) < number(tray.get("since", "0")) <= number(now)
        for tray in facts["device_order"]["trays"]
    )


def compiled_programs(jax_version: str) -> Iterator[Compared]:
    """Products of sharded arrays, and programs of one device."""
    sharded, single = [], []
    for name, entry in PROGRAMS.items():
        for slice_name in entry.slices:
            if entry.example.num_devices == 1:
                if compiler_summaries.is_derived(name, slice_name):
                    single.append((name, slice_name))
            elif name.startswith("sharded_") and compiler_summaries.has_summary(name, slice_name):
                sharded.append((name, slice_name))
    for name, slice_name in sample(sharded, _EINSUMS):
        kept = compiler_summaries.summary(name, slice_name)
        if "error" not in kept and not reordered(slice_name, kept["versions"]["jax"], jax_version):
            made = tried(lambda *of: of_products(compiled(*of)[0]), name, slice_name)
            yield Compared("products", f"{name} on {slice_name}", of_products(kept), made)
    for name, slice_name in sample(single, _KERNELS):
        text = compiler_summaries.kept_module(name, slice_name)["text"]
        of = of_kernels(compiler_summaries.summary(name, slice_name), text)
        made = tried(lambda *of: of_kernels(*compiled(*of)), name, slice_name)
        yield Compared("kernels", f"{name} on {slice_name}", of, made)


def tried(compile_it: Callable[..., dict[str, Any]], *arguments: Any) -> dict[str, Any]:
    """Returns what is made, or why nothing is: then all fields differ."""
    try:
        return compile_it(*arguments)
    except Exception as error:  # Whatever the compiler says is the result.
        return {"error": compiler_store.one_line(f"{type(error).__name__}: {error}")}


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--draft", type=pathlib.Path, help="write the file of this version")
    flags = parser.parse_args()
    import jax
    import libtpu
    from compiler_topology import devices_of

    build = re.search(r"cl/\d+", devices_of("v5e:4x2")[0].client.platform_version)
    found = []
    for groups in (compiled_collectives(), compiled_programs(jax.__version__)):
        for each in groups:
            found.append(each)
            if "error" in each.made:
                print(f"{each.name}: {each.made['error']}", flush=True)
    needs, lines = verdict(found)
    print("\n".join(lines))
    name = "libtpu-" + ".".join(libtpu.__version__.split(".")[:3])  # number: parts of a version
    print(f"{name} {'needs a file of its own' if needs else f'does as {LIKE}'}")
    if flags.draft:
        text = json.dumps(draft(name, build[0] if build else "", jax.__version__, found), indent=2)
        flags.draft.write_text(text + "\n")


if __name__ == "__main__":
    main()
