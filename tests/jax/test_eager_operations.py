"""Every function of `jax.numpy`, `jax.lax` and `jax.random` takes placeholders outside of any jit.

The functions are those that the modules list. Each is called with arguments of several ranks and
kinds; what JAX accepts is called again with placeholders of these arrays, and has to give values of
the same type, sharding and numbers.
"""

import contextlib
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P
from tpusim import interception
from tpusim.assumptions import ExportWarning
from tpusim.capturing import listed_calls
from tpusim.placeholders import placeholder_of

MODULES = {"numpy": jnp, "lax": lax, "random": jax.random}

# Functions that have nothing to do with elements of arrays, that read or write files, that return
# functions, or that only work inside of a shard_map or with a mesh.
LEFT_OUT = {
    "numpy": {
        *("can_cast", "einsum_path", "fromfile", "frompyfunc", "fromstring", "get_printoptions"),
        *("isdtype", "issubdtype", "iterable", "load", "printoptions", "promote_types", "save"),
        *("savez", "set_printoptions", "vectorize", "frombuffer", "fromiter", "broadcast_shapes"),
        # They name the class of their argument.
        *("array_repr", "array_str"),
        # Results are uninitialised.
        *("empty", "empty_like"),
        # They would write to their argument.
        *("fill_diagonal", "place", "put", "put_along_axis"),
    },
    "lax": {
        *("DotDimensionNumbers", "after_all", "all_gather", "all_to_all", "axis_index"),
        *("axis_size", "broadcast_shapes", "conv_dimension_numbers", "conv_general_permutations"),
        *("conv_general_shape_tuple", "conv_shape_tuple", "conv_transpose_shape_tuple"),
        *("create_token", "dce_sink", "dtype", "empty", "padtype_to_pads", "pbroadcast", "pcast"),
        *("pmax", "pmean", "pmin", "ppermute", "precv", "psend", "pshuffle", "psum"),
        *("psum_scatter", "pswapaxes", "pvary", "ragged_all_to_all", "reduce_window_shape_tuple"),
        *("shape_as_value", "psum_scatter_start", "composite", "with_sharding_constraint"),
        *("unreduced_psum_scatter", "preduced"),
    },
    "random": {"key_dtype"},
}


class Arrays:
    """The arrays of which arguments are made; `sharded` puts those of NumPy on devices."""

    def __init__(self, sharded: Callable[[Any], Any]):
        numbers = np.random.default_rng(0)

        def drawn(*shape: int) -> jax.Array:
            return sharded(numbers.uniform(0.1, 0.9, shape).astype(np.float32))

        def counted(below: int, dtype: Any, *shape: int) -> jax.Array:
            return sharded(numbers.integers(0, below, shape).astype(dtype))

        shapes = (), (8,), (8, 8), (2, 8, 8)
        self.scalar, self.vector, self.matrix, self.cube = (drawn(*shape) for shape in shapes)
        self.count, self.counts = counted(8, np.int32, 8), counted(8, np.int32, 8, 8)
        self.mask, self.bytes = counted(2, bool, 8, 8), counted(2, np.uint8, 8, 8)
        self.waves = sharded(numbers.uniform(0.1, 0.9, (8, 8)).astype(np.complex64))
        self.key = jax.random.key(7)


def general(a: Arrays) -> Iterator[tuple[Any, ...]]:
    """Arguments of which most functions take some."""
    for x in (a.vector, a.matrix, a.cube, a.count, a.counts, a.mask, a.waves, a.bytes, a.scalar):
        yield (x,)
    for x in (a.vector, a.matrix, a.cube, a.count, a.counts, a.mask):
        yield (x, x)
    yield from ((a.matrix, a.vector), (a.matrix, 1), (a.vector, 2), (a.counts, 1), (a.cube, 0))
    yield from ((a.matrix, (8, 8)), (a.matrix, (1, 0)), (a.matrix, (0,)), (a.matrix, jnp.int32))
    yield from (([a.matrix, a.matrix],), ([a.vector, a.vector],), ((a.matrix, a.matrix), 0))
    yield from ((a.matrix, a.matrix, a.matrix), (a.vector, a.vector, a.vector))
    yield from ((a.mask, a.matrix, a.matrix), (a.matrix, 0, 1), (a.scalar, a.matrix, a.scalar))


