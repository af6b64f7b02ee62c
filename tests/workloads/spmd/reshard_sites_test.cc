#include "workloads/spmd/reshard_sites.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "configs/status_macros.h"
#include "tests/workloads/spmd/spmd_test_util.h"
#include "workloads/hlo/io/text_parser.h"
#include "workloads/hlo/ir/annotations.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/spmd/partition.h"

namespace tpusim::spmd {
namespace {

using hlo::Instruction;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Returns what the partitioner makes of HLO text over the mesh x=4, y=2.
PartitionResult Partitioned(const std::string& body) {
  const std::string text =
      R"(HloModule m, frontend_attributes={xla.sdy.meshes="{mesh = #sdy.mesh<[\"x\"=4, \"y\"=2]>}"}

%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %sum = f32[] add(%a, %b)
}

ENTRY %main {
)" + body +
      "}\n";
  auto parsed = hlo::ParseHloText(text);
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  auto sharded = sharding::ShardModule(std::move(parsed->module), 0);
  EXPECT_TRUE(sharded.ok()) << sharded.status();
  auto result = Partition(*sharded, kV5eLatency);
  EXPECT_TRUE(result.ok()) << result.status();
  return *std::move(result);
}

std::string Says(const std::string& sharding) {
  return R"(, frontend_attributes={xla.sdy.sharding="#sdy.sharding<@mesh, )" + sharding + R"(>"})";
}
const std::string kRows = Says(R"([{\"x\"}, {}])"), kColumns = Says(R"([{}, {\"x\"}])");

std::vector<std::string> Constraints(const isa::ReshardSite& site) {
  std::vector<std::string> texts;
  for (const isa::ReshardSite::Constraint& c : site.constraints) texts.push_back(c.text);
  return texts;
}

// An activation [64,32] split by rows, a weight [32,128] by columns, and a use that wants columns:
// the product is split by columns, for which the whole batch is gathered.
const std::string kWholeBatch =
    "  %batch = f32[64,32] parameter(0)" + kRows + ", metadata={op_name=\"batch\"}\n" +
    "  %w = f32[32,128] parameter(1)" + kColumns + ", metadata={op_name=\"params['w']\"}\n" +
    R"(  %act = f32[64,32] negate(%batch)
  %dot = f32[64,128] dot(%act, %w), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="f/dot" source_file="model.py" source_line=7}
  %neg = f32[64,128] negate(%dot)
)" + "  ROOT %r = f32[64,128] custom-call(%neg), custom_call_target=\"Sharding\"" +
    kColumns + "\n";

TEST(ReshardSites, AWholeBatchThatIsGathered) {
  const PartitionResult result = Partitioned(kWholeBatch);
  ASSERT_EQ(result.reshard_sites.size(), 1u);
  const isa::ReshardSite& site = result.reshard_sites[0];
  EXPECT_EQ(site.kind, "all-gather");
  EXPECT_EQ(site.value, "act");
  EXPECT_EQ(site.user, "dot");
  EXPECT_EQ(site.source, "model.py:7");
  EXPECT_EQ(site.from, "[{x}, {}]");
  EXPECT_EQ(site.to, "[{}, {}]");
  EXPECT_EQ(site.whole, Bytes(64 * 32 * 4));
  EXPECT_EQ(site.lost_by, Bytes(64 * 128 * 4));   // its rows are not split any more
  EXPECT_EQ(site.bytes, Bytes(3 * 16 * 32 * 4));  // three other shards of 16 rows
  EXPECT_EQ(site.places, 1);
  EXPECT_THAT(site.why, HasSubstr("`x` shards dim 0 of act (from argument batch)"));
  EXPECT_THAT(site.why, HasSubstr(" but dim 1 of dot"));
  EXPECT_THAT(Constraints(site), ElementsAre("dot=P('x', None)", "act=P(None, None)"));
  EXPECT_TRUE(site.constraints[0].of_result);
}

TEST(ReshardSites, CollectivesNameTheirPlace) {
  const PartitionResult result = Partitioned(kWholeBatch);
  int named = 0;
  for (const Instruction* i : result.module->entry()->PostOrder()) {
    if (!hlo::IsCollective(i->opcode())) continue;
    EXPECT_EQ(hlo::annotations::kReshardSite.Of(*i), 0) << i->name();
    ++named;
  }
  EXPECT_EQ(named, 1);
}

TEST(ReshardSites, TheSamePlaceOfLayersIsOne) {
  std::string body;
  int parameter = 0;
  for (const std::string n : {".0", ".1"}) {
    const auto argument = [&] { return "parameter(" + std::to_string(parameter++) + ")"; };
    body += "  %batch" + n + " = f32[64,32] " + argument() + kRows + "\n";
    body += "  %w" + n + " = f32[32,128] " + argument() + kColumns + "\n";
    body += "  %act" + n + " = f32[64,32] negate(%batch" + n + ")\n";
    body += "  %dot" + n + " = f32[64,128] dot(%act" + n + ", %w" + n +
            "), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name=\"f/dot\" "
            "source_file=\"model.py\" source_line=7}\n";
    body += "  %neg" + n + " = f32[64,128] negate(%dot" + n + ")\n";
    body += "  %r" + n + " = f32[64,128] custom-call(%neg" + n +
            "), custom_call_target=\"Sharding\"" + kColumns + "\n";
  }
  const PartitionResult result = Partitioned(body + "  ROOT %sum = f32[64,128] add(%r.0, %r.1)\n");
  ASSERT_EQ(result.reshard_sites.size(), 1u);
  EXPECT_EQ(result.reshard_sites[0].places, 2);
  EXPECT_THAT(Constraints(result.reshard_sites[0]),
              ElementsAre("dot.0,dot.1=P('x', None)", "act.0,act.1=P(None, None)"));
}

TEST(ReshardSites, WeightsThatAreGatheredAreNone) {
  // Fully sharded data parallelism: the batch stays split, the larger weight comes.
  const PartitionResult result = Partitioned("  %batch = f32[64,32] parameter(0)" + kRows +
                                             "\n  %w = f32[32,128] parameter(1)" + kColumns +
                                             R"(
  %act = f32[64,32] negate(%batch)
  %c = f32[32,128] copy(%w)
  %dot = f32[64,128] dot(%act, %c), lhs_contracting_dims={1}, rhs_contracting_dims={0}
)" + "  ROOT %r = f32[64,128] custom-call(%dot), custom_call_target=\"Sharding\"" +
                                             kRows + "\n");
  EXPECT_TRUE(result.reshard_sites.empty());
}

TEST(ReshardSites, WhatAConstraintAsksForIsNone) {
  const PartitionResult result =
      Partitioned("  %p = f32[64,32] parameter(0)" + kRows +
                  "\n  %n = f32[64,32] negate(%p)\n  ROOT %r = f32[64,32] custom-call(%n), "
                  "custom_call_target=\"Sharding\"" +
                  kColumns + "\n");
  EXPECT_TRUE(result.reshard_sites.empty());
}

}  // namespace
}  // namespace tpusim::spmd
