"""`tpusim shard`: what it finds is what an exhaustive search finds, and runs as it says."""

import json
import pathlib
import random
import re
import shlex
import sqlite3

import pytest

from tests.tools.command_line import example

# Spaces that are small enough to be simulated as a whole.
SMALL = ("matmul_square", "mlp_two_layers", "layers_auto", "residual_mlp_train_scan_fully_sharded")


def shard(run, name: str, *options: str) -> dict:
    done = run("shard", example(name), *options, "--json")
    assert done.returncode == 0, done.stderr
    (answer,) = json.loads(done.stdout)["slices"]
    return answer


def counted(answer: dict) -> int:
    kinds = ("impossible", "excluded_by_memory", "excluded_by_rates", "compiled", "not_looked_at")
    return sum(answer[kind] for kind in kinds)


@pytest.mark.parametrize("name", SMALL)
def test_it_finds_what_an_exhaustive_search_finds(run, name: str):
    bounded = shard(run, name)
    everything = shard(run, name, "--all")
    assert everything["excluded_by_rates"] == everything["excluded_when_compiled"] == 0
    assert everything["simulated"] > bounded["simulated"]
    best = min(row["step_time_ns"] for row in everything["found"])
    assert bounded["found"][0]["step_time_ns"] == best == everything["found"][0]["step_time_ns"]
    assert bounded["gap"] == 0
    assert bounded["lower_bound_ns"] == best
    for answer in (bounded, everything):
        assert counted(answer) == answer["choices"]


def restriction(chosen: random.Random, answer: dict) -> list[str]:
    """Options that fix dimensions of one or two arguments, each open, whole or split by an axis."""
    best = answer["found"][0]
    options = []
    for name in chosen.sample(sorted(best["arguments"]), min(2, len(best["arguments"]))):
        axes = [repr(axis) for axis in best["mesh"]]
        chosen.shuffle(axes)
        entries = [chosen.choice(("?", "None", *axes[:1])) for _ in best["arguments"][name]]
        # An axis splits one dimension of an argument.
        for at, entry in enumerate(entries):
            entries[at] = "?" if entry in axes and entry in entries[:at] else entry
        options += ["--fix", f"{name}=P({', '.join(entries)})"]
    return options


@pytest.mark.parametrize("name", ["matmul_square", "mlp_two_layers", "contract", "batch_roll"])
def test_no_restriction_is_shorter_than_what_is_certified(run, name: str):
    answer = shard(run, name)
    assert answer["gap"] == 0
    assert answer["left_out"] == []
    chosen, found = random.Random(name), 0
    while found < 3:
        done = run("shard", example(name), *restriction(chosen, answer), "--json")
        if done.returncode == 1:
            nothing = ("no sharding is left", "cannot be split", "no valid choice")
            assert any(why in done.stderr for why in nothing), done.stderr
            continue
        (fixed,) = json.loads(done.stdout)["slices"]
        assert fixed["found"][0]["step_time_ns"] >= answer["lower_bound_ns"]
        found += 1


def test_what_is_found_runs_as_it_says(run, report_of):
    answer = shard(run, "mlp_two_layers")
    best = answer["found"][0]
    report = report_of("mlp_two_layers", *best["options"])
    assert report["step_time_ns"] == best["step_time_ns"]
    assert report["peak_hbm_bytes"] == best["peak_hbm_bytes"]
    assert answer["as_it_is"]["step_time_ns"] == report_of("mlp_two_layers")["step_time_ns"]
    assert best["step_time_ns"] < answer["as_it_is"]["step_time_ns"]


def test_the_command_that_it_prints(run):
    done = run("shard", example("layers_auto"))
    assert done.returncode == 0, done.stderr
    (command,) = re.findall(r"^# tpusim (run .*)$", done.stdout, re.MULTILINE)
    found = re.search(r"^found +([\d.]+ us)", done.stdout, re.MULTILINE)
    assert found
    again = run(*shlex.split(command))
    assert f"step time      {found.group(1)}" in again.stdout
    assert re.search(r"^certified +nothing in this space is shorter$", done.stdout, re.MULTILINE)
    # Beside the program as it is: the same tables as `tpusim compare`.
    assert re.search(r"^workload +as it is +found +next best$", done.stdout, re.MULTILINE)
    assert "B is " in done.stdout


