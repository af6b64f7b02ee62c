#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "workloads/passes/layout/layout_problem.h"
#include "workloads/passes/layout/limits.h"
#include "workloads/passes/layout/order_classes.h"

namespace tpusim::passes {
namespace {

using hlo::Shape;

bool Holds(const Dims& dims, int64_t d) {
  return std::find(dims.begin(), dims.end(), d) != dims.end();
}

// The order of `to` that keeps lanes and rows where the link would like them, given one of
// `from`; with `backward` the other way round. Dimensions that the link says nothing of come
// last. Empty if nothing can be said.
Dims OrderThrough(const LayoutLink& link, const Dims& order, bool backward) {
  if (OfOneArray(link)) return order;
  const hlo::Shape& goal = backward ? *link.from_shape : *link.to_shape;
  if (link.kind == LinkKind::kReshape) {
    return OrderThroughReshape((backward ? link.to_shape : link.from_shape)->dims, goal.dims,
                               order);
  }
  Dims image(static_cast<size_t>((backward ? link.to_shape : link.from_shape)->rank()), -1);
  for (size_t d = 0; d < link.map.size(); ++d) {
    if (link.map[d] < 0) continue;
    if (backward) {
      image[static_cast<size_t>(link.map[d])] = static_cast<int64_t>(d);
    } else {
      image[d] = link.map[d];
    }
  }
  Dims result;
  for (int64_t d : order) {
    if (image[static_cast<size_t>(d)] >= 0) result.push_back(image[static_cast<size_t>(d)]);
  }
  for (int64_t d = goal.rank() - 1; d >= 0; --d) {
    if (!Holds(result, d)) result.push_back(d);
  }
  return result;
}

Dims DimsOfClass(const OrderClasses& classes, int32_t value, const Dims& dims) {
  Dims turned;
  for (int64_t d : dims) turned.push_back(classes.ToClass(value)[static_cast<size_t>(d)]);
  std::sort(turned.begin(), turned.end());
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

// Terms that were added before, by their numbers; looked up, never iterated.
using Known = absl::flat_hash_map<std::vector<int64_t>, size_t>;

// Everything of one class, in its own dimensions; equal terms counted together.
struct Class {
  int64_t rank = 0;
  std::vector<Term> terms;
  std::vector<size_t> links;
  Dims order;  // empty until decided
  bool fixed = false;
  bool waits = true;  // a neighbour has changed since it was decided
  double weight = 0;
  std::vector<Dims> own;  // the orders that cost least alone
  std::vector<std::pair<Dims, double>> alone;
};

class Chooser {
 public:
  Chooser(const LayoutProblem& problem, const target::Target& target, cost::CostModel& cost)
      : problem_(problem),
        target_(target),
        cost_(cost),
        arrays_(cost.arrays()),
        classes_(static_cast<size_t>(problem.classes.size())) {}

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

  // A shape in the dimensions of the value's class.
  const Shape* OfClass(int32_t value, const Shape& shape) {
    Shape& turned = shapes_.emplace_back();
    turned.element_type = shape.element_type;
    turned.dims = ExtentsOfClass(problem_.classes, value, shape.dims);
    return &turned;
  }

  // Writes a shape, in the dimensions of the class, behind `key`.
  void Write(int32_t value, const Shape& shape, std::vector<int64_t>& key) const {
    key.push_back(static_cast<int64_t>(shape.element_type));
    const Dims extents = ExtentsOfClass(problem_.classes, value, shape.dims);
    key.insert(key.end(), extents.begin(), extents.end());
  }

  void GatherTerms() {
    Known known;
    std::vector<int64_t> key;
    for (const Term& term : problem_.terms) {
      const int32_t of = problem_.classes.Find(term.value);
      Class& c = classes_[static_cast<size_t>(of)];
      Dims dims = term.kind == TermKind::kIndexed
                      ? ExtentsOfClass(problem_.classes, term.value, term.dims)
                      : DimsOfClass(problem_.classes, term.value, term.dims);
      key = {of, static_cast<int64_t>(term.kind)};
      Write(term.value, *term.shape, key);
      key.insert(key.end(), dims.begin(), dims.end());
      const size_t place = known.try_emplace(key, c.terms.size()).first->second;
      if (place < c.terms.size()) {
        c.terms[place].count += term.count;
        continue;
      }
      c.terms.push_back(
          {term.kind, of, OfClass(term.value, *term.shape), std::move(dims), term.count});
    }
  }

  void GatherLinks() {
    Known known;
    std::vector<int64_t> key;
    const OrderClasses& classes = problem_.classes;
    for (const LayoutLink& link : problem_.links) {
      const int32_t from = classes.Find(link.from), to = classes.Find(link.to);
      // Reshapes know their own dimensions: orders are turned when asked for.
      const bool own = link.kind == LinkKind::kReshape;
      // The dimension of the one class for each of the other.
      Dims map;
      if (!own) {
        map.assign(link.from_shape->dims.size(), -1);
        for (size_t d = 0; d < map.size(); ++d) {
          const int64_t d_to = OfOneArray(link) ? static_cast<int64_t>(d) : link.map[d];
          if (d_to < 0) continue;
          map[static_cast<size_t>(classes.ToClass(link.from)[d])] =
              classes.ToClass(link.to)[static_cast<size_t>(d_to)];
        }
      }
      key = {own ? link.from : from, own ? link.to : to, static_cast<int64_t>(link.kind)};
      Write(link.from, *link.from_shape, key);
      Write(link.to, *link.to_shape, key);
      key.insert(key.end(), map.begin(), map.end());
      const size_t place = known.try_emplace(key, links_.size()).first->second;
      if (place < links_.size()) {
        links_[place].count += link.count;
        continue;
      }
      ClassOf(from).links.push_back(links_.size());
      if (from != to) ClassOf(to).links.push_back(links_.size());
      if (own) {
        links_.push_back(link);
      } else {
        links_.push_back({link.kind, from, to, OfClass(link.from, *link.from_shape),
                          OfClass(link.to, *link.to_shape), std::move(map), link.count});
      }
    }
  }

  // ---- Costs -----------------------------------------------------------------

  const Shape& InOrder(const Shape& shape, const Dims& order, bool second = false) {
    // Assigned to the same memory again and again.
    Shape& scratch = second ? second_ : first_;
    scratch.element_type = shape.element_type;
    scratch.dims.assign(shape.dims.begin(), shape.dims.end());
    scratch.layout.minor_to_major.assign(order.begin(), order.end());
    return scratch;
  }

  double OfTerm(const Term& term, const Dims& order) {
    const Shape& shape = InOrder(*term.shape, order);
    switch (term.kind) {
      case TermKind::kMemory:
        return term.count * 2 * arrays_.Memory(shape);
      case TermKind::kRegisters:
        return term.count * arrays_.Registers(shape);
      case TermKind::kCrossLanes:
        return Holds(term.dims, order[0]) ? term.count * arrays_.CrossLanes(shape) : 0;
      case TermKind::kReduce:
        return term.count * arrays_.Reduced(shape, term.dims);
      case TermKind::kIndexed:
        return term.count * arrays_.Piece(shape, term.dims);
      case TermKind::kBatch:
        return Holds(term.dims, order[0]) || Holds(term.dims, order[1])
                   ? std::numeric_limits<double>::infinity()
                   : 0;
    }
    return 0;
  }

  // The array from one order to another on its way in or out of some kernel.
  double OfCopy(const Shape& array, const Dims& from, const Dims& to) {
    if (from == to) return 0;
    const Shape& source = InOrder(array, from);
    const Shape& result = InOrder(array, to, true);
    // Rows only go elsewhere.
    if (from[0] == to[0]) return std::max(arrays_.Registers(source), arrays_.Registers(result));
    return arrays_.Memory(source) + arrays_.Memory(result) +
           std::max(arrays_.CrossLanes(source), arrays_.CrossLanes(result));
  }

  // Returns the cycles of a copy in a kernel of its own; infinite if it cannot be built.
  double OfCopyAlone(const Shape& array, const Dims& from, const Dims& to) {
    if (from == to) return 0;
    const absl::StatusOr<cost::Price> price =
        cost_.PriceOfCopy(InOrder(array, from), InOrder(array, to, true));
    if (!price.ok()) return std::numeric_limits<double>::infinity();
    return ToSeconds(price->time) * target_.chip().clock.value();
  }

  double OfOrders(const LayoutLink& link, const Dims& from, const Dims& to) {
    switch (link.kind) {
      case LinkKind::kCopy:
        return link.count * OfCopy(*link.from_shape, from, to);
      case LinkKind::kMove:
        return link.count * OfCopyAlone(*link.from_shape, from, to);
      case LinkKind::kResult:
        if (from == to) return 0;
        return link.count * (OfCopy(*link.from_shape, from, to) + arrays_.kernel());
      case LinkKind::kLanes: {
        const int64_t lanes = link.map[static_cast<size_t>(from[0])];
        // Reduced away, what is left comes out across the lanes as the result wants it.
        if (lanes == to[0] || lanes < 0) return 0;
        const Shape& a = InOrder(*link.from_shape, from);
        const Shape& b = InOrder(*link.to_shape, to, true);
        const bool from_is_small = a.ElementCount() < b.ElementCount();
        return link.count * (arrays_.CrossLanes(from_is_small ? a : b) + arrays_.Registers(b));
      }
      case LinkKind::kReshape: {
        const Shape& a = InOrder(*link.from_shape, from);
        const Shape& b = InOrder(*link.to_shape, to, true);
        if (OrderThroughReshape(a.dims, b.dims, from) == to && SameTiling(a, b, target_)) return 0;
        const double turned =
            a.dims[static_cast<size_t>(from[0])] == b.dims[static_cast<size_t>(to[0])]
                ? 0
                : std::max(arrays_.CrossLanes(a), arrays_.CrossLanes(b));
        return link.count * (arrays_.Memory(a) + arrays_.Memory(b) + turned);
      }
    }
    return 0;
  }

  // Remembered: every round asks for the same orders.
  double Alone(Class& c, const Dims& order) {
    for (const auto& [known, cost] : c.alone) {
      if (known == order) return cost;
    }
    double sum = 0;
    for (const Term& term : c.terms) sum += OfTerm(term, order);
    c.alone.emplace_back(order, sum);
    return sum;
  }

  // Between classes that may be one and the same.
  double OfLink(const LayoutLink& link, const Dims& from, const Dims& to) {
    if (link.kind == LinkKind::kReshape) {
      return OfOrders(link, problem_.classes.OfValue(link.from, from),
                      problem_.classes.OfValue(link.to, to));
    }
    if (OfOneArray(link)) {
      // The same array in the dimensions of the one class and of the other.
      return OfOrders(link, from, Through(link, to, true));
    }
    return OfOrders(link, from, to);
  }

  Dims Through(const LayoutLink& link, const Dims& order, bool backward) const {
    const OrderClasses& classes = problem_.classes;
    switch (link.kind) {
      case LinkKind::kReshape: {
        const int32_t from = backward ? link.to : link.from, to = backward ? link.from : link.to;
        const Dims through = OrderThrough(link, classes.OfValue(from, order), backward);
        return through.empty() ? through : classes.OfClass(to, through);
      }
      case LinkKind::kCopy:
      case LinkKind::kMove:
      case LinkKind::kResult:
        return Compose(order, backward ? Inverse(link.map) : link.map);
      case LinkKind::kLanes:
        break;
    }
    return OrderThrough(link, order, backward);
  }

  const Dims& OrderOf(int32_t value) const {
    return classes_[static_cast<size_t>(problem_.classes.Find(value))].order;
  }

  double Cost(int32_t number, const Dims& order) {
    Class& c = classes_[static_cast<size_t>(number)];
    double sum = Alone(c, order);
    for (size_t n : c.links) {
      const LayoutLink& link = links_[n];
      const bool is_from = problem_.classes.Find(link.from) == number;
      const bool is_to = problem_.classes.Find(link.to) == number;
      const Dims& from = is_from ? order : OrderOf(link.from);
      const Dims& to = is_to ? order : OrderOf(link.to);
      if (!from.empty() && !to.empty()) sum += OfLink(link, from, to);
    }
    return sum;
  }

  // ---- Choice ----------------------------------------------------------------

  // Returns the candidates of a class, the cheapest alone first; of equals the later dimension
  // faster.
  std::vector<Dims> OwnCandidates(Class& c) {
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
    const int64_t most = limits::kOwnOrders.most();
    for (auto& [cost, order] : tried) {
      if (std::ssize(best) < most) best.push_back(std::move(order));
    }
    if (std::ssize(tried) > most) limits::kOwnOrders.Reached(std::ssize(tried) - most);
    return best;
  }

  void DecideOne(int32_t number) {
    Class& c = classes_[static_cast<size_t>(number)];
    if (!c.waits) return;
    c.waits = false;
    std::vector<Dims> candidates;
    const auto offer = [&](Dims order) {
      if (order.empty()) return;
      if (std::find(candidates.begin(), candidates.end(), order) == candidates.end()) {
        candidates.push_back(std::move(order));
      }
    };
    // As it is, so that nothing changes without a reason; as neighbours have it; its own.
    offer(c.order);
    for (size_t l = 0; l < c.links.size(); ++l) {
      const size_t n = c.links[l];
      if (std::ssize(candidates) > limits::kNeighbourOrders.most()) {
        limits::kNeighbourOrders.Reached(static_cast<int64_t>(c.links.size() - l));
        break;
      }
      const LayoutLink& link = links_[n];
      const bool is_from = problem_.classes.Find(link.from) == number;
      const Dims& other = OrderOf(is_from ? link.to : link.from);
      if (!other.empty()) offer(Through(link, other, is_from));
    }
    for (const Dims& order : c.own) offer(order);
    double least = std::numeric_limits<double>::infinity();
    const Dims* best = &candidates.front();
    for (const Dims& order : candidates) {
      const double cost = Cost(number, order);
      if (cost < least * (1 - 1e-9)) {  // number: rounding
        least = cost;
        best = &order;
      }
    }
    if (c.order == *best) return;
    c.order = *best;
    for (size_t n : c.links) {
      ClassOf(links_[n].from).waits = true;
      ClassOf(links_[n].to).waits = true;
    }
  }

  void Decide() {
    std::vector<int32_t> order;
    for (int32_t n = 0; n < problem_.classes.size(); ++n) {
      Class& c = classes_[static_cast<size_t>(n)];
      if (problem_.classes.Find(n) != n || c.fixed) continue;
      c.own = OwnCandidates(c);
      c.weight = Alone(c, c.own.front());
      if (!std::isfinite(c.weight)) c.weight = 0;
      order.push_back(n);
    }
    std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
      return classes_[static_cast<size_t>(a)].weight > classes_[static_cast<size_t>(b)].weight;
    });
    for (int round = 0; round < limits::kLayoutRounds.most(); ++round) {
      for (int32_t n : order) DecideOne(n);
    }
    const auto wait = std::ranges::count_if(
        order, [this](int32_t n) { return classes_[static_cast<size_t>(n)].waits; });
    if (wait > 0) limits::kLayoutRounds.Reached(wait);
  }

  const LayoutProblem& problem_;
  const target::Target& target_;
  cost::CostModel& cost_;
  const cost::ArrayCosts& arrays_;
  std::vector<Class> classes_;  // by the value that stands for the class
  std::vector<LayoutLink> links_;
  Shape first_, second_;      // scratch
  std::deque<Shape> shapes_;  // of terms and links, in the dimensions of their classes
};

}  // namespace

std::vector<Dims> ChooseLayouts(const LayoutProblem& problem, const target::Target& target,
                                cost::CostModel& cost) {
  return Chooser(problem, target, cost).Run();
}

}  // namespace tpusim::passes
