// Builds the layout problem of a module: one function per family of operations says which of
// its arrays lie alike, and what it costs where they do not.
#ifndef TPUSIM_WORKLOADS_PASSES_LAYOUT_PROBLEM_BUILDER_H_
#define TPUSIM_WORKLOADS_PASSES_LAYOUT_PROBLEM_BUILDER_H_

#include <cstdint>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "workloads/passes/layout/layout_problem.h"

namespace tpusim::passes {

class ProblemBuilder {
 public:
  ProblemBuilder(const hlo::Module& module, const target::Target& target)
      : module_(module), target_(target) {}

  LayoutProblem Run();

 private:
  // Notes how often each computation runs, as far as that is known.
  void NoteTrips(const std::vector<hlo::Computation*>& computations);
  void AddValues(const hlo::Instruction& i);
  void Add(const hlo::Instruction& i);

  // ---- Values (problem_builder.cc) ----------------------------------------------

  int32_t Made(const hlo::Instruction& i, size_t leaf = 0) const;
  int32_t Seen(const hlo::Instruction& i, size_t leaf = 0) const;
  void Unite(int32_t a, int32_t b);
  void UniteLeaves(const hlo::Instruction& from, const hlo::Instruction& to, size_t first_from = 0,
                   size_t first_to = 0);
  // Leaves of a tuple before those of element `index`; counted once per tuple.
  size_t LeavesBefore(const hlo::Instruction& tuple, int64_t index);
  void AddTerm(TermKind kind, int32_t value, const hlo::Shape& shape, Dims dims,
               double count = 1);
  void AddLink(LinkKind kind, int32_t from, int32_t to, const hlo::Shape& a, const hlo::Shape& b,
               Dims map = {});
  // Users of `i` see it in a layout that may differ from the one in which it is made.
  void Separate(const hlo::Instruction& i, LinkKind kind = LinkKind::kCopy);
  void FixRowMajor(int32_t value);
  // Operand `n` of `user` in a layout of its own.
  int32_t Want(const hlo::Instruction& user, size_t n, LinkKind kind = LinkKind::kCopy);

  // ---- Families --------------------------------------------------------------

  void AddArgument(const hlo::Instruction& i);
  void FixResults();
  void AddTuple(const hlo::Instruction& i);
  bool AddOrderedState(const hlo::Instruction& tuple);
  void AddCallees(const hlo::Instruction& i);
  void AddElementwise(const hlo::Instruction& i);
  void AddCollective(const hlo::Instruction& i);
  void AddOpaque(const hlo::Instruction& i);
  void AddTranspose(const hlo::Instruction& i);
  void AddPieces(const hlo::Instruction& i);
  void AddIndexed(const hlo::Instruction& i);
  void AddReduce(const hlo::Instruction& i);
  void AddWindow(const hlo::Instruction& i);
  void AddSort(const hlo::Instruction& i);
  void AddDot(const hlo::Instruction& i);
  void AddRagged(const hlo::Instruction& i);
  void AddConvolution(const hlo::Instruction& i);
  // Adds the memory traffic of an instruction's results, but for what its users compute from them
  // on the way.
  void AddMemory(const hlo::Instruction& i);

  const hlo::Module& module_;
  const target::Target& target_;
  LayoutProblem problem_;
  std::unordered_map<const hlo::Computation*, double> trips_of_;
  std::vector<const hlo::Instruction*> transposes_;
  std::unordered_set<const hlo::Instruction*> opaque_tuples_;  // looked up only
  hlo::InstructionMap<std::vector<size_t>> leaves_before_;
  double trips_ = 1;  // of the current computation
};

}  // namespace tpusim::passes

#endif  // TPUSIM_WORKLOADS_PASSES_LAYOUT_PROBLEM_BUILDER_H_