def of_keys(a: Arrays) -> Iterator[tuple[Any, ...]]:
    """Arguments of random functions."""
    yield from ((a.key,), (a.key, (4,)), (a.key, a.vector), (a.key, a.vector, a.vector))
    yield from ((a.key, 3), (a.key, a.matrix), (a.key, a.scalar), (a.key, a.count))
    yield from ((a.key, 0.1, 0.5, 0.9), (a.key, (4,), 1, 9), (a.key, 3, a.scalar))
    yield from ((a.key, a.vector, jnp.eye(8)), (a.key, 2, (8, 4)), (a.key, 5, a.vector))


OF_NO_KEY = ("PRNGKey", "key", "wrap_key_data")


def window(x: Any) -> tuple[Any, ...]:
    return x, 0.0, lax.add, (2,) * x.ndim, (1,) * x.ndim, "VALID"


def scaled() -> tuple[Any, ...]:
    x, scale = jnp.ones((1, 128, 128), jnp.float8_e4m3fn), jnp.ones((1, 128, 4), jnp.float8_e8m0fnu)
    numbers = (((2,), (2,)), ((0,), (0,)))
    return x, x, {"lhs_scale": scale, "rhs_scale": scale, "dimension_numbers": numbers}


def scatters(a: Arrays) -> Iterator[tuple[Any, ...]]:
    """Rows of a matrix, given by an index each."""
    numbers = lax.ScatterDimensionNumbers((1,), (0,), (0,))
    yield (a.matrix, a.count[:4, None], a.matrix[:4], numbers)


