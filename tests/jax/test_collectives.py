"""The comparison of collectives: what it counts, against numbers by hand."""

import pathlib
import subprocess

import collectives
import hlo_execution
import pytest
from communication import communication, distance, places, tree
from tpusim import hlo, wire

from workloads.examples import EXAMPLES

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAIRS = ((0, 1), (2, 3), (4, 5), (6, 7))


def test_places_are_neighbours_along_every_axis():
    for mesh in ([8], [8, 1], [4, 2], [2, 4]):
        at = places(mesh)
        assert len(set(at)) == 8
        last = mesh[-1] if mesh[-1] > 1 else 8
        for device in range(7):
            if (device + 1) % last:
                assert distance(at[device], at[device + 1]) == 1


def test_trees():
    at = places([2, 4])  # device = 4 y + x
    assert tree([at[0], at[1], at[2], at[3]]) == 3
    assert tree([at[0], at[4]]) == 1
    assert tree(at) == 7
    assert tree([at[0], at[2]]) == 2  # Nobody in between belongs to the group.
    assert tree([at[5]]) == 0


@pytest.fixture
def partitioned(binary: str, tmp_path: pathlib.Path):
    def partition(name: str) -> hlo.Module:
        output = tmp_path / f"{name}.pb"
        source = ROOT / "workloads" / "examples" / f"{name}.pb.gz"
        command = [binary, "compile", str(source), "--quiet", "--emit", "partitioned"]
        subprocess.run([*command, "-o", str(output)], check=True)
        return hlo.Module(output.read_bytes())

    return partition


def test_one_all_reduce(partitioned):
    found = communication(partitioned("matmul_square"), [4, 2])
    # bf16[2, 8192] over each pair of Y; there and back over the one link of each of four pairs.
    assert found.sent == {("all-reduce", PAIRS): 2 * 8192 * 2}
    assert found.cost == 2 * 4 * 2 * 8192 * 2
    # [2, 1024] @ [1024, 8192].
    assert found.dot_flops == 2 * 2 * 8192 * 1024


def test_loops_count_as_often_as_they_run(partitioned):
    found = communication(partitioned("mlp_scan_8_layers"), [4, 2])
    # Eight layers, each with one all-reduce of bf16[128, 1024] and two products with [1024, 2048].
    assert found.sent == {("all-reduce", PAIRS): 8 * 128 * 1024 * 2}
    assert found.dot_flops == 8 * 2 * 2 * 128 * 1024 * 2048
    # A fori_loop of three steps passes bf16[512, 512] on.
    found = communication(partitioned("collective_matmul_bf16"), [2, 4])
    assert sum(found.sent.values()) == 3 * 512 * 512 * 2


def test_loops_on_data_are_told_their_count(partitioned):
    once = communication(partitioned("moe_all_to_all"), [8], unknown_trips=1)
    thrice = communication(partitioned("moe_all_to_all"), [8], unknown_trips=3)
    every = tuple(range(8))
    exchanged = ("all-to-all", (every,))
    assert thrice.sent[exchanged] == 3 * once.sent[exchanged]
    # The condition, with its sum of one s32, runs once more than the body.
    assert once.sent["all-reduce", (every,)] == 2 * 4
    assert thrice.sent["all-reduce", (every,)] == 4 * 4


def groups_of(field: wire.Field) -> list[list[int]] | None:
    return hlo_execution.replica_groups([field])


def test_replica_groups_in_all_their_fields():
    def numbers(*values: int) -> bytes:
        return b"".join(map(wire.encode_varint, values))

    plain = wire.serialize([wire.blob(1, numbers(0, 2))])
    assert groups_of(wire.blob(49, plain)) == [[0, 2]]
    assert groups_of(wire.blob(87, wire.serialize([wire.blob(1, plain)]))) == [[0, 2]]
    # [4,2]<=[2,4]T(1,0): 0..7 in two rows of four, read by columns.
    iota = [wire.integer(1, 4), wire.integer(2, 2), wire.blob(3, numbers(2, 4))]
    iota.append(wire.blob(4, numbers(1, 0)))
    assert groups_of(wire.blob(92, wire.serialize(iota))) == [[0, 4], [1, 5], [2, 6], [3, 7]]
    # mesh {a=2, b=4}, axis a.
    axes = [wire.serialize([wire.blob(1, n), wire.integer(2, s)]) for n, s in (("a", 2), ("b", 4))]
    mesh = wire.serialize([wire.blob(1, axis) for axis in axes])
    reference = wire.serialize([wire.integer(1, 0)])
    named = wire.serialize([wire.blob(1, mesh), wire.blob(2, reference)])
    assert groups_of(wire.blob(93, named)) == [[0, 4], [1, 5], [2, 6], [3, 7]]
    assert groups_of(wire.integer(1, 0)) is None


def test_comparison_with_xla(binary: str):
    row = collectives.compare(EXAMPLES["matmul_square"], binary)
    assert row.verdict == "equal"
    assert row.same_flops
    row = collectives.compare(EXAMPLES["contract_constrained_output"], binary)
    # f32[128]: 512 bytes over the seven links of a tree, once or there and back.
    assert (row.verdict, row.ours.cost, row.xla.cost) == ("cheaper", 512 * 7, 2 * 512 * 7)


def test_the_report_has_all_programs():
    lines = (ROOT / "docs" / "validation" / "collectives.md").read_text().splitlines()
    listed = [line.split(" | ")[0].removeprefix("| ") for line in lines if line.count("|") > 8]
    eight = sorted(name for name, example in EXAMPLES.items() if example.num_devices == 8)
    assert listed[0] == "program"
    assert listed[2:] == eight
