#include "workloads/passes/donation.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "workloads/hlo/opcode.h"

namespace tpusim::passes {
namespace {

using hlo::Instruction;
using hlo::Opcode;
using hlo::Shape;

// Number of the leaf at an index into a tuple of tuples; -1 if there is none.
template <typename Index>
int64_t LeafAt(const Shape& shape, const Index& index) {
  const Shape* at = &shape;
  int64_t leaf = 0;
  for (const int64_t i : index) {
    if (!at->IsTuple() || i < 0 || i >= static_cast<int64_t>(at->tuple.size())) return -1;
    for (int64_t k = 0; k < i; ++k) leaf += static_cast<int64_t>(hlo::Leaves(at->tuple[k]).size());
    at = &at->tuple[i];
  }
  return at->IsTuple() ? -1 : leaf;
}

const Instruction* ParameterOf(const hlo::Module& module, int64_t number) {
  const std::vector<Instruction*> parameters = module.entry()->parameters();
  if (number < 0 || number >= static_cast<int64_t>(parameters.size())) return nullptr;
  return parameters[number];
}

// Whether all that is made of the value inside a fusion keeps elements in place.
bool StaysInPlace(const Instruction& value, int64_t elements, std::set<const Instruction*>& seen) {
  if (!seen.insert(&value).second) return true;
  return std::all_of(value.users().begin(), value.users().end(), [&](const Instruction* user) {
    if (user->opcode() == Opcode::kTuple) return true;
    const bool keeps = user->opcode() == Opcode::kBitcast || user->opcode() == Opcode::kCopy ||
                       hlo::IsElementwise(user->opcode());
    return keeps && user->shape().IsArray() && user->shape().ElementCount() == elements &&
           StaysInPlace(*user, elements, seen);
  });
}

}  // namespace

std::vector<Donation> Donations(const hlo::Module& module) {
  const Shape& result = module.entry()->root()->shape();
  const std::vector<const Shape*> results = hlo::Leaves(result);
  std::map<int64_t, Donation> of_result;
  std::set<std::pair<int64_t, int64_t>> taken;
  for (const auto& e : module.fields().input_output_alias().entries()) {
    const Instruction* parameter = ParameterOf(module, e.parameter_number());
    if (parameter == nullptr) continue;
    const Donation d = {LeafAt(result, e.output_shape_index()), e.parameter_number(),
                        LeafAt(parameter->shape(), e.parameter_shape_index())};
    if (d.result_leaf < 0 || d.parameter_leaf < 0 || of_result.contains(d.result_leaf)) continue;
    if (taken.insert({d.parameter, d.parameter_leaf}).second) of_result[d.result_leaf] = d;
  }
  for (int64_t leaf = 0; leaf < static_cast<int64_t>(results.size()); ++leaf) {
    if (of_result.contains(leaf)) continue;
    for (const auto& e : module.fields().buffer_donor().entries()) {
      const Instruction* parameter = ParameterOf(module, e.parameter_number());
      if (parameter == nullptr) continue;
      const int64_t from = LeafAt(parameter->shape(), e.parameter_shape_index());
      if (from < 0 || taken.contains({e.parameter_number(), from})) continue;
      const Shape& offered = *hlo::Leaves(parameter->shape())[from];
      if (offered.element_type != results[leaf]->element_type ||
          offered.dims != results[leaf]->dims) {
        continue;
      }
      taken.insert({e.parameter_number(), from});
      of_result[leaf] = {leaf, e.parameter_number(), from};
      break;
    }
  }
  std::vector<Donation> donations;
  for (const auto& [leaf, donation] : of_result) donations.push_back(donation);
  return donations;
}

bool MayOverwrite(const Instruction& i, int64_t operand) {
  const Shape& shape = i.operand(operand)->shape();
  if (!shape.IsArray()) return false;
  if (i.opcode() != Opcode::kFusion) {
    return i.shape().IsArray() && i.shape().ElementCount() == shape.ElementCount() &&
           (hlo::IsElementwise(i.opcode()) || i.opcode() == Opcode::kCopy);
  }
  std::set<const Instruction*> seen;
  return StaysInPlace(*i.called()[0]->parameters()[operand], shape.ElementCount(), seen);
}

}  // namespace tpusim::passes
