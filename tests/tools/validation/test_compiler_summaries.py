"""Summaries of compiled modules, from modules written by hand; neither libtpu nor JAX is needed."""

import gzip
import hashlib
import json
from typing import Any

import compiler_hlo
import compiler_programs
import compiler_store
import compiler_summaries
import compiler_summary
import pytest


def window(cycles: int, *grid: int) -> str:
    """The note of an estimate, as the compiler attaches it."""
    bounds = [str(n) for n in grid]
    config = {"window_config": {"estimated_cycles": str(cycles), "iteration_bounds": bounds}}
    return "backend_config=" + json.dumps(config, separators=(",", ":"))


def summary(text: str) -> dict[str, Any]:
    """Returns the summary of a module."""
    return compiler_summary.summarize(compiler_hlo.parse(text))


PRODUCT = f"""HloModule jit_f, is_scheduled=true

%inner (p.1: bf16[64,128]) -> bf16[64,128] {{
  %p.1 = bf16[64,128]{{1,0:T(8,128)(2,1)S(1)}} parameter(0)
  ROOT %bitcast.1 = bf16[64,128]{{1,0:T(8,128)(2,1)}} bitcast(%p.1)
}}

%fused (p.2: bf16[64,128], p.3: bf16[128,256]) -> bf16[64,256] {{
  %p.2 = bf16[64,128]{{1,0:T(8,128)(2,1)S(1)}} parameter(0)
  %fusion.9 = bf16[64,128]{{1,0:T(8,128)(2,1)}} fusion(%p.2), kind=kLoop, calls=%inner
  %p.3 = bf16[128,256]{{1,0:T(8,128)(2,1)}} parameter(1)
  %convolution.1 = bf16[64,256]{{1,0:T(8,128)(2,1)}} convolution(%fusion.9, %p.3), \
dim_labels=bf_io->bf, metadata={{op_name="jit(f)/dot, {{odd}} (name" stack_frame_id=4}}
  ROOT %tanh.1 = bf16[64,256]{{1,0:T(8,128)(2,1)}} tanh(%convolution.1)
}}

ENTRY %main (x: bf16[64,128], w: bf16[128,256]) -> bf16[64,256] {{
  %x = bf16[64,128]{{1,0:T(8,128)(2,1)}} parameter(0), sharding={{replicated}}
  %w = bf16[128,256]{{1,0:T(8,128)(2,1)}} parameter(1)
  %copy-start = (bf16[64,128]{{1,0:T(8,128)(2,1)S(1)}}, bf16[64,128]{{1,0:T(8,128)(2,1)}}, \
u32[]{{:S(2)}}) copy-start(%x), cross_program_prefetch_index=0
  %one = s32[]{{:T(128)}} constant(1)
  %two = s32[]{{:T(128)}} add(%one, %one)
  %copy-done = bf16[64,128]{{1,0:T(8,128)(2,1)S(1)}} copy-done(%copy-start)
  ROOT %fusion = bf16[64,256]{{1,0:T(8,128)(2,1)}} fusion(%copy-done, /*index=1*/%w), \
kind=kOutput, calls=%fused, {window(4321, 2, 1, 1)}
}}
"""


def test_a_kernel_is_summarized() -> None:
    (kernel,) = summary(PRODUCT)["kernels"]
    assert kernel == {
        "name": "fusion",
        "opcode": "fusion",
        "kind": "kOutput",
        "count": 1,
        "cycles": 4321,
        "ops": {"convolution": 1, "tanh": 1},
        "grid": [2, 1, 1],
        "operands": ["bf16[64,128]{1,0:T(8,128)(2,1)S(1)}", "bf16[128,256]{1,0:T(8,128)(2,1)}"],
        "results": ["bf16[64,256]{1,0:T(8,128)(2,1)}"],
    }


def test_an_estimate_that_overflowed_is_none() -> None:
    (kernel,) = summary(PRODUCT.replace('"4321"', '"9223372036854775807"'))["kernels"]
    assert kernel["cycles"] is None


