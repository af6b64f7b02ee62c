"""`tpusim.shard`: what `tpusim shard` finds, as typed Python."""

import json
import math
import pathlib
import re

import jax
import jax.numpy as jnp
import pytest
import tpusim
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P
from tpusim import sharding

from tests.tools.command_line import example

CONFIG = "v5e-2x2"


def array(*shape: int, sharding: NamedSharding | None = None) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, jnp.bfloat16, sharding=sharding)


def mlp(params, x):
    return jnp.maximum(x @ params["up"], 0) @ params["down"]


PARAMS = {"up": array(512, 1024), "down": array(1024, 512)}
X = array(1024, 512)


@pytest.fixture(scope="module")
def found() -> tpusim.FoundShardings:
    """Returns shardings found for a program without any."""
    return tpusim.shard(mlp, PARAMS, X, config=CONFIG, jobs=1)


@pytest.fixture(scope="module")
def everything() -> tpusim.FoundShardings:
    """Returns shardings found with every candidate simulated."""
    return tpusim.shard(mlp, PARAMS, X, config=CONFIG, jobs=1, prune=False)


def test_the_best_is_that_of_all(found, everything):
    steps = [choice.step_time_ns for choice in everything.found]
    assert steps == sorted(steps)
    assert found.best.step_time_ns == min(steps)
    assert found.best is found.found[0]
    assert found.gap == everything.gap == 0
    assert found.lower_bound_ns == found.best.step_time_ns
    assert found.as_it_is is None  # It has one device.
    assert found.counts.simulated < everything.counts.simulated
    assert everything.counts.excluded_by_rates == everything.counts.excluded_when_compiled == 0
    for counts in (found.counts, everything.counts):
        parts = (counts.impossible, counts.excluded_by_memory, counts.excluded_by_rates)
        assert sum(parts) + counts.compiled + counts.not_looked_at == counts.choices


def test_it_is_what_the_command_finds(run, found, tmp_path: pathlib.Path):
    tpusim.export(mlp, PARAMS, X, path=tmp_path / "mlp.pb", config=CONFIG)
    done = run("shard", tmp_path / "mlp.pb", "--all", "--json", "--jobs", "1")
    (answer,) = json.loads(done.stdout)["slices"]
    best = answer["found"][0]
    assert best["step_time_ns"] == found.best.step_time_ns
    assert (found.config, found.chips) == (answer["config"], answer["chips"]) == (CONFIG, 4)
    assert found.usable_hbm_bytes == answer["usable_hbm_bytes"]
    of_file = tpusim.shard(tmp_path / "mlp.pb", prune=False, jobs=1)
    assert of_file == tpusim.FoundShardings.from_json(done.stdout)
    assert of_file.best.dims == best["arguments"]
    assert list(of_file.best.options) == best["options"]
    workload = tpusim.Workload.load(tmp_path / "mlp.pb")
    assert tpusim.shard(workload, prune=False, jobs=1) == of_file
    # Which of two equal programs is simulated depends on who is first.
    assert tpusim.shard(workload, jobs=2).best.step_time_ns == best["step_time_ns"]


def exported_anew(choice: sharding.Choice) -> tpusim.Report:
    """The step with the specs as `in_shardings`, on the mesh."""
    mesh = AbstractMesh(
        tuple(choice.mesh.values()), tuple(choice.mesh), (AxisType.Auto,) * len(choice.mesh)
    )
    specs = choice.arguments

    def of(name, argument):
        def sharded(path, leaf):
            spec = specs[name + jax.tree_util.keystr(path)]
            return array(*leaf.shape, sharding=NamedSharding(mesh, spec))

        return jax.tree_util.tree_map_with_path(sharded, argument)

    return tpusim.simulate(mlp, of("params", PARAMS), of("x", X), config=CONFIG)


def test_the_specs_give_the_same_step(found, everything):
    assert found.best.constraints == ()
    plain = [choice for choice in everything.found if not choice.constraints]
    for choice in (found.best, *plain[::40]):
        report = exported_anew(choice)
        assert report.step_time_ns == choice.step_time_ns, str(choice)
        assert report.peak_hbm_bytes == choice.peak_hbm_bytes
    assert found.best.arguments["x"] == P("model")
    assert math.prod(found.best.mesh.values()) == 4


