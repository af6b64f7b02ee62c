// The software pipeline of a kernel, step by step.
//
// The windows of a kernel are double buffered in VMEM. A step computes on one set of buffers while
// the other set is being filled for the next step and emptied of the results of the one before. Let
//
//   F(s)  the input windows that move at step s (all of them at step 0): windows
//         with one buffer F1(s), windows with two or more F2(s)
//   W(s)  the output windows whose block is complete after step s: those that
//         move at step s+1, and all of them after the last step
//   B(s)  compute of step s: StepTime x the partial fractions of the
//         grid dimensions that stand on their last index, rounded to nearest
//
// F1, F2 and W of one step are one transfer each, of the sum of their windows' bytes (x the partial
// fractions of the dimensions that the window moves with, each window rounded to nearest); a
// transfer of no bytes does not exist. Windows of operands in another memory take its bandwidth
// instead of HBM's, side by side with it (memory_bytes.h); with all in HBM "rate" is the HBM rate.
// All go through the stream's DMA channel, which serves them one at a time in the order of issue
// (dma_channel.h):
//
//   e(X) = max(i(X) + start latency, e(previous X) + turnaround) + bytes(X) / rate
//
// (writes have a start latency of their own and no turnaround).
//
// With T the start of the kernel and L = LaunchTime:
//
//   at T + L      issue F(0) = F1(0) and F2(0) in one transfer, then F2(1)
//   at end(s)     issue W(s), then F1(s+1), then F2(s+2), in this order
//   start(0)   =  e(F(0))
//   start(s)   =  max(end(s-1), e(F1(s)), e(F2(s)), e(W*) of every output window
//                 that moves at s: the write-back of the block that was in its
//                 buffer before, `buffers` blocks ago)
//   end(s)     =  start(s) + B(s)
//   end        =  max(end(last), e(last transfer))
//
// F2(s+2) goes out at end(s) because that is when the buffer that it fills is
// free. In a kernel that is bound by memory this is well before step s+1 starts,
// so the start latency of a transfer passes while the one before it moves.
// Prefetch is one step ahead however many input buffers there are.
//
// In a steady state in which every step computes for B and moves data that take
// D = (bytes in + bytes out) / HBM rate, a step takes
//
//   max(B, D, (B + start latency + D) / 2)
//
// The last term is the chain from the start of step s over its end, the start latency and the data
// to the start of step s+2; it rules in kernels of very short steps only.
//
// KernelSteps says what every step moves and computes. It knows no time, nor does
// KernelPipeline (kernel_pipeline.h), which says what waits for what: chip::TensorCore
// runs it on SystemC, KernelTime (kernel_time.h) for a kernel alone on its chip.
#ifndef TPUSIM_MODELS_TIMING_KERNEL_STEPS_H_
#define TPUSIM_MODELS_TIMING_KERNEL_STEPS_H_

#include <array>
#include <cstdint>
#include <vector>

#include "configs/units.h"
#include "models/isa/program.h"
#include "models/timing/memory_bytes.h"

namespace tpusim::timing {

// One step of a kernel.
struct StepPlan {
  double fraction = 1;       // of a full block that it computes
  uint32_t changed = 0;      // grid dimensions whose index differs from the step before
  MemoryBytes fetch_single;  // F1
  MemoryBytes fetch_double;  // F2
  MemoryBytes write;         // W
};

// Walks a grid. Allocates only when a kernel is larger than any before.
class KernelSteps {
 public:
  // The kernel must outlive the walk.
  void Reset(const isa::Kernel& kernel);

  int64_t steps() const { return steps_; }
  // Goes on from `step` > 0, as if all steps before had been asked for.
  void Seek(int64_t step);
  // Returns any step from the current one to two ahead of it; steps before are gone. Beyond the
  // last step there is nothing to do.
  const StepPlan& At(int64_t step);

 private:
  static constexpr int64_t kAhead = 4;  // plans kept: a power of two

  void Generate();  // the next plan, and what the one before it writes
  Bytes WindowBytes(const isa::Window& window) const;

  const isa::Kernel* kernel_ = nullptr;
  int64_t steps_ = 0;
  int64_t generated_ = 0;  // plans so far
  bool ragged_ = false;    // some dimension has a partial last block
  std::vector<int64_t> index_;
  std::array<StepPlan, kAhead> plans_;
  StepPlan nothing_;
};

// Iterations of a grid dimension repeat in the steady state. How many of them, from
// iteration `index` on, need not be executed if the one before ran like those to come:
// none from the first, which begins with other windows than the rest, and not the
// last three, as the last may be partial and two steps ahead are fetched already.
// 0 where nothing is gained.
int64_t RepeatableIterations(int64_t count, int64_t index);

// A duration or size scaled by a fraction, rounded to nearest.
Picoseconds Scaled(Picoseconds t, double fraction);
Bytes Scaled(Bytes bytes, double fraction);

}  // namespace tpusim::timing

#endif  // TPUSIM_MODELS_TIMING_KERNEL_STEPS_H_
