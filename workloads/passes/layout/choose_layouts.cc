#include "workloads/passes/layout/choose_layouts.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "workloads/passes/layout/layout_cost.h"

namespace tpusim::passes {
namespace {

using hlo::Shape;

// Orders by which a class alone is tried, and how often every class is decided.
constexpr size_t kOwnCandidates = 6;
constexpr int kRounds = 3;

Shape OfClass(const OrderClasses& classes, int32_t value, const Shape& shape) {
  Shape turned = shape;
  const Dims& to_class = classes.ToClass(value);
  for (size_t d = 0; d < to_class.size(); ++d) {
    turned.dims[static_cast<size_t>(to_class[d])] = shape.dims[d];
  }
  turned.layout = {};
  return turned;
}

// Extents by dimension, of the value and of its class.
Dims ExtentsOfClass(const OrderClasses& classes, int32_t value, const Dims& extents) {
  Dims turned = extents;
  const Dims& to_class = classes.ToClass(value);
  for (size_t d = 0; d < to_class.size(); ++d) {
    turned[static_cast<size_t>(to_class[d])] = extents[d];
  }
  return turned;
}

Dims DimsOfClass(const OrderClasses& classes, int32_t value, const Dims& dims) {
  Dims turned;
  for (int64_t d : dims) turned.push_back(classes.ToClass(value)[static_cast<size_t>(d)]);
  std::sort(turned.begin(), turned.end());
  return turned;
}

// Everything of one class, in its own dimensions; equal terms counted together.
struct Class {
  int64_t rank = 0;
  std::vector<Term> terms;
  std::vector<size_t> links;
  Dims order;  // empty until decided
  bool fixed = false;
  double weight = 0;
};

class Chooser {
 public:
  Chooser(const LayoutProblem& problem, const target::Target& target)
      : problem_(problem), cost_(target), classes_(static_cast<size_t>(problem.classes.size())) {}

  std::vector<Dims> Run() {
    for (int32_t v = 0; v < problem_.classes.size(); ++v) {
      ClassOf(v).rank = problem_.classes.rank(v);
    }
    GatherTerms();
    GatherLinks();
    for (const auto& [value, order] : problem_.fixed) {
      Class& c = ClassOf(value);
      c.order = problem_.classes.OfClass(value, order);
      c.fixed = true;
    }
    Decide();
    std::vector<Dims> orders;
    for (int32_t v = 0; v < problem_.classes.size(); ++v) {
      orders.push_back(problem_.classes.OfValue(v, ClassOf(v).order));
    }
    return orders;
  }

 private:
  Class& ClassOf(int32_t value) {
    return classes_[static_cast<size_t>(problem_.classes.Find(value))];
  }

  void GatherTerms() {
    using Key = std::tuple<int32_t, int, hlo::PrimitiveType, Dims, Dims>;
    std::map<Key, size_t> known;
    for (const Term& term : problem_.terms) {
      Term of_class = term;
      of_class.value = problem_.classes.Find(term.value);
      of_class.shape = OfClass(problem_.classes, term.value, term.shape);
      of_class.dims = term.kind == Term::Kind::kIndexed
                          ? ExtentsOfClass(problem_.classes, term.value, term.dims)
                          : DimsOfClass(problem_.classes, term.value, term.dims);
      Class& c = classes_[static_cast<size_t>(of_class.value)];
      const auto [at, fresh] =
          known.try_emplace({of_class.value, static_cast<int>(term.kind),
                             of_class.shape.element_type, of_class.shape.dims, of_class.dims},
                            c.terms.size());
      if (fresh) {
        c.terms.push_back(std::move(of_class));
      } else {
        c.terms[at->second].count += term.count;
      }
    }
  }

  void GatherLinks() {
    using Key = std::tuple<int32_t, int32_t, int, hlo::PrimitiveType, Dims, Dims, Dims>;
    std::map<Key, size_t> known;
    const OrderClasses& classes = problem_.classes;
    for (const Link& link : problem_.links) {
      Link of_class = link;
      of_class.from = classes.Find(link.from);
      of_class.to = classes.Find(link.to);
      if (link.kind != Link::Kind::kReshape) {
        of_class.from_shape = OfClass(classes, link.from, link.from_shape);
        of_class.to_shape = OfClass(classes, link.to, link.to_shape);
        // The dimension of the one class for each of the other.
        Dims map(of_class.from_shape.dims.size(), -1);
        for (size_t d = 0; d < map.size(); ++d) {
          const int64_t to = link.kind == Link::Kind::kCopy ? static_cast<int64_t>(d) : link.map[d];
          if (to < 0) continue;
          map[static_cast<size_t>(classes.ToClass(link.from)[d])] =
              classes.ToClass(link.to)[static_cast<size_t>(to)];
        }
        of_class.map = std::move(map);
      } else {
        // Reshapes know their own dimensions: orders are turned when asked for.
        of_class.from = link.from;
        of_class.to = link.to;
      }
      const auto [at, fresh] =
          known.try_emplace({of_class.from, of_class.to, static_cast<int>(link.kind),
                             of_class.from_shape.element_type, of_class.from_shape.dims,
                             of_class.to_shape.dims, of_class.map},
                            links_.size());
      if (!fresh) {
        links_[at->second].count += link.count;
        continue;
      }
      ClassOf(link.from).links.push_back(links_.size());
      if (classes.Find(link.from) != classes.Find(link.to)) {
        ClassOf(link.to).links.push_back(links_.size());
      }
      links_.push_back(std::move(of_class));
    }
  }

