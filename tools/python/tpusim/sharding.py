"""`tpusim.shard`: the mesh and the shardings with the shortest step, and how sure that is."""

import dataclasses
import html
import inspect
import itertools
import json
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tpusim import arguments as checks
from tpusim import files, optional, records
from tpusim.errors import ArgumentTypeError, Error
from tpusim.quantities import percent, size, time
from tpusim.report import Report
from tpusim.runner import Simulation
from tpusim.simulation import Program, simulate, simulation_of

if TYPE_CHECKING:
    import jax
    import pandas

_SCHEMA = "tpusim.shard/1"
_AS_IT_IS = "as it is"

Dims = Sequence[Sequence[str]]
# {argument: PartitionSpec}, or texts "params/*/up=P(?, 'model')".
Specs = Mapping[str, Any] | str | Sequence[str]


@dataclasses.dataclass(frozen=True)
class Constraint:
    """A `jax.lax.with_sharding_constraint` of a choice."""

    value: str
    """What `tpusim.simulate(..., constraints={value: spec})` calls it."""
    source: str
    """File and line where the program makes it; may be empty."""
    scope: str
    """What JAX was tracing there, "jit(step)/dot_general"."""
    is_result: bool
    """Whether it is a result of the step: a constraint on it is one of `out_shardings`."""
    dims: tuple[tuple[str, ...], ...]
    """Axes of the mesh that split it, by dimension."""

    @property
    def spec(self) -> "jax.sharding.PartitionSpec":
        """The PartitionSpec in JAX's own type."""
        return _spec(self.dims)


@dataclasses.dataclass(frozen=True)
class Choice:
    """A mesh with shardings of everything, and its step; without `options` the program as it is."""

    step_time_ns: float
    peak_hbm_bytes: int
    mesh: dict[str, int] = dataclasses.field(default_factory=dict)
    """Sizes by name, major to minor."""
    decisions: dict[str, Any] = dataclasses.field(default_factory=dict)
    """Axes that split what is decided together, by a dimension of an argument: "x 0"."""
    dims: dict[str, Any] = dataclasses.field(
        default_factory=dict, metadata=records.key("arguments")
    )
    """Axes that split an argument, by its name and by dimension."""
    constraints: tuple[Constraint, ...] = ()
    remat: dict[str, str] = dataclasses.field(default_factory=dict)
    """Policies of named values that are not computed again: "saved" or "offloaded"."""
    donated: bool = False
    """All arguments are, which they are not in the program."""
    options: tuple[str, ...] = ()
    """Of `tpusim run`; `tpusim.simulate(..., options=choice.options)` simulates it."""

    @property
    def arguments(self) -> "dict[str, jax.sharding.PartitionSpec]":
        """PartitionSpecs by the names of arguments, "params['up']" (needs JAX)."""
        return {name: _spec(dims) for name, dims in self.dims.items()}

    def __str__(self) -> str:
        if not self.options:
            return _AS_IT_IS
        form = [f"{name} {policy}" for name, policy in self.remat.items()]
        form += ["donated"] if self.donated else []
        split = [f"{name}={spec}" for name, spec in self.stated() if spec != "P()"]
        return "; ".join([self.mesh_text, *form, *split])

    @property
    def mesh_text(self) -> str:
        """A few words for a table: "data=2,model=4"."""
        sizes = ",".join(f"{name}={count}" for name, count in self.mesh.items())
        return sizes or _AS_IT_IS

    def stated(self) -> list[tuple[str, str]]:
        """Names with the texts of their PartitionSpecs; a name has * for what is sharded alike."""
        before = {"--shard": "", "--constrain": "constraint "}
        found = []
        for option, text in itertools.pairwise(self.options):
            if option in before:
                # Names have any characters, "=" too, and so have those of axes.
                name, _, dims = text.rpartition("=P(")
                found.append((before[option] + name, f"P({dims}"))
        return found


