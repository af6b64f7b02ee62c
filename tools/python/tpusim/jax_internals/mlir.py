"""Modules of StableHLO: read by JAX's own MLIR, converted by its own converter.

Both are what JAX itself lowers through; without one of them programs in StableHLO are refused with
an error that names it.
"""

import io
import re
from collections.abc import Iterator
from typing import Any

from tpusim.jax_internals.versions import MissingInternalError, internal

_PURPOSE = "read StableHLO"
# The place that a message is about: a module in memory has no name of a file.
_PLACE = re.compile(r'(?:loc\()?(?:"[^"]*"|-):(\d+):\d+\)?: (?:error: )?')

# The dialect of portable bytecode.
_PORTABLE = b"vhlo"


class ModuleError(ValueError):
    """MLIR refuses a module; the text is its first message."""


def _said(error: Exception, told: list[str]) -> ModuleError:
    """The first message of MLIR, in one line, with the line of the text that it is about."""
    for line in "\n".join([*told, str(error)]).splitlines():
        place = _PLACE.search(line)
        message = _PLACE.sub("", re.sub(r"^(?:[A-Z_]+: )+", "", line.strip()))
        message = message.removeprefix("error:").strip()
        if message and message != "Unable to parse module assembly:":
            return ModuleError(f"line {place[1]}: {message}" if place else message)
    return ModuleError(type(error).__name__)


def bindings() -> Any:
    """Returns the module of jaxlib that defines operations, types and attributes."""
    return internal("jaxlib.mlir", "ir", _PURPOSE)


def parse(source: str | bytes, file: str = "") -> Any:
    """Parses text, or bytecode of any version that this jaxlib reads; ModuleError.

    Text without locations gets those of its lines in `file`, which is where it was read from.
    """
    context = internal("jax._src.interpreters.mlir", "make_ir_context", _PURPOSE)()
    told: list[str] = []

    def tell(diagnostic: Any) -> bool:
        told.append(diagnostic.message)
        return True  # Nothing is printed.

    with context, context.attach_diagnostic_handler(tell):
        try:
            if file:
                return bindings().Module.parseFile(file)
            if isinstance(source, str):
                return bindings().Module.parse(source)
            return _read(source, context)
        except MissingInternalError:
            raise
        except Exception as error:
            raise _said(error, told) from error


def _read(source: bytes, context: Any) -> Any:
    """Reads bytecode into a context, portable or not."""
    read = internal("jaxlib._jax", "mlir.deserialize_portable_artifact", _PURPOSE)
    try:
        return read(source, context)
    except TypeError:
        # JAX 0.7 has one that prints the module, and takes portable bytecode alone.
        return bindings().Module.parse(read(source) if _PORTABLE in source else source)


def bytecode(module: Any) -> bytes:
    """Serialises a module, with its locations."""
    output = io.BytesIO()
    module.operation.write_bytecode(output)
    return output.getvalue()


def to_hlo(bytecode: bytes) -> bytes:
    """Converts to a serialised HloModuleProto; ModuleError names an operation without HLO."""
    convert = internal("jaxlib._jax", "mlir.mlir_module_to_xla_computation", _PURPOSE)
    try:
        return convert(bytecode, use_tuple_args=False).as_serialized_hlo_module_proto()
    except Exception as error:
        raise _said(error, []) from error


def attribute(operation: Any, name: str) -> Any:
    """Returns the Python value of an attribute; None if there is none."""
    attributes = operation.operation.attributes
    return attributes[name].value if name in attributes else None


def main_function(module: Any) -> Any:
    """Returns the function `main`; ModuleError if there is none."""
    for function in functions(module):
        if attribute(function, "sym_name") == "main":
            return function
    raise ModuleError("it has no function @main")


def functions(module: Any) -> list[Any]:
    """Returns the functions of a module that have a body."""
    found = [op for op in module.body.operations if op.operation.name == "func.func"]
    return [function for function in found if function.regions[0].blocks]


def of_arguments(function: Any, name: str) -> list[Any]:
    """Returns the Python value of an attribute of each argument; None of those without it."""
    attributes = function.operation.attributes
    if "arg_attrs" not in attributes:
        return [None for _ in function.arguments]
    return [of[name].value if name in of else None for of in attributes["arg_attrs"]]


def operations(module: Any) -> Iterator[Any]:
    """Walks over all operations of a module, those with regions before what is in them."""
    waiting = [module.operation]
    while waiting:
        operation = waiting.pop()
        yield operation
        for region in operation.regions:
            for block in region.blocks:
                waiting += [inner.operation for inner in block.operations]
