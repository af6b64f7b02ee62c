"""Modules as the TPU compiler wrote them: each runs, nothing of it is ignored, its memory fits."""

import gzip
import json
import pathlib
import re
import resource
import statistics
import subprocess
from collections.abc import Callable

import pytest
import tpusim
from tpusim.hlo import Module

from tests.tools.command_line import Run
from tests.tools.executed import assert_all_is_executed

CORPUS = pathlib.Path(__file__).resolve().parents[1] / "data" / "compiled"
MODULES = sorted(CORPUS.glob("*/*.pb.gz"))
TEXTS = sorted(CORPUS.glob("*/*.hlo.gz"))
# Kernels whose body the compiler keeps to itself have a stated cost.
COSTS = ["--kernel-cost", "ragged-dot-metadata=1000,100000"]
OPAQUE = ("ragged_product", "moe_ragged_dot")
# Below it, what the compiler keeps beside arrays is a large part of its sum.
LARGE = 16 << 20
# Bytes of a program's tables: 512 for every tuple, a scalar of a loop or two.
TABLES = 8192
# Below this, most of the bytes are flags and indices.
LEAST_VMEM = 1 << 20
ASSIGNED: dict[str, dict[str, dict[str, int]]] = json.loads((CORPUS / "buffers.json").read_text())
# The errors that a new module may have, and that all have on average.
WORST, MEAN = 0.03, 0.003


def name_of(path: pathlib.Path) -> str:
    return f"{path.parent.name}-{path.name.partition('.')[0]}"


@pytest.fixture(scope="session")
def reports() -> dict[pathlib.Path, dict]:
    """Returns the reports of the modules that have run."""
    return {}


@pytest.fixture
def report_of_module(
    reports: dict[pathlib.Path, dict], report_of: Callable[..., dict], tmp_path: pathlib.Path
) -> Callable[[pathlib.Path], dict]:
    """Runs a module of the corpus, once."""

    def of(path: pathlib.Path) -> dict:
        if path not in reports:
            opaque = any(name in path.name for name in OPAQUE)
            reports[path] = report_of(path, *(COSTS if opaque else ()))
        return reports[path]

    return of


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_every_instruction_is_executed(
    path: pathlib.Path, report_of_module: Callable[[pathlib.Path], dict]
):
    module = Module(gzip.decompress(path.read_bytes()))
    assert_all_is_executed(module, report_of_module(path))


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_every_module_runs_with_the_times_of_the_compiler(
    path: pathlib.Path,
    report_of: Callable[..., dict],
    report_of_module: Callable[[pathlib.Path], dict],
    tmp_path: pathlib.Path,
):
    """An estimate may be less than a kernel's products take: no figure contradicts another then."""
    (tmp_path / "m.pb").write_bytes(gzip.decompress(path.read_bytes()))
    opaque = any(name in path.name for name in OPAQUE)
    stated = report_of(tmp_path / "m.pb", "--kernel-time", "compiler", *(COSTS if opaque else ()))
    for report in (stated, report_of_module(path)):
        assert max(report["bound_ns"].values()) <= report["step_time_ns"] * (1 + 1e-9)
        assert report["vmem_at_peak"]["bytes"] <= report["vmem_at_peak"]["capacity_bytes"]
        assert not any("VMEM at its peak is not known" in text for text in report["assumptions"])


def test_products_of_integers_have_the_bound_of_their_rate(report_of: Callable[..., dict]):
    """A v5e has arrays that are twice as fast with int8."""
    for path in (CORPUS / "v5e-1x1" / "matmul_s8.pb.gz", CORPUS / "v5e-1x1" / "matmul.pb.gz"):
        machine = report_of(path)
        stated = report_of(path, "--kernel-time", "compiler")
        assert stated["bound_ns"]["compute"] == machine["bound_ns"]["compute"]
        rate = machine["flops"] / machine["bound_ns"]["compute"] * 1e9
        share = rate / machine["peak_flops_per_second"]
        assert share == pytest.approx(2 if "s8" in path.name else 1, rel=0.01)


