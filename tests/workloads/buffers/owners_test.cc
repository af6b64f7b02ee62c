#include "workloads/buffers/owners.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "configs/config.h"
#include "tests/workloads/buffers/checked_plan.h"
#include "workloads/buffers/fits.h"
#include "workloads/hlo/io/text_parser.h"

namespace tpusim::buffers {
namespace {

using ::testing::HasSubstr;

// A step that updates w and its momentum m: y = tanh(x w) is needed again backwards.
// Arrays of f32[512,512] are 1 MiB. Most is live while g, the gradient, is made:
// w, m, x, y, dy and g.
constexpr std::string_view kStep =
    R"(HloModule m, is_scheduled=true, input_output_alias={ {0}: (0, {}, may-alias), {1}: (1, {}, may-alias) }
ENTRY e {
  w = f32[512,512] parameter(0), metadata={op_name="state.w"}
  m = f32[512,512] parameter(1), metadata={op_name="state.m"}
  x = f32[512,512] parameter(2), metadata={op_name="x"}
  c = bf16[512,512] convert(w), metadata={op_name="jit(s)/jvp()/convert_element_type"}
  z = f32[512,512] dot(x, c), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="jit(s)/jvp()/dot_general"}
  y = f32[512,512] tanh(z), metadata={op_name="jit(s)/jvp()/tanh"}
  n = f32[512,512] negate(y), metadata={op_name="jit(s)/transpose(jvp())/neg"}
  dy = f32[512,512] multiply(n, y), metadata={op_name="jit(s)/transpose(jvp())/mul"}
  g = f32[512,512] dot(x, dy), lhs_contracting_dims={0}, rhs_contracting_dims={0}, metadata={op_name="jit(s)/transpose(jvp())/dot_general"}
  u = f32[512,512] dot(dy, y), lhs_contracting_dims={0}, rhs_contracting_dims={0}, metadata={op_name="jit(s)/transpose(jvp())/dot_general"}
  gu = f32[512,512] dot(c, u), lhs_contracting_dims={0}, rhs_contracting_dims={0}, metadata={op_name="jit(s)/transpose(jvp())/dot_general"}
  h = f32[512,512] add(g, gu), metadata={op_name="jit(s)/transpose(jvp())/add_any"}
  m2 = f32[512,512] add(m, h), metadata={op_name="jit(s)/add"}
  w2 = f32[512,512] subtract(w, m2), metadata={op_name="jit(s)/sub"}
  ROOT t = (f32[512,512], f32[512,512]) tuple(w2, m2)
})";

class OwnersTest : public ::testing::Test {
 protected:
  explicit OwnersTest() : config_(configs::LoadConfig("v5e-1x1", {}).value()) {}

  void Plan(std::string_view text) {
    module_ = hlo::ParseHloText(std::string(text)).value().module;
    plan_ = CheckedPlan(*module_, target::Target(config_));
    const Ownership ownership = FindOwners(*module_, plan_);
    for (const isa::LiveArray& array : ownership.at_peak) arrays_[array.name] = array;
    // Of all buffers there is one, also of those that are not live at the peak.
    ASSERT_EQ(ownership.of_buffer.size(), plan_.buffers.size());
    for (size_t n = 0; n < plan_.live_at_peak.size(); ++n) {
      const int32_t owner = ownership.of_buffer[plan_.live_at_peak[n]];
      EXPECT_EQ(ownership.owners[owner], ownership.at_peak[n].owner);
    }
  }
  configs::Config config_;
  std::unique_ptr<hlo::Module> module_;
  MemoryPlan plan_;
  std::map<std::string, isa::LiveArray> arrays_;
};

