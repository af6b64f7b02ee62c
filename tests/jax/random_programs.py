"""Random sharded programs: JAX says what is right, and what tpusim makes of them says the same.

A program is made from its seed alone: a mesh of eight devices, arguments of random shapes, types
and shardings, random operations with constraints between them, shardings of the results. JAX runs
it on one device, without constraints, so that nobody else's partitioner is part of the answer; only
a shard_map runs on the mesh.

    python tests/jax/random_programs.py --seeds 0:1000     # a long run; names every seed that fails
    python tests/jax/random_programs.py --seeds 17 --show  # one program, written out
    python tests/jax/random_programs.py --seeds 0:200 --only dot,reduce   # with these operations
    python tests/jax/random_programs.py --seeds 0:1000 --stage executable  # after all passes

What programs are made of is in `random_draft`. Comparisons of floats, roundings and the like are
kept away from computed floats: two correct programs may fall on different sides of the edge.
"""

import argparse
import collections
import contextlib
import dataclasses
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from typing import Any

if __name__ == "__main__":
    ROOT = pathlib.Path(__file__).resolve().parents[2]
    sys.path[:0] = [str(ROOT), str(ROOT / "tools" / "python"), str(ROOT / "tests" / "jax")]
    from tpusim.cpu_devices import force_cpu_devices

    force_cpu_devices(8)
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # XLA's remarks on marked modules

import jax
import jax.numpy as jnp
import numpy as np
import oracle
import random_elementwise  # noqa: F401  # registers its makers, as the next ones do
import random_lookups  # noqa: F401
import random_movement  # noqa: F401
import random_sums  # noqa: F401
import random_transforms  # noqa: F401
import tpusim
from jax.sharding import AbstractMesh, AxisType, Mesh, NamedSharding, PartitionSpec
from random_draft import (
    DTYPES,
    MAKERS,
    MAX_ELEMENTS,
    AnyMesh,
    Argument,
    Draft,
    Place,
    Step,
    Value,
    extend,
    random_spec,
)

ROOT = pathlib.Path(__file__).resolve().parents[2]
CONFIG = "v5e-4x2"
MESHES = ({"x": 8}, {"x": 4, "y": 2}, {"x": 2, "y": 4}, {"x": 2, "y": 2, "z": 2})
STAGES = ("partitioned", "executable")
# Errors grow from operation to operation, so more than a single operation is allowed.
TOLERANCE = {"float32": 1e-3, "bfloat16": 1e-1}


class Unusable(Exception):  # noqa: N818
    """A program that says nothing: JAX or the CPU refuses it."""


@dataclasses.dataclass
class RandomProgram:
    """Everything about the program of one seed."""

    mesh: dict[str, int]
    nodes: list[Argument | Step]
    values: list[Value]
    results: list[tuple[int, PartitionSpec]]
    explicit: bool = False

    def arguments(self) -> list[Argument]:
        """In their order."""
        return [n for n in self.nodes if isinstance(n, Argument)]

    def build(self, mesh: AnyMesh) -> tuple[Callable[..., Any], tuple[jax.ShapeDtypeStruct, ...]]:
        """The jitted function and its arguments, over a mesh of either kind."""
        place = Place(mesh, explicit=self.explicit)

        def function(*arguments: Any) -> Any:
            values: list[Any] = []
            given = iter(arguments)
            for node in self.nodes:
                if isinstance(node, Argument):
                    values.append(next(given))
                elif self.explicit:
                    values.append(_explicitly(node, place, values))
                else:
                    values.append(node.run(place, values))
            return tuple(values[i] for i, _ in self.results)

        out = tuple(NamedSharding(mesh, spec) for _, spec in self.results)
        arguments = tuple(
            jax.ShapeDtypeStruct(a.value.shape, a.value.dtype, sharding=NamedSharding(mesh, a.spec))
            for a in self.arguments()
        )
        return jax.jit(function, out_shardings=out, keep_unused=True), arguments

    def abstract_mesh(self) -> AbstractMesh:
        """The mesh without devices."""
        kind = AxisType.Explicit if self.explicit else AxisType.Auto
        sizes = tuple(self.mesh.values())
        return AbstractMesh(sizes, tuple(self.mesh), axis_types=(kind,) * len(sizes))

    def concrete_mesh(self, explicit: bool = False) -> Mesh:
        """The mesh over JAX's devices in their order."""
        devices = np.array(jax.devices()).reshape(tuple(self.mesh.values()))
        kind = AxisType.Explicit if explicit else AxisType.Auto
        return Mesh(devices, tuple(self.mesh), axis_types=(kind,) * devices.ndim)

    def __str__(self) -> str:
        lines = [f"mesh {self.mesh}{' explicit' if self.explicit else ''}"]
        for number, (node, value) in enumerate(zip(self.nodes, self.values, strict=True)):
            what = f"argument {node.spec}" if isinstance(node, Argument) else node.name
            operands = ""
            if isinstance(node, Step):
                operands = " (" + ", ".join(f"v{i}" for i in node.operands) + ")"
            lines.append(f"  v{number} = {what}{operands} {value.dtype}{list(value.shape)}")
        lines += [f"  result v{i} {spec}" for i, spec in self.results]
        return "\n".join(lines)