@pytest.mark.parametrize("path", TEXTS, ids=name_of)
def test_text_and_proto_are_one_program(
    path: pathlib.Path, report_of: Callable[..., dict], tmp_path: pathlib.Path
):
    slice_name = path.parent.name
    proto = path.with_name(path.name.replace(".hlo.gz", ".pb.gz"))
    workload = tpusim.Workload.load(proto)
    (tmp_path / "m.pb").write_bytes(workload.hlo_module)
    (tmp_path / "m.hlo").write_bytes(gzip.decompress(path.read_bytes()))
    of_proto, of_text = (
        report_of(tmp_path / name, "--config", slice_name) for name in ("m.pb", "m.hlo")
    )
    for report in (of_proto, of_text):
        del report["command_line"], report["workload"]
    assert of_text == of_proto


def printed(workload: tpusim.Workload, constants: bool = True) -> str:
    """The module as XLA prints it; with the elements of all constants, as kernels read tables."""
    hlo = pytest.importorskip("jaxlib._hlo")
    options = hlo.HloPrintOptions()
    options.print_large_constants = constants
    module = hlo.HloModule.from_serialized_hlo_module_proto(workload.hlo_module)
    text = module.to_string(options)
    # How many partitions there are is no part of a module, but of its text.
    count = f", is_scheduled=true, num_partitions={workload.num_partitions}"
    return text.replace(", is_scheduled=true", count, 1)


# The smallest of each slice; others with --long.
SAMPLE = {min(p.parent.glob("*.pb.gz"), key=lambda p: p.stat().st_size) for p in MODULES}


@pytest.mark.parametrize(
    "path",
    [p if p in SAMPLE else pytest.param(p, marks=pytest.mark.long) for p in MODULES],
    ids=name_of,
)
def test_the_text_that_xla_prints_is_the_program(
    path: pathlib.Path,
    report_of: Callable[..., dict],
    tmp_path: pathlib.Path,
):
    workload = tpusim.Workload.load(path)
    (tmp_path / "m.hlo").write_text(printed(workload))
    (tmp_path / "m.pb").write_bytes(workload.hlo_module)
    stated = [*COSTS] if any(name in path.name for name in OPAQUE) else []
    for trips in workload.trip_counts:
        stated += ["--trip-count", f"{trips.loop}={trips.count}"]
    of_proto, of_text = (
        report_of(tmp_path / name, "--config", path.parent.name, *stated)
        for name in ("m.pb", "m.hlo")
    )
    # XLA prints computations in an order of its own: what of equals is named first, and so what
    # names passes give, may differ; nothing else does.
    for figure in FIGURES:
        assert of_text[figure] == of_proto[figure], figure
    assert of_text["memory_at_peak"]["owners"] == of_proto["memory_at_peak"]["owners"]
    of_ops = [round(sum(1000 * row["total_ns"] for row in r["ops"])) for r in (of_text, of_proto)]
    assert of_ops[0] == of_ops[1]


def test_tables_that_a_text_leaves_out_are_an_assumption(
    report_of: Callable[..., dict], tmp_path: pathlib.Path
):
    path = CORPUS / "v5p-4x4x8" / "train_128b_v5p_128.pb.gz"
    workload = tpusim.Workload.load(path)
    for constants in (True, False):
        (tmp_path / "m.hlo").write_text(printed(workload, constants))
        assumed = report_of(tmp_path / "m.hlo", "--config", "v5p-4x4x8")["assumptions"]
        named = [text for text in assumed if "leaves out constants" in text]
        assert len(named) == (not constants)
        assert all(text.startswith("splash_mha") for text in named)


# Figures of a report that have no names in them.
FIGURES = (
    *("step_time_ns", "bound_ns", "critical_path_ns", "flops", "hfu", "events", "peak_hbm_bytes"),
    *("exposed_communication_ns", "hidden_communication_ns", "links", "devices", "chip_classes"),
)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("parameter(0)", "parameter(0"),
        ("fusion(", "fusoin("),
        ("S(1)", "S(1"),
        ("copy-start(", "copy-done("),
        ("calls=%", "calls=%no_"),
        ("ENTRY", "%x.1 {\n}\n\nENTRY"),
        ('"window_config"', '"window_config'),
    ],
)
@pytest.mark.parametrize("path", TEXTS[:1], ids=name_of)
def test_damaged_text_is_one_line(
    path: pathlib.Path, before: str, after: str, rejects: Callable[..., str], tmp_path: pathlib.Path
):
    text = gzip.decompress(path.read_bytes()).decode()
    assert before in text
    (tmp_path / "m.hlo").write_text(text.replace(before, after, 1))
    line = rejects("run", tmp_path / "m.hlo", "--config", path.parent.name, "--quiet")
    assert "m.hlo" in line


