// Holds what is known of a body's values at some points of its grid.
//
// A region of a branch or a loop sees the values around it, at the points at which it runs: a scope
// has an outer one, and for each of its points the place of that in the outer scope's.
#ifndef TPUSIM_WORKLOADS_MOSAIC_SCOPE_H_
#define TPUSIM_WORKLOADS_MOSAIC_SCOPE_H_

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "workloads/mosaic/branches.h"
#include "workloads/mosaic/module.h"
#include "workloads/mosaic/scalars.h"

namespace tpusim::mosaic {

// An array of integers whose values a kernel reads before its blocks.
struct Table {
  std::vector<int64_t> shape;
  std::vector<int64_t> values;
};

// The memory that a reference names.
struct Reference {
  std::shared_ptr<const Table> table = nullptr;  // null: not known
  bool written = true;                           // by the kernel
  int version = 0;                               // goes up with what may have changed it
};

class Scope {
 public:
  // A scope of all points of the grid.
  explicit Scope(Points points) : points_(std::move(points)) {}
  // At these places of the outer scope's points.
  Scope(Scope* outer, Points points, std::vector<int64_t> places)
      : outer_(outer), points_(std::move(points)), places_(std::move(places)) {}

  const Points& points() const { return points_; }
  void Define(const Value* value, Scalar scalar) {
    known_.insert_or_assign(value, std::move(scalar));
  }
  // Null: nothing is known, not even that it is a value of its own.
  const Scalar* Find(const Value* value) {
    const auto own = known_.find(value);
    if (own != known_.end()) return &own->second;
    const Scalar* found = outer_ == nullptr ? nullptr : outer_->Find(value);
    if (found == nullptr) return nullptr;
    const bool all = places_.size() == outer_->points_->size() && points_ == outer_->points_;
    return &known_.emplace(value, all ? *found : found->At(places_)).first->second;
  }

 private:
  Scope* outer_ = nullptr;
  Points points_;
  std::vector<int64_t> places_;
  std::unordered_map<const Value*, Scalar> known_;
};

}  // namespace tpusim::mosaic

#endif  // TPUSIM_WORKLOADS_MOSAIC_SCOPE_H_
