"""Options of the TPU compiler that are worth varying: the one table.

Names and what they are for are public: MaxText's list of XLA flags (`xla_flags_library.py`), the
flags that OpenXLA and JAX document. All of them are taken by the compiler of libtpu 0.0.42; a test
asks it. What an option does to a program is up to the compiler: many a one does nothing.
"""

import dataclasses
import enum
from collections.abc import Mapping

Value = bool | int | float | str


class Needs(enum.Enum):
    """Without what a setting has nothing to change."""

    NOTHING = ""
    DEVICES = "several devices"
    SPARSE_CORES = "several devices with SparseCores"


@dataclasses.dataclass(frozen=True)
class Setting:
    """Options that are set together, and what they are for."""

    options: Mapping[str, Value]
    what: str
    needs: Needs = Needs.NOTHING
    name: str = ""  # by default the option and its value

    @property
    def label(self) -> str:
        """The name of the setting in tables."""
        return self.name or " ".join(f"{n}={text_of(v)}" for n, v in self.options.items())


def text_of(value: Value) -> str:
    """Writes a value as on a command line."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _each(name: str, values: list[Value], what: str, needs: Needs = Needs.NOTHING) -> list[Setting]:
    return [Setting({name: value}, what, needs) for value in values]


_CONTINUED = {
    "xla_tpu_enable_async_collective_fusion": True,
    "xla_tpu_enable_async_collective_fusion_multiple_steps": True,
    "xla_tpu_overlap_compute_collective_tc": True,
}
_D, _S = Needs.DEVICES, Needs.SPARSE_CORES

SETTINGS: tuple[Setting, ...] = (
    # Kernels and VMEM.
    *_each(
        "xla_tpu_scoped_vmem_limit_kib",
        [8192, 16384, 32768, 49152, 65536, 81920, 98304],
        "VMEM that one kernel may have for its windows; the rest holds arrays between kernels",
    ),
    *_each(
        "xla_tpu_use_bundle_aware_cost_model_for_fusions",
        [False],
        "what fusion decides by: without it, not by the length of the code",
    ),
    *_each("xla_tpu_rwb_fusion", [False], "fusion of what reads, works and broadcasts"),
    *_each("xla_tpu_dot_dot_fusion", [True, False], "two products in one kernel"),
    *_each("xla_jf_conv_input_fusion", [False], "fusion of what makes a product's operands"),
    *_each("xla_jf_conv_output_fusion", [False], "fusion of what takes a product's result"),
    *_each("xla_tpu_multioutput_fusion_max_operands", [16, 128], "operands of a fused kernel"),
    # Arrays kept in VMEM between kernels, and prefetched there.
    *_each(
        "xla_msa_max_cross_program_prefetches",
        [0, 4],
        "arguments that are brought to VMEM before the step begins",
    ),
    *_each("xla_msa_max_outstanding_prefetches", [8, 16, 80], "copies to VMEM under way at once"),
    *_each(
        "xla_msa_min_overlap_to_async_copy_ratio",
        [0.5, 1.5],
        "how much work a copy to VMEM needs beside it, at least, in times of its own",
    ),
    *_each(
        "xla_msa_preferred_overlap_to_async_copy_ratio",
        [1.0, 4.0],
        "how much work a copy to VMEM gets beside it, at best",
    ),
    *_each(
        "xla_tpu_memory_space_assignment_while_execution_count",
        [1, 20],
        "how often loops are taken to run when VMEM is given away",
    ),
    *_each(
        "xla_tpu_async_copy_bandwidth_scaling_factor",
        [0.5, 1.5],
        "how fast copies to VMEM are taken to be",
    ),
    # Memory.
    *_each(
        "xla_jf_rematerialization_percent_shared_memory_limit",
        [80, 95],
        "percent of HBM above which values are computed again",
    ),
    *_each(
        "xla_tpu_scheduler_percent_shared_memory_limit",
        [80, 90, 100],
        "percent of HBM that the scheduler may fill",
    ),
    *_each(
        "xla_tpu_enable_scheduler_memory_pressure_tracking",
        [True],
        "the scheduler watches the memory in use at every step",
    ),
    # The scheduler that hides latencies.
    *_each("xla_latency_hiding_scheduler_rerun", [2], "schedules again with a tighter limit"),
    *_each("xla_tpu_use_aggressive_scheduling", [True], "starts transfers as early as it can"),
    *_each("xla_tpu_enable_latency_hiding_scheduler", [False], "the scheduler hides no latency"),
    *_each("xla_tpu_enable_all_experimental_scheduler_features", [True], "what is on trial"),
    *_each(
        "xla_lhs_prioritize_async_depth_over_stall",
        ["ENABLED"],
        "long chains of transfers come before short waits",
    ),
    *_each("xla_tpu_aggressive_opt_barrier_removal", ["ENABLED"], "fewer barriers"),
    *_each("xla_tpu_host_transfer_overlap_limit", [24], "copies from and to the host at once"),
    # Collectives: alone or beside compute.
    *_each("xla_enable_async_all_gather", [True, False], "all-gathers beside compute", _D),
    *_each("xla_enable_async_all_reduce", [True, False], "all-reduces beside compute", _D),
    *_each("xla_tpu_enable_async_all_to_all", [True], "all-to-alls beside compute", _D),
    *_each("xla_enable_async_collective_permute", [False], "no permutes beside compute", _D),
    *_each("xla_max_concurrent_async_all_gathers", [2, 4], "all-gathers under way at once", _D),
    *_each(
        "xla_max_concurrent_async_collective_permutes", [2, 10], "permutes under way at once", _D
    ),
    *_each(
        "xla_tpu_enable_async_collective_fusion",
        [False],
        "no steps of collectives inside of kernels",
        _D,
    ),
    Setting(
        {
            **_CONTINUED,
            "xla_enable_async_all_gather": True,
            "xla_tpu_enable_async_collective_fusion_fuse_all_gather": True,
        },
        "steps of all-gathers inside of kernels",
        _D,
        "all-gathers fused with kernels",
    ),
    Setting(
        {
            **_CONTINUED,
            "xla_enable_async_all_reduce": True,
            "xla_tpu_enable_async_collective_fusion_fuse_all_reduce": True,
        },
        "steps of all-reduces inside of kernels",
        _D,
        "all-reduces fused with kernels",
    ),
    *_each("xla_tpu_enable_async_collective_merger", [True], "transfers that begin together", _D),
    *_each(
        "xla_tpu_enable_ag_backward_pipelining",
        [True],
        "all-gathers of the next pass of a loop begin in this one",
        _D,
    ),
    Setting(
        {
            "xla_tpu_enable_data_parallel_all_reduce_opt": True,
            "xla_tpu_data_parallel_opt_different_sized_ops": True,
        },
        "all-reduces of gradients over several passes of a loop",
        _D,
        "all-reduces of gradients pipelined",
    ),
    Setting(
        {
            "xla_should_allow_loop_variant_parameter_in_chain": "ENABLED",
            "xla_should_add_loop_invariant_op_in_chain": "ENABLED",
        },
        "more of what a pipelined transfer depends on moves along with it",
        _D,
        "longer chains of pipelined transfers",
    ),
    # Limits of combined collectives: count, then bytes.
    *_each("xla_all_gather_combiner_threshold_count", [1], "all-gathers are not combined", _D),
    *_each(
        "xla_jf_crs_combiner_threshold_in_bytes",
        [0, 33554432],
        "bytes of all-reduces that are combined",
        _D,
    ),
    *_each("xla_jf_crs_combiner_threshold_count", [1], "all-reduces are not combined", _D),
    Setting(
        {
            "xla_tpu_use_minor_sharding_for_major_trivial_input": True,
            "xla_tpu_relayout_group_size_threshold_for_reduce_scatter": 1,
            "xla_tpu_assign_all_reduce_scatter_layout": True,
        },
        "layouts that let an all-reduce and a slice be a reduce-scatter",
        _D,
        "layouts for reduce-scatters",
    ),
    *_each("xla_tpu_enable_all_reduce_scatter_fusion", [False], "no fused reduce-scatters", _D),
    # Products whose operands are gathered, or results scattered, piece by piece.
    *_each(
        "xla_jf_spmd_threshold_for_windowed_einsum_mib",
        [0, 64, 1000000],
        "MiB of the gathered operand from which a product is a loop of permutes",
        _D,
    ),
    *_each(
        "xla_tpu_enable_windowed_einsum_for_all_gather",
        [True, False],
        "such loops in place of all-gathers",
        _D,
    ),
    *_each(
        "xla_tpu_enable_windowed_einsum_for_reduce_scatter",
        [True, False],
        "such loops in place of reduce-scatters",
        _D,
    ),
    *_each("xla_tpu_spmd_unroll_windowed_einsum", [True], "such loops, two passes at a time", _D),
    *_each(
        "xla_tpu_spmd_bidirectional_windowed_einsum", [True, False], "such loops, both ways", _D
    ),
    *_each(
        "xla_tpu_choose_faster_windowed_einsum_over_mem",
        [True],
        "such loops where they are faster, if they take more memory",
        _D,
    ),
    *_each(
        "xla_tpu_decompose_all_gather_einsum", [True], "products cut along their all-gather", _D
    ),
    *_each(
        "xla_tpu_decompose_einsum_reduce_scatter",
        [True],
        "products cut along their reduce-scatter",
        _D,
    ),
    # SparseCores.
    *_each(
        "xla_tpu_enable_sparse_core_collective_offload_all_gather",
        [True, False],
        "all-gathers by the SparseCores",
        _S,
    ),
    *_each(
        "xla_tpu_enable_sparse_core_collective_offload_all_reduce",
        [True, False],
        "all-reduces by the SparseCores",
        _S,
    ),
    *_each(
        "xla_tpu_enable_sparse_core_collective_offload_reduce_scatter",
        [True, False],
        "reduce-scatters by the SparseCores",
        _S,
    ),
)

# Chips whose collectives may run on SparseCores.
SPARSE_CORES = ("v5p", "v6e", "v7x")


def settings_for(chip: str, partitions: int) -> list[Setting]:
    """Returns the settings that may change a program of so many partitions on that chip."""
    met = {Needs.NOTHING}
    if partitions > 1:
        met.add(Needs.DEVICES)
        if chip in SPARSE_CORES:
            met.add(Needs.SPARSE_CORES)
    return [setting for setting in SETTINGS if setting.needs in met]
