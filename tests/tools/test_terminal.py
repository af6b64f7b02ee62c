"""Output for people: tables as wide as the terminal, help, what to try, rows as they come."""

import re
import subprocess

import pytest

from tests.tools.command_line import EXAMPLES, SLICE, example
from tests.tools.terminal import on_terminal

ROOT = EXAMPLES.parents[1]
PROGRAM = example("language_model_train_fully_sharded")
COMMANDS = (
    *("run", "compare", "advise", "search", "flags", "fit", "collective", "check", "validate"),
    "calibrate",
    *("configs", "compile", "opt", "kernel", "page", "schema", "completion", "man", "help"),
    "version",
)
# Messages that CLI11 writes about options by itself.
LEFTOVERS = re.compile(
    r"REQUIRED|Excludes:|Needs:|TEXT|INT in|:\{|\{false\}|\[OPTIONS\] \w|SUBCOMMAND|Positionals"
)


def widest(text: str) -> int:
    return max(len(line) for line in text.splitlines())


def test_nothing_is_cut_in_a_pipe(run, monkeypatch: pytest.MonkeyPatch):
    """Nor does a variable that many programs set decide what is in a file."""
    arguments = ("--config", SLICE, PROGRAM)
    monkeypatch.delenv("COLUMNS", raising=False)
    piped = run(*arguments).stdout
    assert "..." not in piped.split("\n\n")[1]
    monkeypatch.setenv("COLUMNS", "60")
    assert run(*arguments).stdout == piped


@pytest.mark.parametrize("columns", [60, 80, 100, 140])
def test_tables_fit_the_terminal(binary, columns: int):
    psum = example("psum")
    shown = {
        ("run", PROGRAM, "--config", SLICE): 0,
        ("run", PROGRAM, "--by", "scope", "--top", "30"): 0,
        ("run", PROGRAM, "--memory"): 0,
        ("compare", psum, PROGRAM, example("all_gather"), "--quiet"): 3,  # sentences on differences
        ("fit", psum, "--chip", "v5e"): 0,
        ("collective", "all-reduce", "64MiB", "v5e-4x4"): 0,
        ("configs",): 0,
        ("configs", "v5e"): 0,
        ("schema",): 0,
    }
    for arguments, sentences in shown.items():
        text = on_terminal(binary, *arguments, columns=columns)
        wide = [line for line in text.splitlines() if len(line) > columns]
        assert len(wide) <= sentences, (arguments, wide)


def test_columns_of_the_shell_count(binary):
    command = (binary, "--config", SLICE, PROGRAM)
    assert widest(on_terminal(*command, columns=140, stated="70")) <= 70
    assert widest(on_terminal(*command, columns=60, stated="140")) > 100
    # What is no number, or too narrow for any table, counts for nothing.
    assert on_terminal(*command, columns=90, stated="wide") == on_terminal(*command, columns=90)
    assert on_terminal(*command, columns=90, stated="5") == on_terminal(*command, columns=60)


def test_no_number_is_cut(binary, run):
    """A narrow terminal has the columns of numbers below each other, with all digits."""
    report = run("--config", SLICE, PROGRAM).stdout
    narrow = on_terminal(binary, "--config", SLICE, PROGRAM, columns=60)
    figures = re.findall(r"(?<![\w.])\d[\d.]* (?:us|ns|ms|KiB|MiB|GiB)\b", report)
    assert len(figures) >= 30
    words = " ".join(narrow.split())
    kept = [figure for figure in figures if figure in words]
    # Of the line on memory owners are left out, which have shares only.
    assert kept == figures


def test_options_to_copy_stay_whole(binary):
    text = on_terminal(binary, "advise", example("psum"), columns=60)
    assert "\n    --set ici.link_bytes_per_second=2x\n" in text
    assert "--device-order 0,4" not in text or re.search(r"\(--device-order [\d,]+\)", text)


@pytest.mark.parametrize("command", COMMANDS)
def test_help(binary, run, command: str):
    done = run(command, "--help")
    assert done.returncode == 0, done.stderr
    assert done.stdout == run("help", command).stdout
    assert done.stdout.startswith(f"Usage: tpusim {command}")
    assert not LEFTOVERS.search(done.stdout), LEFTOVERS.search(done.stdout)
    for columns in (60, 100):
        text = on_terminal(binary, command, "--help", columns=columns)
        # Names of values and examples are not broken: they are to be copied.
        wide = [
            line
            for line in text.splitlines()
            if len(line) > columns and not re.match(r" +(tpusim|eval|-|\S+$)", line)
        ]
        assert not wide


def test_help_is_grouped_and_has_examples(run):
    text = run("help", "run").stdout
    headings = re.findall(r"^(\w+):$", text, re.MULTILINE)
    assert headings == [
        *("Arguments", "Program", "Compiler", "Machine", "Output", "Help", "Examples"),
    ]
    machine = text.split("\nMachine:\n")[1].split("\n\n")[0]
    assert re.findall(r"--([a-z-]+)", machine)[0] == "set"
    assert "may be repeated" in machine
    blocks = re.search(r"--trace-blocks N\n? +(.*?)\n +--trace-totals", text, re.DOTALL)
    assert "(with --trace) (default: 16)" in " ".join(blocks[1].split())
    top = run("help").stdout
    assert top == run("--help").stdout
    for command in COMMANDS:
        assert re.search(rf"^  {command}\s", top, re.MULTILINE), command


