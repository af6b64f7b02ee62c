"""What-ifs make sense: no machine that is better in every way takes longer for a step.

The program stays as it is, but other transfers meet on the links and in memory: more of a rate or
half of a latency lengthens no step by more than a percent; twice everything halves it; a straggler
never helps. Collective matmuls, whose schedules are the most delicate, come in many kinds and
sizes.

A fixed sample by default, always with the examples' collective matmuls; `--long` runs everything.
"""

import dataclasses
import json
import pathlib
import random
import subprocess
from collections.abc import Sequence

import pytest

from tests.tools.collective_matmuls import VARIANTS
from tests.tools.command_line import example, examples

TOLERANCE = 0.01
FACTORS = (1.0, 1.1, 1.3, 1.5, 2.0, 2.5, 4.0)

RATES = {
    "links": ("ici.link_bytes_per_second", "ici.die_to_die_bytes_per_second"),
    "hbm": ("chip.hbm.bytes_per_second", "chip.cmem.bytes_per_second"),
    "clock": ("chip.clock_hz",),
    "hosts": ("host.pcie_bytes_per_second", "host.dcn_bytes_per_second"),
}
LATENCIES = {
    "dma": ("chip.dma.start_latency_ns", "chip.dma.write_start_latency_ns",
            "chip.dma.turnaround_ns"),
    "kernels": ("chip.tensor_core.kernel_launch_ns", "chip.tensor_core.product_window_ns",
                "chip.tensor_core.grid_step_overhead_ns"),
    "hops": ("ici.hop_latency_ns",),
    "launches": ("ici.launch_ns",),
    "host_latencies": ("host.pcie_latency_ns", "host.dcn_latency_ns"),
}  # fmt: skip
ALL_LATENCIES = tuple(name for names in LATENCIES.values() for name in names)
EVERYTHING = (*(name for names in RATES.values() for name in names), *ALL_LATENCIES)
HALVED = {**LATENCIES, "latencies": ALL_LATENCIES}

# Two rings over a line, whose closing permutes cross the links of the other ring: faster memory
# brings their starts closer to each other, and both multiply while links are idle (docs/models.md,
# Rings that meet). By how much of a step, with how little to spare.
MEETING_RINGS = {
    ("v6e-4x2",): 0.004,
    ("v6e-4x2", "--set", "ici.link_bytes_per_second=2x"): 0.009,
    ("v5e-4x2", "--slow", "chip=1:0.8"): 0.022,
    ("v6e-4x2", "--slow", "chip=3:0.93", "--slow", "chip=1:0.8",
     "--set", "ici.link_bytes_per_second=2x"): 0.042,
}  # fmt: skip

DATA = pathlib.Path(__file__).parent / "data"
NAMES = examples()
# The rings of permutes between products.
RINGS = [name for name in NAMES if name.startswith(("collective_matmul", "reduce_scatter_matmul"))]
SAMPLE = 9
VARIANTS_BY_DEFAULT = (
    "gather_unrolled_bf16_1024x2048x8192",
    "gather_loop_int8_1024x2048x8192",
    "reduce_scatter_unrolled_int32_1024x2048x8192",
    "all_reduce_unrolled_int32_2048x4096x4096",
)
# Steps that do get longer, with the reason: other transfers meet than did before.
NEAR_STARTS = (
    "between the starts of the two rings are loads, so hbm x 4 brings them from 8.1 to 3.5 us of "
    "each other; as they share links evenly, their first permutes also end that close, and while "
    "both launch the next (5.4 us and 1 hop, or 3 for the pair that closes the ring) links idle "
    "for 2.9 to 4.9 us, which they never did, while the start is only 2.1 us earlier"
)
KNOWN = {
    ("gather_unrolled_bf16_2048x4096x4096", "hbm"): NEAR_STARTS,
}


