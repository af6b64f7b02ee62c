// Which arrays lie in the same buffer because one only names another, and what reads them.
//
// Bitcasts, barriers, tuples and their elements, and what a loop hands on as it got it are
// names of an array that something else made: its storage. (A result that is updated in
// place is another value, though it takes the buffer of the one before.)
#ifndef TPUSIM_WORKLOADS_HLO_ANALYSIS_STORAGE_H_
#define TPUSIM_WORKLOADS_HLO_ANALYSIS_STORAGE_H_

#include <cstdint>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "workloads/hlo/ir/ir.h"

namespace tpusim::hlo {

class StorageAnalysis {
 public:
  // In time linear in the instructions and the tuples that they read.
  explicit StorageAnalysis(const Computation& computation);

  // What makes the array that `value` is or names; of several reads of one element of
  // a tuple that is not taken apart here, the first.
  const Instruction* Of(const Instruction* value) const;
  // Instructions that need the contents of a storage, each once; of asynchronous ones the
  // done as well, until which they may read.
  const std::vector<Instruction*>& ReadersOf(const Instruction* storage) const;
  // Whether it is a result of the computation, or a part of it.
  bool LivesOut(const Instruction* storage) const;

 private:
  void AddReader(const Instruction* storage, Instruction* reader);
  void AddReads(const Instruction* operand, Instruction* reader);
  template <typename Visit>
  void ForEachStorage(const Instruction* value, Visit visit) const;

  struct Uses {
    std::vector<Instruction*> readers;
    bool lives_out = false;
  };
  std::unordered_map<const Instruction*, const Instruction*> storage_;  // looked up, never iterated
  std::unordered_map<const Instruction*, Uses> uses_;                   // likewise
  // The elements that are read of tuples whose making is not seen.
  std::unordered_map<const Instruction*, std::map<int64_t, const Instruction*>> elements_;
  std::vector<Instruction*> none_;
};

// Whether the result is the operand, not what a loop or an asynchronous operation puts in its
// place: a bitcast, a barrier, a domain.
bool NamesOperand(const Instruction& instruction);

// Whether nothing is read because values are only named: tuples, their elements, bitcasts.
bool OnlyNames(const Instruction& instruction);

// Whether the body of a loop hands on element `index` of its tuple as it got it.
bool IsInvariantElement(const Instruction& loop, int64_t index);

}  // namespace tpusim::hlo

#endif  // TPUSIM_WORKLOADS_HLO_ANALYSIS_STORAGE_H_
