"""What-ifs make sense: no machine that is better in every way takes longer for a step.

Whatever the compiler decides anew (schedules, tiles, algorithms) and whoever meets whom on the
links and in memory: twice the links, memory or clock, or half of a latency, lengthens no step by
more than a percent; twice everything halves it; a straggler never helps. Collective matmuls, whose
schedules are the most delicate, are swept over link rates, in sizes around the balance of
communication and compute.

A fixed sample by default, always with all collective matmuls; `--long` runs everything.
"""

import dataclasses
import json
import pathlib
import random
import subprocess
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import pytest
import tpusim

from tests.tools.command_line import EXAMPLES
from workloads.examples import collective_matmul, reduce_scatter_matmul
from workloads.examples.example import Program

TOLERANCE = 0.01
SAMPLE = 60
SWEPT = (1.0, 1.1, 1.3, 1.5, 2.0, 2.5, 4.0)

LINKS = ("ici.link_bytes_per_second", "ici.die_to_die_bytes_per_second")
HBM = ("chip.hbm.bytes_per_second",)
CLOCK = ("chip.clock_hz",)
ON_CHIP = ("chip.cmem.bytes_per_second",)
OTHER_RATES = ("host.pcie_bytes_per_second", "host.dcn_bytes_per_second")
DMA = ("chip.dma.start_latency_ns", "chip.dma.write_start_latency_ns", "chip.dma.turnaround_ns")
KERNEL = (
    "chip.tensor_core.kernel_launch_ns",
    "chip.tensor_core.product_window_ns",
    "chip.tensor_core.grid_step_overhead_ns",
)
HOP = ("ici.hop_latency_ns",)
LAUNCH = ("ici.launch_ns",)
OTHER_LATENCIES = ("host.pcie_latency_ns", "host.dcn_latency_ns")
LATENCIES = (*DMA, *KERNEL, *HOP, *LAUNCH, *OTHER_LATENCIES)
RATES = (*LINKS, *HBM, *CLOCK, *ON_CHIP, *OTHER_RATES)

# Rates are multiplied, latencies divided.
BETTER: dict[str, tuple[float, tuple[str, ...]]] = {
    "links": (2, LINKS),
    "links_1.3": (1.3, LINKS),
    "hbm": (2, HBM),
    "hbm_1.3": (1.3, HBM),
    "clock": (2, CLOCK),
    "clock_1.3": (1.3, CLOCK),
    "memories": (2, (*HBM, *ON_CHIP)),
    "hosts": (2, (*OTHER_RATES, *OTHER_LATENCIES)),
    "dma_latency": (2, DMA),
    "kernel_latency": (2, KERNEL),
    "hop_latency": (2, HOP),
    "launch_latency": (2, LAUNCH),
    "latencies": (2, LATENCIES),
}
SLOWED = ("chip=0:0.8", "chip=1:0.8", "chip=3:0.8")
ALL = [path.stem for path in sorted(EXAMPLES.glob("*.pb"))]
DELICATE = [name for name in ALL if "matmul_" in name and not name.startswith("matmul_")]


@dataclasses.dataclass(frozen=True)
class Machine:
    """Runs programs on changed chips and remembers how long a step took."""

    binary: str
    folder: pathlib.Path
    known: dict[tuple[object, ...], float] = dataclasses.field(default_factory=dict)
    parameters: dict[str, dict[str, float]] = dataclasses.field(default_factory=dict)
    configs: dict[pathlib.Path, str] = dataclasses.field(default_factory=dict)

    def step(self, path: pathlib.Path, *flags: str) -> float:
        """Nanoseconds of a step."""
        key = (path, *flags)
        if key not in self.known:
            report = self.folder / "report.json"
            command = [self.binary, "run", str(path), "--quiet", "--report", str(report), *flags]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
            result = json.loads(report.read_text())
            self.known[key] = result["step_time_ns"]
            if not flags:
                self.configs[path] = result["config"]
        return self.known[key]

    def changed(self, path: pathlib.Path, factor: float, names: Sequence[str]) -> float:
        """The same with rates multiplied and latencies divided by `factor`."""
        self.step(path)
        values = self.parameters_of(self.configs[path])
        settings = []
        for name in names:
            value = values.get(name, 0.0)
            if value == 0:
                continue
            other = value / factor if name.endswith("_ns") else value * factor
            settings += ["--set", f"{name}={other:.15g}"]
        return self.step(path, *settings)

    def parameters_of(self, config: str) -> dict[str, float]:
        """Names and values, as `tpusim configs` lists them."""
        if config not in self.parameters:
            one = config.partition("(")[2].rstrip(")") or config  # of several slices
            command = [self.binary, "configs", one, "--verbose"]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            listed = {}
            for line in done.stdout.splitlines():
                name, *rest = line.split() or [""]
                if name.split(".")[0] in ("chip", "ici", "host"):
                    listed[name] = float(rest[1])
            self.parameters[config] = listed
        return self.parameters[config]


@pytest.fixture(scope="module")
def machine(binary: str, tmp_path_factory: pytest.TempPathFactory) -> Machine:
    return Machine(binary, tmp_path_factory.mktemp("what_ifs"))


