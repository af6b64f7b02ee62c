#include "sim/overlap.h"

#include <algorithm>

#include "configs/status_macros.h"

namespace tpusim::sim {

void Overlap::CollectiveEnded(int32_t op) {
  const auto at = std::find(in_flight_.begin(), in_flight_.end(), op);
  TPUSIM_CHECK(at != in_flight_.end(), "a collective ends that did not begin");
  in_flight_.erase(at);
}

void Overlap::Visit(steady::StateVisitor& visitor) {
  // What is open is known from the labels of the streams, but for new names.
  if (visitor.iterations() != nullptr) {
    for (int32_t& op : main_) visitor.Named(isa::NameKind::kOp, op);
    for (int32_t& op : in_flight_) visitor.Named(isa::NameKind::kOp, op);
  }
  visitor.Began(since_);
  visitor.Counter(compute_);
}

size_t CoverTable::RowOf(int32_t collective, int32_t by) {
  const auto [at, is_new] = found_.emplace(std::pair(collective, by), rows_.size());
  if (is_new) rows_.push_back({collective, by, Picoseconds(0)});
  return at->second;
}

}  // namespace tpusim::sim