# Arguments of functions that take none of the general ones, keywords in a dictionary at the end.
SPECIAL: dict[str, Callable[[Arrays], Iterator[tuple[Any, ...]] | list[tuple[Any, ...]]]] = {
    "apply_along_axis": lambda a: [(jnp.sort, 0, a.matrix)],
    "apply_over_axes": lambda a: [(jnp.sum, a.matrix, (0, 1))],
    "array_split": lambda a: [(a.matrix, 4)],
    "choose": lambda a: [(a.count % 2, [a.vector, a.vector])],
    "compress": lambda a: [(np.arange(8) % 2 > 0, a.matrix, 0)],
    "diag_indices": lambda a: [(4,)],
    "einsum": lambda a: [("ij,jk->ik", a.matrix, a.matrix), ("bij->bi", a.cube)],
    "fromfunction": lambda a: [(lambda i, j: i + j, (4, 4))],
    "from_dlpack": lambda a: [(a.vector,)],
    "geomspace": lambda a: [(1.0, 8.0, 4)],
    "hsplit": lambda a: [(a.matrix, 2)],
    "vsplit": lambda a: [(a.matrix, 2)],
    "dsplit": lambda a: [(a.cube, 2)],
    "insert": lambda a: [(a.vector, 2, 5.0)],
    "linspace": lambda a: [(a.scalar, 8.0, 4)],
    "logspace": lambda a: [(a.scalar, 8.0, 4)],
    "mask_indices": lambda a: [(4, jnp.triu)],
    "cross": lambda a: [(a.matrix[:, :3], a.matrix[:, :3])],
    "eye": lambda a: [(4,)],
    "histogramdd": lambda a: [(a.matrix[:, :2], 4)],
    "identity": lambda a: [(4,)],
    "kaiser": lambda a: [(8, 2.0)],
    "polyfit": lambda a: [(a.vector, a.vector, 2)],
    "tri": lambda a: [(4,)],
    "tril_indices": lambda a: [(4,)],
    "triu_indices": lambda a: [(4,)],
    "reduce_and": lambda a: [(a.counts, (0,))],
    "reduce_or": lambda a: [(a.counts, (0,))],
    "reduce_xor": lambda a: [(a.counts, (0,))],
    "squeeze": lambda a: [(a.matrix[:1], (0,))],
    "piecewise": lambda a: [(a.vector, [a.vector < 0.5, a.vector >= 0.5], [-1.0, 1.0])],
    "ravel_multi_index": lambda a: [((a.count, a.count), (8, 8), {"mode": "clip"})],
    "select": lambda a: [
        ([a.mask, ~a.mask], [a.matrix, a.matrix * 2]),
        (a.mask, a.matrix, a.matrix * 2),
    ],
    "unravel_index": lambda a: [(a.count, (2, 4))],
    "take_along_axis": lambda a: [(a.matrix, a.counts, 1)],
    "top_k": lambda a: [(a.matrix, 2)],
    "split": lambda a: [(a.matrix, 2), (a.matrix, (3, 5))],
    "approx_max_k": lambda a: [(a.matrix, 2)],
    "approx_min_k": lambda a: [(a.matrix, 2)],
    "argmax": lambda a: [(a.matrix, 0, jnp.int32), (a.matrix, 1)],
    "argmin": lambda a: [(a.matrix, 0, jnp.int32), (a.matrix, 1)],
    "associative_scan": lambda a: [(jnp.add, a.matrix)],
    "broadcast_in_dim": lambda a: [(a.vector, (4, 8), (1,))],
    "broadcasted_iota": lambda a: [(jnp.int32, (4, 8), 1)],
    "iota": lambda a: [(jnp.int32, 8)],
    "cond": lambda a: [
        (True, jnp.sin, jnp.cos, a.matrix),
        (a.scalar > 0, jnp.sin, jnp.cos, a.cube),
    ],
    "conv": lambda a: [
        (a.cube[None], a.matrix[None, :2, :2, None] @ a.matrix[:1, :2], (1, 1), "SAME")
    ],
    "conv_general_dilated": lambda a: [(a.cube, a.cube[:, :, :3] * 2, (1,), "SAME")],
    "conv_general_dilated_local": lambda a: [
        (a.cube, a.cube[:, :, :1].repeat(8, 2), (1,), "SAME", (1,))
    ],
    "conv_general_dilated_patches": lambda a: [(a.cube, (2,), (1,), "SAME")],
    "conv_transpose": lambda a: [(a.cube, a.matrix[:3, :, None] * a.matrix[0], (2,), "SAME")],
    "conv_with_general_padding": lambda a: [(a.cube, a.cube[:, :, :3], (1,), [(1, 1)], None, None)],
    "custom_linear_solve": lambda a: [(lambda x: 2 * x, a.vector, lambda f, b: b / 2)],
    "custom_root": lambda a: [
        (lambda x: x - 1, a.scalar, lambda f, x: x - f(x), lambda g, y: y / g(1.0))
    ],
    "dot_general": lambda a: [(a.matrix, a.matrix, (((1,), (0,)), ((), ())))],
    "dynamic_slice": lambda a: [(a.matrix, (1, 2), (2, 4)), (a.matrix, (a.count[0], 0), (2, 8))],
    "dynamic_slice_in_dim": lambda a: [(a.matrix, a.count[0], 4)],
    "dynamic_update_slice": lambda a: [(a.matrix, a.matrix[:2], (a.count[1], 0))],
    "dynamic_update_slice_in_dim": lambda a: [(a.matrix, a.matrix[:2], 3, 0)],
    "dynamic_update_index_in_dim": lambda a: [(a.matrix, a.vector, 3, 0)],
    "fft": lambda a: [(a.waves, "fft", (8,))],
    "fori_loop": lambda a: [(0, 3, lambda i, c: c + i, a.matrix)],
    "full": lambda a: [((4, 4), 1.0), ((4, 4), a.scalar)],
    "gather": lambda a: [
        (a.matrix, a.count[:, None], lax.GatherDimensionNumbers((1,), (0,), (0,)), (1, 8))
    ],
    "index_take": lambda a: [(a.matrix, (a.count,), (0,))],
    "map": lambda a: [(jnp.sin, a.matrix)],
    "pad": lambda a: [(a.matrix, 0.0, ((1, 1, 0), (0, 2, 1))), (a.matrix, 1)],
    "platform_dependent": lambda a: [(a.matrix, {"default": jnp.sin})],
    "polygamma": lambda a: [(a.vector * 0 + 1, a.vector)],
    "ragged_dot": lambda a: [(a.matrix, a.cube, jnp.array([3, 5], jnp.int32))],
    "ragged_dot_general": lambda a: [
        (
            *(a.matrix, a.cube, jnp.array([3, 5], jnp.int32)),
            lax.RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), [0], [0]),
        )
    ],
    "reduce": lambda a: [(a.matrix, 0.0, lax.add, (0,))],
    "reduce_precision": lambda a: [(a.matrix, 5, 7)],
    "reduce_window": lambda a: [window(a.matrix), window(a.vector)],
    "rng_bit_generator": lambda a: [(jnp.arange(4, dtype=jnp.uint32), (4, 4))],
    "rng_uniform": lambda a: [(0.0, 0.0, (4, 4))],
    "scaled_dot": lambda a: [scaled()],
    "scan": lambda a: [(lambda c, x: (c + x, c * x), a.vector, a.matrix)],
    **{f"scatter{kind}": scatters for kind in ("", "_add", "_max", "_min", "_mul", "_sub")},
    "scatter_apply": lambda a: [
        (
            *(a.matrix, a.count[:4, None], jnp.sin),
            lax.ScatterDimensionNumbers((1,), (0,), (0,)),
            {"update_shape": (4, 8)},
        )
    ],
    "select_n": lambda a: [(a.mask, a.matrix, a.matrix)],
    "slice": lambda a: [(a.matrix, (1, 0), (5, 8)), (a.vector, (0,), (8,), (2,))],
    "slice_in_dim": lambda a: [(a.matrix, 1, 5)],
    "sort_key_val": lambda a: [(a.matrix, a.counts)],
    "switch": lambda a: [
        (1, [jnp.sin, jnp.cos], a.matrix),
        (a.count[0], [jnp.sin, jnp.cos], a.cube),
    ],
    "tile": lambda a: [(a.matrix, (2, 2))],
    "while_loop": lambda a: [(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * 2), (0, a.matrix))],
    "betainc": lambda a: [(a.vector, a.vector, a.vector)],
    "interp": lambda a: [(a.scalar, a.vector, a.vector)],
    "digitize": lambda a: [(a.vector, np.linspace(0, 1, 5, dtype=np.float32))],
    "trim_zeros": lambda a: [(a.count,)],
    "vander": lambda a: [(a.vector,)],
    "wrap_key_data": lambda a: [(jax.random.key_data(a.key),)],
    "PRNGKey": lambda a: [(3,), (a.count[0],)],
    "key": lambda a: [(3,), (a.count[0],)],
}

