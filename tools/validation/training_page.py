"""Writes docs/validation/training.md and its plot: published train steps beside simulations.

    pip install matplotlib
    python tools/validation/training_page.py [--binary build/tpusim]

Every row of kind "training" in validation/measurements.json is simulated by itself, and again where
its source can be read in another way (training_readings.py).
"""

import argparse
import collections
import json
import math
import pathlib
import statistics
import subprocess
import tempfile
from collections.abc import Iterable
from typing import Any

import pictures
from measurements import DOCS, ROOT, table, time_text
from resources_used import measured
from training_readings import READINGS

Row = dict[str, Any]

MEASUREMENTS = ROOT / "validation" / "measurements.json"
COMPILED = ROOT / "tests" / "data" / "compiled"
# Published utilizations that are closer than this say nothing of an order.
CLOSE = 0.05
# Parts of the machine with at least so much of the critical path are named.
NAMED = 0.03
PARTS = {"mxu": "MXU", "vpu": "VPU", "hbm": "HBM", "ici": "ICI", "dcn": "DCN", "host": "PCIe"}
COLOURS = {"v4": "tab:green", "v5e": "tab:blue", "v5p": "tab:orange", "v6e": "tab:red"}

INTRODUCTION = """# Published train steps

Written by `python tools/validation/training_page.py`; do not edit.

Train steps of language models that others ran on whole slices, beside their simulation. The
programs are in `validation/workloads` (`decoder.py`, `train_step.py`; `training.py` says which
model runs on which mesh): written anew in JAX after what the sources publish, exported without a
TPU. The simulator partitions, fuses and schedules them itself. Attention is JAX's own splash
kernel.

**Nothing was fitted to any of these rows.** The rate that products keep up
(`chip.mxu.efficiency`) comes from single products: on v5e (V13), v6e (V95) and v7x (V26). v5p and
v4 borrow that of v5e. The program that fits parameters refuses rows of this kind.

MFU is the utilization in model FLOPs: those that the mathematics of a model needs, as its source
counts them, over the step time and the chip's published peak. A: program and conditions are known
exactly but for the assumptions below; B: nearly. An error is that of the step time: negative where
the simulated step is too short. *Critical path* is what the simulated step waits for.
"""

MODULES = """## Beside the compiler's modules

The same programs as today's TPU compiler leaves them, compiled ahead of time with the flags of
their sources (`tests/data/compiled`, `tools/validation/compiled_modules.py`), simulated as they
are. Where the module is near the published step and the export is not, the simulator's compiler is
wrong; where both are as far off, its machine is, or the published run was another program. Three
modules are no programs that the sources ran: in that of V43 every permute is synchronous, as today
on v5e slices of 32 chips and more, and those of V49 and V71 compute again what does not fit.
"""

