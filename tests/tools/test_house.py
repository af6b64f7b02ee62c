"""The structure of the source tree: rooms, sizes of files, lists of opcodes."""

from __future__ import annotations

import pathlib
import re

ROOT = pathlib.Path(__file__).parents[2]
WORKLOADS = ROOT / "workloads"
MODELS = ROOT / "models"

# The rooms of the compiler. A file includes its own room and those before it.
ROOMS = [
    "hlo/ir",
    "hlo/rules",
    "hlo/analysis",
    "hlo/io",
    "hlo/transforms",
    "sharding",
    "spmd",
    "target",
    "kernels",
    "collectives",
    "cost",
    "buffers",
    "passes",
    "lowering",
    "compiler",
]

# Folders of passes do not look at each other: a pass stands on the pipeline and on what lies
# below passes; the table of all of them (passes.h) is on top.
PASSES = WORKLOADS / "passes"
# The rooms of the simulation, in the same order as those of the compiler.
SIM_ROOMS = ["impairments", "recording", "symmetry", "", "results"]

# The rooms of the machine, in the same order.
MODEL_ROOMS = ["isa", "steady", "timing", "flow", "events", "chip", "ici"]
# Those that the compiler and plain tests link too.
WITHOUT_SYSTEMC = ["isa", "steady", "timing", "flow"]
# Modules that make others (Device is no module).
BUILT_BY = {"router": ["ici/fabric", "ici/link"]}
# What the machine may include of the other folders.
BELOW_MODELS = ["configs", "models"]
FOLDERS = ["benchmarks", "configs", "models", "sim", "tests", "tools", "workloads"]

MOST_LINES = 600

# What says something else for every opcode may name many of them in a row.
RULES = (
    "hlo/io/printer.cc",
    "hlo/ir/opcode.h",
    "hlo/analysis/verify_callees.cc",
    "hlo/rules/",
    "kernels/elementwise_cost.cc",
    "kernels/vector_cost.cc",
    "sharding/rules/",
    "sharding/unreduced.cc",
    "spmd/ops/",
    "passes/layout/pose_",
)
MOST_OPCODES = 4
LABEL = r"case\s+(?:hlo::)?Opcode::\w+:\s*(?://[^\n]*)?\s*"
CASES = re.compile(f"(?:{LABEL}){{{MOST_OPCODES + 1},}}")
COMPARISON = r"==\s*(?:hlo::)?Opcode::\w+\s*\|\|[^;{}|]*?"
COMPARISONS = re.compile(f"(?:{COMPARISON}){{{MOST_OPCODES},}}" + r"==\s*(?:hlo::)?Opcode::")


def sources(folder: pathlib.Path, *endings: str) -> list[pathlib.Path]:
    return sorted(path for path in folder.rglob("*") if path.suffix in endings)


def room(path: pathlib.PurePath) -> str:
    """The room of a path relative to workloads/."""
    depth = 2 if path.parts[0] == "hlo" else 1
    return "/".join(path.parts[:-1][:depth])


def test_rooms_include_only_what_comes_before_them() -> None:
    wrong = []
    for path in sources(WORKLOADS, ".h", ".cc"):
        own = ROOMS.index(room(path.relative_to(WORKLOADS)))
        for included in re.findall(r'#include "workloads/([^"]+)"', path.read_text()):
            if included.endswith(".pb.h"):
                continue
            if ROOMS.index(room(pathlib.PurePosixPath(included))) > own:
                wrong.append(f"{path.relative_to(ROOT)} includes workloads/{included}")
    assert not wrong, "\n".join(wrong)


def test_folders_of_passes_do_not_look_at_each_other() -> None:
    wrong = []
    for path in sources(PASSES, ".h", ".cc"):
        own = path.parent.name if path.parent != PASSES else ""
        for included in re.findall(r'#include "workloads/passes/([^"]+)"', path.read_text()):
            folder = included.partition("/")[0] if "/" in included else ""
            if own not in ("", folder) and folder != "pipeline":
                wrong.append(f"{path.relative_to(ROOT)} includes workloads/passes/{included}")
    assert not wrong, "\n".join(wrong)


