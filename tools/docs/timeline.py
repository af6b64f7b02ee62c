"""Draws docs/images/timeline.svg: a collective matmul whose transfers hide behind products.

python tools/docs/timeline.py [-o FILE.svg]
"""

import argparse
import pathlib
import sys

import matplotlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "python"))

import tpusim  # noqa: E402

PROGRAM = ROOT / "workloads" / "examples" / "collective_matmul_int32.pb.gz"


def main() -> None:
    """Writes the picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", default=ROOT / "docs" / "images" / "timeline.svg")
    # Text as text; the same bytes each time.
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "tpusim"})
    axes = tpusim.simulate(PROGRAM).plot_timeline()
    axes.figure.savefig(parser.parse_args().o, metadata={"Date": None})


if __name__ == "__main__":
    main()
