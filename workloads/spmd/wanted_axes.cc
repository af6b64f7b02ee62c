#include "workloads/spmd/wanted_axes.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/strings/str_join.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/sharding/types/axes.h"

namespace tpusim::spmd {
namespace {

using sharding::Axes;
using sharding::Sharding;

bool Uses(const std::vector<Axes>& dims, const Axes& axes) {
  return std::ranges::any_of(dims, [&](const Axes& used) {
    return std::ranges::any_of(axes, [&](const sharding::AxisRef& axis) {
      return std::ranges::find(used, axis) != used.end();
    });
  });
}

}  // namespace

std::string WantedAxes(const hlo::Instruction& dot, const Sharding& lhs, const Sharding& rhs,
                       const Sharding& result, const sharding::Mesh& mesh) {
  const hlo::DotDims dims = hlo::GetDotDims(dot);
  const std::array<const Sharding*, 2> operands = {&lhs, &rhs};
  const std::array<const std::vector<int64_t>*, 2> batch = {&dims.lhs_batch, &dims.rhs_batch};
  const std::array<const std::vector<int64_t>*, 2> contracting = {&dims.lhs_contracting,
                                                                  &dims.rhs_contracting};
  // The result has batch dimensions, then free ones of the left operand, then of the right one.
  size_t next_free = dims.lhs_batch.size();
  std::vector<std::string> wanted;
  for (const size_t i : {0, 1}) {
    std::vector<Axes> axes(operands[i]->dims.size());
    for (size_t b = 0; b < batch[i]->size(); ++b) axes[(*batch[i])[b]] = result.dims[b].axes;
    for (const int64_t d :
         hlo::FreeDims(static_cast<int64_t>(axes.size()), *contracting[i], *batch[i])) {
      axes[d] = result.dims[next_free++].axes;
    }
    for (size_t c = 0; c < contracting[i]->size(); ++c) {
      const Axes& other = operands[1 - i]->dims[(*contracting[1 - i])[c]].axes;
      if (!Uses(axes, other)) axes[(*contracting[i])[c]] = other;
    }
    std::vector<std::string> texts;
    for (const Axes& some : axes) texts.push_back(ToString(some, mesh));
    wanted.push_back(absl::StrJoin(texts, ";"));
  }
  return absl::StrJoin(wanted, "|");
}

}  // namespace tpusim::spmd
