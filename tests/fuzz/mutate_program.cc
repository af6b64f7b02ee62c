#include <google/protobuf/message.h>

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "mutate.h"

namespace tpusim::fuzz {
namespace {

using hlo::pb::HloComputationProto;
using hlo::pb::HloInstructionProto;
using hlo::pb::ShapeProto;

constexpr std::array<int64_t, 14> kSizes = {1,  2,  3,   5,   7,    8,    16,
                                            24, 31, 100, 128, 1000, 4096, 1 << 20};
constexpr std::array<hlo::pb::PrimitiveType, 8> kTypes = {
    hlo::pb::F32, hlo::pb::BF16, hlo::pb::S32, hlo::pb::S8,
    hlo::pb::S4,  hlo::pb::PRED, hlo::pb::F16, hlo::pb::F8E4M3FN};
constexpr std::array<std::string_view, 10> kUnary = {
    "negate", "abs", "exponential", "tanh", "sqrt", "floor", "sign", "log", "copy", "cosine"};
constexpr std::array<std::string_view, 8> kBinary = {
    "add", "subtract", "multiply", "divide", "maximum", "minimum", "power", "remainder"};
constexpr std::array<std::string_view, 4> kNoOps = {"optimization-barrier", "copy", "reverse",
                                                    "negate"};

template <typename List>
bool Holds(const List& list, std::string_view value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

class ProgramMutator {
 public:
  ProgramMutator(Input* input, Random* random) : input_(*input), random_(*random) {
    for (HloComputationProto& computation : *input_.module.mutable_computations()) {
      for (HloInstructionProto& i : *computation.mutable_instructions()) {
        instructions_.push_back({&computation, &i});
        last_id_ = std::max(last_id_, i.id());
      }
    }
  }

  void MutateOnce() {
    if (instructions_.empty()) return;
    switch (Pick(9)) {
      case 0:
      case 1:
        return ChangeSize();
      case 2:
        return ChangeType();
      case 3:
        return ChangeOperand();
      case 4:
        return ChangeOpcode();
      case 5:
        return ChangeResult();
      case 6:
        return Insert();
      default:
        return ChangeSharding();
    }
  }

 private:
  struct Place {
    HloComputationProto* computation;
    HloInstructionProto* instruction;
  };

  size_t Pick(size_t n) { return static_cast<size_t>(random_() % n); }
  Place Any() { return instructions_[Pick(instructions_.size())]; }

  // Every shape of the program, with those inside tuples.
  void EachShape(const std::function<void(ShapeProto*)>& visit) {
    const std::function<void(ShapeProto*)> with_parts = [&](ShapeProto* shape) {
      visit(shape);
      for (ShapeProto& part : *shape->mutable_tuple_shapes()) with_parts(&part);
    };
    const auto of_program = [&](hlo::pb::ProgramShapeProto* program) {
      for (ShapeProto& parameter : *program->mutable_parameters()) with_parts(&parameter);
      if (program->has_result()) with_parts(program->mutable_result());
    };
    for (const Place& place : instructions_) with_parts(place.instruction->mutable_shape());
    for (HloComputationProto& computation : *input_.module.mutable_computations()) {
      if (computation.has_program_shape()) of_program(computation.mutable_program_shape());
    }
    if (input_.module.has_host_program_shape()) {
      of_program(input_.module.mutable_host_program_shape());
    }
  }

  // One size, wherever it occurs.
  void ChangeSize() {
    const ShapeProto& shape = Any().instruction->shape();
    if (shape.dimensions().empty()) return;
    const int64_t from = shape.dimensions(static_cast<int>(Pick(shape.dimensions_size())));
    const int64_t to = Pick(3) == 0 ? 2 * from : kSizes[Pick(kSizes.size())];
    const auto change = [from, to](google::protobuf::RepeatedField<int64_t>* sizes) {
      std::replace(sizes->begin(), sizes->end(), from, to);
    };
    EachShape([&](ShapeProto* s) { change(s->mutable_dimensions()); });
    for (const Place& place : instructions_) {
      HloInstructionProto& i = *place.instruction;
      change(i.mutable_dynamic_slice_sizes());
      change(i.mutable_gather_slice_sizes());
      for (auto& slice : *i.mutable_slice_dimensions()) {
        if (slice.limit() == from) slice.set_limit(to);
      }
    }
  }

  void ChangeType() {
    const hlo::pb::PrimitiveType from = Any().instruction->shape().element_type();
    const hlo::pb::PrimitiveType to = kTypes[Pick(kTypes.size())];
    if (from == hlo::pb::TUPLE) return;
    EachShape([&](ShapeProto* s) {
      if (s->element_type() == from) s->set_element_type(to);
    });
  }

  // An instruction before `place` with the shape of `like`; 0: there is none.
  int64_t Another(const Place& place, const ShapeProto& like) {
    const std::string shape = like.SerializePartialAsString();
    std::vector<int64_t> ids;
    for (const HloInstructionProto& i : place.computation->instructions()) {
      if (&i == place.instruction) break;
      if (i.shape().SerializePartialAsString() == shape) ids.push_back(i.id());
    }
    return ids.empty() ? 0 : ids[Pick(ids.size())];
  }

  void ChangeOperand() {
    const Place place = Any();
    HloInstructionProto& i = *place.instruction;
    if (i.operand_ids().empty()) return;
    const int n = static_cast<int>(Pick(i.operand_ids_size()));
    for (const HloInstructionProto& operand : place.computation->instructions()) {
      if (operand.id() != i.operand_ids(n)) continue;
      const int64_t other = Another(place, operand.shape());
      if (other != 0) i.set_operand_ids(n, other);
      return;
    }
  }

  void ChangeOpcode() {
    HloInstructionProto& i = *Any().instruction;
    if (Holds(kUnary, i.opcode())) {
      i.set_opcode(std::string(kUnary[Pick(kUnary.size())]));
    } else if (Holds(kBinary, i.opcode())) {
      i.set_opcode(std::string(kBinary[Pick(kBinary.size())]));
    }
  }

  // Another root of its shape.
  void ChangeResult() {
    const Place place = Any();
    if (place.instruction->id() == place.computation->root_id()) return;
    for (const HloInstructionProto& root : place.computation->instructions()) {
      if (root.id() != place.computation->root_id()) continue;
      if (root.shape().SerializePartialAsString() ==
          place.instruction->shape().SerializePartialAsString()) {
        place.computation->set_root_id(place.instruction->id());
      }
      return;
    }
  }

  // An operation between an instruction and those that use it.
  void Insert() {
    const Place place = Any();
    const HloInstructionProto at = *place.instruction;
    if (at.shape().dimensions().empty()) return;
    if (last_id_ == std::numeric_limits<int64_t>::max()) return;  // an earlier mutation's
    HloInstructionProto made;
    *made.mutable_shape() = at.shape();
    made.set_id(++last_id_);
    made.set_name("inserted." + std::to_string(last_id_));
    made.set_opcode(std::string(kNoOps[Pick(kNoOps.size())]));
    made.add_operand_ids(at.id());
    if (made.opcode() == "reverse") {
      made.add_dimensions(static_cast<int64_t>(Pick(at.shape().dimensions_size())));
    }
    for (HloInstructionProto& user : *place.computation->mutable_instructions()) {
      if (Pick(2) != 0) {
        std::replace(user.mutable_operand_ids()->begin(), user.mutable_operand_ids()->end(),
                     at.id(), made.id());
      }
    }
    // Right behind: operands stand before those that use them.
    auto* all = place.computation->mutable_instructions();
    const auto found = std::find_if(
        all->begin(), all->end(), [&](const HloInstructionProto& i) { return i.id() == at.id(); });
    int to = static_cast<int>(found - all->begin()) + 1;
    *all->Add() = std::move(made);
    for (int n = all->size() - 1; n > to; --n) all->SwapElements(n, n - 1);
    instructions_.clear();
    for (HloComputationProto& computation : *input_.module.mutable_computations()) {
      for (HloInstructionProto& i : *computation.mutable_instructions()) {
        instructions_.push_back({&computation, &i});
      }
    }
  }

  // Axes x and y of the seeds' mesh over some of the dimensions, in the text of Shardy.
  void ChangeSharding() {
    HloInstructionProto& i = *Any().instruction;
    const int rank = i.shape().dimensions_size();
    if (rank == 0) return;
    std::vector<std::string> dimensions(static_cast<size_t>(rank));
    for (const std::string_view axis : {"x", "y"}) {
      if (Pick(4) == 0) continue;
      std::string& dimension = dimensions[Pick(dimensions.size())];
      if (!dimension.empty()) dimension += ", ";
      dimension += "\"" + std::string(axis) + "\"";
    }
    std::string text = "#sdy.sharding<@mesh, [";
    for (size_t n = 0; n < dimensions.size(); ++n) {
      const bool open = Pick(4) == 0;
      text += (n > 0 ? ", {" : "{") + dimensions[n];
      text += open ? (dimensions[n].empty() ? "?}" : ", ?}") : "}";
    }
    text += "]>";
    auto& attributes = *i.mutable_frontend_attributes()->mutable_map();
    if (i.opcode() != "parameter") {
      text = "#sdy.sharding_per_value<[<" + text.substr(14) + "]>";
    }
    attributes["xla.sdy.sharding"] = text;
    i.clear_sharding();
  }

  Input& input_;
  Random& random_;
  std::vector<Place> instructions_;
  int64_t last_id_ = 0;
};

}  // namespace

std::string MutateProgram(const std::string& bytes, Random* random) {
  std::optional<Input> input = ReadInput(bytes);
  if (!input.has_value()) return MutateBytes(bytes, random);
  ProgramMutator mutator(&*input, random);
  const size_t count = 1 + static_cast<size_t>((*random)() % 4);
  for (size_t n = 0; n < count; ++n) mutator.MutateOnce();
  return WriteInput(*std::move(input));
}

}  // namespace tpusim::fuzz
