#include <utility>

#include "workloads/sharding/normalised/normalise.h"

namespace tpusim::sharding {
namespace {

using hlo::Computation;
using hlo::Instruction;

// Maps the instructions and computations of a module to their copies in its clone.
class Twins {
 public:
  Twins(const hlo::Module& of, const hlo::Module& clone)
      : instructions_(static_cast<size_t>(of.next_id()), nullptr) {
    const std::vector<Computation*> from = of.computations(), to = clone.computations();
    for (size_t c = 0; c < from.size(); ++c) {
      computations_.emplace(from[c], to[c]);
      for (Instruction* i : to[c]->instructions()) instructions_[static_cast<size_t>(i->id())] = i;
    }
  }

  Instruction* operator()(const Instruction* of) const {
    return instructions_[static_cast<size_t>(of->id())];
  }
  Computation* operator()(const Computation* of) const { return computations_.at(of); }

  template <typename Key, typename Value>
  std::unordered_map<const Key*, Value> operator()(
      const std::unordered_map<const Key*, Value>& of) const {
    std::unordered_map<const Key*, Value> copy;
    copy.reserve(of.size());
    for (const auto& [key, value] : of) copy.emplace((*this)(key), value);
    return copy;
  }

 private:
  std::vector<Instruction*> instructions_;  // by id
  std::unordered_map<const Computation*, Computation*> computations_;
};

}  // namespace

NormalisedModule CopyOf(const NormalisedModule& of) {
  NormalisedModule copy;
  copy.module = of.module->Clone();
  const Twins twin(*of.module, *copy.module);
  copy.mesh = of.mesh;
  for (const Computation* computation : of.partitioned) {
    copy.partitioned.push_back(twin(computation));
  }
  copy.annotations = twin(of.annotations);
  copy.constraints.reserve(of.constraints.size());
  for (const Instruction* constraint : of.constraints) copy.constraints.insert(twin(constraint));
  copy.manual_regions = twin(of.manual_regions);
  for (const auto& [body, call] : of.region_of) copy.region_of.emplace(twin(body), twin(call));
  copy.sharding_groups = twin(of.sharding_groups);
  copy.barriers = twin(of.barriers);
  for (const auto& [constant, original] : of.constant_copies) {
    copy.constant_copies.emplace_back(twin(constant), twin(original));
  }
  for (const auto& [value, name] : of.names) copy.names.emplace_back(twin(value), name);
  return copy;
}

}  // namespace tpusim::sharding
