// Finds which values are one array, which arrays share a buffer, and which instructions read them.
//
// A value consists of as many arrays as its shape has leaves. Bitcasts, barriers, tuples and their
// elements, and the elements that a loop forwards, are names of arrays that other instructions make
// (underlying.h). An array may take the buffer of an earlier one: an update in place that of its
// operand, the carry of a loop those of its initial values, and a done that of the result of its
// start. All of this holds in any order of execution; live_intervals.h adds the schedule.
//
// Entry points: ModuleAliases for passes, which find it in PassContext::facts; AliasAnalysis for
// one computation.
#ifndef TPUSIM_WORKLOADS_HLO_ANALYSIS_ALIAS_H_
#define TPUSIM_WORKLOADS_HLO_ANALYSIS_ALIAS_H_

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "workloads/hlo/ir/ir.h"

namespace tpusim::hlo {

// Stands for the flags of an asynchronous operation, which are not arrays.
inline constexpr int32_t kNoArray = -1;

struct ArrayValue {
  const Instruction* made_by = nullptr;
  int64_t leaf = 0;              // of the shape of `made_by`
  const Shape* shape = nullptr;  // of the array
  // The array whose buffer this one takes; kNoArray: it has a buffer of its own.
  int32_t takes = kNoArray;
  // The first instruction whose result is this array alone: `made_by`, or an element of it. Null if
  // no instruction takes the tuple apart.
  const Instruction* name = nullptr;
  // The instructions that need its contents, each once; also the done of a start that reads it,
  // until which the start may read. Instructions that only name it are not readers.
  std::vector<Instruction*> readers;
  bool lives_out = false;  // a result of the computation, or a part of it
};

// The arrays of one computation, whose parameters have buffers of their own here. The analysis
// takes time linear in the instructions and the tuples that they read.
class AliasAnalysis {
 public:
  explicit AliasAnalysis(const Computation& computation);

  const std::vector<ArrayValue>& arrays() const { return arrays_; }
  // The arrays that a value consists of, by leaf of its shape.
  std::span<const int32_t> ArraysOf(const Instruction* value) const;
  // The arrays that an instruction makes: indices from `first` to before `last`.
  struct ArrayRange {
    int32_t first = 0, last = 0;
  };
  ArrayRange MadeBy(const Instruction* instruction) const { return places_.at(instruction).made; }
  // The array with a buffer of its own in which `array` lies.
  int32_t OwnerOf(int32_t array) const;

  // The instruction that makes the array `value`, or the element of it that is that array. A tuple
  // is returned itself.
  const Instruction* Of(const Instruction* value) const;
  const std::vector<Instruction*>& ReadersOf(const Instruction* array) const;
  bool LivesOut(const Instruction* array) const;

 private:
  struct ArraysOfValue {
    int32_t at = 0, count = 0;  // where its arrays are in `leaves_`
    ArrayRange made;
  };
  void AddArrays(const Instruction& i, std::vector<int32_t>& arrays);
  void AddLoop(const Instruction& loop, std::vector<int32_t>& arrays);
  void AddStart(const Instruction& start, std::vector<int32_t>& arrays);
  int32_t Make(const Instruction& i, int64_t leaf, const Shape& shape, int32_t takes = kNoArray);
  void AddReader(std::span<const int32_t> arrays, Instruction* reader);
  // Null for a tuple and for an instruction of another computation.
  const ArrayValue* ArrayOf(const Instruction* value) const;

  std::vector<ArrayValue> arrays_;
  std::vector<int32_t> leaves_;
  absl::flat_hash_map<const Instruction*, ArraysOfValue> places_;  // looked up, never iterated
};

// The alias analyses of the computations of a module, each made when it is asked for first.
class ModuleAliases {
 public:
  const AliasAnalysis& Of(const Computation& computation);
  void Forget(const Computation& computation) { known_.erase(&computation); }  // it has changed

 private:
  std::unordered_map<const Computation*, std::unique_ptr<AliasAnalysis>> known_;  // looked up
};

}  // namespace tpusim::hlo

#endif  // TPUSIM_WORKLOADS_HLO_ANALYSIS_ALIAS_H_
