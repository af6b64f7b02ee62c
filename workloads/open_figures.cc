#include "workloads/open_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "configs/status_macros.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/kernels/custom_cost.h"

namespace tpusim::workloads {
namespace {

using hlo::Instruction;
using hlo::Opcode;

// So many are named; a list of hundreds helps nobody.
constexpr size_t kMostNamed = 20;

}  // namespace

absl::Status CheckNothingOpen(const hlo::Module& module, TripCounts& trip_counts) {
  std::vector<std::string> open, options;
  absl::Status first;
  const auto add = [&](absl::Status error, std::string what, std::string option) {
    if (open.empty()) first = std::move(error);
    open.push_back(std::move(what));
    options.push_back(std::move(option));
  };
  for (const hlo::Computation* computation : module.PostOrder()) {
    for (const Instruction* i : computation->instructions()) {
      if (i->opcode() == Opcode::kWhile) {
        absl::Status error = trip_counts(*i).status();
        if (error.ok()) continue;
        add(std::move(error), fmt::format("the trip count of {}", i->Describe()),
            fmt::format("--trip-count {}=N", i->name()));
      } else if (i->opcode() == Opcode::kCustomCall) {
        const std::string reason = kernels::UnpricedReason(*i);
        if (reason.empty()) continue;
        add(kernels::CustomCostOf(*i).status(),
            fmt::format("the cost of {}: {}", i->Describe(), reason),
            fmt::format("--kernel-cost {}=FLOPS,BYTES", i->name()));
      }
    }
  }
  if (open.size() <= 1) return first;
  const size_t all = open.size(), named = std::min(all, kMostNamed);
  const std::string more = named < all ? fmt::format(" and {} more", all - named) : "";
  open.resize(named);
  options.resize(named);
  return UserError(fmt::format(
      "{} figures of the program depend on data: {}{}; state them with {} (names may be globs, "
      "such as '*=N')",
      all, fmt::join(open, "; "), more, fmt::join(options, " ")));
}

}  // namespace tpusim::workloads
