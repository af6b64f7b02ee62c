"""`tpusim collective`: one line, one answer."""

import json

import pytest

from tests.tools.command_line import without_command

KINDS = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute")


def answer(run, *arguments):
    done = run("collective", *arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("config", ["v5e-4x2", "v7x-2x2x4"])
def test_kinds(run, kind, config):
    a = answer(run, kind, "64MiB", config)
    assert a["kind"] == kind
    assert a["bytes"] == 64 * 2**20
    assert a["bound_ns"] <= a["simulated_ns"] * 1.0001
    assert a["simulated_ns"] == pytest.approx(a["expected_ns"], rel=0.1)
    assert a["latency_ns"] + a["bandwidth_ns"] == pytest.approx(a["expected_ns"])
    assert a["groups"] * a["group_size"] == {"v5e-4x2": 8, "v7x-2x2x4": 32}[config]


def test_axes_make_groups(run):
    a = answer(run, "all-gather", "4MiB", "v5e-4x2", "--axes", "x")
    assert (a["groups"], a["group_size"]) == (2, 4)
    # A line of 4 at 45 GB/s each way: the end needs 3/4 of 4 MiB through one link.
    assert a["bound_ns"] == pytest.approx(0.75 * 4 * 2**20 / 45, rel=0.01)


def test_units_and_sets(run):
    base = answer(run, "all-reduce", "1GB", "v5e-4x4")
    twice = answer(*(run, "all-reduce", "1e9", "v5e-4x4", "--set", "ici.link_bytes_per_second=2x"))
    same = answer(
        *(run, "all-reduce", "1e9B", "v5e-4x4", "--set", "ici.link_bytes_per_second=90GB/s")
    )
    assert twice["bytes"] == base["bytes"] == 10**9
    assert without_command(twice) == without_command(same)
    assert twice["bound_ns"] == pytest.approx(base["bound_ns"] / 2)


def test_alternatives_are_fastest_first(run):
    a = answer(run, "all-reduce", "64MiB", "v5e-4x4")
    times = [row["expected_ns"] for row in a["alternatives"]]
    assert times == sorted(times)
    assert len(times) > 1
    best = a["alternatives"][0]
    again = answer(run, "all-reduce", "64MiB", "v5e-4x4", "--algorithm", best["name"])
    assert again["expected_ns"] == pytest.approx(best["expected_ns"])


def test_text(run):
    done = run("collective", "all-reduce", "64MiB", "v7x-2x2x4")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("all-reduce of 64.00 MiB on v7x-2x2x4, 1 group of 32\n")
    for word in ("simulated ", "expected ", "bound ", "algorithm ", "latency ", "bandwidth "):
        assert word in done.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("all-reduec", "64MiB", "v5e-4x2"), "the nearest is all-reduce"),
        (("all-reduce", "64 apples", "v5e-4x2"), "is not a size"),
        (("all-reduce", "2x", "v5e-4x2"), "is not a size"),
        (("all-reduce", "64MiB", "v5e-1x1"), "one device"),
        (("all-reduce", "64MiB", "v5e-4x2", "--axes", "q"), "axes are"),
        (("all-reduce", "64MiB", "v5e-4x2", "--axes", "z"), "one device long"),
    ],
)
def test_mistakes(rejects, arguments, words):
    assert words in rejects("collective", *arguments)


SCATTERED_TOGETHER = """HloModule m, num_partitions=4
add {
  a = bf16[] parameter(0)
  b = bf16[] parameter(1)
  ROOT sum = bf16[] add(a, b)
}
ENTRY e {
  x = bf16[512,2048] parameter(0)
  y = bf16[256,2048] parameter(1)
  ROOT s = (bf16[512,512], bf16[256,512]) reduce-scatter(x, y), dimensions={1}, channel_id=1,
    replica_groups={{0,1,2,3}}, use_global_device_ids=true, to_apply=add
}
"""


def test_several_arrays_are_scattered_along_the_last_dimension(report_of, tmp_path):
    (tmp_path / "m.hlo").write_text(SCATTERED_TOGETHER)
    (scatter,) = report_of(tmp_path / "m.hlo", "--config", "v5p-2x2x1")["collectives"]
    assert scatter["bytes"] == (512 + 256) * 2048 * 2
    # Parts of 512 elements of 2 bytes: a color per axis.
    assert "2-color" in scatter["algorithm"]
