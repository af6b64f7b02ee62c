#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <numeric>
#include <unordered_set>

#include "absl/strings/str_split.h"
#include "configs/name_value.h"
#include "configs/status_macros.h"
#include "workloads/hlo/analysis/call_graph.h"
#include "workloads/hlo/analysis/loops.h"
#include "workloads/hlo/analysis/underlying.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/hlo/ir/ragged.h"
#include "workloads/passes/annotate/annotate.h"
#include "workloads/passes/annotate/reasons.h"
#include "workloads/passes/annotate/routing.h"
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

// The place of the operand with one size per group, or per update.
int64_t SizesOperand(const Instruction& i) {
  return i.opcode() == Opcode::kRaggedDot ? 2 : 3;  // number: the place of an operand
}

int64_t GroupsOf(const Instruction& i) {
  return std::max<int64_t>(1, i.operand(SizesOperand(i))->shape().ElementCount());
}

absl::StatusOr<int64_t> MembersOf(const Instruction& exchange, int64_t partitions) {
  ASSIGN_OR_RETURN(const auto groups, hlo::ReplicaGroups(exchange, partitions));
  return groups.empty() ? GroupsOf(exchange) : static_cast<int64_t>(groups[0].size());
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
  const int64_t updates = GroupsOf(exchange);
  ASSIGN_OR_RETURN(const int64_t members, MembersOf(exchange, partitions));
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

// Returns the exchange that brings rows to a ragged dot of its computation, the nearest one in
// front of it; null: none does.
const Instruction* BringsRowsTo(const Instruction& dot) {
  std::deque<const Instruction*> next = {&dot};
  std::unordered_set<const Instruction*> seen;
  while (!next.empty()) {
    const Instruction* i = next.front();
    next.pop_front();
    if (i->opcode() == Opcode::kRaggedAllToAll) return i;
    for (const Instruction* operand : i->operands()) {
      if (seen.insert(operand).second) next.push_back(operand);
    }
  }
  return nullptr;
}

// The ragged operations of a module, and what --routing makes of their sizes.
class RoutedModule {
 public:
  RoutedModule(const hlo::Module& module, const PassContext& context)
      : routing_(context.stated->routing),
        partitions_(context.stated->partitions),
        calls_(module) {
    for (const hlo::Computation* computation : module.computations()) {
      for (const Instruction* i : computation->instructions()) {
        if (!IsRagged(*i)) continue;
        auto& sources = sources_[i->opcode()];
        sources.emplace(hlo::Underlying(i->operand(SizesOperand(*i))), sources.size());
        if (i->opcode() != Opcode::kRaggedDot) continue;
        if (const Instruction* exchange = BringsRowsTo(*i)) {
          exchange_of_.emplace(i, exchange);
          exchange_of_rows_.emplace(RowsOf(*i), exchange);
          if (held_ == 0) held_ = GroupsOf(*i);
        }
      }
    }
  }

  // Returns the exchange that brings the rows of a dot, be it one that brought them in the forward
  // pass; null: none.
  const Instruction* ExchangeOf(const Instruction& dot) const {
    if (const auto own = exchange_of_.find(&dot); own != exchange_of_.end()) return own->second;
    const auto by_rows = exchange_of_rows_.find(RowsOf(dot));
    return by_rows == exchange_of_rows_.end() ? nullptr : by_rows->second;
  }

  // Returns the rows that a ragged dot has on a device where all devices get equally many.
  int64_t BalancedRows(const Instruction& dot) const {
    const Instruction* exchange = ExchangeOf(dot);
    return exchange == nullptr ? RowsOf(dot) : std::min(RowsOf(dot), hlo::RowsSent(*exchange));
  }

  absl::StatusOr<RoutedRows> Route(const Instruction& i) const {
    const bool dot = i.opcode() == Opcode::kRaggedDot;
    const Instruction* exchange = dot ? ExchangeOf(i) : &i;
    if (exchange == nullptr) return RouteHere(i);
    ASSIGN_OR_RETURN(const int64_t devices, MembersOf(*exchange, partitions_));
    const int64_t updates = std::max(GroupsOf(*exchange), devices);
    const int64_t experts = dot         ? GroupsOf(i) * devices
                            : held_ > 0 ? held_ * devices
                                        : updates / devices * devices;
    ASSIGN_OR_RETURN(const std::vector<double> shares, SharesOf(i, experts, devices));
    if (dot) return RowsOfHotDevice(shares, devices, BalancedRows(i), RowsOf(i));
    // The larger of the two arrays is what one device may get of all others, on the way to the
    // experts or back.
    const int64_t room = std::max(RowsOf(i), i.operand(1)->shape().dims[0]);
    return RowsSentTo(shares, devices, hlo::RowsSent(i), room);
  }

 private:
  // Routes a dot that no exchange brings rows to: each device has all rows, and a part of the
  // experts or all.
  absl::StatusOr<RoutedRows> RouteHere(const Instruction& dot) const {
    const int64_t held = GroupsOf(dot), rows = RowsOf(dot);
    const auto given =
        routing_.layers.empty() ? held : static_cast<int64_t>(routing_.layers[0].size());
    const int64_t devices = given % held == 0 ? given / held : 1;
    ASSIGN_OR_RETURN(const std::vector<double> shares, SharesOf(dot, devices * held, devices));
    return RowsOfHotDevice(shares, devices, CeilDiv(rows, devices), rows);
  }

  // Returns the share of each expert. Errors (OutOfRange, which the command line ends with as a
  // usage error): other experts than the program's, or other layers.
  absl::StatusOr<std::vector<double>> SharesOf(const Instruction& i, int64_t experts,
                                               int64_t devices) const {
    if (routing_.layers.empty()) return ZipfShares(routing_.exponent, experts, devices);
    for (size_t n = 0; n < routing_.layers.size(); ++n) {
      if (static_cast<int64_t>(routing_.layers[n].size()) == experts) continue;
      return absl::OutOfRangeError(fmt::format(
          "--routing {}: layer {} has {} counts, expected are {}, the experts of {}", routing_.text,
          n, routing_.layers[n].size(), experts, i.Describe()));
    }
    ASSIGN_OR_RETURN(const auto layers, LayersOf(i));
    return CountedShares(layers, devices);
  }

  // Returns the layers that an operation is executed in: one, by its place among operations whose
  // sizes are other data; or all that a loop passes through.
  absl::StatusOr<std::vector<std::vector<int64_t>>> LayersOf(const Instruction& i) const {
    const auto& layers = routing_.layers;
    if (layers.size() == 1) return layers;
    const Instruction* loop = calls_.LoopOf(*i.parent());
    const std::optional<int64_t> trips = loop == nullptr ? std::nullopt : hlo::TripCount(*loop);
    if (trips == static_cast<int64_t>(layers.size())) return layers;
    const auto& sources = sources_.at(i.opcode());
    if (!trips && sources.size() % layers.size() == 0) {
      const size_t place = sources.at(hlo::Underlying(i.operand(SizesOperand(i))));
      return std::vector<Sizes>{layers[place / (sources.size() / layers.size())]};
    }
    return absl::OutOfRangeError(fmt::format(
        "--routing {}: {} layers, expected are {} ({}), or 1 for all", routing_.text, layers.size(),
        trips ? *trips : static_cast<int64_t>(sources.size()), i.Describe()));
  }

  const Routing& routing_;
  int64_t partitions_;
  hlo::CallGraph calls_;
  // Sources of sizes, numbered by first appearance.
  std::map<Opcode, std::map<const Instruction*, size_t>> sources_;
  std::map<const Instruction*, const Instruction*> exchange_of_;  // by dot
  std::map<int64_t, const Instruction*> exchange_of_rows_;        // by rows of dots
  int64_t held_ = 0;  // experts of a device; 0: no exchange brings rows to a dot
};

// Writes the rows that an exchange brings to a dot that has room for more. Returns whether it did.
bool StateBrought(const RoutedModule& routed, Instruction* i, const Records& records) {
  if (i->opcode() != Opcode::kRaggedDot) return false;
  const int64_t rows = routed.BalancedRows(*i), groups = GroupsOf(*i);
  if (rows == RowsOf(*i)) return false;
  RaggedOverride equal;
  equal.shares = true;
  equal.sizes.assign(static_cast<size_t>(groups), 1.0 / static_cast<double>(groups));
  hlo::SetRaggedSizes(i, InRows(equal, rows));
  records.Add(reasons::kRaggedBrought, i->name(),
              {{"rows", rows}, {"room", RowsOf(*i)}, {"exchange", routed.ExchangeOf(*i)->name()}});
  return true;
}

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
  const Routing& routing = context.stated->routing;
  const Records& records = context.records;
  const RoutedModule routed(module, context);
  std::vector<const Instruction*> unstated;
  std::vector<std::string> names;
  std::vector<bool> used(overrides.size(), false);
  std::vector<std::pair<Instruction*, Sizes>> routes;
  Hottest hottest;
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
    return i.opcode() == Opcode::kRaggedDot ? reasons::kRaggedRows : reasons::kRaggedSent;
  };
  for (hlo::Computation* computation : module.computations()) {
    for (Instruction* i : computation->instructions()) {
      if (!IsRagged(*i)) continue;
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
        ASSIGN_OR_RETURN(const Sizes sizes,
                         i->opcode() == Opcode::kRaggedDot
                             ? SizesOfDot(*i, *match)
                             : SizesOfExchange(*i, context.stated->partitions, *match));
        set(i, sizes);
        say(as_stated(*i), *i, sizes);
      } else if (const auto stated = hlo::RaggedSizes(*i)) {
        say(as_stated(*i), *i, *stated);  // by the text of the module
      } else if (!routing.is_uniform()) {
        ASSIGN_OR_RETURN(const RoutedRows rows, routed.Route(*i));
        hottest.Add(*i, rows);
        say(reasons::kRoutedRows, *i, rows.rows);
        routes.emplace_back(i, rows.rows);
      } else {
        unstated.push_back(i);
        AssumeCapped(*i, records);
        changed |= StateBrought(routed, i, records);
      }
    }
  }
  // Routes are found while no size is written.
  for (const auto& [i, sizes] : routes) set(i, sizes);
  hottest.Say(routing.text, records);
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