def _explicitly(step: Step, place: Place, values: Sequence[Any]) -> Any:
    """The step with its operands' shardings, or of whole operands if JAX cannot tell."""
    try:
        return step.run(place, values)
    except Exception:
        whole = list(values)
        for i in step.operands:
            whole[i] = jax.sharding.reshard(values[i], NamedSharding(place.mesh, PartitionSpec()))
        return step.run(place, whole)


def make(seed: int, only: Sequence[str] = ()) -> RandomProgram:
    """The program of a seed; `only` restricts its operations to these makers."""
    random = np.random.default_rng(seed)
    mesh = dict(MESHES[int(random.integers(len(MESHES)))])
    draft = Draft(random, mesh, explicit=bool(random.random() < 0.1))
    for _ in range(draft.integer(1, 4)):
        rank = int(draft.choose([0, 1, 1, 2, 2, 2, 3, 3, 4]))
        limit = max(1, int(MAX_ELEMENTS ** (1 / max(rank, 1))))
        shape = tuple(draft.size(limit) for _ in range(rank))
        dtype = draft.choose(DTYPES)
        for _ in range(draft.integer(1, 3)):  # Another one to combine it with.
            draft.operand(shape, dtype)
    extend(draft, draft.integer(2, 10), only)
    steps = [i for i, node in enumerate(draft.nodes) if isinstance(node, Step)]
    if not steps:  # nothing fitted
        return make(seed + 1_000_003, only)
    read = {i for node in draft.nodes if isinstance(node, Step) for i in node.operands}
    # What nobody reads, and perhaps something on the way.
    chosen = set([i for i in steps if i not in read][-5:])
    chosen |= {int(draft.choose(steps)) for _ in range(draft.integer(0, 2))}
    results = [(i, random_spec(random, mesh, draft.values[i].shape, even=True)) for i in chosen]
    return RandomProgram(mesh, draft.nodes, draft.values, sorted(results), draft.explicit)


def reference(program: RandomProgram, seed: int) -> tuple[oracle.PerDevice, oracle.PerDevice]:
    """Returns the inputs and outputs of each device."""
    random = np.random.default_rng(seed)
    mesh = program.concrete_mesh()
    place = Place(mesh, constrains=False)
    values: list[Any] = []
    arguments: list[tuple[Any, PartitionSpec]] = []
    pending: list[Step] = []

    def run_pending() -> None:
        steps = list(pending)
        pending.clear()

        def run(known: list[Any]) -> list[Any]:
            known = list(known)
            for step in steps:
                known.append(step.run(place, known))
            return known[-len(steps) :]

        if steps:
            options = {"xla_backend_optimization_level": 0, "xla_disable_hlo_passes": "algsimp"}
            values.extend(map(np.asarray, jax.jit(run, compiler_options=options)(values)))

    for node in program.nodes:
        if isinstance(node, Argument):
            run_pending()
            struct = jax.ShapeDtypeStruct(node.value.shape, node.value.dtype)
            values.append(oracle.random_array(random, struct, is_weight=False))
            arguments.append((values[-1], node.spec))
        elif node.manual:
            run_pending()
            operands = [values[i] for i in node.operands]
            run = node.compute
            values.append(np.asarray(jax.jit(run, static_argnums=0)(place, *operands)))
        else:
            pending.append(node)
    run_pending()

    def split(value: Any, spec: PartitionSpec) -> list[np.ndarray]:
        return oracle.shards_of(jax.device_put(value, NamedSharding(mesh, spec)))

    inputs = [split(value, spec) for value, spec in arguments]
    return inputs, [split(values[i], spec) for i, spec in program.results]


