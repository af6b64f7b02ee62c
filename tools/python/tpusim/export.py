"""`tpusim.export(...)` in Python, `python -m tpusim.export` in a shell.

The module is callable, so that the function and the command can share their name; see
`help(tpusim.export.export)` for the function.

The command exports from a script, in one of two ways, or converts a file:

    python -m tpusim.export script.py:function --config v5e-4x2 -o step.pb

calls `function()` of the script, which returns what to export: `(step, arguments)` or
`(step, arguments, keyword_arguments)`, where `step` is a function, jitted or not, and `arguments`
are arrays or `jax.ShapeDtypeStruct`s that carry their shardings:

    def function():
        mesh = jax.sharding.AbstractMesh((4, 2), ("x", "y"), (jax.sharding.AxisType.Auto,) * 2)
        sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("x", "y"))
        return step, (jax.ShapeDtypeStruct((1024, 1024), "bfloat16", sharding=sharding),)

    python -m tpusim.export train.py --config v5e-4x2 -o step.pb -- --batch 32

runs the script as it is, with the arguments after `--`, and exports its step: the jitted function
that computes most, found when it is called again, or at the end of the script. `--function` names
another, which is exported at its first call. No jitted function is executed: those before it return
placeholders, with shapes, and zeros to whoever looks at elements. `--list` runs the script to its
end in this way, and says which functions there are.

    python -m tpusim.export -m maxtext.trainers.pre_train.train --config v5e-4x2 -- model_name=...

runs a module in the same way, as `python -m` does.

    python -m tpusim.export program.mlir --config v5e-4x2 -o step.pb

converts a program in StableHLO: text, bytecode, or what `jax.export` serialised, with the shardings
and source locations in it.

Scripts see as many CPU devices in JAX as the slice has (`--devices` overrides), so that they can
build their mesh from `jax.devices()`, and `sys.argv` is that of the script: its path, and the
arguments after `--`.
"""

import argparse
import contextlib
import difflib
import importlib.machinery
import inspect
import multiprocessing
import os
import re
import select
import signal
import sys
import types
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, NoReturn, TextIO

from tpusim import arguments as checks
from tpusim import files, scripts, stablehlo_files
from tpusim.capturing import Reached, capture, listed_calls
from tpusim.cpu_devices import MOST_FORCED_DEVICES, force_cpu_devices
from tpusim.errors import CaptureError, Error
from tpusim.seeing import seen_as
from tpusim.slices import devices_of
from tpusim.workload import Workload

_DEFAULT_DEVICES = 8
# More CPU devices than that take minutes, and gigabytes.
_MOST_DEVICES = 1 << 16
# A time with its unit; units as exponents of a second.
_DURATION = re.compile(r"(\d+\.?\d*|\.\d+)(ps|ns|us|ms|s)", re.ASCII)
_EXPONENTS = {"ps": "e-12", "ns": "e-9", "us": "e-6", "ms": "e-3", "s": "e0"}


class UsageError(ValueError):
    """The command line or the script does not say what to export."""


def export(
    function: Any,
    *arguments: Any,
    path: str | os.PathLike[str] | None = "workload.pb",
    config: str | os.PathLike[str] = "",
    name: str = "",
    coordinates: Sequence[Sequence[int]] | None = None,
    trip_counts: Mapping[str, int] | None = None,
    kernel_costs: Mapping[str, Mapping[str, float]] | None = None,
    compiled: bool = False,
    compiler_options: Mapping[str, Any] | None = None,
    **keyword_arguments: Any,
) -> Workload:
    """Lowers `function` for TPU and writes it, with what HLO does not carry, to `path`.

    Args:
      function: a function, jitted or not, what `jax.jit(...).lower(...).compile()` has made of
        one for TPUs, real ones or those of a topology, or a program in StableHLO:
        `jax.jit(...).lower(...)`, a `jax.export.Exported`, text, bytes, or the path of a file.
      *arguments: what it would be called with: arrays, or `jax.ShapeDtypeStruct`s whose `sharding`
        is a `NamedSharding` over a mesh of CPU devices or over an `AbstractMesh`.
      path: where to write, compressed by gzip if it ends in `.gz`; None writes nothing.
      config: the slice this is meant for ("v5e-4x2"), the default of `tpusim run`.
      name: what reports call the program; the function's name if empty.
      coordinates: chip coordinates (x, y[, z[, core[, slice]]]) of partition 0, 1, ...; without
        them the slice's usual device order holds, unless the mesh is of real TPU devices.
      trip_counts: {loop name or glob: count} for loops that depend on data.
      kernel_costs: {kernel name or glob: {"flops": ..., "bytes_accessed": ..., "transcendentals":
        ..., "remote_bytes": ...}} for opaque kernels, per call and device. Pallas kernels need
        none: they cost what their bodies say. {"seconds": 12.5e-6} says how long a call takes, and
        leaves what else is known of it.
      compiled: whether the TPU compiler compiles the program, ahead of time, for the slice of
        `config`; the workload then has the module that a TPU would run, and is simulated as it is.
        Needs the `libtpu` wheel, and no TPU.
      compiler_options: of the TPU compiler, {"xla_tpu_scoped_vmem_limit_kib": 65536}, beside those
        in the environment variable LIBTPU_INIT_ARGS.
      **keyword_arguments: passed on to `function`.

    Returns:
      The workload that was written.
    """
    from tpusim import exporter

    target = files.path_of(path, "path") if path is not None else ""
    workload = exporter.exported(
        function,
        arguments,
        keyword_arguments,
        config=config,
        name=name,
        coordinates=coordinates,
        trip_counts=trip_counts,
        kernel_costs=kernel_costs,
        compiled=compiled,
        compiler_options=compiler_options,
    )
    if target:
        workload.save(target)
    return workload


