"""Judges a partitioned module by its results: XLA runs it on CPU devices, JAX says what is right.

A partitioned module is what a partitioner emits: shapes of one device, explicit collectives. Every
device is fed its own shards of the arguments and must produce its own shards of the results.

    inputs, expected = reference(function, arguments)
    actual = run(partitioned_module, inputs)
    check(actual, expected)

How a module that is already partitioned gets past XLA's own partitioner (jaxlib 0.10.2): every
instruction is declared {manual}, which the partitioner must leave alone. Partitioning stays on,
because otherwise the CPU client refuses more than one partition. The arguments are declared
replicated with the shape of one device, but made of eight different buffers; nobody compares them.
"""

import inspect
import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import hlo_execution
import jax
import numpy as np
from jax._src.interpreters import mlir
from jax._src.lib.mlir import ir
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxlib import xla_client
from tpusim import hlo, wire

_xla: Any = xla_client._xla
hlo_module = hlo.module_bytes

# One list per value, in it one array per device.
PerDevice = list[list[np.ndarray]]

# Allowed difference, as a fraction of the largest expected value: sums in another order, and, for
# the narrow types, intermediate results that one side rounds and the other one keeps.
TOLERANCE = {"float32": 1e-5, "bfloat16": 2e-2, "float16": 2e-3}

# Passes for `tpusim compile --passes`: without what rounds as products do on TPUs, but not on CPUs.
EXACT_PASSES = "-round-before-exchange"

# Fields of HloModuleProto; dropped are schedule, aliasing, entry shardings, device assignment,
# donors.
_COMPUTATIONS, _DROPPED = 3, (7, 8, 12, 14, 15, 18)
_INSTRUCTIONS = 2  # of HloComputationProto
# HloInstructionProto: sharding, and the four places where replica groups have lived.
_SHARDING, _GROUP_FIELDS, _UNSUITABLE_GROUPS = 40, (49, 87, 92, 93), (92, 93)
_MANUAL = wire.serialize([wire.integer(1, 4)])  # OpSharding{type: MANUAL}


def run(module: bytes, inputs: PerDevice, simplify: bool = True) -> PerDevice:
    """Executes a partitioned HloModuleProto; device i of the module is jax.devices()[i].

    XLA simplifies the module first, which in jaxlib 0.10.2 goes wrong now and then: slices of
    slices read elsewhere. Unsimplified, in turn, some modules cannot be compiled for CPUs.
    """
    devices = jax.devices()
    count = len(devices)
    options = _xla.CompileOptions()
    build = options.executable_build_options
    options.num_partitions = build.num_partitions = count
    options.num_replicas = build.num_replicas = 1
    build.use_spmd_partitioning, build.use_shardy_partitioner = True, False
    assignment = _xla.DeviceAssignment.create(np.array([[d.id for d in devices]]))
    options.device_assignment = build.device_assignment = assignment
    build.debug_options.xla_backend_optimization_level = 0  # Half the time is otherwise LLVM's.
    if not simplify:
        build.debug_options.xla_disable_hlo_passes = "algsimp"
    executable = devices[0].client.compile_and_load(
        _to_stablehlo(module), _xla.DeviceList(tuple(devices)), options
    )
    pretended = NamedSharding(Mesh(np.array(devices), ("device",)), PartitionSpec())
    arguments = []
    for shards in inputs:
        buffers = [jax.device_put(s, d) for s, d in zip(shards, devices, strict=True)]
        arguments.append(
            jax.make_array_from_single_device_arrays(buffers[0].shape, pretended, buffers)
        )
    results = executable.execute_sharded(arguments).disassemble_into_single_device_arrays()
    return [[np.asarray(shard) for shard in result] for result in results]


def reference(
    function: Callable[..., Any],
    arguments: Sequence[Any],
    seed: int = 0,
    ranges: Mapping[str, tuple[float, float]] | None = None,
) -> tuple[PerDevice, PerDevice]:
    """Runs the JAX function on random arguments: what each device gets in and gives out.

    Only arguments that the function uses are listed, as in the exported module. `ranges` limits
    the values of an argument, or of a leaf of one, by its name: {name: (lowest, below)}.
    """
    random = np.random.default_rng(seed)
    lowered = function.lower(*arguments)  # type: ignore[attr-defined]
    leaves, tree = jax.tree.flatten(tuple(arguments))
    placed = []
    for number, (leaf, path) in enumerate(zip(leaves, _paths(function, arguments), strict=True)):
        limits = [limit for name, limit in (ranges or {}).items() if name in path]
        values = random_array(random, leaf, is_weight=number > 0, limits=limits)
        placed.append(jax.device_put(values, leaf.sharding))
    kept = sorted(lowered._lowering.compile_args["kept_var_idx"])
    inputs = [shards_of(placed[k]) for k in kept]
    options = {"xla_backend_optimization_level": 0}
    compiled = lowered.compile(compiler_options=options)
    results = jax.tree.leaves(compiled(*jax.tree.unflatten(tree, placed)))
    return inputs, [shards_of(r) for r in results]