NOT_MODELLED = """## What is not modelled

Where estimates or schedules of the TPU compiler are named, the same program or a layer of it was
compiled ahead of time for the same slice. Those are no measurements.

* **Rotary positions** are as the compiler has them: a product, a kernel that makes the halves of
  queries and keys, and one that joins the halves of each, since a kernel cuts and joins only what
  lies in memory. Its estimates for these kernels are twice the time of their bytes; its schedules
  are shorter than that (a layer of V40: 320,000 cycles for the halves of the queries, and 1.1
  million for the bytes). Its halves lie with 64 elements in 128 lanes, ours with the sequence along
  the lanes and a copy before attention: as many bytes.
* **Products of fused operands** run like plain ones. The compiler estimates 18 to 24 ms where the
  contraction is split and 15 ms where it is not, whether operands are computed or not: one to two
  microseconds for every step of the grid. Its schedules have no such wait. The gradient of a weight
  of V40, both operands computed (23.1 ms by its estimate): 3,584 steps of 6,350 bundles, where the
  arrays need 6,144 cycles; all vector work hides.
* **Splash attention.** A kernel's body is priced in stages: the product with the values waits until
  rows are through softmax. Beside the compiler's schedules, per block that the mask leaves and
  without what a step costs (0.35 us): forward 2048 x 2048 on v6e 7.8 us, 7.8 us in bundles;
  backward in one kernel 12.7 and 12.9 us; forward 512 x 512 on v5e 1.3 and 0.8 us, where the
  scheduler fills the arrays' waits better than stages do.
* **Gathers beside compute.** The sources ask for asynchronous all-gathers
  (`--xla_enable_async_all_gather`), and here all of them are. Today's compiler leaves
  some of them synchronous, and all of V49 at its default limit of memory.
* **Windowed einsums** carry their operands and sums through HBM, where the compiler keeps them in
  VMEM. V43 and V49 to V55 have them, over groups whose members are no neighbours: which products,
  and by which of their collectives, is as today's compiler has it (`collectives.h`).
* **Slices over DCN.** The all-reduce of gradients between slices runs at the third of the network
  cards' rate that one measurement on v6e reached (V27), and nothing hides it. Published steps lose
  more with every slice (V58 above); what of that is the network, and what are hosts that wait for
  each other, the source does not tell.
* **Hosts.** The programs are the step alone: no loading of data, dispatch, metrics or checkpoints.

Gathers beside compute go on once per step of a kernel's grid (`docs/models.md`, *Schedule*): on
rings of 256 that is what they take. Steps that send activations to the host wait for them where
the next layer makes its own. With both, V64 takes 14 % longer here than without, V62 9 to 10 %.

In eight train steps of Qwen3-8B by XProf's categories (V96 of `tpusim validate --long`) products
are within 3 % and splash attention within 7 %, but for that of V96j (-15 %). Loop fusions are 17 %
too short to 19 % too long. Data formatting is 10 to 82 % too short: where heads are normalized,
the compiler keeps queries and keys in float32 and turns them twice (134 MB each, four times per
layer of V96d). Reduce-scatters of six steps are 15 to 31 % too long (V96e: 15 % too short). Waits
for the host are 35 % too short in V96i and missing in V96h; V96j, whose flags are not listed in
full, was measured without any, and so is 8 % too long here.

V49 is at the limit of HBM. With today's default of the scheduler's limit, 95 % of it, the compiler
puts no permute beside a product, and neither does the simulator; with 100 % it computes more again
than the simulator does. The published step is shorter than either module's.

V54 and V55 are one step: the same model, and the same work for each chip, on 1,024 and on 2,048
chips. The larger slice is published with 86 % of the smaller one's time, so no figure can be near
both. The script of V58 prints sizes that make no model of its name; heads and MLP were inferred
(both readings below).
"""

READING = """## Other readings of a source

Where a source can be read in two ways, both values; *moved* is the simulated step's. For V58 the
MFU is published, and a step time follows from the model FLOPs of each reading.
"""


def training_rows() -> list[Row]:
    """Published steps with a published utilization, workloads by their whole path."""
    listed = json.loads(MEASUREMENTS.read_text())["measurements"]
    return [
        row | {"workload": str(MEASUREMENTS.parent / row["workload"])}
        for row in listed
        if row["kind"] == "training" and "model_flops" in row
    ]


def simulate(binary: pathlib.Path, row: Row) -> Row:
    """Runs `tpusim validate` on one row; adds its processor seconds and largest memory."""
    with tempfile.TemporaryDirectory() as folder:
        file, result = pathlib.Path(folder) / "row.json", pathlib.Path(folder) / "result.json"
        listed = {"schema": "tpusim.measurements/1", "measurements": [row], "pending": []}
        file.write_text(json.dumps(listed))
        used = measured(binary, "validate", file, "--long", "-q", "--report", result)
        (outcome,) = json.loads(result.read_text())["rows"]
    return outcome | used._asdict()


def ranking(rows: list[Row]) -> tuple[int, list[tuple[Row, Row]]]:
    """Pairs on one chip whose published MFU differ, and those that the simulation turns round."""
    pairs = [
        (a, b)
        for i, a in enumerate(rows)
        for b in rows[i + 1 :]
        if a["chip"] == b["chip"]
        and abs(a["measured_mfu"] - b["measured_mfu"])
        > CLOSE * max(a["measured_mfu"], b["measured_mfu"])
    ]
    turned = [
        (a, b)
        for a, b in pairs
        if (a["measured_mfu"] < b["measured_mfu"]) != (a["simulated_mfu"] < b["simulated_mfu"])
    ]
    return len(pairs), turned


def path_text(row: Row) -> str:
    """MXU 72 %, ICI 20 %."""
    shares = [
        (time / row["simulated_ns"], PARTS.get(part, part))
        for part, time in row["critical_path_ns"].items()
        if time >= NAMED * row["simulated_ns"]
    ]
    return ", ".join(f"{name} {share:.0%}" for share, name in sorted(shares, reverse=True))


def step_cells(row: Row) -> list[str]:
    """Published and simulated, step time and MFU."""
    return [
        time_text(row["measured_ns"]),
        time_text(row["simulated_ns"]),
        f"{row['error']:+.1%}",
        f"{row['measured_mfu']:.1%}",
        f"{row['simulated_mfu']:.1%}",
    ]