def test_a_memory_that_nobody_knows_stops(rejects: Callable[..., str], tmp_path: pathlib.Path):
    text = next(path for path in TEXTS if b" copy-start(" in gzip.decompress(path.read_bytes()))
    whole = gzip.decompress(text.read_bytes()).decode()
    start = next(line for line in whole.splitlines() if " copy-start(" in line and "S(1)" in line)
    (tmp_path / "m.hlo").write_text(whole.replace(start, start.replace("S(1)", "S(99)", 1)))
    line = rejects("run", tmp_path / "m.hlo", "--config", text.parent.name, "--quiet")
    said = r"m\.hlo: line \d+, column \d+: memory space S\(99\) of \w+\[[\d,]*\] is not known\n"
    assert re.search(said, line)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_truncated_text_is_one_line(
    share: float, rejects: Callable[..., str], tmp_path: pathlib.Path
):
    text = gzip.decompress(TEXTS[0].read_bytes())
    (tmp_path / "m.hlo").write_bytes(text[: int(share * len(text))])
    rejects("run", tmp_path / "m.hlo", "--config", TEXTS[0].parent.name, "--quiet")


def assigned(path: pathlib.Path) -> dict[str, int] | None:
    """Returns the figures of the compiler's buffer assignment, if that is kept."""
    return ASSIGNED.get(path.parent.name, {}).get(path.name.removesuffix(".pb.gz"))


def memory_error(path: pathlib.Path, report: dict) -> float | None:
    """Returns the error of what is live in HBM at the peak.

    Beside the compiler's own buffer assignment, which says of every array in which memory it lies,
    where and how long. Results have their memory before they are made, so that what we count is
    between what is live there and what is allocated. Where that is not kept, `memory_analysis` has
    two figures, and neither is that alone: its peak counts arrays in VMEM as well, its sum
    (arguments, results and temporaries) holes between arrays and what is no array. Where
    nothing is in VMEM at the peak, the first is exact; where temporaries are few, the second;
    of small programs, none.
    """
    whole = report["peak_hbm_bytes"]
    live = whole - report["memory_at_peak"]["fragmentation_bytes"]
    if figures := assigned(path):
        return max(live / figures["hbm_bytes"] - 1, 0) + min(
            live / figures["hbm_live_bytes"] - 1, 0
        )
    workload = tpusim.Workload.load(path)
    assert workload.compilation is not None
    memory = workload.compilation.memory
    held = memory.argument_bytes + memory.output_bytes - memory.alias_bytes + memory.temp_bytes
    if held < LARGE:
        return None
    # Between both, only where holes are differs.
    return min(
        (max(live / said - 1, 0) + min(whole / said - 1, 0) for said in (memory.peak_bytes, held)),
        key=abs,
    )


def test_memory_is_what_the_compiler_says(
    report_of_module: Callable[[pathlib.Path], dict], capsys: pytest.CaptureFixture[str]
):
    errors = {path: memory_error(path, report_of_module(path)) for path in MODULES}
    known = {path: error for path, error in errors.items() if error is not None}
    assert len(known) > 150
    ordered = sorted(known, key=lambda path: -abs(known[path]))
    mean = statistics.mean(map(abs, known.values()))
    with capsys.disabled():
        print(f"\npeak HBM of {len(known)} modules: mean {mean:.2%}; the worst:")
        for path in ordered[:5]:
            print(f"  {known[path]:+.2%} {name_of(path)}")
    for path in ordered:
        # The tables of tuples and the scalars of loops, which are not counted here.
        figures = assigned(path)
        small = TABLES / figures["hbm_live_bytes"] if figures else 0
        assert abs(known[path]) < WORST + small, name_of(path)
    assert mean < MEAN


