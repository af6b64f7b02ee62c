"""Fits a few physical parameters per chip, and says what is left over.

    python tools/validation/calibrate.py [--build build] [--chips v5e,...] [--only view|measured]

Two fits, both by the same plain search:

*measured*: parameters of the shipped chips, from published measurements that may calibrate
(`ROWS` below; every other row of validation/measurements.json is validation, and never read).
Steps of models are validation by what they are: a training or inference row that says otherwise
is an error.
Writes validation/calibration.json. What is adopted stands in configs/chips with the source
"fitted: tools/validation/calibrate.py"; a value that fits as well as the one found stays.

*view*: the few constants in which the TPU compiler's estimates differ from the shipped chips, those
of kernels without a product and then those of products, from the calibration rows of
validation/kernels/estimates.jsonl.gz (kernels.py: programs whose hash is not divisible by three).
Writes validation/kernels/compiler_view.json.

The search is by coordinates: every parameter in turn takes the value of its ladder with the least
loss; when none gains, ladders get finer. The loss of a family is the median of the absolute log
errors and a quarter of their mean, each cut at a factor of two; families count with the square root
of their rows. Nothing is random: same input, same output.
"""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import copy
import json
import math
import pathlib
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable

import kernels

ROOT = pathlib.Path(__file__).resolve().parents[2]
MEASUREMENTS = ROOT / "validation" / "measurements.json"
CALIBRATION = ROOT / "validation" / "calibration.json"

Settings = dict[str, float]
Loss = Callable[[Settings], float]

# Rows of measurements.json that may calibrate, and what they set. V10 (steps of a Pallas kernel)
# and V13 (products) were timed from Python: about so much of them is dispatch.
DISPATCH_NS = 110e3
ROWS = (
    *("V03", "V05", "V07b", "V07h", "V10", "V13", "V24", "V24b", "V24c", "V24d", "V24e", "V25"),
    *("V26", "V27", "V28", "V29", "V95", "V98"),
)
# Kinds of rows that nothing is fitted to.
NEVER_FITTED = ("training", "inference")
MEASURED: dict[str, tuple[str, ...]] = {
    "v2": ("ici.die_to_die_bytes_per_second",),
    "v5e": (
        "chip.dma.start_latency_ns",
        "ici.launch_ns",
        "ici.wrapped_efficiency",
        "ici.unwrapped_efficiency",
        "chip.mxu.efficiency",
    ),
    "v7x": (
        "ici.launch_ns",
        "chip.hbm.efficiency",
        "chip.tensor_core.kernel_launch_ns",
        "chip.mxu.efficiency",
    ),
    "v5p": ("ici.launch_ns", "ici.hop_latency_ns"),
    "v6e": ("ici.wrapped_efficiency", "chip.mxu.efficiency", "host.dcn_efficiency"),
    "v4": ("chip.dma.start_latency_ns", "chip.hbm.efficiency"),
}

# The compiler's view has constants of kernels without a product and constants of products, which
# do not meet. The search for the former starts at 1.2 us per step and 0.9 of HBM's peak; that for
# the latter at each of PRODUCT_STARTS, and the best of them is kept.
STEP_SECONDS, PEAK_SHARE = 1.2e-6, 0.9
PRODUCT_START: Settings = {
    "chip.dma.start_latency_ns": 1100,
    "chip.dma.write_start_latency_ns": 20,
    "chip.dma.turnaround_ns": 900,
    "chip.hbm.efficiency": 0.88,
    "chip.mxu.weight_rows_per_cycle": 4,
    "chip.tensor_core.kernel_launch_ns": 40,
    "chip.tensor_core.product_window_ns": 600,
}
PRODUCT_STARTS: tuple[Settings, ...] = (
    PRODUCT_START,
    # A step waits for another reason than the first transfer.
    {
        **PRODUCT_START,
        "chip.dma.start_latency_ns": 400,
        "chip.dma.turnaround_ns": 1800,
        "chip.tensor_core.product_window_ns": 1000,
    },
    # Short latencies.
    {**PRODUCT_START, "chip.dma.start_latency_ns": 500, "chip.dma.turnaround_ns": 200},
)
# The estimates know nothing of power.
FULL_RATE: Settings = {"chip.mxu.efficiency": 1}
FACTORS = (0.4, 0.7, 0.85, 0.95, 1.05, 1.15, 1.3, 1.6)
LADDERS = {
    "chip.mxu.weight_rows_per_cycle": (2.0, 4.0),
    "vmem_share": (0.01, 0.25, 0.5, 0.75, 1.0),
    "cmem_share": (0.0, 0.01, 0.25, 0.5, 0.75, 1.0),
}


