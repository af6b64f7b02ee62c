"""Our kernels against the TPU compiler's own cycle estimates.

Every row of validation/kernels/estimates.jsonl.gz is built as a fusion, tiled by
our own search and timed; the error is relative to the estimate. Medians per
family and chip, for the rows that may calibrate and for the programs held out.

    python tools/validation/kernels.py --binary build/tpusim_kernel_rows --held-out

Two columns: the chip as shipped, calibrated on measurements where there are any,
and the compiler's view of it (validation/kernels/compiler_view.json): the few
constants in which the estimates are more pessimistic than measurements.
"""

from __future__ import annotations

import argparse
import collections
import gzip
import hashlib
import json
import math
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = ROOT / "validation" / "kernels" / "estimates.jsonl.gz"
SLICES = {"v4": "v4-2x2x1", "v5e": "v5e-1x1", "v5p": "v5p-2x2x1", "v6e": "v6e-1x1"}
SLICES["v7x"] = "v7x-2x2x1"
VIEW = ROOT / "validation" / "kernels" / "compiler_view.json"
# What is no parameter of a chip, but how the estimates count.
CONVENTIONS = {"narrow_result_bytes": "--narrow-result", "vmem_share": "--vmem-share"}
GROUPS = {"mm": "matmul", "bmm": "matmul", "mmf": "matmul"}


def held_out(program: str) -> bool:
    """Decided once, before anything was fitted."""
    return int(hashlib.sha256(program.encode()).hexdigest(), 16) % 3 == 0


def load() -> list[dict]:
    """Rows of the data file, each with whether its memory spaces are predicted."""
    with gzip.open(DATA, "rt") as file:
        rows = [json.loads(line) for line in file]
    kernels = collections.Counter((r["chip"], r["program"], r["prefetch"]) for r in rows)
    for row in rows:
        alone = kernels[row["chip"], row["program"], row["prefetch"]] == 1
        # Where the kernel is the whole program, its operands are arguments, and
        # which of them sits in VMEM is predicted. Else it depends on its
        # neighbours, which the row does not show.
        row["predict_spaces"] = bool(row["convs"]) and alone
    return rows


def predict(binary: str, chip: str, rows: list[dict], extra: list[str]) -> list[dict]:
    """What our lowering makes of the rows, in their order."""
    command = [binary, "--config", SLICES[chip], "--wide-elements", *extra]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.stderr.strip()}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def family_of(row: dict) -> str:
    """Families as they are scored."""
    if row["family"] == "mm" and not row["convs"]:
        return "row by matrix"
    return GROUPS.get(row["family"], row["family"])


def summarize(pairs: list[tuple[dict, dict]]) -> dict[str, dict[str, float]]:
    """Relative errors by family."""
    by_family: dict[str, list[float]] = collections.defaultdict(list)
    for row, result in pairs:
        if "error" in result:
            continue
        by_family[family_of(row)].append(result["cycles"] / row["cycles"] - 1)
    return {
        family: {
            "n": len(errors),
            "median": statistics.median(abs(e) for e in errors),
            "p90": sorted(abs(e) for e in errors)[math.ceil(0.9 * len(errors)) - 1],
            "bias": statistics.median(errors),
        }
        for family, errors in sorted(by_family.items())
    }


def view_of(chip: str) -> list[str]:
    """The compiler's view of a chip, as arguments."""
    return arguments_of(json.loads(VIEW.read_text())["chips"].get(chip, {}))


def arguments_of(settings: dict[str, float]) -> list[str]:
    """Settings of a view as arguments of the program that predicts."""
    arguments = []
    for name, value in sorted(settings.items()):
        if name in CONVENTIONS:
            arguments += [CONVENTIONS[name], f"{value:.6g}"]
        else:
            arguments += ["--set", f"{name}={value:.6g}"]
    return arguments


def show(pairs: list[tuple[dict, dict]], worst: int) -> None:
    """Prints the rows that are furthest off."""
    ok = [(r, p) for r, p in pairs if "error" not in p]
    ok.sort(key=lambda rp: -abs(rp[1]["cycles"] / rp[0]["cycles"] - 1))
    for row, p in ok[:worst]:
        error = 100 * (p["cycles"] / row["cycles"] - 1)
        inputs = [(i[0], i[1], i[3]) for i in row["inputs"]]
        print(
            f"  {error:+7.1f} % {row['program']} {'prefetch' if row['prefetch'] else ''}"
            f" {row['opcode']} {row['cycles']} -> {p['cycles']:.0f},"
            f" {row['iteration_bounds']} -> {p['grid']} {inputs}"
        )


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", required=True, help="tpusim_kernel_rows")
    parser.add_argument("--chips", default="v5e,v5p,v4,v6e,v7x")
    parser.add_argument("--held-out", action="store_true", help="also score the programs held out")
    parser.add_argument("--worst", type=int, default=0, help="list so many rows per chip")
    parser.add_argument("--family", help="only this family")
    args, extra = parser.parse_known_args()
    rows = load()
    for chip in args.chips.split(","):
        mine = [r for r in rows if r["chip"] == chip and args.family in (None, family_of(r))]
        if not args.held_out:
            mine = [r for r in mine if not held_out(r["program"])]
        shipped = list(zip(mine, predict(args.binary, chip, mine, extra), strict=True))
        viewed = predict(args.binary, chip, mine, [*view_of(chip), *extra])
        view = list(zip(mine, viewed, strict=True))
        for held in (False, True) if args.held_out else (False,):
            one = summarize([p for p in shipped if held_out(p[0]["program"]) == held])
            two = summarize([p for p in view if held_out(p[0]["program"]) == held])
            print(f"\n{chip}, {'held out' if held else 'calibration'}\n")
            print(
                "| family | rows | as shipped: median, bias | compiler's view: median, p90, bias |"
            )
            print("|---|---|---|---|")
            for family, v in two.items():
                o = one[family]
                print(
                    f"| {family} | {v['n']} | {100 * o['median']:.1f} %, {100 * o['bias']:+.1f} % |"
                    f" {100 * v['median']:.1f} %, {100 * v['p90']:.1f} %,"
                    f" {100 * v['bias']:+.1f} % |"
                )
        failed = [(r, p) for r, p in view if "error" in p]
        if failed:
            print(f"\nNot predicted: {len(failed)}, such as {failed[0][1]['error']}")
        spaces = [p["spaces_agree"] for _, p in view if "spaces_agree" in p]
        if spaces:
            print(f"\nMemory spaces as the compiler chose: {sum(spaces)} of {len(spaces)}")
        if args.worst:
            show([p for p in view if not held_out(p[0]["program"])], args.worst)


if __name__ == "__main__":
    main()
