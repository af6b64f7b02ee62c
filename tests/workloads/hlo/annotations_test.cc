#include "workloads/hlo/ir/annotations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/workloads/hlo/hlo_test_util.h"
#include "workloads/hlo/analysis/verify.h"
#include "workloads/hlo/ir/attributes.h"

namespace tpusim::hlo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(AnnotationsTest, ValuesAreWrittenAndReadByType) {
  TestModule t;
  Instruction* i = t.Param(F32({4}));
  EXPECT_FALSE(annotations::kReshard.On(*i));
  annotations::kReshard.Set(i);
  EXPECT_TRUE(annotations::kReshard.On(*i));
  EXPECT_EQ(FrontendAttribute(*i, "tpusim.reshard"), "true");
  annotations::kReshardSite.Set(i, 12);
  EXPECT_EQ(FrontendAttribute(*i, "tpusim.reshard_site"), "12");
  EXPECT_EQ(annotations::kReshardSite.Of(*i), 12);
  annotations::kRaggedSizes.Set(i, {128, 0, 64});
  EXPECT_EQ(FrontendAttribute(*i, "tpusim.ragged_sizes"), "128,0,64");
  EXPECT_THAT(*annotations::kRaggedSizes.Of(*i), ElementsAre(128, 0, 64));
  annotations::kNames.Set(i, {"out", "mlp out"});
  EXPECT_EQ(FrontendAttribute(*i, "tpusim.names"), "out\nmlp out");
  EXPECT_THAT(*annotations::kNames.Of(*i), ElementsAre("out", "mlp out"));
  const annotations::DimensionOrders orders = {{3, {1, 2, 0}}, {5, {0}}, {6, {}}};
  annotations::kElementOrders.Set(i, orders);
  EXPECT_EQ(FrontendAttribute(*i, "tpusim.element_orders"), "3:1,2,0;5:0;6:");
  EXPECT_EQ(annotations::kElementOrders.Of(*i), orders);
  EXPECT_EQ(Message(Verify(t.module())), "");
  annotations::kReshard.Drop(i);
  EXPECT_FALSE(annotations::kReshard.On(*i));
}

TEST(AnnotationsTest, AnotherTypeIsNoValueAndDoesNotVerify) {
  TestModule t;
  Instruction* i = t.Param(F32({4}));
  for (const auto& [name, text, type] :
       {std::tuple("tpusim.reshard_site", "1x", "integer"),
        {"tpusim.assumed_trips", "6,", "integers"},
        {"tpusim.element_orders", "3;1", "dimension orders"}}) {
    SetFrontendAttribute(i, name, text);
    EXPECT_THAT(Message(Verify(t.module())),
                HasSubstr(fmt::format("annotation {}: '{}' is not of type {}", name, text, type)));
    RemoveFrontendAttribute(i, name);
  }
  SetFrontendAttribute(i, "tpusim.reshard_site", "1x");
  EXPECT_EQ(annotations::kReshardSite.Of(*i), std::nullopt);
}

TEST(AnnotationsTest, TheVerifierRefusesWhatTheTableLacks) {
  TestModule t;
  Instruction* i = t.Param(F32({4}));
  SetFrontendAttribute(i, "kernel_name", "theirs");
  EXPECT_EQ(Message(Verify(t.module())), "");
  SetFrontendAttribute(i, "tpusim.axis", "x");
  EXPECT_THAT(Message(Verify(t.module())), HasSubstr("there is no annotation tpusim.axis"));
}

TEST(AnnotationsTest, TheTableHasEachNameOnce) {
  std::set<std::string_view> names;
  for (const AnnotationRow& row : AnnotationTable()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_FALSE(row.type.empty() || row.writer.empty() || row.readers.empty() ||
                 row.dropped_by.empty() || row.meaning.empty())
        << row.name;
  }
}

}  // namespace
}  // namespace tpusim::hlo