def _kernel_cost(text: str) -> tuple[str, dict[str, float]]:
    """NAME=FLOPS,BYTES, NAME=TIME or all three, as `tpusim run --kernel-cost` reads it."""
    name, _, figures = text.rpartition("=")
    *amounts, last = figures.split(",")
    cost: dict[str, float] = {}
    if duration := _DURATION.fullmatch(last):
        cost["seconds"] = float(duration[1] + _EXPONENTS[duration[2]])
    else:
        amounts.append(last)
    try:
        cost |= zip(("flops", "bytes_accessed"), map(float, amounts), strict=bool(amounts))
        checks.kernel_costs({name: cost})
    except ValueError:
        name = ""
    if not name:
        expected = "NAME=FLOPS,BYTES, such as flash*=2.2e9,1.6e7, in whole numbers"
        times = "NAME=TIME, such as flash*=12.5us, nor NAME=FLOPS,BYTES,TIME"
        raise argparse.ArgumentTypeError(f"{text!r} is not {expected}, nor {times}")
    return name, cost


def _trip_count(text: str) -> tuple[str, int]:
    """LOOP=N, as `tpusim run --trip-count` reads it."""
    loop, _, count = text.rpartition("=")
    if not loop or not (count.isascii() and count.isdecimal()):
        raise argparse.ArgumentTypeError(f"{text!r} is not LOOP=N, such as while.3=10 or *=4")
    return loop, int(count)


def _compiler_option(text: str) -> tuple[str, str]:
    """NAME=VALUE, with or without dashes before the name."""
    name, _, value = text.lstrip("-").partition("=")
    try:
        checks.compiler_options({name: value})
    except ValueError:
        name = ""
    if not name or not value:
        expected = "NAME=VALUE, such as xla_tpu_scoped_vmem_limit_kib=65536"
        raise argparse.ArgumentTypeError(f"{text!r} is not {expected}")
    return name, value


def _devices(text: str) -> int:
    """At least one CPU device, and no more than a machine can pretend to have."""
    if not (text.isascii() and text.isdecimal() and 1 <= int(text[:9]) <= _MOST_DEVICES):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to {_MOST_DEVICES}")
    return int(text)


class _Script(NamedTuple):
    """A file to run, and the function of it or the module that it is, if one is named."""

    path: str
    function: str = ""
    module: importlib.machinery.ModuleSpec | None = None


def _export_function(script: str, name: str, output: str, **given: Any) -> Workload:
    from tpusim import exporter

    with seen_as(given["config"]):
        module = scripts.load(script)
        function = getattr(module, name, None)
        if not callable(function):
            names = [n for n, value in vars(module).items() if callable(value)]
            nearest = difflib.get_close_matches(name, names, n=1)
            hint = f"; did you mean {nearest[0]!r}?" if nearest else ""
            raise UsageError(f"{script} has no function {name!r}{hint}")
        try:
            described = function()
        except SystemExit as end:
            raise UsageError(f"{script}:{name} ends by {scripts.exit_of(end)}") from end
    if (
        not isinstance(described, tuple)
        or len(described) not in (2, 3)
        or not callable(described[0])
        or not isinstance(described[1], tuple | list)
        or not isinstance((*described, {})[2], Mapping)
    ):
        raise UsageError(
            f"{script}:{name} must return (function, arguments) or (function, arguments, "
            f"keyword_arguments), not {type(described).__name__}; to export a call that the "
            "script makes itself, leave out the function"
        )
    step, arguments, keywords = (*described, {})[:3]
    workload = exporter.exported(step, arguments, keywords, name=name, **given)
    workload.save(output)
    return workload