def check(
    actual: PerDevice, expected: PerDevice, tolerance: Mapping[str, float] = TOLERANCE
) -> None:
    """Asserts equality: exact for integers, within `tolerance` for floats, on every device."""
    assert len(actual) == len(expected), f"{len(actual)} results, expected {len(expected)}"
    for number, (values, wanted) in enumerate(zip(actual, expected, strict=True)):
        assert len(values) == len(wanted)
        for device, (value, want) in enumerate(zip(values, wanted, strict=True)):
            where = f"result {number} on device {device}"
            assert value.shape == want.shape, f"{where}: {value.shape}, expected {want.shape}"
            assert value.dtype == want.dtype, f"{where}: {value.dtype}, expected {want.dtype}"
            if want.dtype.kind in "biu":
                assert np.array_equal(value, want), f"{where}: integers differ"
                continue
            want64, value64 = want.astype(np.float64), value.astype(np.float64)
            assert np.isfinite(want64).all(), f"{where}: choose arguments with finite results"
            allowed = tolerance[want.dtype.name] * np.abs(want64).max()
            difference = np.abs(value64 - want64).max()
            assert difference <= allowed, f"{where}: off by {difference}, allowed {allowed}"


def _paths(function: Callable[..., Any], arguments: Sequence[Any]) -> list[set[str]]:
    """Per leaf of the arguments the names it goes by: of the argument, fields and keys."""
    names = list(inspect.signature(function).parameters)
    paths = []
    for name, argument in itertools.zip_longest(names, arguments, fillvalue=""):
        for path, _ in jax.tree_util.tree_flatten_with_path(argument)[0]:
            keys = {str(getattr(k, "name", getattr(k, "key", ""))) for k in path}
            paths.append({name} | keys)
    return paths


def random_array(
    random: np.random.Generator,
    aval: jax.ShapeDtypeStruct,
    is_weight: bool,
    limits: Sequence[tuple[float, float]] = (),
) -> np.ndarray:
    """An argument: integers of all bits, floats near one, or anything within the first limits."""
    if limits:
        low, high = limits[0]
        return random.uniform(low, high, aval.shape).astype(aval.dtype)
    if jax.numpy.issubdtype(aval.dtype, jax.numpy.integer):
        info = np.iinfo(aval.dtype)
        # All bits: integer products must be right modulo the width, not just for small numbers.
        return random.integers(info.min, info.max, aval.shape, aval.dtype, endpoint=True)
    if aval.dtype == np.bool_:
        return random.random(aval.shape) < 0.5
    values = random.standard_normal(aval.shape, np.float32)
    if is_weight and len(aval.shape) > 1:
        values /= np.sqrt(aval.shape[-2])  # Keeps what passes through many layers near one.
    return values.astype(aval.dtype)


def shards_of(array: jax.Array) -> list[np.ndarray]:
    """Returns the shard of each of jax.devices()."""
    # A copy: the array may be donated.
    by_device = {s.device: np.array(s.data) for s in array.addressable_shards}
    return [by_device[d] for d in jax.devices()]


def _to_stablehlo(module: bytes) -> bytes:
    """The module as StableHLO bytecode in which every operation is {manual}.

    Loops and branches stay unmarked: the compiler drops carries that never change and would then
    find a tuple sharding of the wrong size. They turn manual again because all around them is.
    """
    with mlir.make_ir_context():
        parsed = ir.Module.parse(_xla.mlir.hlo_to_stablehlo(mark_manual(module)))

        _expand_ragged_dots(parsed)

        def mark(operation: Any) -> Any:
            count = len(operation.results)
            if operation.name in ("stablehlo.while", "stablehlo.case", "stablehlo.if"):
                if "mhlo.sharding" in operation.attributes:
                    del operation.attributes["mhlo.sharding"]
            elif count and operation.name != "func.func":
                sharding = "{manual}" if count == 1 else "{" + ", ".join(["{manual}"] * count) + "}"
                operation.attributes["mhlo.sharding"] = ir.StringAttr.get(sharding)
            return ir.WalkResult.ADVANCE

        parsed.operation.walk(mark)
        return mlir.module_to_bytecode(parsed)


