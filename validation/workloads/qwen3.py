"""Train steps of Qwen3-8B on eight chips of v6e whose time is published by XProf category.

    python validation/workloads/qwen3.py [NAME ...]     writes exports, all by default

Source: vlasenkoalexey/tpu_performance_autoresearch_wiki, the experiment pages of its qwen3 lanes
(named at each run), with sizes of the published model. Written anew in JAX: grouped-query attention
whose queries and keys are normalized, a gated MLP, weights stored as [out, in], and no constraint
on any activation. Everything is bfloat16, both moments of Adam too.

All arrays are shared over one mesh axis, `fsdp`: weights along the model's width, the embedding
along the vocabulary.
"""

import dataclasses
import functools
import pathlib
import sys
from typing import Any, Literal

ROOT = pathlib.Path(__file__).resolve().parents[2]
if __name__ == "__main__":
    sys.path[:0] = [str(ROOT), str(ROOT / "tools" / "python")]

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
from jax import lax  # noqa: E402
from jax.ad_checkpoint import checkpoint_name  # noqa: E402
from jax.sharding import NamedSharding, PartitionSpec  # noqa: E402

from validation.workloads.decoder import normalize, turned  # noqa: E402
from validation.workloads.train_step import Step, TrainState, adam  # noqa: E402
from workloads.examples.example import AnyMesh, Example, Program, array  # noqa: E402

WIDTH, HEADS, KEY_HEADS, HEAD = 4096, 32, 8, 128
MLP, LAYERS, VOCABULARY = 12288, 36, 151_936
LONGEST_TURN, EPSILON = 1e6, 1e-6
SHARDS = 8
MESH = {"fsdp": SHARDS}

# [out, in] of the weights of a layer, and which dimension is the model's width.
PROJECTIONS = {
    "query": ((HEADS * HEAD, WIDTH), 1),
    "key": ((KEY_HEADS * HEAD, WIDTH), 1),
    "value": ((KEY_HEADS * HEAD, WIDTH), 1),
    "out": ((WIDTH, HEADS * HEAD), 0),
    "gate": ((MLP, WIDTH), 1),
    "up": ((MLP, WIDTH), 1),
    "down": ((WIDTH, MLP), 0),
}
SCALES = {"scale_attention": WIDTH, "scale_mlp": WIDTH, "scale_query": HEAD, "scale_key": HEAD}

# Rows and columns of logits that the chunked loss computes at a time.
ROWS, COLUMNS = 1024, 2048

Weights = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Qwen3:
    """One published step.

    `sequence` positions in each of `batch` sequences of a device. Layers are one scan, or copies
    (`unroll`). Their backward pass computes again what is not in `save` (names of `attention`) or
    `offload`; `remat` False keeps everything. The loss makes all logits (`plain`), a custom
    gradient with one-hot targets (`one_hot`), or rows and columns of logits in turn (`chunked`).
    """

    sequence: int
    batch: int
    unroll: bool = False
    remat: bool = True
    save: tuple[str, ...] = ()
    offload: tuple[str, ...] = ()
    loss: Literal["plain", "one_hot", "chunked"] = "plain"

    def policy(self) -> Any:
        """Returns a policy for `jax.checkpoint`."""
        if not self.save and not self.offload:
            return None
        return jax.checkpoint_policies.save_and_offload_only_these_names(
            names_which_can_be_saved=list(self.save),
            names_which_can_be_offloaded=list(self.offload),
            offload_src="device",
            offload_dst="pinned_host",
        )

    def build(self, mesh: AnyMesh) -> Program:
        """The step and its arguments."""
        return train_step(self, mesh)


def weights_of(model: Qwen3, mesh: AnyMesh) -> Weights:
    """Returns the weights as arguments."""
    layer: dict[str, tuple[tuple[int, ...], int | None]] = {**PROJECTIONS}
    layer |= {name: ((size,), None) for name, size in SCALES.items()}

    def argument(shape: tuple[int, ...], shared: int | None, stack: int) -> jax.ShapeDtypeStruct:
        axes = ["fsdp" if d == shared else None for d in range(len(shape))]
        if stack:
            shape, axes = (stack, *shape), [None, *axes]
        return array(mesh, shape, jnp.bfloat16, *axes)

    def arguments(stack: int) -> Weights:
        return {name: argument(shape, at, stack) for name, (shape, at) in layer.items()}

    return {
        "layers": [arguments(0) for _ in range(LAYERS)] if model.unroll else arguments(LAYERS),
        "embedding": argument((VOCABULARY, WIDTH), 0, 0),
        "head": argument((VOCABULARY, WIDTH), 1, 0),
        "scale_final": argument((WIDTH,), None, 0),
    }


