#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "workloads/hlo/ir/annotations.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/passes/collectives/ring.h"
#include "workloads/passes/collectives/windowed_einsum.h"

namespace tpusim::passes {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;
using hlo::PrimitiveType;
using hlo::Shape;
using Exchange = WindowedEinsum::Exchange;

// Values that a step reads and passes to the next one.
struct State {
  // The shards or sums that came down and up the ring; null while there are no sums.
  Instruction *down = nullptr, *up = nullptr;
  Instruction* result = nullptr;  // of a gather, as far as it is there; or null
  // Values that all steps share: the partition's position, and operands that are not split.
  Instruction *position = nullptr, *other = nullptr, *sliced = nullptr;
};

class Rewriter {
 public:
  Rewriter(const WindowedEinsum& einsum, const std::vector<std::vector<int64_t>>& groups,
           int64_t channel)
      : einsum_(einsum),
        dot_(*einsum.dot),
        computation_(einsum.dot->parent()),
        ring_(groups, hlo::annotations::kAxes.Of(*einsum.collective).value_or(""), channel,
              hlo::annotations::kReshardSite.Of(*einsum.collective)),
        steps_(ring_.members() / 2) {
    const Shape& whole = IsGather() ? einsum.collective->shape() : dot_.shape();
    shard_ = whole.dims[IsGather() ? einsum.dim : einsum.other_dim] / ring_.members();
  }

  int64_t Run() {
    State state;
    state.position = ring_.Position(computation_, dot_);
    state.other = einsum_.dot->operand(1 - einsum_.operand);
    if (IsGather()) {
      state.down = einsum_.collective->operand(0);
      state.up = ring_.Permute(state.down, Ring::Way::kUp, dot_);
      // A loop that puts pieces in begins with zeros in memory: where the first piece goes depends
      // on the device, and so it is not seen that all is written.
      const bool unwritten =
          einsum_.exchange == Exchange::kGatherFree && steps_ == kStepsPerIteration;
      state.result = unwritten ? Memory(dot_.shape()) : Zeros(dot_.shape());
    } else {
      state.sliced = einsum_.dot->operand(einsum_.operand);
      if (steps_ > kStepsPerIteration) {
        state.down = Zeros(einsum_.collective->shape());
        state.up = Zeros(einsum_.collective->shape());
      }
    }
    if (steps_ == kStepsPerIteration) {
      state = Iterate(state, Int(0), /*last=*/true);
    } else {
      state = Loop(state);
    }
    Replace(IsGather()
                ? state.result
                : Binary(Opcode::kAdd, state.down, ring_.Permute(state.up, Ring::Way::kUp, dot_)));
    return ring_.next_channel();
  }

 private:
  bool IsGather() const { return einsum_.exchange != Exchange::kScatter; }

  void Replace(Instruction* result) {
    Instruction* old = IsGather() ? einsum_.dot : einsum_.collective;
    old->ReplaceAllUsesWith(result);
    computation_->Remove(old);
    Instruction* other = IsGather() ? einsum_.collective : einsum_.dot;
    if (other->users().empty()) computation_->Remove(other);
  }

  // ---- Steps --------------------------------------------------------------

  // The steps of an iteration. What a gather receives in the `last` one is not needed.
  State Iterate(State state, Instruction* iteration, bool last) {
    for (int64_t n = 0; n < kStepsPerIteration; ++n) {
      Instruction* number = Plus(Times(iteration, kStepsPerIteration), n);
      const bool ends = last && n + 1 == kStepsPerIteration;
      state = IsGather() ? GatherStep(state, number, ends) : ScatterStep(state, number);
    }
    if (einsum_.exchange == Exchange::kGatherContracted) state.result = AddUp(state);
    return state;
  }

