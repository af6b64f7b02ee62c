"""Files that Python reads and writes: whatever they hold, one line that names the file."""

import copy
import gzip
import json
import os
import pathlib
import random
import stat
from typing import Any

import pytest
import tpusim
from tpusim import files

from tests.tools.command_line import SLICE, example, example_bytes

# Enough to have met every kind of place a few times; more by hand.
MUTATIONS = 300


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], bytes, bytes]:
    """A report as JSON, the text of it, and the trace."""
    folder = tmp_path_factory.mktemp("report")
    made = tpusim.simulate(example("allgather_matmul_int32"), config=SLICE)
    made.save(folder / "r.json", trace=folder / "t.pftrace")
    text = (folder / "r.json").read_bytes()
    return json.loads(text), text, (folder / "t.pftrace").read_bytes()


def said_of(load: Any, path: pathlib.Path) -> str:
    """The one line of the error, without the file; "" if there is none."""
    try:
        load(path)
    except tpusim.Error as error:
        said = str(error)
    else:
        return ""
    assert said.startswith(f"{path}: ")
    assert "\n" not in said
    return said.removeprefix(f"{path}: ")


def refused(load: Any, path: pathlib.Path) -> str:
    """Returns the error of loading a file that must be refused."""
    said = said_of(load, path)
    assert said
    return said