def _expand_ragged_dots(module: Any) -> None:
    """Writes ragged products as JAX does for CPU, whose compiler knows none: dense ones, masked."""
    found = []

    def collect(operation: Any) -> Any:
        if operation.name == "mhlo.ragged_dot":
            found.append(operation)
        return ir.WalkResult.ADVANCE

    module.operation.walk(collect)
    for number, operation in enumerate(found):
        expanded = _ragged_dot_for_cpu(operation)
        for name in re.findall(r"func\.func \w+ @(\w+)", expanded):
            expanded = re.sub(rf"@{name}\b", f"@ragged_{number}_{name}", expanded)
        for function in ir.Module.parse(expanded).body.operations:
            module.body.append(function.operation.clone())
        with ir.InsertionPoint(operation), ir.Location.unknown():
            call = ir.Operation.create(
                "func.call",
                results=[r.type for r in operation.results],
                operands=list(operation.operands),
                attributes={"callee": ir.FlatSymbolRefAttr.get(f"ragged_{number}_main")},
            )
        operation.results[0].replace_all_uses_with(call.results[0])
        operation.erase()


def _ragged_dot_for_cpu(operation: Any) -> str:
    """StableHLO of a function that does what the operation does."""
    text = str(operation)

    def dimensions(name: str) -> tuple[int, ...]:
        listed = re.search(rf"{name} = \[([^\]]*)\]", text)
        return tuple(int(d) for d in listed[1].split(",")) if listed else ()

    numbers = jax.lax.RaggedDotDimensionNumbers(
        dot_dimension_numbers=(
            (dimensions("lhs_contracting_dimensions"), dimensions("rhs_contracting_dimensions")),
            (dimensions("lhs_batching_dimensions"), dimensions("rhs_batching_dimensions")),
        ),
        lhs_ragged_dimensions=dimensions("lhs_ragged_dimensions"),
        rhs_group_dimensions=dimensions("rhs_group_dimensions"),
    )
    kinds = {"f32": "float32", "bf16": "bfloat16", "i32": "int32"}
    shapes = [
        jax.ShapeDtypeStruct(tuple(v.type.shape), kinds[str(v.type.element_type)])
        for v in operation.operands
    ]
    result = kinds[str(operation.results[0].type.element_type)]

    def product(lhs: jax.Array, rhs: jax.Array, sizes: jax.Array) -> jax.Array:
        return jax.lax.ragged_dot_general(
            lhs, rhs, sizes, numbers, preferred_element_type=np.dtype(result)
        )

    return jax.jit(product).lower(*shapes).as_text()


def mark_manual(module: bytes) -> bytes:
    """The module with sharding={manual} everywhere and replica groups as plain lists."""
    fields: list[wire.Field] = []
    for number, kind, value in wire.parse(module):
        if number in _DROPPED:
            continue
        if number == _COMPUTATIONS and isinstance(value, bytes):
            value = wire.serialize(
                wire.blob(n, _mark_instruction(wire.parse(v)))
                if n == _INSTRUCTIONS and isinstance(v, bytes)
                else (n, k, v)
                for n, k, v in wire.parse(value)
            )
        fields.append((number, kind, value))
    return wire.serialize(fields)


def _mark_instruction(fields: list[wire.Field]) -> bytes:
    kept = [f for f in fields if f[0] != _SHARDING]
    if any(f[0] in _UNSUITABLE_GROUPS for f in fields):
        # hlo_to_stablehlo gives all meshes one name and so confuses groups over different meshes.
        groups = hlo_execution.replica_groups(fields) or []
        lists = [wire.blob(1, b"".join(map(wire.encode_varint, group))) for group in groups]
        explicit = wire.serialize(wire.blob(1, wire.serialize([g])) for g in lists)
        kept = [f for f in kept if f[0] not in _GROUP_FIELDS] + [wire.blob(87, explicit)]
    return wire.serialize([*kept, wire.blob(_SHARDING, _MANUAL)])
