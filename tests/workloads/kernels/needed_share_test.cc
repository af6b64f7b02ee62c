// Bytes that kernels read of their operands and write of their results.

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "configs/config.h"
#include "workloads/hlo/io/text_parser.h"
#include "workloads/kernels/view/kernel_view.h"

namespace tpusim::kernels {
namespace {

class Touched : public ::testing::Test {
 protected:
  Touched() : config_(configs::LoadConfig("v5e-1x1", {}).value()), target_(config_) {}

  // Returns a view of the fusion that is the entry's root.
  KernelView View(const std::string& text) {
    module_ = hlo::ParseHloText(text).value().module;
    return ViewKernel(*module_->entry()->root(), target_);
  }
  int64_t Read(const KernelView& view, size_t input) {
    return BytesOf(view.inputs[input], target_).value();
  }
  int64_t Written(const KernelView& view, size_t output) {
    return BytesOf(view.outputs[output], target_).value();
  }

  configs::Config config_;
  target::Target target_;
  std::unique_ptr<hlo::Module> module_;
};

// Rows of 1024 words of two slices, counted once if they are the same.
TEST_F(Touched, DifferentSlicesOfAnOperandAddUp) {
  const std::map<std::string, int64_t> rows = {
      {"[256:512]", 512}, {"[0:256]", 256}, {"[128:384]", 512}};
  for (const auto& [second, read] : rows) {
    const KernelView view = View(R"(HloModule m
f {
  p = f32[1024,1024] parameter(0)
  a = f32[256,1024] slice(p), slice={[0:256], [0:1024]}
  b = f32[256,1024] slice(p), slice={)" +
                                 second + R"(, [0:1024]}
  ROOT c = f32[256,1024] add(a, b)
}
ENTRY e {
  x = f32[1024,1024] parameter(0)
  ROOT r = f32[256,1024] fusion(x), kind=kLoop, calls=f
})");
    EXPECT_EQ(Read(view, 0), read * 1024 * 4) << second;
    EXPECT_EQ(RegistersOf(view.inputs[0], target_), static_cast<double>(read)) << second;
  }
}

TEST_F(Touched, NoMoreThanAllOfAnOperandIsRead) {
  const KernelView view = View(R"(HloModule m
f {
  p = f32[1024,1024] parameter(0)
  a = f32[768,1024] slice(p), slice={[0:768], [0:1024]}
  b = f32[768,1024] slice(p), slice={[256:1024], [0:1024]}
  ROOT c = f32[768,1024] add(a, b)
}
ENTRY e {
  x = f32[1024,1024] parameter(0)
  ROOT r = f32[768,1024] fusion(x), kind=kLoop, calls=f
})");
  EXPECT_EQ(Read(view, 0), 1024 * 1024 * 4);
}

// A row of [64,100] words lies in whole tiles of one row of 128 lanes.
TEST_F(Touched, SlicesCountInWholeTiles) {
  const KernelView view = View(R"(HloModule m
f {
  p = f32[64,100] parameter(0)
  n = s32[] parameter(1)
  zero = s32[] constant(0)
  a = f32[1,100] dynamic-slice(p, n, zero), dynamic_slice_sizes={1,100}
  ROOT c = f32[1,100] negate(a)
}
ENTRY e {
  x = f32[64,100] parameter(0)
  n = s32[] parameter(1)
  ROOT r = f32[1,100] fusion(x, n), kind=kLoop, calls=f
})");
  EXPECT_EQ(Read(view, 0), 128 * 4);
}

// An update writes its 8 rows, unless what it updates is made in the same kernel: then
// all 1024 rows are written.
TEST_F(Touched, AnUpdateOfWhatTheKernelMakesWritesAllOfIt) {
  const auto view = [&](const std::string& base) {
    return View(R"(HloModule m
f {
  p = f32[1024,1024] parameter(0)
  u = f32[8,1024] parameter(1)
  n = s32[] parameter(2)
  zero = f32[] constant(0)
  first = s32[] constant(0)
  made = f32[1024,1024] broadcast(zero), dimensions={}
  ROOT d = f32[1024,1024] dynamic-update-slice()" +
                base + R"(, u, n, first)
}
ENTRY e {
  x = f32[1024,1024] parameter(0)
  u = f32[8,1024] parameter(1)
  n = s32[] parameter(2)
  ROOT r = f32[1024,1024] fusion(x, u, n), kind=kLoop, calls=f
})");
  };
  const KernelView in_place = view("p");
  EXPECT_EQ(Written(in_place, 0), 8 * 1024 * 4);
  EXPECT_FALSE(in_place.inputs[0].reads());
  EXPECT_EQ(Read(in_place, 1), 8 * 1024 * 4);
  const KernelView made = view("made");
  EXPECT_EQ(Written(made, 0), 1024 * 1024 * 4);
  EXPECT_EQ(Read(made, 1), 8 * 1024 * 4);
}

// Two results cannot have one buffer: the second is a copy with its own change.
TEST_F(Touched, OneOfTwoUpdatesIsInPlace) {
  const KernelView view = View(R"(HloModule m
f {
  p = f32[1024,1024] parameter(0)
  u = f32[8,1024] parameter(1)
  n = s32[] parameter(2)
  first = s32[] constant(0)
  a = f32[1024,1024] dynamic-update-slice(p, u, n, first)
  b = f32[1024,1024] dynamic-update-slice(p, u, first, first)
  ROOT t = (f32[1024,1024], f32[1024,1024]) tuple(a, b)
}
ENTRY e {
  x = f32[1024,1024] parameter(0)
  u = f32[8,1024] parameter(1)
  n = s32[] parameter(2)
  ROOT r = (f32[1024,1024], f32[1024,1024]) fusion(x, u, n), kind=kLoop, calls=f
})");
  EXPECT_EQ(Read(view, 0), 1024 * 1024 * 4);
  EXPECT_EQ(Written(view, 0), 8 * 1024 * 4);
  EXPECT_EQ(Written(view, 1), 1024 * 1024 * 4);
}

// From one memory into another everything moves.
TEST_F(Touched, AnUpdateIntoAnotherMemoryWritesAllOfIt) {
  const KernelView view = View(R"(HloModule m
f {
  p = f32[1024,1024] parameter(0)
  u = f32[8,1024] parameter(1)
  n = s32[] parameter(2)
  first = s32[] constant(0)
  ROOT a = f32[1024,1024] dynamic-update-slice(p, u, n, first)
}
ENTRY e {
  x = f32[1024,1024] parameter(0)
  u = f32[8,1024] parameter(1)
  n = s32[] parameter(2)
  ROOT r = f32[1024,1024]{1,0:S(1)} fusion(x, u, n), kind=kLoop, calls=f
})");
  EXPECT_EQ(Read(view, 0), 1024 * 1024 * 4);
  EXPECT_EQ(Written(view, 0), 1024 * 1024 * 4);
}

// Rows that are picked by index come one by one, however much of the array they are.
TEST_F(Touched, LookupsReadRows) {
  const KernelView view = View(R"(HloModule m
f {
  p = f32[32,1024] parameter(0)
  n = s32[4096,1] parameter(1)
  g = f32[4096,1024] gather(p, n), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,1024}
  ROOT c = f32[4096,1024] negate(g)
}
ENTRY e {
  x = f32[32,1024] parameter(0)
  n = s32[4096,1] parameter(1)
  ROOT r = f32[4096,1024] fusion(x, n), kind=kLoop, calls=f
})");
  EXPECT_EQ(Read(view, 0), 4096 * 1024 * 4);
}

}  // namespace
}  // namespace tpusim::kernels