  State GatherStep(const State& state, Instruction* number, bool last) {
    State next = state;
    if (!last) {
      next.down = ring_.Permute(state.down, Ring::Way::kDown, dot_);
      next.up = ring_.Permute(state.up, Ring::Way::kUp, dot_);
    }
    const int64_t n = ring_.members();
    Instruction* down = Modulo(Binary(Opcode::kAdd, state.position, number));
    Instruction* up = Modulo(Binary(Opcode::kSubtract, Plus(state.position, n - 1), number));
    if (einsum_.exchange == Exchange::kGatherFree) {
      next.result = PutIn(next, state.down, down);
      next.result = PutIn(next, state.up, up);
    } else {
      parts_.push_back({Join(state.down, state.up, einsum_.dim),
                        Join(Slice(state.other, down), Slice(state.other, up), einsum_.other_dim)});
    }
    return next;
  }

  State ScatterStep(const State& state, Instruction* number) {
    State next = state;
    if (state.down != nullptr) {
      next.down = ring_.Permute(state.down, Ring::Way::kDown, dot_);
      next.up = ring_.Permute(state.up, Ring::Way::kUp, dot_);
    }
    const int64_t n = ring_.members();
    Instruction* ahead = Binary(Opcode::kSubtract, Int(steps_ - 1), number);
    Instruction* down = Modulo(Binary(Opcode::kSubtract, Plus(state.position, n), ahead));
    Instruction* up = Modulo(Binary(Opcode::kAdd, Plus(state.position, 1), ahead));
    Instruction* parts = PartsFor(state, down, up);
    next.down = AddTo(next.down, Half(parts, 0));
    next.up = AddTo(next.up, Half(parts, 1));
    return next;
  }

  Instruction* AddTo(Instruction* sum, Instruction* part) {
    return sum == nullptr ? part : Binary(Opcode::kAdd, part, sum);
  }

  // The result with what the shard of a member makes.
  Instruction* PutIn(const State& state, Instruction* shard, Instruction* member) {
    Shape shape = dot_.shape();
    shape.dims[einsum_.other_dim] = shard_;
    std::vector<Instruction*> operands = {state.result, Product(shard, state.other, shape)};
    Instruction* begin = Times(member, shard_);
    for (int64_t d = 0; d < shape.rank(); ++d) {
      operands.push_back(d == einsum_.other_dim ? begin : Int(0));
    }
    return Add(Opcode::kDynamicUpdateSlice, dot_.shape(), operands);
  }

  // Returns the slice that the shard of a member is multiplied by.
  Instruction* Slice(Instruction* other, Instruction* member) {
    return DynamicSlice(other, einsum_.other_dim, Times(member, shard_));
  }

  Instruction* Join(Instruction* a, Instruction* b, int64_t dim) {
    Shape shape = a->shape();
    shape.dims[dim] += b->shape().dims[dim];
    Instruction* both = Add(Opcode::kConcatenate, shape, {a, b});
    hlo::SetDimensions(both, {dim});
    return both;
  }

  // The result and the parts that were put aside, in their order. The products are written from
  // the last one on: fusion puts an addition into the product that was written first, and so each
  // waits for no shards but its own.
  Instruction* AddUp(const State& state) {
    std::vector<Instruction*> products(parts_.size());
    for (size_t n = parts_.size(); n-- > 0;) {
      products[n] = Product(parts_[n].shards, parts_[n].other, dot_.shape());
    }
    parts_.clear();
    Instruction* sum = state.result;
    for (Instruction* product : products) sum = Binary(Opcode::kAdd, sum, product);
    return sum;
  }

  // Returns the summands of this device for two members, side by side: one product, which fills the
  // arrays better than two would. The barrier keeps additions out of it, so it need not wait until
  // the sums have arrived.
  Instruction* PartsFor(const State& state, Instruction* down, Instruction* up) {
    Shape shape = dot_.shape();
    shape.dims[einsum_.other_dim] = 2 * shard_;
    const auto part = [&](Instruction* member) {
      return DynamicSlice(state.sliced, einsum_.dim, Times(member, shard_));
    };
    Instruction* parts = Product(Join(part(down), part(up), einsum_.dim), state.other, shape);
    return Add(Opcode::kOptBarrier, shape, {parts});
  }
  Instruction* Half(Instruction* parts, int64_t which) {
    Shape shape = dot_.shape();
    shape.dims[einsum_.other_dim] = shard_;
    std::vector<hlo::SliceDim> slices;
    for (const int64_t extent : shape.dims) slices.push_back({0, extent, 1});
    slices[einsum_.other_dim] = {which * shard_, (which + 1) * shard_, 1};
    Instruction* half = Add(Opcode::kSlice, shape, {parts});
    hlo::SetSlice(half, slices);
    return half;
  }