KINDS = {
    "missing": (None, "cannot be read: No such file or directory"),
    "empty": (b"", "not a report of tpusim: it is empty"),
    "gzip": (gzip.compress(b"{}"), "not a report of tpusim: it is compressed with gzip; unpack it"),
    "bytes": (b'{"a": "\xff"}', "not a report of tpusim: it is no text (byte 7 is no UTF-8)"),
    "text": (b"workload  psum", "not a report of tpusim: not JSON at line 1, column 1: Expecting"),
    "list": (b"[1, 2]", "not a report of tpusim: a list, not a JSON object"),
    "null": (b"null", "not a report of tpusim: null, not a JSON object"),
    "another": (b'{"a": 1}', "not a report of tpusim: an object without a schema, not of schema"),
    "a search": (
        b'{"schema": "tpusim.search/1"}',
        "not a report of tpusim: its schema is not tpusim.report/1 but 'tpusim.search/1'",
    ),
    "newer": (
        b'{"schema": "tpusim.report/2"}',
        "not a report of tpusim: its schema is not tpusim.report/1 but 'tpusim.report/2': written "
        "by another version of tpusim",
    ),
    "odd schema": (b'{"schema": [1]}', "not a report of tpusim: its schema is not tpusim.report/1"),
    "deep": (b"[" * 100_000, "not a report of tpusim: the JSON is nested too deeply"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_report(tmp_path: pathlib.Path, kind: str):
    data, said = KINDS[kind]
    if data is not None:
        (tmp_path / "r.json").write_bytes(data)
    assert refused(tpusim.Report.load, tmp_path / "r.json").startswith(said)


def test_a_folder_a_trace_and_a_workload_are_no_report(tmp_path: pathlib.Path, report):
    assert refused(tpusim.Report.load, tmp_path) == "cannot be read: Is a directory"
    (tmp_path / "t").write_bytes(report[2])
    assert "it is no text" in refused(tpusim.Report.load, tmp_path / "t")
    (tmp_path / "w").write_bytes(example_bytes("psum"))
    assert "it is no text" in refused(tpusim.Report.load, tmp_path / "w")
    with pytest.raises(TypeError, match="path: 3: expected the path of a file"):
        tpusim.Report.load(3)
    with pytest.raises(TypeError, match="text: bytes: expected a str"):
        tpusim.Report.from_json(report[1])


def test_a_report_that_is_cut_off(tmp_path: pathlib.Path, report):
    """At every hundredth byte, within strings, numbers and names."""
    path, text = tmp_path / "r.json", report[1]
    for length in range(1, len(text) - 2, max(1, len(text) // 100)):
        path.write_bytes(text[:length])
        assert refused(tpusim.Report.load, path).startswith("not a report of tpusim: ")
    for cut in (text.index(b"flops") - 1, text.index(b"flops") + 2):
        path.write_bytes(text[:cut])
        line = text.count(b"\n", 0, cut) + 1
        assert f"the JSON is cut off at line {line}, " in refused(tpusim.Report.load, path)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Returns the places in a JSON value."""
    if not isinstance(value, dict | list):
        return [path]
    items = value.items() if isinstance(value, dict) else enumerate(value)
    return [path, *(p for key, v in items for p in places(v, (*path, key)))]


def test_a_report_with_something_else_in_a_place(tmp_path: pathlib.Path, report):
    """Read with what is there, or refused with the name of the place."""
    path = tmp_path / "r.json"
    everywhere = [p for p in places(report[0]) if p]
    chosen = random.Random(1)
    refusals = 0
    for _ in range(MUTATIONS):
        place = chosen.choice(everywhere)
        wrong = chosen.choice([None, "x", -1.5, {}, [], True, 10**400, "missing"])
        changed = copy.deepcopy(report[0])
        inside = changed
        for step in place[:-1]:
            inside = inside[step]
        if wrong == "missing":
            del inside[place[-1]]
        else:
            inside[place[-1]] = wrong
        path.write_text(json.dumps(changed))
        if said := said_of(tpusim.Report.load, path):
            refusals += 1
            named = [step for step in place if isinstance(step, str)][-1]
            assert said.startswith("not a report of tpusim: ")
            assert named in said, (place, wrong, said)
    assert refusals > MUTATIONS // 2


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda r: r.pop("mfu"), "mfu is missing"),
        (lambda r: r["bound_ns"].pop("ici"), "bound_ns.ici is missing"),
        (lambda r: r.update(flops=1.5), "flops: a number (1.5) instead of a whole number"),
        (lambda r: r.update(ops={}), "ops: an object instead of a list"),
        (lambda r: r["ops"].insert(1, None), "ops[1]: null instead of an object"),
        (lambda r: r["ops"][0].update(name=3), "ops[0].name: a whole number (3) instead of a stri"),
        (lambda r: r.update(mfu=float("nan")), "NaN is not a number of JSON"),
        (lambda r: r.update(warnings="all"), "warnings: a string ('all') instead of a list"),
    ],
)
def test_the_place_is_named(tmp_path: pathlib.Path, report, change, said):
    changed = copy.deepcopy(report[0])
    change(changed)
    (tmp_path / "r.json").write_text(json.dumps(changed))
    found = refused(tpusim.Report.load, tmp_path / "r.json")
    assert found.startswith(f"not a report of tpusim: {said}")


def test_traces_and_workloads_that_are_damaged(tmp_path: pathlib.Path, report):
    """Cut off, and with bytes changed: read, or refused in a line."""
    chosen, path = random.Random(2), tmp_path / "damaged"
    for load, data in (
        (tpusim.Timeline.load, report[2][:20_000]),
        (tpusim.Workload.load, example_bytes("psum")),
    ):
        for number in range(MUTATIONS):
            at = chosen.randrange(len(data))
            changed = data[:at] if number % 2 else data[:at] + b"\xff\x07" + data[at + 2 :]
            path.write_bytes(changed)
            said_of(load, path)


def test_what_is_no_trace_and_no_workload(tmp_path: pathlib.Path, report):
    for load, what in ((tpusim.Timeline.load, "trace"), (tpusim.Workload.load, "workload")):
        assert refused(load, tmp_path) == "cannot be read: Is a directory"
        for name, (data, _) in KINDS.items():
            if data is not None:
                (tmp_path / "file").write_bytes(data)
                said = refused(load, tmp_path / "file")
                assert said.startswith((f"not a {what} of tpusim: ", f"a {what} that tpusim"))
                assert ("unpack it" in said) == (name == "gzip" and what == "trace")
    packed = example("psum").read_bytes()
    (tmp_path / "cut").write_bytes(packed[: len(packed) // 2])
    assert "its gzip data is damaged" in refused(tpusim.Workload.load, tmp_path / "cut")
    (tmp_path / "cut").write_bytes(report[2][:-200])
    assert "past the end" in refused(tpusim.Timeline.load, tmp_path / "cut")
    with pytest.raises(TypeError, match="data: str: expected bytes"):
        tpusim.Workload.from_bytes("")


def test_a_workload_is_compressed_if_its_name_says_so(tmp_path: pathlib.Path):
    workload = tpusim.Workload.load(example("psum"))
    for name in ("w.pb", "w.pb.gz", "again.pb.gz"):
        workload.save(tmp_path / name)
        assert tpusim.Workload.load(tmp_path / name) == workload
    plain, packed, again = ((tmp_path / n).read_bytes() for n in ("w.pb", "w.pb.gz", "again.pb.gz"))
    assert plain == example_bytes("psum") == gzip.decompress(packed)
    assert packed == again
    assert packed[4:8] == bytes(4)  # No time in its header.


def test_what_no_file_can_be_written_to(tmp_path: pathlib.Path, report):
    made = tpusim.Report.from_json(report[1].decode())
    (tmp_path / "file").touch()
    before = sorted(tmp_path.rglob("*"))
    for place, why in (
        (tmp_path, "it is a folder"),
        (tmp_path / "no" / "r.json", "No such file or directory"),
        (tmp_path / "file" / "r.json", "Not a directory"),
        ("/dev/full", "No space left on device"),
        (tmp_path / ("x" * 300), "File name too long"),
    ):
        with pytest.raises(tpusim.Error) as raised:
            made.save(place)
        assert str(raised.value) == f"{place}: cannot be written: {why}"
    for place in ("", "\0", None, 3):
        with pytest.raises((TypeError, ValueError), match="path: "):
            made.save(place)
    assert sorted(tmp_path.rglob("*")) == before


def test_no_folder_for_temporary_files(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "no"))
    with pytest.raises(tpusim.Error, match=r"no: No such file or directory; TMPDIR names another"):
        tpusim.simulate(example("psum"), config=SLICE)


def test_links_are_followed_and_devices_stay(tmp_path: pathlib.Path, report):
    made = tpusim.Report.from_json(report[1].decode())
    (tmp_path / "real").mkdir()
    (tmp_path / "link.json").symlink_to(tmp_path / "real" / "r.json")
    made.save(tmp_path / "link.json")
    assert (tmp_path / "link.json").is_symlink()
    assert tpusim.Report.load(tmp_path / "real" / "r.json") == made
    # What a device is in a test that may run as root: a pipe.
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    files.write_atomically(pipe, b"written")
    assert os.read(reader, 100) == b"written"
    os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    files.write_atomically("/dev/null", b"written")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_permissions_of_what_is_replaced_stay(tmp_path: pathlib.Path, report):
    made = tpusim.Report.from_json(report[1].decode())
    for mode in (0o600, 0o640, 0o444):
        made.save(tmp_path / "r.json")
        (tmp_path / "r.json").chmod(mode)
        made.save(tmp_path / "r.json")
        assert stat.S_IMODE((tmp_path / "r.json").stat().st_mode) == mode
        assert tpusim.Report.load(tmp_path / "r.json") == made


def test_what_can_be_written_is_known_before(tmp_path: pathlib.Path):
    assert files.check_target(tmp_path / "new", "path") == str(tmp_path / "new")
    assert files.check_target("/dev/null", "path") == "/dev/null"
    for place, why in (
        (tmp_path, "it is a folder"),
        (tmp_path / "no" / "file", "No such file or directory"),
    ):
        with pytest.raises(tpusim.Error, match=f"cannot be written: {why}"):
            files.check_target(place, "path")
