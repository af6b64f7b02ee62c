"""What the operations of a kernel's body cost, and those on scalars that are known."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tpusim.kernels.price import Stage
from tpusim.workload import KernelProduct


def words(text: str) -> frozenset[str]:
    """Names of primitives, separated by spaces."""
    return frozenset(text.split())


TRANSCENDENTAL = words(
    "exp exp2 expm1 log log1p tanh logistic sin cos tan asin acos atan atan2 sinh cosh asinh acosh "
    "atanh erf erfc erf_inv rsqrt sqrt cbrt pow lgamma digamma reciprocal"
)
# One operation per element of the result.
ELEMENTWISE = words(
    "add sub mul div rem max min and or xor not neg abs sign floor ceil round eq ne lt le gt ge "
    "select_n clamp nextafter is_finite convert_element_type shift_left shift_right_logical "
    "shift_right_arithmetic integer_pow square population_count clz add_any "
    "stochastic_round mulhi pack_elementwise unpack_elementwise"
)
# One operation per element that goes in.
REDUCTIONS = words(
    "reduce_sum reduce_max reduce_min reduce_prod reduce_and reduce_or reduce_xor argmax argmin "
    "cumsum cumprod cummax cummin cumlogsumexp"
)
# Nothing is computed: names, places, and loads and stores, which go with what they feed.
FREE = words(
    "broadcast_in_dim reshape transpose squeeze expand_dims concatenate slice dynamic_slice pad "
    "dynamic_update_slice rev iota tile gather bitcast_convert_type copy copy_p stop_gradient get "
    "swap addupdate masked_load masked_swap load store program_id num_programs axis_index "
    "debug_print debug_print_p multiple_of repeat roll bitcast delay "
    "optimization_barrier create_token "
    "semaphore_signal semaphore_wait semaphore_read get_barrier_semaphore dma_wait "
    "prng_seed prng_random_bits empty_ref free_ref ref_cast pvary pcast reduce_precision "
    "reshard mesh_cast sharding_constraint layout_constraint split with_memory_space_constraint "
    "add_dependency trace_value"
)
# References that these take are what they were before.
READS = words("get masked_load load dma_wait semaphore_wait semaphore_read debug_print")
# Jaxprs that run once, by the parameter that holds them.
CALLS = {
    **{"jit": "jaxpr", "pjit": "jaxpr", "closed_call": "call_jaxpr", "core_call": "call_jaxpr"},
    **{"custom_jvp_call": "call_jaxpr", "custom_vjp_call": "call_jaxpr", "remat2": "jaxpr"},
    **{"checkpoint": "jaxpr", "run_scoped": "jaxpr", "run_state": "jaxpr"},
    **{"custom_vmap_call": "call", "remat_opt": "fwd_jaxpr"},
}
SCALAR: dict[str, Callable[..., np.ndarray]] = {
    **{"add": np.add, "sub": np.subtract, "mul": np.multiply, "max": np.maximum},
    **{"min": np.minimum, "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal},
    **{"gt": np.greater, "ge": np.greater_equal, "neg": np.negative, "sign": np.sign},
    **{"and": lambda a, b: a & b, "or": lambda a, b: a | b, "xor": lambda a, b: a ^ b},
    "abs": np.abs,
    "not": lambda a: ~a,
    "rem": np.fmod,
    "div": lambda a, b: np.trunc(a / b).astype(np.int64),
    "select_n": lambda which, *cases: np.choose(np.asarray(which, int), cases),
    "clamp": lambda low, x, high: np.clip(x, low, high),
}

# Number formats of the arrays, as the parameters chip.mxu.passes_* call them, and as the simulator
# takes products outside of kernels. float16 is none of them and goes in as float32 does.
_FORMATS = {"bfloat16": "bf16", "bool": "bf16", "float32": "f32", "float16": "f32"}
_FORMATS |= dict.fromkeys(words("int8 uint8"), "int8")
_FORMATS |= dict.fromkeys(words("int4 uint4 int2 uint2"), "int4")
_FORMATS |= dict.fromkeys(words("int16 uint16 int32 uint32"), "int32")


def product(equation: Any) -> Stage | None:
    """Of a dot_general; nothing for operands that the arrays do not take."""
    left, right = (v.aval for v in equation.invars)
    (contracted, _), (batch, _) = equation.params["dimension_numbers"]
    depth = math.prod(left.shape[d] for d in contracted)
    batches = math.prod(left.shape[d] for d in batch)
    rows = math.prod(left.shape) // max(1, depth * batches)
    columns = math.prod(right.shape) // max(1, depth * batches)
    dtype = str(left.dtype)
    number_format = "fp8" if dtype.startswith("float8_") else _FORMATS.get(dtype)
    if number_format is None:
        return None
    precision = str(equation.params.get("precision"))
    if number_format == "f32":
        number_format += (
            "_highest" if "HIGHEST" in precision else "_high" if "HIGH" in precision else ""
        )
    one = KernelProduct(rows, depth, columns, number_format)
    return Stage(flops=2 * batches * rows * depth * columns, products=((one, batches),))


def _result(equation: Any) -> Any:
    return equation.outvars[0].aval


def on_arrays(equation: Any) -> Stage | None:
    """Of an operation that is no product; nothing if there is no rule."""
    name = equation.primitive.name
    if name in TRANSCENDENTAL:
        return Stage(transcendentals=math.prod(equation.outvars[0].aval.shape))
    if name == "convert_element_type" and equation.invars[0].aval.dtype == _result(equation).dtype:
        return Stage()  # Nothing is left of it.
    if name in ELEMENTWISE:
        return Stage(flops=math.prod(equation.outvars[0].aval.shape))
    if name in REDUCTIONS:
        return Stage(flops=math.prod(equation.invars[0].aval.shape))
    return Stage() if name in FREE else None