def test_every_example_of_help_is_a_command_line(run):
    """Their options are there, whatever files they name."""
    seen = 0
    for command in ("", *COMMANDS):
        text = run("help", *([command] if command else [])).stdout
        for line in re.findall(r"^  tpusim (.*)$", text, re.MULTILINE):
            words = line.split(" | ")[0].split(" > ")[0].split()
            done = run(*words)
            assert done.returncode != 2, (line, done.stderr)
            seen += 1
    assert seen > 25


def test_help_of_what_there_is_not(rejects):
    assert "the nearest is compare" in rejects("help", "comapre", code=2)


def test_version(run):
    version = run("version")
    assert version.returncode == 0
    assert version.stdout == run("--version").stdout
    assert re.fullmatch(r"tpusim \d+\.\d+\.\d+\n", version.stdout)


def test_nothing_given(binary):
    """An error for scripts whose variables are empty; three lines for people."""
    done = subprocess.run([binary], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stdout == ""
    error, *tries = done.stderr.splitlines()
    assert error.startswith("tpusim: error: no workload given")
    assert len(tries) == 3
    assert all(line.startswith("  tpusim ") for line in tries)
    # Two of them need no file.
    for line in tries[1:]:
        _, *command = re.split(r"\s{3,}", line.strip())[0].split()
        assert subprocess.run([binary, *command], capture_output=True, check=False).returncode == 0


def test_rows_come_on_stderr(binary, run):
    """Rows come in a long run on a terminal; with --verbose always. Stdout has its own order."""
    quiet = run("fit", example("psum"), "--chip", "v5e", "--larger")
    verbose = run("fit", example("psum"), "--chip", "v5e", "--larger", "--verbose")
    assert quiet.stdout == verbose.stdout
    rows = re.findall(r"^tpusim: (v5e-\S+): fits, peak \S+ \S+ of", verbose.stderr, re.MULTILINE)
    assert sorted(rows) == sorted(re.findall(r"^(v5e-\S+)", quiet.stdout, re.MULTILINE))
    assert "fits, peak" not in quiet.stderr
    advised = run("advise", example("psum"), "--config", SLICE, "--verbose")
    assert re.search(r"^tpusim: links x2: \d", advised.stderr, re.MULTILINE)
    assert re.search(r"^tpusim: slice v5e-2x4: \d", advised.stderr, re.MULTILINE)


def test_progress_on_a_terminal(binary):
    shown = on_terminal(
        binary, "fit", example("psum"), "--chip", "v5e", "--verbose", columns=80, errors=True
    )
    assert "v5e-4x2: fits, peak 512.0 KiB of 15.75 GiB" in shown
    assert "1 of 2 done" in shown


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("mxu.eficiency", "the nearest is chip.mxu.efficiency"),
        ("chip.hmb.bytes", "the nearest is chip.hbm.bytes"),
        ("ici.launch", "the nearest is ici.launch_ns"),
        ("chip.hbm.bandwidth", "(chip.hbm has bytes, "),
    ],
)
def test_parameters_are_found_by_their_path(rejects, given: str, said: str):
    assert said in rejects(example("psum"), "-c", SLICE, "--set", f"{given}=2")


def completed(script: str, *words: str) -> list[str]:
    """Returns what bash offers for the last word; `=` separates words there."""
    split = [part for word in words for part in re.findall(r"=|[^=]+|^$", word)]
    quoted = " ".join(f"'{word}'" for word in split)
    ask = f"{script}\nCOMP_WORDS=({quoted}) COMP_CWORD={len(split) - 1}; _tpusim\n"
    ask += 'printf "%s\\n" "${COMPREPLY[@]}"'
    done = subprocess.run(["bash", "-c", ask], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stderr == ""
    return done.stdout.split()


def test_completion_of_options_and_values(run):
    script = run("completion", "bash").stdout
    assert completed(script, "tpusim", "compare", "--js") == ["--json"]
    assert "v5e-4x2" in completed(script, "tpusim", "run", "-c", "v5e-4x")
    assert "v5e-4x2" in completed(script, "tpusim", "step.pb", "--config=v5e-4x")
    assert completed(script, "tpusim", "compile", "a.pb", "--emit", "s") == [
        *("sharded", "schedule", "streams"),
    ]
    assert completed(script, "tpusim", "a.pb", "--by", "s") == ["scope", "source"]
    assert "ici.launch_ns=" in completed(script, "tpusim", "a.pb", "--set", "ici.l")
    assert completed(script, "tpusim", "a.pb", "--fold", "a") == ["auto", "approximate"]
    assert "v5e" in completed(script, "tpusim", "fit", "a.pb", "--chip", "v5")
    assert "fusion" in completed(script, "tpusim", "compile", "a.pb", "--explain", "fus")
    assert "single-phase" in completed(script, "tpusim", "a.pb", "--algorithm", "sing")
    assert completed(script, "tpusim", "collective", "all-g") == ["all-gather"]
    assert completed(script, "tpusim", "help", "ver") == ["version"]
    assert completed(script, "tpusim", "schema", "rep") == ["report"]
    assert "README.md" in completed(script, "tpusim", "a.pb", "--config", "READ")
    assert "README.md" in completed(script, "tpusim", "fit", "READ")
    assert completed(script, "tpusim", "comple") == ["completion"]


def test_completion_of_other_shells(run):
    assert run("completion", "zsh").stdout.startswith("autoload -U +X bashcompinit && bashcompinit")
    fish = run("completion", "fish").stdout
    ways = "scope op source category xprof collective path"
    assert re.search(rf"from run' -l by -r -f -a '{ways}'", fish)
    assert re.search(r"from run'.* -l set -r -f -a '.*chip\.hbm\.bytes= ", fish)
    assert re.search(r"from completion' -a 'bash zsh fish'", fish)