def test_a_shard_map_keeps_its_mesh(run, report_of):
    answer = shard(run, "moe_all_to_all")
    assert {json.dumps(row["mesh"]) for row in answer["found"]} == {json.dumps({"X": 8})}
    best = answer["found"][0]
    again = report_of("moe_all_to_all", *best["options"])
    assert again["step_time_ns"] == best["step_time_ns"]
    everything = shard(run, "moe_all_to_all", "--all")
    assert everything["found"][0]["step_time_ns"] == best["step_time_ns"]


def test_a_gap_leaves_out_more(run):
    exact = shard(run, "layers_auto")
    rough = shard(run, "layers_auto", "--gap", "0.9")
    assert rough["candidates_compiled"] <= exact["candidates_compiled"]
    assert rough["gap"] <= 0.9
    assert rough["lower_bound_ns"] <= exact["found"][0]["step_time_ns"]


def test_what_is_fixed_and_forbidden(run):
    fixed = shard(run, "mlp_two_layers", "--mesh", "X=4,Y=2", "--fix", "x=P('X', ?)")
    for row in fixed["found"]:
        assert row["mesh"] == {"X": 4, "Y": 2}
        assert row["arguments"]["x"][0] == ["X"]
    forbidden = shard(run, "mlp_two_layers", "--mesh", "X=4,Y=2", "--forbid", "x=P('X', ?)")
    assert forbidden["choices"] < 2 * fixed["choices"] * 4
    for row in forbidden["found"]:
        assert row["arguments"]["x"][0] != ["X"]


def test_what_is_fixed_is_found_though_the_program_as_it_is_is_shorter(run):
    free = shard(run, "mlp_two_layers")
    # All devices do all of the work.
    fixed = shard(run, "mlp_two_layers", "--fix", "*=P()")
    assert fixed["as_it_is"]["step_time_ns"] < fixed["found"][0]["step_time_ns"]
    assert fixed["best"] == "found"
    assert fixed["lower_bound_ns"] == fixed["found"][0]["step_time_ns"]
    assert all(axes == [] for axes in fixed["found"][0]["decisions"].values())
    assert free["best"] == "found"


def test_a_constraint_beside_is_in_no_bound(run):
    # It splits products though no argument is split.
    words = ("--fix", "*=P()", "--mesh", "X=2,Y=4", "--constrain", "dot_general.1=P('X', 'Y')")
    answer = shard(run, "mlp_two_layers", *words)
    whole = shard(run, "mlp_two_layers", "--fix", "*=P()", "--mesh", "X=2,Y=4")
    assert 0 < answer["lower_bound_ns"] <= answer["found"][0]["step_time_ns"]
    assert answer["found"][0]["step_time_ns"] < whole["found"][0]["step_time_ns"]
    # The command that is printed has it, too.
    done = run("shard", example("mlp_two_layers"), *words)
    (command,) = re.findall(r"^# tpusim (run .*)$", done.stdout, re.MULTILINE)
    assert "--constrain=dot_general.1=" in command
    step = json.loads(run(*shlex.split(command), "--json").stdout)["step_time_ns"]
    assert step == answer["found"][0]["step_time_ns"]


def test_what_takes_too_many_events_has_its_bound(run):
    done = run("shard", example("mlp_two_layers"), "--max-events", "1", "--json")
    assert done.returncode == 1
    assert "all take more instructions than --max-events" in done.stderr


def test_decisions_are_explained(run):
    done = run("shard", example("mlp_two_layers"), "--explain")
    assert done.returncode == 0, done.stderr
    assert "dimensions of arguments" in done.stdout
    assert "conflicts, if both have one axis" in done.stdout
    assert re.search(r"^choices +528$", done.stdout, re.MULTILINE)
    assert re.search(r"^data=2,model=4 +256$", done.stdout, re.MULTILINE)