def times(x: jax.Array, weight: jax.Array) -> jax.Array:
    """`x` by a weight that is stored as [out, in]."""
    return jnp.einsum("...i,oi->...o", x, weight)


def splash(mesh: AnyMesh, query: jax.Array, key: jax.Array, value: jax.Array) -> jax.Array:
    """Causal attention by JAX's splash kernels, each device for its sequences; heads lead."""
    from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_kernel as kernel
    from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_mask as masks

    axes = PartitionSpec("fsdp")

    def local(query: jax.Array, key: jax.Array, value: jax.Array) -> jax.Array:
        length = query.shape[2]
        wide, narrow = min(2048, length), min(1024, length)
        blocks = kernel.BlockSizes(
            block_q=wide,
            block_kv=narrow,
            block_kv_compute=narrow,
            block_q_dkv=wide,
            block_kv_dkv=wide,
            block_kv_dkv_compute=wide,
            use_fused_bwd_kernel=True,
        )
        mask = masks.MultiHeadMask([masks.CausalMask((length, length))] * query.shape[1])
        attend = kernel.make_splash_mha(
            mask=mask,
            head_shards=1,
            q_seq_shards=1,
            block_sizes=blocks,
            residual_checkpoint_name="residuals",
        )
        return jax.vmap(attend)(query * HEAD**-0.5, key, value)

    return jax.shard_map(
        local, mesh=mesh, in_specs=(axes, axes, axes), out_specs=axes, check_vma=False
    )(query, key, value)


def attention(mesh: AnyMesh, w: Weights, x: jax.Array) -> jax.Array:
    """Causal self-attention with its projections; queries and keys are normalized and turned."""
    positions = jnp.arange(x.shape[1], dtype=jnp.float32)

    def heads(name: str, count: int) -> jax.Array:
        return checkpoint_name(times(x, w[name]).reshape(*x.shape[:2], count, HEAD), name)

    def placed(heads: jax.Array, scale: jax.Array) -> jax.Array:
        return turned(normalize(heads, scale, EPSILON), positions, LONGEST_TURN, jnp.float32)

    query = placed(heads("query", HEADS), w["scale_query"])
    key = placed(heads("key", KEY_HEADS), w["scale_key"])
    value = heads("value", KEY_HEADS)
    result = splash(mesh, *(y.swapaxes(1, 2) for y in (query, key, value))).swapaxes(1, 2)
    result = checkpoint_name(result, "context").reshape(*x.shape[:2], HEADS * HEAD)
    return times(result, w["out"])


def layer_output(mesh: AnyMesh, x: jax.Array, w: Weights) -> jax.Array:
    """Attention, then the gated MLP, each added to what came in."""
    x += attention(mesh, w, normalize(x, w["scale_attention"], EPSILON))
    narrow = normalize(x, w["scale_mlp"], EPSILON)
    wide = jax.nn.silu(times(narrow, w["gate"])) * times(narrow, w["up"])
    return x + times(wide, w["down"])


def plain_loss(x: jax.Array, head: jax.Array, targets: jax.Array) -> jax.Array:
    """Makes all logits, their logarithmic softmax in float32, and looks the targets up."""
    logits = times(x, head).astype(jnp.float32)
    wanted = jnp.take_along_axis(jax.nn.log_softmax(logits), targets[..., None], axis=-1)
    return -jnp.mean(wanted)


@jax.custom_vjp
def entropy(logits: jax.Array, wanted: jax.Array) -> jax.Array:
    """Cross-entropy of every position, targets as one-hot vectors, as MaxText writes it."""
    return entropy_forward(logits, wanted)[0]


def entropy_forward(logits: jax.Array, wanted: jax.Array) -> tuple[jax.Array, Any]:
    """The loss, and what its gradient needs: the exponentials and their sums."""
    shifted = logits - lax.stop_gradient(logits.max(axis=-1, keepdims=True))
    exponentials = jnp.exp(shifted)
    total = jnp.sum(exponentials, axis=-1, keepdims=True)
    loss = jnp.squeeze(jnp.log(total), -1) - jnp.sum(wanted * shifted, axis=-1)
    return loss, (wanted, exponentials, total)