def test_a_report_of_each(found, everything):
    best = found.report()
    assert best.step_time_ns == found.best.step_time_ns
    assert best.peak_hbm_bytes == found.best.peak_hbm_bytes
    other = everything.found[len(everything.found) // 2]
    assert everything.report(other).step_time_ns == other.step_time_ns
    again = tpusim.simulate(mlp, PARAMS, X, config=CONFIG, options=other.options)
    assert again.step_time_ns == other.step_time_ns


def test_constraints_are_found_too():
    found = tpusim.shard(example("mlp_two_layers"), jobs=1)
    (constraint,) = found.best.constraints
    assert (constraint.value, constraint.is_result) == ("dot_general.1", True)
    assert constraint.source.startswith("workloads/examples/layers.py:")
    assert constraint.spec == P("data", "model")
    assert found.best.arguments["w_out"] == P(None, "model")
    # It does what `tpusim.simulate` does with them.
    report = tpusim.simulate(
        example("mlp_two_layers"),
        mesh=found.best.mesh,
        shardings=found.best.arguments,
        constraints={constraint.value: constraint.spec},
    )
    assert report.step_time_ns == found.best.step_time_ns == found.report().step_time_ns
    own = tpusim.simulate(example("mlp_two_layers"))
    assert found.as_it_is.step_time_ns == own.step_time_ns > found.best.step_time_ns
    assert found.as_it_is.peak_hbm_bytes == own.peak_hbm_bytes


def test_two_axes_of_a_dimension():
    found = tpusim.shard(example("layers_auto"), jobs=1)
    assert found.best.arguments == {
        "x": P(("X", "Y")),
        **dict.fromkeys(("w_in", "b_in", "w_out", "b_out"), P()),
    }
    assert str(found.best) == "X=4,Y=2; x=P(('X', 'Y'))"


def test_nothing_is_shorter_than_the_program_as_it_is():
    mesh = AbstractMesh((4, 1), ("data", "model"), (AxisType.Auto,) * 2)
    whole, rows = NamedSharding(mesh, P()), NamedSharding(mesh, P("data"))
    params = {name: array(*leaf.shape, sharding=whole) for name, leaf in PARAMS.items()}
    x = array(*X.shape, sharding=rows)
    found = tpusim.shard(mlp, params, x, config=CONFIG, jobs=1)
    assert found.best is found.as_it_is
    assert (found.best.options, found.best.mesh, found.best.arguments) == ((), {}, {})
    assert found.python == ""
    assert found.gap == 0
    own = tpusim.simulate(mlp, params, x, config=CONFIG)
    assert found.report().step_time_ns == own.step_time_ns == found.best.step_time_ns
    first, second = repr(found).splitlines()
    assert first.endswith(", as it is")
    assert second.startswith("none of ")


@pytest.mark.parametrize(
    "fix",
    [
        {"params/up": P(P.UNCONSTRAINED, "model")},
        {"params['up']": "P(?, 'model')"},
        "params/up=P(?, 'model')",
        ["*/up=P(?, 'model')"],
    ],
)
def test_what_is_fixed(everything, fix):
    found = tpusim.shard(mlp, PARAMS, X, config=CONFIG, fix=fix, jobs=1)
    allowed = [c for c in everything.found if c.dims["params['up']"][1] == ["model"]]
    assert found.best.step_time_ns == allowed[0].step_time_ns
    assert all(choice.dims["params['up']"][1] == ["model"] for choice in found.found)
    assert found.counts.choices < everything.counts.choices


def test_what_is_forbidden(found):
    other = tpusim.shard(mlp, PARAMS, X, config=CONFIG, forbid={"x": P("model")}, jobs=1)
    assert other.best.dims["x"][0] != ["model"] == found.best.dims["x"][0]
    assert other.best.step_time_ns >= found.best.step_time_ns


def test_meshes_and_their_axes():
    found = tpusim.shard(mlp, PARAMS, X, config=CONFIG, axes="rows", jobs=1)
    assert found.best.mesh == {"rows": 4}
    assert found.best.arguments["x"] == P("rows")
    given = {"config": CONFIG, "axes": ["a", "b"], "jobs": 1}
    found = tpusim.shard(mlp, PARAMS, X, mesh={"a": 2, "b": 2}, **given)
    assert all(choice.mesh == {"a": 2, "b": 2} for choice in found.found)
    # That mesh is not given twice.
    assert found.report().step_time_ns == found.best.step_time_ns
    again = tpusim.shard(mlp, PARAMS, X, options=["--mesh", "a=2,b=2"], **given)
    assert again == found
    assert again.report() == found.report()


def test_a_gap_and_an_end_of_time(found, everything):
    rough = tpusim.shard(mlp, PARAMS, X, config=CONFIG, gap=0.5, jobs=1)
    assert rough.gap <= 0.5
    assert rough.lower_bound_ns <= found.best.step_time_ns <= rough.best.step_time_ns
    assert rough.counts.candidates_compiled <= found.counts.candidates_compiled
    path = example("transformer_block_auto")
    short = tpusim.shard(path, seconds=1, jobs=1)
    assert short.counts.not_looked_at > 0
    assert 0 < short.gap <= 1
    assert "% shorter" in repr(short).splitlines()[1]


def test_keywords_of_simulate_count(found):
    slow = tpusim.shard(mlp, PARAMS, X, config=CONFIG, settings={"chip.clock_hz": "0.5x"}, jobs=1)
    assert slow.best.step_time_ns > found.best.step_time_ns
    assert slow.report().step_time_ns == slow.best.step_time_ns


def test_a_price_and_a_store(found, tmp_path: pathlib.Path):
    given = {"config": CONFIG, "price": 1.2, "store": tmp_path / "known.sqlite", "jobs": 1}
    priced = tpusim.shard(mlp, PARAMS, X, **given)
    assert priced.price_per_step == pytest.approx(
        priced.best.step_time_ns * 1e-9 / 3600 * 4 * 1.2, rel=1e-9
    )
    assert found.price_per_step is None
    assert (tmp_path / "known.sqlite").stat().st_size > 0
    assert tpusim.shard(mlp, PARAMS, X, **given) == priced


def test_text_frame_and_html(found):
    lines = repr(found).splitlines()
    assert lines[0].startswith("v5e-2x2: ")
    assert lines[1] == f"none of {found.counts.choices:,} choices is shorter"
    assert lines[2].split() == ["mesh", "data=1,model=4"]
    assert lines[3:] == [
        "params['down']  P()",
        "params['up']    P()",
        "x               P('model')",
    ]
    assert "<td>P(&#x27;model&#x27;)</td>" in found._repr_html_()
    frame = found.to_frame()
    assert list(frame.columns) == ["step_time_ns", "peak_hbm_bytes", "mesh", "shardings"]
    assert list(frame.step_time_ns) == [choice.step_time_ns for choice in found.found]
    assert frame.shardings[0] == str(found.best) == "data=1,model=4; x=P('model')"


def test_python_to_paste(found):
    names: dict = {}
    exec(found.python, names)
    assert names["specs"] == found.best.arguments


@pytest.mark.parametrize(
    ("name", "tree", "said"),
    [
        ("params", {"up": X}, "params['down']: params has no such leaf: .* are params['up']"),
        ("params", {**PARAMS, "bias": X}, "params['bias'] has no spec: .* params['down'], params"),
        ("params", [X, X], "params[0] has no spec: add one to specs, .*; specs of params are"),
        ("state", PARAMS, "state['down'] has no spec: .*; specs of state are none"),
        ("x", {}, "x: x has no such leaf: .*; its leaves are none"),
    ],
)
def test_python_to_paste_takes_no_other_tree(found, name, tree, said):
    """Nothing is replicated for lack of a name."""
    names: dict = {}
    exec(found.python, names)
    shardings = names["shardings"]("params", PARAMS)
    assert {k: s.spec for k, s in shardings.items()} == {
        k: found.best.arguments[f"params[{k!r}]"] for k in PARAMS
    }
    assert names["shardings"]("x", X).spec == found.best.arguments["x"]
    with pytest.raises(ValueError, match=re.escape(said).replace(r"\.\*", ".*")):
        names["shardings"](name, tree)


def test_python_to_paste_knows_numbers():
    """A spec may be of many leaves: each is one of them."""
    layers = [array(512, 512) for _ in range(3)]

    def chain(layers, x):
        for layer in layers:
            x = x @ layer
        return x

    found = tpusim.shard(chain, layers, X, config=CONFIG, jobs=1)
    names: dict = {}
    exec(found.python, names)
    assert "layers[*]" in names["specs"]
    assert len({s.spec for s in names["shardings"]("layers", layers)}) == 1
    with pytest.raises(ValueError, match=r"^layers\[\*\]: layers has no such leaf"):
        names["shardings"]("layers", [])


def test_what_was_read_has_no_program(found):
    text = found.simulation.shard(["--jobs=1"])
    read = tpusim.FoundShardings.from_json(text)
    assert read == found
    with pytest.raises(tpusim.Error, match="a report needs the program"):
        read.report()
    brief = tpusim.FoundShardings.from_json(sharding.brief(text))
    assert brief.found == found.found[:1]
    assert (brief.best, brief.counts, brief.python) == (found.best, found.counts, found.python)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the JSON is cut off"),
        ("[]", "a list, not a JSON object"),
        ('{"schema": "tpusim.report/1"}', "its schema is not tpusim.shard/1"),
        ('{"schema": "tpusim.shard/1"}', "it is not of one slice"),
        ('{"schema": "tpusim.shard/1", "slices": [{}, {}]}', "it is not of one slice"),
        ('{"schema": "tpusim.shard/1", "slices": [{}]}', r"slices\[0\]\..* is missing"),
    ],
)
def test_what_is_no_answer(text, said):
    with pytest.raises(tpusim.Error, match=f"^not an answer of tpusim shard: .*{said}"):
        tpusim.FoundShardings.from_json(text)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"fix": {"weight": P("data")}}, "the program has no argument 'weight'"),
        ({"fix": ["x"]}, '"x" is not ARGUMENT=SPEC'),
        ({"fix": {"x": P("tensor")}}, "meshes have no axis 'tensor'; theirs are data, model"),
        ({"forbid": {"x": P(None, None, None)}}, "3 dimensions given for x bf16"),
        (
            {"settings": {"chip.hbm.bytes": "256.125MiB"}},
            "v5e-2x2: nothing fits: the least",
        ),
        ({"config": "v5e-3x3"}, "no slice 3x3"),
        ({"options": ["--shard", "x=P('data')"]}, "what is fixed for the search is --fix"),
        ({"shardings": {"x": P("data")}}, "shardings: what is fixed for the search is fix="),
    ],
)
def test_what_cannot_be_is_one_line(given, said):
    with pytest.raises(tpusim.Error, match=said) as raised:
        tpusim.shard(mlp, PARAMS, X, **{"config": CONFIG, "jobs": 1, **given})
    assert "\n" not in str(raised.value)


