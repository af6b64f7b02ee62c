"""`tpusim_poisoned` says what tpusim says, byte by byte.

Its heap fills what is new and what is freed (poisoning_allocator.h): what reads freed memory, or
memory that nothing has written, comes to other results, or to none. `programs` are exports of
public packages (its README says which), beside the examples and the programs of pods: what
ordinary programs make the compiler and the machine do.
"""

import pathlib
import subprocess

import pytest

from tests.conftest import BINARY
from tests.tools.command_line import SLICE, example, program_name

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parents[1]
PROGRAMS = HERE / "programs"
POISONED = BINARY.parent / "tests" / "tpusim_poisoned"
# Trip counts of loops that depend on data.
TRIPS = ("--trip-count", "*=4")
EXAMPLES = sorted((ROOT / "workloads" / "examples").glob("*.pb.gz"))
# Beside a program of passes, which names no slice.
PACKAGES = sorted(set(PROGRAMS.glob("*.pb.gz")) - {PROGRAMS / "reduce_scatter_matmul.pb.gz"})
PODS = sorted((ROOT / "benchmarks" / "pod_programs").glob("*.pb.gz"))
WINDOWED = ("--xla-flags", "--xla_jf_spmd_threshold_for_windowed_einsum_mib=0")


def ended(binary: pathlib.Path, folder: pathlib.Path, arguments: tuple[object, ...]):
    """Exit code, what it printed, and the files that it wrote."""
    folder.mkdir()
    command = [binary, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    files = {
        path.relative_to(folder): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
    return done.returncode, done.stdout, done.stderr, files


@pytest.fixture
def same(tmp_path: pathlib.Path):
    """Asserts that a command succeeds and that both binaries make the same of it."""
    assert BINARY.is_file(), f"{BINARY} is not built"
    assert POISONED.is_file(), f"{POISONED} is not built (no preset with sanitizers has it)"

    def same(*arguments: object) -> None:
        code, output, error, files = ended(BINARY, tmp_path / "plain", arguments)
        assert code == 0, error
        poisoned = ended(POISONED, tmp_path / "poisoned", arguments)
        assert poisoned[0] == code, f"exit code {poisoned[0]}: {poisoned[2]}"
        assert poisoned[1:3] == (output, error)
        assert poisoned[3].keys() == files.keys()
        different = [name for name in files if files[name] != poisoned[3][name]]
        assert not different

    return same


@pytest.mark.parametrize("path", EXAMPLES, ids=program_name)
def test_an_example(same, path):
    same("run", path, "--report", "r.json")


@pytest.mark.parametrize("path", PACKAGES, ids=program_name)
def test_a_program_of_a_package(same, path):
    same("run", path, *TRIPS, "--report", "r.json")


@pytest.mark.parametrize("path", PODS, ids=program_name)
def test_a_program_of_a_pod(same, path):
    same("run", path, "--report", "r.json")


# Each of these read instructions that it had removed.
@pytest.mark.parametrize(
    "arguments",
    [
        ("--config", "v5e-1x1", PROGRAMS / "reduce_of_reshape.hlo"),
        ("--config", SLICE, PROGRAMS / "reduce_scatter_matmul.pb.gz", *WINDOWED),
        (example("residual_mlp_train_scan_two_dimensional"), *WINDOWED),
    ],
    ids=["merged_reduces", "windowed_einsum", "windowed_einsums_of_a_train_step"],
)
def test_what_is_removed_while_it_is_walked_over(same, arguments):
    same("run", *arguments, "--report", "r.json")


@pytest.mark.parametrize(
    "stage", ["sharded", "partitioned", "optimized", "schedule", "executable", "streams"]
)
@pytest.mark.parametrize(
    "path",
    [
        example("language_model_train_fully_sharded_tensor_parallel"),
        example("activations_on_host"),
        PROGRAMS / "mixture_of_experts.pb.gz",
    ],
    ids=lambda path: path.name.split(".")[0],
)
def test_a_stage_of_the_compiler(same, stage, path):
    same("compile", path, *TRIPS, "--emit", stage, "-o", "out")


ALL = ("--jobs", "1", "--seconds", "0")
OUTPUTS = ("--report", "r.json", "--trace", "t.pftrace", "--html", "p.html")


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", example("language_model_train_tensor_parallel"), *OUTPUTS, "--xplane", "x"),
        ("run", example("mlp_scan_8_layers"), *OUTPUTS, "--slow", "chip=0:0.8"),
        ("run", example("pipeline"), *OUTPUTS, "--link", "0:x+=0.5", "--detail", "tile"),
        ("run", example("moe_ragged_dot"), *OUTPUTS, "--fold", "off"),
        ("run", example("all_to_all"), "--memory", "--by", "path"),
        ("run", example("activations_on_host"), "--remat", "hidden=saved"),
        ("run", example("activations_on_host"), "--remat", "hidden=offloaded"),
        ("shard", example("activations_on_host"), *ALL, "--json"),
        ("shard", example("data_parallel_layers"), *ALL, "--html", "p.html", "--json"),
        ("compare", example("layers_auto"), example("layers_manual")),
        ("compare", example("layers_auto"), "-c", SLICE, "-c", "v6e-2x4", "--html", "p.html"),
        ("advise", example("data_parallel_layers"), "--json"),
        ("advise", example("language_model_train_tensor_parallel")),
        ("collective", "all-reduce", "64MiB", "v5e-4x4"),
        ("opt", "--config", "v5e-1x1", PROGRAMS / "reduce_of_reshape.hlo"),
        ("fit", example("data_parallel_layers_large"), "--chip", "v5e"),
        ("configs", "v5e"),
    ],
    ids=lambda arguments: "_".join(map(str, arguments[:1])),
)
def test_a_command(same, arguments):
    same(*arguments)