def test_prefetches_are_transfers() -> None:
    # 64 x 128 elements of 2 bytes.
    assert summary(PRODUCT)["transfers"] == {"copy S(0) to S(1)": {"count": 1, "bytes": 16384}}


def loop(condition: str, start: int = 0, step: int = 1) -> str:
    """A loop over a kernel of 100 cycles; the limit, 7, is carried as element 1."""
    return f"""HloModule jit_f

%body (c: (s32[], s32[], f32[1024])) -> (s32[], s32[], f32[1024]) {{
  %c = (s32[]{{:T(128)}}, s32[]{{:T(128)}}, f32[1024]{{0:T(1024)}}) parameter(0)
  %step = s32[]{{:T(128)}} constant({step})
  %i = s32[]{{:T(128)}} get-tuple-element(%c), index=0
  %next = s32[]{{:T(128)}} add(%i, %step)
  %n = s32[]{{:T(128)}} get-tuple-element(%c), index=1
  %x = f32[1024]{{0:T(1024)}} get-tuple-element(%c), index=2
  %y = f32[1024]{{0:T(1024)}} negate(%x), {window(100)}
  ROOT %t = (s32[]{{:T(128)}}, s32[]{{:T(128)}}, f32[1024]{{0:T(1024)}}) tuple(%next, %n, %y)
}}

%compared (a: s32[], b: s32[]) -> pred[] {{
  %a = s32[]{{:T(128)}} parameter(0)
  %b = s32[]{{:T(128)}} parameter(1)
  ROOT %less.1 = pred[]{{:T(512)}} compare(%a, %b), direction=LT
}}

%condition (d: (s32[], s32[], f32[1024])) -> pred[] {{
  %ten = s32[]{{:T(128)}} constant(10)
  %d = (s32[]{{:T(128)}}, s32[]{{:T(128)}}, f32[1024]{{0:T(1024)}}) parameter(0)
  %j = s32[]{{:T(128)}} get-tuple-element(%d), index=0
  %m = s32[]{{:T(128)}} get-tuple-element(%d), index=1
  ROOT {condition}
}}

ENTRY %main (x: f32[1024]) -> f32[1024] {{
  %x.1 = f32[1024]{{0:T(1024)}} parameter(0)
  %zero = s32[]{{:T(128)}} constant({start})
  %seven = s32[]{{:T(128)}} constant(7)
  %copy = s32[]{{:T(128)}} copy(%zero)
  %tuple = (s32[]{{:T(128)}}, s32[]{{:T(128)}}, f32[1024]{{0:T(1024)}}) tuple(%copy, %seven, %x.1)
  %while = (s32[]{{:T(128)}}, s32[]{{:T(128)}}, f32[1024]{{0:T(1024)}}) while(%tuple), \
condition=%condition, body=%body
  ROOT %out = f32[1024]{{0:T(1024)}} get-tuple-element(%while), index=2
}}
"""


@pytest.mark.parametrize(
    ("condition", "start", "step", "trips"),
    [
        ("%l = pred[]{:T(512)} compare(%j, %ten), direction=LT", 0, 1, 10),
        ("%l = pred[]{:T(512)} compare(%j, %ten), direction=LT", 1, 2, 5),  # 1 3 5 7 9
        ("%l = pred[]{:T(512)} compare(%j, %m), direction=LT", 0, 1, 7),  # 7 is carried
        ("%l = pred[]{:T(512)} compare(%ten, %j), direction=GT", 0, 4, 3),  # 0 4 8
        ("%l = pred[]{:T(512)} compare(%j, %ten), direction=LE", 0, 5, 3),  # 0 5 10
        ("%l = pred[]{:T(512)} fusion(%j, %ten), kind=kLoop, calls=%compared", 3, 1, 7),
    ],
)
def test_loops_multiply_what_is_inside(condition: str, start: int, step: int, trips: int) -> None:
    found = summary(loop(condition, start, step))
    assert found["loops"] == [{"name": "while", "trips": trips, "count": 1}]
    (kernel,) = found["kernels"]
    assert (kernel["opcode"], kernel["cycles"], kernel["count"]) == ("negate", 100, trips)