def entropy_backward(kept: Any, gradient: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The gradient of the logits; targets have none that anything reads."""
    wanted, exponentials, total = kept
    of_logits = gradient[..., None] * (exponentials / total - wanted)
    return of_logits, jnp.zeros_like(wanted)


entropy.defvjp(entropy_forward, entropy_backward)


def one_hot_loss(x: jax.Array, head: jax.Array, targets: jax.Array) -> jax.Array:
    """Makes all logits in float32, with targets as one-hot vectors."""
    logits = times(x, head).astype(jnp.float32)
    return jnp.mean(entropy(logits, jax.nn.one_hot(targets, VOCABULARY, dtype=logits.dtype)))


@jax.custom_vjp
def streamed_entropy(x: jax.Array, weight: jax.Array, targets: jax.Array) -> jax.Array:
    """The sum of cross-entropies of rows of `x`, of which few logits exist at a time.

    As the source's pages have it (tokamax, `chunked_xla`): loops over rows and columns, forward for
    the logarithms of sums alone, and a gradient by hand that makes the logits once more and adds to
    float32 gradients in place. `weight` is [width, vocabulary]; columns that fill up the last part
    are zeros and count.
    """
    return streamed_forward(x, weight, targets)[0]


def columns_of(weight: jax.Array) -> tuple[jax.Array, int]:
    """The weight in whole parts, and how many."""
    count = -(-weight.shape[1] // COLUMNS)
    return jnp.pad(weight, ((0, 0), (0, count * COLUMNS - weight.shape[1]))), count


def part(array: jax.Array, *starts: jax.Array | int) -> jax.Array:
    """ROWS of an array of rows (one start), or COLUMNS of one of columns (two)."""
    if len(starts) == 2:
        return lax.dynamic_slice(array, starts, (array.shape[0], COLUMNS))
    return lax.dynamic_slice_in_dim(array, starts[0], ROWS)


def is_wanted(targets: jax.Array, column: jax.Array) -> jax.Array:
    """Returns ones where one of COLUMNS from `column` on is the row's target, else zeros."""
    return jax.nn.one_hot(targets - column, COLUMNS, dtype=jnp.float32)


def streamed_forward(x: jax.Array, weight: jax.Array, targets: jax.Array) -> tuple[jax.Array, Any]:
    """The sum, and what its gradient needs."""
    padded, count = columns_of(weight)

    def of_rows(n: jax.Array, carry: Any) -> Any:
        every, loss = carry

        def of_columns(k: jax.Array, carry: Any) -> Any:
            total, wanted = carry
            here = part(targets, n * ROWS)
            logits = jnp.dot(part(x, n * ROWS), part(padded, 0, k * COLUMNS))
            total = jnp.logaddexp(total, jax.nn.logsumexp(logits, axis=-1))
            return total, wanted + jnp.sum(logits * is_wanted(here, k * COLUMNS), axis=-1)

        start = (jnp.full((ROWS,), -jnp.inf), jnp.zeros((ROWS,)))
        total, wanted = lax.fori_loop(0, count, of_columns, start)
        every = lax.dynamic_update_slice(every, total, (n * ROWS,))
        return every, loss + jnp.sum(total) - jnp.sum(wanted)

    start = (jnp.zeros(x.shape[:1]), jnp.zeros(()))
    every, loss = lax.fori_loop(0, x.shape[0] // ROWS, of_rows, start)
    return loss, (x, weight, targets, every)


def streamed_backward(kept: Any, gradient: jax.Array) -> tuple[jax.Array, jax.Array, Any]:
    """Gradients of the rows and of the weight."""
    x, weight, targets, every = kept
    padded, count = columns_of(weight)

    def of_rows(n: jax.Array, carry: Any) -> Any:
        all_rows, of_weight = carry
        total, here = part(every, n * ROWS), part(targets, n * ROWS)
        rows = part(x, n * ROWS)

        def of_columns(k: jax.Array, carry: Any) -> Any:
            of_x, of_weight = carry
            columns = part(padded, 0, k * COLUMNS)
            logits = jnp.dot(rows, columns)
            change = jnp.exp(logits - total[:, None]) - is_wanted(here, k * COLUMNS)
            of_x += jnp.dot(change, columns.T)
            added = part(of_weight, 0, k * COLUMNS) + jnp.dot(rows.T, change)
            return of_x, lax.dynamic_update_slice(of_weight, added, (0, k * COLUMNS))

        start = (jnp.zeros((ROWS, WIDTH)), of_weight)
        of_x, of_weight = lax.fori_loop(0, count, of_columns, start)
        return lax.dynamic_update_slice(all_rows, of_x, (n * ROWS, 0)), of_weight

    start = (jnp.zeros(x.shape), jnp.zeros(padded.shape))
    of_x, of_weight = lax.fori_loop(0, x.shape[0] // ROWS, of_rows, start)
    of_weight = of_weight[:, : weight.shape[1]]
    return (of_x * gradient).astype(x.dtype), (of_weight * gradient).astype(weight.dtype), None


streamed_entropy.defvjp(streamed_forward, streamed_backward)


def chunked_loss(mesh: AnyMesh, x: jax.Array, head: jax.Array, targets: jax.Array) -> jax.Array:
    """Rows and columns of logits in turn, each device for its own; nothing of them is kept."""
    rows, whole = PartitionSpec("fsdp"), PartitionSpec()

    def local(x: jax.Array, weight: jax.Array, targets: jax.Array) -> jax.Array:
        wide = x.astype(jnp.float32).reshape(-1, WIDTH)
        return lax.psum(streamed_entropy(wide, weight, targets.reshape(-1)), "fsdp")

    total = jax.shard_map(
        local, mesh=mesh, in_specs=(rows, whole, rows), out_specs=whole, check_vma=False
    )(x, head.T, targets)
    return total / targets.size


def train_step(model: Qwen3, mesh: AnyMesh) -> Program:
    """The step, jitted, and its arguments: the state, tokens and the tokens wanted next."""

    def loss(weights: Weights, tokens: jax.Array, targets: jax.Array) -> jax.Array:
        layer = functools.partial(layer_output, mesh)
        if model.remat:
            layer = jax.checkpoint(layer, policy=model.policy(), prevent_cse=model.unroll)
        x = weights["embedding"][tokens]
        if model.unroll:
            for w in weights["layers"]:
                x = layer(x, w)
        else:
            x, _ = lax.scan(lambda x, w: (layer(x, w), None), x, weights["layers"])
        x = normalize(x, weights["scale_final"], EPSILON)
        losses = {
            "plain": plain_loss,
            "one_hot": one_hot_loss,
            "chunked": functools.partial(chunked_loss, mesh),
        }
        return losses[model.loss](x, weights["head"], targets)

    def one_step(
        state: TrainState, tokens: jax.Array, targets: jax.Array
    ) -> tuple[TrainState, jax.Array]:
        value, gradients = jax.value_and_grad(loss)(state.weights, tokens, targets)
        return narrow(adam(Step(decay=0.1), state, gradients)), value

    weights = weights_of(model, mesh)
    count = array(mesh, (), jnp.int32)
    state = TrainState(count, weights, weights, weights)
    shape = (model.batch * SHARDS, model.sequence)
    tokens = array(mesh, shape, jnp.int32, "fsdp")
    kept = jax.tree.map(lambda leaf: leaf.sharding, state)
    scalar = NamedSharding(mesh, PartitionSpec())
    jitted = jax.jit(one_step, out_shardings=(kept, scalar), donate_argnums=0)
    return jitted, (state, tokens, tokens)


def narrow(state: TrainState) -> TrainState:
    """Moments as they are stored."""

    def stored(tree: Any) -> Any:
        return jax.tree.map(lambda a: a.astype(jnp.bfloat16), tree)

    return state._replace(mean=stored(state.mean), square=stored(state.square))


PROJECTED = ("query", "key", "value")

# Runs by page of the source; v026 is v025 under other flags. A batch is a device's.
RUNS = {
    "v035": Qwen3(8192, 3, loss="one_hot"),
    "v034": Qwen3(8192, 2, loss="one_hot"),
    "v018": Qwen3(2048, 4, unroll=True),
    "v038": Qwen3(8192, 2, save=(*PROJECTED, "context"), loss="chunked"),
    "v055": Qwen3(2048, 2, save=(*PROJECTED, "residuals")),
    "v058": Qwen3(2048, 5, save=(*PROJECTED, "residuals")),
    "v025": Qwen3(8192, 3, offload=(*PROJECTED, "context"), loss="chunked"),
}

QWEN3: dict[str, Example] = {
    f"train_qwen3_8b_{page}": Example(
        name=f"train_qwen3_8b_{page}", mesh=MESH, config="v6e-2x4", build=run.build
    )
    for page, run in RUNS.items()
}


def main() -> None:
    """Exports those that are named, or all."""
    from workloads.examples import export_all

    export_all.write(QWEN3, pathlib.Path(__file__).parent, sys.argv[1:])


if __name__ == "__main__":
    main()