def ladder(key: str, value: float, scale: float) -> list[float]:
    """Values to try around one, at 1 / scale of the coarsest steps."""
    if key in LADDERS:
        return [v for v in LADDERS[key] if v != value]
    tried = sorted({float(f"{value * (1 + (f - 1) * scale):.3g}") for f in FACTORS} - {value})
    return [v for v in tried if v <= 1] if key.endswith("efficiency") else tried


def search(loss: Loss, start: Settings, gain: float, rounds: int) -> Settings:
    """Coordinate search; a step has to gain so much."""
    best, least, scale = dict(start), loss(start), 1.0
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for _ in range(rounds):
            before = least
            for key in start:
                tried = [{**best, key: v} for v in ladder(key, best[key], scale)]
                # In the order of the ladder, whichever finishes first.
                for settings, value in zip(tried, pool.map(loss, tried), strict=True):
                    if value < least - gain:
                        best, least = settings, value
            if least > before - 10 * gain:
                scale /= 2
    return best


def loss_of(errors: Iterable[tuple[str, float]]) -> float:
    """One number for (family, ratio of ours to theirs)."""
    families: dict[str, list[float]] = collections.defaultdict(list)
    for family, ratio in errors:
        families[family].append(min(abs(math.log(ratio)), math.log(2)))
    total = sum(
        math.sqrt(len(e)) * (statistics.median(e) + statistics.fmean(e) / 4)
        for e in families.values()
    )
    return total / sum(math.sqrt(len(e)) for e in families.values())


def rounded(number: float) -> float:
    """Three digits, whole numbers whole."""
    short = float(f"{number:.3g}")
    return int(short) if short == int(short) else short


class Estimates:
    """The calibration rows of one chip's kernel estimates."""

    def __init__(self, chip: str, binary: pathlib.Path) -> None:
        self.chip = chip
        self.binary = str(binary)
        everything = [r for r in kernels.load() if r["chip"] == chip]
        self.rows = [r for r in everything if not kernels.held_out(r["program"])]

    def pairs(self, arguments: list[str]) -> list[tuple[dict, dict]]:
        """Rows beside what we predict."""
        predicted = kernels.predict(self.binary, self.chip, self.rows, arguments)
        return list(zip(self.rows, predicted, strict=True))

    def loss(self, settings: Settings) -> float:
        """Returns the loss of a view."""
        return loss_of(
            (kernels.family_of(row), result["cycles"] / row["cycles"])
            for row, result in self.pairs(kernels.arguments_of(settings))
            if "error" not in result
        )

    def only(self, *, products: bool) -> Estimates:
        """Returns the estimates with a product, or those without."""
        some = copy.copy(self)
        some.rows = [r for r in self.rows if bool(r["convs"]) == products]
        return some

    def residuals(self, arguments: list[str]) -> dict[str, dict[str, float]]:
        """Returns mean errors by family, as fractions."""
        summary = kernels.summarize(self.pairs(arguments))
        return {f: {k: rounded(x) for k, x in v.items()} for f, v in summary.items()}


def may_calibrate(rows: list[dict], chip: str) -> list[dict]:
    """The rows of a chip that parameters may be fitted to.

    Raises:
      ValueError: A row that is a step of a model says that it calibrates.
    """
    for row in rows:
        if row["kind"] in NEVER_FITTED and row["role"] == "calibration":
            raise ValueError(f"{row['id']}: nothing is fitted on a {row['kind']} row")
    return [
        row
        for row in rows
        if row["chip"] == chip
        and row["role"] != "validation"
        and row["kind"] not in NEVER_FITTED
        and row["id"].split()[0] in ROWS
    ]


class Measurements:
    """The calibration rows of one chip's published measurements."""

    def __init__(self, chip: str, binary: pathlib.Path) -> None:
        self.chip = chip
        self.binary = binary
        content = json.loads(MEASUREMENTS.read_text())
        rows = may_calibrate(content["measurements"], chip)
        for row in rows:
            row["workload"] = str((MEASUREMENTS.parent / row["workload"]).resolve())
        self.file = {**content, "measurements": rows, "pending": []}

    def times(self, settings: Settings) -> list[tuple[str, float, float]]:
        """Id, measured and simulated nanoseconds."""
        result = []
        if self.file["measurements"]:
            with tempfile.TemporaryDirectory() as folder:
                source, out = pathlib.Path(folder) / "m.json", pathlib.Path(folder) / "v.json"
                source.write_text(json.dumps(self.file))
                command = [
                    str(self.binary),
                    "validate",
                    str(source),
                    "--quiet",
                    "--report",
                    str(out),
                ]
                # A fitted value goes into the chip's file, which the compiler knows.
                command += ["--recompile"] if settings else []
                for key, value in sorted(settings.items()):
                    command += ["--set", f"{key}={value:.6g}"]
                done = subprocess.run(command, capture_output=True, text=True, check=False)
                if done.returncode != 0:
                    sys.exit(f"{' '.join(command)}: {done.stderr.strip()}")
                rows = json.loads(out.read_text())["rows"]
            for r in rows:
                dispatch = DISPATCH_NS if r["role"] == "upper bound" else 0
                result.append((r["id"], r["measured_ns"], r["simulated_ns"] + dispatch))
        return result

    def loss(self, settings: Settings) -> float:
        """Returns the loss of parameters: few rows, and each counts."""
        return statistics.fmean(
            abs(math.log(ours / theirs)) for _, theirs, ours in self.times(settings)
        )