def steps(rows: list[Row]) -> str:
    """One line for each row."""
    gibibyte = 2**30
    return table(
        "id | chip | model and mesh | class | published step | simulated | error | published MFU "
        "| simulated | peak HBM of usable, GiB | critical path",
        (
            [
                r["id"],
                r["chip"],
                r["name"],
                r["reproducibility"],
                *step_cells(r),
                f"{r['peak_hbm_bytes'] / gibibyte:.1f} of {r['usable_hbm_bytes'] / gibibyte:.2f}",
                path_text(r),
            ]
            for r in rows
        ),
    )


def fits(rows: list[Row]) -> str:
    """Programs that are known to have run must fit."""
    too_large = [r["id"] for r in rows if r["peak_hbm_bytes"] > r["usable_hbm_bytes"]]
    if too_large:
        return f"By the simulation these did not fit into HBM: {', '.join(too_large)}."
    return "Every one fits into HBM."


def means(rows: list[Row]) -> str:
    """Errors of step times, by chip and class, and of each class."""
    groups: dict[tuple[str, str], list[Row]] = collections.defaultdict(list)
    for row in rows:
        groups[row["chip"], row["reproducibility"]].append(row)
    for row in rows:
        groups["all", row["reproducibility"]].append(row)

    def cells(some: list[Row]) -> Iterable[str]:
        worst = max(some, key=lambda row: abs(row["error"]))
        yield str(len(some))
        yield f"{statistics.fmean(abs(row['error']) for row in some):.1%}"
        yield f"{statistics.fmean(row['error'] for row in some):+.1%}"
        yield f"{worst['error']:+.1%} ({worst['id']})"

    return table(
        "chip | class | rows | mean absolute error | mean error | worst",
        ([chip, grade, *cells(some)] for (chip, grade), some in groups.items()),
    )


def slices(rows: list[Row]) -> str:
    """Says what data parallelism over DCN costs V58."""
    some = [row for row in rows if row["id"].startswith("V58 ")]
    one = some[0]

    def cells(row: Row) -> Iterable[str]:
        yield row["id"].split()[1]
        for key in ("measured_mfu", "simulated_mfu"):
            yield f"{row[key]:.1%}"
            yield f"{100 * (row[key] - one[key]):+.1f} points"

    return table("slices | published MFU | against one | simulated | against one", map(cells, some))


def assumptions(listed: list[Row]) -> str:
    """Lists the assumptions of all rows once, then those of single rows."""
    common = [a for a in listed[0]["assumptions"] if all(a in r["assumptions"] for r in listed)]
    lines = [f"* all rows: {assumption}" for assumption in common]
    for row in listed:
        own = [a for a in row["assumptions"] if a not in common]
        lines += [f"* {row['id']}: {text}" for text in (*own, row.get("note")) if text]
    return "\n".join(lines) + "\n"


def readings(binary: pathlib.Path, rows: list[Row], listed: list[Row]) -> str:
    """Both values of every reading."""
    simulated = {row["id"]: row for row in rows}
    published = {row["id"]: row for row in listed}
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        for reading in READINGS:
            here = simulated[reading.row]
            other = reading.change(published[reading.row], pathlib.Path(folder))
            there = simulate(binary, other)
            moved = there["simulated_ns"] / here["simulated_ns"] - 1
            lines.append([reading.row, reading.assumed, *step_cells(here), ""])
            lines.append(["", f"instead: {reading.instead}", *step_cells(there), f"{moved:+.1%}"])
    return table(
        "id | reading | published step | simulated | error | published MFU | simulated | moved",
        lines,
    )


def module_of(row: Row) -> pathlib.Path:
    """Returns the compiled module of the row's program, if it is kept."""
    return next(COMPILED.glob(f"*/{pathlib.Path(row['workload']).name}"), COMPILED / "none")


