"""Writes every example's export beside it; `python workloads/examples/export_all.py [FOLDER]`.

Exports are committed so that the simulator can be used, and tested, without JAX. The bytes depend
on the JAX version and on nothing else: same sources, same files.
"""

import contextlib
import os
import pathlib
import sys
from collections.abc import Iterator, Mapping, Sequence

ROOT = pathlib.Path(__file__).resolve().parents[2]
if __name__ == "__main__":
    sys.path[:0] = [str(ROOT), str(ROOT / "tools" / "python")]

from tpusim.cpu_devices import force_cpu_devices  # noqa: E402

if __name__ == "__main__":
    force_cpu_devices(8)  # For the programs that name no mesh: pmap takes what there is.

import jax  # noqa: E402
import tpusim  # noqa: E402

from workloads.examples import EXAMPLES, Example, clear_caches  # noqa: E402


@contextlib.contextmanager
def reproducible() -> Iterator[None]:
    """Makes an export independent of who calls it, from where, and of what was traced before."""
    folder, frames = os.getcwd(), jax.config.jax_traceback_in_locations_limit
    os.chdir(ROOT)
    jax.config.update("jax_traceback_in_locations_limit", 1)
    clear_caches()
    try:
        yield
    finally:
        jax.config.update("jax_traceback_in_locations_limit", frames)
        os.chdir(folder)


def export(example: Example) -> tpusim.Workload:
    """The example as a workload, in memory."""
    with reproducible():
        function, arguments = example()
        return tpusim.export(
            function,
            *arguments,
            path=None,
            name=example.name,
            config=example.config,
            trip_counts=example.trip_counts,
        )


def write(examples: Mapping[str, Example], folder: pathlib.Path, only: Sequence[str] = ()) -> None:
    """Exports the examples, or those named in `only`, to FOLDER/NAME.pb.gz."""
    for name in only or examples:
        path = folder / f"{name}.pb.gz"
        export(examples[name]).save(path)
        print(f"{path.name}: {path.stat().st_size} bytes")


def main() -> None:
    """Exports all of EXAMPLES."""
    write(EXAMPLES, pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "workloads/examples"))


if __name__ == "__main__":
    main()
