"""`tools/jax-versions`: programs times versions of JAX, as a table.

Every version has a virtual environment of its own, `build/venvs/jax-VERSION`, which is made when it
is first asked for, and again when what is in it should change. pip finds what else goes with the
version (NumPy, ml_dtypes, ...). Each version runs with the oldest Python that it is made for, the
newest with every one (`tpusim/jax_internals/tested.py`); interpreters that this machine lacks are
left out, and said. Programs are in `programs/`; each prints the step time of what it has exported
and simulated, in nanoseconds. `--tests` runs tests of the package instead of programs.
"""

import argparse
import dataclasses
import glob
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "python"))

from tpusim.jax_internals.tested import PYTHONS, TESTED  # noqa: E402

PAGE = ROOT / "docs" / "jax-versions.md"
PROGRAMS = {
    "readme": "README program",
    "capture": "capture of a script",
    "kernel": "Pallas kernel",
    "flax_step": "Flax NNX step",
}
# Tests of what depends on the version: tests/jax/test_NAME.py.
TESTS = (
    *(
        "jax_internals",
        "placeholder_types",
        "placeholders",
        "eager_operations",
        "capture",
        "scripts",
    ),
    *("chip_view", "export", "modes", "unreduced", "kernels", "callbacks", "pmap", "command"),
    *("remat_policies", "inference_steps"),
)
_FOLDER = pathlib.Path(__file__).parent / "programs"
# The limit of a program; they take a few seconds.
_SECONDS = 300
# The tolerance of step times of one program with several versions.
_TOLERANCE = 0.01


@dataclasses.dataclass(frozen=True)
class Environment:
    """A version of JAX on a version of Python."""

    jax: str
    python: str

    @property
    def flax(self) -> str:
        """The version of Flax that fits it."""
        return TESTED[self.jax].flax

    @property
    def folder(self) -> pathlib.Path:
        """The folder of the environment."""
        suffix = "" if self.python == TESTED[self.jax].python else f"-python{self.python}"
        return ROOT / "build" / "venvs" / f"jax-{self.jax}{suffix}"

    @property
    def requirements(self) -> list[str]:
        """The packages that pip installs."""
        return [f"jax=={self.jax}", f"jaxlib=={self.jax}", f"flax=={self.flax}", "optax", "pytest"]

    def interpreter(self) -> pathlib.Path:
        """Its Python, after making what is not there."""
        stamp, wanted = self.folder / "requirements.txt", "\n".join(self.requirements) + "\n"
        if not stamp.is_file() or stamp.read_text() != wanted:
            base = interpreter(self.python)
            if base is None:
                raise FileNotFoundError(f"no Python {self.python} on this machine")
            shutil.rmtree(self.folder, ignore_errors=True)
            subprocess.run([base, "-m", "venv", self.folder], check=True)
            pip = [self.folder / "bin" / "pip", "install", "--disable-pip-version-check", "--quiet"]
            subprocess.run([*pip, *self.requirements], check=True)
            stamp.write_text(wanted)
        return self.folder / "bin" / "python"


@dataclasses.dataclass(frozen=True)
class Outcome:
    """The outcome of a program: its step time, or the last line that it printed when it failed."""

    nanoseconds: float | None
    error: str = ""

    def compared_with(self, expected: float | None) -> "Outcome":
        """A failure if its time is another one."""
        if self.nanoseconds is None or expected is None:
            return self
        if abs(self.nanoseconds - expected) <= _TOLERANCE * expected:
            return self
        return Outcome(None, f"a step of {self}, that of the newest takes {Outcome(expected)}")

    @property
    def verdict(self) -> str:
        """The text for the table."""
        if self.nanoseconds is None:
            return f"fails: {self.error}".replace("|", "\\|")
        return "passes"

    def __str__(self) -> str:
        if self.nanoseconds is None:
            return f"fails: {self.error}"
        return f"{self.nanoseconds / 1000:.2f} us"