# Kinds of arguments that a function is called with.
MOST_KINDS = 2


def arguments(module: str, name: str, arrays: Arrays) -> Iterator[tuple[Any, ...]]:
    """Arguments that the function may take."""
    if module == "random" and name not in OF_NO_KEY:
        yield from of_keys(arrays)
    else:
        yield from SPECIAL.get(name, general)(arrays)


def ranks(given: tuple[Any, ...]) -> tuple[Any, ...]:
    """Tells kinds of arguments apart: ranks of the arrays among them."""
    return tuple(getattr(leaf, "ndim", None) for leaf in jax.tree.leaves(given))


def call(module: str, name: str, given: tuple[Any, ...]) -> Any:
    """Calls the function."""
    *positional, last = given
    positional, keywords = (positional, last) if isinstance(last, dict) else (given, {})
    return getattr(MODULES[module], name)(*positional, **keywords)


def accepted(module: str, name: str, arrays: Arrays) -> Iterator[tuple[int, Any]]:
    """Yields numbers of arguments that JAX takes and results, one of each kind."""
    kinds: set[Any] = set()
    try:
        possible = list(arguments(module, name, arrays))
    except Exception:  # They are not made of arrays that are split.
        return
    for number, given in enumerate(possible):
        if len(kinds) == MOST_KINDS or (kind := ranks(given)) in kinds:
            continue
        try:
            result = call(module, name, given)
        except Exception:
            continue
        kinds.add(kind)
        yield number, result


