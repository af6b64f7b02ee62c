// Branches on data: what a kernel costs if they go the dearest way.
//
// Which branch runs is not known, but branches are not free to run together: of `pl.when(a)` and
// `pl.when(~a)` one runs, wherever in the body the two stand. So costs are kept apart by when they
// arise (conditions.h), and added up in the end for each way that the predicates can go. The
// dearest counts, at every point of the grid by itself: what a predicate says may differ between
// them.
#ifndef TPUSIM_WORKLOADS_MOSAIC_BRANCHES_H_
#define TPUSIM_WORKLOADS_MOSAIC_BRANCHES_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "workloads/mosaic/amounts.h"
#include "workloads/mosaic/conditions.h"

namespace tpusim::mosaic {

// Points of the grid, or passes of a loop at them, that are priced together.
struct PointSet {
  int id = 0;
  std::vector<int64_t> index;  // points of the grid
  std::vector<int64_t> rows;   // what tells them apart from each other

  size_t size() const { return index.size(); }
};
using Points = std::shared_ptr<const PointSet>;

// Makes sets of points; the same object for the same ones.
class PointSets {
 public:
  Points All(int64_t count);
  Points Of(std::vector<int64_t> index, std::vector<int64_t> rows);
  // Returns the points at these places.
  Points Some(const Points& points, const std::vector<int64_t>& places);

 private:
  int next_ = 0;
  std::map<std::pair<int, std::vector<int64_t>>, Points> subsets_;
};

// Costs that depend on the grid point and on data-dependent predicates.
class PointCosts {
 public:
  explicit PointCosts(const Weights& weights) : weights_(&weights) {}

  // Whatever predicates say, over all points.
  const Price& always() const { return always_; }
  // Adds the price of one point.
  void Charge(const Price& price, const Points& points, const When& when);
  void Add(const PointCosts& other);
  // Returns the costs with every price changed by a linear function.
  PointCosts Mapped(const std::function<Price(const Price&)>& change) const;
  // Returns the costs of passes of a loop at these points: row n of them happens at point at[n].
  PointCosts Gathered(const Points& points, const std::vector<int64_t>& at, PointSets& sets) const;
  // Returns the costs of the dearest way that predicates can go; those on open atoms are left.
  PointCosts Decided(const std::function<bool(int)>& is_open, PointSets& sets) const;

 private:
  struct Part {
    Points points;
    When when;
    Price price;
  };

  void Decide(const std::vector<const Part*>& parts, const Points& points,
              const std::function<bool(int)>& is_open, PointCosts* result) const;

  const Weights* weights_;
  Price always_;
  std::vector<Part> sometimes_;
  std::map<std::pair<int, When>, size_t> places_;
};

}  // namespace tpusim::mosaic

#endif  // TPUSIM_WORKLOADS_MOSAIC_BRANCHES_H_
