// Loops of a body, and what they carry from pass to pass where none of it is data.
//
// Loops that copy ahead of what they compute (`pltpu.emit_pipeline` makes such loops) carry where
// they are, and decide by that what to copy: the next block, if there is one and if it is another.
// With what they carry known in every pass, so are these decisions.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <utility>

#include "workloads/mosaic/body.h"
#include "workloads/mosaic/limits.h"

namespace tpusim::mosaic {

// A loop that carries `formals`, which begin as `first` and go on as `next`.
struct Body::ForLoop {
  const Operation* operation = nullptr;
  const Block* body = nullptr;
  const Value* counter = nullptr;  // null: a loop that does not count
  Scalar start, step;              // of the counter
  std::vector<const Value*> formals, first, next;
  std::optional<int64_t> at_most;
};

namespace {

bool IsConstant(const Value* value) {
  return value->defined_by != nullptr && ConstantOf(*value->defined_by).has_value();
}

// Whether what runs inside may depend on scalars.
bool Decides(const Block& block) {
  bool decides = false;
  ForAll(block, [&](const Operation& operation) {
    const std::string& name = operation.name;
    decides = decides || name == "scf.if" || name == "scf.while" || name == "tpu.enqueue_dma";
    if (name == "scf.for") {
      // number: operands of a loop before those that it carries
      for (size_t n = 0; n < 3 && n < operation.operands.size(); ++n) {
        decides = decides || !IsConstant(operation.operands[n]);
      }
    }
  });
  return decides;
}

// Whether it adds one.
bool CountsOn(const Value* next, const Value* formal) {
  const Operation* step = next->defined_by;
  if (step == nullptr || step->name != "arith.addi" || step->operands.size() != 2) return false;
  const Operation* one = step->operands[1]->defined_by;
  return step->operands[0] == formal && one != nullptr && ConstantOf(*one) == 1;
}

// At which points the passes of a loop happen, first passes first.
std::vector<int64_t> Happen(const std::vector<int64_t>& trips) {
  const int64_t most = trips.empty() ? 0 : *std::max_element(trips.begin(), trips.end());
  std::vector<int64_t> at;
  for (int64_t pass = 0; pass < most; ++pass) {
    for (size_t n = 0; n < trips.size(); ++n) {
      if (trips[n] > pass) at.push_back(static_cast<int64_t>(n));
    }
  }
  return at;
}

}  // namespace

PointCosts Body::For(const Operation& operation, Scope* scope) {
  PointCosts nothing(weights_);
  const std::vector<const Value*>& operands = operation.operands;
  // number: operands of a loop before those that it carries
  if (operands.size() < 3 || operation.regions.size() != 1 ||
      operation.regions[0].blocks.size() != 1) {
    Fail(operation, "");
    return nothing;
  }
  ForLoop loop;
  loop.operation = &operation;
  loop.body = &operation.regions[0].blocks[0];
  const std::vector<const Value*>& arguments = loop.body->arguments;
  if (arguments.size() != operands.size() - 2 || loop.body->operations.empty() ||
      // number: operands of a loop before those that it carries
      loop.body->operations.back()->operands.size() != operands.size() - 3) {
    Fail(operation, "");
    return nothing;
  }
  loop.counter = arguments[0];
  loop.formals.assign(arguments.begin() + 1, arguments.end());
  // number: operands of a loop before those that it carries
  loop.first.assign(operands.begin() + 3, operands.end());
  loop.next = loop.body->operations.back()->operands;
  loop.start = ScalarOf(operands[0], scope);
  const Scalar end = ScalarOf(operands[1], scope);
  loop.step = ScalarOf(operands[2], scope);
  if (loop.start.exact && end.exact && loop.step.exact) {
    Numbers trips(scope->points()->size());
    for (size_t n = 0; n < trips.size(); ++n) {
      const int64_t step = std::max<int64_t>(1, (*loop.step.exact)[n]);
      const int64_t length = static_cast<int64_t>(std::clamp<double>(
          static_cast<double>((*end.exact)[n]) - static_cast<double>((*loop.start.exact)[n]), 0,
          1e15));  // number: beyond any loop
      trips[n] = length / step + (length % step != 0 ? 1 : 0);
    }
    loop.at_most = *std::max_element(trips.begin(), trips.end());
    return Repeated(loop, trips, scope);
  }
  // Unrolled loops come with one for what is left over: the same number less itself.
  const auto* from = std::get_if<Linear>(&loop.start.symbol);
  const auto* to = std::get_if<Linear>(&end.symbol);
  if (from != nullptr && to != nullptr) {
    const Linear left = Sum(*to, 1, *from, -1);
    if (left.form.empty() && left.constant <= 0) return nothing;
  }
  const double length = SizeOf(operands[1], scope).high - SizeOf(operands[0], scope).low;
  if (std::isfinite(length) && loop.step.low >= 1) {
    loop.at_most =
        // number: beyond any loop
        static_cast<int64_t>(std::clamp<double>(std::ceil(length / loop.step.low), 0, 1e15));
  }
  return Unrepeated(loop, scope);
}

PointCosts Body::While(const Operation& operation, Scope* scope) {
  PointCosts nothing(weights_);
  if (operation.regions.size() != 2 || operation.regions[0].blocks.size() != 1 ||
      operation.regions[1].blocks.size() != 1 ||
      operation.regions[1].blocks[0].operations.empty()) {
    Fail(operation, "");
    return nothing;
  }
  ForLoop loop;
  loop.operation = &operation;
  loop.body = &operation.regions[1].blocks[0];
  loop.formals = loop.body->arguments;
  loop.first = operation.operands;
  loop.next = loop.body->operations.back()->operands;
  // The condition may yield something else than the loop carries.
  const size_t carried = loop.formals.size();
  if (loop.first.size() != carried || loop.next.size() != carried) loop.formals.clear();
  return Unrepeated(loop, scope);
}

PointCosts Body::Unrepeated(const ForLoop& loop, Scope* scope) {
  const Operation& operation = *loop.operation;
  const int number = loops_.try_emplace(&operation, static_cast<int>(loops_.size())).first->second;
  const Loop described{false, number, PlaceAround(operation), loop.at_most};
  const KnownValues known = EnterLoop(loop, scope);
  std::vector<int64_t> places(scope->points()->size());
  std::iota(places.begin(), places.end(), 0);
  Scope inner(scope, scope->points(), std::move(places));
  for (const auto& [value, scalar] : known) inner.Define(value, scalar);
  return LeaveLoop(operation, OnePass(loop, &inner)).Mapped([&](const Price& once) {
    return once.InLoop(described);
  });
}

// Defines what is known inside: the counter, and what the loop carries without changing it.
Body::KnownValues Body::EnterLoop(const ForLoop& loop, Scope* outer) {
  KnownValues known;
  Changed(*loop.operation);  // What the body writes is another in each pass.
  ++scalars_.depth;
  const double most =
      loop.at_most ? static_cast<double>(std::max<int64_t>(0, *loop.at_most - 1)) : kInfinity;
  if (loop.counter != nullptr) {
    const double step = std::max(1.0, loop.step.high);
    const double high = most == 0 ? loop.start.high : loop.start.high + most * step;
    known.emplace_back(loop.counter, scalars_.Counted(loop.start.low, high));
  }
  for (size_t n = 0; n < loop.formals.size(); ++n) {
    const Value* formal = loop.formals[n];
    orders_[formal] = OrderOf({loop.first[n]});
    if (in_vmem_.contains(Unshaped(loop.first[n]))) in_vmem_.insert(formal);
    if (!IsScalar(*formal)) continue;
    const Scalar before = ScalarOf(loop.first[n], outer);
    if (loop.next[n] == formal) {
      known.emplace_back(formal, before);
    } else if (IsConstant(loop.next[n])) {
      const auto after = static_cast<double>(*ConstantOf(*loop.next[n]->defined_by));
      if (IsBoolean(*formal)) continue;
      known.emplace_back(
          formal, scalars_.Counted(std::min(before.low, after), std::max(before.high, after)));
    } else if (CountsOn(loop.next[n], formal)) {
      known.emplace_back(formal, scalars_.Counted(before.low, before.high + most));
    }
  }
  return known;
}

PointCosts Body::OnePass(const ForLoop& loop, Scope* inner) {
  PointCosts once = Walk(*loop.body, inner);
  JoinOrders(loop.operation->results, loop.next);
  return once;
}

// One pass, with predicates decided that may be others in the next one.
PointCosts Body::LeaveLoop(const Operation& loop, const PointCosts& once) {
  const int depth = scalars_.depth;
  PointCosts decided =
      once.Decided([&](int atom) { return scalars_.DepthOf(atom) < depth; }, sets_);
  --scalars_.depth;
  Changed(loop);
  return decided;
}

// Returns the costs of a loop that runs as often as `trips` says for every point.
PointCosts Body::Repeated(const ForLoop& loop, const Numbers& trips, Scope* scope) {
  const KnownValues known = EnterLoop(loop, scope);
  if (Decides(*loop.body)) {
    if (const auto values = Carried(loop, trips, scope)) {
      // Every pass at every point by itself.
      const Numbers at = Happen(trips);
      Numbers index, rows(at.size());
      for (const int64_t place : at) {
        index.push_back(scope->points()->index[static_cast<size_t>(place)]);
      }
      std::iota(rows.begin(), rows.end(), 0);
      Scope inner(scope, sets_.Of(std::move(index), std::move(rows)), at);
      for (const auto& [value, scalar] : known) inner.Define(value, scalar.At(at));
      for (const auto& [value, exact] : *values) {
        inner.Define(value, scalars_.Known(exact, scalars_.Unknown(IsBoolean(*value))));
      }
      return LeaveLoop(*loop.operation, OnePass(loop, &inner)).Gathered(scope->points(), at, sets_);
    }
  }
  // Points with as many trips go together.
  std::map<int64_t, Numbers> by_count;
  for (size_t n = 0; n < trips.size(); ++n) by_count[trips[n]].push_back(static_cast<int64_t>(n));
  PointCosts total(weights_);
  for (const auto& [count, places] : by_count) {
    if (count == 0) continue;
    Scope inner(scope, sets_.Some(scope->points(), places), places);
    for (const auto& [value, scalar] : known) inner.Define(value, scalar.At(places));
    total.Add(OnePass(loop, &inner).Mapped([&, times = count](const Price& once) {
      return once.TimesOf(times);
    }));
  }
  return LeaveLoop(*loop.operation, total);
}

// Returns the values in all passes of what a loop carries, as they happen; nullopt: too many. Only
// what is made of nothing but known numbers is in the result.
std::optional<Body::Columns> Body::Carried(const ForLoop& loop, const Numbers& trips,
                                           Scope* outer) {
  // Known numbers that the loop begins with, by the argument of its body that has them: those that
  // all passes leave as they are, and those of the current pass.
  std::map<const Value*, Column> fixed, now;
  for (size_t n = 0; n < loop.formals.size(); ++n) {
    const Value* formal = loop.formals[n];
    if (!IsScalar(*formal) || formal->type->kind == Type::Kind::kFloat) continue;
    const Scalar first = ScalarOf(loop.first[n], outer);
    if (!first.exact) continue;
    (loop.next[n] == formal ? fixed : now).emplace(formal, *first.exact);
  }
  if (loop.counter != nullptr) now.emplace(loop.counter, *loop.start.exact);
  std::set<const Value*> own;  // defined inside, and so not known from outside
  for (const Operation* operation : loop.body->operations) {
    own.insert(operation->results.begin(), operation->results.end());
  }
  own.insert(loop.body->arguments.begin(), loop.body->arguments.end());
  const auto from_outside = [&](const Value* value) -> const Column* {
    if (own.contains(value)) return nullptr;
    const Scalar* scalar = outer->Find(value);
    return scalar == nullptr ? nullptr : scalar->exact.get();
  };
  std::vector<const Operation*> evaluated;
  for (;;) {
    std::set<const Value*> made;
    for (const auto& [value, column] : fixed) made.insert(value);
    for (const auto& [value, column] : now) made.insert(value);
    evaluated.clear();
    for (const Operation* operation : loop.body->operations) {
      const bool constant = ConstantOf(*operation).has_value();
      const auto is_known = [&](const Value* v) {
        return made.contains(v) || from_outside(v) != nullptr;
      };
      if (!constant &&
          (!CanEvaluate(*operation) ||
           !std::all_of(operation->operands.begin(), operation->operands.end(), is_known))) {
        continue;
      }
      evaluated.push_back(operation);
      made.insert(operation->results.begin(), operation->results.end());
    }
    size_t open = 0;
    for (size_t n = 0; n < loop.formals.size(); ++n) {
      if (!now.contains(loop.formals[n])) continue;
      if (!made.contains(loop.next[n]) && from_outside(loop.next[n]) == nullptr) {
        now.erase(loop.formals[n]);
        ++open;
      }
    }
    if (open == 0) break;
  }
  // Those operations that are needed.
  std::set<const Value*> wanted;
  for (size_t n = 0; n < loop.formals.size(); ++n) {
    if (now.contains(loop.formals[n])) wanted.insert(loop.next[n]);
  }
  std::vector<const Operation*> needed;
  for (size_t n = evaluated.size(); n-- > 0;) {
    if (!wanted.contains(evaluated[n]->results[0])) continue;
    needed.insert(needed.begin(), evaluated[n]);
    wanted.insert(evaluated[n]->operands.begin(), evaluated[n]->operands.end());
  }
  int64_t passes = 0;
  for (const int64_t count : trips) passes = Plus(passes, count);
  const int64_t most = trips.empty() ? 0 : *std::max_element(trips.begin(), trips.end());
  if (passes > limits::kLoopPasses.most()) {
    limits::kLoopPasses.Reached();
    return std::nullopt;
  }
  if (Times(most, std::ssize(needed)) > limits::kLoopOperations.most()) {
    limits::kLoopOperations.Reached();
    return std::nullopt;
  }
  const size_t points = trips.size();
  std::map<const Value*, Numbers> rows;
  for (const auto& [formal, column] : now) rows[formal];
  for (int64_t pass = 0; pass < most; ++pass) {
    for (const auto& [formal, column] : now) {
      for (size_t n = 0; n < points; ++n) {
        if (trips[n] > pass) rows[formal].push_back(column[n]);
      }
    }
    std::map<const Value*, Column> made = now;
    const auto column_of = [&](const Value* value) -> const Column* {
      if (const auto it = made.find(value); it != made.end()) return &it->second;
      if (const auto it = fixed.find(value); it != fixed.end()) return &it->second;
      return from_outside(value);
    };
    for (const Operation* operation : needed) {
      if (const auto constant = ConstantOf(*operation)) {
        const bool boolean = IsBoolean(*operation->results[0]);
        made.emplace(operation->results[0], Column(boolean ? *constant & 1 : *constant));
        continue;
      }
      std::vector<const Column*> operands;
      for (const Value* operand : operation->operands) operands.push_back(column_of(operand));
      made.emplace(operation->results[0], *Evaluated(*operation, operands, points));
    }
    std::map<const Value*, Column> after;
    for (size_t n = 0; n < loop.formals.size(); ++n) {
      if (now.contains(loop.formals[n])) after.emplace(loop.formals[n], *column_of(loop.next[n]));
    }
    if (loop.counter != nullptr) {
      Numbers counted(points);
      for (size_t n = 0; n < points; ++n) {
        const int64_t passed = Times(pass + 1, std::max<int64_t>(1, (*loop.step.exact)[n]));
        // number: beyond any loop
        counted[n] = (*loop.start.exact)[n] + std::min<int64_t>(passed, int64_t{1} << 52);
      }
      after.emplace(loop.counter, Column(std::move(counted)));
    }
    now = std::move(after);
  }
  Columns values;
  for (const Value* argument : loop.body->arguments) {
    const auto found = rows.find(argument);
    if (found != rows.end()) values.emplace_back(argument, Column(std::move(found->second)));
  }
  return values;
}

}  // namespace tpusim::mosaic
