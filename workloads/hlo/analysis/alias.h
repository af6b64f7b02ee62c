// Which values are one array, which arrays share a buffer, and what reads them.
//
// A value of any shape is as many arrays as its shape has leaves. Bitcasts, barriers, tuples and
// their elements, and what a loop hands on as it got it, are names of arrays that something else
// made. Another array may take the buffer of one before it: what is updated in place, what a loop
// carries (it starts in the buffers of its initial values), and the result of an asynchronous
// operation, which its start writes and its done hands out. All of this holds in whatever order
// the instructions are executed; what depends on the order is in live_intervals.h.
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

// The flags of an asynchronous operation.
inline constexpr int32_t kNoArray = -1;

struct ArrayValue {
  const Instruction* made_by = nullptr;
  int64_t leaf = 0;              // of the shape of that
  const Shape* shape = nullptr;  // of the array
  // Whose buffer it takes, and goes on living in; kNoArray: it has one of its own.
  int32_t takes = kNoArray;
  // The first instruction that is this array and nothing else: `made_by`, or an element of it.
  // Null: a tuple that is not taken apart here.
  const Instruction* name = nullptr;
  // Instructions that need its contents, each once, of asynchronous ones the done as well, until
  // which they may read. Names do not.
  std::vector<Instruction*> readers;
  bool lives_out = false;  // a result of the computation, or a part of it
};

// Of one computation, whose parameters have buffers of their own here. In time linear in the
// instructions and the tuples that they read.
class AliasAnalysis {
 public:
  explicit AliasAnalysis(const Computation& computation);

  const std::vector<ArrayValue>& arrays() const { return arrays_; }
  // The arrays that the value consists of, by leaf of its shape.
  std::span<const int32_t> ArraysOf(const Instruction* value) const;
  // Those that the instruction makes: numbers from `first` to before `last`.
  struct ArrayRange {
    int32_t first = 0, last = 0;
  };
  ArrayRange MadeBy(const Instruction* instruction) const { return places_.at(instruction).made; }
  // The array in whose buffer it lives, which has one of its own.
  int32_t OwnerOf(int32_t array) const;

  // By names: what makes the array that `value` is, or an element of it. Of a tuple, itself.
  const Instruction* Of(const Instruction* value) const;
  const std::vector<Instruction*>& ReadersOf(const Instruction* array) const;
  bool LivesOut(const Instruction* array) const;

 private:
  struct ArraysOfValue {
    int32_t at = 0, count = 0;  // of its arrays in `leaves_`
    ArrayRange made;
  };
  void AddArrays(const Instruction& i, std::vector<int32_t>& arrays);
  void AddLoop(const Instruction& loop, std::vector<int32_t>& arrays);
  void AddStart(const Instruction& start, std::vector<int32_t>& arrays);
  int32_t Make(const Instruction& i, int64_t leaf, const Shape& shape, int32_t takes = kNoArray);
  void AddReader(std::span<const int32_t> arrays, Instruction* reader);
  // Null: of a tuple, or of an instruction of another computation.
  const ArrayValue* ArrayOf(const Instruction* value) const;

  std::vector<ArrayValue> arrays_;
  std::vector<int32_t> leaves_;
  absl::flat_hash_map<const Instruction*, ArraysOfValue> places_;  // looked up, never iterated
};

// Of the computations of a module, each analysed when it is asked for first.
class ModuleAliases {
 public:
  const AliasAnalysis& Of(const Computation& computation);
  void Forget(const Computation& computation) { known_.erase(&computation); }  // it has changed

 private:
  std::unordered_map<const Computation*, std::unique_ptr<AliasAnalysis>> known_;  // looked up
};

}  // namespace tpusim::hlo

#endif  // TPUSIM_WORKLOADS_HLO_ANALYSIS_ALIAS_H_
