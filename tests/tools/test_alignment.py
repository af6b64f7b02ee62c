"""`tpusim compare` of a program that the TPU compiler wrote with an export of the same program."""

import json
import pathlib

import pytest

from tests.tools import schemas
from tests.tools.command_line import SLICE, example

CORPUS = pathlib.Path(__file__).resolve().parents[1] / "data" / "compiled" / SLICE
# A loop over layers with a synchronous all-reduce in each, and one whose permutes go on beside
# products.
PROGRAMS = ["mlp_scan_8_layers", "collective_matmul_bf16"]


def compiled(program: str) -> pathlib.Path:
    return CORPUS / f"{program}.pb.gz"


@pytest.mark.parametrize("program", PROGRAMS)
def test_places_add_up_to_the_steps(binary: str, run, program: str):
    done = run("compare", example(program), compiled(program), "--json", "--quiet")
    assert done.returncode == 0, done.stderr
    both = json.loads(done.stdout)
    assert schemas.validator(binary, "compare").is_valid(both)
    (alignment,) = both["alignment"]
    assert alignment["compiled"] == "B"
    for side, column in zip("ab", both["compared"], strict=True):
        total = alignment[side]
        assert total["label"] == column["label"]
        assert total["step_time_ns"] == column["report"]["step_time_ns"]
        assert total["peak_hbm_bytes"] == column["report"]["peak_hbm_bytes"]
        parts = sum(total[f"{part}_ns"] for part in ("kernel", "collective", "copy", "rest"))
        assert parts == pytest.approx(total["step_time_ns"])
        places = [place[side] for place in alignment["places"]]
        assert sum(place["time_ns"] for place in places) == pytest.approx(total["step_time_ns"])
        assert sum(place["kernels"] for place in places) == total["kernels"]
        counted = {row["kind"]: row[side]["count"] for row in alignment["collectives"]}
        reported = column["report"]["collectives"]
        assert counted == {
            kind: sum(c["count"] for c in reported if c["kind"] == kind)
            for kind in {c["kind"] for c in reported}
        }
    changes = [abs(place["change_ns"]) for place in alignment["places"]]
    assert changes == sorted(changes, reverse=True)


def test_lines_of_both_compilers_meet(run):
    """The layer's products, of 16 kernels either way, and its all-reduce are at one place each."""
    program = "mlp_scan_8_layers"
    both = json.loads(run("compare", example(program), compiled(program), "--json").stdout)
    (alignment,) = both["alignment"]
    loop = [p for p in alignment["places"] if p["scope"].endswith("/while/body/closed_call")]
    products = max(loop, key=lambda place: place["a"]["time_ns"])
    assert products["source"].startswith("workloads/examples/layers.py:")
    assert products["a"]["kernels"] == products["b"]["kernels"] == 16
    for place in alignment["places"]:
        assert not place["a"]["collectives_otherwise"]
        assert not place["b"]["collectives_otherwise"]


def test_text_and_page(run, tmp_path: pathlib.Path):
    program = "collective_matmul_bf16"
    files = (compiled(program), example(program))
    done = run("compare", *files, "--html", tmp_path / "both.html", "--quiet")
    assert done.returncode == 0, done.stderr
    assert "\nB, by tpusim, beside A, by the TPU compiler\n" in done.stdout
    assert "\nwhere time differs" in done.stdout
    assert "\nfused otherwise" in done.stdout
    assert '"title":"B beside A"' in (tmp_path / "both.html").read_text().replace('": "', '":"')
    by_scope = run("compare", *files, "--by", "scope", "--quiet").stdout
    assert "collective_matmul.py:33" in done.stdout
    assert "collective_matmul.py:33" not in by_scope


def test_other_programs_are_not_lined_up(run):
    """Nor two exports of one program, nor those of different names."""
    for other in (example("psum"), example("all_gather")):
        done = run("compare", compiled("mlp_scan_8_layers"), other, "--json", "--quiet")
        assert "alignment" not in json.loads(done.stdout)
    done = run("compare", example("psum"), example("all_gather"), "--json", "--quiet")
    assert "alignment" not in json.loads(done.stdout)