@dataclasses.dataclass(frozen=True)
class Counts:
    """Counts of mesh-and-decision choices by outcome, and of those that were compiled.

    The five after `choices` add up to it. A choice that is compiled is so with every way to settle
    its conflicts: the others count these.
    """

    choices: int
    impossible: int
    """Invalid: one mesh axis on two dimensions of an array."""
    excluded_by_memory: int
    """The arguments alone do not fit."""
    excluded_by_rates: int
    """The products take as long as the best step."""
    compiled: int
    not_looked_at: int
    """The time was over."""
    candidates_compiled: int
    excluded_when_compiled: int
    """No schedule is shorter than the best step."""
    equal: int
    """To another program on the same devices."""
    do_not_fit: int
    refused: int
    """By the compiler."""
    simulated: int


@dataclasses.dataclass(frozen=True)
class LeftOut:
    """A dimension of arguments that could be split, and is no choice for its few bytes.

    Nothing is said of other ways to split it; `fix` decides it.
    """

    dimension: str
    """Of the largest argument that has it: "params['scale'] 0"."""
    split_as: str = ""
    """Which decision it follows; empty: it is left whole."""


@dataclasses.dataclass(frozen=True, repr=False)
class FoundShardings:
    """Results of a search for shardings on one slice."""

    config: str
    chips: int
    usable_hbm_bytes: int
    gap: float
    """How much shorter than the best any choice may be, as a share of its step; 0: none is."""
    lower_bound_ns: float
    """No choice that fits is shorter."""
    counts: Counts
    left_out: tuple[LeftOut, ...] = ()
    """What `gap` and `lower_bound_ns` do not cover."""
    found: tuple[Choice, ...] = ()
    """What was simulated, the shortest step first, as far as the answer lists it."""
    as_it_is: Choice | None = None
    """The program with its own mesh, if that has the devices of the slice and it fits."""
    python: str = ""
    """To paste into the program: mesh, PartitionSpecs, constraints; empty if `best` is as it is."""
    price_per_step: float | None = None
    """Of the best, where a price is given."""
    shortest: str = dataclasses.field(default="found", metadata=records.key("best"))
    """Whose step `best` is: "found", or "as_it_is"."""
    # Simulates the program that was searched.
    simulation: Simulation | None = dataclasses.field(
        default=None, compare=False, metadata=records.NO_KEY
    )

    @classmethod
    def from_json(cls, text: str, simulation: Simulation | None = None) -> "FoundShardings":
        """Reads what `tpusim shard --json` prints of one slice; tpusim.Error if it cannot."""
        if not isinstance(text, str):
            raise ArgumentTypeError(
                f"FoundShardings.from_json: text: {type(text).__name__}: expected a str"
            )
        try:
            value = _slice(records.parse(text, _SCHEMA))
            found = records.read(cls, {**value, "counts": value}, "slices[0]")
        except ValueError as error:
            raise Error(f"not an answer of tpusim shard: {error}") from error
        python = found.python if found.best.options else ""
        return dataclasses.replace(found, python=python, simulation=simulation)

    @property
    def best(self) -> Choice:
        """The shortest step; that of the program as it is if nothing is shorter, nor fixed."""
        if self.shortest == "as_it_is" and self.as_it_is is not None:
            return self.as_it_is
        if not self.found:
            raise Error(f"shard: {self.config}: nothing was simulated")
        return self.found[0]

    def report(self, choice: Choice | None = None) -> Report:
        """The whole report of a choice, by default of the best (simulates it)."""
        if self.simulation is None:
            raise Error("a report needs the program, which an answer that was read does not have")
        return self.simulation.sharded((choice or self.best).options).run()

    def to_frame(self) -> "pandas.DataFrame":
        """A row per choice in `found` (needs pandas)."""
        library = optional.require("pandas", "a DataFrame")
        columns: dict[str, list[Any]] = {
            "step_time_ns": [choice.step_time_ns for choice in self.found],
            "peak_hbm_bytes": [choice.peak_hbm_bytes for choice in self.found],
            "mesh": [choice.mesh_text for choice in self.found],
            "shardings": [str(choice) for choice in self.found],
        }
        return library.DataFrame(columns)

    def _head(self) -> list[str]:
        best = self.best
        peak = f"peak {size(best.peak_hbm_bytes)} of {size(self.usable_hbm_bytes)}"
        parts = [f"{self.config}: {time(best.step_time_ns)}", peak]
        if not best.options:
            parts.append(_AS_IT_IS)
        elif self.as_it_is is not None:
            change = 1 - best.step_time_ns / self.as_it_is.step_time_ns
            parts.append(f"{percent(change)} shorter than {_AS_IT_IS}")
        shorter = f"more than {percent(self.gap)} shorter" if self.gap > 0 else "shorter"
        head = [", ".join(parts), f"none of {self.counts.choices:,} choices is {shorter}"]
        if self.left_out:
            head.append(f"no choices: {', '.join(left.dimension for left in self.left_out)}")
        return head

    def _rows(self) -> list[tuple[str, str]]:
        best = self.best
        return [("mesh", best.mesh_text), *best.stated()] if best.options else []

    def __repr__(self) -> str:
        rows = self._rows()
        width = max((len(name) for name, _ in rows), default=0)
        return "\n".join([*self._head(), *(f"{name:{width}}  {spec}" for name, spec in rows)])

    def _repr_html_(self) -> str:
        head = "".join(f"<div>{html.escape(line)}</div>" for line in self._head())
        rows = "".join(
            "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>"
            for row in self._rows()
        )
        return f"<div>{head}<table>{rows}</table></div>"


