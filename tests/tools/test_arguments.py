"""Arguments of `tpusim.simulate` and its neighbours: taken, or refused in one line."""

import fractions
import inspect
import math
import pathlib
import shutil
import stat
from collections.abc import Callable, Iterator
from typing import Any

import numpy
import pytest
import tpusim
from tpusim import arguments, perfetto
from tpusim.sharding import words_of_search
from tpusim.simulation import words_of

from tests.tools.command_line import SLICE, example

PSUM = example("psum")
# Arguments of wrong types, or empty, or such as no command line can carry.
ODD = [
    *(0, 3.5, True, math.nan, 10**400, b"v5e-4x2", [1], {"a": 1}, {1: "a"}, object()),
    *("\0", "\ud800", "--help", "-", numpy.array([0.5, 2]), numpy.float32(1), [[[]]]),
]
PARAMETERS = [
    name
    for name, parameter in inspect.signature(tpusim.simulate).parameters.items()
    if parameter.kind is inspect.Parameter.KEYWORD_ONLY
]


@pytest.fixture
def echo(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """In place of the simulator: a file that gets its words, one a line."""
    path, said = tmp_path / "tpusim", tmp_path / "said"
    path.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {said}\nexit 1\n')
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("TPUSIM_BINARY", str(path))
    return said


def taken(
    echo: pathlib.Path, function: Callable[..., Any], name: str
) -> Iterator[tuple[Any, list[str]]]:
    """Odd values that the simulator gets, with its words; others are refused in one line."""
    for value in ODD:
        echo.unlink(missing_ok=True)
        with pytest.raises((TypeError, ValueError, tpusim.Error)) as raised:
            function(PSUM, **{name: value})
        said = str(raised.value)
        assert "\n" not in said
        if not isinstance(raised.value, TypeError | ValueError):
            yield value, echo.read_text().splitlines()
            continue
        assert name in said
        assert not echo.exists()


@pytest.mark.parametrize("name", PARAMETERS)
def test_odd_values_are_taken_or_refused_in_one_line(echo: pathlib.Path, name: str):
    """No value becomes a word of its own, and no error is one of subprocess."""
    for _, (run, program, *words) in taken(echo, tpusim.simulate, name):
        assert (run, program) == ("run", str(PSUM))
        assert words[0] == "--report"
        assert words[2] == "--quiet"
        if name != "options":
            assert all(word.startswith("--") and "=" in word for word in words[3:]), words


OF_SHARD = [
    name
    for name, parameter in inspect.signature(tpusim.shard).parameters.items()
    if parameter.kind is inspect.Parameter.KEYWORD_ONLY
]


@pytest.mark.parametrize("name", OF_SHARD)
def test_odd_values_of_a_search_for_shardings(
    echo: pathlib.Path, name: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    for value, (shard, program, *words) in taken(echo, tpusim.shard, name):
        assert (shard, program, words[0]) == ("shard", str(PSUM), "--quiet")
        bare = ["--all", "--keep-constraints", "--may-donate"] if isinstance(value, bool) else []
        rest = [word for word in words[1:] if word != "--json"]
        assert len(rest) == len(words) - 2
        assert all(("=" in w and w.startswith("--")) or w in bare for w in rest), words


def test_words_of_a_search_for_shardings(tmp_path: pathlib.Path):
    from jax.sharding import PartitionSpec as P

    given = {
        "axes": ("rows", "columns"),
        "fix": {"x": P(P.UNCONSTRAINED, ("a", "b")), "*/w": "P(?, 'a')", "y": P()},
        "forbid": ["x=P('a')"],
        "gap": numpy.float32(0.5),
        "seconds": numpy.int64(3),
        "prune": False,
        "keep_constraints": True,
        "may_donate": True,
        "may_constrain": ("stream", "mlp/dot_general"),
        "store": tmp_path / "s.sqlite",
    }
    assert words_of_search(**given) == [
        "--axes=rows,columns",
        "--fix=x=P(?, ('a', 'b',))",
        "--fix=*/w=P(?, 'a')",
        "--fix=y=P()",
        "--forbid=x=P('a')",
        "--gap=0.5",
        "--seconds=3",
        "--all",
        "--keep-constraints",
        "--may-donate",
        "--may-constrain=stream",
        "--may-constrain=mlp/dot_general",
        f"--store={tmp_path / 's.sqlite'}",
    ]
    assert words_of_search() == words_of_search(fix=None, gap=0, axes=[], forbid={}) == []


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ({"axes": ["a", "a"]}, ValueError, r"axes: \['a', 'a'\]: expected names, each once and"),
        ({"axes": "a,b"}, ValueError, "axes: 'a,b': expected names"),
        ({"axes": ["a=2"]}, ValueError, r"axes: \['a=2'\]: expected names"),
        ({"fix": {"x": None}}, TypeError, "fix: x: None: expected a PartitionSpec, or its text"),
        ({"fix": {"x": ""}}, ValueError, "fix: x: '': expected a PartitionSpec"),
        ({"forbid": 3}, TypeError, "forbid: 3: expected {argument: PartitionSpec}, or texts"),
        ({"gap": 1.5}, ValueError, "gap: 1.5: expected a share, from 0 to 1"),
        ({"seconds": -1}, ValueError, "seconds: -1: expected seconds, 0 or more"),
        ({"price": 0}, ValueError, "price: 0: expected a price, more than 0"),
        ({"jobs": 0}, ValueError, "jobs: 0: expected a whole number, at least 1"),
        ({"prune": 1}, TypeError, "prune: 1: expected True or False"),
        ({"store": "."}, tpusim.Error, "cannot be written: it is a folder"),
        ({"colour": 1}, TypeError, "tpusim.shard: got an unexpected keyword argument 'colour'"),
        ({"shardings": {"x": "P()"}}, TypeError, "shardings: what is fixed for the search is fix="),
    ],
)
def test_wrong_values_of_a_search_for_shardings(given, error, said):
    with pytest.raises(error, match=said):
        tpusim.shard(PSUM, **given)


