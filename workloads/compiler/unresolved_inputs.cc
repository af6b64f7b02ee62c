#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "configs/status_macros.h"
#include "workloads/compiler/stages.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/kernels/opaque/custom_cost.h"

namespace tpusim::compiler {
namespace {

using hlo::Instruction;
using hlo::Opcode;

// So many are named; a list of hundreds does not help.
constexpr size_t kMostNamed = 20;
// Loops inside kernels that are named, so that the message fits a screen.
constexpr size_t kMostKernelLoops = 8;

// An input that is not resolved: what it is, the option that states it, and the error if it is
// alone.
struct Open {
  std::string what, option;
  absl::Status alone;
};

// "a/b/c/kernel.py:12" by its last two parts.
std::string ShortPlace(const std::string& place) {
  const size_t file = place.rfind('/');
  const size_t folder = file == std::string::npos || file == 0 ? file : place.rfind('/', file - 1);
  return folder == std::string::npos ? place : place.substr(folder + 1);
}

std::string LastPart(const std::string& loop) { return loop.substr(loop.rfind('/') + 1); }

// "kernel.py:12, inside loop.0"
std::string Where(const kernels::OpenLoop& loop) {
  std::string where = ShortPlace(loop.source);
  if (loop.inside.empty()) return where;
  return fmt::format("{}{}inside {}", where, where.empty() ? "" : ", ", LastPart(loop.inside));
}

std::string And(size_t more) { return more > 0 ? fmt::format(" and {} more", more) : ""; }

// Nothing but loops inside kernels: each is named once, as what to type.
absl::Status OnlyKernelLoops(const std::vector<kernels::OpenLoop>& loops) {
  std::vector<std::string> options;
  for (const kernels::OpenLoop& loop : loops) {
    if (options.size() == kMostKernelLoops) break;
    const std::string where = Where(loop);
    options.push_back(fmt::format("--trip-count {}=N{}", loop.name,
                                  where.empty() ? "" : fmt::format(" ({})", where)));
  }
  return UserError(fmt::format(
      "how often {} loops inside kernels run depends on data; state it, for each time that a loop "
      "is reached, with {}{}, or for all loops with --trip-count '*=N'",
      loops.size(), fmt::join(options, ", "), And(loops.size() - options.size())));
}

}  // namespace

absl::Status CheckNothingOpen(const hlo::Module& module, TripCounts& trip_counts) {
  std::vector<Open> open;
  // Kernels of a name have their loops in common.
  std::vector<kernels::OpenLoop> loops;
  std::set<std::string> loops_seen;
  bool others = false;
  for (const hlo::Computation* computation : module.PostOrder()) {
    for (const Instruction* i : computation->instructions()) {
      if (i->opcode() == Opcode::kWhile) {
        absl::Status error = trip_counts(*i).status();
        if (error.ok()) continue;
        others = true;
        open.push_back({fmt::format("the trip count of {}", i->Describe()),
                        fmt::format("--trip-count {}=N", i->name()), std::move(error)});
      } else if (i->opcode() == Opcode::kCustomCall) {
        const std::string reason = kernels::UnpricedReason(*i);
        if (reason.empty()) continue;
        const std::vector<kernels::OpenLoop> of_call = kernels::OpenLoopsOf(*i);
        absl::Status error = kernels::CustomCostOf(*i).status();
        if (of_call.empty()) {
          others = true;
          open.push_back({fmt::format("the cost of {}: {}", i->Describe(), reason),
                          fmt::format("--kernel-cost {}=FLOPS,BYTES", i->name()),
                          std::move(error)});
        }
        for (const kernels::OpenLoop& loop : of_call) {
          if (!loops_seen.insert(loop.name).second) continue;
          loops.push_back(loop);
          open.push_back({fmt::format("the trip count of {} ({})", loop.name, Where(loop)),
                          fmt::format("--trip-count {}=N", loop.name), error});
        }
      }
    }
  }
  if (open.empty()) return absl::OkStatus();
  if (open.size() == 1) return open.front().alone;
  if (!others) return OnlyKernelLoops(loops);
  const size_t all = open.size(), named = std::min(all, kMostNamed);
  std::vector<std::string> whats, options;
  for (size_t n = 0; n < named; ++n) {
    whats.push_back(open[n].what);
    options.push_back(open[n].option);
  }
  return UserError(fmt::format(
      "{} figures of the program depend on data: {}{}; state them with {} (names may be globs, "
      "such as '*=N')",
      all, fmt::join(whats, "; "), And(all - named), fmt::join(options, " ")));
}

}  // namespace tpusim::compiler
