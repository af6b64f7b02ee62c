// The rules of dimensions that hang together, family by family (data/rules.hlo).
#include "tests/workloads/sharding/rules_test_util.h"

#include "tests/workloads/hlo/text_cases.h"

namespace tpusim::sharding {
namespace {

TEST(Rules, OfRoots) {
  for (const hlo::TextCase& one : hlo::TextCases("sharding/data/rules.hlo")) {
    const std::unique_ptr<hlo::Module> module = hlo::ParsedCase(one);
    ASSERT_NE(module, nullptr);
    EXPECT_EQ(RuleText(module->entry()->root()), one.expected) << one.at;
  }
}

}  // namespace
}  // namespace tpusim::sharding
