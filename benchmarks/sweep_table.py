"""The programs that `pod_sweep.py` runs; `sweep_programs.py` describes their kinds."""

import dataclasses
import math
import pathlib


@dataclasses.dataclass(frozen=True)
class Row:
    """One program: its kind, the slice that it is for, and its mesh."""

    name: str
    kind: str
    config: str
    mesh: dict[str, int]

    @property
    def chips(self) -> int:
        """The number of chips, which is that of devices: no slice here has two on a chip."""
        return math.prod(self.mesh.values())

    def file(self, folder: pathlib.Path, seed: int) -> pathlib.Path:
        """The path of its export."""
        return folder / f"{self.name}.{seed}.pb"


ROWS = (
    Row("fsdp_v5e_64", "fully_sharded", "v5e-8x8", {"fsdp": 64}),
    Row("fsdp_v6e_256", "fully_sharded", "v6e-16x16", {"fsdp": 256}),
    Row("fsdp_v4_512", "fully_sharded", "v4-8x8x8", {"fsdp": 512}),
    Row("fsdp_v5p_4096", "fully_sharded", "v5p-16x16x16", {"fsdp": 4096}),
    Row("tp_v5e_64", "tensor_parallel", "v5e-8x8", {"fsdp": 16, "tp": 4}),
    Row("tp_plane_v5p_64", "tensor_parallel", "v5p-4x4x4", {"fsdp": 4, "tp": 16}),
    Row("tp_v6e_256", "tensor_parallel", "v6e-16x16", {"fsdp": 32, "tp": 8}),
    Row("tp_v5p_512", "tensor_parallel", "v5p-8x8x8", {"fsdp": 64, "tp": 8}),
    Row("tp_v4_2048", "tensor_parallel", "v4-8x16x16", {"fsdp": 256, "tp": 8}),
    Row("sp_v5e_256", "split_sequences", "v5e-16x16", {"fsdp": 32, "tp": 2, "sp": 4}),
    Row("sp_v6e_256", "split_sequences", "v6e-16x16", {"fsdp": 16, "tp": 4, "sp": 4}),
    Row("sp_v5p_512", "gathered_blocks", "v5p-8x8x8", {"fsdp": 64, "tp": 8}),
    Row("sp_v4_1024", "gathered_blocks", "v4-8x8x16", {"data": 4, "fsdp": 64, "tp": 4}),
    Row("moe_v5e_64", "experts", "v5e-8x8", {"fsdp": 8, "expert": 8}),
    Row("moe_v5e_256", "experts", "v5e-16x16", {"fsdp": 32, "expert": 8}),
    Row("moe_v6e_256", "experts", "v6e-16x16", {"fsdp": 16, "expert": 16}),
    Row("moe_v5p_1024", "experts", "v5p-8x8x16", {"fsdp": 64, "expert": 16}),
    Row("ring_v5e_64", "ring_attention", "v5e-8x8", {"fsdp": 8, "sp": 8}),
    Row("ring_v6e_256", "ring_attention", "v6e-16x16", {"fsdp": 16, "sp": 16}),
    Row("ring_v5p_512", "ring_attention", "v5p-8x8x8", {"fsdp": 16, "sp": 8, "tp": 4}),
    Row("ring_v4_1024", "ring_attention", "v4-8x8x16", {"fsdp": 64, "sp": 16}),
    Row("pipeline_v5e_64", "pipeline", "v5e-8x8", {"stage": 8, "fsdp": 8}),
    Row("pipeline_v5p_512", "pipeline", "v5p-8x8x8", {"stage": 8, "fsdp": 64}),
    Row("pipeline_v6e_1024", "pipeline", "4x(v6e-16x16)", {"stage": 4, "fsdp": 256}),
    Row("slices_v5e_1024", "slices", "4x(v5e-16x16)", {"data": 4, "fsdp": 256}),
    Row("slices_v6e_4096", "slices", "16x(v6e-16x16)", {"data": 16, "fsdp": 64, "tp": 4}),
    Row("slices_v4_8192", "slices", "2x(v4-16x16x16)", {"data": 2, "fsdp": 512, "tp": 8}),
    Row("slices_v5p_12288", "slices", "3x(v5p-16x16x16)", {"data": 3, "fsdp": 4096}),
    Row("axes_v5e_256", "three_axes", "v5e-16x16", {"data": 4, "fsdp": 16, "tp": 4}),
    Row("axes_v6e_256", "three_axes", "v6e-16x16", {"data": 2, "fsdp": 32, "tp": 4}),
    Row("axes_v4_512", "three_axes", "v4-8x8x8", {"data": 4, "fsdp": 32, "tp": 4}),
    Row("axes_v5p_2048", "three_axes", "v5p-8x16x16", {"data": 4, "fsdp": 64, "tp": 8}),
    Row("unrolled_v5e_256", "unrolled", "v5e-16x16", {"fsdp": 256}),
    Row("unrolled_v6e_256", "unrolled", "v6e-16x16", {"fsdp": 64, "tp": 4}),
    Row("unrolled_v5p_64", "unrolled", "v5p-4x4x4", {"fsdp": 16, "tp": 4}),
)