  // ---- Costs -----------------------------------------------------------------

  double Alone(const Class& c, const Dims& order) const {
    double sum = 0;
    for (const Term& term : c.terms) sum += cost_.Of(term, order);
    return sum;
  }

  // Between classes that may be one and the same.
  double OfLink(const Link& link, const Dims& from, const Dims& to) const {
    if (link.kind == Link::Kind::kReshape) {
      return cost_.Of(link, problem_.classes.OfValue(link.from, from),
                      problem_.classes.OfValue(link.to, to));
    }
    if (link.kind == Link::Kind::kCopy) {
      // The same array in the dimensions of the one class and of the other.
      return cost_.Of(link, from, Through(link, to, true));
    }
    return cost_.Of(link, from, to);
  }

  Dims Through(const Link& link, const Dims& order, bool backward) const {
    const OrderClasses& classes = problem_.classes;
    switch (link.kind) {
      case Link::Kind::kReshape: {
        const int32_t from = backward ? link.to : link.from, to = backward ? link.from : link.to;
        const Dims through = OrderThrough(link, classes.OfValue(from, order), backward);
        return through.empty() ? through : classes.OfClass(to, through);
      }
      case Link::Kind::kCopy:
        return Compose(order, backward ? Inverse(link.map) : link.map);
      case Link::Kind::kLanes:
        break;
    }
    return OrderThrough(link, order, backward);
  }

  const Dims& OrderOf(int32_t value) const {
    return classes_[static_cast<size_t>(problem_.classes.Find(value))].order;
  }

  double Cost(int32_t number, const Dims& order) const {
    const Class& c = classes_[static_cast<size_t>(number)];
    double sum = Alone(c, order);
    for (size_t n : c.links) {
      const Link& link = links_[n];
      const bool is_from = problem_.classes.Find(link.from) == number;
      const bool is_to = problem_.classes.Find(link.to) == number;
      const Dims& from = is_from ? order : OrderOf(link.from);
      const Dims& to = is_to ? order : OrderOf(link.to);
      if (!from.empty() && !to.empty()) sum += OfLink(link, from, to);
    }
    return sum;
  }

  // ---- Choice ----------------------------------------------------------------

  // By what each costs alone, the later dimension faster where that is equal.
  std::vector<Dims> OwnCandidates(const Class& c) const {
    std::vector<std::pair<double, Dims>> tried;
    for (int64_t minor = c.rank - 1; minor >= 0; --minor) {
      for (int64_t second = c.rank - 1; second >= 0; --second) {
        if (second == minor) continue;
        Dims order = {minor, second};
        for (int64_t d = c.rank - 1; d >= 0; --d) {
          if (d != minor && d != second) order.push_back(d);
        }
        const double cost = Alone(c, order);
        tried.emplace_back(cost, std::move(order));
      }
    }
    std::stable_sort(tried.begin(), tried.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<Dims> best;
    for (auto& [cost, order] : tried) {
      if (best.size() < kOwnCandidates) best.push_back(std::move(order));
    }
    return best;
  }

  void DecideOne(int32_t number, const std::vector<Dims>& own) {
    Class& c = classes_[static_cast<size_t>(number)];
    std::vector<Dims> candidates;
    const auto offer = [&](Dims order) {
      if (order.empty()) return;
      if (std::find(candidates.begin(), candidates.end(), order) == candidates.end()) {
        candidates.push_back(std::move(order));
      }
    };
    // As it is, so that nothing changes without a reason; as neighbours have it; its own.
    offer(c.order);
    constexpr size_t kNeighbours = 8;
    for (size_t n : c.links) {
      if (candidates.size() > kNeighbours) break;
      const Link& link = links_[n];
      const bool is_from = problem_.classes.Find(link.from) == number;
      const Dims& other = OrderOf(is_from ? link.to : link.from);
      if (!other.empty()) offer(Through(link, other, is_from));
    }
    for (const Dims& order : own) offer(order);
    double least = std::numeric_limits<double>::infinity();
    const Dims* best = &candidates.front();
    for (const Dims& order : candidates) {
      const double cost = Cost(number, order);
      if (cost < least * (1 - 1e-9)) {
        least = cost;
        best = &order;
      }
    }
    c.order = *best;
  }

  void Decide() {
    std::vector<int32_t> order;
    std::vector<std::vector<Dims>> own(classes_.size());
    for (int32_t n = 0; n < problem_.classes.size(); ++n) {
      Class& c = classes_[static_cast<size_t>(n)];
      if (problem_.classes.Find(n) != n || c.fixed) continue;
      own[static_cast<size_t>(n)] = OwnCandidates(c);
      c.weight = Alone(c, own[static_cast<size_t>(n)].front());
      if (!std::isfinite(c.weight)) c.weight = 0;
      order.push_back(n);
    }
    std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
      return classes_[static_cast<size_t>(a)].weight > classes_[static_cast<size_t>(b)].weight;
    });
    for (int round = 0; round < kRounds; ++round) {
      for (int32_t n : order) DecideOne(n, own[static_cast<size_t>(n)]);
    }
  }

  const LayoutProblem& problem_;
  LayoutCost cost_;
  std::vector<Class> classes_;  // by the value that stands for the class
  std::vector<Link> links_;
};

}  // namespace

std::vector<Dims> ChooseLayouts(const LayoutProblem& problem, const target::Target& target) {
  return Chooser(problem, target).Run();
}

}  // namespace tpusim::passes
