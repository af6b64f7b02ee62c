"""Fits parameters of a chip to a profile that XProf took of a TPU.

They are what the arrays, HBM and links sustain, and what launching kernels and collectives costs.

The profile is put beside the simulation of the same program, operation by operation (tpusim
validate W.pb --xplane PROFILE). A third of the operations is set aside and says what the fit is
worth. Parameters that the profile does not determine are named, with the reason, and stay.
"""

import argparse
import json
from collections.abc import Sequence

from tpusim import commands, files
from tpusim.calibrate.driver import calibrate
from tpusim.errors import Error

_SHOWN = 15


def _parser() -> argparse.ArgumentParser:
    parser = commands.parser_of("calibrate", __doc__, _SHOWN)
    parser.add_argument("workload", metavar="WORKLOAD.pb")
    parser.add_argument(
        "--xplane",
        required=True,
        metavar="PROFILE",
        help="a file of XProf, or a folder that jax.profiler.trace wrote into",
    )
    parser.add_argument(
        "-c", "--config", default="", metavar="SLICE", help="default: the workload's"
    )
    parser.add_argument("-o", "--output", metavar="CHIP.json", help="write a chip file")
    parser.add_argument("--name", default="", help="what the chip is called in it")
    parser.add_argument(
        "--option",
        action="append",
        default=[],
        metavar="--OPTION=VALUE",
        help="of tpusim validate, such as --option=--kernel-cost=k=12us; may be repeated",
    )
    return parser


def _run(given: argparse.Namespace) -> int:
    if given.output is not None:
        files.check_target(given.output, "--output")
    found = calibrate(
        given.workload,
        profile=given.xplane,
        config=given.config,
        options=given.option,
        workers=given.workers,
    )
    words = [f"--config={found.config}", f"--xplane={given.xplane}"]
    words += [f"--option={option}" for option in given.option]
    commands.show(
        found.to_json(["tpusim", "calibrate", *words, given.workload])
        if given.json
        else found.text(given.top)
    )
    if not found.determined:
        raise Error(f"{given.xplane}: the profile determines none of the parameters")
    if given.output is not None:
        found.write_chip(given.output, given.name)
        if not given.json:
            use = json.dumps({"chip": given.output, "slice": found.slice_name})
            commands.show(f"\nto use it, as --config: {use}")
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    given = _parser().parse_args(argv)
    return commands.code_of(lambda: _run(given))
