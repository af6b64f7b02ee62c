"""`run --memory`: what HBM holds at the peak."""

import pathlib
import re

from tests.tools.command_line import example


def test_tables_add_up_to_the_peak(run, report_of):
    name = "language_model_train_fully_sharded"
    report = report_of(name)
    at_peak = report["memory_at_peak"]
    done = run(example(name), "--memory", "--top", "3")
    assert done.returncode == 0, done.stderr
    text = done.stdout[done.stdout.index("\npeak  ") :].partition("\npeak of VMEM")[0]
    assert at_peak["operation"] in text
    assert re.search(r"into the step \([0-9.]+%\)", text)
    tables = [table.splitlines() for table in text.strip().split("\n\n")[1:]]
    assert [table[0].split()[0] for table in tables] == ["owner", "scope", "array"]
    holes = 100 * at_peak["fragmentation_bytes"] / report["peak_hbm_bytes"]
    for table in tables:
        shares = [float(re.search(r" ([0-9.]+)%", line)[1]) for line in table[1:]]
        whole = 100 if table is tables[0] else 100 - holes
        assert abs(sum(shares) - whole) < 0.1 * len(shares)
        assert len(table) <= 6
    largest = tables[2][1]
    assert any(a["owner"] in largest and a["shape"] in largest for a in at_peak["arrays"])
    assert re.search(r"\[[0-9,]+\]\{[0-9,]+", largest)  # the shape with its layout


def test_the_summary_says_when(run, report_of):
    report = report_of("language_model_train_fully_sharded")
    share = report["memory_at_peak"]["time_ns"] / report["step_time_ns"]
    shown = run(example("language_model_train_fully_sharded")).stdout
    assert f" at {100 * share:.1f}% of the step" in shown


def test_vmem_at_its_peak(run, report_of):
    name = "language_model_train_fully_sharded"
    vmem = report_of(name)["vmem_at_peak"]
    live = sum(array["bytes"] for array in vmem["arrays"])
    assert 0 < vmem["bytes"] == live + vmem["windows_bytes"] <= vmem["capacity_bytes"]
    assert vmem["capacity_bytes"] == 128 << 20
    assert all("S(1)" in array["shape"] for array in vmem["arrays"])
    assert [a["bytes"] for a in vmem["arrays"]] == sorted(
        (a["bytes"] for a in vmem["arrays"]), reverse=True
    )
    text = run(example(name), "--memory", "--top", "3").stdout
    table = text[text.index("\npeak of VMEM") :]
    assert vmem["operation"] in table
    shares = [float(share) for share in re.findall(r" ([0-9.]+)%", table)]
    assert abs(sum(shares) - 100) < 0.1 * len(shares) + 0.1


def test_larger_windows_leave_room_for_arrays(report_of):
    """Kernels whose arrays have left HBM take larger windows of those that have not."""
    decoder = pathlib.Path(__file__).resolve().parents[1] / "memory" / "programs"
    held = report_of(decoder / "nnx_decoder.pb.gz")["vmem_at_peak"]
    assert held["windows_bytes"] > 0
    assert held["bytes"] <= held["capacity_bytes"]
    # There is a reason for the larger windows: most of the memory is in use.
    assert held["bytes"] > 0.9 * held["capacity_bytes"]