def _capture_script(script: _Script, function: str, output: str, **given: Any) -> Workload:
    with capture(output, function=function, largest=not function, **given) as captured:
        scripts.run(script.path, script.module)
    assert captured.workload is not None
    taken, others = str(captured.taken), dict.fromkeys(map(str, captured.reached))
    others.pop(taken)
    why = "" if function else ", which computes most" if others else ", the only jitted function"
    called = f"; called besides: {', '.join(others)}" if others else ""
    print(f"captured {taken}{why}{called}")
    return captured.workload


def _convert(program: str, output: str, **given: Any) -> Workload:
    from tpusim import exporter

    workload = exporter.exported(program, (), {}, **given)
    workload.save(output)
    return workload


def _list_calls(script: _Script, config: str) -> None:
    calls: list[Reached] = []

    def found(reached: Reached) -> None:
        print(f"{reached}: {reached.arguments}", flush=True)

    try:
        with listed_calls(config=config, found=found) as calls:
            scripts.run(script.path, script.module)
    except SystemExit as end:
        if end.code:
            raise CaptureError(
                f"tpusim.export: {script.path} ended by {scripts.exit_of(end)}"
            ) from end
    finally:
        # Also of a script that fails, or exits.
        if again := [f"{reached} {reached.calls} times" for reached in calls if reached.calls > 1]:
            print(f"called again: {', '.join(again)}", flush=True)
    if not calls:
        raise CaptureError(f"tpusim.export: {script.path} calls no jitted function")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tpusim.export",
        usage="%(prog)s [options] SCRIPT.py[:FUNCTION]|-m MODULE|PROGRAM.mlir "
        "[-- arguments of the script]",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    program = parser.add_mutually_exclusive_group(required=True)
    program.add_argument("script", metavar="SCRIPT.py[:FUNCTION]|PROGRAM.mlir", nargs="?")
    program.add_argument("-m", dest="module", metavar="MODULE", help="run a module as a script")
    parser.add_argument("-o", "--output", default="workload.pb", help="default: %(default)s")
    parser.add_argument("--config", default="", help="the slice, for example v5e-4x2")
    parser.add_argument(
        "--devices", type=_devices, metavar="N", help="CPU devices that JAX shows to the script"
    )
    parser.add_argument(
        "--function",
        default="",
        metavar="NAME",
        help="capture the jitted function of that name, or defined at that FILE:LINE; others "
        "return placeholders",
    )
    parser.add_argument(
        "--list",
        action="store_true",
        help="list the jitted functions that the script calls, with arguments; export nothing",
    )
    parser.add_argument(
        "--trip-count",
        metavar="LOOP=N",
        type=_trip_count,
        action="append",
        default=[],
        help="how often a loop on data runs, also one inside a kernel; a name or a glob",
    )
    parser.add_argument(
        "--kernel-cost",
        metavar="NAME=[FLOPS,BYTES][,TIME]",
        type=_kernel_cost,
        action="append",
        default=[],
        help="what one call of an opaque kernel costs on one device, or how long it takes, such as "
        "12.5us; a name or a glob",
    )
    parser.add_argument(
        "--compiled",
        action="store_true",
        help="compile with the TPU compiler, ahead of time, for the slice of --config; needs the "
        "libtpu wheel, and no TPU",
    )
    parser.add_argument(
        "--compiler-option",
        metavar="NAME=VALUE",
        type=_compiler_option,
        action="append",
        default=[],
        help="of the TPU compiler, with --compiled, such as xla_tpu_scoped_vmem_limit_kib=65536",
    )
    return parser


def _show_warning(message: Warning | str, category: type[Warning], *place: Any) -> None:
    """A line for what the export is not sure of; other warnings as Python shows them."""
    if category.__name__ == "ExportWarning":
        print(f"tpusim.export: warning: {message}", file=sys.stderr)
    else:
        _python_shows(message, category, *place)


_python_shows = warnings.showwarning


