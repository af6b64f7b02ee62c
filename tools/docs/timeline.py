"""Draws docs/images/timeline.svg: a collective matmul whose transfers hide behind products.

python tools/docs/timeline.py [-o FILE.svg]
"""

import argparse
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools" / "python"), str(ROOT / "tools" / "validation")]

import pictures  # noqa: E402
import tpusim  # noqa: E402

PROGRAM = ROOT / "workloads" / "examples" / "collective_matmul_int32.pb.gz"


def main() -> None:
    """Writes the picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", type=pathlib.Path, default=ROOT / "docs" / "images" / "timeline.svg")
    axes = tpusim.simulate(PROGRAM).plot_timeline()
    pictures.save(axes.figure, parser.parse_args().o)


if __name__ == "__main__":
    main()
