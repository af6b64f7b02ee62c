"""Measured train steps of small models: what launches and latencies are worth.

    python validation/workloads/small_training.py [NAME ...]     writes exports, all by default

Source: the shard_mode report of google/maxtext 671cec44d (V99), four chips of v5p. Models have its
sizes and else MaxText's defaults; what it does not say stands with each row of
`validation/measurements.json`.
"""

import functools
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
if __name__ == "__main__":
    sys.path[:0] = [str(ROOT), str(ROOT / "tools" / "python")]

from validation.workloads.training import FULL, Run  # noqa: E402
from workloads.examples.example import Example  # noqa: E402

small_decoder = functools.partial(
    Run,
    config="v5p-2x2x1",
    mesh={"fsdp": 4},
    batch=1,
    remat=FULL,
    sequence=1024,
    one_hot_embedding=False,
)

RUNS = {
    "train_decoder_2048_3_v5p_4": small_decoder("decoder_2048_3"),
    "train_decoder_2048_8_v5p_4": small_decoder("decoder_2048_8", layers_axis=0),
    "train_decoder_512_v5p_4": small_decoder("decoder_512"),
}

SMALL: dict[str, Example] = {
    name: Example(name=name, mesh=run.mesh, config=run.config, build=run.build)
    for name, run in RUNS.items()
}


def main() -> None:
    """Exports those that are named, or all."""
    from workloads.examples import export_all

    export_all.write(SMALL, pathlib.Path(__file__).parent, sys.argv[1:])


if __name__ == "__main__":
    main()
