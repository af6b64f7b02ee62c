"""What waits for what in the body of a kernel.

An array of the chip holds a tile of a product's right-hand side while all rows of the left-hand
side stream through it. The last column of a row is therefore there when the last tile has gone
through, and the first tile wants a column of every row. Two things follow:

    a reduction over what a product made ends a stage: a row is complete when the product is;
    a product of what waited for such a reduction begins another: softmax has to be through with
    all rows.

Anything else may stream: elementwise work on the result of a product, or into the operand of one,
runs beside it. Attention has three stages forward (scores and their largest; exponentials; the
product with the values) and one backward, where the sums are known before.
"""

import dataclasses
from collections.abc import Iterable


@dataclasses.dataclass(frozen=True)
class Order:
    """When a value is there."""

    stage: int = 0
    # It is made of a product of this very stage.
    streams: bool = False


def together(orders: Iterable[Order]) -> Order:
    """When the last of them is there."""
    orders = list(orders)
    stage = max((o.stage for o in orders), default=0)
    return Order(stage, any(o.streams for o in orders if o.stage == stage))


def of_product(operands: Order) -> Order:
    """When a product runs, and its result streams."""
    waited = operands.stage > 0 and not operands.streams
    return Order(operands.stage + waited, streams=True)


def after_reduction(operand: Order) -> Order:
    """When the result of a reduction is there."""
    return Order(operand.stage + 1) if operand.streams else operand
