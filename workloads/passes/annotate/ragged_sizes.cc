#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "absl/strings/str_split.h"
#include "configs/name_value.h"
#include "configs/status_macros.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/hlo/ir/ragged.h"
#include "workloads/passes/annotate/annotate.h"
#include "workloads/passes/annotate/ragged_operations.h"
#include "workloads/passes/annotate/reasons.h"
#include "workloads/passes/annotate/routing.h"
#include "workloads/passes/pipeline/statements.h"

namespace tpusim::passes {
namespace {

using hlo::Instruction;
using hlo::Opcode;
using Sizes = std::vector<int64_t>;

int64_t Sum(const Sizes& sizes) { return std::accumulate(sizes.begin(), sizes.end(), int64_t{0}); }

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

absl::Status TooManyRows(const Instruction& i, int64_t given, int64_t rows) {
  return UserError(fmt::format("--ragged {}: sizes add up to {} rows; {} has {} on a device",
                               i.name(), given, i.Describe(), rows));
}

absl::StatusOr<Sizes> SizesOfDot(const Instruction& dot, const RaggedOperations& ragged,
                                 const RaggedOverride& entry) {
  const int64_t held = ragged.GroupsOf(dot);
  const int64_t rows = ragged.RowsOf(dot);
  const auto given = static_cast<int64_t>(entry.sizes.size());
  if (given % held != 0) {
    return Mismatch(dot, entry.sizes.size(), fmt::format("{} groups on a device", held));
  }
  const Sizes sizes = InRows(entry, rows);
  const int64_t blocks = std::max<int64_t>(1, CeilDiv(Sum(sizes), std::max<int64_t>(1, rows)));
  constexpr int64_t kMostBlocks = 1 << 16;  // number: a number of a program that makes no sense
  if (blocks > kMostBlocks) return TooManyRows(dot, Sum(sizes), rows);
  Sizes busiest;
  for (int64_t row_block = 0; row_block < blocks; ++row_block) {
    for (int64_t group_block = 0; group_block < given / held; ++group_block) {
      Sizes own = OnDevice(sizes, rows, row_block, held, group_block);
      if (busiest.empty() || Sum(own) > Sum(busiest)) busiest = std::move(own);
    }
  }
  return busiest;
}

// A kernel multiplies the rows of its groups alone. Sizes of more groups than it has are those of
// several devices, of which the one with most rows counts.
absl::StatusOr<Sizes> SizesOfKernel(const Instruction& call, const RaggedOperations& ragged,
                                    const RaggedOverride& entry) {
  const int64_t held = ragged.GroupsOf(call), rows = ragged.RowsOf(call);
  const auto given = static_cast<int64_t>(entry.sizes.size());
  if (given % held != 0) {
    return Mismatch(call, entry.sizes.size(), fmt::format("{} groups on a device", held));
  }
  const bool brought = ragged.ExchangeOf(call) != nullptr;
  const Sizes sizes =
      InRows(entry, brought ? ragged.BalancedRows(call) * (given / held) : rows);
  Sizes busiest;
  for (auto of_device = sizes.begin(); of_device != sizes.end(); of_device += held) {
    Sizes own(of_device, of_device + held);
    if (busiest.empty() || Sum(own) > Sum(busiest)) busiest = std::move(own);
  }
  return Sum(busiest) <= rows ? absl::StatusOr<Sizes>(busiest)
                              : TooManyRows(call, Sum(busiest), rows);
}

absl::StatusOr<Sizes> SizesOfExchange(const Instruction& exchange, const RaggedOperations& ragged,
                                      const RaggedOverride& entry) {
  // One size per update; a member may be sent several, one after the other.
  const int64_t updates = ragged.GroupsOf(exchange);
  ASSIGN_OR_RETURN(const int64_t members, ragged.MembersOf(exchange));
  const auto given = static_cast<int64_t>(entry.sizes.size());
  if (given != members && given != updates) {
    return Mismatch(exchange, entry.sizes.size(), fmt::format("{} members in a group", members));
  }
  const int64_t rows = ragged.RowsOf(exchange);
  const Sizes sizes = InRows(entry, rows);
  if (Sum(sizes) > rows) return TooManyRows(exchange, Sum(sizes), rows);
  Sizes of_member(static_cast<size_t>(members), 0);
  for (int64_t n = 0; n < given; ++n) of_member[n / (given / members)] += sizes[n];
  return of_member;
}

absl::StatusOr<Sizes> SizesOf(const Instruction& i, const RaggedOperations& ragged,
                              const RaggedOverride& entry) {
  if (ragged.KernelOf(i) != nullptr) return SizesOfKernel(i, ragged, entry);
  return i.opcode() == Opcode::kRaggedDot ? SizesOfDot(i, ragged, entry)
                                          : SizesOfExchange(i, ragged, entry);
}

// Products that have room for more rows than an exchange brings them.
class BroughtRows {
 public:
  // Writes the rows of a product. Returns whether they are fewer than it has room for.
  bool State(const RaggedOperations& ragged, Instruction* i) {
    if (i->opcode() == Opcode::kRaggedAllToAll) return false;
    const int64_t rows = ragged.BalancedRows(*i), groups = ragged.GroupsOf(*i);
    if (rows == ragged.RowsOf(*i)) return false;
    if (const mosaic::GroupedProduct* kernel = ragged.KernelOf(*i)) {
      hlo::SetRaggedSizes(i, mosaic::EqualSizes(*kernel, rows));
    } else {
      RaggedOverride equal;
      equal.shares = true;
      equal.sizes.assign(static_cast<size_t>(groups), 1.0 / static_cast<double>(groups));
      hlo::SetRaggedSizes(i, InRows(equal, rows));
    }
    auto& alike = products_[{rows, ragged.RowsOf(*i)}];
    alike.emplace_back(i->name(), ragged.ExchangeOf(*i)->name());
    return true;
  }
  // Says it once for all products of the same rows.
  void Say(const Records& records) const {
    for (const auto& [size, alike] : products_) {
      const auto& [product, exchange] = alike.front();
      const size_t more = alike.size() - 1;
      records.Add(reasons::kRaggedBrought, product,
                  {{"more", more == 0 ? "" : fmt::format(" (as {} more)", more)},
                   {"rows", size.first},
                   {"room", size.second},
                   {"exchange", exchange}});
    }
  }

