"""A space to search: a train step of a decoder of two layers on 256 chips of v5e, 64 candidates.

    tpusim search benchmarks/decoder_space.py --store decoder.sqlite

Eight meshes, two of them with the axes the other way round on the torus; four tables that say which
axis shards what; two batches. The table that leaves the model axis unused has devices repeat each
other's work: the products that are left on each device tell, before anything is simulated.
"""

import pathlib
import sys

from jax.sharding import AbstractMesh
from tpusim import Candidate

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from validation.workloads.decoder import Decoder
from validation.workloads.train_step import train_step
from workloads.examples.example import Program

SEQUENCE = 2048
_EMBED = ("embed", "mlp_embed", "norm")
_TENSOR_PARALLEL = dict.fromkeys(("heads", "mlp", "hidden", "vocabulary"), "model")

configs = ["v5e-16x16"]
objective = "tokens_per_chip_second"
# Gathers over all 256 chips beside others have no two devices do quite the same: told apart, they
# take twenty times as long to simulate. The report says how much time the difference is.
options = {"fold": "approximate"}
space = {
    "mesh": {
        "data256": {"data": 256, "model": 1},
        "data128.model2": {"data": 128, "model": 2},
        "data64.model4": {"data": 64, "model": 4},
        "data32.model8": {"data": 32, "model": 8},
        "data16.model16": {"data": 16, "model": 16},
        "data8.model32": {"data": 8, "model": 32},
        "model8.data32": {"model": 8, "data": 32},
        "model16.data16": {"model": 16, "data": 16},
    },
    "rules": {
        "data": {"batch": "data"},
        "data+model": {"batch": "data", **_TENSOR_PARALLEL},
        "fsdp": dict.fromkeys(("batch", *_EMBED), ("data", "model")),
        "fsdp+model": {**dict.fromkeys(("batch", *_EMBED), "data"), **_TENSOR_PARALLEL},
    },
    "batch": [256, 512],
}


def build(candidate: Candidate) -> Program:
    """The step and its arguments."""
    model = Decoder(
        layers=2,
        width=4096,
        mlp=16384,
        heads=32,
        vocabulary=32768,
        sequence=SEQUENCE,
        batch=candidate.batch,
    )
    axes = candidate.mesh
    return train_step(model, AbstractMesh(tuple(axes.values()), tuple(axes)), candidate.rules)


def tokens(candidate: Candidate) -> float:
    """Returns the tokens of one step."""
    return SEQUENCE * candidate.batch