def _slice(answer: dict[str, Any]) -> dict[str, Any]:
    """The one slice; ValueError if there are others."""
    slices = answer.get("slices")
    if not isinstance(slices, list) or len(slices) != 1 or not isinstance(slices[0], dict):
        raise ValueError("it is not of one slice")
    return slices[0]


def _spec(dims: Dims) -> "jax.sharding.PartitionSpec":
    """Without whole dimensions at its end."""
    import jax

    entries = [None if not axes else axes[0] if len(axes) == 1 else tuple(axes) for axes in dims]
    while entries and entries[-1] is None:
        entries.pop()
    return jax.sharding.PartitionSpec(*entries)


def brief(text: str) -> str:
    """An answer of `tpusim shard --json` with the best alone, in a line."""
    answer = records.parse(text, _SCHEMA)
    found = _slice(answer)
    found["found"] = found.get("found", [])[:1]
    return json.dumps(answer)


def shard(
    program: Program,
    *arguments: Any,
    config: str | os.PathLike[str] = "",
    axes: str | Sequence[str] | None = None,
    fix: Specs = (),
    forbid: Specs = (),
    gap: float = 0.0,
    seconds: float | None = None,
    prune: bool = True,
    keep_constraints: bool = False,
    may_donate: bool = False,
    may_constrain: str | Sequence[str] = (),
    price: float | None = None,
    store: str | os.PathLike[str] | None = None,
    jobs: int | None = None,
    **keywords: Any,
) -> FoundShardings:
    """Finds the mesh and the shardings of a program whose step is shortest, as `tpusim shard` does.

        found = tpusim.shard(train_step, params, batch, config="v5e-4x2")
        found.best.mesh, found.best.arguments["params['up']"]
        print(found.python)

    Args:
      program: as for `tpusim.simulate`. Its own shardings are simulated first, no more.
      *arguments: of a function, what it would be called with; they need no shardings.
      config: the slice, as for `tpusim.simulate`.
      axes: names of the axes that meshes have; by default the program's, and two at least.
      fix: {argument: PartitionSpec}, how arguments are sharded, and with them all that is decided
        together. `*` in a name stands for any text; "params/up" is "params['up']", too.
        `PartitionSpec.UNCONSTRAINED`, or ? in a text such as "P(?, 'model')", leaves a dimension
        open. Or texts, ["params/*/up=P(?, 'model')"].
      forbid: likewise, how no dimension of an argument is sharded.
      gap: leave out what can be shorter than the best by no more than this share of it.
      seconds: when to stop with what is found, by default after ten minutes; 0: when all is
        decided.
      prune: simulate nothing that cannot be the best.
      keep_constraints: leave the sharding constraints of the program as they are, by the names of
        axes; otherwise they follow what is decided.
      may_donate: look also for what has all arguments donated.
      may_constrain: look also for sharding constraints on these values, whatever is decided: names
        of `checkpoint_name`, ends of paths of scopes such as "decoder/mlp/dot_general", lines with
        a `with_sharding_constraint` such as "model.py:42". Each takes a constraint as a whole.
      price: of a chip for an hour, in any currency.
      store: an SQLite file of what is known of candidates; a search that is repeated goes on from
        there.
      jobs: how many processes work; by default as many as there are processors.
      **keywords: more arguments of `tpusim.simulate`, except `shardings`. With `mesh` no other mesh
        is tried; `constraints` hold beside those that are found.

    Returns:
      What was found, the shortest step first, and how much shorter any other choice may be.

    Raises:
      tpusim.Error: nothing fits, or what `tpusim shard` says when it refuses.
      TypeError, ValueError: an argument is not what is expected; the text names it.
    """
    words = words_of_search(
        axes=axes,
        fix=fix,
        forbid=forbid,
        gap=gap,
        seconds=seconds,
        prune=prune,
        keep_constraints=keep_constraints,
        may_donate=may_donate,
        may_constrain=may_constrain,
        store=store,
    )
    if price is not None:
        words.append(f"--price={checks.number('price', price, 'a price, more than 0', above=0)}")
    if jobs is not None:
        expected = "a whole number, at least 1"
        # What the binary counts in.
        words.append(f"--jobs={checks.whole('jobs', jobs, expected, least=1, most=2**31 - 1)}")
    if "shardings" in keywords:
        raise ArgumentTypeError("tpusim.shard: shardings: what is fixed for the search is fix=")
    try:
        bound = inspect.signature(simulate).bind(program, *arguments, config=config, **keywords)
    except TypeError as error:
        raise ArgumentTypeError(f"tpusim.shard: {error}") from None
    bound.apply_defaults()
    simulation = simulation_of(**bound.arguments)
    return FoundShardings.from_json(simulation.shard(words), simulation)


