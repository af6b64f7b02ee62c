// The parameters of the compiler: a row of policy_rows.inc each.
#include "configs/parameter_row.h"

namespace tpusim::configs {
namespace {

constexpr ValueRange kFlag = {0, 1};
constexpr ValueRange kBytesOrMinusOne = {-1, 1e18};
constexpr ValueRange kPercent = {1, 100};
constexpr ValueRange kSomeBytes = {1, 1e15};
constexpr ValueRange kFactor = {0, 1e6};
constexpr ValueRange kShareOfAll = {0, 1};

}  // namespace

std::vector<Parameter> PolicyParameters() {
  std::vector<Parameter> table = {
#define POLICY(type, name, unit, range, description) \
  TPUSIM_PARAMETER("compiler." #name, unit, range, compiler.name, description),
#include "configs/policy_rows.inc"
#undef POLICY
  };
  for (Parameter& parameter : table) {
    if (parameter.unit == kFlagUnit) parameter.words = {"false", "true"};
  }
  return table;
}

}  // namespace tpusim::configs