@dataclasses.dataclass(frozen=True)
class Machine:
    """Runs programs on changed chips and remembers how long a step took."""

    binary: str
    folder: pathlib.Path
    known: dict[tuple[object, ...], float] = dataclasses.field(default_factory=dict)
    parameters: dict[str, dict[str, float]] = dataclasses.field(default_factory=dict)
    configs: dict[pathlib.Path, str] = dataclasses.field(default_factory=dict)

    def path_of(self, name: str) -> pathlib.Path:
        """An example or a variant."""
        return VARIANTS[name].export(self.folder) if name in VARIANTS else example(name)

    def step(self, name: str, *flags: str) -> float:
        """Nanoseconds of a step."""
        key = (name, *flags)
        if key not in self.known:
            report = self.folder / "report.json"
            command = [self.binary, "run", str(self.path_of(name)), "--quiet"]
            command += ["--report", str(report), *flags]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
            result = json.loads(report.read_text())
            self.known[key] = result["step_time_ns"]
            if not flags:
                self.configs[name] = result["config"]
        return self.known[key]

    def changed(self, name: str, factor: float, parameters: Sequence[str]) -> float:
        """The step with rates multiplied and latencies divided by `factor`."""
        as_it_is = self.step(name)
        values = self.parameters_of(self.configs[name])
        settings = []
        for parameter in parameters:
            value = values.get(parameter, 0.0)
            if value == 0 or factor == 1:
                continue
            other = value / factor if parameter.endswith("_ns") else value * factor
            settings += ["--set", f"{parameter}={other:.15g}"]
        return self.step(name, *settings) if settings else as_it_is

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


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    whole = metafunc.config.getoption("--long")
    draw = random.Random(3)
    some = NAMES if whole else sorted({*RINGS, *draw.sample(NAMES, SAMPLE)})
    few = NAMES if whole else sorted(draw.sample(NAMES, SAMPLE))
    if "rate" in metafunc.fixturenames:
        variants = list(VARIANTS) if whole else VARIANTS_BY_DEFAULT
        cases = [(name, rate) for name in (*some, *variants) for rate in RATES]
        if not whole:
            cases = [case for case in cases if case[1] != "hosts"]
        metafunc.parametrize(
            ("name", "rate"),
            [
                pytest.param(*case, marks=pytest.mark.xfail(reason=KNOWN[case], strict=True))
                if case in KNOWN
                else case
                for case in cases
            ],
        )
    elif "latency" in metafunc.fixturenames:
        metafunc.parametrize(("name", "latency"), [(n, h) for n in few for h in HALVED])
    elif "slow" in metafunc.fixturenames:
        metafunc.parametrize(("name", "slow"), [(n, chip) for n in few for chip in (0, 1, 3)])
    elif "name" in metafunc.fixturenames:
        metafunc.parametrize("name", some)


def test_a_higher_rate_does_not_lengthen_a_step(machine: Machine, name: str, rate: str) -> None:
    times = [machine.changed(name, factor, RATES[rate]) for factor in FACTORS]
    best = times[0]
    for factor, time in zip(FACTORS, times, strict=True):
        assert time <= best * (1 + TOLERANCE), f"{rate} x {factor}: {times}"
        best = min(best, time)


def test_half_a_latency_does_not_lengthen_a_step(machine: Machine, name: str, latency: str) -> None:
    assert machine.changed(name, 2, HALVED[latency]) <= machine.step(name) * (1 + TOLERANCE)


def test_twice_everything_takes_half_the_time(machine: Machine, name: str) -> None:
    # To the rounding of times to picoseconds and of launches to cycles.
    assert machine.changed(name, 2, EVERYTHING) == pytest.approx(machine.step(name) / 2, rel=1e-3)


@pytest.mark.parametrize("flags", MEETING_RINGS, ids=" ".join)
def test_faster_memory_lengthens_rings_that_meet_by_what_is_known(
    machine: Machine, flags: tuple[str, ...]
) -> None:
    rings = str(DATA / "two_way_all_reduce_matmul")
    memory = "chip.hbm.bytes_per_second"
    times = [
        machine.step(rings, "--config", *flags, *(("--set", f"{memory}={f}x") if f > 1 else ()))
        for f in FACTORS
    ]
    longer = max(time / min(times[: n + 1]) - 1 for n, time in enumerate(times))
    # What is given is reached but for a tenth: a smaller one is written down.
    assert 0.9 * MEETING_RINGS[flags] <= longer <= MEETING_RINGS[flags], times


def test_a_straggler_beside_a_weak_link_does_not_help(machine: Machine) -> None:
    # Ragged all-to-alls send several parts over the weak link, which leave it in order.
    flags = ("--config", "v5e-4x2", "--link", "0:x+=0.5")
    ragged = str(DATA / "moe_ragged")
    straggling = machine.step(ragged, *flags, "--slow", "chip=1:0.8")
    assert straggling >= machine.step(ragged, *flags)


def test_a_straggler_does_not_help(machine: Machine, name: str, slow: int) -> None:
    assert machine.step(name, "--slow", f"chip={slow}:0.8") >= machine.step(name) * (1 - TOLERANCE)
