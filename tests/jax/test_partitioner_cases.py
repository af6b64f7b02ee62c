"""Small programs of all kinds: what the partitioner sends, beside XLA's."""

import collections
import fnmatch

import collectives
import oracle
import partitioner_cases
import pytest

CASES = partitioner_cases.all_cases()
# Every tenth row of the tables by default.
SAMPLE = list(CASES)[::10]
# Kinds that differ from XLA's, by glob of the case's name, and why.
DIFFERENCES: dict[str, str] = {
    "join *": "XLA exchanges parts by all-to-alls; here they change devices, or operands are cut",
    "lookup * rows:*": "rows that are counted stay; XLA exchanges the counted indices",
    "lookup * set:*": "the same of a scatter",
    "lookup * take:* [[]y,- x[]] -> [[]x,y[]]": "parts are added up; XLA exchanges them before",
    "slice * x[[]4:] * [[]y,-[]]": "rows are exchanged at once; XLA shifts them first",
    "slice * jnp.split* -> [[]x,y[]]": "the whole operand is cut; XLA cuts it before it is sliced",
    "convolution 8 * -> [[]-,-,-,x[]]": "the result changes its dimension; XLA gathers images",
    "convolution 2x4 * [[]x,y,-,- -,-,-,-[]] -> [[]x,-,-,-[]]": "images are gathered; XLA's halos "
    "are exchanged, and the result is gathered",
    "einsum 2x2 bd,df->bf [[]x,- y,x[]] -> [[]?[]]": "an operand changes its dimension; XLA has it "
    "whole",
    "reduce * sum 0 * [[]x,y[]]": "parts are exchanged before they are added up, XLA's sums after",
}
# The shares of all cases that must send by the same kinds, and as many bytes within a tenth.
KINDS, BYTES = 0.90, 0.85


def test_tables_have_enough_cases_of_every_kind():
    kinds = collections.Counter(name.split()[0] for name in CASES)
    assert sum(kinds.values()) >= 200
    assert min(kinds.values()) >= 14, kinds


def _rows(names: list[str], binary: str) -> list[collectives.Row]:
    return [collectives.compare_function(name, *CASES[name].build(), binary) for name in names]


def _text(row: collectives.Row) -> str:
    assert row.ours is not None
    ours = collectives.kinds(row.ours.sent)
    return f"{row.name}: {ours}; XLA {collectives.kinds(row.xla.sent)}"


def _check_differences(rows: list[collectives.Row]) -> None:
    for row in rows:
        known = any(fnmatch.fnmatchcase(row.name, pattern) for pattern in DIFFERENCES)
        assert row.same_kinds or known, _text(row)


def test_a_sample_is_sent_as_by_xla(binary: str):
    _check_differences(_rows(SAMPLE, binary))


# Shardings of all eight devices, by every attempt of the partitioner.
@pytest.mark.parametrize("name", [n for n in CASES if n.startswith("reshard") and " 2x2 " not in n])
def test_values_are_those_of_jax(name: str, binary: str):
    function, arguments = CASES[name].build()
    made = collectives.partitioned_function(function, arguments, binary)
    inputs, expected = oracle.reference(function, arguments)
    oracle.check(oracle.run(oracle.hlo_module(made), inputs), expected)


@pytest.mark.long
def test_all_are_sent_as_by_xla(binary: str):
    rows = _rows(list(CASES), binary)
    _check_differences(rows)
    kinds = sum(row.same_kinds for row in rows) / len(rows)
    same = sum(row.same_bytes for row in rows) / len(rows)
    differing = [_text(row) for row in rows if not (row.same_kinds and row.same_bytes)]
    assert kinds >= KINDS, "\n".join([f"{kinds}", *differing])
    assert same >= BYTES, "\n".join([f"{same}", *differing])