def binary() -> pathlib.Path:
    """The simulator."""
    return pathlib.Path(os.environ.get("TPUSIM_BINARY", ROOT / "build" / "tpusim")).absolute()


def interpreter(python: str) -> str | None:
    """A Python of that version on this machine."""
    home = os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv"))
    name = f"python{python}"
    found = [shutil.which(name), *sorted(glob.glob(f"{home}/versions/{python}.*/bin/{name}"))]
    for candidate in filter(None, found):
        if subprocess.run([candidate, "-c", "import venv"], capture_output=True).returncode == 0:
            return candidate
    return None


def environments(versions: Sequence[str] = tuple(TESTED)) -> Iterator[Environment]:
    """Yields what is tested: every version, and the newest with every Python that it is for."""
    for jax in versions:
        pythons = [python for python in PYTHONS if python >= TESTED[jax].python]
        is_newest = jax == list(TESTED)[-1]
        yield from (Environment(jax, python) for python in pythons[: None if is_newest else 1])


def outcome(environment: Environment, program: str) -> Outcome:
    """Runs a program; files are written to a folder that goes away."""
    python = environment.interpreter()
    kept = {k: v for k, v in os.environ.items() if k != "XLA_FLAGS"}
    settings = {"PYTHONPATH": str(ROOT / "tools" / "python"), "TPUSIM_BINARY": str(binary())}
    settings["JAX_PLATFORMS"] = "cpu"
    with tempfile.TemporaryDirectory() as folder:
        command = [python, _FOLDER / f"{program}.py", ROOT / "README.md"]
        try:
            done = subprocess.run(
                command,
                cwd=folder,
                env=kept | settings,
                capture_output=True,
                text=True,
                check=False,
                timeout=_SECONDS,
            )
        except subprocess.TimeoutExpired:
            return Outcome(None, f"not done after {_SECONDS} s")
    if done.returncode != 0:
        last = (done.stderr.strip() or done.stdout.strip() or "nothing said").splitlines()[-1]
        last = last.replace(f"{ROOT}/", "")
        return Outcome(None, f"{last} (exit code {done.returncode})")
    return Outcome(float(done.stdout.split()[-1]))


def tests(environment: Environment, options: Sequence[str]) -> int:
    """Runs the tests that depend on the version; returns the exit code of pytest."""
    files = [f"tests/jax/test_{name}.py" for name in TESTS]
    settings = {"TPUSIM_BINARY": str(binary()), "JAX_PLATFORMS": "cpu"}
    command = [environment.interpreter(), "-m", "pytest", *files, *options]
    return subprocess.run(command, cwd=ROOT, env=os.environ | settings, check=False).returncode


Rows = Sequence[tuple[Environment, dict[str, Outcome]]]


