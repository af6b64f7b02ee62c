"""The structure of the source tree: rooms, sizes of files, lists of opcodes."""

from __future__ import annotations

import graphlib
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
    "remat",
    "spmd",
    "target",
    "mosaic",
    "kernels",
    "collectives",
    "cost",
    "buffers",
    "passes",
    "lowering",
    "compiler",
    "search",
]

# Folders of passes do not look at each other: a pass stands on the pipeline and on what lies
# below passes; the table of all of them (passes.h) is on top.
PASSES = WORKLOADS / "passes"
# The folders inside a room and inside the simulation, in the same order; "" are the files beside
# them.
FOLDERS_OF = {
    "sim": ["impairments", "recording", "symmetry", "", "results"],
    "sim/results": ["report", "trace", "measured", "page"],
    "workloads/sharding": [
        "types",
        "text",
        "rules",
        "factors",
        "normalised",
        "stated",
        "propagation",
        "decisions",
    ],
    "workloads/spmd": ["emit", "ops", ""],
    "tools/tpusim": [
        *("output", "command_line", "pipeline", "find", "shard", "advise", "subcommands"),
        "",
    ],
}

# The rooms of the machine, in the same order.
MODEL_ROOMS = ["isa", "steady", "timing", "flow", "events", "chip", "ici"]
# Rooms that the compiler and plain tests link too.
WITHOUT_SYSTEMC = ["isa", "steady", "timing", "flow"]
# Modules that make others (Device is no module).
BUILT_BY = {"router": ["ici/fabric", "ici/link"]}
# Folders that the machine may include.
BELOW_MODELS = ["configs", "models"]
# Folders in which no file includes itself by way of others.
WITHOUT_CIRCLES = ["models", "sim"]
FOLDERS = ["benchmarks", "configs", "models", "sim", "tests", "tools", "workloads"]

MOST_LINES = 600

# Files with a rule per opcode may name many opcodes in a row.
RULES = (
    "hlo/io/text_attributes.cc",
    "hlo/ir/opcode.h",
    "hlo/analysis/verify_callees.cc",
    "hlo/rules/",
    "kernels/vector_work/elementwise_cost.cc",
    "kernels/vector_work/vector_cost.cc",
    "sharding/rules/",
    "sharding/propagation/unreduced.cc",
    "spmd/ops/",
    "passes/layout/problem_",
)
MOST_OPCODES = 4
LABEL = r"case\s+(?:hlo::)?Opcode::\w+:\s*(?://[^\n]*)?\s*"
CASES = re.compile(f"(?:{LABEL}){{{MOST_OPCODES + 1},}}")
COMPARISON = r"==\s*(?:hlo::)?Opcode::\w+\s*\|\|[^;{}|]*?"
COMPARISONS = re.compile(f"(?:{COMPARISON}){{{MOST_OPCODES},}}" + r"==\s*(?:hlo::)?Opcode::")

# Rooms that compute what the TPU compiler's programs cost, or decide as it does: what it is known
# to do is in configs/compilers.
POLICY_ROOMS = ["kernels", "collectives", "mosaic", "passes", "buffers"]
# Numbers that no reader takes for a value of the compiler.
PLAIN = {"0", "1", "2", "0.0", "1.0", "2.0"}
# A comment beside any other number, or above it, says where it is from; on the first line of a
# block it is about all numbers of that.
MARKER = re.compile(r"// number: (\S.*)")


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


def test_folders_include_only_what_comes_before_them() -> None:
    wrong = []
    for room_of, folders in FOLDERS_OF.items():
        for path in sources(ROOT / room_of, ".h", ".cc"):
            own = folders.index("/".join(path.relative_to(ROOT / room_of).parts[:-1][:1]))
            for included in re.findall(rf'#include "{room_of}/([^"]+)"', path.read_text()):
                folder = included.partition("/")[0] if "/" in included else ""
                if folders.index(folder) > own:
                    wrong.append(f"{path.relative_to(ROOT)} includes {room_of}/{included}")
    assert not wrong, "\n".join(wrong)


