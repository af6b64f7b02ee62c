"""Bundles that a schedule executes, and the overhead of kernels beside their blocks."""

import gzip
import json
import os
import pathlib
import statistics
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "validation"))

import bundles  # noqa: E402
import compiled_kernels  # noqa: E402

BINARY = os.environ.get("TPUSIM_BINARY", str(ROOT / "build" / "tpusim"))
MODULES = json.loads(compiled_kernels.SCHEDULES.read_text())["modules"]

# Four steps of a loop of two bundles, of which the second branches back; a region that the last
# step leaves out.
_LOOP = """
     0   :  { %s1_s3 = smov 0  ;;  %s2_s4 = smov 7 /* not a count */ }
   0x1 LB: > { %s5_s3 = sphi %s1_s3, %s6_s3  ;;  %v9_v0 = vld [vmem:[%s2_s4]] } /* Start region 6 */
   0x2   : > { %s6_s3 = sadd.s32 1, %s5_s3 }
   0x3   : > { %p7_p0 = scmp.ge.s32.totalorder %s6_s3, 4 /* loop exit test */ }
   0x4   : > { %8 = sbr.rel (%p7_p0) target = $region9 }
   0x5   : > { %10 = vmatmul.bf16.gmra.mxu0 %v9_v0  ;;  %v11_v1 = vtanh.f32 %v9_v0 }
   0x6 PF: > { %12 = sbr.rel (!%p7_p0) target = $region6 } /* Start/End empty region 9 */
   0x7   :  { %13 = vmatmul.f32.gmra.mxu0 %v9_v0 }
"""


def test_loops_and_branches_are_executed():
    executed = bundles.execute(_LOOP)
    assert executed == bundles.Executed(
        bundles=1 + 4 * 5 + 3 + 1, rows=3 * 16 + 8, transcendentals=3
    )


def test_what_does_not_end_is_unknown():
    endless = "0 : { %1 = sbr.rel target = $region2 } /* Start region 2 */"
    assert bundles.execute(endless.replace("region2", "region3")) is None


def test_the_fullest_unit_decides():
    executed = bundles.Executed(bundles=100, rows=600, transcendentals=30)
    assert executed.cycles(0.25, 2) == pytest.approx(150)
    assert executed.cycles(0.1, 4) == pytest.approx(120)
    assert executed.cycles(0.1, 1) == pytest.approx(100)


@pytest.mark.parametrize("module", ["v5e-1x1 mlp_gradient", "v6e-1x1 mlp_gradient"])
def test_blocks_of_products_take_what_is_scheduled(module, tmp_path):
    slice_name, program = module.split()
    workload = tmp_path / "module.pb"
    packed = compiled_kernels.CORPUS / slice_name / f"{program}.pb.gz"
    workload.write_bytes(gzip.decompress(packed.read_bytes()))
    scheduled = compiled_kernels.schedules_of(module, workload, BINARY, MODULES[module])
    ratios = [s.ratio for name, s in scheduled.items() if "copy" not in name]
    assert len(ratios) > 4
    assert 0.95 < statistics.median(ratios) < 1.1
    assert 0.8 < min(ratios) <= max(ratios) < 1.25
