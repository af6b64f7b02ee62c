"""`tpusim.sweep`: variants of one training command, each captured and simulated.

    sweep = tpusim.sweep(
        "python3 -m maxtext.trainers.pre_train.train model_name=llama3.1-8b",
        {"per_device_batch_size": [1, 2, 3], "remat_policy": ["full", "minimal"]},
        config="v6e-8",
        recipe="maxtext",
    )
    print(sweep)            # a row per variant: whether it fits, step, tokens per second and device
    sweep.alike             # values of a knob that make the same program

All variants run in this process, so that packages are imported once. Programs that are equal are
simulated once.
"""

import contextlib
import dataclasses
import io
import itertools
import json
import math
import os
import re
import shlex
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tpusim import arguments as checks
from tpusim import capturing, cpu_devices, hlo, quantities, scripts, slices
from tpusim.errors import ArgumentValueError, Error
from tpusim.recipes import Recipe, recipe_of
from tpusim.report import Report
from tpusim.runner import Simulation
from tpusim.search.failures import does_not_fit, text_of
from tpusim.search.problem import OF_MACHINE
from tpusim.simulation import words_of
from tpusim.workload import Workload

# Share of usable HBM around which the plan of the TPU compiler decides, not that of a simulation.
_LIMIT = 0.03
_PYTHON = re.compile(r"(.*/)?python[\d.]*")
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]*=.*", re.DOTALL)


@dataclasses.dataclass(frozen=True)
class Variant:
    """A variant of the command."""

    values: Mapping[str, Any]
    verdict: str  # "fits", "at the limit", "refused" (it does not fit), "failed"
    why: str = ""  # of what is refused or has failed
    workload: Workload | None = None
    report: Report | None = None
    tokens: int = 0  # per step; 0 if no argument has tokens

    @property
    def tokens_per_second_and_device(self) -> float:
        """Tokens per second and device; 0 without a step or without tokens."""
        if self.report is None:
            return 0.0
        return self.tokens / (self.report.step_time_ns * 1e-9) / self.report.devices


class Sweep:
    """The variants in the order of their values."""

    def __init__(self, variants: Sequence[Variant]):
        self.variants = tuple(variants)

    @property
    def alike(self) -> dict[str, list[tuple[Any, ...]]]:
        """Values with the same program, step and memory whatever the other knobs are, by knob."""
        found = {knob: self._alike(knob) for knob in self.variants[0].values}
        return {knob: groups for knob, groups in found.items() if groups}

    def _alike(self, knob: str) -> list[tuple[Any, ...]]:
        programs: dict[str, list[tuple[str, Any]]] = {}
        values: dict[str, Any] = {}
        for variant in self.variants:
            value = variant.values[knob]
            others = repr({k: v for k, v in variant.values.items() if k != knob})
            values[repr(value)] = value
            programs.setdefault(repr(value), []).append((others, _outcome(variant)))
        groups: list[list[str]] = []
        for key, made in programs.items():
            if all(outcome is None for _, outcome in made):
                continue
            same = next((group for group in groups if programs[group[0]] == made), None)
            groups.append([key]) if same is None else same.append(key)
        return [tuple(values[key] for key in group) for group in groups if len(group) > 1]

    def __str__(self) -> str:
        knobs = list(self.variants[0].values)
        head = [*knobs, "verdict", "HBM", "step", "tokens/s/device"]
        rows = ([*_texts(v.values.values()), *_figures(v)] for v in self.variants)
        lines = quantities.columns([head, *rows])
        for variant in self.variants:
            if variant.why:
                lines.append(f"{', '.join(_texts(variant.values.values()))}: {variant.why}")
        number = {knob: len({repr(v.values[knob]) for v in self.variants}) for knob in knobs}
        for knob, groups in self.alike.items():
            if len(groups[0]) == number[knob]:
                lines.append(f"{knob} changes nothing")
                continue
            lines += [f"{knob}: {', '.join(_texts(g))} make the same program" for g in groups]
        return "\n".join(lines)