def difference(expected: Any, found: Any) -> str:
    """Says in what values differ; "" if they are alike."""
    if jax.tree.structure(expected) != jax.tree.structure(found):
        return f"{jax.tree.structure(found)}, not {jax.tree.structure(expected)}"
    for e, f in zip(jax.tree.leaves(expected), jax.tree.leaves(found), strict=True):
        if not isinstance(e, jax.Array):
            if not np.array_equal(e, f):
                return f"{f!r}, not {e!r}"
            continue
        for what in (jax.typeof, type_text, lambda a: a.sharding):
            if what(e) != what(f):
                return f"{what(f)}, not {what(e)}"
        if not np.allclose(numbers(e), numbers(f), rtol=1e-5, atol=1e-6, equal_nan=True):
            return f"{numbers(f)}, not {numbers(e)}"
    return ""


def type_text(array: jax.Array) -> str:
    """Returns the type as JAX prints it."""
    return jax.typeof(array).str_short(True, True)


def numbers(array: jax.Array) -> np.ndarray:
    """Returns the elements; of random keys their words."""
    if jax.dtypes.issubdtype(array.dtype, jax.dtypes.prng_key):
        array = jax.random.key_data(array)
    found = np.asarray(array)
    return found if found.dtype.kind in "biufc" else found.astype(np.float32)


@contextlib.contextmanager
def everything_is_hidden(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A block in which all but scalars are placeholders; their elements are known."""
    with monkeypatch.context() as patch, warnings.catch_warnings(), listed_calls():
        warnings.simplefilter("ignore", ExportWarning)
        patch.setattr(interception, "_MOST_BYTES_AT_ONCE", 16)
        yield


def differences(
    module: str, names: Sequence[str], kind: str, monkeypatch: pytest.MonkeyPatch
) -> dict[str, str]:
    """Returns what placeholders make different, by function."""
    placed = placing(kind)
    arrays = Arrays(placed)
    expected = {name: list(accepted(module, name, arrays)) for name in names}
    found: dict[str, str] = {}
    if kind == "one":  # Some operations are not for arrays that are split.
        untried = (name for name, results in expected.items() if not results)
        found = dict.fromkeys(untried, "JAX takes none of the arguments")
    with everything_is_hidden(monkeypatch):
        hidden = Arrays(placed)
        assert placeholder_of(hidden.vector) is not None
        for name, results in expected.items():
            given = list(arguments(module, name, hidden)) if results else []
            for number, result in results:
                try:
                    said = difference(result, call(module, name, given[number]))
                except Exception as error:
                    said = f"{type(error).__name__}: {error}"
                if said:
                    found[f"{name} {number}"] = said
    return found


def functions(module: str) -> list[str]:
    """Returns the names of the functions of a module."""
    room = MODULES[module]
    return [
        name
        for name in dir(room)
        if not name.startswith("_")
        and callable(getattr(room, name))
        and not isinstance(getattr(room, name), type)
        and name not in LEFT_OUT[module]
    ]


def placing(kind: str) -> Callable[[np.ndarray], jax.Array]:
    """Returns what puts an array on devices: one of them, or a mesh whose axes are of that kind."""
    if kind == "one":
        return jax.device_put
    mesh = jax.make_mesh((2, 4), ("x", "y"), axis_types=(getattr(AxisType, kind),) * 2)
    specs = (P(), P("x"), P("x", "y"), P("x", None, "y"))
    return lambda array: jax.device_put(array, NamedSharding(mesh, specs[array.ndim]))


# The short run calls every so many functions, on a mesh whose types have the shardings.
STRIDE = 24
CASES = [
    pytest.param(kind, start, marks=() if (kind, start) == ("Explicit", 0) else pytest.mark.long)
    for kind in ("one", "Auto", "Explicit")
    for start in range(STRIDE)
]


@pytest.mark.parametrize(("kind", "start"), CASES)
@pytest.mark.parametrize("module", MODULES)
def test_placeholders_are_taken(
    module: str, kind: str, start: int, monkeypatch: pytest.MonkeyPatch
):
    names = functions(module)[start::STRIDE]
    assert differences(module, names, kind, monkeypatch) == {}
