// A budget for looks: how often the search for a steady state reads the state of the pod.
//
// A look reads the state of the whole pod and keeps it (fast_forward.h), which takes as long as
// many instructions. It pays where passes of a loop are passed over. A pod of many devices with
// short loops, such as rings of a few steps, would spend more on looks than all its loops can save.
// So a pass that costs much more than a look is always looked at, and looks at the others have to
// be covered: by a small part of what has been executed, and by what moving time has saved.
#ifndef TPUSIM_SIM_LOOK_BUDGET_H_
#define TPUSIM_SIM_LOOK_BUDGET_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "configs/units.h"

namespace tpusim::sim {

// The budget; all costs are in instructions.
class LookBudget {
 public:
  // Returns the cost of a look, estimated by the size of the last state.
  int64_t cost() const { return static_cast<int64_t>(numbers_) / kNumbersPerInstruction; }

  // Returns whether a look is worth it at a pass of which the one before executed `pass`
  // instructions, after `executed` in all.
  bool Covers(int64_t pass, int64_t executed) const {
    return pass >= kLongPass * cost() ||
           spent_ <= kFirstLooks * cost() + executed / kExecutedPerSpent + saved_;
  }
  // Counts a look at a state of so many numbers.
  void Spend(size_t numbers) {
    numbers_ = numbers;
    spent_ += cost();
  }
  // Time was moved over so many periods of so many instructions.
  void Save(int64_t instructions, int64_t periods) {
    saved_ = std::min(kEnough, saved_ + SaturatedProduct(instructions, periods));
  }

 private:
  // Numbers that are read, remembered and compared in the time of one instruction. Measured: an
  // unrolled decoder on 256 chips, whose 32 classes have 20,000 numbers, takes 138 us for a look
  // and 0.55 us for an instruction.
  static constexpr int64_t kNumbersPerInstruction = 80;
  static constexpr int64_t kLongPass = 8;
  static constexpr int64_t kFirstLooks = 64;
  static constexpr int64_t kExecutedPerSpent = 32;
  // The upper limit of what is spent.
  static constexpr int64_t kEnough = int64_t{1} << 60;

  size_t numbers_ = 0;
  int64_t spent_ = 0;
  int64_t saved_ = 0;
};

}  // namespace tpusim::sim

#endif  // TPUSIM_SIM_LOOK_BUDGET_H_