def test_no_files_include_each_other() -> None:
    """A header and its source are one: no declaration needs what is implemented above it."""
    for folder in WITHOUT_CIRCLES:
        sorter: graphlib.TopologicalSorter[str] = graphlib.TopologicalSorter()
        for path in sources(ROOT / folder, ".h", ".cc"):
            own = path.relative_to(ROOT).with_suffix("").as_posix()
            included = re.findall(rf'#include "({folder}/[^"]+)\.h"', path.read_text())
            sorter.add(own, *(set(included) - {own}))
        sorter.prepare()


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
        texts = [file.read_text() for file in (path, path.with_suffix(".cc")) if file.exists()]
        includes = set(re.findall(r'#include "([^"]+)"', "\n".join(texts)))
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


# Functions that remove computations from a module, and instructions from a computation.
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
    """Returns the loops that remove elements of the list that they iterate over.

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


def unmarked_numbers(text: str) -> list[tuple[int, str]]:
    """Lines, and what they say, with a number of unknown source."""
    comments = text.split("\n")
    text = re.sub(r"//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\])'|#[^\n]*", "", text)
    found = []
    marked_block = above = False
    for number, (line, commented) in enumerate(zip(text.split("\n"), comments, strict=True), 1):
        marked = above or MARKER.search(commented) is not None
        above = marked and not line.strip()
        if marked and line.rstrip().endswith("{") and re.search(r"enum|=", line):
            marked_block = True
        literals = re.findall(r"(?<![\w.])\d[\d']*(?:\.\d*)?(?:e[-+]?\d+)?(?=[uUlLfF]*\b)", line)
        if not marked and not marked_block and any(each not in PLAIN for each in literals):
            found.append((number, line.strip()))
        if line.startswith("}"):
            marked_block = False
    return found


def test_every_number_of_the_compiler_has_its_source_beside_it() -> None:
    assert unmarked_numbers("constexpr Bytes kLeastRow(512);") == [
        (1, "constexpr Bytes kLeastRow(512);")
    ]
    assert unmarked_numbers("x = 2;\nif (members % 4 != 0) {  // no 8\n  y = 3;") == [
        (2, "if (members % 4 != 0) {"),
        (3, "y = 3;"),
    ]
    assert unmarked_numbers('int kSteps = 9;  // number: effort\nF("512", i + 1);') == []
    assert unmarked_numbers("// number: effort\nint kSteps = 9;\nx = 3;") == [(3, "x = 3;")]
    assert unmarked_numbers("enum A {  // number: codes\n  kB = 3,\n};\nx = 4;") == [(4, "x = 4;")]
    wrong = []
    for name in POLICY_ROOMS:
        for path in sources(WORKLOADS / name, ".h", ".cc"):
            if path.name == "limits.h":  # Limits of effort, each with its purpose.
                continue
            for line, text in unmarked_numbers(path.read_text()):
                wrong.append(f"{path.relative_to(ROOT)}:{line}: {text}")
    assert not wrong, (
        "what the TPU compiler does is a row of configs/compilers (CONTRIBUTING.md); beside any "
        "other number stands where it is from, // number: ...\n" + "\n".join(wrong)
    )


def test_every_pass_has_a_text_test() -> None:
    table = (WORKLOADS / "passes" / "passes.cc").read_text()
    names = re.findall(r"\{\s*\"([a-z-]+)\",\s*\"[A-Z]", table)
    assert len(names) >= 8
    texts = [path.read_text() for path in (ROOT / "tests/workloads/passes").glob("*/*.hlo")]
    run = " ".join(re.findall(r"^// RUN.* --passes (\S+)", "\n".join(texts), re.MULTILINE))
    missing = [name for name in names if not re.search(rf"(?<![a-z-]){name}(?![a-z-])", run)]
    assert not missing, f"no text in tests/workloads/passes runs these: {missing}"


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


def test_tests_share_no_path() -> None:
    """Several of them run at once, in several checkouts."""
    shared = re.compile(r"TempDir\(|temp_directory_path|gettempdir|tempfile\.mktemp|[\"']/tmp\b")
    wrong = [
        f"{path.relative_to(ROOT)}: {found[0]}"
        for path in sources(ROOT / "tests", ".h", ".cc", ".py")
        if path.name not in ("temporary_folder.h", "test_house.py")
        and (found := shared.search(path.read_text()))
    ]
    assert not wrong, "take tests/temporary_folder.h or tmp_path: " + ", ".join(wrong)
