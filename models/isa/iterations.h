// Iterations of unrolled loops: stretches of a program that are the same but for names.
//
// A model whose layers are unrolled does the same in every layer, under other names: its
// operations, the tokens and flags of its transfers and the bodies that they run are those
// of the layer. Iteration k + 1 is iteration k with every name replaced by its successor.
// What is pending at the begin of an iteration is what was pending at the begin of the one
// before if it is the same after such a replacement, and then so is what follows
// (steady/state.h).
//
//   iteration      0           1           2
//                  op 7        op 12       op 17       one thing with three names:
//                  token 3     token 4     token 5       (which, iteration)
//
// Names that are not replaced (a body that all layers share, a flag that is used again)
// have no iteration.
//
// The programs of devices differ a little, and each has iterations of its own length; they
// begin at the same operations everywhere, and names are replaced alike.
#ifndef TPUSIM_MODELS_ISA_ITERATIONS_H_
#define TPUSIM_MODELS_ISA_ITERATIONS_H_

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "models/isa/program.h"

namespace tpusim::isa {

enum class NameKind { kOp, kToken, kFlag, kBody, kKernel, kRdma };
inline constexpr int kNameKinds = 6;

// The iterations of one unrolled loop.
class Iterations {
 public:
  // `which` is the name itself where it has no iteration (-1).
  struct Name {
    int64_t which = 0;
    int64_t iteration = -1;
  };
  Name Of(NameKind kind, int64_t name) const;
  int64_t In(NameKind kind, const Name& name) const;
  // What the operation is called so many iterations later.
  int32_t Later(int32_t op, int64_t iterations) const;

  // The iterations in one program, whose instructions are counted with those that it calls.
  // An instruction in [begin, end) is that of the iteration before under other names.
  struct InProgram {
    std::vector<size_t> starts;  // by instruction of the program: which it is with the called
    size_t begin = 0, length = 0, end = 0;
  };
  // Null: the body is no program.
  const InProgram* Find(const Body* program) const;

  // The operations with which iterations begin.
  const std::vector<int32_t>& first_ops() const { return first_ops_; }

 private:
  friend class IterationFinder;

  // One thing's names in successive iterations.
  struct Chains {
    std::unordered_map<int64_t, Name> of;
    std::vector<std::vector<int64_t>> names;
  };
  std::array<Chains, kNameKinds> chains_;
  std::unordered_map<const Body*, InProgram> programs_;
  std::vector<int32_t> first_ops_;
};

// All of them, in the order of the first program. Takes time linear in the program.
std::vector<Iterations> FindIterations(const PodProgram& program);

}  // namespace tpusim::isa

#endif  // TPUSIM_MODELS_ISA_ITERATIONS_H_
