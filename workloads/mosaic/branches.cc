#include "workloads/mosaic/branches.h"

#include <algorithm>
#include <numeric>

#include "workloads/mosaic/limits.h"

namespace tpusim::mosaic {
namespace {

// The ways in which a cost arises: those whose bits of the mask are these.
struct Bits {
  size_t mask = 0, value = 0;
  bool Holds(size_t way) const { return (way & mask) == value; }
};

// Leaves atoms out that are too many: what depends on them always arises, which is dearer.
void LimitAtoms(std::vector<int>* atoms, int64_t most, const Limit& limit) {
  if (std::ssize(*atoms) <= most) return;
  limit.Reached(std::ssize(*atoms) - most);
  atoms->resize(static_cast<size_t>(most));
}

Bits BitsOf(const When& when, const std::vector<int>& atoms) {
  Bits bits;
  for (const Literal& literal : when) {
    const auto at = std::ranges::find(atoms, literal.atom);
    if (at == atoms.end()) continue;
    const size_t bit = size_t{1} << (at - atoms.begin());
    bits.mask |= bit;
    if (literal.holds) bits.value |= bit;
  }
  return bits;
}

}  // namespace

Points PointSets::All(int64_t count) {
  std::vector<int64_t> index(static_cast<size_t>(count));
  std::iota(index.begin(), index.end(), 0);
  return Of(index, index);
}

Points PointSets::Of(std::vector<int64_t> index, std::vector<int64_t> rows) {
  return std::make_shared<const PointSet>(PointSet{next_++, std::move(index), std::move(rows)});
}

Points PointSets::Some(const Points& points, const std::vector<int64_t>& places) {
  if (places.size() == points->size()) return points;
  Points& known = subsets_[{points->id, places}];
  if (known != nullptr) return known;
  std::vector<int64_t> index, rows;
  for (const int64_t place : places) {
    index.push_back(points->index[static_cast<size_t>(place)]);
    rows.push_back(points->rows[static_cast<size_t>(place)]);
  }
  known = Of(std::move(index), std::move(rows));
  return known;
}

void PointCosts::Charge(const Price& price, const Points& points, const When& when) {
  if (when.empty()) {
    always_.Add(price, static_cast<int64_t>(points->size()));
    return;
  }
  if (points->size() == 0) return;
  const auto [place, fresh] = places_.try_emplace({points->id, when}, sometimes_.size());
  if (fresh) sometimes_.push_back({points, when, {}});
  sometimes_[place->second].price.Add(price);
}

void PointCosts::Add(const PointCosts& other) {
  always_.Add(other.always_);
  for (const Part& part : other.sometimes_) Charge(part.price, part.points, part.when);
}

PointCosts PointCosts::Mapped(const std::function<Price(const Price&)>& change) const {
  PointCosts result(*weights_);
  result.always_ = change(always_);
  for (const Part& part : sometimes_) result.Charge(change(part.price), part.points, part.when);
  return result;
}

PointCosts PointCosts::Gathered(const Points& points, const std::vector<int64_t>& at,
                                PointSets& sets) const {
  PointCosts result(*weights_);
  result.always_ = always_;
  for (const Part& part : sometimes_) {
    std::vector<int64_t> counts(points->size(), 0);
    for (const int64_t row : part.points->rows)
      ++counts[static_cast<size_t>(at[static_cast<size_t>(row)])];
    std::map<int64_t, std::vector<int64_t>> by_count;
    for (size_t n = 0; n < counts.size(); ++n) {
      by_count[counts[n]].push_back(static_cast<int64_t>(n));
    }
    for (const auto& [count, places] : by_count) {
      if (count == 0) continue;
      result.Charge(part.price.TimesOf(count), sets.Some(points, places), part.when);
    }
  }
  return result;
}

PointCosts PointCosts::Decided(const std::function<bool(int)>& is_open,
                               PointSets& sets) const {
  PointCosts result(*weights_);
  result.always_ = always_;
  // Groups of parts that depend on common predicates which are to be decided.
  std::vector<size_t> root(sometimes_.size());
  std::iota(root.begin(), root.end(), 0);
  const auto find = [&](size_t n) {
    while (root[n] != n) n = root[n] = root[root[n]];
    return n;
  };
  std::map<int, size_t> first_with;
  for (size_t n = 0; n < sometimes_.size(); ++n) {
    for (const Literal& literal : sometimes_[n].when) {
      if (is_open(literal.atom)) continue;
      const auto [it, fresh] = first_with.try_emplace(literal.atom, n);
      if (!fresh) root[find(n)] = find(it->second);
    }
  }
  std::vector<std::vector<const Part*>> groups(sometimes_.size());
  for (size_t n = 0; n < sometimes_.size(); ++n) groups[find(n)].push_back(&sometimes_[n]);
  for (const std::vector<const Part*>& group : groups) {
    if (group.empty()) continue;
    const bool open = std::ranges::all_of(group, [&](const Part* part) {
      return std::ranges::all_of(part->when, is_open, &Literal::atom);
    });
    if (open) {
      for (const Part* part : group) result.Charge(part->price, part->points, part->when);
      continue;
    }
    // Points at which the same parts arise, by which of the group's sets they are in.
    std::vector<Points> distinct;
    for (const Part* part : group) {
      if (std::find(distinct.begin(), distinct.end(), part->points) == distinct.end()) {
        distinct.push_back(part->points);
      }
    }
    std::map<int64_t, std::vector<size_t>> sets_of_row;
    std::map<int64_t, int64_t> index_of_row;
    if (distinct.size() > 1) {
      for (size_t n = 0; n < distinct.size(); ++n) {
        for (size_t row = 0; row < distinct[n]->size(); ++row) {
          sets_of_row[distinct[n]->rows[row]].push_back(n);
          index_of_row[distinct[n]->rows[row]] = distinct[n]->index[row];
        }
      }
    }
    std::map<std::vector<size_t>, std::pair<std::vector<int64_t>, std::vector<int64_t>>> cells;
    for (const auto& [row, present] : sets_of_row) {
      cells[present].first.push_back(index_of_row[row]);
      cells[present].second.push_back(row);
    }
    if (distinct.size() == 1) Decide(group, distinct[0], is_open, &result);
    for (auto& [present, members] : cells) {
      std::vector<const Part*> parts;
      for (const Part* part : group) {
        const auto at = std::find(distinct.begin(), distinct.end(), part->points);
        const auto number = static_cast<size_t>(at - distinct.begin());
        if (std::binary_search(present.begin(), present.end(), number)) parts.push_back(part);
      }
      Decide(parts, sets.Of(std::move(members.first), std::move(members.second)), is_open, &result);
    }
  }
  return result;
}

// Charges what the dearest way costs, for every way that open predicates can go. A way has a bit
// for each atom, those of open ones first.
void PointCosts::Decide(const std::vector<const Part*>& parts, const Points& points,
                        const std::function<bool(int)>& is_open, PointCosts* result) const {
  std::vector<int> open, atoms;
  for (const Part* part : parts) {
    for (const Literal& literal : part->when) {
      std::vector<int>& kind = is_open(literal.atom) ? open : atoms;
      if (std::ranges::find(kind, literal.atom) == kind.end()) kind.push_back(literal.atom);
    }
  }
  LimitAtoms(&open, limits::kOpenPredicates.most(), limits::kOpenPredicates);
  LimitAtoms(&atoms, std::max<int64_t>(0, limits::kPredicates.most() - std::ssize(open)),
             limits::kPredicates);
  atoms.insert(atoms.begin(), open.begin(), open.end());
  std::vector<Bits> arises;
  std::vector<double> weight(size_t{1} << atoms.size(), 0);
  for (const Part* part : parts) {
    arises.push_back(BitsOf(part->when, atoms));
    const double size = part->price.Size(*weights_);
    for (size_t way = 0; way < weight.size(); ++way) {
      if (arises.back().Holds(way)) weight[way] += size;
    }
  }
  const size_t places = size_t{1} << open.size();
  for (size_t place = 0; place < places; ++place) {
    size_t dearest = place;
    for (size_t way = place; way < weight.size(); way += places) {
      if (weight[way] > weight[dearest]) dearest = way;
    }
    Price price;
    for (size_t n = 0; n < parts.size(); ++n) {
      if (arises[n].Holds(dearest)) price.Add(parts[n]->price);
    }
    When when;
    for (size_t n = 0; n < open.size(); ++n) when.push_back({open[n], (place >> n & 1) != 0});
    std::ranges::sort(when);
    if (!price.IsNothing()) result->Charge(price, points, when);
  }
}

}  // namespace tpusim::mosaic
