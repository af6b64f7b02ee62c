"""Counts the bundles of a kernel's schedule that the TPU compiler lets the core execute.

    executed = bundles.execute(pathlib.Path("...-fusion-03-final_bundles.txt").read_text())
    executed.bundles, executed.rows

The compiler writes the final bundles of a kernel as text (--xla_jf_dump_llo_text): one bundle of
operations that issue together per line, with the registers that they read and write, and branches
to named regions. Loops over the grid are loops there. This interprets the scalar operations alone,
with every comparison and branch, counts the bundles on the way, and takes transfers and waits to be
over at once. So it counts what a block issues; stalls of units that are busy for several cycles are
not in a schedule, and the caller bounds them (`Executed.cycles`).
"""

import collections
import dataclasses
import re
from collections.abc import Callable

_BUNDLE = re.compile(r"\s*(0x[0-9a-f]+|0)\s+(?:[A-Z]{2}[ ,]*)*:")
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_REGION = re.compile(r"[Ss]tart region (\d+)|Start/End empty region (\d+)")
_REGISTER = re.compile(r"%[sp]?\w*?_([sp]\d+)$")
_ALLOCATION = re.compile(r"\[#allocation(\d+)(?:_spill)?(?: \+ \$(0x[0-9a-f]+))?\]")
_OPERATION = re.compile(r"(%\S+) = (\S+)\s*(.*)$", re.DOTALL)
_PREDICATED = re.compile(r"\((!?%\w+),\s*([^)]*)\),\s*(.*)")
_ADDRESS = re.compile(r"\[smem:\[?([^\]]+)\]")
_MATMUL = re.compile(r"= vmatmul[.\w]*\.(bf16|f32)[.\w]*")
# Rows of the left operand in a register; the arrays of v5 also take bf16 that is not packed.
_PACKED, _PLAIN = 16, 8
_TRANSCENDENTAL = re.compile(r"= v(?:pow2|log2|tanh|rcp|rsqrt|erf|sinq|cosq)[.\w]*")
_WORD = 1 << 32
# A page of its own for every allocation, and somewhere for operands.
_PAGE, _OPERANDS = 1 << 20, 1 << 24
_MOST = 20_000_000

_BINARY: dict[str, Callable[[int, int], int]] = {
    "sadd.s32": lambda a, b: a + b,
    "ssub.s32": lambda a, b: a - b,
    "smul.u32": lambda a, b: a * b,
    "sand.u32": lambda a, b: a & b,
    "sor.u32": lambda a, b: a | b,
    "sxor.u32": lambda a, b: a ^ b,
    "sshll.u32": lambda a, b: a << (b & 31),
    "sshrl.u32": lambda a, b: (a % _WORD) >> (b & 31),
    "sshra.s32": lambda a, b: a >> (b & 31),
    "smin.u32": min,
    "smax.u32": max,
    "smin.s32": min,
    "smax.s32": max,
    "por": lambda a, b: a | b,
    "pand": lambda a, b: a & b,
    "pnand": lambda a, b: 1 - (a & b),
    "pxor": lambda a, b: a ^ b,
    "pnor": lambda a, b: 1 - (a | b),
}
_COMPARISON: dict[str, Callable[[int, int], bool]] = {
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
}


@dataclasses.dataclass(frozen=True)
class Executed:
    """Bundles, and what of them holds its unit for longer than one."""

    bundles: int
    rows: int  # of bf16 and f32 that go into the arrays, each into one
    transcendentals: int

    def cycles(self, cycles_per_row: float, cycles_per_transcendental: float) -> float:
        """Returns the cycles of the fullest unit, however little is issued."""
        held = self.transcendentals * cycles_per_transcendental
        return max(self.bundles, self.rows * cycles_per_row, held)


def _signed(value: int) -> int:
    value %= _WORD
    return value - _WORD if value >= _WORD // 2 else value


def _register(text: str) -> str | None:
    found = _REGISTER.match(text)
    return found.group(1) if found else None