def check(actual: oracle.PerDevice, expected: oracle.PerDevice) -> None:
    """Checks like `oracle.check`; infinities and NaNs must be at the same places."""
    finite: tuple[oracle.PerDevice, oracle.PerDevice] = ([], [])
    for number, (values, wanted) in enumerate(zip(actual, expected, strict=True)):
        pairs = []
        for device, (value, want) in enumerate(zip(values, wanted, strict=True)):
            if not jnp.issubdtype(want.dtype, jnp.floating) or value.shape != want.shape:
                pairs.append((value, want))
                continue
            holes = ~np.isfinite(want.astype(np.float32))
            same = np.array_equal(
                value.astype(np.float32)[holes], want.astype(np.float32)[holes], equal_nan=True
            )
            assert same, f"result {number} on device {device}: infinities or NaNs differ"
            pairs.append((np.where(holes, 0, value), np.where(holes, 0, want)))
        # All devices' values together say how large a difference matters.
        largest = max((np.abs(w.astype(np.float64)).max(initial=0) for _, w in pairs), default=0)
        for device, (value, want) in enumerate(pairs):
            if not jnp.issubdtype(want.dtype, jnp.floating) or value.shape != want.shape:
                continue
            name = wanted[device].dtype.name
            difference = np.abs(value.astype(np.float64) - want.astype(np.float64))
            off = difference.max(initial=0)
            allowed = TOLERANCE[name] * largest
            where = f"result {number} on device {device}"
            assert off <= allowed, f"{where}: off by {off}, allowed {allowed}"
            pairs[device] = (want, want)
        finite[0].append([value for value, _ in pairs])
        finite[1].append([want for _, want in pairs])
    oracle.check(*finite, TOLERANCE)


def export(program: RandomProgram, path: pathlib.Path) -> None:
    """Writes the program as the compiler gets it."""
    mesh = program.abstract_mesh()
    function, arguments = program.build(mesh)
    context = jax.sharding.use_abstract_mesh(mesh) if program.explicit else contextlib.nullcontext()
    try:
        with context:
            tpusim.export(function, *arguments, path=path, config=CONFIG)
    except Exception as error:
        raise Unusable(f"{type(error).__name__}: {error}") from error