def sweep(
    command: str | Sequence[str],
    vary: Mapping[str, Sequence[Any]] | None = None,
    *,
    config: str | os.PathLike[str] = "",
    function: str = "",
    recipe: str = "",
    **options: Any,
) -> Sweep:
    """Captures and simulates variants of a training command, without a TPU.

    Args:
      command: as a shell has it, "python3 -m MODULE name=value" or "python3 train.py --batch 8",
        with variables of the environment in front of it, if any.
      vary: {argument: values}; all combinations are tried. An argument is one of the command, or is
        added to it, as `name=value`; "--name" is followed by its value, or stands alone for True;
        None leaves it out.
      config: the slice, unless the command names one that `recipe` knows.
      function: the step, a name or "file:line"; without it the function that computes most.
      recipe: "maxtext", "tunix", or a file such as they are (`tpusim.recipes`).
      **options: of `tpusim.simulate`, for each variant.

    Returns:
      The variants, which print as a table.
    """
    facts = recipe_of(checks.text("recipe", recipe, empty=True))
    words = shlex.split(command) if isinstance(command, str) else list(command)
    vary = dict(facts.vary if vary is None else vary)
    for name, values in vary.items():
        checks.several(f"vary[{name!r}]", values, "a list of values")
    combined = [dict(zip(vary, v, strict=True)) for v in itertools.product(*vary.values())]
    if not combined:
        raise ArgumentValueError("vary: an argument has no values")
    commands = [_Command.of(_varied(words, values), facts, config) for values in combined]
    counts = {slices.devices_of(one.config) for one in commands}
    if len(counts) != 1:
        raise ArgumentValueError("vary: all slices of a sweep have the same number of devices")
    if (count := counts.pop()) is not None:
        cpu_devices.at_least_cpu_devices(count)
        if said := capturing.too_few_devices(commands[0].config):
            raise Error(said)
    known: dict[bytes, tuple[str, str, Report | None]] = {}
    variants = []
    for values, one in zip(combined, commands, strict=True):
        variants.append(_variant(values, one, function, options, known))
    return Sweep(variants)


@dataclasses.dataclass(frozen=True)
class _Command:
    """A command line, taken apart."""

    environment: Mapping[str, str]
    module: str  # empty for a script
    script: str
    arguments: Sequence[str]
    config: str

    @classmethod
    def of(cls, words: Sequence[str], recipe: Recipe, config: str | os.PathLike[str]) -> "_Command":
        """Reads the words; those of a recipe are added, and its slice is taken out."""
        left = list(words)
        environment = {}
        while left and _VARIABLE.fullmatch(left[0]):
            name, _, value = left.pop(0).partition("=")
            environment[name] = value
        if left and _PYTHON.fullmatch(left[0]):
            left.pop(0)
        while left and left[0].startswith("-") and left[0] != "-m":
            left.pop(0)  # -u, -O
        named = left[:1] == ["-m"]
        left = left[1:] if named else left
        if not left:
            raise ArgumentValueError("command: names neither a script nor, behind -m, a module")
        program, *arguments = left
        given = {word.partition("=")[0]: word.partition("=")[2] for word in arguments}
        replaced = {word.partition("=")[0] for word in recipe.arguments}
        arguments = [word for word in arguments if word.partition("=")[0] not in replaced]
        arguments += recipe.arguments
        if recipe.slice and given.get(recipe.slice):
            number = given.get(recipe.slices, "1")
            config = given[recipe.slice] if number == "1" else f"{number}x({given[recipe.slice]})"
            of_slice = (f"{recipe.slice}=", f"{recipe.slices}=")
            arguments = [word for word in arguments if not word.startswith(of_slice)]
        module = recipe.modules.get(program, program) if named else ""
        return cls(environment, module, "" if named else program, arguments, checks.config(config))


def _varied(words: Sequence[str], values: Mapping[str, Any]) -> list[str]:
    """Returns the words of a command with other values of some arguments."""
    varied = list(words)
    for name, value in values.items():
        (text,) = _texts([value])
        is_switch = name.startswith("-") and isinstance(value, bool)
        new = [name] if is_switch else [f"{name}={text}"]
        if value is None or (is_switch and not value):
            new = []
        at = next((n for n, w in enumerate(varied) if w == name or w.startswith(f"{name}=")), None)
        if at is None:  # Variables of the environment stand before the command.
            at = 0 if name.isupper() else len(varied)
            varied[at:at] = new
        elif varied[at] == name and not is_switch:
            varied[at : at + 2] = [name, text] if new else []
        else:
            varied[at : at + 1] = new
    return varied