def test_a_loop_on_data_has_no_trip_count_and_counts_once() -> None:
    found = summary(loop("%l = pred[]{:T(512)} and(%j, %ten)"))
    assert found["loops"] == [{"name": "while", "trips": None, "count": 1}]
    assert found["kernels"][0]["count"] == 1


GROUPS = "replica_groups=mesh['a'=2,'b'=4] {'b'}"
COLLECTIVES = f"""HloModule jit_f

%scattered (p.1: f32[64,128]) -> f32[16,128] {{
  %p.1 = f32[64,128]{{1,0:T(8,128)}} parameter(0)
  %zero = s32[]{{:T(128)}} constant(0)
  %all-reduce.1 = f32[64,128]{{1,0:T(8,128)}} all-reduce(%p.1), channel_id=1, {GROUPS}
  ROOT %dynamic-slice.1 = f32[16,128]{{1,0:T(8,128)}} dynamic-slice(%all-reduce.1, %zero, %zero)
}}

%all-reduce-scatter (p.2: f32[64,128]) -> f32[16,128] {{
  %p.2 = f32[64,128]{{1,0:T(8,128)}} parameter(0)
  %zero.1 = s32[]{{:T(128)}} constant(0)
  %all-reduce.2 = f32[64,128]{{1,0:T(8,128)}} all-reduce(%p.2), channel_id=2, {GROUPS}
  ROOT %dynamic-slice.2 = f32[16,128]{{1,0:T(8,128)}} dynamic-slice(%all-reduce.2, %zero.1, %zero.1)
}}

%started (p.3: f32[16,128]) -> (f32[16,128], f32[64,128], u32[]) {{
  %p.3 = f32[16,128]{{1,0:T(8,128)}} parameter(0)
  %all-gather.1 = f32[64,128]{{1,0:T(8,128)}} all-gather(%p.3), channel_id=3, \
{GROUPS}, dimensions={{0}}
  ROOT %custom-call.1 = (f32[16,128]{{1,0:T(8,128)}}, f32[64,128]{{1,0:T(8,128)}}, u32[]{{:S(2)}}) \
custom-call(%p.3, %all-gather.1), custom_call_target="AsyncCollectiveStart"
}}

%async_collective_fusion.1 (p.4: f32[16,128], p.5: f32[64,128]) -> (f32[64,128], f32[64,128]) {{
  %p.4 = f32[16,128]{{1,0:T(8,128)}} parameter(0)
  %p.5 = f32[64,128]{{1,0:T(8,128)}} parameter(1)
  %all-gather.2 = f32[64,128]{{1,0:T(8,128)}} all-gather(%p.4), channel_id=3, \
{GROUPS}, dimensions={{0}}
  %exponential.1 = f32[64,128]{{1,0:T(8,128)}} exponential(%p.5)
  ROOT %tuple.1 = (f32[64,128]{{1,0:T(8,128)}}, f32[64,128]{{1,0:T(8,128)}}) \
tuple(%exponential.1, %all-gather.2)
}}

%ended (p.6: f32[16,128]) -> f32[64,128] {{
  %p.6 = f32[16,128]{{1,0:T(8,128)}} parameter(0)
  %all-gather.3 = f32[64,128]{{1,0:T(8,128)}} all-gather(%p.6), channel_id=3, \
{GROUPS}, dimensions={{0}}
  ROOT %custom-call.2 = f32[64,128]{{1,0:T(8,128)}} custom-call(%all-gather.3), \
custom_call_target="AsyncCollectiveDone"
}}

ENTRY %main (x: f32[64,128], s: f32[16,128]) -> f32[64,128] {{
  %x = f32[64,128]{{1,0:T(8,128)}} parameter(0)
  %s = f32[16,128]{{1,0:T(8,128)}} parameter(1)
  %all-reduce = f32[64,128]{{1,0:T(8,128)}} all-reduce(%x), replica_groups=[2,4]<=[8], to_apply=%add
  %fusion.1 = f32[16,128]{{1,0:T(8,128)}} fusion(%x), kind=kCustom, calls=%all-reduce-scatter
  %async-collective-start = (f32[16,128]{{1,0:T(8,128)}}, f32[64,128]{{1,0:T(8,128)}}, \
u32[]{{:S(2)}}) fusion(%s), kind=kCustom, calls=%started
  %g = f32[16,128]{{1,0:T(8,128)}} get-tuple-element(%async-collective-start), index=0
  %fusion.2 = (f32[64,128]{{1,0:T(8,128)}}, f32[64,128]{{1,0:T(8,128)}}) fusion(%g, %x), \
kind=kLoop, calls=%async_collective_fusion.1, {window(500)}
  %h = f32[64,128]{{1,0:T(8,128)}} get-tuple-element(%fusion.2), index=0
  %async-collective-done = f32[64,128]{{1,0:T(8,128)}} fusion(%g), kind=kCustom, calls=%ended
  %collective-permute-start = (f32[64,128]{{1,0:T(8,128)}}, f32[64,128]{{1,0:T(8,128)}}, \
u32[]{{:S(2)}}) collective-permute-start(%h), source_target_pairs={{{{0,1}},{{1,0}}}}, \
metadata={{op_name="jit(f)/ppermute"}}
  %negate = f32[64,128]{{1,0:T(8,128)}} negate(%h), {window(70)}
  %abs = f32[64,128]{{1,0:T(8,128)}} abs(%negate), {window(30)}
  %collective-permute-done = f32[64,128]{{1,0:T(8,128)}} \
collective-permute-done(%collective-permute-start)
  %collective-permute.2 = f32[64,128]{{1,0:T(8,128)}} collective-permute(%abs), \
source_target_pairs={{{{0,1}}}}, metadata={{op_name="jit(f)/dot_general"}}
  ROOT %sine = f32[64,128]{{1,0:T(8,128)}} sine(%collective-permute-done), {window(90)}
}}
"""


