#include "workloads/mosaic/body.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "configs/status_macros.h"
#include "configs/vector_register.h"
#include "workloads/mosaic/limits.h"

namespace tpusim::mosaic {
namespace {

const std::vector<const Value*>& YieldedBy(const Block& block) {
  static const auto* const kNothing = new std::vector<const Value*>();
  if (block.operations.empty()) return *kNothing;
  const Operation& last = *block.operations.back();
  return IsTerminator(last.name) ? last.operands : *kNothing;
}

}  // namespace

const Value* RootOf(const Value* reference) {
  while (reference->defined_by != nullptr && IsView(reference->defined_by->name) &&
         !reference->defined_by->operands.empty()) {
    reference = reference->defined_by->operands[0];
  }
  return reference;
}

void ForAll(const Block& block, const std::function<void(const Operation&)>& call) {
  for (const Operation* operation : block.operations) {
    call(*operation);
    for (const Region& region : operation->regions) {
      for (const Block& inner : region.blocks) ForAll(inner, call);
    }
  }
}

Body::Body(std::vector<int64_t> grid, const configs::ChipParams& chip, const Weights& weights)
    : grid_(std::move(grid)),
      chip_(chip),
      register_bytes_(chip.vpu.registers * configs::RegisterBytes(chip.vpu)),
      weights_(weights) {
  int64_t points = 1;
  for (const int64_t size : grid_) {
    if (size != kDynamic) points = Times(points, std::max<int64_t>(0, size));
  }
  if (points > limits::kMostPoints) {
    status_ = NoRule(fmt::format("its grid has {} points", points));
    points = 0;
  }
  all_ = sets_.All(points);
}

void Body::SetTable(const Value* argument, std::shared_ptr<const Table> table) {
  references_[argument].table = std::move(table);
}

bool Body::Fail(const Operation& operation, const std::string& what) {
  if (status_.ok()) {
    const std::string place = PlaceAround(operation);
    status_ =
        NoRule(fmt::format("there is no rule for {}{}{}", what.empty() ? operation.name : what,
                           place.empty() ? "" : " at ", place));
  }
  return false;
}

std::string Body::PlaceAround(const Operation& operation) const {
  std::string place = PlaceOf(operation.location);
  for (size_t n = around_.size(); n-- > 0 && place.empty();) {
    place = PlaceOf(around_[n]->location);
  }
  return place;
}

bool Body::Spend(const Points& points) {
  spent_ += 1 + static_cast<int64_t>(points->size()) / limits::kPointsOfAnOperation;
  if (spent_ > limits::kMostOperations && status_.ok()) {
    status_ = NoRule("its loops run for more points than the limit of a body allows");
  }
  return status_.ok();
}

// The arguments of a function begin with places in the grid.
void Body::DefinePlaces(const Block& block, Scope* scope) {
  int64_t later = 1;
  for (size_t axis = grid_.size(); axis-- > 0;) {
    const int64_t size = grid_[axis];
    const Scalar symbol = scalars_.MadeOf(fmt::format("place on axis {}", axis), {}, false);
    if (axis < block.arguments.size()) {
      if (size == kDynamic) {
        scope->Define(block.arguments[axis], symbol);
      } else {
        std::vector<int64_t> places;
        places.reserve(scope->points()->size());
        for (const int64_t point : scope->points()->index) places.push_back(point / later % size);
        scope->Define(block.arguments[axis], scalars_.Known(Column(std::move(places)), symbol));
      }
    }
    if (size != kDynamic) later = Times(later, std::max<int64_t>(1, size));
  }
}

// MLIR has no operation for the sign of an integer: (x > 0) - (x < 0), each extended, is one.
void Body::FindSigns(const Block& block) {
  std::unordered_map<const Value*, int> uses;
  ForAll(block, [&](const Operation& operation) {
    for (const Value* operand : operation.operands) ++uses[operand];
  });
  const auto defined_by = [&](const Value* value, std::string_view name) -> const Operation* {
    const Operation* by = value->defined_by;
    return by != nullptr && by->name == name && !by->operands.empty() && uses[value] == 1 ? by
                                                                                          : nullptr;
  };
  ForAll(block, [&](const Operation& operation) {
    if (operation.name != "arith.subi" || operation.operands.size() != 2) return;
    const Operation* parts[4] = {};  // number: operations of a sign
    for (size_t n = 0; n < 2; ++n) {
      parts[2 * n] = defined_by(operation.operands[n], "arith.extui");
      if (parts[2 * n] == nullptr) return;
      parts[2 * n + 1] = defined_by(parts[2 * n]->operands[0], "arith.cmpi");
      if (parts[2 * n + 1] == nullptr) return;
    }
    // number: operations of a sign
    if (parts[1]->operands[0] == parts[3]->operands[0]) in_signs_.insert(parts, parts + 4);
  });
}

Price Body::PriceOf(const Block& block) {
  FindSigns(block);
  ForAll(block, [&](const Operation& operation) {
    if (OnlyReads(operation.name) || operation.name == "tpu.enqueue_dma") return;
    for (const Value* operand : operation.operands) {
      if (operand->type->kind == Type::Kind::kMemRef) written_.insert(RootOf(operand));
    }
  });
  // A copy writes to all but what it reads.
  ForAll(block, [&](const Operation& operation) {
    if (operation.name != "tpu.enqueue_dma") return;
    for (size_t n = 1; n < operation.operands.size(); ++n) {
      if (operation.operands[n]->type->kind == Type::Kind::kMemRef) {
        written_.insert(RootOf(operation.operands[n]));
      }
    }
  });
  Scope scope(all_);
  DefinePlaces(block, &scope);
  const PointCosts total = Walk(block, &scope);
  return total.Decided([](int) { return false; }, sets_).always();
}

std::vector<std::shared_ptr<const Column>> Body::ResultsOf(const Block& block) {
  Scope scope(all_);
  DefinePlaces(block, &scope);
  Walk(block, &scope);
  std::vector<std::shared_ptr<const Column>> results;
  for (const Value* value : YieldedBy(block)) results.push_back(ScalarOf(value, &scope).exact);
  return results;
}

PointCosts Body::Walk(const Block& block, Scope* scope) {
  PointCosts total(weights_);
  if (scope->points()->size() == 0 || !status_.ok()) return total;
  // It may have been walked before.
  for (const Operation* operation : block.operations) {
    for (const Value* result : operation->results) in_vmem_.erase(result);
  }
  for (const Value* argument : block.arguments) {
    if (IsScalar(*argument) && scope->Find(argument) == nullptr) {
      scope->Define(argument, scalars_.Unknown(IsBoolean(*argument)));
    }
  }
  std::vector<std::pair<int, double>> outer;
  outer.swap(products_);
  for (size_t n = 0; n < block.operations.size() && status_.ok(); ++n) {
    if (IsTerminator(block.operations[n]->name)) continue;
    WalkOperation(*block.operations[n], n, block, scope, &total);
  }
  if (!products_.empty()) total.Charge(Chains(), scope->points(), when_);
  products_.swap(outer);
  return total;
}

// Returns the chains of the region that is walked: each begins with a product of the first stage.
Price Body::Chains() const {
  const int first = std::ranges::min_element(products_)->first;
  double flops = 0;
  int64_t chains = 0;
  for (const auto& [stage, of_product] : products_) {
    if (stage != first) continue;
    flops += of_product;
    ++chains;
  }
  Price price;
  price.chain_flops = flops;
  price.exposed_flops = flops / static_cast<double>(chains);
  return price;
}

void Body::WalkOperation(const Operation& operation, size_t number, const Block& block,
                         Scope* scope, PointCosts* total) {
  if (!Spend(scope->points())) return;
  const std::string& name = operation.name;
  around_.push_back(&operation);
  if (name == "scf.if") {
    total->Add(If(operation, scope));
  } else if (name == "scf.for") {
    total->Add(For(operation, scope));
  } else if (name == "scf.while") {
    total->Add(While(operation, scope));
  } else if (name == "tpu.region" || name == "scf.execute_region") {
    total->Add(Inside(operation, scope));
  } else if (name == "tpu.enqueue_dma") {
    Copies(operation, scope, total);
    Changed(operation);
  } else {
    const Price price = OnVectors(operation, number, block, scope);
    if (!price.IsNothing()) total->Charge(price, scope->points(), when_);
  }
  DefineResults(operation, scope);
  around_.pop_back();
}

// Results of which nothing is known.
void Body::DefineResults(const Operation& operation, Scope* scope) {
  for (const Value* result : operation.results) {
    if (IsScalar(*result) && scope->Find(result) == nullptr) {
      scope->Define(result, scalars_.Unknown(IsBoolean(*result)));
    }
  }
}

Scalar Body::ScalarOf(const Value* value, Scope* scope) {
  if (const Scalar* known = scope->Find(value)) return *known;
  return scalars_.Unknown(IsBoolean(*value));
}

// Returns what is known of a number where it is used.
Scalar Body::SizeOf(const Value* value, Scope* scope) {
  Scalar size = ScalarOf(value, scope);
  for (const Literal& literal : when_) size = scalars_.Refined(size, literal);
  return size;
}

Order Body::OrderOf(const std::vector<const Value*>& values) const {
  Order all;
  for (const Value* value : values) {
    const auto known = orders_.find(RootOf(value));
    if (known != orders_.end()) all = Together(all, known->second);
  }
  return all;
}

// A result is there when what a region gives for it is.
void Body::JoinOrders(const std::vector<const Value*>& outer,
                      const std::vector<const Value*>& inner) {
  for (size_t n = 0; n < outer.size() && n < inner.size(); ++n) {
    orders_[outer[n]] = Together(OrderOf({outer[n]}), OrderOf({inner[n]}));
  }
}

Reference& Body::ReferenceOf(const Value* value) {
  const auto [it, fresh] = references_.try_emplace(value);
  if (fresh || !reference_numbers_.contains(value)) {
    it->second.written = written_.contains(RootOf(value));
    reference_numbers_.emplace(value, static_cast<int>(reference_numbers_.size()));
  }
  return it->second;
}

// References of its operands, and of what is in its regions, may hold something else from now on.
void Body::Changed(const Operation& operation) {
  const auto change = [&](const Operation& each) {
    if (OnlyReads(each.name)) return;
    for (const Value* operand : each.operands) {
      if (operand->type->kind == Type::Kind::kMemRef) ++ReferenceOf(RootOf(operand)).version;
    }
  };
  change(operation);
  for (const Region& region : operation.regions) {
    for (const Block& block : region.blocks) ForAll(block, change);
  }
}

PointCosts Body::Inside(const Operation& operation, Scope* scope) {
  PointCosts total(weights_);
  if (operation.regions.size() != 1 || operation.regions[0].blocks.size() != 1) {
    Fail(operation, "");
    return total;
  }
  const Block& block = operation.regions[0].blocks[0];
  total.Add(Walk(block, scope));
  const std::vector<const Value*>& yielded = YieldedBy(block);
  JoinOrders(operation.results, yielded);
  for (size_t n = 0; n < operation.results.size() && n < yielded.size(); ++n) {
    if (IsScalar(*operation.results[n])) {
      scope->Define(operation.results[n], ScalarOf(yielded[n], scope));
    }
  }
  return total;
}

PointCosts Body::If(const Operation& operation, Scope* scope) {
  PointCosts total(weights_);
  if (operation.operands.size() != 1 || operation.regions.size() > 2) {
    Fail(operation, "");
    return total;
  }
  const Scalar which = ScalarOf(operation.operands[0], scope);
  const Literal condition = scalars_.Condition(which);
  const When outside = when_;
  const size_t points = scope->points()->size();
  const auto [can_be_true, can_be_false] = which.Outcomes(points);
  for (size_t branch = 0; branch < operation.regions.size(); ++branch) {
    const Region& region = operation.regions[branch];
    if (region.blocks.empty()) continue;
    if (region.blocks.size() > 1) Fail(operation, "jumps");
    const Column& mine = branch == 0 ? can_be_true : can_be_false;
    const Column& other = branch == 0 ? can_be_false : can_be_true;
    for (const bool sure : {true, false}) {
      std::vector<int64_t> places;
      for (size_t n = 0; n < points; ++n) {
        if (mine[n] != 0 && (other[n] == 0) == sure) places.push_back(static_cast<int64_t>(n));
      }
      if (places.empty()) continue;
      const std::optional<When> when =
          sure ? outside : Both(outside, branch == 0 ? condition : !condition);
      if (!when) continue;  // What is around it rules it out.
      when_ = *when;
      Scope inner(scope, sets_.Some(scope->points(), places), places);
      total.Add(Walk(region.blocks[0], &inner));
      JoinOrders(operation.results, YieldedBy(region.blocks[0]));
      when_ = outside;
    }
  }
  return total;
}

// The price at one point.
Price Body::OnVectors(const Operation& operation, size_t number, const Block& block, Scope* scope) {
  const Rule rule = RuleOf(operation.name);
  if (rule == Rule::kNone || !operation.regions.empty()) {
    Fail(operation, "");
    return {};
  }
  if (operation.name == "memref.load") {
    Read(operation, scope);
  } else if (!OnlyReads(operation.name)) {
    Changed(operation);
  }
  const Order at = OrderOf(operation.operands);
  const bool stores = operation.results.empty();
  if (stores) {
    // What a reference holds is there when all of it is.
    for (const Value* operand : operation.operands) {
      if (operand->type->kind == Type::Kind::kMemRef) orders_[RootOf(operand)] = at;
    }
    return {};
  }
  const bool vectors = std::any_of(operation.results.begin(), operation.results.end(),
                                   [](const Value* v) { return !IsScalar(*v); });
  if (!vectors && rule != Rule::kReduction) {
    OnScalars(operation, scope);
    return {};
  }
  Stage stage;
  Order runs = at, ready = at;
  if (rule == Rule::kProduct) {
    const std::optional<Stage> product = ProductOf(operation);
    if (!product) {
      Fail(operation, "products of such operands");
      return {};
    }
    stage = *product;
    runs = ready = OfProduct(at);
    products_.emplace_back(runs.stage, static_cast<double>(stage.flops));
    stage.spilled_bytes =
        Spilled({operation.operands[0], operation.operands[1], operation.results[0]});
  } else {
    repeats_.Add(operation);
    const std::optional<Stage> priced = StageOf(operation, chip_, repeats_);
    if (!priced) {
      Fail(operation, "");
      return {};
    }
    if (!in_signs_.contains(&operation)) stage = *priced;
    if (rule == Rule::kReduction) {
      ready = AfterReduction(at);
      auto [last, fresh] = last_uses_.try_emplace(&block);
      if (fresh) {
        for (size_t n = 0; n < block.operations.size(); ++n) {
          if (IsTerminator(block.operations[n]->name)) continue;
          const auto use = [&, &uses = last->second](const Operation& each) {
            for (const Value* operand : each.operands) uses[Unshaped(operand)] = n;
          };
          use(*block.operations[n]);
          for (const Region& region : block.operations[n]->regions) {
            for (const Block& inner : region.blocks) ForAll(inner, use);
          }
        }
      }
      std::vector<const Value*> needed;
      for (const Value* operand : operation.operands) {
        const auto use = last->second.find(Unshaped(operand));
        if (use != last->second.end() && use->second > number) needed.push_back(operand);
      }
      stage.spilled_bytes = Spilled(needed);
    }
  }
  for (const Value* result : operation.results) {
    orders_[result] = ready;
    // An array that is loaded is in memory already.
    if (OnlyReads(operation.name)) in_vmem_.insert(result);
  }
  if (stage == Stage{}) return {};
  Price price;
  price.stages.resize(static_cast<size_t>(runs.stage) + 1);
  price.stages.back() = stage;
  return price;
}

// Bytes of those that registers do not hold and that are in no memory yet.
//
// What a product makes or takes, and what is needed again after it has been reduced, is there as a
// whole at some time; anything else can be made, used and forgotten register by register.
int64_t Body::Spilled(const std::vector<const Value*>& values) {
  int64_t total = 0;
  for (const Value* value : values) {
    const Value* vector = Unshaped(value);
    if (vector->type->kind != Type::Kind::kVector || !in_vmem_.insert(vector).second) continue;
    if (vector->defined_by != nullptr && vector->defined_by->name == "arith.constant") continue;
    const int64_t bytes = BytesOf(*vector->type);
    if (bytes > register_bytes_) total = Plus(total, bytes);
  }
  return total;
}

void Body::OnScalars(const Operation& operation, Scope* scope) {
  if (operation.results.size() != 1 || operation.name == "memref.load") return;
  const Value* result = operation.results[0];
  const bool boolean = IsBoolean(*result);
  if (const auto constant = ConstantOf(operation)) {
    scope->Define(result, scalars_.Constant(*constant, boolean));
    return;
  }
  if (operation.name == "tpu.iteration_bound") {
    const Attribute* axis = operation.Find("dim");
    if (axis != nullptr && axis->integer >= 0 &&
        static_cast<size_t>(axis->integer) < grid_.size() &&
        grid_[static_cast<size_t>(axis->integer)] != kDynamic) {
      const int64_t size = grid_[static_cast<size_t>(axis->integer)];
      scope->Define(result, scalars_.Constant(size, boolean));
    }
    return;
  }
  if (operation.name == "arith.constant") {
    const Attribute* value = operation.Find("value");
    const int64_t bits = value == nullptr ? 0 : value->integer;
    scope->Define(result, scalars_.MadeOf(fmt::format("number {}", bits), {}, boolean));
    return;
  }
  std::vector<Scalar> operands;
  for (const Value* operand : operation.operands) {
    if (!IsScalar(*operand)) return;
    operands.push_back(ScalarOf(operand, scope));
  }
  if (operation.name == "tpu.device_id") {  // The same wherever it is asked for.
    scope->Define(result, scalars_.MadeOf(operation.name, {}, boolean));
  } else if (!operands.empty()) {
    scope->Define(result, scalars_.Apply(operation, operands, scope->points()->size()));
  }
}

// Some of a table, or a number that is in memory.
void Body::Read(const Operation& load, Scope* scope) {
  if (load.operands.empty() || load.results.size() != 1 || !IsScalar(*load.results[0])) return;
  const Value* from = load.operands[0];
  const Reference& reference = ReferenceOf(from);
  const int version = ReferenceOf(RootOf(from)).version;
  std::vector<Scalar> indices;
  for (size_t n = 1; n < load.operands.size(); ++n) {
    if (!IsScalar(*load.operands[n])) return;
    indices.push_back(ScalarOf(load.operands[n], scope));
  }
  // The same place holds the same until the kernel writes there.
  const std::string what = fmt::format("load {} {}", reference_numbers_.at(from), version);
  Scalar value = scalars_.MadeOf(what, indices, IsBoolean(*load.results[0]), reference.written);
  const Table* table = reference.table.get();
  const bool exact = std::all_of(indices.begin(), indices.end(),
                                 [](const Scalar& i) { return i.exact != nullptr; });
  if (table != nullptr && exact && table->shape.size() == indices.size() &&
      !table->values.empty()) {
    const bool uniform = std::all_of(indices.begin(), indices.end(),
                                     [](const Scalar& i) { return i.exact->IsUniform(); });
    std::vector<int64_t> values(uniform ? 1 : scope->points()->size());
    for (size_t n = 0; n < values.size(); ++n) {
      int64_t at = 0;
      for (size_t d = 0; d < indices.size(); ++d) {
        // A program that looks ahead may look beyond the end; it ignores what it finds.
        const int64_t last = std::max<int64_t>(0, table->shape[d] - 1);
        at = at * table->shape[d] + std::clamp<int64_t>((*indices[d].exact)[n], 0, last);
      }
      values[n] = table->values[std::min(static_cast<size_t>(at), table->values.size() - 1)];
    }
    value = scalars_.Known(Column(std::move(values)), value);
  }
  scope->Define(load.results[0], std::move(value));
}

}  // namespace tpusim::mosaic
