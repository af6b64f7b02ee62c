// The state of a running kernel, without time: which step is next, what it waits
// for, what has been issued. timing/kernel_steps.h says what a pipeline does.
//
// How to call: Launch, then EndStep and EndTransfer as they happen. Launch and
// EndStep leave in moves() what is to be issued at that moment; NextStep follows
// EndStep, unless it was the last. A step may compute as soon as Ready().
//
//   pipeline.Reset(kernel); pipeline.Launch();        -> moves()
//   ... transfer `n` has ended: pipeline.EndTransfer(n);
//   ... Ready(): compute for Fraction() of a block, then
//   if (pipeline.EndStep()) pipeline.NextStep();       -> moves()
//
// Transfers are numbered from 1 in the order of issue, which is also the order in
// which they end.
#ifndef TPUSIM_MODELS_CHIP_KERNEL_PIPELINE_H_
#define TPUSIM_MODELS_CHIP_KERNEL_PIPELINE_H_

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "models/isa/program.h"
#include "models/steady/state.h"
#include "models/timing/kernel_steps.h"

namespace tpusim::chip {

class KernelPipeline {
 public:
  struct Move {
    timing::MemoryBytes moved;
    int64_t step = 0;
    bool write = false;
    uint64_t number = 0;
  };

  // The kernel must outlive its run.
  void Reset(const isa::Kernel& kernel);
  void Launch();
  // False: it was the last.
  bool EndStep();
  void NextStep();
  void EndTransfer(uint64_t number);

  std::span<const Move> moves() const { return {moves_.data(), move_count_}; }
  int64_t step() const { return step_; }
  int64_t steps() const { return steps_.steps(); }
  double Fraction() { return steps_.At(step_).fraction; }
  bool Ready() const { return ended_ >= needed_; }
  bool Drained() const { return ended_ >= issued_; }

  // After EndStep: so many steps pass that leave everything as it is now.
  void Skip(int64_t steps);
  // Shows what the future depends on besides the step and the outstanding transfers,
  // which are counted from the oldest.
  void Visit(steady::StateVisitor& visitor) const;

 private:
  struct Output {
    uint32_t moves_with = 0;
    int32_t buffers = 1;
    int64_t block = 0;                 // blocks begun before the current one
    std::vector<uint64_t> write_back;  // per buffer: the transfer that emptied it last
  };

  void Issue(const timing::MemoryBytes& moved, int64_t step, bool write);

  timing::KernelSteps steps_;
  std::vector<Output> outputs_;
  size_t output_count_ = 0;
  std::array<Move, 3> moves_;
  size_t move_count_ = 0;
  int64_t step_ = 0;
  uint64_t issued_ = 0;
  uint64_t ended_ = 0;
  uint64_t needed_ = 0;              // the step may start when this one has ended
  std::array<uint64_t, 4> fetch_{};  // last fetch of each of the next steps
};

}  // namespace tpusim::chip

#endif  // TPUSIM_MODELS_CHIP_KERNEL_PIPELINE_H_
