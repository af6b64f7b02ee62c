"""An extension of mkdocstrings: the fields of a dataclass are a table, with what is said of them.

What is said stands in comments, behind a field or on lines of their own before it:

    step_time_ns: float  # when the last device finishes

or in a string below it. All of it becomes the section `Attributes` of the docstring of the class.
"""

import ast
from collections.abc import Iterator

import griffe


class FieldComments(griffe.Extension):
    """Gives dataclasses a section with their fields."""

    def on_class_members(
        self, *, node: ast.AST | griffe.ObjectNode, cls: griffe.Class, **kwargs: object
    ) -> None:
        """Called for every class, once its members are known."""
        if cls.docstring is None or not isinstance(node, ast.ClassDef):
            return
        if not any("dataclass" in str(each.value) for each in cls.decorators):
            return
        said = {}
        for field, attribute in _fields(node, cls):
            text = attribute.docstring.value if attribute.docstring else _comment(cls, field)
            said[attribute.name] = " ".join(text.split())
            attribute.docstring = None  # Said once.
        # Names and types alone are in the signature.
        if any(said.values()):
            rows = "".join(f"\n    {name}: {text}" for name, text in said.items())
            cls.docstring.value += f"\n\nAttributes:{rows}"


def _fields(
    node: ast.ClassDef, cls: griffe.Class
) -> Iterator[tuple[ast.AnnAssign, griffe.Attribute]]:
    for statement in node.body:
        match statement:
            case ast.AnnAssign(target=ast.Name(id=name)) if not name.startswith("_"):
                yield statement, cls.attributes[name]


def _comment(cls: griffe.Class, field: ast.AnnAssign) -> str:
    """Returns the comment on a field; "" if there is none."""
    lines = cls.lines_collection[cls.filepath]
    _, sign, behind = lines[field.end_lineno - 1][field.end_col_offset :].partition("#")
    if sign:
        return behind
    before: list[str] = []
    at = field.lineno - 2
    while lines[at].strip().startswith("#"):
        before.insert(0, lines[at].strip().removeprefix("#"))
        at -= 1
    return " ".join(before)
