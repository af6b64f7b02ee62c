#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/strings/str_split.h"
#include "configs/name_value.h"
#include "configs/status_macros.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/hlo/ir/ragged.h"
#include "workloads/passes/annotate/annotate.h"
#include "workloads/passes/annotate/reasons.h"
#include "workloads/passes/pipeline/statements.h"

namespace tpusim::passes {
namespace {

using hlo::Instruction;
using hlo::Opcode;
using Sizes = std::vector<int64_t>;

bool IsRagged(const Instruction& i) {
  return i.opcode() == Opcode::kRaggedDot || i.opcode() == Opcode::kRaggedAllToAll;
}

int64_t Sum(const Sizes& sizes) { return std::accumulate(sizes.begin(), sizes.end(), int64_t{0}); }

// Rows that the instruction has on a device.
int64_t RowsOf(const Instruction& i) {
  const hlo::Shape& shape = i.operand(0)->shape();
  return shape.dims[i.opcode() == Opcode::kRaggedDot ? hlo::RaggedDimension(i) : 0];
}

absl::Status Mismatch(const Instruction& i, size_t given, const std::string& wanted) {
  return UserError(fmt::format("--ragged {}: {} sizes for {}, which has {}", i.name(), given,
                               i.Describe(), wanted));
}

// Shares of `rows`, rounded so that their sum is rounded as well.
Sizes InRows(const RaggedOverride& entry, int64_t rows) {
  Sizes sizes;
  double end = 0;
  int64_t taken = 0;
  for (const double share : entry.sizes) {
    end += entry.shares ? share * static_cast<double>(rows) : share;
    const auto until = static_cast<int64_t>(std::llround(end));
    sizes.push_back(until - taken);
    taken = until;
  }
  return sizes;
}

// Sizes of the groups that a device holds of all `sizes`. The device's rows are
// block `row_block` of the rows, its groups block `group_block` of the groups.
// The program multiplies the rows before its first group as if they were that
// group's and clears them afterwards.
Sizes OnDevice(const Sizes& sizes, int64_t rows, int64_t row_block, int64_t held,
               int64_t group_block) {
  Sizes own;
  int64_t end = 0;
  const auto clip = [&](int64_t at) { return std::clamp<int64_t>(at - row_block * rows, 0, rows); };
  int64_t from = 0;
  for (int64_t g = 0; g < (group_block + 1) * held; ++g) {
    end += sizes[g];
    if (g < group_block * held) continue;
    own.push_back(clip(end) - from);
    from = clip(end);
  }
  return own;
}

absl::StatusOr<Sizes> SizesOfDot(const Instruction& dot, const RaggedOverride& entry) {
  const int64_t held = dot.operand(2)->shape().ElementCount();
  const int64_t rows = RowsOf(dot);
  const auto given = static_cast<int64_t>(entry.sizes.size());
  if (held == 0 || given % held != 0) {
    return Mismatch(dot, entry.sizes.size(), fmt::format("{} groups on a device", held));
  }
  const Sizes sizes = InRows(entry, rows);
  const int64_t blocks = std::max<int64_t>(1, CeilDiv(Sum(sizes), std::max<int64_t>(1, rows)));
  constexpr int64_t kMostBlocks = 1 << 16;  // number: a number of a program that makes no sense
  if (blocks > kMostBlocks) {
    return UserError(fmt::format("--ragged {}: sizes add up to {} rows; {} has {} on a device",
                                 dot.name(), Sum(sizes), dot.Describe(), rows));
  }
  Sizes busiest;
  for (int64_t row_block = 0; row_block < blocks; ++row_block) {
    for (int64_t group_block = 0; group_block < given / held; ++group_block) {
      Sizes own = OnDevice(sizes, rows, row_block, held, group_block);
      if (busiest.empty() || Sum(own) > Sum(busiest)) busiest = std::move(own);
    }
  }
  return busiest;
}

absl::StatusOr<Sizes> SizesOfExchange(const Instruction& exchange, int64_t partitions,
                                      const RaggedOverride& entry) {
  // One size per update; a member may be sent several, one after the other.
  // number: the place of an operand
  const int64_t updates = exchange.operand(3)->shape().ElementCount();
  ASSIGN_OR_RETURN(const auto groups, hlo::ReplicaGroups(exchange, partitions));
  const int64_t members = groups.empty() ? updates : static_cast<int64_t>(groups[0].size());
  const auto given = static_cast<int64_t>(entry.sizes.size());
  if (given != members && given != updates) {
    return Mismatch(exchange, entry.sizes.size(), fmt::format("{} members in a group", members));
  }
  const Sizes sizes = InRows(entry, RowsOf(exchange));
  if (Sum(sizes) > RowsOf(exchange)) {
    return UserError(fmt::format("--ragged {}: sizes add up to {} rows; {} has {} on a device",
                                 exchange.name(), Sum(sizes), exchange.Describe(),
                                 RowsOf(exchange)));
  }
  Sizes of_member(static_cast<size_t>(members), 0);
  for (int64_t n = 0; n < given; ++n) of_member[n / (given / members)] += sizes[n];
  return of_member;
}

// Operations that nothing was stated about.
void AssumeEqual(const std::vector<const Instruction*>& unstated, const Records& records) {
  constexpr size_t kNamed = 3;  // number: names in a message
  if (unstated.empty()) return;
  std::string names;
  for (size_t n = 0; n < std::min(unstated.size(), kNamed); ++n) {
    names += (n == 0 ? "" : ", ") + unstated[n]->Describe();
  }
  if (unstated.size() > kNamed) names += fmt::format(" and {} more", unstated.size() - kNamed);
  records.Add(reasons::kRaggedEqual, unstated.front()->name(), {{"operations", names}});
}

// An exchange whose result has room for a part of its rows.
void AssumeCapped(const Instruction& i, const Records& records) {
  if (i.opcode() != Opcode::kRaggedAllToAll) return;
  const int64_t sent = hlo::RowsSent(i);
  if (sent == RowsOf(i)) return;
  records.Add(reasons::kRaggedCapped, i.name(),
              {{"operation", i.Describe()}, {"sent_rows", sent}, {"rows", RowsOf(i)}});
}

}  // namespace

std::optional<RaggedOverride> ParseRaggedOverride(const std::string& text) {
  const auto parts = configs::ParseNameAndValue(text);
  if (!parts) return std::nullopt;
  RaggedOverride entry;
  entry.name = parts->name;
  const std::string list(parts->value);
  if (list == "uniform") return entry;
  double sum = 0;
  for (const std::string& item : std::vector<std::string>(absl::StrSplit(list, ','))) {
    if (item.empty() || item.size() > 18 ||  // number: digits of a number
        item.find_first_not_of("0123456789.") != std::string::npos ||
        std::count(item.begin(), item.end(), '.') > 1 || item == ".") {
      return std::nullopt;
    }
    entry.shares |= item.find('.') != std::string::npos;
    entry.sizes.push_back(std::stod(item));
    sum += entry.sizes.back();
  }
  // Shares of a third each may add up to a little more than all.
  if (sum > (entry.shares ? 1 + 1e-3 : 9e15)) return std::nullopt;  // number: rounding
  if (sum > 1 && entry.shares) {
    for (double& size : entry.sizes) size /= sum;
  }
  return entry;
}

absl::StatusOr<bool> StateRaggedSizes(hlo::Module& module, const PassContext& context) {
  const std::vector<RaggedOverride>& overrides = context.stated->ragged;
  const Records& records = context.records;
  std::vector<const Instruction*> unstated;
  std::vector<std::string> names;
  std::vector<bool> used(overrides.size(), false);
  bool changed = false;
  for (hlo::Computation* computation : module.computations()) {
    for (Instruction* i : computation->instructions()) {
      if (!IsRagged(*i)) continue;
      names.push_back(i->name());
      const auto match =
          std::find_if(overrides.begin(), overrides.end(), [&](const RaggedOverride& s) {
            return fnmatch(s.name.c_str(), i->name().c_str(), 0) == 0;
          });
      if (match == overrides.end()) {
        // The text of a module may state them itself.
        if (!hlo::RaggedSizes(*i)) {
          unstated.push_back(i);
          AssumeCapped(*i, records);
          continue;
        }
      } else {
        used[match - overrides.begin()] = true;
        if (match->sizes.empty()) {
          changed |= hlo::RaggedSizes(*i).has_value();
          hlo::SetRaggedSizes(i, {});
          records.Add(reasons::kRaggedStatedEqual, i->name(), {{"operation", i->Describe()}});
          AssumeCapped(*i, records);
          continue;
        }
      }
      const bool dot = i->opcode() == Opcode::kRaggedDot;
      Sizes sizes;
      if (match == overrides.end()) {
        sizes = *hlo::RaggedSizes(*i);
      } else {
        ASSIGN_OR_RETURN(sizes, dot ? SizesOfDot(*i, *match)
                                    : SizesOfExchange(*i, context.stated->partitions, *match));
        changed |= hlo::RaggedSizes(*i) != sizes;
        hlo::SetRaggedSizes(i, sizes);
      }
      records.Add(
          dot ? reasons::kRaggedRows : reasons::kRaggedSent, i->name(),
          {{"operation", i->Describe()}, {"rows", fmt::format("{}", fmt::join(sizes, ", "))}});
    }
  }
  AssumeEqual(unstated, records);
  for (size_t n = 0; n < overrides.size(); ++n) {
    if (used[n]) continue;
    WarnOfNoEffect(records, "--ragged " + overrides[n].name, names, "no ragged operation",
                   "ragged operations");
  }
  return changed;
}

}  // namespace tpusim::passes
