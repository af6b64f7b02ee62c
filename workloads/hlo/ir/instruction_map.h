// A table of what is known about the instructions of one module: found by their
// ids, which are dense and never used again, without hashing.
#ifndef TPUSIM_WORKLOADS_HLO_IR_INSTRUCTION_MAP_H_
#define TPUSIM_WORKLOADS_HLO_IR_INSTRUCTION_MAP_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "configs/status_macros.h"
#include "workloads/hlo/ir/ir.h"

namespace tpusim::hlo {

template <typename T>
class InstructionMap {
 public:
  // Room for ids below `ids`: references stay valid until one from there on is added.
  void reserve(int64_t ids) { values_.resize(std::max<size_t>(values_.size(), ids)); }

  T& operator[](const Instruction* instruction) {
    const size_t id = instruction->id();
    if (id >= values_.size()) values_.resize(std::max(id + 1, 2 * values_.size()));
    if (!values_[id].has_value()) values_[id].emplace();
    return *values_[id];
  }
  bool contains(const Instruction* instruction) const {
    const size_t id = instruction->id();
    return id < values_.size() && values_[id].has_value();
  }
  const T& at(const Instruction* instruction) const {
    TPUSIM_CHECK(contains(instruction), "nothing is known about " + instruction->name());
    return *values_[instruction->id()];
  }
  void erase(const Instruction* instruction) {
    if (contains(instruction)) values_[instruction->id()].reset();
  }

 private:
  std::vector<std::optional<T>> values_;
};

}  // namespace tpusim::hlo

#endif  // TPUSIM_WORKLOADS_HLO_IR_INSTRUCTION_MAP_H_
