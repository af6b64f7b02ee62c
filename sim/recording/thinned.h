// A list that stays short: where it becomes too long, every two neighbours become one, and from
// then on twice as many go into one.
#ifndef TPUSIM_SIM_RECORDING_THINNED_H_
#define TPUSIM_SIM_RECORDING_THINNED_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tpusim::sim {

// `Parts` says of how many an entry was made; `Merge(entry, later)` adds the next one to an entry.
template <typename Entry, auto Parts, auto Merge>
class Thinned {
 public:
  // Keeps at most `limit` entries. `merge` is Merge, or does more than that.
  template <typename Merger = decltype(Merge)>
  void Add(const Entry& entry, int64_t limit, const Merger& merge = Merge) {
    if (!entries_.empty() && Parts(entries_.back()) < factor_) {
      merge(entries_.back(), entry);
      return;
    }
    entries_.push_back(entry);
    if (static_cast<int64_t>(entries_.size()) <= limit) return;
    size_t kept = 0;
    for (size_t i = 0; i < entries_.size(); i += 2) {
      Entry merged = entries_[i];
      if (i + 1 < entries_.size()) merge(merged, entries_[i + 1]);
      entries_[kept++] = merged;
    }
    entries_.resize(kept);
    factor_ *= 2;
  }
  // The last one possibly of fewer than the others.
  const std::vector<Entry>& entries() const { return entries_; }
  void Clear() {
    entries_.clear();
    factor_ = 1;
  }

 private:
  std::vector<Entry> entries_;
  int64_t factor_ = 1;  // how many go into one
};

}  // namespace tpusim::sim

#endif  // TPUSIM_SIM_RECORDING_THINNED_H_