def shipped(chip: str, keys: Iterable[str]) -> Settings:
    """Returns the values in the chip's file."""
    node = json.loads((ROOT / "configs" / "chips" / f"{chip}.json").read_text())
    values = {}
    for key in keys:
        at = node
        for part in key.split("."):
            at = at[part]
        values[key] = float(at["value"])
    return values


def fit_measured(chip: str, build: pathlib.Path) -> dict:
    """Parameters and rows of one chip, before and after."""
    measurements = Measurements(chip, build / "tpusim")
    start = shipped(chip, MEASURED[chip])
    best = search(measurements.loss, start, gain=1e-3, rounds=4)
    before, after = measurements.times(start), measurements.times(best)
    return {
        "parameters": {
            k: {"shipped": rounded(start[k]), "fitted": rounded(best[k])} for k in start
        },
        "mean_error": {
            "shipped": rounded(statistics.fmean(abs(r[2] / r[1] - 1) for r in before)),
            "fitted": rounded(statistics.fmean(abs(r[2] / r[1] - 1) for r in after)),
        },
        "rows": [
            {"id": b[0], "shipped": rounded(b[2] / b[1] - 1), "fitted": rounded(a[2] / a[1] - 1)}
            for b, a in zip(before, after, strict=True)
        ],
    }


def fit_view(chip: str, build: pathlib.Path) -> tuple[Settings, dict]:
    """The compiler's view of one chip, and residuals by family."""
    estimates = Estimates(chip, build / "tpusim_kernel_rows")
    keys = ("chip.clock_hz", "chip.hbm.bytes_per_second", "chip.cmem.bytes")
    clock, bandwidth, cmem = shipped(chip, keys).values()
    start = {
        "loop_step_cycles": STEP_SECONDS * clock,
        "loop_bytes_per_cycle": PEAK_SHARE * bandwidth / clock,
    }
    # Operands that are not in HBM are in CMEM, which costs loops what HBM does, or in VMEM.
    shares = ({}, {"cmem_share": 0.25}) if cmem else ({"vmem_share": 1}, {})
    loops = search(estimates.only(products=False).loss, {**start, **shares[0]}, gain=1e-4, rounds=6)

    products = estimates.only(products=True)

    def loss(settings: Settings) -> float:
        return products.loss({**FULL_RATE, **loops, **settings})

    found = [search(loss, {**start, **shares[1]}, gain=1e-4, rounds=4) for start in PRODUCT_STARTS]
    closest: Settings = min(found, key=loss)
    best = {key: rounded(value) for key, value in {**FULL_RATE, **closest, **loops}.items()}
    return best, {
        "shipped": estimates.residuals([]),
        "fitted": estimates.residuals(kernels.arguments_of(best)),
    }


def main() -> None:
    """Fits and writes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--chips", default="v2,v5e,v5p,v4,v6e,v7x")
    parser.add_argument("--only", choices=["view", "measured"], help="one of the two fits")
    args = parser.parse_args()
    chips = args.chips.split(",")
    if args.only != "view":
        fits = json.loads(CALIBRATION.read_text()) if CALIBRATION.exists() else {"chips": {}}
        fits["what"] = (
            "Parameters of the shipped chips against the published measurements that may calibrate,"
            " by tools/validation/calibrate.py: the value in configs/chips, the best one found, and"
            " the relative errors with both."
        )
        for chip in chips:
            if chip in MEASURED:
                fits["chips"][chip] = fit_measured(chip, args.build)
                print(chip, json.dumps(fits["chips"][chip]["parameters"]))
        CALIBRATION.write_text(json.dumps(fits, indent=2) + "\n")
    if args.only != "measured":
        view = json.loads(kernels.VIEW.read_text())
        for chip in (c for c in chips if c in kernels.SLICES):
            view["chips"][chip], residuals = fit_view(chip, args.build)
            view.setdefault("residuals", {})[chip] = residuals
            print(chip, json.dumps(view["chips"][chip]))
        kernels.VIEW.write_text(json.dumps(view, indent=2) + "\n")


if __name__ == "__main__":
    main()