def _variant(
    values: Mapping[str, Any],
    command: _Command,
    function: str,
    options: Mapping[str, Any],
    known: dict[bytes, tuple[str, str, Report | None]],
) -> Variant:
    try:
        workload = _captured(command, function)
    except Exception as error:
        return Variant(values, "failed", text_of(error))
    program = workload.to_bytes()
    if program not in known:
        known[program] = _simulated(program, options)
    verdict, why, report = known[program]
    return Variant(values, verdict, why, workload, report, _tokens(workload))


def _captured(command: _Command, function: str) -> Workload:
    """Runs the command up to its step; what it prints is not shown."""
    spec = scripts.module_of(command.module) if command.module else None
    script = str(spec.origin) if spec is not None else command.script
    if not os.path.isfile(script):
        raise Error(f"{script}: no such file")
    with (
        _as_it_was(),
        tempfile.TemporaryDirectory(prefix="tpusim-") as folder,
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
        scripts.command_line(script, command.arguments),
    ):
        os.environ.update(command.environment)
        path = os.path.join(folder, "step.pb")
        with capturing.capture(
            path, config=command.config, function=function, largest=not function
        ) as captured:
            scripts.run(script, spec)
    assert captured.workload is not None
    return captured.workload


@contextlib.contextmanager
def _as_it_was() -> Iterator[None]:
    """Puts the environment and the folder back, which a script may change for its next variant."""
    environment, folder = dict(os.environ), os.getcwd()
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(environment)
        os.chdir(folder)


def _simulated(program: bytes, options: Mapping[str, Any]) -> tuple[str, str, Report | None]:
    """Returns the verdict, why, and the report, which a program slightly too large has, too."""
    words = words_of(**options)
    try:
        report = Simulation(program, words).run()
    except Error as error:
        if not does_not_fit(error):
            return "failed", text_of(error), None
    else:
        close = report.peak_hbm_bytes > report.usable_hbm_bytes * (1 - _LIMIT)
        return "at the limit" if close else "fits", "", report
    compiled = words_of(**{k: v for k, v in options.items() if k not in OF_MACHINE})
    usable = json.loads(Simulation(program, compiled).bounds())["usable_hbm_bytes"]
    enough = math.ceil(usable * (1 + _LIMIT))
    more = (f"--set=chip.hbm.bytes={enough}", "--set=chip.hbm.reserved_bytes=0")
    try:
        return "at the limit", "", Simulation(program, [*words, *more]).run()
    except Error as error:
        if too_large := does_not_fit(error):
            return "refused", f"needs {too_large[1]} of {quantities.size(usable)}", None
        return "failed", text_of(error), None


def _tokens(workload: Workload) -> int:
    """Returns the elements of the largest argument of integers with two dimensions or more."""
    shapes = (i.shape for i in hlo.arguments(workload.hlo_module))
    return max((math.prod(s.dims) for s in shapes if s.has_indices and len(s.dims) > 1), default=0)


def _outcome(variant: Variant) -> Any:
    """Returns the program, whatever its flags, and its figures; None if there is no program."""
    if variant.workload is None:
        return None
    report = variant.report
    figures = report and (report.step_time_ns, report.peak_hbm_bytes)
    return dataclasses.replace(variant.workload, xla_flags=""), figures


def _texts(values: Any) -> list[str]:
    return [str(value).lower() if isinstance(value, bool) else str(value) for value in values]


def _figures(variant: Variant) -> list[str]:
    report = variant.report
    if report is None:
        return [variant.verdict, "", "", ""]
    peak = quantities.size(report.peak_hbm_bytes)
    rate = variant.tokens_per_second_and_device
    step = quantities.time(report.step_time_ns)
    return [variant.verdict, peak, step, f"{rate:,.0f}" if rate else ""]
