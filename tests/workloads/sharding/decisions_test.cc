#include "workloads/sharding/decisions/decisions.h"

#include <set>

#include "sharding_testing.h"

namespace tpusim::sharding {
namespace {

using hlo::F32;
using hlo::Instruction;

void Name(Instruction* argument, const std::string& name) {
  argument->mutable_attrs().mutable_metadata()->set_op_name(name);
}

// texts/decisions*.hlo have what decisions are.
Decisions DecisionsOf(const hlo::Module& module) {
  const auto normalised = Normalise(module.Clone(), 8);
  EXPECT_TRUE(normalised.ok()) << normalised.status();
  const auto decisions = FindDecisions(*normalised);
  EXPECT_TRUE(decisions.ok()) << decisions.status();
  return decisions.ok() ? *decisions : Decisions();
}

// Arguments of one pattern with other shapes: a decision each, with a name each.
TEST(Decisions, NamesAreUnique) {
  ShardedTestModule m;
  Instruction* h = m.Argument(F32({8, 16}), "");
  Name(h, "x");
  int64_t width = 16;
  for (const int layer : {0, 1, 2}) {
    Instruction* w = m.Argument(F32({width, width * 2}), "");
    Name(w, "layers[" + std::to_string(layer) + "]");
    width *= 2;
    h = m.Dot(h, w, {8, width});
  }
  const Decisions decisions = DecisionsOf(m.module());
  ASSERT_EQ(decisions.all.size(), 5u);  // rows and four widths
  std::set<std::string> names;
  for (const Decision& d : decisions.all) names.insert(d.name);
  EXPECT_EQ(names.size(), 5u);
}

}  // namespace
}  // namespace tpusim::sharding
