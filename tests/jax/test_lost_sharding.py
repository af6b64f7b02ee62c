"""A script whose activations lost their sharding: what the user is told, and whether it is true."""

import json
import os
import pathlib
import re
import subprocess
import sys

import pytest
import tpusim

from tests.conftest import BINARY

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = pathlib.Path(__file__).parent / "scripts" / "lost_sharding.py"


def exported(path: pathlib.Path, **environment: str) -> pathlib.Path:
    kept = {k: v for k, v in os.environ.items() if k not in ("XLA_FLAGS", "JAX_PLATFORMS")}
    command = [sys.executable, "-m", "tpusim.export", str(SCRIPT), "--config", "v5e-4x2"]
    done = subprocess.run(
        [*command, "--function", "train_step", "-o", str(path)],
        env={**kept, "PYTHONPATH": str(ROOT / "tools" / "python"), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return path


@pytest.fixture(scope="module")
def workload(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    return exported(tmp_path_factory.mktemp("lost") / "step.pb")


def line_with(text: str) -> str:
    """`file:line` of the one line of the script that has this."""
    lines = SCRIPT.read_text().splitlines()
    (number,) = (n for n, line in enumerate(lines, start=1) if text in line)
    return f"lost_sharding.py:{number}"


def test_warnings_have_the_users_own_lines(workload: pathlib.Path):
    summary = subprocess.run(
        [BINARY, "run", workload], capture_output=True, text=True, check=True
    ).stdout
    (warning,) = (row for row in summary.splitlines() if row.startswith("warning"))
    assert line_with("self.embed(tokens)") in warning
    assert "is resharded: `fsdp` shards dim 0 of" in warning
    report = tpusim.run(workload)
    first = report["warnings"][0]
    assert re.search(r" \(from argument tokens\) but dim 2 of \S+ \(from argument state", first)
    assert "(from argument state['embed']['embedding']" in first
    gathers = [site for site in report["reshard_sites"] if site["kind"] == "all-gather"]
    assert any(site["source"].endswith(line_with("self.down(j")) for site in gathers)
    # Two layers are two places of one site; 8 x 2,048 positions of 4,096 bf16, for the gradient of
    # weights of which each device has some columns, as in XLA.
    (most,) = (site for site in gathers if site["exposed_ns"] == gathers[0]["exposed_ns"])
    assert most["places"] == 2
    assert most["value_bytes"] == 8 * 2048 * 4096 * 2
    assert not any("site-packages" in site["source"] for site in report["reshard_sites"])
    assert not any("flax/" in op["source"] for op in report["ops"])


def test_advise_finds_the_constraint_and_keeps_its_promise(
    workload: pathlib.Path, tmp_path: pathlib.Path
):
    said = subprocess.run(
        [BINARY, "advise", workload, "--json"], capture_output=True, text=True, check=True
    ).stdout
    advice = json.loads(said)
    best = advice["variants"][0]
    assert best["kind"] == "sharding"
    assert best["change"] < -0.4, best
    constrained = tpusim.run(workload, options=best["options"])
    assert constrained["step_time_ns"] == best["step_time_ns"]
    # And in the program itself.
    program = tpusim.run(exported(tmp_path / "constrained.pb", CONSTRAINED="1"))
    assert program["step_time_ns"] == pytest.approx(best["step_time_ns"], rel=0.01)


def test_constraints_in_python(workload: pathlib.Path):
    from jax.sharding import PartitionSpec as P

    asked = tpusim.simulate(workload, constraints={"gather.1": P("fsdp", None, None)})
    text = tpusim.simulate(workload, constraints={"gather.1": "[{fsdp}, {}, {}]"})
    plain = tpusim.simulate(workload)
    assert asked.step_time_ns == text.step_time_ns < 0.6 * plain.step_time_ns
    assert plain.reshard_sites[0].constraints[0].constrain.count("=P(") == 1
    # Reports of before have none.
    older = json.loads(plain.text)
    del older["reshard_sites"]
    assert tpusim.Report.from_json(json.dumps(older)).reshard_sites == ()
    with pytest.raises(TypeError, match=r"constraints: gather\.1: 3: expected a PartitionSpec"):
        tpusim.simulate(workload, constraints={"gather.1": 3})
    with pytest.raises(tpusim.Error, match=r"no array of the program has the name 'gather\.99'"):
        tpusim.simulate(workload, constraints={"gather.99": P()})