def table(rows: Rows) -> str:
    """In Markdown; times are left to the terminal, since they change with the simulator."""
    titles = ["JAX", "Python", "Flax", *PROGRAMS.values()]
    lines = [titles, ["---"] * len(titles)]
    for environment, outcomes in rows:
        about = [environment.jax, environment.python, environment.flax]
        lines.append(about + [outcomes[p].verdict for p in PROGRAMS])
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def page(rows: Rows, missing: Sequence[str]) -> str:
    """docs/jax-versions.md."""
    left_out = "".join(f"\nPython {python} was not on the machine.\n" for python in missing)
    return f"""# Versions of JAX

<!-- Written by tools/jax-versions --page. -->

Four programs with every version of JAX that is tested: the last releases of 0.7, 0.8, 0.9, 0.11
and 0.12, and all of 0.10. From 0.11 on JAX needs Python 3.12. Each exports and simulates, and
passes if its step time is that of the newest version within 1 %: versions lower programs
differently, but not by much.

{table(rows)}{left_out}
* README program: export over an abstract mesh, then the simulation.
* Capture of a script: `python -m tpusim.export script.py --list` and `--function train_step` of a
  script that initialises, trains on a mesh of all devices, and prints losses.
* Pallas kernel: a product with scratch memory and branches, inside a `shard_map`, priced by its
  body.
* Flax NNX step: model, optimizer and a train step, by `tpusim.capture`.

With another version the package warns once and goes on. Where that version lacks something that is
private to JAX there is a way through public interfaces, or an error that names the version and what
is missing. What differs between those that are tested:

* Before 0.10 the body of a Pallas kernel does not name it: its loops on data are `main/loop.0`, and
  so on (`--trip-count 'main/*=N'`).
* Before 0.9 a function that was pmapped before the block of `tpusim.capture` began is not seen: JAX
  partitions it in its own way, unless `jax_pmap_shmap_merge` is set.
* Before 0.10, where no sharding of a result is stated, a program on a mesh is compiled (but not
  executed) to find those that XLA chooses; later they are propagated, which takes less time.
* From 0.11 on lowering asks for the chip: a program with a kernel that divides integers needs
  `config=` (`--config`).
* From 0.11.1 on `jax.make_mesh` lays meshes otherwise over v7x and over 2x2x2 chips of v5p
  ([chips](chips.md#device-order)); a program is laid out by the version that exported it.
* From 0.12 on axes of an `AbstractMesh` are Explicit unless they are said to be Auto.

`tools/jax-versions` makes the environments below `build/venvs` and runs the programs;
`tools/jax-versions --page` writes this page, `tools/test --long` compares it.
"""


def run(versions: Sequence[str]) -> tuple[Rows, list[str]]:
    """Runs the programs in all environments, one by one; also returns the missing Pythons.

    The newest version comes first: the others are compared with it.
    """
    rows, missing, wanted = [], [], {}
    for environment in environments(versions[::-1]):
        if interpreter(environment.python) is None:
            missing.append(environment.python)
            continue
        outcomes = {}
        for program in PROGRAMS:
            found = outcome(environment, program)
            outcomes[program] = found.compared_with(wanted.setdefault(program, found.nanoseconds))
            about = f"JAX {environment.jax}, Python {environment.python}, {PROGRAMS[program]}"
            print(f"{about}: {outcomes[program]}", file=sys.stderr, flush=True)
        rows.append((environment, outcomes))
    order = list(environments(versions))
    return sorted(rows, key=lambda row: order.index(row[0])), sorted({*missing})


def main(argv: Sequence[str] | None = None) -> int:
    """The command; its exit code is 1 if a program failed."""
    parser = argparse.ArgumentParser(prog="tools/jax-versions", description=__doc__)
    parser.add_argument("versions", nargs="*", metavar="VERSION", help="default: all")
    parser.add_argument("--page", action="store_true", help=f"write docs/{PAGE.name}")
    parser.add_argument("--tests", action="store_true", help="run tests, of the newest by default")
    options, more = parser.parse_known_args(argv)
    if more and not options.tests:
        parser.error(f"unknown: {' '.join(more)}")
    if unknown := [version for version in options.versions if version not in TESTED]:
        parser.error(f"{', '.join(unknown)}: not among {', '.join(TESTED)}")
    if options.page and options.versions:
        parser.error("--page is of all versions")
    if not binary().is_file():
        parser.error(f"{binary()} is not built; tools/demo builds it, TPUSIM_BINARY names another")
    if options.tests:
        chosen = [Environment(v, TESTED[v].python) for v in options.versions or list(TESTED)[-1:]]
        return max(tests(environment, more) for environment in chosen)
    rows, missing = run(options.versions or list(TESTED))
    print(table(rows), end="")
    for python in missing:
        print(f"Python {python} is not on this machine", file=sys.stderr)
    if options.page:
        PAGE.write_text(page(rows, missing))
    return int(any(o.nanoseconds is None for _, outcomes in rows for o in outcomes.values()))


if __name__ == "__main__":
    sys.exit(main())
