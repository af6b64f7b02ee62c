#include "workloads/hlo/analysis/donation.h"

#include <algorithm>
#include <compare>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"

namespace tpusim::hlo {
namespace {

// The leaves of a shape, and their numbers by index into tuples of tuples.
struct LeafTable {
  std::vector<const Shape*> shapes;
  std::map<std::vector<int64_t>, int64_t> numbers;

  explicit LeafTable(const Shape& shape) {
    std::vector<int64_t> index;
    Append(shape, index);
  }

  // -1: there is none.
  template <typename Index>
  int64_t At(const Index& index) const {
    const auto at = numbers.find(std::vector<int64_t>(index.begin(), index.end()));
    return at == numbers.end() ? -1 : at->second;
  }

 private:
  void Append(const Shape& shape, std::vector<int64_t>& index) {
    if (!shape.IsTuple()) {
      numbers.emplace(index, static_cast<int64_t>(shapes.size()));
      shapes.push_back(&shape);
      return;
    }
    for (size_t n = 0; n < shape.tuple.size(); ++n) {
      index.push_back(static_cast<int64_t>(n));
      Append(shape.tuple[n], index);
      index.pop_back();
    }
  }
};

// A leaf of a parameter of the program.
struct Argument {
  int64_t parameter = 0, leaf = 0;
  auto operator<=>(const Argument&) const = default;
};

// The leaves of all parameters, found by what entries of the module name.
class Arguments {
 public:
  explicit Arguments(const Module& module) {
    for (const Instruction* p : module.entry()->parameters()) leaves_.emplace_back(p->shape());
  }

  template <typename Entry>
  std::optional<Argument> NamedBy(const Entry& entry) const {
    const int64_t parameter = entry.parameter_number();
    if (parameter < 0 || parameter >= static_cast<int64_t>(leaves_.size())) return std::nullopt;
    const int64_t leaf = leaves_[parameter].At(entry.parameter_shape_index());
    if (leaf < 0) return std::nullopt;
    return Argument{parameter, leaf};
  }
  const Shape& ShapeOf(const Argument& a) const { return *leaves_[a.parameter].shapes[a.leaf]; }

 private:
  std::vector<LeafTable> leaves_;
};

// Whether all that is made of the value inside a fusion keeps elements in place.
bool StaysInPlace(const Instruction& value, int64_t elements, std::set<const Instruction*>& seen) {
  if (!seen.insert(&value).second) return true;
  return std::all_of(value.users().begin(), value.users().end(), [&](const Instruction* user) {
    if (user->opcode() == Opcode::kTuple || user->opcode() == Opcode::kReduce) return true;
    const bool keeps = user->opcode() == Opcode::kBitcast || user->opcode() == Opcode::kCopy ||
                       IsElementwise(*user);
    return keeps && user->shape().IsArray() && user->shape().ElementCount() == elements &&
           StaysInPlace(*user, elements, seen);
  });
}

}  // namespace

std::vector<Donation> Donations(const Module& module) {
  const LeafTable results(module.entry()->root()->shape());
  const Arguments arguments(module);
  std::map<int64_t, Donation> of_result;
  std::set<Argument> taken;
  for (const auto& e : module.fields().input_output_alias().entries()) {
    const std::optional<Argument> a = arguments.NamedBy(e);
    const int64_t result = results.At(e.output_shape_index());
    if (!a || result < 0 || of_result.contains(result)) continue;
    if (taken.insert(*a).second) of_result[result] = {result, a->parameter, a->leaf};
  }
  // Donors that are left, first come, first served among those of one shape.
  std::map<std::pair<PrimitiveType, std::vector<int64_t>>, std::deque<Argument>> donors;
  for (const auto& e : module.fields().buffer_donor().entries()) {
    const std::optional<Argument> a = arguments.NamedBy(e);
    if (!a || !taken.insert(*a).second) continue;
    const Shape& offered = arguments.ShapeOf(*a);
    donors[{offered.element_type, offered.dims}].push_back(*a);
  }
  for (int64_t leaf = 0; leaf < static_cast<int64_t>(results.shapes.size()); ++leaf) {
    if (of_result.contains(leaf)) continue;
    const Shape& wanted = *results.shapes[leaf];
    const auto alike = donors.find({wanted.element_type, wanted.dims});
    if (alike == donors.end() || alike->second.empty()) continue;
    const Argument a = alike->second.front();
    alike->second.pop_front();
    of_result[leaf] = {leaf, a.parameter, a.leaf};
  }
  std::vector<Donation> donations;
  for (const auto& [leaf, donation] : of_result) donations.push_back(donation);
  return donations;
}

bool DonateArguments(Module& module) {
  auto* donors = module.mutable_fields().mutable_buffer_donor();
  std::set<std::pair<int64_t, std::vector<int64_t>>> known;
  for (const auto& e : donors->entries()) {
    known.emplace(e.parameter_number(), std::vector<int64_t>(e.parameter_shape_index().begin(),
                                                             e.parameter_shape_index().end()));
  }
  const size_t before = known.size();
  const auto& parameters = module.entry()->parameters();
  for (size_t n = 0; n < parameters.size(); ++n) {
    const LeafTable leaves(parameters[n]->shape());
    for (const auto& [index, number] : leaves.numbers) {
      if (!known.emplace(static_cast<int64_t>(n), index).second) continue;
      auto* donor = donors->add_entries();
      donor->set_parameter_number(static_cast<int64_t>(n));
      for (const int64_t i : index) donor->add_parameter_shape_index(i);
    }
  }
  return known.size() > before;
}

bool MayOverwrite(const Instruction& i, int64_t operand) {
  const Shape& shape = i.operand(operand)->shape();
  if (!shape.IsArray()) return false;
  if (i.opcode() != Opcode::kFusion) {
    return i.shape().IsArray() && i.shape().ElementCount() == shape.ElementCount() &&
           (IsElementwise(i) || i.opcode() == Opcode::kCopy);
  }
  std::set<const Instruction*> seen;
  return StaysInPlace(*i.called()[0]->parameters()[operand], shape.ElementCount(), seen);
}

}  // namespace tpusim::hlo
