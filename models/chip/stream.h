// A stream: the control that walks through a program and asks the machine's servers for work.
//
// It executes bodies one after the other, each a list of instructions with loops and branches, with
// a stack of program counters. Bookkeeping instructions take no time and run on in one go; an
// instruction that takes time leaves the stream asleep until the server that does it calls back.
// Waking takes one delta cycle, so that streams never run inside each other and the order of
// callbacks cannot matter.
//
// The main stream of a device, tensor_core[0], is given its program at time 0;
// every other stream gets bodies from Start instructions.
#ifndef TPUSIM_MODELS_CHIP_STREAM_H_
#define TPUSIM_MODELS_CHIP_STREAM_H_

#include <cstdint>
#include <deque>
#include <systemc>
#include <utility>
#include <vector>

#include "configs/chip.h"
#include "configs/memory.h"
#include "models/chip/dma_interface.h"
#include "models/chip/interfaces.h"
#include "models/chip/loop_listener.h"
#include "models/events/causes.h"
#include "models/events/faults.h"
#include "models/events/probe.h"
#include "models/events/run_queue.h"
#include "models/isa/program.h"
#include "models/steady/state.h"

namespace tpusim::chip {

// The surroundings of a stream, given when it is built.
struct StreamContext {
  int32_t device = 0;
  int64_t multiplicity = 1;  // equal devices that this one represents
  const configs::ChipParams& params;
  const isa::PodProgram& program;
  events::Faults& faults;
  events::Probe& probe;
  events::RunQueue& ready;           // streams that have been let go
  LoopListener* loops = nullptr;     // null: no listener
  events::Causes* causes = nullptr;  // null: they are not kept
};

class Stream : public sc_core::sc_module,
               public StreamInterface,
               public WorkListener,
               public TransferListener,
               public FlagListener,
               public StepListener,
               public events::Runnable,
               public steady::Stateful {
 public:
  // Its ordinal is its channel of the DMA engine.
  Stream(sc_core::sc_module_name name, const StreamContext& context, const events::StreamRef& ref);

  sc_core::sc_port<MemoryInterface, 0> memories{"memories"};  // as configs::kMemories
  sc_core::sc_port<DmaInterface> dma{"dma"};
  sc_core::sc_port<ComputeInterface> tensor_core{"tensor_core"};
  sc_core::sc_port<HostInterface> host_link{"host_link"};
  sc_core::sc_port<NetworkInterface> network{"network"};
  sc_core::sc_port<FlagsInterface> flags{"flags"};
  sc_core::sc_port<ForkJoinInterface> fork_join{"fork_join"};

  void Enqueue(const isa::Body& body, int32_t token, const isa::Iteration& in) override;
  void Wake() override;
  void Awaited(int32_t token) override;

  const events::StreamRef& ref() const override { return ref_; }
  int64_t retired() const { return retired_; }

  // The reason why the stream sleeps, for the report of a deadlock.
  enum class Blocked { kNo, kWork, kFlag, kToken, kStep };
  bool finished() const { return frames_.empty() && queue_.empty(); }
  Blocked blocked() const { return blocked_; }
  int32_t blocked_on() const { return blocked_on_; }  // flag or token
  int64_t blocked_count() const { return blocked_count_; }
  int32_t op() const { return labels_.empty() ? -1 : labels_.back(); }
  int32_t token() const { return token_; }  // that the running body finishes
  bool Holds(int32_t token) const;          // running or queued

  void WorkEnded() override;
  void TransferEnded(uint64_t) override;
  void FlagReached() override { Wake(); }
  void StepBegan() override;
  void Run() override;
  void Visit(steady::StateVisitor& visitor) override;

 private:
  struct BodyFrame {
    const isa::Body* body = nullptr;
    size_t next = 0;
    int64_t repeats = 0;              // left after this pass
    const isa::Loop* loop = nullptr;  // whose body it is; null: of none
    bool told = false;                // the listener, of every pass
    Picoseconds entered;
    isa::Iteration in;
  };
  struct Queued {
    const isa::Body* body = nullptr;
    int32_t token = -1;
    isa::Iteration in;
  };

  void Resume() {
    if (!std::exchange(ready_, true)) context_.ready.Push(this);
  }
  void Spend(Picoseconds end, events::Spent spent);
  // Makes the stream's cause that of what it releases.
  void TellCause() {
    if (context_.causes != nullptr) context_.causes->SetCurrent(cause_);
  }
  // Each returns true to continue with the next instruction, false to sleep (or fail).
  bool Execute(const isa::Block& block);
  bool Execute(const isa::Kernel& kernel);
  bool Execute(const isa::Dma& dma);
  bool Execute(const isa::HostDma& dma);
  bool Execute(const isa::Rdma& rdma);
  bool Execute(const isa::Signal& signal);
  bool Execute(const isa::Wait& wait);
  bool Execute(const isa::Poll& poll);
  bool Execute(const isa::Loop& loop);
  bool Execute(const isa::Call& call);
  bool Execute(const isa::Branch& branch);
  bool Execute(const isa::Label& label);
  bool Execute(const isa::Alloc& alloc);
  bool Execute(const isa::Free& free);
  bool Execute(const isa::Start& start);
  bool Execute(const isa::Done& done);
  bool Sleep(Blocked why, int32_t on = -1, int64_t count = 0);
  bool Fail(absl::Status status);
  bool Change(isa::MemorySpace space, int32_t buffer, bool alloc);
  void Enter(const isa::Body& body, const isa::Iteration& in);
  // Returns the iteration of the instruction that is being executed.
  const isa::Iteration& in() const { return frames_.back().in; }
  void WakeAfter(Picoseconds delay);

  const StreamContext context_;
  const events::StreamRef ref_;
  sc_core::sc_event wake_;
  std::deque<Queued> queue_;
  std::vector<BodyFrame> frames_;
  std::vector<int32_t> labels_;
  int32_t token_ = -1;
  int32_t awaited_ = -1;       // token; -1: another stream waits for none of this one's
  bool active_ = false;        // a body of the queue is being executed
  events::Causes::Ref cause_;  // why it is where it is
  // The latency of the awaited transfer before bytes move, and the resource that moves them.
  Picoseconds start_latency_{0};
  events::Spent moved_by_ = events::Spent::kHbm;
  bool ready_ = false;  // in the queue of those
  bool timed_ = false;  // asleep until wakes_at_
  Picoseconds wakes_at_{0};
  Blocked blocked_ = Blocked::kNo;
  int32_t blocked_on_ = -1;
  int64_t blocked_count_ = 0;
  int64_t retired_ = 0;
};

}  // namespace tpusim::chip

#endif  // TPUSIM_MODELS_CHIP_STREAM_H_
