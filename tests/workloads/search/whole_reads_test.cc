#include "workloads/search/whole_reads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "configs/status_macros.h"
#include "workloads/hlo/io/text_parser.h"

namespace tpusim::search {
namespace {

using ::testing::ElementsAre;

std::vector<bool> Read(const std::string& text, int64_t trips = 4) {
  const auto parsed = hlo::ParseHloText(text);
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  return WholeReads(*parsed->module,
                    [=](const hlo::Instruction&) -> absl::StatusOr<int64_t> { return trips; });
}

// Operands in order: a factor, one that is converted before, what is updated, what is forwarded, a
// table that is looked up, one that is converted before, an array of which a slice is multiplied.
TEST(WholeReads, AreMultipliedOrUpdated) {
  EXPECT_THAT(Read(R"(HloModule reads
ENTRY main {
  x = f32[8,16]{1,0} parameter(0)
  w = bf16[16,8]{1,0} parameter(1)
  momentum = f32[8,8]{1,0} parameter(2)
  step = f32[8]{0} parameter(3)
  table = f32[64,8]{1,0} parameter(4)
  half = bf16[64,8]{1,0} parameter(5)
  long = f32[64,16]{1,0} parameter(6)
  at = s32[8,1]{1,0} constant({{1},{2},{3},{4},{5},{6},{7},{8}})
  wide = f32[16,8]{1,0} convert(w)
  y = f32[8,8]{1,0} dot(x, wide), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  moved = f32[8,8]{1,0} add(momentum, y)
  rows = f32[8,8]{1,0} gather(table, at), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,8}
  whole = f32[64,8]{1,0} convert(half)
  others = f32[8,8]{1,0} gather(whole, at), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,8}
  part = f32[8,16]{1,0} slice(long), slice={[0:8], [0:16]}
  z = f32[8,8]{1,0} dot(part, wide), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT results = (f32[8,8]{1,0}, f32[8]{0}, f32[8,8]{1,0}, f32[8,8]{1,0}, f32[8,8]{1,0}) tuple(moved, step, rows, others, z)
})"),
              ElementsAre(true, true, true, false, false, false, false));
}

// Layers: one per iteration; backwards; always the first; of more than there are iterations.
TEST(WholeReads, ALoopTakesALayerAtATime) {
  const std::string loop = R"(HloModule layers
body {
  p = (s32[], f32[8]{0}, f32[4,8,8]{2,1,0}, f32[4,8,8]{2,1,0}, f32[4,8,8]{2,1,0}, f32[5,8,8]{2,1,0}) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[8]{0} get-tuple-element(p), index=1
  a = f32[4,8,8]{2,1,0} get-tuple-element(p), index=2
  b = f32[4,8,8]{2,1,0} get-tuple-element(p), index=3
  c = f32[4,8,8]{2,1,0} get-tuple-element(p), index=4
  d = f32[5,8,8]{2,1,0} get-tuple-element(p), index=5
  zero = s32[] constant(0)
  one = s32[] constant(1)
  three = s32[] constant(3)
  back = s32[] subtract(three, i)
  a1 = f32[1,8,8]{2,1,0} dynamic-slice(a, i, zero, zero), dynamic_slice_sizes={1,8,8}
  b1 = f32[1,8,8]{2,1,0} dynamic-slice(b, back, zero, zero), dynamic_slice_sizes={1,8,8}
  c1 = f32[1,8,8]{2,1,0} dynamic-slice(c, zero, zero, zero), dynamic_slice_sizes={1,8,8}
  d1 = f32[1,8,8]{2,1,0} dynamic-slice(d, i, zero, zero), dynamic_slice_sizes={1,8,8}
  a2 = f32[8,8]{1,0} reshape(a1)
  b2 = f32[8,8]{1,0} reshape(b1)
  c2 = f32[8,8]{1,0} reshape(c1)
  d2 = f32[8,8]{1,0} reshape(d1)
  xa = f32[8]{0} dot(x, a2), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  xb = f32[8]{0} dot(xa, b2), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  xc = f32[8]{0} dot(xb, c2), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  xd = f32[8]{0} dot(xc, d2), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  next = s32[] add(i, one)
  ROOT r = (s32[], f32[8]{0}, f32[4,8,8]{2,1,0}, f32[4,8,8]{2,1,0}, f32[4,8,8]{2,1,0}, f32[5,8,8]{2,1,0}) tuple(next, xd, a, b, c, d)
}
condition {
  p = (s32[], f32[8]{0}, f32[4,8,8]{2,1,0}, f32[4,8,8]{2,1,0}, f32[4,8,8]{2,1,0}, f32[5,8,8]{2,1,0}) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(4)
  ROOT less = pred[] compare(i, n), direction=LT
}
ENTRY main {
  x = f32[8]{0} parameter(0)
  a = f32[4,8,8]{2,1,0} parameter(1)
  b = f32[4,8,8]{2,1,0} parameter(2)
  c = f32[4,8,8]{2,1,0} parameter(3)
  d = f32[5,8,8]{2,1,0} parameter(4)
  zero = s32[] constant(0)
  carry = (s32[], f32[8]{0}, f32[4,8,8]{2,1,0}, f32[4,8,8]{2,1,0}, f32[4,8,8]{2,1,0}, f32[5,8,8]{2,1,0}) tuple(zero, x, a, b, c, d)
  loop = (s32[], f32[8]{0}, f32[4,8,8]{2,1,0}, f32[4,8,8]{2,1,0}, f32[4,8,8]{2,1,0}, f32[5,8,8]{2,1,0}) while(carry), body=body, condition=condition
  ROOT y = f32[8]{0} get-tuple-element(loop), index=1
})";
  EXPECT_THAT(Read(loop), ElementsAre(true, true, true, false, false));
  EXPECT_THAT(Read(loop, 0), ElementsAre(false, false, false, false, false));
}

// 8 x 16 floats that are multiplied; the same from host memory; a table that is looked up.
TEST(WholeReads, BytesAreOfWhatBeginsInHbm) {
  const auto parsed = hlo::ParseHloText(R"(HloModule reads
ENTRY main {
  x = f32[8,16]{1,0} parameter(0)
  w = f32[8,16]{1,0} parameter(1)
  table = f32[64,8]{1,0} parameter(2)
  at = s32[8,1]{1,0} constant({{1},{2},{3},{4},{5},{6},{7},{8}})
  y = f32[8,8]{1,0} dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={1}
  rows = f32[8,8]{1,0} gather(table, at), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,8}
  ROOT sum = f32[8,8]{1,0} add(y, rows)
})");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  tpusim::Workload workload;
  for (const char* kind : {"device", "pinned_host", "device"}) {
    workload.add_argument_memory_kinds(kind);
  }
  const auto once = [](const hlo::Instruction&) -> absl::StatusOr<int64_t> { return 1; };
  EXPECT_THAT(BytesRead(*parsed->module, workload, once),
              ElementsAre(Bytes(8 * 16 * 4), Bytes(0), Bytes(0)));
}

}  // namespace
}  // namespace tpusim::search
