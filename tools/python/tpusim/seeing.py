"""`tpusim.seen_as`: code that looks at the devices finds those of a slice."""

import contextlib
from collections.abc import Iterator

from tpusim import arguments


@contextlib.contextmanager
def seen_as(config: str) -> Iterator[None]:
    """Code inside the block, not only a step that is traced, takes the devices for that chip.

    For what is built before it is exported by code that looks at the platform:

        with tpusim.seen_as("v5e-4x2"):
            model = build()
            tpusim.export(model.step, arguments, config="v5e-4x2")
    """
    from tpusim import chip_view
    from tpusim.assumptions import Assumptions

    with chip_view.shown(arguments.config(config), Assumptions()):
        yield
