#include "workloads/mosaic/branches.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "workloads/mosaic/limits.h"

namespace tpusim::mosaic {
namespace {

// The intervals of each form, in order, within which no predicate changes.
using Regions = std::vector<std::pair<Form, std::vector<Reach>>>;

std::vector<Form> FormsOf(const Cubes& when) {
  std::vector<Form> forms;
  for (const Cube& cube : when) {
    for (const auto& [form, reach] : cube) {
      if (std::find(forms.begin(), forms.end(), form) == forms.end()) forms.push_back(form);
    }
  }
  return forms;
}

int64_t Ways(const Regions& regions, size_t first) {
  int64_t ways = 1;
  for (size_t n = 0; n < first; ++n) {
    ways = Times(ways, static_cast<int64_t>(regions[n].second.size()));
  }
  return ways;
}

// Takes predicates as true until there are few ways: dearer, as more can happen together.
void LimitWays(Regions* regions, size_t first, const Limit& limit) {
  for (size_t n = first; n-- > 0 && Ways(*regions, first) > limit.most();) {
    (*regions)[n].second = {Everything()};
    limit.Reached();
  }
}

// In which combinations of regions a cost arises, the last form's fastest.
std::vector<bool> Arises(const Cubes& when, const Regions& regions) {
  const auto ways = static_cast<size_t>(Ways(regions, regions.size()));
  std::vector<bool> holds(ways, false);
  for (const Cube& cube : when) {
    std::vector<bool> inside(ways, true);
    for (const auto& [form, reach] : cube) {
      size_t stride = ways;
      for (const auto& [other, parts] : regions) {
        stride /= parts.size();
        if (other != form) continue;
        std::vector<bool> within;
        for (const Reach& part : parts) within.push_back(!Intersection(reach, part).empty());
        for (size_t n = 0; n < ways; ++n) {
          if (!within[n / stride % parts.size()]) inside[n] = false;
        }
        break;
      }
    }
    for (size_t n = 0; n < ways; ++n) holds[n] = holds[n] || inside[n];
  }
  return holds;
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

void PointCosts::Charge(const Price& price, const Points& points, const Cubes& when) {
  if (IsAlways(when)) {
    always_.Add(price, static_cast<int64_t>(points->size()));
    return;
  }
  if (when.empty() || points->size() == 0) return;
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

PointCosts PointCosts::Decided(const std::function<bool(const Form&)>& is_open,
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
  std::map<Form, size_t> first_with;
  for (size_t n = 0; n < sometimes_.size(); ++n) {
    for (const Form& form : FormsOf(sometimes_[n].when)) {
      if (is_open(form)) continue;
      const auto [it, fresh] = first_with.try_emplace(form, n);
      if (!fresh) root[find(n)] = find(it->second);
    }
  }
  std::vector<std::vector<const Part*>> groups(sometimes_.size());
  for (size_t n = 0; n < sometimes_.size(); ++n) groups[find(n)].push_back(&sometimes_[n]);
  for (const std::vector<const Part*>& group : groups) {
    if (group.empty()) continue;
    bool open = true;
    for (const Part* part : group) {
      const std::vector<Form> forms = FormsOf(part->when);
      open = open && std::all_of(forms.begin(), forms.end(), is_open);
    }
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

// Charges what the dearest way costs, for every way that open predicates can go.
void PointCosts::Decide(const std::vector<const Part*>& parts, const Points& points,
                        const std::function<bool(const Form&)>& is_open, PointCosts* result) const {
  std::vector<std::pair<Form, std::set<double>>> starts;
  for (const Part* part : parts) {
    for (const Cube& cube : part->when) {
      for (const auto& statement : cube) {
        const Form& form = statement.first;
        auto known = std::find_if(starts.begin(), starts.end(),
                                  [&](const auto& s) { return s.first == form; });
        if (known == starts.end()) known = starts.insert(starts.end(), {form, {-kInfinity}});
        for (const auto& [low, high] : statement.second) {
          known->second.insert(low);
          if (high < kInfinity) known->second.insert(high + 1);
        }
      }
    }
  }
  std::stable_partition(starts.begin(), starts.end(),
                        [&](const auto& s) { return is_open(s.first); });
  Regions regions;
  size_t open = 0;
  for (const auto& [form, ends] : starts) {
    if (is_open(form)) ++open;
    std::vector<Reach>& parts_of_form = regions.emplace_back(form, std::vector<Reach>()).second;
    for (auto end = ends.begin(); end != ends.end(); ++end) {
      const double next = std::next(end) == ends.end() ? kInfinity : *std::next(end) - 1;
      parts_of_form.push_back({{*end, next}});
    }
  }
  LimitWays(&regions, open, limits::kOpenWays);
  LimitWays(&regions, regions.size(), limits::kWays);
  std::vector<std::vector<bool>> arises;
  const auto ways = static_cast<size_t>(Ways(regions, regions.size()));
  std::vector<double> weight(ways, 0);
  for (const Part* part : parts) {
    arises.push_back(Arises(part->when, regions));
    const double size = part->price.Size(*weights_);
    for (size_t n = 0; n < ways; ++n) {
      if (arises.back()[n]) weight[n] += size;
    }
  }
  const auto places = static_cast<size_t>(Ways(regions, open));
  const size_t each = ways / places;
  for (size_t place = 0; place < places; ++place) {
    const auto begin = weight.begin() + static_cast<ptrdiff_t>(place * each);
    const size_t dearest = static_cast<size_t>(
        std::max_element(begin, begin + static_cast<ptrdiff_t>(each)) - weight.begin());
    Price price;
    for (size_t n = 0; n < parts.size(); ++n) {
      if (arises[n][dearest]) price.Add(parts[n]->price);
    }
    std::map<Form, Reach> cube;
    size_t stride = places;
    for (size_t n = 0; n < open; ++n) {
      stride /= regions[n].second.size();
      const Reach& region = regions[n].second[place / stride % regions[n].second.size()];
      if (region != Everything()) cube[regions[n].first] = region;
    }
    if (!price.IsNothing()) result->Charge(price, points, {Cube(cube.begin(), cube.end())});
  }
}

}  // namespace tpusim::mosaic