  // The product with `operand` in the place that is windowed.
  Instruction* Product(Instruction* operand, Instruction* other, const Shape& shape) {
    std::vector<Instruction*> operands = {operand, other};
    if (einsum_.operand == 1) std::swap(operands[0], operands[1]);
    return computation_->Add(Opcode::kDot, shape, operands, dot_.name(), &dot_);
  }

  // ---- The loop -----------------------------------------------------------

  // Returns the members of a state that iterations carry: those that are not null.
  static std::vector<Instruction * State::*> Carried(const State& state) {
    std::vector<Instruction * State::*> carried;
    for (Instruction* State::*value : {&State::down, &State::up, &State::result, &State::position,
                                       &State::other, &State::sliced}) {
      if (state.*value != nullptr) carried.push_back(value);
    }
    return carried;
  }

  State Loop(const State& initial) {
    Computation* const outside = computation_;
    const std::vector<Instruction* State::*> carried = Carried(initial);
    std::vector<Instruction*> elements = {Int(0)};
    std::vector<Shape> shapes = {elements[0]->shape()};
    for (Instruction* State::*value : carried) {
      elements.push_back(initial.*value);
      shapes.push_back((initial.*value)->shape());
    }
    const Shape tuple = hlo::MakeTupleShape(shapes);
    Instruction* start = Add(Opcode::kTuple, tuple, elements);

    hlo::Module* module = outside->parent();
    Computation* body = module->AddComputation("windowed_" + dot_.name() + "_body");
    computation_ = body;
    Instruction* parameter = body->AddParameter(0, tuple, "state");
    Instruction* iteration = Element(parameter, 0);
    State state = Iterate(Unpack(parameter, carried), iteration, /*last=*/false);
    elements = {Plus(iteration, 1)};
    for (Instruction* State::*value : carried) elements.push_back(state.*value);
    body->set_root(Add(Opcode::kTuple, tuple, elements));

    Computation* condition = module->AddComputation("windowed_" + dot_.name() + "_condition");
    computation_ = condition;
    parameter = condition->AddParameter(0, tuple, "state");
    Instruction* goes_on = Add(Opcode::kCompare, hlo::MakeShape(PrimitiveType::kPred, {}),
                               {Element(parameter, 0), Int(steps_ / kStepsPerIteration)});
    goes_on->mutable_attrs().set_comparison_direction("LT");
    condition->set_root(goes_on);

    computation_ = outside;
    Instruction* loop =
        outside->Add(Opcode::kWhile, tuple, {start}, "windowed_" + dot_.name(), &dot_);
    loop->set_called({body, condition});
    hlo::annotations::kElementOrders.Set(loop, OrdersOf(carried, tuple));
    return Unpack(loop, carried);
  }

