#include "sim/results/trace/trace_pod.h"

#include <algorithm>

#include "sim/results/report/report.h"

namespace tpusim::results {
namespace {

std::string PodName(const isa::ProgramInfo& info, int32_t op) {
  const int32_t transfer = isa::WaitsFor(info, op);
  if (transfer < 0) return "compute";
  const isa::OpInfo& what = info.ops[transfer];
  return "exposed " +
         (what.collective >= 0 ? info.collectives[what.collective].kind : what.category);
}

}  // namespace

void PodSummary::Add(const sim::Span& op) {
  if (op.op < 0 || op.end == op.start) return;
  if (IsContainer(info_->ops[op.op])) return;
  std::string name = PodName(*info_, op.op);
  if (!slices_.empty()) {
    PodSlice& last = slices_.back();
    if (last.name == name && op.start - last.end <= gap_) {
      last.end = std::max(last.end, op.end);
      return;
    }
  }
  slices_.push_back({op.start, op.end, std::move(name)});
}

}  // namespace tpusim::results