def compiled(program: RandomProgram, binary: str, directory: pathlib.Path, stage: str) -> bytes:
    """The module that tpusim makes of it, a HloModuleProto."""
    source, target = directory / "program.pb", directory / f"{stage}.pb"
    export(program, source)
    command = [binary, "compile", str(source), "--config", CONFIG, "--trip-count", "*=2"]
    if stage == "executable":
        command += ["--passes", oracle.EXACT_PASSES]
    done = subprocess.run(
        [*command, "--emit", stage, "-o", str(target)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr.strip() or f"signal {-done.returncode}"
    return oracle.hlo_module(target.read_bytes())


def verify(
    seed: int,
    binary: str,
    directory: pathlib.Path,
    only: Sequence[str] = (),
    stage: str = "partitioned",
) -> RandomProgram:
    """Asserts that the program of a seed, compiled up to a stage, computes what JAX computes."""
    program = make(seed, only)
    judge(program, seed, binary, directory, stage)
    return program


def judge(
    program: RandomProgram, seed: int, binary: str, directory: pathlib.Path, stage: str
) -> None:
    """Checks any program; the seed makes its arguments."""
    module = compiled(program, binary, directory, stage)
    inputs, expected = reference(program, seed)
    try:
        actual = oracle.run(module, inputs)
    except jax.errors.JaxRuntimeError as error:
        # Branches without parameters, transforms of arrays that lie as XLA itself chose.
        if "leaf parameters" not in str(error) and "fft_thunk" not in str(error):
            raise
        raise Unusable(str(error)) from error
    try:
        check(actual, expected)
    except AssertionError:
        # Unless it is XLA's simplifier that is wrong.
        check(oracle.run(module, inputs, simplify=False), expected)


def smaller(program: RandomProgram) -> Iterator[RandomProgram]:
    """Programs with a result or a step less; arguments all stay, and so keep their values."""
    if len(program.results) > 1:
        for result in program.results:
            yield dataclasses.replace(program, results=[result])
    for number, (i, _) in enumerate(program.results):
        node = program.nodes[i]
        for operand in node.operands if isinstance(node, Step) else ():
            if not isinstance(program.nodes[operand], Step):
                continue
            results = list(program.results)
            results[number] = (operand, PartitionSpec())
            yield dataclasses.replace(program, results=results)
    for i, (node, value) in enumerate(zip(program.nodes, program.values, strict=True)):
        for operand in node.operands if isinstance(node, Step) else ():
            other = program.values[operand]
            if other.shape != value.shape or other.dtype != value.dtype:
                continue
            nodes = [
                dataclasses.replace(n, operands=tuple(operand if o == i else o for o in n.operands))
                if isinstance(n, Step)
                else n
                for n in program.nodes
            ]
            if nodes != program.nodes:
                yield dataclasses.replace(program, nodes=nodes)


def used(program: RandomProgram) -> RandomProgram:
    """Without what no result needs."""
    needed = {i for i, _ in program.results}
    for i in reversed(range(len(program.nodes))):
        node = program.nodes[i]
        if i in needed and isinstance(node, Step):
            needed |= set(node.operands)
    kept = [i for i, n in enumerate(program.nodes) if i in needed or isinstance(n, Argument)]
    at = {i: number for number, i in enumerate(kept)}
    nodes = [
        dataclasses.replace(n, operands=tuple(at[o] for o in n.operands))
        if isinstance(n, Step)
        else n
        for n in (program.nodes[i] for i in kept)
    ]
    results = [(at[i], spec) for i, spec in program.results]
    values = [program.values[i] for i in kept]
    return dataclasses.replace(program, nodes=nodes, values=values, results=results)


def shrink(
    program: RandomProgram, seed: int, binary: str, directory: pathlib.Path, stage: str
) -> str:
    """The smallest program found that still fails, written out, with how it fails."""

    def failure(candidate: RandomProgram) -> str:
        try:
            judge(candidate, seed, binary, directory, stage)
        except Unusable:
            return ""
        except Exception as error:
            return " ".join((str(error) or traceback.format_exc()).split())[:600]
        return ""

    found = failure(program)
    again = bool(found)
    while again:
        again = False
        for candidate in map(used, smaller(program)):
            text = failure(candidate)
            if text:
                program, found, again = candidate, text, True
                break
    failure(program)  # leaves its files
    return f"{program}\n  {found}"


def main(argv: Sequence[str]) -> int:
    """The long run."""
    parser = argparse.ArgumentParser(description="Random programs, compiled and run.")
    parser.add_argument("--seeds", default="0:100", help="one seed, or FIRST:END")
    parser.add_argument("--only", default="", help="operations, by maker name, joined by commas")
    parser.add_argument("--stage", default="partitioned", choices=STAGES, help="what to run")
    parser.add_argument("--show", action="store_true", help="print every program")
    parser.add_argument("--keep", default="", help="directory for the last program's files")
    parser.add_argument("--shrink", action="store_true", help="look for smaller failing programs")
    flags = parser.parse_args(argv)
    first, _, end = flags.seeds.partition(":")
    only = [name for name in flags.only.split(",") if name]
    assert set(only) <= set(MAKERS), f"operations are {', '.join(MAKERS)}"
    binary = os.environ.get("TPUSIM_BINARY", str(ROOT / "build" / "tpusim"))
    operations: collections.Counter[str] = collections.Counter()
    failures: list[int] = []
    unusable: list[int] = []
    seeds = range(int(first), int(end or int(first) + 1))
    started = time.process_time()
    with tempfile.TemporaryDirectory() as temporary:
        directory = pathlib.Path(flags.keep or temporary)
        for seed in seeds:
            print(f"seed {seed}", end="\r", flush=True)  # for when XLA ends the process
            try:
                if flags.show:
                    print(make(seed, only))
                program = verify(seed, binary, directory, only, flags.stage)
                steps = [n for n in program.nodes if isinstance(n, Step)]
                operations.update(step.name.split()[0] for step in steps)
            except Unusable as error:
                unusable.append(seed)
                print(f"seed {seed}: unusable: {' '.join(str(error).split())[:200]}", flush=True)
            except Exception as error:
                failures.append(seed)
                text = str(error) or traceback.format_exc()
                print(f"seed {seed}: {' '.join(text.split())[:400]}", flush=True)
                if flags.shrink:
                    program = make(seed, only)
                    print(shrink(program, seed, binary, directory, flags.stage), flush=True)
            if seed % 50 == 49:
                jax.clear_caches()
    spent = time.process_time() - started
    print(f"{len(seeds)} programs, {len(failures)} failed: {failures}")
    print(f"{len(unusable)} refused by JAX: {unusable}; {spent / len(seeds):.2f} s each")
    print("operations:", ", ".join(f"{n} {name}" for name, n in operations.most_common()))
    return 1 if failures else 0


if __name__ == "__main__":
    # The module of this name, not this script.
    import random_programs

    sys.exit(random_programs.main(sys.argv[1:]))