def test_a_dimension_is_left_open_only_where_that_means_something():
    from jax.sharding import PartitionSpec as P

    with pytest.raises(TypeError, match=r"shardings: x: .*: expected a PartitionSpec, or its text"):
        tpusim.simulate(PSUM, shardings={"x": P(P.UNCONSTRAINED)})


@pytest.mark.parametrize("name", ["--help", "-", "--", "-x.pb", "--config=v5e-2x2", "run", "%%"])
def test_a_path_is_no_option(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, name: str):
    monkeypatch.chdir(tmp_path)
    expected = tpusim.simulate(PSUM, config=SLICE)
    shutil.copy(PSUM, tmp_path / name)
    shutil.copy(PSUM, tmp_path / "step.pb")
    for path in (name, pathlib.Path(name)):
        report = tpusim.simulate(path, config=SLICE)
        assert report == expected
        assert tpusim.run(path, config=SLICE)["step_time_ns"] == expected.step_time_ns
    tpusim.run("step.pb", config=SLICE, trace=f"{name}.json")
    assert (tmp_path / f"{name}.json").stat().st_size > 0
    (tmp_path / name).unlink()
    report.save(f"{name}.report")
    assert tpusim.Report.load(f"{name}.report") == expected
    with pytest.raises(tpusim.Error, match="No such file or directory"):
        tpusim.simulate(name, config=SLICE)
    with pytest.raises(tpusim.Error, match="No such file or directory"):
        tpusim.advise(name, config=SLICE)


