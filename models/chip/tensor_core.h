// The TensorCore of a device: runs blocks and kernels, one at a time.
//
// A block claims the matrix, vector and cross-lane slots for as long as it needs
// each, and the core for as long as the fullest takes. A kernel is the pipeline
// of timing/kernel_steps.h. Who asks for work and when is the business of a stream.
//
// Steps of a kernel that repeat can be run as one: where the replay of the kernel
// alone passes over steps (timing::SteadyRuns), the core computes for as long as
// they take alone, while one bulk transfer moves their bytes; then it goes on step
// by step, with the transfers outstanding that were outstanding before. Alone, a
// kernel takes exactly as long as with every step. In company the bulk gets its
// share of HBM, but what slows single transfers between their latencies is not
// seen.
//
// One timed notification is pending while a block (or a kernel's launch) runs,
// none while the core waits for data.
#ifndef TPUSIM_MODELS_CHIP_TENSOR_CORE_H_
#define TPUSIM_MODELS_CHIP_TENSOR_CORE_H_

#include <array>
#include <cstdint>
#include <systemc>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "configs/chip.h"
#include "models/chip/dma.h"
#include "models/chip/mxu.h"
#include "models/chip/probe.h"
#include "models/chip/vmem.h"
#include "models/chip/vpu.h"
#include "models/chip/xlu.h"
#include "models/isa/program.h"
#include "models/timing/kernel_steps.h"
#include "models/timing/kernel_time.h"

namespace tpusim::chip {

class WorkListener {
 public:
  virtual void WorkEnded() = 0;

 protected:
  ~WorkListener() = default;
};

// The slots and memories that a TensorCore works with.
struct TensorCoreParts {
  Mxu& mxu;
  Vpu& vpu;
  Xlu& xlu;
  Vmem& vmem;
  Dma& dma;
};

class TensorCore : public sc_core::sc_module, public TransferListener {
 public:
  TensorCore(sc_core::sc_module_name name, const configs::ChipParams& params,
             const TensorCoreParts& parts, bool every_step, Probe& probe);

  // The core must be idle. The listener is called at the end, once; the kernel
  // must live until then. Transfers go through `channel` of the DMA engine.
  // Error: the kernel's windows do not fit in VMEM.
  absl::Status Run(const isa::Kernel& kernel, int32_t op, int32_t channel, WorkListener* listener);
  void Run(const isa::Block& block, int32_t op, WorkListener* listener);

  bool idle() const { return phase_ == Phase::kIdle; }
  void TransferEnded(uint64_t sequence) override;

 private:
  enum class Phase { kIdle, kBlock, kLaunch, kStep, kWaitData, kSteady, kSteadyData, kDrain };
  struct OutputState {
    uint32_t moves_with = 0;
    int32_t buffers = 1;
    int64_t block = 0;                 // blocks begun before the current one
    std::vector<uint64_t> write_back;  // per buffer: the transfer that emptied it last
  };

  void TimerFired();
  void Begin(int64_t step, double blocks, Picoseconds total);
  void Issue(Bytes bytes, int64_t step, bool write);
  void Reach(int64_t step);  // the step is next: find out what it waits for
  void TryStep();
  void EndStep();
  bool BeginSteady(int64_t step);
  void TryEndSteady();
  void TryEnd();
  void Measure(const isa::Block& block, Picoseconds total);

  const configs::ChipParams& params_;
  const TensorCoreParts parts_;
  const bool every_step_;
  Probe& probe_;
  sc_core::sc_event timer_;

  Phase phase_ = Phase::kIdle;
  WorkListener* listener_ = nullptr;
  int32_t op_ = -1;
  // Of a full block: what it keeps busy for how long.
  Picoseconds block_total_{0}, block_mxu_{0}, block_vpu_{0}, block_xlu_{0};

  // The running kernel. Transfers are numbered in the order of issue, which is
  // also the order in which they end.
  const isa::Kernel* kernel_ = nullptr;
  int32_t channel_ = 0;
  timing::KernelSteps steps_;
  std::vector<OutputState> outputs_;
  size_t output_count_ = 0;
  int64_t step_ = 0;
  uint64_t issued_ = 0;
  uint64_t ended_ = 0;
  uint64_t needed_ = 0;              // the step may start when this one has ended
  std::array<uint64_t, 4> fetch_{};  // last fetch of each of the next steps
  Bytes windows_{0};

  // Steady runs, per kernel when it first runs; those of the running one from
  // next_run_ on are still to come.
  std::unordered_map<const isa::Kernel*, std::vector<timing::SteadyRun>> runs_;
  const std::vector<timing::SteadyRun>* kernel_runs_ = nullptr;
  size_t next_run_ = 0;
  std::vector<Outstanding> outstanding_;  // when the steady run began
};

}  // namespace tpusim::chip

#endif  // TPUSIM_MODELS_CHIP_TENSOR_CORE_H_