def test_collectives_have_kind_mode_bytes_and_groups() -> None:
    rows = {row["name"]: row for row in summary(COLLECTIVES)["collectives"]}
    found = {
        name: (row["kind"], row["mode"], row["bytes"], row.get("group_size"))
        for name, row in rows.items()
    }
    whole = 64 * 128 * 4
    assert found == {
        "all-reduce": ("all-reduce", "sync", whole, 4),
        "fusion.1": ("reduce-scatter", "sync", whole, 4),
        "async-collective-start": ("all-gather", "async", whole, 4),
        "collective-permute-start": ("collective-permute", "async", whole, None),
        "collective-permute.2": ("collective-permute", "windowed", whole, None),
    }


def test_what_runs_between_start_and_done_is_counted() -> None:
    rows = {row["name"]: row for row in summary(COLLECTIVES)["collectives"]}
    carried, permute = rows["async-collective-start"], rows["collective-permute-start"]
    assert (carried["between_kernels"], carried["between_cycles"]) == (1, 500)
    assert (permute["between_kernels"], permute["between_cycles"]) == (2, 100)  # 70 + 30
    assert "between_kernels" not in rows["all-reduce"]


def test_a_fusion_that_carries_a_collective_is_a_kernel() -> None:
    kernels = {kernel["name"]: kernel for kernel in summary(COLLECTIVES)["kernels"]}
    assert set(kernels) == {"fusion.2", "negate", "abs", "sine"}
    assert kernels["fusion.2"]["carries"]


def test_permutes_in_a_loop_that_the_partitioner_made_are_windowed() -> None:
    text = loop("%l = pred[]{:T(512)} compare(%j, %ten), direction=LT")
    text = text.replace("%body", "%wide.windowed_dot_general_body_ag").replace(
        f"negate(%x), {window(100)}", "collective-permute(%x), source_target_pairs={{0,1},{1,0}}"
    )
    found = summary(text)
    (row,) = found["collectives"]
    assert (row["mode"], row["count"], row["bytes"]) == ("windowed", 10, 4096)
    assert found["loops"][0]["windowed"]