Case = tuple[str, str]


def cases(changes: Sequence[str], whole: bool, seed: int) -> list[Case]:
    """Examples with changes of the machine: all, or the delicate ones and a sample."""
    every = [(name, change) for name in ALL for change in changes]
    if whole:
        return every
    sure = [c for c in every if c[0] in DELICATE and not c[1].endswith(("latency", "hosts"))]
    rest = [c for c in every if c not in sure]
    return sure + random.Random(seed).sample(rest, min(SAMPLE, len(rest)))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    whole = metafunc.config.getoption("--long")
    names = metafunc.fixturenames
    if "better" in names:
        chosen = cases(tuple(BETTER), whole, 3)
        metafunc.parametrize("better", chosen, ids="-".join)
    elif "slowed" in names:
        chosen = [c for c in cases(SLOWED, True, 5) if whole or c[1] == SLOWED[1]]
        if not whole:
            chosen = random.Random(5).sample(chosen, SAMPLE // 2)
        metafunc.parametrize("slowed", chosen, ids=lambda case: f"{case[0]}-{case[1]}")
    elif "doubled" in names:
        chosen = ALL if whole else sorted({*DELICATE, *random.Random(7).sample(ALL, SAMPLE // 3)})
        metafunc.parametrize("doubled", chosen)
    elif "swept" in names:
        chosen = list(VARIANTS) if whole else SWEPT_BY_DEFAULT
        metafunc.parametrize("swept", chosen)


def test_a_better_machine_is_not_slower(machine: Machine, better: Case) -> None:
    path, (factor, names) = EXAMPLES / f"{better[0]}.pb", BETTER[better[1]]
    assert machine.changed(path, factor, names) <= machine.step(path) * (1 + TOLERANCE)


def test_twice_everything_takes_half_the_time(machine: Machine, doubled: str) -> None:
    path = EXAMPLES / f"{doubled}.pb"
    # To the rounding of times to picoseconds and of launches to cycles.
    assert machine.changed(path, 2, (*RATES, *LATENCIES)) == pytest.approx(
        machine.step(path) / 2, rel=1e-3
    )


def test_a_straggler_does_not_help(machine: Machine, slowed: Case) -> None:
    path = EXAMPLES / f"{slowed[0]}.pb"
    assert machine.step(path, "--slow", slowed[1]) >= machine.step(path) * (1 - TOLERANCE)


# --- Collective matmuls of many sizes, over link rates ---

DTYPES = {"bf16": jnp.bfloat16, "int32": jnp.int32, "int8": jnp.int8, "f32": jnp.float32}
Swept = tuple[str, str, int, int, int]


def variant(kind: str, dtype: str, rows: int, depth: int, columns: int) -> Callable[..., Program]:
    """A builder like those of the examples, of other sizes."""

    def gathered(mesh: jax.sharding.AbstractMesh) -> Program:
        function, _ = collective_matmul.collective_matmul(
            mesh, DTYPES[dtype], unroll=kind == "gather_unrolled"
        )
        shapes = collective_matmul.array(mesh, (rows, depth), DTYPES[dtype], "X", "Y")
        weights = collective_matmul.array(mesh, (depth, columns), DTYPES[dtype], None, "Y")
        return function, (shapes, weights)

    def scattered(mesh: jax.sharding.AbstractMesh) -> Program:
        name = f"{kind}_matmul_{'one_way' if kind == 'all_reduce' else 'two_ways'}"
        function, _ = getattr(reduce_scatter_matmul, name).build(mesh)
        shapes = reduce_scatter_matmul.array(mesh, (rows, depth), DTYPES[dtype], "X", "Y")
        weights = reduce_scatter_matmul.array(mesh, (depth, columns), DTYPES[dtype], "Y", None)
        return function, (shapes, weights)

    return gathered if kind.startswith("gather") else scattered


VARIANTS: dict[str, Swept] = {
    f"{kind}_{dtype}_{rows}x{depth}x{columns}": (kind, dtype, rows, depth, columns)
    for kind in ("gather_loop", "gather_unrolled", "reduce_scatter", "all_reduce")
    for dtype in DTYPES
    for rows, depth, columns in ((256, 512, 1024), (512, 1024, 512), (1024, 2048, 8192))
}
SWEPT_BY_DEFAULT = [
    "gather_loop_bf16_1024x2048x8192",
    "gather_unrolled_int32_1024x2048x8192",
    "reduce_scatter_bf16_1024x2048x8192",
    "reduce_scatter_int32_512x1024x512",
]


def test_time_falls_with_the_link_rate(machine: Machine, swept: str) -> None:
    path = machine.folder / f"{swept}.pb"
    mesh = jax.sharding.AbstractMesh((2, 4), ("X", "Y"))
    function, arguments = variant(*VARIANTS[swept])(mesh)
    tpusim.export(function, *arguments, path=path, config="v5e-4x2")
    times = [machine.changed(path, factor, LINKS) for factor in SWEPT]
    best = times[0]
    for factor, time in zip(SWEPT, times, strict=True):
        assert time <= best * (1 + TOLERANCE), f"links x {factor}: {times}"
        best = min(best, time)