def words_of_search(
    *,
    axes: str | Sequence[str] | None = None,
    fix: Specs = (),
    forbid: Specs = (),
    gap: float = 0.0,
    seconds: float | None = None,
    prune: bool = True,
    keep_constraints: bool = False,
    may_donate: bool = False,
    may_constrain: str | Sequence[str] = (),
    store: str | os.PathLike[str] | None = None,
) -> list[str]:
    """The arguments of `shard` that decide what is found as options of the command line.

    Each is one word, `--option=value`.
    """
    names = checks.axes(axes)
    words = [f"--axes={','.join(names)}"] if names else []
    words += [f"--fix={text}" for text in checks.open_specs("fix", fix)]
    words += [f"--forbid={text}" for text in checks.open_specs("forbid", forbid)]
    if left_out := checks.number("gap", gap, "a share, from 0 to 1", least=0, most=1):
        words.append(f"--gap={left_out}")
    if seconds is not None:
        limit = checks.number("seconds", seconds, "seconds, 0 or more", least=0)
        words.append(f"--seconds={limit}")
    words += [] if checks.flag("prune", prune) else ["--all"]
    words += ["--keep-constraints"] if checks.flag("keep_constraints", keep_constraints) else []
    words += ["--may-donate"] if checks.flag("may_donate", may_donate) else []
    expected = 'names of values, such as ["attention_out"]'
    named = checks.words("may_constrain", may_constrain, expected)
    words += [f"--may-constrain={name}" for name in named]
    if store is not None:
        words.append(f"--store={files.check_target(store, 'store')}")
    return words
