"""Steps of exports beside those of compiled modules, and buffer assignments: written figures."""

import compiled_buffers
import compiler_page
import compiler_steps
import pytest
from compiler_compare import Row, Side
from compiler_steps import Step


def step(program: str, export: float | None, module: float, live: int = 100) -> Step:
    """On one chip, with a buffer assignment of 100 bytes."""
    return Step(program, "v5e-1x1", export, module, live, 100)


STEPS = [
    step("matmul", 110, 100),  # not set aside
    step("attention", 30, 100, 104),
    step("softmax_f32", 1, 100),  # set aside
    step("gelu", None, 100),
]


def test_ratios() -> None:
    assert [s.ratio for s in STEPS] == [1.1, 0.3, 0.01, None]
    assert [s.memory_ratio for s in STEPS] == [1, 1.04, 1, 1]
    assert [s.aside for s in STEPS] == [False, False, True, False]


def test_what_is_set_aside_has_its_own_row() -> None:
    lines = compiler_steps.summary(STEPS)
    assert lines[2] == "| v5e | 2 | 0.70 | 50% | 50% | 3 | 67% | +4.0% |"
    assert lines[3] == "| v5e, set aside | 1 | 0.01 | 0% | 0% | 1 | 100% | +0.0% |"
    assert [line.split(" | ")[0] for line in lines[4:]] == ["| all", "| all, set aside"]


def test_the_furthest_are_not_set_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler_steps, "WHY", {"atten*": "a reason"})
    assert compiler_steps.furthest(STEPS)[2:] == [
        "| attention | v5e-1x1 | 30.0 | 100.0 | 0.30 | a reason |"
    ]


def test_every_row_of_a_table_has_as_many_cells() -> None:
    rows = [
        Row("matmul", "products", "v5e-1x1", Side(kernels=1), Side(kernels=1), step=STEPS[0]),
        Row("gelu", "products", "v5e-1x1", Side(kernels=1), Side(kernels=1)),
    ]
    counts = {line.count("|") for line in compiler_page.table(rows)}
    assert len(counts) == 1
    text = compiler_page.page(rows, [STEPS[1]])
    assert "## Steps of exports and of compiled modules" in text
    assert "| attention | v5e-1x1 | 30.0 / 100.0 | 0.30 | 0.00 / 0.00 | 1.040 |" in text


def test_reasons_are_of_programs_that_there_are() -> None:
    import fnmatch

    import compiled_modules

    programs = {p for names in compiled_modules.SELECTION.values() for p in names.split()}
    for glob in compiler_steps.WHY:
        assert fnmatch.filter(programs, glob), glob


ASSIGNMENT = """BufferAssignment:
allocation 0: size 512, thread-local:
 value: <0 add @0> (size=512,offset=0): f32[]{:T(128)}
allocation 1: size 1000, parameter 0, shape |f32[250]| at ShapeIndex {}:
 value: <1 x @0> (size=1000,offset=0): f32[250]{0}
allocation 2: size 700, preallocated-temp:
 value: <2 a @0> (size=400,offset=0): f32[100]{0}
 value: <3 b{} @0> (size=300,offset=400): f32[75]{0}
 value: <4 c (phi) @0> (size=400,offset=0): f32[100]{0}
allocation 3: size 64, color 1, preallocated-temp:
 value: <5 v.1{0} @1> (size=32,offset=0): f32[8]{0:S(1)}
 value: <6 v.2 @1> (size=48,offset=0): f32[12]{0:S(1)}
"""
RANGES = """HloLiveRange (max 9):
  InstructionSequence:
    0:x
  BufferLiveRange:
    x{}:0-9
    a{}:1-3
    b{}:5-6
    c{}:6-7
    v.1{0}:1-2
    v.2{}:2-4
  Live ranges at 6 (peak):
    b{}: 300 bytes (cumulative: 300 bytes)
"""


def test_what_is_live_at_most() -> None:
    assert compiled_buffers.most_live(ASSIGNMENT, RANGES) == {
        **{"hbm_live_bytes": 1700, "hbm_bytes": 1700},
        **{"vmem_live_bytes": 48, "vmem_bytes": 64},
    }


def test_overlapping_pieces_count_once() -> None:
    assert compiled_buffers.covered([(0, 10), (5, 12), (20, 21), (6, 7)]) == 13


def test_assignments_that_are_kept_are_of_modules() -> None:
    import compiled_modules

    for slice_name, programs in compiled_buffers.kept().items():
        for program, figures in programs.items():
            assert compiled_modules.path_of(program, slice_name).exists()
            assert 0 < figures["hbm_live_bytes"] <= figures["hbm_bytes"], program
            assert 0 <= figures["vmem_live_bytes"] <= figures["vmem_bytes"], program