def modules(binary: pathlib.Path, rows: list[Row], listed: list[Row]) -> str:
    """Steps of the exports beside those of the TPU compiler's modules of the same programs."""
    simulated = {row["id"]: row for row in rows}
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        for row in listed:
            packed = module_of(row)
            if not packed.exists():
                continue
            report = pathlib.Path(folder) / "report.json"
            measured(binary, "run", packed, "--report", report, stdout=subprocess.DEVNULL)
            there = json.loads(report.read_text())
            here = simulated[row["id"]]
            step = there["step_time_ns"]
            lines.append(
                [
                    row["id"],
                    row["chip"],
                    time_text(here["measured_ns"]),
                    time_text(here["simulated_ns"]),
                    f"{here['error']:+.1%}",
                    time_text(step),
                    f"{step / here['measured_ns'] - 1:+.1%}",
                    f"{here['simulated_ns'] / step:.2f}",
                    f"{here['peak_hbm_bytes'] / 2**30:.1f}",
                    f"{there['peak_hbm_bytes'] / 2**30:.1f}",
                ]
            )
    return table(
        "id | chip | published step | export | error | compiled module | error "
        "| export over module | peak HBM, GiB | of the module",
        lines,
    )


def plot(rows: list[Row], path: pathlib.Path) -> None:
    """Published against simulated MFU."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(5.5, 5.5))
    for chip in sorted({row["chip"] for row in rows}):
        for grade in sorted({row["reproducibility"] for row in rows if row["chip"] == chip}):
            some = [r for r in rows if (r["chip"], r["reproducibility"]) == (chip, grade)]
            axes.scatter(
                [100 * row["measured_mfu"] for row in some],
                [100 * row["simulated_mfu"] for row in some],
                s=34,
                edgecolors=COLOURS[chip],
                facecolors=COLOURS[chip] if grade == "A" else "none",
                label=f"{chip}, {grade}",
            )
    both = [100 * row[key] for row in rows for key in ("measured_mfu", "simulated_mfu")]
    ends = [min(both) - 2, max(both) + 2]
    axes.plot(ends, ends, linewidth=0.8, color="grey", label="equal")
    for factor in (0.9, 1.1):
        off = [factor * end for end in ends]
        axes.plot(ends, off, linewidth=0.6, linestyle=":", color="grey")
    axes.plot([], [], linewidth=0.6, linestyle=":", color="grey", label="a tenth off")
    axes.set(xlabel="published MFU, %", ylabel="simulated MFU, %", xlim=ends, ylim=ends)
    axes.legend(fontsize=8)
    figure.tight_layout()
    pictures.save(figure, path)
    pyplot.close(figure)


def page(binary: pathlib.Path, rows: list[Row], listed: list[Row]) -> str:
    """The whole text."""
    pairs, turned = ranking(rows)
    order = (
        f"Of {pairs} pairs on one chip whose published MFU differ by more than {CLOSE:.0%}, the "
        f"simulation has {pairs - len(turned)} in the published order "
        f"({(pairs - len(turned)) / pairs:.0%})"
    )
    names = "; ".join(f"{a['id']} and {b['id']}" for a, b in turned)
    # Rounded up: the page is to change when the model does, not from run to run.
    longest = 10 * math.ceil(max(row["cpu_s"] for row in rows) / 10)
    largest = 100 * math.ceil(max(row["resident_bytes"] for row in rows) / 1e8)
    parts = [
        INTRODUCTION,
        steps(rows),
        f"{fits(rows)} None takes more than {longest} s of one processor and {largest} MB of "
        "the host's memory.\n",
        "![published against simulated MFU](training-mfu.svg)\n",
        "## Errors\n",
        means(rows),
        "## Order\n",
        f"{order}.{f' Turned round: {names}.' if names else ''}\n",
        "## Data parallel over slices\n",
        "V58, gradients summed over DCN:\n",
        slices(rows),
        MODULES,
        modules(binary, rows, listed),
        NOT_MODELLED,
        READING,
        readings(binary, rows, listed),
        "## Assumptions and notes\n",
        assumptions(listed),
        "## How to run\n",
        "    build/tpusim validate --long                        # all rows, this page's included\n"
        "    build/tpusim validate --long --chip v5p --json      # one chip, for programs\n"
        "    build/tpusim run validation/workloads/train_16b_v5e_256.pb.gz --html step.html\n"
        "    python validation/workloads/training.py             # writes the exports anew\n",
        "`tpusim validate` gives each row the flags of the TPU compiler that its source had "
        "(`xla_flags` in `validation/measurements.json`); `tpusim run` takes them by "
        "`--xla-flags`.\n",
    ]
    return "\n".join(parts)


def main() -> None:
    """Simulates the steps, writes the page and the plot."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", type=pathlib.Path, default=ROOT / "build" / "tpusim")
    binary = parser.parse_args().binary.resolve()
    listed = training_rows()
    rows = [simulate(binary, row) for row in listed]
    plot(rows, DOCS / "training-mfu.svg")
    (DOCS / "training.md").write_text(page(binary, rows, listed))


if __name__ == "__main__":
    main()
