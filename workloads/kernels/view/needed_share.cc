#include "workloads/kernels/view/needed_share.h"

#include <algorithm>

#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"

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

Use::Use(const Instruction& u, size_t index, const target::Target& target)
    : user(&u), access(AccessOf(u, index)), of_several(!u.shape().IsArray()) {
  const hlo::Shape& value = u.operand(index)->shape();
  if (of_several || !value.IsArray()) return;
  if (access == Access::kSlice) {
    whole = static_cast<double>(target.PaddedSize(value).value());
    part = static_cast<double>(target.PaddedSize(u.shape()).value());
  } else if (access == Access::kElements) {
    const auto of_value = std::max(1.0, static_cast<double>(value.ElementCount()));
    elements = std::max(1.0, static_cast<double>(u.shape().ElementCount()) / of_value);
  }
}

void NeededShare::Clear() {
  by_all_ = by_slices_ = 0;
  slices_.clear();
}

void NeededShare::AddUse(const Use& use, double share, bool in_memory) {
  if (in_memory && (use.access == Access::kRows || use.access == Access::kOverwritten)) return;
  if (share <= 0) return;
  if (use.of_several) {
    by_all_ = 1;
    return;
  }
  if (use.access == Access::kSlice) {
    const double needed = use.whole > 0 ? share * use.part / use.whole : 0;
    // Parts that make up the whole need no telling apart.
    if (by_slices_ >= 1) return;
    const auto same = std::find_if(slices_.begin(), slices_.end(),
                                   [&](const Slice& s) { return SameSlice(*s.slice, *use.user); });
    if (same == slices_.end()) {
      slices_.push_back({use.user, needed});
      by_slices_ += needed;
    } else if (needed > same->share) {
      by_slices_ += needed - same->share;
      same->share = needed;
    }
    return;
  }
  const double needed = use.access == Access::kElements ? std::min(1.0, share * use.elements) : 1;
  by_all_ = std::max(by_all_, needed);
}

double NeededShare::value() const { return std::min(1.0, std::max(by_all_, by_slices_)); }

}  // namespace tpusim::kernels
