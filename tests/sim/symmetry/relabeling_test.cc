// Programs that are the same under other names.
#include "sim/symmetry/relabeling.h"

#include <gtest/gtest.h>

#include "tests/sim/pod_testing.h"

namespace tpusim::sim {
namespace {

using namespace tpusim::testing;  // NOLINT: the vocabulary of these tests

isa::Rdma To(int32_t route, int32_t flag, int64_t bytes = 100) {
  isa::Rdma rdma;
  rdma.route = route;
  rdma.bytes = Bytes(bytes);
  rdma.arrival_flag = flag;
  return rdma;
}

isa::Start On(int32_t stream, int32_t token, isa::SharedBody body) {
  return {{isa::StreamKind::kCollective, stream}, token, std::move(body)};
}

// Route 0 becomes route 1 and the other way round.
std::optional<Relabeling> Exchanged(isa::SharedBody body) {
  isa::PodProgram program = MakeProgram({std::move(body)});
  program.routes.resize(2);
  return FindRelabeling(program, {{0, 0}},
                        [](int32_t route, int32_t image) { return image == 1 - route; });
}

TEST(Relabeling, FlagsFollowRoutes) {
  const auto found =
      Exchanged(Share(On(0, 0, Share(To(0, 5), isa::Wait{5, 1})),
                      On(1, 1, Share(To(1, 3), isa::Wait{3, 1})), isa::Done{0}, isa::Done{1}));
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->routes, (std::vector<int32_t>{1, 0}));
  EXPECT_EQ(found->flags, (std::vector<int32_t>{-1, -1, -1, 5, -1, 3, -1, -1}));
  EXPECT_FALSE(found->IsIdentity());
  EXPECT_TRUE(found->Then(found->Inverse()).IsIdentity());
  EXPECT_EQ(found->Then(*found).routes, (std::vector<int32_t>{0, 1}));
}

TEST(Relabeling, OtherBytesOrOtherWaitsAreAnotherProgram) {
  EXPECT_FALSE(Exchanged(Share(To(0, 1, 100), To(1, 2, 200))).has_value());
  // Over 0 the flag counts to two, over 1 to one.
  EXPECT_FALSE(Exchanged(Share(To(0, 1), To(1, 2), isa::Wait{1, 2}, isa::Wait{2, 1})).has_value());
}

TEST(Relabeling, WhatTakesTimeKeepsItsPlace) {
  EXPECT_TRUE(Exchanged(Share(To(0, 1), To(1, 2), Compute(10))).has_value());
  // First over 0, later over 1: turned round it is another program.
  EXPECT_FALSE(Exchanged(Share(To(0, 1), Compute(10), To(1, 2))).has_value());
}

TEST(Relabeling, AFlagHasOneName) {
  // Both routes raise flag 1: no other flag can stand for it at one of them.
  EXPECT_TRUE(Exchanged(Share(To(0, 1), To(1, 1), isa::Wait{1, 2})).has_value());
  EXPECT_FALSE(Exchanged(Share(On(0, 0, Share(To(0, 1), To(1, 2))), isa::Done{0},
                               On(0, 1, Share(To(0, 1), To(1, 3))), isa::Done{1}))
                   .has_value());
}

TEST(Relabeling, AFailedAttemptLeavesNoNames) {
  // The first start fits none but the third, and what the attempts with the others named is
  // taken back.
  const auto found = Exchanged(
      Share(On(0, 0, Share(To(0, 1), Compute(7))), On(1, 1, Share(To(1, 2), Compute(5))),
            On(2, 2, Share(To(1, 3), Compute(7))), On(3, 3, Share(To(0, 4), Compute(5)))));
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->flags, (std::vector<int32_t>{-1, 3, 4, 1, 2, -1, -1, -1}));
}

}  // namespace
}  // namespace tpusim::sim