  // Returns the dimensions of elements of the loop's state, fastest first.
  //
  // The TPU compiler lays out the loops of windowed einsums before what is around them. The operand
  // that is there whole is row-major, and so is a result that is added up; the dimension of which
  // pieces are cut out, put in or summed up is not the fastest. (All 148 loops of train steps of
  // Qwen3-8B that libtpu 0.0.42.1 compiled for v6e 2x4, scanned and unrolled, have it so.) What
  // lies otherwise before is copied, and what comes out is copied into the order of its users.
  std::map<int64_t, std::vector<int64_t>> OrdersOf(
      const std::vector<Instruction * State::*>& carried, const Shape& tuple) const {
    std::map<int64_t, std::vector<int64_t>> orders;
    for (size_t n = 0; n < carried.size(); ++n) {
      Instruction* State::*const value = carried[n];
      const bool sums = !IsGather() && (value == &State::down || value == &State::up);
      const bool whole =
          value == &State::other || value == &State::result || value == &State::sliced;
      if (!whole && !sums) continue;
      int64_t pieces = -1;
      if (sums || (value == &State::result && einsum_.exchange == Exchange::kGatherFree)) {
        pieces = einsum_.other_dim;
      }
      if (value == &State::sliced) pieces = einsum_.dim;
      const int64_t rank = tuple.tuple[n + 1].rank();
      std::vector<int64_t> order = hlo::RowMajor(rank);
      if (rank > 1 && pieces == rank - 1) std::swap(order[0], order[1]);
      orders.emplace(static_cast<int64_t>(n) + 1, std::move(order));
    }
    return orders;
  }

  State Unpack(Instruction* tuple, const std::vector<Instruction * State::*>& carried) {
    State state;
    for (size_t n = 0; n < carried.size(); ++n) {
      state.*carried[n] = Element(tuple, static_cast<int64_t>(n) + 1);
    }
    return state;
  }

  // ---- Instructions -------------------------------------------------------

  Instruction* Add(Opcode opcode, Shape shape, std::vector<Instruction*> operands) {
    return computation_->Add(opcode, std::move(shape), std::move(operands), "", &dot_);
  }
  Instruction* Binary(Opcode opcode, Instruction* a, Instruction* b) {
    return Add(opcode, a->shape(), {a, b});
  }
  Instruction* Int(int64_t value) {
    return hlo::AddIntConstant(computation_, PrimitiveType::kS32, value);
  }
  Instruction* Plus(Instruction* a, int64_t b) {
    return b == 0 ? a : Binary(Opcode::kAdd, a, Int(b));
  }
  Instruction* Times(Instruction* a, int64_t b) {
    return b == 1 ? a : Binary(Opcode::kMultiply, a, Int(b));
  }
  // Returns the remainder of a value that is not negative.
  Instruction* Modulo(Instruction* a) {
    return Binary(Opcode::kRemainder, a, Int(ring_.members()));
  }
  Instruction* Element(Instruction* tuple, int64_t index) {
    Instruction* element = Add(Opcode::kGetTupleElement, tuple->shape().tuple[index], {tuple});
    element->mutable_attrs().set_tuple_index(index);
    return element;
  }
  Instruction* Zeros(const Shape& shape) {
    Instruction* zero = hlo::AddConstant(computation_, shape.element_type, 0);
    return Add(Opcode::kBroadcast, shape, {zero});
  }
  // Returns an array without defined contents.
  Instruction* Memory(const Shape& shape) {
    Instruction* memory = Add(Opcode::kCustomCall, shape, {});
    memory->mutable_attrs().set_custom_call_target(std::string(hlo::kAllocateBuffer));
    return memory;
  }
  Instruction* DynamicSlice(Instruction* value, int64_t dim, Instruction* begin) {
    Shape shape = value->shape();
    shape.dims[dim] = shard_;
    std::vector<Instruction*> operands = {value};
    for (int64_t d = 0; d < shape.rank(); ++d) operands.push_back(d == dim ? begin : Int(0));
    Instruction* slice = Add(Opcode::kDynamicSlice, shape, operands);
    hlo::SetDynamicSliceSizes(slice, shape.dims);
    return slice;
  }

  const WindowedEinsum& einsum_;
  const Instruction& dot_;
  Computation* computation_;  // that instructions are added to
  Ring ring_;
  const int64_t steps_;
  int64_t shard_ = 0;  // extent of one
  struct StepResult {
    Instruction *shards, *other;
  };
  std::vector<StepResult> parts_;  // of the result, put aside in one iteration: one per step
};

}  // namespace

int64_t RewriteWindowedEinsum(const WindowedEinsum& einsum,
                              const std::vector<std::vector<int64_t>>& groups, int64_t channel) {
  return Rewriter(einsum, groups, channel).Run();
}

}  // namespace tpusim::passes
