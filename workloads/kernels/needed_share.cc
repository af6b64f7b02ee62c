#include "workloads/kernels/needed_share.h"

#include <algorithm>

#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/kernels/index_cost.h"

namespace tpusim::kernels {
namespace {

using hlo::Instruction;
using hlo::Opcode;

// Whether two slices of one value take the same part of it.
bool SameSlice(const Instruction& a, const Instruction& b) {
  if (a.opcode() != b.opcode() || a.operands() != b.operands() ||
      a.shape().dims != b.shape().dims) {
    return false;
  }
  return a.opcode() != Opcode::kSlice || hlo::GetSlice(a) == hlo::GetSlice(b);
}

}  // namespace

Access AccessOf(const Instruction& user, size_t index) {
  switch (user.opcode()) {
    case Opcode::kSlice:
    case Opcode::kDynamicSlice:
      return index == 0 ? Access::kSlice : Access::kWhole;
    case Opcode::kDynamicUpdateSlice:
      return index == 0 ? Access::kOverwritten : Access::kWhole;
    case Opcode::kGather:
      return index == 0 ? Access::kRows : Access::kWhole;
    case Opcode::kScatter:
      if (index >= user.operands().size() / 2) return Access::kWhole;
      // Overwritten unseen, or read, combined and written back.
      return ScatterOverwrites(user) ? Access::kOverwritten : Access::kRows;
    default:
      break;
  }
  const bool elements =
      hlo::IsElementwise(user) || hlo::IsIndexMap(user.opcode()) || user.opcode() == Opcode::kCopy;
  return elements ? Access::kElements : Access::kWhole;
}

void NeededShare::AddUse(const Instruction& user, size_t index, double share, bool in_memory,
                         const target::Target& target) {
  const Access access = AccessOf(user, index);
  if (in_memory && (access == Access::kRows || access == Access::kOverwritten)) return;
  if (share <= 0) return;
  if (!user.shape().IsArray()) {
    by_all_ = 1;
    return;
  }
  const hlo::Shape& value = user.operand(index)->shape();
  if (access == Access::kSlice) {
    const auto whole = static_cast<double>(target.PaddedSize(value).value());
    const auto part = static_cast<double>(target.PaddedSize(user.shape()).value());
    const double needed = whole > 0 ? share * part / whole : 0;
    // Parts that make up the whole need no telling apart.
    if (by_slices_ >= 1) return;
    const auto same = std::find_if(slices_.begin(), slices_.end(),
                                   [&](const Slice& s) { return SameSlice(*s.slice, user); });
    if (same == slices_.end()) {
      slices_.push_back({&user, needed});
      by_slices_ += needed;
    } else if (needed > same->share) {
      by_slices_ += needed - same->share;
      same->share = needed;
    }
    return;
  }
  double needed = 1;
  if (access == Access::kElements) {
    const auto elements = static_cast<double>(user.shape().ElementCount());
    const auto of_value = std::max(1.0, static_cast<double>(value.ElementCount()));
    needed = std::min(1.0, share * std::max(1.0, elements / of_value));
  }
  by_all_ = std::max(by_all_, needed);
}

double NeededShare::value() const { return std::min(1.0, std::max(by_all_, by_slices_)); }

}  // namespace tpusim::kernels