@pytest.mark.parametrize(
    ("groups", "size"),
    [
        ("{{0,1,2,3},{4,5,6,7}}", 4),
        ("[4,2]<=[2,4]T(1,0)", 2),
        ("mesh['x'=8] {'x'}", 8),
        ("mesh['x'=8,'y'=2] {'x':(1)4,'y'}", 8),  # 4 of the 8 along x, times 2
        ("", None),
    ],
)
def test_group_size(groups: str, size: int | None) -> None:
    assert compiler_summary.group_size(groups) == size


def test_the_longest_branch_of_a_conditional_counts() -> None:
    text = f"""HloModule jit_f

%short (a: f32[1024]) -> f32[1024] {{
  %a = f32[1024]{{0:T(1024)}} parameter(0)
  ROOT %negate = f32[1024]{{0:T(1024)}} negate(%a), {window(10)}
}}

%long (b: f32[1024]) -> f32[1024] {{
  %b = f32[1024]{{0:T(1024)}} parameter(0)
  ROOT %sine = f32[1024]{{0:T(1024)}} sine(%b), {window(20)}
}}

ENTRY %main (p: s32[], x: f32[1024]) -> f32[1024] {{
  %p = s32[]{{:T(128)}} parameter(0)
  %x = f32[1024]{{0:T(1024)}} parameter(1)
  ROOT %conditional = f32[1024]{{0:T(1024)}} conditional(%p, %x, %x), \
branch_computations={{%short, %long}}
}}
"""
    assert [kernel["opcode"] for kernel in summary(text)["kernels"]] == ["sine"]


# Both forms of calls on SparseCores: the second one, of libtpu 0.0.50 and later, gets its operands
# after its start.
CALLS = (
    """\
  %prepare = token[] custom-call(), custom_call_target="PrepareAsyncCallDone"
  %early = f32[1024]{0:T(1024)} cosine(%y), WINDOW
  %start = ((f32[128]{0:T(128)}), f32[512]{0:T(512)}) call-start(%x), \
async_execution_thread="sparsecore", to_apply=%called
  %negate = f32[1024]{0:T(1024)} negate(%y), WINDOW
  ROOT %done = f32[512]{0:T(512)} call-done(%start)""",
    """\
  %start = ((), (), (s32[55]{0:T(1)S(11)}, s32[0]{0:S(10)})) custom-call-start(), \
async_execution_thread="sparsecore", custom_call_target="TODO(b/1)", called_computations={%called}
  %early = f32[1024]{0:T(1024)} cosine(%y), WINDOW
  %update = ((f32[128]{0:T(128)}), f32[512]{0:T(512)}, (s32[55]{0:T(1)S(11)})) \
custom-call-update(%start, %x), output_to_operand_aliasing={{2,0}: (0, {2,0})}
  %negate = f32[1024]{0:T(1024)} negate(%y), WINDOW
  ROOT %done = f32[512]{0:T(512)} custom-call-done(%update)""",
)


@pytest.mark.parametrize("calls", CALLS)
def test_a_collective_on_another_core_is_asynchronous(calls: str) -> None:
    text = f"""HloModule jit_f

%fused (p: f32[128]) -> f32[512] {{
  %p = f32[128]{{0:T(128)}} parameter(0)
  ROOT %all-gather.1 = f32[512]{{0:T(512)}} all-gather(%p), replica_groups={{{{0,1,2,3}}}}
}}

%called (q: f32[128]) -> f32[512] {{
  %q = f32[128]{{0:T(128)}} parameter(0)
  ROOT %fusion.1 = f32[512]{{0:T(512)}} fusion(%q), kind=kCustom, calls=%fused
}}

ENTRY %main (x: f32[128], y: f32[1024]) -> f32[512] {{
  %x = f32[128]{{0:T(128)}} parameter(0)
  %y = f32[1024]{{0:T(1024)}} parameter(1)
{calls.replace("WINDOW", window(40))}
}}
"""
    (row,) = summary(text)["collectives"]
    assert (row["kind"], row["mode"], row["thread"]) == ("all-gather", "async", "sparsecore")
    assert (row["bytes"], row["group_size"], row["between_cycles"]) == (2048, 4, 40)
    assert [kernel["name"] for kernel in summary(text)["kernels"]] == ["early", "negate"]