def test_rooms_of_the_simulation_include_only_what_comes_before_them() -> None:
    wrong = []
    simulation = ROOT / "sim"
    for path in sources(simulation, ".h", ".cc"):
        own = SIM_ROOMS.index("/".join(path.relative_to(simulation).parts[:-1][:1]))
        for included in re.findall(r'#include "sim/([^"]+)"', path.read_text()):
            folder = included.partition("/")[0] if "/" in included else ""
            if SIM_ROOMS.index(folder) > own:
                wrong.append(f"{path.relative_to(ROOT)} includes sim/{included}")
    assert not wrong, "\n".join(wrong)


def test_rooms_of_the_machine_include_only_what_comes_before_them() -> None:
    wrong = []
    for path in sources(MODELS, ".h", ".cc"):
        name = path.relative_to(ROOT)
        text = path.read_text()
        own = MODEL_ROOMS.index(path.relative_to(MODELS).parts[0])
        for included in re.findall(r'#include "([^"]+)"', text):
            folder, *rest = pathlib.PurePosixPath(included).parts
            if folder in FOLDERS and folder not in BELOW_MODELS:
                wrong.append(f"{name} includes {included}")
            if folder == "models" and MODEL_ROOMS.index(rest[0]) > own:
                wrong.append(f"{name} includes {included}")
        if MODEL_ROOMS[own] in WITHOUT_SYSTEMC and "<systemc" in text:
            wrong.append(f"{name} includes SystemC")
    assert not wrong, "\n".join(wrong)


def test_modules_know_each_other_by_interfaces() -> None:
    """Ports are bound by those who build modules: a device, a router its links, the pod."""
    headers = [path for room in ("chip", "ici") for path in sources(MODELS / room, ".h")]
    modules = {
        path.relative_to(ROOT).as_posix(): path
        for path in headers
        if re.search(r"class \w+ : public sc_core::sc_module", path.read_text())
    }
    assert len(modules) > 10
    wrong = []
    for path in modules.values():
        own = path.with_suffix("")
        includes = set(re.findall(r'#include "([^"]+)"', path.read_text()))
        includes |= set(re.findall(r'#include "([^"]+)"', path.with_suffix(".cc").read_text()))
        for included in sorted(includes & modules.keys()):
            other = (ROOT / included).with_suffix("")
            if other not in (own, *map(MODELS.joinpath, BUILT_BY.get(own.name, []))):
                wrong.append(f"{path.relative_to(ROOT)} includes {included}")
    assert not wrong, "\n".join(wrong)


def test_no_file_is_too_long() -> None:
    long = [
        f"{path.relative_to(ROOT)}: {lines}"
        for folder in FOLDERS
        for path in sources(ROOT / folder, ".h", ".cc", ".py")
        if (lines := path.read_text().count("\n")) > MOST_LINES
    ]
    assert not long, "\n".join(long)


def test_include_guards_are_named_after_their_files() -> None:
    wrong = []
    for folder in FOLDERS:
        for path in sources(ROOT / folder, ".h"):
            name = path.relative_to(ROOT).as_posix()
            guard = f"TPUSIM_{re.sub('[/.]', '_', name.upper())}_"
            text = path.read_text()
            opens = f"#ifndef {guard}\n#define {guard}\n" in text
            if not opens or not text.endswith(f"#endif  // {guard}\n"):
                wrong.append(name)
    assert not wrong, "\n".join(wrong)


def test_what_opcodes_have_in_common_is_a_trait() -> None:
    wrong = []
    for folder in ("workloads", "sim", "models"):
        for path in sources(ROOT / folder, ".h", ".cc"):
            name = path.relative_to(ROOT / folder).as_posix()
            if folder == "workloads" and name.startswith(RULES):
                continue
            text = path.read_text()
            for found in [*CASES.finditer(text), *COMPARISONS.finditer(text)]:
                line = text.count("\n", 0, found.start()) + 1
                wrong.append(f"{path.relative_to(ROOT)}:{line}")
    assert not wrong, "give them a trait in workloads/hlo/ir/opcode.h: " + ", ".join(wrong)