def test_another_slice_and_its_price(run):
    done = run("shard", example("mlp_two_layers"), "-c", "v5e-2x2", "-c", "v5e-4x4", "--json")
    small, large = json.loads(done.stdout)["slices"]
    assert (small["chips"], large["chips"]) == (4, 16)
    assert "as_it_is" not in small
    answer = shard(run, "mlp_two_layers", "--price", "1.2")
    seconds = answer["found"][0]["step_time_ns"] * 1e-9
    assert answer["price_per_step"] == pytest.approx(seconds / 3600 * 8 * 1.2)


def test_a_search_goes_on_from_its_store(run, tmp_path: pathlib.Path):
    store = tmp_path / "verdicts.sqlite"
    first = shard(run, "mlp_two_layers", "--store", str(store))
    with sqlite3.connect(store) as db:
        (rows,) = db.execute("SELECT count(*) FROM verdicts").fetchone()
        assert rows == first["candidates_compiled"] - first["equal"]
    again = shard(run, "mlp_two_layers", "--store", str(store))
    best, before = (answer["found"][0]["step_time_ns"] for answer in (again, first))
    assert best == before
    # What was equal to another is asked for: the other may be of no candidate of this search.
    with sqlite3.connect(store) as db:
        (all_rows,) = db.execute("SELECT count(*) FROM verdicts").fetchone()
    assert rows <= all_rows <= first["candidates_compiled"]
    # What decides verdicts decides what is asked for.
    other = shard(run, "mlp_two_layers", "--store", str(store), "--set", "chip.hbm.efficiency=0.5")
    assert other["found"][0]["step_time_ns"] > before


def test_time_ends_a_search_with_what_is_known(run):
    answer = shard(run, "transformer_block_auto", "--seconds", "1")
    assert answer["not_looked_at"] > 0
    assert 0 < answer["gap"] <= 1
    assert counted(answer) == answer["choices"]


def test_the_page(run, tmp_path: pathlib.Path):
    page = tmp_path / "found.html"
    done = run("shard", example("mlp_two_layers"), "--html", str(page), "--price", "2", "-q")
    assert done.returncode == 0, done.stderr
    text = page.read_text()
    for word in ("time over memory", "time over price", "what became of the choices", "to paste"):
        assert word in text


def test_what_cannot_be_is_one_line(rejects, tmp_path: pathlib.Path):
    mlp = example("mlp_two_layers")
    assert "the program has no argument 'weight'" in rejects("shard", mlp, "--fix", "weight=P('X')")
    assert "meshes have no axis 'tensor'; theirs are data, model" in rejects(
        "shard", mlp, "--fix", "x=P('tensor')"
    )
    assert "the axes must divide what they split" in rejects(
        "shard", mlp, "--mesh", "X=3,Y=1", "--fix", "x=P('X')"
    )
    for axes in ("a,a", "a=b", "a,"):
        assert "is no list of names of axes" in rejects("shard", mlp, "--axes", axes, code=2)
    assert "is not ARGUMENT=SPEC" in rejects("shard", mlp, "--fix", "x", code=2)
    assert "--fix ARGUMENT=SPEC" in rejects("shard", mlp, "--shard", "x=P('X')")
    for words in (["--axes", "data,model"], ["--mesh", "x=2,y=2"], ["--config", "v5e-4x4"]):
        said = rejects("shard", example("psum"), *words)
        assert f"{words[0]}: " in said or "v5e-4x4 has 16 devices: " in said
        assert "the program has a shard_map, whose shapes are those of shards of its own" in said
    message = rejects("shard", mlp, "--set", "chip.hbm.bytes=257MiB")
    assert re.search(r"v5e-4x2: nothing fits: the least that was seen needs [\d.]+ MiB of", message)
    text = tmp_path / "text"
    text.write_text("no database, and long enough to be sure that it is none: " + "x" * 100)
    assert "file is not a database; name another file" in rejects("shard", mlp, "--store", text)
