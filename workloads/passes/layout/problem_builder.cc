// Values and what is said of them: the vocabulary of the families.

#include "workloads/passes/layout/problem_builder.h"

#include <algorithm>
#include <utility>

namespace tpusim::passes {

using hlo::Instruction;
using hlo::Shape;

int32_t ProblemBuilder::Made(const Instruction& i, size_t leaf) const {
  return problem_.made.at(&i)[leaf];
}

int32_t ProblemBuilder::Seen(const Instruction& i, size_t leaf) const {
  return problem_.seen.at(&i)[leaf];
}

void ProblemBuilder::Unite(int32_t a, int32_t b) {
  if (a < 0 || b < 0 || problem_.classes.rank(a) != problem_.classes.rank(b)) return;
  problem_.classes.UniteEqual(a, b);
}

void ProblemBuilder::UniteLeaves(const Instruction& from, const Instruction& to, size_t first_from,
                                 size_t first_to) {
  const size_t n = std::min(problem_.seen.at(&from).size() - first_from,
                            problem_.made.at(&to).size() - first_to);
  for (size_t leaf = 0; leaf < n; ++leaf) {
    Unite(Seen(from, first_from + leaf), Made(to, first_to + leaf));
  }
}

size_t ProblemBuilder::LeavesBefore(const Instruction& tuple, int64_t index) {
  std::vector<size_t>& before = leaves_before_[&tuple];
  if (before.empty()) {
    size_t leaves = 0;
    for (const Shape& element : tuple.shape().tuple) {
      before.push_back(leaves);
      leaves += hlo::Leaves(element).size();
    }
  }
  return before[static_cast<size_t>(index)];
}

void ProblemBuilder::AddTerm(TermKind kind, int32_t value, const Shape& shape, Dims dims,
                             double count) {
  if (value < 0) return;
  problem_.terms.push_back({kind, value, &shape, std::move(dims), count * trips_});
}

void ProblemBuilder::AddLink(LinkKind kind, int32_t from, int32_t to, const Shape& a,
                             const Shape& b, Dims map) {
  if (from < 0 || to < 0) return;
  problem_.links.push_back({kind, from, to, &a, &b, std::move(map), trips_});
}

void ProblemBuilder::Separate(const Instruction& i, LinkKind kind) {
  const std::vector<const Shape*> leaves = hlo::Leaves(i.shape());
  for (size_t leaf = 0; leaf < leaves.size(); ++leaf) {
    if (Made(i, leaf) < 0) continue;
    const int32_t seen = problem_.classes.Add(leaves[leaf]->rank());
    problem_.seen[&i][leaf] = seen;
    AddLink(kind, Made(i, leaf), seen, *leaves[leaf], *leaves[leaf]);
  }
}

void ProblemBuilder::FixRowMajor(int32_t value) {
  if (value >= 0) problem_.fixed.emplace(value, hlo::RowMajor(problem_.classes.rank(value)));
}

int32_t ProblemBuilder::Want(const Instruction& user, size_t n, LinkKind kind) {
  const Instruction& operand = *user.operand(n);
  if (!HasOrder(operand.shape())) return -1;
  const int32_t wanted = problem_.classes.Add(operand.shape().rank());
  problem_.wanted[{user.id(), static_cast<int64_t>(n)}] = wanted;
  AddLink(kind, Seen(operand), wanted, operand.shape(), operand.shape());
  return wanted;
}

}  // namespace tpusim::passes
