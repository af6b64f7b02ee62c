"""`tpusim flags step.py:function --config v6e-4x2`: what options of the TPU compiler do to a step.

`function()` of the file returns what to compile, `(step, arguments)` or `(step, arguments,
keyword_arguments)`, as for `python -m tpusim.export`. The TPU compiler compiles it ahead of time,
with the options of the table (--list) one at a time, and those that help together; each module is
simulated. That needs the libtpu wheel, and no TPU. Compiled modules are kept in the user's cache.

Results go to stdout, progress to stderr. Exit code 1: nothing was simulated.
"""

import argparse
import fnmatch
import os
from collections.abc import Sequence

from tpusim import arguments as checks
from tpusim import commands, files, slices
from tpusim.cpu_devices import MOST_FORCED_DEVICES, force_cpu_devices
from tpusim.errors import Error
from tpusim.flags.driver import flags
from tpusim.flags.table import SETTINGS, Setting
from tpusim.search.payload import FromFile

_SHOWN = 20


def _options(text: str) -> list[dict[str, str]]:
    """NAME=VALUE[,VALUE...]: one setting for each value."""
    name, _, values = text.lstrip("-").partition("=")
    try:
        found = [checks.compiler_options({name: value}) for value in values.split(",") if value]
    except ValueError:
        found = []
    if not name or not found:
        expected = "NAME=VALUE[,VALUE...], such as xla_tpu_scoped_vmem_limit_kib=32768,65536"
        raise argparse.ArgumentTypeError(f"{text!r} is not {expected}")
    return [{name: str(value)} for options in found for name, value in options.items()]


def _parser() -> argparse.ArgumentParser:
    parser = commands.parser_of("flags", __doc__, _SHOWN)
    parser.add_argument("program", metavar="FILE.py:FUNCTION", nargs="?", default="")
    parser.add_argument("--config", default="", metavar="SLICE", help="for example v6e-4x2")
    parser.add_argument(
        "--only", default="*", metavar="GLOB", help="settings of the table, by name or glob"
    )
    parser.add_argument(
        "--try",
        dest="tried",
        type=_options,
        action="append",
        default=[],
        metavar="NAME=VALUE[,VALUE...]",
        help="settings to try in place of the table; may be repeated",
    )
    parser.add_argument(
        "--compiler-option",
        type=_options,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="of every compilation; may be repeated",
    )
    parser.add_argument("--alone", action="store_true", help="do not try settings together")
    parser.add_argument("--cache", metavar="FOLDER", help="for compiled modules")
    parser.add_argument("--list", action="store_true", help="print the table, compile nothing")
    parser.add_argument("-o", "--output", metavar="FILE", help="write the JSON")
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress")
    return parser


def table() -> str:
    """Returns a table of the options that are tried, and why."""
    lines = []
    for setting in SETTINGS:
        needs = f" ({setting.needs.value})" if setting.needs.value else ""
        lines.append(f"{setting.label}\n    {setting.what}{needs}")
        if setting.name:
            lines += [f"    --{name}={value}" for name, value in setting.options.items()]
    return "\n".join(lines)


def _settings(given: argparse.Namespace) -> list[Setting] | None:
    """None: those of the table that may matter."""
    if given.tried:
        return [Setting(options, "") for several in given.tried for options in several]
    if given.only == "*":
        return None
    found = [
        setting
        for setting in SETTINGS
        if any(fnmatch.fnmatchcase(n, given.only) for n in (setting.label, *setting.options))
    ]
    if not found:
        raise Error(f"--only {given.only}: no such setting; --list shows all")
    return found


def _command_line(given: argparse.Namespace) -> list[str]:
    """Returns the words of the command that decide the results."""
    words = [f"--config={given.config}"]
    words += [f"--only={given.only}"] if given.only != "*" else []
    for option, listed in (("--try", given.tried), ("--compiler-option", given.compiler_option)):
        words += [f"{option}={n}={v}" for several in listed for o in several for n, v in o.items()]
    words += ["--alone"] if given.alone else []
    return ["tpusim", "flags", *words, given.program]


def _run(given: argparse.Namespace) -> int:
    file, _, name = given.program.rpartition(":")
    if not file or not name:
        raise Error("name a function that returns what to compile: FILE.py:FUNCTION")
    if not os.path.isfile(file):
        raise Error(f"{file}: no such file")
    if given.output is not None:
        files.check_target(given.output, "--output")
    force_cpu_devices(min(slices.devices_of(given.config) or 8, MOST_FORCED_DEVICES))
    build = FromFile(file, name)
    try:
        is_function = callable(build.function())
    except AttributeError as error:
        raise Error(str(error)) from None
    if not is_function:
        raise Error(f"{file}: {name} is no function")
    found = flags(
        build,
        config=given.config,
        settings=_settings(given),
        compiler_options={
            n: v for several in given.compiler_option for o in several for n, v in o.items()
        },
        together=not given.alone,
        cache=given.cache,
        workers=given.workers,
        progress=not given.quiet,
    )
    text = found.to_json(_command_line(given))
    if given.output is not None:
        files.write_atomically(given.output, text.encode())
    commands.show(text if given.json else found.text(given.top, commands.width()))
    if all(entry.step_time_ns is None for entry in (found.default, *found)):
        raise Error("nothing could be simulated")
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    given = _parser().parse_args(argv)
    if given.list:
        print(table())
        return 0
    return commands.code_of(lambda: _run(given))