# What takes computations out of a module, and instructions out of it.
COMPUTATION_REMOVERS = frozenset({"RemoveUnreachable", "InlineCalls"})
REMOVERS = COMPUTATION_REMOVERS | {
    "Remove",
    "RemoveDead",
    "InlineCall",
    "ReplaceWithPair",
    "WrapInAsync",
}
LOOP = re.compile(r"for \((?:const )?(?:hlo::)?(Instruction|Computation)\* \w+ : ([^{};]*?)\) ")
FUNCTION = re.compile(r"\b(\w+)\((?:[^(){};]|\([^(){};]*\))*\)(?: const)? (?=\{)")
CALL = re.compile(r"\b(\w+)\(")


def body_at(text: str, start: int) -> str:
    """The block or the statement that begins there."""
    depth = 0
    for end in range(start, len(text)):
        depth += (text[end] == "{") - (text[end] == "}")
        if depth == 0 and text[end] in ";}":
            return text[start : end + 1]
    return text[start:]


def loops_that_remove(text: str) -> list[tuple[int, str]]:
    """Where loops begin that remove some of the kind that they go over, and what they go over.

    Functions of the file that do so count; those of other files are in REMOVERS.
    """
    calls = {
        found[1]: set(CALL.findall(body_at(text, found.end()))) for found in FUNCTION.finditer(text)
    }

    def with_callers(removers: frozenset[str]) -> frozenset[str]:
        while more := {name for name, called in calls.items() if called & removers} - removers:
            removers |= more
        return removers

    removers = {
        "Instruction": with_callers(REMOVERS),
        "Computation": with_callers(COMPUTATION_REMOVERS),
    }
    return [
        (found.start(), found[2])
        for found in LOOP.finditer(text)
        if set(CALL.findall(body_at(text, found.end()))) & removers[found[1]]
    ]


def test_what_changes_under_a_loop_is_walked() -> None:
    """See workloads/hlo/ir/walk.h."""
    text = "void F(A* a) { a->Remove(b); }\nfor (Instruction* i : c->PostOrder()) { if (i) F(i); }"
    assert loops_that_remove(text) == [(text.index("for"), "c->PostOrder()")]
    wrong = []
    for path in sources(WORKLOADS, ".h", ".cc"):
        text = path.read_text()
        for start, over in loops_that_remove(text):
            if not re.match(r"(hlo::)?Walk\(", over):
                line = text.count("\n", 0, start) + 1
                wrong.append(f"{path.relative_to(ROOT)}:{line}: {over}")
    assert not wrong, "\n".join(wrong)


def test_every_pass_has_a_text_test() -> None:
    table = (WORKLOADS / "passes" / "passes.cc").read_text()
    names = re.findall(r"\{\s*\"([a-z-]+)\",\s*\"[A-Z]", table)
    assert len(names) >= 8
    tests = "".join(path.read_text() for path in (ROOT / "tests/workloads/passes").glob("*.cc"))
    run = " ".join(re.findall(r"\.Run\(\"([^\"]*)\"\)", tests))
    missing = [name for name in names if not re.search(rf"(?<![a-z-]){name}(?![a-z-])", run)]
    assert not missing, (
        f"no test runs these on text (tests/workloads/passes/pass_test.h): {missing}"
    )


def test_every_file_of_tests_is_built() -> None:
    files = [path for path in sources(ROOT / "tests", ".cc") if path.stem.endswith("_test")]
    assert len(files) > 100
    missing = []
    for path in files:
        folder = next(f for f in path.parents if (f / "CMakeLists.txt").is_file())
        listed = (folder / "CMakeLists.txt").read_text()
        name = path.relative_to(folder).as_posix()
        if name not in listed and not (path.parent == folder and "*_test.cc" in listed):
            missing.append(path.relative_to(ROOT).as_posix())
    assert not missing, "name them in a CMakeLists.txt: " + ", ".join(missing)