def test_a_third_is_set_aside_by_name() -> None:
    # The rule, written out: the digest as a number, modulo three.
    for name in ("matmul", "rope", "decoder_fsdp"):
        digest = hashlib.sha256(name.encode()).hexdigest()
        assert compiler_store.set_aside(name) == (int(digest, 16) % 3 == 0)
    names = [f"program_{number}" for number in range(3000)]
    assert 900 < sum(map(compiler_store.set_aside, names)) < 1100


def test_what_is_set_aside_does_not_change() -> None:
    names = ("matmul_bias", "attention_causal", "decoder_fsdp", "bert_1", "rms_norm", "rope")
    aside = [name for name in names if compiler_store.set_aside(name)]
    assert aside == ["matmul_bias", "attention_causal", "rms_norm"]


def test_the_same_summary_is_the_same_bytes() -> None:
    one, two = {"b": [1, 2], "a": "x"}, {"a": "x", "b": [1, 2]}
    assert compiler_store.pack(one) == compiler_store.pack(two)
    assert json.loads(gzip.decompress(compiler_store.pack(one))) == one
    assert compiler_store.pack(one)[4:8] == bytes(4)  # No time in the header.


def test_messages_do_not_name_places_of_a_machine() -> None:
    message = "\n  ValueError: no file /home/me/x.py at 3\nmore"
    assert compiler_store.one_line(message) == "ValueError: no file PATH at 3"


def test_slices_have_their_topology_names() -> None:
    assert compiler_store.topology_name("v5e-4x2") == "v5e:4x2"
    assert compiler_store.topology_name("v7x-2x2x1") == "tpu7x:2x2x1"


def test_a_summary_is_derived_from_a_kept_module() -> None:
    """A matmul of a corpus's module: one kernel, whose emitter and operands its text names."""
    program, slice_name = "matmul", "v5e-1x1"
    assert compiler_summaries.is_derived(program, slice_name)
    assert not (compiler_store.SUMMARIES / slice_name / f"{program}.json.gz").exists()
    derived = compiler_summaries.summary(program, slice_name)
    assert (derived["program"], derived["slice"], derived["family"]) == (
        *(program, slice_name, compiler_programs.PROGRAMS[program].family),
    )
    assert derived["memory"]["peak_bytes"] > derived["memory"]["argument_bytes"] > 0
    assert sum(kernel["count"] for kernel in derived["kernels"]) >= 1
    assert any("convolution" in kernel.get("ops", ()) for kernel in derived["kernels"])


def test_no_summary_is_kept_that_can_be_derived() -> None:
    modules = {(p.parent.name, p.name[:-6]) for p in compiler_summaries.MODULES.glob("*/*.pb.gz")}
    kept = {(p.parent.name, p.name[:-8]) for p in compiler_store.SUMMARIES.glob("*/*.json.gz")}
    assert modules >= compiler_summaries.DERIVED
    assert not kept & modules


def test_what_is_kept_is_small_and_canonical() -> None:
    paths = sorted(compiler_store.SUMMARIES.glob("*/*.json.gz"))
    assert paths
    assert sum(path.stat().st_size for path in paths) < 3e6
    for path in paths:
        kept = compiler_store.unpack(path)
        assert (kept["slice"], f"{kept['program']}.json.gz") == (path.parent.name, path.name)
        text = json.dumps(kept, sort_keys=True, separators=(",", ":"))
        assert gzip.decompress(path.read_bytes()).decode() == text
        assert "error" in kept or {"kernels", "collectives", "memory"} <= kept.keys()
