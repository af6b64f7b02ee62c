// Iterations of a loop that differ in the names of what they do.
//
// A model whose layers are unrolled does the same in every layer, under other names: its
// operations, the tokens and flags of its transfers are those of the layer. Its program has a
// loop in their place (program.h), whose body has the names of the first iteration. In each
// further one every name is larger by a stride, which is the same for all that stands together.
//
//   iteration   0         1         2
//               op 7      op 12     op 17      stride 5
//               token 3   token 4   token 5    stride 1
//
// What is pending at the begin of an iteration is what was pending at the begin of the one
// before if it is the same but for the iterations that names are of, and then so is what
// follows (steady/state.h).
#ifndef TPUSIM_MODELS_ISA_ITERATIONS_H_
#define TPUSIM_MODELS_ISA_ITERATIONS_H_

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "configs/status_macros.h"

namespace tpusim::isa {

enum class NameKind { kOp, kToken, kFlag };
inline constexpr int kNameKinds = 3;

// The iterations of one such loop.
class Iterations {
 public:
  // Names that grow by the same stride: of what is in the loop, or in something that it calls. In
  // the first iteration they are [first, first + size); from `lowest` on names are of operations
  // before the loop for which it waits.
  struct NameRange {
    int32_t lowest = 0, first = 0, size = 0, stride = 0;
  };
  using Ranges = std::array<std::vector<NameRange>, kNameKinds>;
  Iterations(int64_t count, Ranges ranges) : count_(count), ranges_(std::move(ranges)) {}

  int64_t count() const { return count_; }
  // Returns 0 if the name is the same in all iterations.
  int32_t StrideOf(NameKind kind, int32_t name) const {
    for (const NameRange& range : ranges_[static_cast<int>(kind)]) {
      if (name >= range.lowest && name < range.first + range.size) return range.stride;
    }
    return 0;
  }

  // `which`: as it is called in the first iteration. The name itself if it is of none (-1).
  struct Name {
    int32_t which = 0;
    int64_t iteration = -1;
  };
  Name Of(NameKind kind, int32_t name) const {
    for (const auto& [lowest, first, size, stride] : ranges_[static_cast<int>(kind)]) {
      const int32_t since = name - first;
      if (since < 0 || since >= stride * count_ || since % stride >= size) continue;
      return {first + since % stride, since / stride};
    }
    return {name, -1};
  }
  int32_t In(NameKind kind, const Name& name) const {
    if (name.iteration < 0) return name.which;
    TPUSIM_CHECK(name.iteration < count_, "an iteration that the loop does not have");
    return name.which + static_cast<int32_t>(StrideOf(kind, name.which) * name.iteration);
  }
  // Returns the name of the operation so many iterations later.
  int32_t Later(int32_t op, int64_t iterations) const {
    Name name = Of(NameKind::kOp, op);
    if (name.iteration >= 0) name.iteration += iterations;
    return In(NameKind::kOp, name);
  }

 private:
  int64_t count_;
  Ranges ranges_;
};

// An iteration that instructions are executed in; outside of such loops names are as they stand.
struct Iteration {
  const Iterations* of = nullptr;
  int64_t number = 0;

  int32_t Name(NameKind kind, int32_t name) const {
    if (of == nullptr) return name;
    return name + static_cast<int32_t>(of->StrideOf(kind, name) * number);
  }
  int32_t Op(int32_t op) const { return Name(NameKind::kOp, op); }
  int32_t Token(int32_t token) const { return Name(NameKind::kToken, token); }
  int32_t Flag(int32_t flag) const { return Name(NameKind::kFlag, flag); }

  auto operator<=>(const Iteration&) const = default;
};

}  // namespace tpusim::isa

#endif  // TPUSIM_MODELS_ISA_ITERATIONS_H_