 private:
  // The names of products and of what brings their rows, by rows and room.
  std::map<std::pair<int64_t, int64_t>, std::vector<std::pair<std::string, std::string>>> products_;
};

// The operation of a module whose rows are spread worst.
struct Hottest {
  const Instruction* operation = nullptr;
  RoutedRows routed;
  double dropped = 0;  // the largest share of any operation

  void Add(const Instruction& i, const RoutedRows& of) {
    dropped = std::max(dropped, of.dropped);
    if (operation != nullptr && of.imbalance <= routed.imbalance) return;
    operation = &i;
    routed = of;
  }
  void Say(const std::string& routing, const Records& records) const {
    constexpr double kPercent = 100;  // number: a unit
    if (operation == nullptr) return;
    records.Add(reasons::kRouted, routing,
                {{"operation", operation->Describe()},
                 {"hot_device", routed.hot},
                 {"imbalance", routed.imbalance},
                 {"dropped_percent", kPercent * dropped}});
  }
};

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
  const int64_t sent = hlo::RowsSent(i), rows = i.operand(0)->shape().dims[0];
  if (sent == rows) return;
  records.Add(reasons::kRaggedCapped, i.name(),
              {{"operation", i.Describe()}, {"sent_rows", sent}, {"rows", rows}});
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
  const Routing& routing = context.stated->routing;
  const Records& records = context.records;
  const RaggedOperations ragged(module, context);
  std::vector<const Instruction*> unstated;
  std::vector<std::string> names;
  std::vector<bool> used(overrides.size(), false);
  std::vector<std::pair<Instruction*, Sizes>> routes;
  Hottest hottest;
  BroughtRows brought;
  bool changed = false;
  const auto set = [&](Instruction* i, const Sizes& sizes) {
    changed |= hlo::RaggedSizes(*i) != sizes;
    hlo::SetRaggedSizes(i, sizes);
  };
  const auto say = [&](const Reason& reason, const Instruction& i, const Sizes& sizes) {
    records.Add(reason, i.name(),
                {{"operation", i.Describe()}, {"rows", fmt::format("{}", fmt::join(sizes, ", "))}});
  };
  const auto as_stated = [&](const Instruction& i) -> const Reason& {
    return i.opcode() == Opcode::kRaggedAllToAll ? reasons::kRaggedSent : reasons::kRaggedRows;
  };
  for (hlo::Computation* computation : module.computations()) {
    for (Instruction* i : computation->instructions()) {
      if (!ragged.Contains(*i)) continue;
      names.push_back(i->name());
      const auto match =
          std::find_if(overrides.begin(), overrides.end(), [&](const RaggedOverride& s) {
            return fnmatch(s.name.c_str(), i->name().c_str(), 0) == 0;
          });
      if (match != overrides.end()) {
        used[match - overrides.begin()] = true;
        if (match->sizes.empty()) {
          changed |= hlo::RaggedSizes(*i).has_value();
          hlo::SetRaggedSizes(i, {});
          records.Add(reasons::kRaggedStatedEqual, i->name(), {{"operation", i->Describe()}});
          AssumeCapped(*i, records);
          continue;
        }
        ASSIGN_OR_RETURN(const Sizes sizes, SizesOf(*i, ragged, *match));
        set(i, sizes);
        say(as_stated(*i), *i, sizes);
      } else if (const auto stated = hlo::RaggedSizes(*i)) {
        if (ragged.KernelOf(*i) != nullptr && std::ssize(*stated) != ragged.GroupsOf(*i)) {
          return Mismatch(*i, stated->size(), fmt::format("{} groups", ragged.GroupsOf(*i)));
        }
        say(as_stated(*i), *i, *stated);  // by the text of the module
      } else if (!routing.is_uniform()) {
        ASSIGN_OR_RETURN(const RoutedRows rows, ragged.Route(*i));
        hottest.Add(*i, rows);
        say(reasons::kRoutedRows, *i, rows.rows);
        routes.emplace_back(i, rows.rows);
      } else {
        // The price of a kernel says how many steps its groups make.
        if (ragged.KernelOf(*i) == nullptr) unstated.push_back(i);
        AssumeCapped(*i, records);
        changed |= brought.State(ragged, i);
      }
    }
  }
  // Routes are found while no size is written.
  for (const auto& [i, sizes] : routes) set(i, sizes);
  hottest.Say(routing.text, records);
  brought.Say(records);
  AssumeEqual(unstated, records);
  if (!routing.is_uniform() && routes.empty()) {
    WarnOfNoEffect(records, "--routing " + routing.text, {},
                   names.empty() ? "no ragged operation" : "no ragged operation without sizes",
                   "");
  }
  for (size_t n = 0; n < overrides.size(); ++n) {
    if (used[n]) continue;
    WarnOfNoEffect(records, "--ragged " + overrides[n].name, names, "no ragged operation",
                   "ragged operations");
  }
  return changed;
}

}  // namespace tpusim::passes