TEST_F(OwnersTest, FollowTheDataOfATrainStep) {
  Plan(kStep);
  // While u is made: w, m, x, c (0.5), y, dy, g, u.
  EXPECT_EQ(plan_.peak_at->name(), "u");
  EXPECT_EQ(plan_.PeakOf(hlo::kHbmSpace), Bytes(15 * kMiB / 2));
  std::map<std::string, std::string> owners;
  for (const auto& [name, array] : arrays_) owners[name] = array.owner;
  EXPECT_EQ(owners, (std::map<std::string, std::string>{{"w", "parameters"},
                                                        {"m", "optimizer state"},
                                                        {"x", "arguments"},
                                                        {"c", "parameters"},
                                                        {"y", "saved activations"},
                                                        {"dy", "temporaries"},
                                                        {"g", "temporaries"},
                                                        {"u", "temporaries"}}));
  EXPECT_EQ(arrays_["w"].scope, "state.w");
  EXPECT_EQ(arrays_["y"].scope, "jit(s)/jvp()/tanh");
}

TEST_F(OwnersTest, SumsThatShareAnAllReduceAreApart) {
  // One all-reduce sums the loss, which is the model's, and the square of the momentum, which is not.
  Plan(R"(HloModule m, is_scheduled=true, input_output_alias={ {0}: (0, {}, may-alias), {1}: (1, {}, may-alias) }
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }
ENTRY e {
  w = f32[512,512] parameter(0)
  m = f32[512,512] parameter(1)
  zero = f32[] constant(0)
  loss = f32[] reduce(w, zero), dimensions={0,1}, to_apply=add, metadata={op_name="jit(s)/jvp()/reduce_sum"}
  m2 = f32[512,512] negate(m), metadata={op_name="jit(s)/neg"}
  norm = f32[] reduce(m2, zero), dimensions={0,1}, to_apply=add, metadata={op_name="jit(s)/reduce_sum"}
  sums = (f32[], f32[]) all-reduce(norm, loss), replica_groups={}, to_apply=add, metadata={op_name="jit(s)/reduce_sum"}
  norms = f32[] get-tuple-element(sums), index=0, metadata={op_name="jit(s)/reduce_sum"}
  losses = f32[] get-tuple-element(sums), index=1, metadata={op_name="jit(s)/jvp()/reduce_sum"}
  g = f32[512,512] broadcast(losses), dimensions={}, metadata={op_name="jit(s)/transpose(jvp())/mul"}
  w2 = f32[512,512] subtract(w, g), metadata={op_name="jit(s)/sub"}
  ROOT t = (f32[512,512], f32[512,512], f32[]) tuple(w2, m2, norms)
})");
  EXPECT_EQ(arrays_["w"].owner, "parameters");
  EXPECT_EQ(arrays_["m"].owner, "optimizer state");
}

TEST_F(OwnersTest, PaddingIsToldApart) {
  // 64 of 128 lanes: twice the bytes.
  Plan(R"(HloModule m, is_scheduled=true
ENTRY e {
  x = f32[512,64]{1,0} parameter(0)
  ROOT y = f32[512,64]{1,0} tanh(x)
})");
  EXPECT_EQ(arrays_["x"].unpadded, Bytes(512 * 64 * 4));
  EXPECT_EQ(arrays_["x"].bytes, Bytes(512 * 128 * 4));
  EXPECT_EQ(arrays_["x"].owner, "arguments");
  EXPECT_EQ(arrays_["y"].owner, "results");
  EXPECT_THAT(arrays_["x"].shape, HasSubstr("f32[512,64]{1,0"));
}

TEST_F(OwnersTest, TheErrorSaysWhoseItIs) {
  Plan(kStep);
  config_.chip.hbm.bytes = Bytes(4 * kMiB);
  config_.chip.hbm.reserved_bytes = Bytes(0);
  const std::string message(CheckFits(*module_, plan_, target::Target(config_)).message());
  EXPECT_THAT(message, HasSubstr("it needs 7.5 MiB per device at its peak (u ("));
  EXPECT_THAT(message, HasSubstr("temporaries 3.0 MiB, parameters 1.5 MiB, arguments 1.0 MiB"));
  EXPECT_THAT(message, HasSubstr("y f32[512,512]{1,0} 1.0 MiB (saved activations"));
}

}  // namespace
}  // namespace tpusim::buffers
