"""PyTorch programs by torchax: as a JAX function, and as a `jax.export.Exported`.

Only with `--long`, and where the packages are: torchax 0.0.13 goes with PyTorch 2.11, and not with
2.15, whose operations lack one that it names.
"""

import importlib
from typing import Any

import jax
import pytest
import tpusim

ROWS, WIDTH, HIDDEN = 128, 256, 1024
PRODUCTS = 2 * 2 * ROWS * WIDTH * HIDDEN


@pytest.fixture(scope="module")
def program() -> Any:
    """A perceptron that `torch.export` has exported."""
    try:
        importlib.import_module("torchax.export")
    except (ImportError, AttributeError) as error:
        pytest.skip(f"torchax cannot be imported: {error}")
    import torch

    model = torch.nn.Sequential(
        torch.nn.Linear(WIDTH, HIDDEN), torch.nn.ReLU(), torch.nn.Linear(HIDDEN, WIDTH)
    )
    return torch.export.export(model, (torch.zeros(ROWS, WIDTH),))


@pytest.mark.long
def test_exported_programs(program: Any):
    import torchax.export

    weights, step = torchax.export.exported_program_to_jax(program)
    shape = jax.ShapeDtypeStruct((ROWS, WIDTH), "float32")
    of_function = tpusim.simulate(step, weights, (shape,), config="v5e-1")
    assert PRODUCTS <= of_function.flops < 1.01 * PRODUCTS
    _, exported = torchax.export.exported_program_to_stablehlo(program)
    of_export = tpusim.simulate(exported, config="v5e-1")
    assert of_export.step_time_ns == of_function.step_time_ns
    assert any("lowered for cpu" in said for said in of_export.assumptions)
