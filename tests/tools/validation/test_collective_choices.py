"""Choices that the TPU compiler printed, replayed against the rows of choices."""

import pathlib
from typing import Any

import collective_choices
import pytest
from collective_choices import SOURCES, Compared


@pytest.fixture(scope="module")
def rows_binary(binary: str) -> pathlib.Path:
    """The program that is asked what the rows say."""
    return pathlib.Path(binary).with_name("tpusim_collective_rows")


@pytest.fixture(scope="module")
def found(rows_binary: pathlib.Path) -> list[Compared]:
    """Everything that was printed, compared."""
    return collective_choices.compare(rows_binary)


def test_all_of_the_sweep_is_reproduced(found: list[Compared]) -> None:
    sweep = [each for each in found if each.source == SOURCES[0]]
    assert len(sweep) == 1006
    assert [each.name for each in sweep if not each.agrees] == []


def test_programs_that_may_and_may_not_be_looked_at_are_apart(found: list[Compared]) -> None:
    programs = [[each for each in found if each.source == source] for source in SOURCES[1:]]
    assert all(programs)
    names = [{each.name.partition(",")[0] for each in side} for side in programs]
    assert not names[0] & names[1]
    # Of those set aside nothing is shown but how many agree.
    shown = collective_choices.section(found)
    assert not any(f"- {name}, " in shown for name in names[1])


def test_the_page_is_up_to_date(found: list[Compared]) -> None:
    page = collective_choices.PAGE.read_text()
    stale = "run tools/validation/collective_choices.py --page"
    assert page == collective_choices.with_section(page, collective_choices.section(found)), stale


def test_collectives_over_all_devices_of_whole_programs() -> None:
    def row(**facts: Any) -> dict[str, Any]:
        return {"kind": "all-gather", "bytes": 64, "group_size": 8, "emitter": "E", **facts}

    summary = {
        "slice": "v7x-2x2x1",
        "program": "p",
        "collectives": [
            row(),
            row(kind="all-reduce"),
            row(group_size=4),
            {"kind": "all-gather", "bytes": 64, "group_size": 8},
            {"kind": "collective-permute", "bytes": 64},
        ],
    }
    alike = {"program": "p", "chip": "v7x", "slice": [2, 2, 1], "axes": "xyc", "emitter": "E"}
    assert list(collective_choices.of_programs([summary])) == [
        {**alike, "op": "all-gather", "operand_bytes": 8},
        {**alike, "op": "all-reduce", "operand_bytes": 64},
    ]


def test_emitters_of_programs_are_compared_without_the_dimension() -> None:
    assert collective_choices.which_emitter("1DAllGatherNonMajorDimImbalanced") == (
        "1DAllGatherImbalanced"
    )
    assert collective_choices.which_emitter("2DAllGatherOnMajorDim") == "2DAllGather"
    assert collective_choices.which_emitter("AllToAllEmitter") == "AllToAllEmitter"


def compared(source: str, chip: str, printed: str, chosen: str) -> Compared:
    return Compared(source, chip, "all-reduce", "psum", {"emitter": printed}, {"emitter": chosen})


def test_the_table_counts_by_chip_and_source() -> None:
    found = [
        compared(SOURCES[0], "v5e", "A", "A"),
        compared(SOURCES[0], "v5e", "A", "B"),
        compared(SOURCES[1], "v6e", "A", "B"),
        compared(SOURCES[2], "v6e", "A", "A"),
    ]
    assert collective_choices.table(found)[2:] == [
        "| v5e | all-reduce | 1 of 2 |  |  |",
        "| v6e | all-reduce |  | 0 of 1 | 1 of 1 |",
        "| all |  | 1 of 2 | 0 of 1 | 1 of 1 |",
    ]
    assert collective_choices.differing(found + found, SOURCES[:2]) == [
        "psum: A (chosen: B) (4 times)"
    ]


def test_a_choice_that_is_not_printed_must_be_none() -> None:
    # The sweep prints no strategy of what is off-loaded, and none may be chosen.
    off_loaded = Compared(SOURCES[0], "v7x", "all-gather", "", {"strategy": None}, {"colors": 1})
    assert off_loaded.agrees
    off_loaded.chosen["strategy"] = "StrategyRing"
    assert not off_loaded.agrees


def test_the_section_takes_the_place_of_the_one_before() -> None:
    heading = collective_choices.HEADING
    page = f"# Page\n\nText.\n\n{heading}\n\nold\n"
    assert collective_choices.with_section(page, f"{heading}\n\nnew\n") == (
        f"# Page\n\nText.\n\n{heading}\n\nnew\n"
    )
    assert collective_choices.with_section("# Page\n\nText.\n", f"{heading}\n") == (
        f"# Page\n\nText.\n\n{heading}\n"
    )


def test_a_row_with_a_mistake_is_named(rows_binary: pathlib.Path) -> None:
    row = {"chip": "v5e", "slice": [4, 4], "axes": "x", "op": "reduce", "operand_bytes": 64}
    with pytest.raises(SystemExit, match='no collective "reduce"'):
        collective_choices.chosen([row], rows_binary)
