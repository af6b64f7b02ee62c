// Reduces over extents of one, of reshapes and of transposes.
#include <algorithm>
#include <vector>

#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/hlo/transforms/merge_reduces.h"
#include "workloads/passes/simplify/simplify.h"

namespace tpusim::passes {
namespace {

using hlo::Instruction;
using hlo::Opcode;
using Dims = std::vector<int64_t>;

bool Contains(const Dims& dims, int64_t d) {
  return std::find(dims.begin(), dims.end(), d) != dims.end();
}

Instruction* Reduce(const Instruction& like, Instruction* value, const Dims& dims) {
  Instruction* reduce = like.parent()->Add(Opcode::kReduce, like.shape(), {value, like.operand(1)},
                                           like.name(), &like);
  reduce->set_called(like.called());
  hlo::SetDimensions(reduce, dims);
  return reduce;
}

// Removes a transpose in front of a reduce, if the dimensions that are left keep their order.
Instruction* OfTranspose(const Instruction& i) {
  Instruction* transpose = i.operand(0);
  if (transpose->opcode() != Opcode::kTranspose) return nullptr;
  const Dims permutation = hlo::Dimensions(*transpose), dims = hlo::Dimensions(i);
  Dims reduced;
  int64_t last = -1;
  for (size_t d = 0; d < permutation.size(); ++d) {
    if (Contains(dims, static_cast<int64_t>(d))) {
      reduced.push_back(permutation[d]);
    } else if (permutation[d] < last) {
      return nullptr;
    } else {
      last = permutation[d];
    }
  }
  std::sort(reduced.begin(), reduced.end());
  return Reduce(i, transpose->operand(0), reduced);
}

}  // namespace

Instruction* SimplifyReduce(Instruction* i) {
  if (i->opcode() != Opcode::kReduce || i->operands().size() != 2) return nullptr;
  if (Instruction* value = hlo::ReduceWithoutOnes(i)) return value;
  if (Instruction* value = hlo::ReduceOfReshape(i)) return value;
  return OfTranspose(*i);
}

}  // namespace tpusim::passes