def test_plain_values_become_words():
    given = {
        "config": pathlib.Path("-slice.json"),
        "trip_counts": {"while=3": numpy.int64(2), "*": 4.0},
        "settings": {
            "chip.clock_hz": "2x",
            "a": 1.5e12,
            "b": numpy.float32(2),
            "c": 7,
            "compiler.products_in_vmem": False,
        },
        "branches": {"c": numpy.int32(1), "d": "longest"},
        "ragged": {
            "a": "uniform",
            "b": numpy.array([128, 64]),
            "c": [0.5, 1e-7, fractions.Fraction(1, 4)],
            "d": [128.0, 64.0],  # more than all: rows
            "e": [1.0, 0],
        },
        "routing": pathlib.PurePath("counts.json"),
        "xla_flags": "--xla_a=1",
        "device_order": range(3),
        "algorithm": "best",
        "slow": ["chip=3:0.9", "chip=2:0.8"],
        "link": (),
        "fold": "off",
    }
    assert words_of(**given) == [
        "--config=-slice.json",
        "--trip-count=while=3=2",
        "--trip-count=*=4",
        "--set=chip.clock_hz=2x",
        "--set=a=1500000000000.0",
        "--set=b=2.0",
        "--set=c=7",
        "--set=compiler.products_in_vmem=false",
        "--branch=c=1",
        "--branch=d=longest",
        "--ragged=a=uniform",
        "--ragged=b=128,64",
        "--ragged=c=0.5,0.000000100000000,0.25",
        "--ragged=d=128,64",
        "--ragged=e=1.0,0.0",
        "--routing=counts.json",
        "--xla-flags=--xla_a=1",
        "--device-order=0,1,2",
        "--algorithm=best",
        "--slow=chip=3:0.9",
        "--slow=chip=2:0.8",
        "--fold=off",
    ]


@pytest.mark.parametrize(
    ("name", "value", "error", "said"),
    [
        ("settings", [("a", 1)], TypeError, r"settings: \[\('a', 1\)\]: expected {parameter: valu"),
        ("settings", {"a": True}, TypeError, "settings: a: True: expected a finite number, or"),
        ("settings", {"a": math.inf}, ValueError, "settings: a: inf: expected a finite number"),
        ("settings", {"a=b": 1}, ValueError, "settings: the name: 'a=b': expected a parameter"),
        ("trip_counts", {"w": 1.5}, ValueError, "trip_counts: w: 1.5: expected a whole number"),
        ("trip_counts", {"w": "4"}, TypeError, "trip_counts: w: '4': expected a whole number"),
        ("trip_counts", {"w": -1}, ValueError, "trip_counts: w: -1: expected a whole number, 0"),
        ("trip_counts", {"w": 2**63}, ValueError, "trip_counts: w: 9223372036854775808: expected"),
        ("trip_counts", {"": 1}, ValueError, "trip_counts: the name: '': expected text"),
        ("kernel_costs", {"k": 1e9}, TypeError, "kernel_costs: k: 1000000000.0: expected a dict"),
        ("kernel_costs", {"k": {"flops": 0.5}}, ValueError, "kernel_costs: k: flops: 0.5: expecte"),
        (
            "kernel_costs",
            {"k": {"seconds": 0}},
            ValueError,
            "k: seconds: 0: expected a time in sec",
        ),
        ("kernel_costs", {"k": {"seconds": "2us"}}, TypeError, "k: seconds: '2us': expected a ti"),
        ("kernel_costs", {"k": {"flop": 1}}, ValueError, "kernel_costs: k: 'flop': expected whole"),
        (
            "branches",
            {"c": "shortest"},
            ValueError,
            'branches: c: .*: expected the .* or "longest"',
        ),
        ("ragged", {"r": [0.5, 0.75, 0.1]}, ValueError, "ragged: r: .*: expected rows, such as"),
        ("ragged", {"r": []}, ValueError, r"ragged: r: \[\]: expected rows"),
        ("device_order", [], ValueError, r"device_order: \[\]: expected \"ids\", or the number"),
        ("device_order", [0, 1.5], ValueError, "device_order: 1.5: expected"),
        ("fold", True, TypeError, 'fold: True: expected "auto", "on", "off" or "approximate"'),
        ("options", "--verbose", TypeError, "options: '--verbose': expected a list of words"),
        ("config", None, TypeError, "config: None: expected the name of a slice"),
        ("coordinates", [(0, 0, 0, 0, 0, 0)], ValueError, "coordinates: .*: expected"),
    ],
)
def test_wrong_values_are_named(name, value, error, said):
    with pytest.raises(error, match=said):
        tpusim.simulate(PSUM, **{name: value})


def test_costs_of_kernels_may_be_whole_floats():
    costs = {"k": {"flops": 2e9, "bytes_accessed": numpy.float64(16)}}
    assert arguments.kernel_costs(costs) == {"k": {"flops": 2_000_000_000, "bytes_accessed": 16}}
    plain = tpusim.simulate(PSUM, config=SLICE, kernel_costs={"k": {"flops": 2}})
    assert tpusim.simulate(PSUM, config=SLICE, kernel_costs={"k": {"flops": 2.0}}) == plain


