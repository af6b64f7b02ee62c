#include "sim/overlap.h"

#include <algorithm>
#include <set>

#include "configs/status_macros.h"

namespace tpusim::sim {

CollectiveKinds::CollectiveKinds(const isa::ProgramInfo& info) {
  std::set<std::string> names;
  for (const isa::CollectiveInfo& c : info.collectives) names.insert(c.kind);
  names_.assign(names.begin(), names.end());
  for (const isa::CollectiveInfo& c : info.collectives) {
    kind_of_.push_back(static_cast<size_t>(std::lower_bound(names_.begin(), names_.end(), c.kind) -
                                           names_.begin()));
  }
}

void Overlap::SettleKinds(Picoseconds busy, Picoseconds idle) {
  ++settled_;
  for (const int32_t op : in_flight_) {
    OfKind& kind = of_kinds_[kinds_.Of(info_.ops[op].collective)];
    if (kind.seen == settled_) continue;
    kind.seen = settled_;
    kind.in_flight += busy + idle;
    kind.hidden += busy;
  }
}

std::vector<CollectiveKindTotals> Overlap::OfKinds() const {
  std::vector<CollectiveKindTotals> totals;
  for (size_t k = 0; k < of_kinds_.size(); ++k) {
    totals.push_back({kinds_.names()[k], of_kinds_[k].in_flight, of_kinds_[k].hidden});
  }
  return totals;
}

void Overlap::CollectiveEnded(int32_t op) {
  const auto at = std::find(in_flight_.begin(), in_flight_.end(), op);
  TPUSIM_CHECK(at != in_flight_.end(), "a collective ends that did not begin");
  in_flight_.erase(at);
}

void Overlap::Visit(steady::StateVisitor& visitor) {
  // What is open is known from the labels of the streams, but for new names.
  if (visitor.new_names()) {
    for (int32_t& op : main_) visitor.Named(isa::NameKind::kOp, op);
    for (int32_t& op : in_flight_) visitor.Named(isa::NameKind::kOp, op);
  }
  visitor.Began(since_);
  visitor.Counter(compute_);
  for (OfKind& kind : of_kinds_) {
    visitor.Counter(kind.in_flight);
    visitor.Counter(kind.hidden);
  }
  visitor.Counter(any_.in_flight);
  visitor.Counter(any_.hidden);
}

size_t CoverTable::RowOf(int32_t collective, int32_t by) {
  const auto [at, is_new] = found_.emplace(std::pair(collective, by), rows_.size());
  if (is_new) rows_.push_back({collective, by, Picoseconds(0)});
  return at->second;
}

}  // namespace tpusim::sim
