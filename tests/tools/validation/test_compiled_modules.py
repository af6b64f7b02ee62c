"""The corpus of compiled modules is what its script says; libtpu is not needed."""

import gzip
import json
import pathlib
import subprocess
import sys

import pytest
import tpusim
from tpusim import wire

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT), str(ROOT / "tools" / "validation")]

import compiled_modules  # noqa: E402

MODULES = sorted(compiled_modules.CORPUS.glob("*/*.pb.gz"))
# Field numbers of HloModuleProto.
_SCHEDULE, _ID = 7, 5
_MOST_BYTES = 25 << 20


def test_there_is_what_the_selection_names():
    selected = {
        f"{slice_name}/{program}.pb.gz"
        for slice_name, programs in compiled_modules.SELECTION.items()
        for program in programs.split()
    }
    found = {str(path.relative_to(compiled_modules.CORPUS)) for path in MODULES}
    assert found <= selected
    assert len(found) >= 200
    assert sum(path.stat().st_size for path in MODULES) < _MOST_BYTES


def test_the_manifest_is_current():
    assert (compiled_modules.CORPUS / "README.md").read_text() == compiled_modules.manifest()


@pytest.mark.parametrize("path", MODULES, ids=lambda p: f"{p.parent.name}-{p.name}")
def test_a_module_is_compiled(path: pathlib.Path):
    data = gzip.decompress(path.read_bytes())
    workload = tpusim.Workload.from_bytes(data)
    assert workload.to_bytes() == data
    assert (workload.config, workload.name) == (path.parent.name, path.name.removesuffix(".pb.gz"))
    assert workload.compilation is not None
    assert workload.compilation.libtpu_version.startswith("0.0.42")
    assert workload.compilation.memory.peak_bytes > 0
    assert len(workload.coordinates) == workload.num_partitions
    fields = wire.parse(workload.hlo_module)
    assert wire.all_bytes(fields, _SCHEDULE)
    # Nothing of the machine or the process that made it.
    assert not any(number == _ID for number, *_ in fields)
    assert str(ROOT).encode() not in data


# The smallest of each slice; others with --long.
_SAMPLE = {min(path.parent.glob("*.pb.gz"), key=lambda p: p.stat().st_size) for path in MODULES}


@pytest.mark.parametrize(
    "path",
    [p if p in _SAMPLE else pytest.param(p, marks=pytest.mark.long) for p in MODULES],
    ids=lambda p: f"{p.parent.name}-{p.name}",
)
def test_a_module_is_simulated(binary: str, path: pathlib.Path):
    done = subprocess.run(
        [binary, "run", str(path), "--json"], capture_output=True, text=True, check=False
    )
    if "ragged-dot-metadata" in done.stderr:
        pytest.skip("a kernel of the TPU compiler's own has no price")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["config"] == path.parent.name
    assert report["step_time_ns"] > 0
    assert report["step_time_ns"] >= max(report["bound_ns"].values())
