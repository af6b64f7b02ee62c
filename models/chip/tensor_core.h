// The TensorCore of a device: runs blocks and kernels, one at a time.
//
// A block claims the matrix, vector and cross-lane slots for as long as it needs
// each, and the core for as long as the fullest takes. A kernel is the pipeline
// of timing/kernel_steps.h. Which work is asked for and when is the business of a stream.
//
// Steps that repeat are not executed one by one. At the start of every iteration of a grid
// dimension the core compares what its future depends on, relative to now, with the iterations
// before: the pipeline, the outstanding transfers, and what else uses HBM at which rate. Equal
// states mean that what comes will be like what has been since, up to the boundary of the dimension
// and for as long as no other flow on HBM starts, ends or changes its rate. (The chain of latencies
// in kernels of very short steps takes two steps to come back to where it was.) So the core sleeps
// until then, while a flow takes from HBM what an iteration took on average. When it ends, or when
// conditions change in its midst, what was logged of the iteration (step_log.h) says where the
// pipeline stands: the step, how far the moving transfer is, what waits. The core goes on from
// there, step by step.
//
// Alone this takes as long as with every step. In company it does too, but that the
// others see an average where there were transfers and gaps. A flow that shares HBM with the
// core and nothing else gets as much by that. Where others would get more or less (a
// link keeps them from using all of a gap), every step is executed after all.
//
// Who waits for a step of a kernel that polls is told when one begins; steps are then executed one
// by one until that has been done.
//
// One timed notification is pending while a block, a kernel's launch or steps that
// repeat run, none while the core waits for data.
#ifndef TPUSIM_MODELS_CHIP_TENSOR_CORE_H_
#define TPUSIM_MODELS_CHIP_TENSOR_CORE_H_

#include <array>
#include <cstdint>
#include <optional>
#include <systemc>
#include <vector>

#include "absl/status/status.h"
#include "configs/chip.h"
#include "models/chip/dma_interface.h"
#include "models/chip/interfaces.h"
#include "models/chip/step_log.h"
#include "models/events/probe.h"
#include "models/isa/program.h"
#include "models/timing/kernel_pipeline.h"

namespace tpusim::chip {

class TensorCore : public sc_core::sc_module,
                   public ComputeInterface,
                   public TransferListener,
                   public events::ConditionsListener,
                   public events::RepeatingCore,
                   public steady::Stateful {
 public:
  TensorCore(sc_core::sc_module_name name, const configs::ChipParams& params, bool every_step,
             events::Probe& probe);

  sc_core::sc_port<SlotInterface> mxu{"mxu"};
  sc_core::sc_port<SlotInterface> vpu{"vpu"};
  sc_core::sc_port<SlotInterface> xlu{"xlu"};
  sc_core::sc_port<MemoryInterface> vmem{"vmem"};
  sc_core::sc_port<BulkDmaInterface> dma{"dma"};

  absl::Status Run(const isa::Kernel& kernel, int32_t op, int32_t channel,
                   WorkListener* listener) override;
  void Run(const isa::Block& block, int32_t op, WorkListener* listener) override;

  TimeSplit Split(Picoseconds duration) const override;
  void TellStep(StepListener* listener) override;
  void ForgetStep(StepListener* listener) override;

  bool idle() const { return phase_ == Phase::kIdle; }
  void TransferEnded(uint64_t number) override;
  void ConditionsChanged() override;
  Picoseconds ComputeSoFar() const override;
  void Visit(steady::StateVisitor& visitor) override;

 private:
  enum class Phase { kIdle, kBlock, kLaunch, kStep, kWaitData, kRepeat, kDrain };
  static constexpr size_t kRemembered = 4;
  // The start of an iteration of a grid dimension.
  struct Boundary {
    int64_t step = -1;
    Picoseconds at;
    size_t log = 0;  // entries before it
    StepWork work;       // of the kernel so far
    uint64_t others = 0;
    double others_rate = 0;
    double carried = 0;  // by HBM
    steady::Snapshot state;
  };
  struct Repeat {
    StepLog::LoggedIteration iteration;
    int64_t times = 0;
    Picoseconds began;
    uint64_t others = 0;
    double others_rate = 0;  // on average
    Channel channel;         // as it was when the repetition began
  };
  // The state of the core at the end of steps that repeat, while it is restored.
  struct Resumption {
    void AddMoved(const timing::MemoryBytes& accessed);
    void AddMoved(const timing::Transfer& transfer, double bytes);

    Channel channel;
    timing::MemoryShares moved{};  // since the repetition began
    bool between_steps = true;
    std::optional<Picoseconds> computes_until;  // a block that has begun
  };

  void TimerFired();
  void SetTimer(Picoseconds after);
  bool Timed() const;  // the phase ends with the timer
  void VisitKernel(steady::StateVisitor& visitor);
  void Measure(const isa::Block& block, Picoseconds total);
  // A block, or a fraction of one, that starts at `at`. Returns how long it takes.
  Picoseconds Begin(int64_t step, double fraction, Picoseconds at);
  DmaTransfer Complete(const timing::Transfer& transfer);
  void IssueTransfers();
  void TryStep();
  void EndStep();
  void TryEnd();

  Boundary& Observe(int64_t step);
  bool BeginRepeat();
  bool BeginRepeat(const Boundary& before, const Boundary& now, int64_t times);
  void EndRepeat();
  // Work of whole iterations, at once.
  void PassOver(const StepWork& work, Picoseconds from, Picoseconds until);
  // Applies a logged event of an iteration again.
  void Replay(const StepLog::Event& event, Resumption& at);
  // Sets the progress of the moving transfer; `ahead` knows when it will end.
  void AdvanceTransfer(StepLog::Cursor ahead, Picoseconds now, Resumption& at);
  void ForgetIterations();

  const configs::ChipParams& params_;
  const bool every_step_;
  events::Probe& probe_;
  sc_core::sc_event timer_;
  Picoseconds fires_at_{0};  // the timer

  Phase phase_ = Phase::kIdle;
  WorkListener* listener_ = nullptr;
  int32_t op_ = -1;
  std::vector<StepListener*> told_;  // of the next step of a kernel that polls
  // The busy times of a full block.
  Picoseconds block_total_{0}, block_mxu_{0}, block_vpu_{0}, block_xlu_{0};
  Picoseconds compute_{0};  // of the last block

  // The running kernel.
  const isa::Kernel* kernel_ = nullptr;
  Picoseconds kernel_began_{0};
  int32_t channel_ = 0;
  timing::KernelPipeline pipeline_;
  Bytes windows_{0};
  timing::MemoryBytes moved_before_;  // by its channel

  // The state of steps that may repeat.
  bool logging_ = false;
  size_t outermost_ = 0;  // grid dimension long enough to repeat
  // The last boundaries of each grid dimension, the latest first.
  std::vector<std::array<Boundary, kRemembered>> boundaries_;
  Boundary observed_;
  StepLog log_;
  StepWork work_;                         // of the kernel so far, but for what has moved
  std::optional<Repeat> repeat_;      // the running one, or the last
  std::optional<uint64_t> unsteady_;  // others (Boundary) beside which nothing repeats
};

}  // namespace tpusim::chip

#endif  // TPUSIM_MODELS_CHIP_TENSOR_CORE_H_