def test_vmem_holds_what_the_compiler_says(
    report_of_module: Callable[[pathlib.Path], dict], capsys: pytest.CaptureFixture[str]
):
    """Arrays alone: its windows the compiler has elsewhere, and says nothing of them."""
    errors = {}
    for path in MODULES:
        figures = assigned(path)
        if figures is None or figures["vmem_live_bytes"] < LEAST_VMEM:
            continue
        # The kernel with the largest windows may run when fewer arrays are there.
        held = report_of_module(path)["vmem_at_peak"]
        arrays = sum(array["bytes"] for array in held["arrays"])
        errors[path] = max(
            min(held["bytes"] / figures["vmem_live_bytes"] - 1, 0),
            arrays / figures["vmem_live_bytes"] - 1,
            key=abs,
        )
    ordered = sorted(errors, key=lambda path: -abs(errors[path]))
    near = sum(abs(error) < WORST for error in errors.values())
    with capsys.disabled():
        print(f"\narrays in VMEM of {len(errors)} modules: {near} within {WORST:.0%}; the worst:")
        for path in ordered[:5]:
            print(f"  {errors[path]:+.2%} {name_of(path)}")
    assert near > 0.8 * len(errors)


def test_runs_are_quiet(run: Run, tmp_path: pathlib.Path):
    path = CORPUS / "v5e-1x1" / "matmul.pb.gz"
    (tmp_path / "m.pb").write_bytes(gzip.decompress(path.read_bytes()))
    done = run("run", tmp_path / "m.pb", "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["workload"] == "matmul"


def repeated(text: str, times: int) -> str:
    """The module that does all of it so many times, one after the other."""
    text = re.sub(r", (metadata=\{[^}]*\}|cross_program_prefetch_index=\d+)", "", text)
    head, rest = text.split("\n", 1)
    first, last = rest.index("ENTRY"), rest.index("\n}", rest.index("ENTRY"))
    callees = rest[rest.index("\n%") : first]
    signature, *body = rest[first:last].split("\n")
    parameters = [line for line in body if "parameter(" in line]
    own = set(re.findall(r"^%([\w.-]+) ", callees, re.M))
    own |= set(re.findall(r"^ +(?:ROOT )?%([\w.-]+) =", "\n".join(body), re.M))
    own -= {line.split()[0][1:] for line in parameters}
    computations, entry = [head], [signature, *parameters]

    def named(code: str, suffix: str, names: set[str] | None) -> str:
        return re.sub(
            r"%([\w.-]+)",
            lambda m: m[0] + (suffix if names is None or m[1] in names else ""),
            code,
        )

    for k in range(times):
        computations.append(named(callees, f"_r{k}", None))
        for line in body:
            if line not in parameters:
                code = named(line, f"_r{k}", own)
                entry.append(code if k == times - 1 else code.replace("ROOT ", ""))
    return "\n".join([*computations, *entry, "}", ""])


def cpu_seconds(binary: str, text: str, slice_name: str, folder: pathlib.Path) -> float:
    """Returns the processor time of a run of the module."""
    assert text.count(" = ") > 20000
    (folder / "m.hlo").write_text(text)
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    command = [binary, "run", folder / "m.hlo", "--config", slice_name, "--quiet"]
    subprocess.run(command, check=True, cwd=folder)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def test_a_large_module_is_quick(binary: str, tmp_path: pathlib.Path):
    module = next(path for path in TEXTS if path.name.startswith("attention_gradient"))
    text = repeated(gzip.decompress(module.read_bytes()).decode(), 110)
    # A fifth of a second on a quiet machine.
    assert cpu_seconds(binary, text, "v5e-1x1", tmp_path) < 3


def test_a_large_decoder_is_quick(binary: str, tmp_path: pathlib.Path):
    module = CORPUS / "v5e-4x2" / "decoder_4_layers_fsdp.pb.gz"
    workload = tpusim.Workload.load(module)
    # Nine tenths of a second on a busy machine.
    assert cpu_seconds(binary, repeated(printed(workload), 2), "v5e-4x2", tmp_path) < 3