@pytest.mark.parametrize("program", [None, 3, ["step.pb"], {}, math.nan])
def test_what_is_no_program(program):
    with pytest.raises(TypeError, match=r"program: .*: expected a function, a tpusim.Workload, St"):
        tpusim.simulate(program)


def test_bytes_are_no_path():
    with pytest.raises(tpusim.Error, match="this is no StableHLO"):
        tpusim.simulate(b"step.pb", config=SLICE)


@pytest.mark.parametrize("path", ["", "a\0b", "\ud800"])
def test_what_is_no_path(path):
    for take in (tpusim.simulate, tpusim.run, tpusim.advise, tpusim.Report.load):
        with pytest.raises(ValueError, match=r"path|no file can have this name"):
            take(path)


def test_the_slice_goes_by_its_name():
    with pytest.raises(TypeError, match="arguments: only with a function: name the slice with"):
        tpusim.simulate(PSUM, SLICE)


@pytest.mark.parametrize(
    ("binary", "said"),
    [
        ("/no/such/binary", "TPUSIM_BINARY=/no/such/binary: no such file; set it to the"),
        (str(PSUM), f"TPUSIM_BINARY={PSUM}: not an executable file"),
        (str(PSUM.parent), f"TPUSIM_BINARY={PSUM.parent}: not an executable file"),
        ("true", "true .*: no report, but ''"),
        ("echo", "echo .*: no report, but 'run .*psum.pb.gz --report"),
        ("false", "false: exit code 1"),
    ],
)
def test_a_binary_that_is_none(monkeypatch: pytest.MonkeyPatch, binary: str, said: str):
    monkeypatch.setenv("TPUSIM_BINARY", binary)
    with pytest.raises(tpusim.Error, match=said) as raised:
        tpusim.simulate(PSUM, config=SLICE)
    assert "\n" not in str(raised.value)


def test_options_that_print_something_else():
    with pytest.raises(tpusim.Error, match=r"--help: no report, but 'Usage: tpusim run"):
        tpusim.simulate(PSUM, options=["--help"])


@pytest.mark.parametrize("reports", [None, 3, "report", [None], {"a": "report"}])
def test_what_is_not_compared(reports):
    with pytest.raises(TypeError, match=r"reports: .*: expected reports, as a list or as {name"):
        tpusim.compare(reports)


@pytest.mark.parametrize("chip", [-1, "0", None, 0.5, "--help"])
def test_a_chip_is_a_number(chip):
    report = tpusim.simulate(PSUM, config=SLICE)
    with pytest.raises((TypeError, ValueError), match=r"chip: .*: expected the number of a chip"):
        report.timeline(chip)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"hlo_module": "text"}, "hlo_module: 'text': expected bytes"),
        ({"num_partitions": "8"}, "num_partitions: '8': expected a whole number"),
        ({"name": 3}, "name: 3: expected text"),
        ({"config": None}, "config: None: expected text"),
    ],
)
def test_fields_of_a_workload(changed, said):
    with pytest.raises(TypeError, match=said):
        tpusim.simulate(tpusim.Workload(**{"hlo_module": b"", **changed}))


def test_a_program_in_memory_has_no_path():
    with pytest.raises(tpusim.Error, match=r"error: the workload: the workload holds no HLO"):
        tpusim.simulate(tpusim.Workload(b""))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"port": 70000}, "port: 70000: expected a port, 0 to 65535"),
        ({"port": "a"}, "port: 'a': expected a port"),
        ({"timeout": math.nan}, "timeout: nan: expected seconds, more than 0"),
        ({"timeout": -1}, "timeout: -1: expected seconds, more than 0"),
        ({"path": "/no/such"}, "/no/such: cannot be read: No such file or directory"),
    ],
)
def test_no_browser_opens_for_what_is_wrong(given, said):
    def browse(url: str) -> None:
        pytest.fail(url)

    with pytest.raises(tpusim.Error, match=said):
        perfetto.open_trace(**{"path": PSUM, "port": 0, "browse": browse, **given})