def test_the_batch_is_decided_however_few_its_rows(tmp_path: pathlib.Path):
    """Eight rows against weights of 32 MiB, as in decoding."""
    mesh = AbstractMesh((2, 4), ("data", "model"), (AxisType.Auto,) * 2)

    def layer(x, weights):
        return jax.nn.relu(x @ weights[0]) @ weights[1], None

    def step(up, down, x):
        return jax.lax.scan(layer, x, (up, down))[0]

    def sharded(shape, *spec):
        return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=NamedSharding(mesh, P(*spec)))

    weights = sharded((4, 1024, 1024))
    program = tmp_path / "step.pb"
    x = sharded((8, 1024), "data")
    tpusim.export(step, weights, weights, x, path=program, config="v5e-4x2")
    found = tpusim.shard(program, jobs=1)
    assert found.left_out == ()
    assert found.gap == 0
    for spec in (P("data", P.UNCONSTRAINED), P(("data", "model")), P(None, "model")):
        fixed = tpusim.shard(program, jobs=1, fix={"x": spec})
        assert fixed.found[0].step_time_ns >= found.best.step_time_ns


def test_what_is_left_out_is_named():
    """A dimension of few bytes, of no product: none of the choices, and named."""

    def step(weights, x, table):
        return x @ weights, table + 1

    arrays = array(4096, 4096), array(4096, 4096), array(64, 3)
    found = tpusim.shard(step, *arrays, config=CONFIG, jobs=1)
    assert found.left_out == (sharding.LeftOut("table 0"),)
    assert "no choices: table 0" in repr(found)
    fixed = tpusim.shard(step, *arrays, config=CONFIG, jobs=1, fix={"table": P("data")})
    assert fixed.left_out == ()
    assert fixed.best.arguments["table"] == P("data")


def test_names_have_any_characters():
    """The value of an option says where the name before it ends."""
    params = {"w=1": array(512, 1024), "a),b": array(1024, 512), "it's [x": array(512)}

    def step(params, x):
        return x @ params["w=1"] @ params["a),b"] + params["it's [x"]

    found = tpusim.shard(step, params, X, config=CONFIG, jobs=1)
    names = {f"params[{key!r}]" for key in params}
    assert set(found.best.arguments) == names | {"x"}
    stated = {name for name, _ in found.best.stated()}
    assert stated == {name.replace("1", "*") for name in names} | {"x"}
    assert found.report().step_time_ns == found.best.step_time_ns
    spec = P("data", None)
    fixed = tpusim.shard(step, params, X, config=CONFIG, jobs=1, fix={"params['w=1']": spec})
    assert fixed.best.arguments["params['w=1']"] == P("data")
    report = tpusim.simulate(
        step, params, X, config=CONFIG, mesh={"x=1": 4}, shardings={"params['w=1']": P("x=1")}
    )
    assert report.step_time_ns > 0
