#include "workloads/passes/schedule/schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "tests/workloads/passes/fake_costs.h"
#include "tests/workloads/passes/small_module.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/passes/collectives/async_collectives.h"
#include "workloads/passes/schedule/demote_async.h"

namespace tpusim::passes {
namespace {

// Products take as long as a transfer.
FakeCosts TenPerTanhHundredPerPermute() {
  FakeCosts costs;
  costs.main = [](const Instruction& i) {
    if (i.opcode() == Opcode::kDot) return 100;
    return i.opcode() == Opcode::kTanh || i.opcode() == Opcode::kAdd ? 10 : 0;
  };
  costs.transfer = [](const Instruction&) { return 100; };
  return costs;
}

absl::StatusOr<bool> Order(SmallModule& m, FakeCosts costs) {
  const PassContext context(m.target(), &costs);
  const absl::StatusOr<bool> changed = Schedule(m.module(), context);
  if (!changed.ok()) return changed;
  return DemoteAsync(m.module(), context);
}

TEST(Schedule, ComputeRunsBetweenStartAndDone) {
  SmallModule m;
  Instruction* x = m.Parameter({256, 512});
  Instruction* t = m.Add(Opcode::kTanh, {256, 512}, {x});
  Instruction* permute = m.Add(Opcode::kCollectivePermute, {256, 512}, {x});
  m.Return({m.Add(Opcode::kAdd, {256, 512}, {t, permute})});
  ASSERT_TRUE(MakeCollectivesAsync(m.module(), m.target()).ok());
  ASSERT_TRUE(Order(m, TenPerTanhHundredPerPermute()).ok());
  const auto& order = m.entry().schedule();
  const auto at = [&](Opcode op) {
    return std::find_if(order.begin(), order.end(),
                        [&](const Instruction* i) { return i->opcode() == op; }) -
           order.begin();
  };
  EXPECT_LT(at(Opcode::kCollectivePermuteStart), at(Opcode::kTanh));
  EXPECT_LT(at(Opcode::kTanh), at(Opcode::kCollectivePermuteDone));
  EXPECT_LT(at(Opcode::kCollectivePermuteDone), at(Opcode::kAdd));
  EXPECT_EQ(order.size(), m.entry().size());
}

TEST(Schedule, NoMoreThanFivePermutesInFlight) {
  SmallModule m;
  Instruction* x = m.Parameter({256, 512});
  std::vector<Instruction*> results;
  for (int n = 0; n < 7; ++n) {
    results.push_back(m.Add(Opcode::kCollectivePermute, {256, 512}, {x}));
  }
  m.Return(results);
  ASSERT_TRUE(MakeCollectivesAsync(m.module(), m.target()).ok());
  ASSERT_TRUE(Order(m, TenPerTanhHundredPerPermute()).ok());
  int in_flight = 0, most = 0;
  for (const Instruction* i : m.entry().schedule()) {
    if (i->opcode() == Opcode::kCollectivePermuteStart) ++in_flight;
    if (i->opcode() == Opcode::kCollectivePermuteDone) --in_flight;
    most = std::max(most, in_flight);
  }
  EXPECT_EQ(most, 5);
  EXPECT_EQ(in_flight, 0);
}

// Where each instruction stands in the schedule.
std::map<const Instruction*, int64_t> PlacesOf(const hlo::Computation& computation) {
  std::map<const Instruction*, int64_t> places;
  for (const Instruction* i : computation.schedule()) {
    places.emplace(i, static_cast<int64_t>(places.size()));
  }
  return places;
}

// Layers x = x . gather(w): the gather of a layer's weights is hidden under the
// product of the layer before, and started no earlier than that takes.
TEST(Schedule, GathersAreHiddenUnderTheProductBefore) {
  SmallModule m;
  Instruction* x = m.Parameter({512, 512});
  std::vector<const Instruction*> products;
  for (int layer = 0; layer < 4; ++layer) {
    Instruction* gather = m.Add(Opcode::kAllGather, {512, 512}, {m.Parameter({128, 512})});
    x = m.Dot({512, 512}, x, gather);
    products.push_back(x);
  }
  m.Return({x});
  ASSERT_TRUE(MakeCollectivesAsync(m.module(), m.target()).ok());
  ASSERT_TRUE(Order(m, TenPerTanhHundredPerPermute()).ok());
  const auto places = PlacesOf(m.entry());
  const auto starts = m.Find(Opcode::kAllGatherStart), dones = m.Find(Opcode::kAllGatherDone);
  // Nothing hides the first one.
  EXPECT_EQ(m.Find(Opcode::kAllGather).size(), 1u);
  ASSERT_EQ(starts.size(), 3u);
  for (size_t n = 0; n < 3; ++n) {
    // In flight while the product of the layer before runs, and no other.
    EXPECT_LT(places.at(starts[n]), places.at(products[n]));
    EXPECT_GT(places.at(dones[n]), places.at(products[n]));
    if (n == 0) continue;
    EXPECT_GT(places.at(starts[n]), places.at(products[n - 1]));
  }
}

// One all-gather in flight, and none beside work that carries no steps of it.
TEST(Schedule, AGatherBesideNoProductStaysSynchronous) {
  SmallModule m;
  Instruction* x = m.Parameter({512, 512});
  Instruction* gather = m.Add(Opcode::kAllGather, {512, 512}, {m.Parameter({128, 512})});
  Instruction* t = m.Add(Opcode::kTanh, {512, 512}, {x});
  m.Return({m.Dot({512, 512}, t, gather)});
  ASSERT_TRUE(MakeCollectivesAsync(m.module(), m.target()).ok());
  ASSERT_TRUE(Order(m, TenPerTanhHundredPerPermute()).ok());
  EXPECT_TRUE(m.Find(Opcode::kAllGatherStart).empty());
  ASSERT_EQ(m.Find(Opcode::kAllGather).size(), 1u);
  EXPECT_EQ(m.entry().schedule().size(), m.entry().size());
  EXPECT_EQ(target::WhySynchronous(*m.Find(Opcode::kAllGather)[0], m.target()),
            "nothing covers it");
}

// The chain of permutes is what takes long: a product that would delay the next one
// waits for it. Three permutes of 100 one after the other, products of 60 of what each
// brings: two fit under no permute together.
TEST(Schedule, ALongerWayThroughTransfersGoesFirst) {
  SmallModule m;
  FakeCosts costs = TenPerTanhHundredPerPermute();
  costs.main = [](const Instruction& i) { return i.opcode() == Opcode::kDot ? 60 : 0; };
  Instruction* w = m.Parameter({512, 512});
  Instruction* x = m.Parameter({512, 512});
  std::vector<Instruction*> results;
  for (int n = 0; n < 3; ++n) {
    results.push_back(m.Dot({512, 512}, x, w));
    x = m.Add(Opcode::kCollectivePermute, {512, 512}, {x});
  }
  results.push_back(m.Dot({512, 512}, x, w));
  m.Return(results);
  ASSERT_TRUE(MakeCollectivesAsync(m.module(), m.target()).ok());
  ASSERT_TRUE(Order(m, costs).ok());
  const auto places = PlacesOf(m.entry());
  const auto starts = m.Find(Opcode::kCollectivePermuteStart);
  const auto dones = m.Find(Opcode::kCollectivePermuteDone);
  for (size_t n = 0; n < 3; ++n) {
    int under = 0;
    for (const Instruction* product : m.Find(Opcode::kDot)) {
      under +=
          places.at(starts[n]) < places.at(product) && places.at(product) < places.at(dones[n]);
    }
    EXPECT_EQ(under, 1) << n;
  }
}

// v7x: all-reduces of 64 KiB and more run on the two SparseCores of a device.
TEST(Schedule, OffLoadedCollectivesRunOnTheSparseCores) {
  SmallModule m("v7x-2x2x1");
  std::vector<Instruction*> results;
  for (int n = 0; n < 4; ++n) {
    results.push_back(m.Add(Opcode::kAllReduce, {128, 128}, {m.Parameter({128, 128})}));  // 64 KiB
  }
  results.push_back(m.Add(Opcode::kAllReduce, {127, 128}, {m.Parameter({127, 128})}));
  m.Return(results);
  ASSERT_TRUE(MakeCollectivesAsync(m.module(), m.target()).ok());
  EXPECT_EQ(m.Find(Opcode::kAllReduce).size(), 1u);
  const auto starts = m.Find(Opcode::kAsyncStart);
  ASSERT_EQ(starts.size(), 4u);
  EXPECT_TRUE(hlo::IsOffLoaded(*starts[0]));
  EXPECT_EQ(starts[0]->called()[0]->root()->opcode(), Opcode::kAllReduce);
  ASSERT_TRUE(Order(m, TenPerTanhHundredPerPermute()).ok());
  int in_flight = 0, most = 0;
  for (const Instruction* i : m.entry().schedule()) {
    if (i->opcode() == Opcode::kAsyncStart) ++in_flight;
    if (i->opcode() == Opcode::kAsyncDone) --in_flight;
    most = std::max(most, in_flight);
  }
  EXPECT_EQ(most, 2);
}

TEST(Schedule, NothingIsOffLoadedByDefaultOnV6e) {
  SmallModule m("v6e-4x4");
  m.Return({m.Add(Opcode::kAllReduce, {1024, 1024}, {m.Parameter({1024, 1024})})});
  ASSERT_TRUE(MakeCollectivesAsync(m.module(), m.target()).ok());
  EXPECT_EQ(m.Find(Opcode::kAllReduce).size(), 1u);
}

}  // namespace
}  // namespace tpusim::passes
