"""Every operation that JAX writes into the body of a Pallas kernel for TensorCores has a price.

Which ones these are is read off the lowering of the installed JAX, so that a new version with a new
operation fails here by name, and not by kernels that fall back to an estimate of their own.
"""

import importlib
import importlib.util
import pathlib
import re

ROOT = pathlib.Path(__file__).parents[2]
# Kernels that drive the matrix unit by hand, or convolve, keep their own estimate
# (docs/known-gaps.md).
WITHOUT_PRICE = {
    "tpu.conv",
    "tpu.matmul_acc_lhs",
    "tpu.matmul_lhs_fifo",
    "tpu.matmul_pop",
    "tpu.matmul_pop_fifo",
    "tpu.matmul_push_rhs",
}
# No operations: functions of Python, and ends of regions.
OTHER_NAMES = {"math.prod", "math.inf", "scf.yield", "scf.condition", "tpu.yield"}
DIALECTS = "arith|math|memref|scf|cf|tpu|vector"


def written_by_jax() -> set[str]:
    """Returns the names of the operations that the lowering builds."""
    spec = importlib.util.find_spec("jax._src.pallas.mosaic.lowering")
    assert spec is not None
    assert spec.origin is not None
    text = pathlib.Path(spec.origin).read_text()
    calls = re.findall(rf"(?<![\w.])(?:mlir_)?({DIALECTS})\.([a-z][a-z0-9_]*)\(", text)
    names = {f"{dialect}.{name.rstrip('_')}" for dialect, name in calls}
    # Some are built by their class, which has the name of the operation.
    classes = re.findall(rf"(?<![\w.])(?:mlir_)?({DIALECTS})\.([A-Z]\w*Op)\(", text)
    lowering = importlib.import_module(spec.name)
    for dialect, name in classes:
        module = getattr(lowering, "mlir_math" if dialect == "math" else dialect)
        names.add(getattr(module, name).OPERATION_NAME)
    return {name for name in names - OTHER_NAMES if not name.endswith("register_dialect")}


def known_here() -> set[str]:
    """Returns the names of the operations that bodies are priced by."""
    rooms = ("workloads/mosaic", "workloads/kernels/opaque")
    text = "".join(p.read_text() for room in rooms for p in sorted((ROOT / room).glob("*.cc")))
    return set(re.findall(rf'[" ]((?:{DIALECTS})\.[a-z][a-z0-9_]*)(?=[" ])', text))


def test_all_operations_of_jax_have_a_rule() -> None:
    written = written_by_jax()
    assert len(written) > 80
    assert {"tpu.matmul", "arith.addf", "math.exp", "scf.for"} <= written
    assert not written - known_here() - WITHOUT_PRICE