class _Core:
    """Scalar and predicate registers, and SMEM; what is not known is 0."""

    def __init__(self) -> None:
        self.registers: dict[str, int] = {}
        self.memory: dict[str, int] = collections.defaultdict(int)
        self.written: dict[str, int] = {}
        self.branch: str | None = None

    def value(self, text: str) -> int:
        text = text.strip()
        if re.fullmatch(r"-?\d+", text):
            return _signed(int(text))
        register = _register(text.lstrip("!"))
        if register is not None:
            value = self.registers.get(register, 0)
            return 1 - value if text.startswith("!") else value
        if found := _ALLOCATION.match(text):
            return (int(found.group(1)) + 1) * _PAGE + int(found.group(2) or "0", 16)
        return 0

    def holds(self, rest: str) -> bool:
        """Whether an operation that may be predicated takes place."""
        predicate = re.match(r"\((!?%\w+)\)", rest)
        return predicate is None or bool(self.value(predicate.group(1)))

    def step(self, text: str) -> None:
        """One operation of a bundle: reads what was before the bundle."""
        found = _OPERATION.match(text)
        if not found:
            return
        target, name, rest = found.groups()
        if name == "sbr.rel":
            region = re.search(r"target = \$region(\d+)", rest)
            if region and self.holds(rest):
                self.branch = region.group(1)
        elif name == "sst":
            address = _ADDRESS.search(rest)
            if address and self.holds(rest):
                self.memory[address.group(1)] = self.value(rest.split()[-1])
        elif (register := _register(target)) is not None:
            result = self.result(name, rest)
            if result is not None:
                self.written[register] = result

    def result(self, name: str, rest: str) -> int | None:
        """Returns the register an operation writes; None for those that only rename one."""
        parts = [part.strip() for part in rest.split(",")]
        if name in ("smov", "pmov"):
            if predicated := _PREDICATED.match(rest):
                predicate, kept, moved = predicated.groups()
                return self.value(moved if self.value(predicate) else kept)
            return self.value(rest)
        if name.startswith("scmp."):
            a, b = self.value(parts[0]), self.value(parts[1])
            if ".u32" in name:
                a, b = a % _WORD, b % _WORD
            return int(_COMPARISON[name.split(".")[1]](a, b))
        if name in _BINARY:
            result = _BINARY[name](self.value(parts[0]), self.value(parts[1]))
            return result if name.startswith("p") else _signed(result)
        if name.startswith("scalar_lea"):
            return _signed(self.value(parts[0]) + self.value(parts[1]))
        if name == "pneg":
            return 1 - self.value(rest)
        if name == "scalar_select":
            return self.value(parts[1] if self.value(parts[0]) else parts[2])
        if name == "sld":
            address = _ADDRESS.search(rest)
            return self.memory[address.group(1)] if address else 0
        if name.startswith("int_to_ptr"):
            return self.value(rest.split()[-1])
        return _OPERANDS if name.startswith("inlined_call") else None

    def end_bundle(self) -> str | None:
        """Makes all writes of the bundle; returns the label to go to, if any."""
        self.registers.update(self.written)
        self.written = {}
        branch, self.branch = self.branch, None
        return branch


def execute(text: str) -> Executed | None:
    """Nothing if it does not come to an end."""
    lines: list[str] = []
    for line in text.splitlines():
        if _BUNDLE.match(line):
            lines.append(line)
        elif lines:
            lines[-1] += "\n" + line
    regions: dict[str, int] = {}
    operations: list[list[str]] = []
    rows: list[int] = []
    transcendentals: list[int] = []
    for n, line in enumerate(lines):
        for begun, empty in _REGION.findall(line):
            regions.setdefault(begun or empty, n)
        body = _COMMENT.sub(" ", line).partition(":")[2]
        body = body[body.find("{") + 1 : body.rfind("}")]
        parts = [part.strip() for part in body.split(";;")]
        operations.append([p for p in parts if p and not re.search(r"(^|= )v", p)])
        rows.append(
            sum(
                _PLAIN if kind == "f32" or ".lmr." in whole else _PACKED
                for whole, kind in ((m.group(0), m.group(1)) for m in _MATMUL.finditer(body))
            )
        )
        transcendentals.append(len(_TRANSCENDENTAL.findall(body)))
    core = _Core()
    counts: collections.Counter[int] = collections.Counter()
    at, executed = 0, 0
    while at < len(operations):
        if executed == _MOST:
            return None
        executed += 1
        counts[at] += 1
        for operation in operations[at]:
            core.step(operation)
        region = core.end_bundle()
        if region is not None and region not in regions:
            return None
        at = at + 1 if region is None else regions[region]
    return Executed(
        executed,
        sum(times * rows[n] for n, times in counts.items()),
        sum(times * transcendentals[n] for n, times in counts.items()),
    )