def _script_of(options: argparse.Namespace) -> _Script:
    """SCRIPT.py[:FUNCTION], where a file may have a colon in its name, or the file of a module."""
    if options.module:
        spec = scripts.module_of(options.module)
        return _Script(str(spec.origin), module=spec)
    path, name = options.script, ""
    if ":" in path and not os.path.isfile(path):
        path, _, name = path.rpartition(":")
        if not name:
            raise UsageError(f"{options.script}: names no function after the colon")
    if not os.path.isfile(path):
        what = "a folder, not a script" if os.path.isdir(path) else "no such file"
        raise UsageError(f"{path}: {what}")
    return _Script(path, name)


def _export(options: argparse.Namespace, script_arguments: Sequence[str]) -> int:
    script = _script_of(options)
    # The script may go to another folder.
    output = os.path.abspath(files.check_target(options.output, "--output"))
    given = {
        "config": options.config,
        "trip_counts": dict(options.trip_count),
        "kernel_costs": dict(options.kernel_cost),
        "compiled": options.compiled,
        "compiler_options": dict(options.compiler_option),
    }
    if not script.function and stablehlo_files.holds(script.path):
        if options.list or options.function or script_arguments:
            raise UsageError("--list, --function and arguments are of scripts, not of StableHLO")
        return _told(options.output, _convert(script.path, output, **given))
    with scripts.command_line(script.path, script_arguments):
        if options.list:
            if script.function or options.function:
                raise UsageError("--list is of a whole script: leave out the function")
            _list_calls(script, options.config)
            return 0
        if script.function:
            workload = _export_function(script.path, script.function, output, **given)
        else:
            workload = _capture_script(script, options.function, output, **given)
    return _told(options.output, workload)


def _told(output: str, workload: Workload) -> int:
    """Prints what has been written, and returns the exit code."""
    axes = " x ".join(f"{a.name}={a.size}" for a in workload.mesh) or "no mesh"
    print(f"{output}: {workload.name}, {workload.num_partitions} partitions ({axes})")
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns its exit code, that of the script if it ends by itself."""
    words = list(sys.argv[1:] if argv is None else argv)
    split = words.index("--") if "--" in words else len(words)
    options, script_arguments = _parser().parse_args(words[:split]), words[split + 1 :]
    devices = options.devices or devices_of(options.config) or _DEFAULT_DEVICES
    force_cpu_devices(devices if options.devices else min(devices, MOST_FORCED_DEVICES))
    # As scripts see it that Python runs itself, plus the directory the command is given in.
    sys.path.insert(0, os.getcwd())
    warnings.showwarning = _show_warning
    try:
        return _export(options, script_arguments)
    except CaptureError as error:
        print(error, file=sys.stderr)
        return _exit_code(error)
    except (Error, UsageError) as error:
        print(f"tpusim.export: {error}", file=sys.stderr)
        return _exit_code(error)
    except KeyboardInterrupt:
        print("tpusim.export: interrupted", file=sys.stderr)
        return 128 + signal.SIGINT
    except Exception as error:
        if isinstance(error, BrokenPipeError) and not _is_read(sys.stdout):
            return 128 + signal.SIGPIPE
        scripts.show(error)
        return 1


def _exit_code(error: Exception) -> int:
    """Returns the exit code of a script that ended by itself with a failure; 1 otherwise."""
    end = error.__cause__
    code = end.code if isinstance(end, SystemExit) else None
    return code if isinstance(code, int) and code != 0 else 1


def _is_read(stream: TextIO) -> bool:
    """Whether a process still reads the stream: `... | head -1` does not."""
    try:
        poll = select.poll()
        poll.register(stream.fileno(), select.POLLOUT)
        return not any(event & select.POLLERR for _, event in poll.poll(0))
    except (OSError, ValueError):
        return True  # It is no file.


def _leave(code: int) -> NoReturn:
    """Ends the process without what the script has left to be run at its end.

    It was stopped on its way, or has computed with placeholders: handlers that save checkpoints or
    close connections have nothing to do, and threads that it waits for may never end.
    """
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # Nobody reads it any more.
            stream.flush()
    for child in multiprocessing.active_children():
        child.terminate()
    os._exit(code)


class _CallableModule(types.ModuleType):
    def __call__(self, *args: Any, **kwargs: Any) -> Workload:
        return export(*args, **kwargs)


# `inspect.signature(tpusim.export)` reads it.
__signature__ = inspect.signature(export)

if __name__ == "__main__":
    _leave(main())
sys.modules[__name__].__class__ = _CallableModule
