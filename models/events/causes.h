// Causes of events: the critical path of a step, without spans.
//
// Everything in the machine is released by an earlier event: a kernel by the instruction before it,
// a stream that waited by the transfer or the stream that it waited for, a transfer by the stream
// that sent it. A cause is the last such event of a stream or a transfer, with the resource that
// took the time since the one before it and the operation that used it. So each cause is the end of
// a chain that reaches back to the start of the step without a gap, and the chain of what ended
// last is the critical path: its parts add up to the step exactly.
//
// A stream or transfer (a thread, below) holds its cause (Ref). Once released, it inherits the
// cause of the event that released it, which is the latest of those it waited for. Chains that
// nothing holds any more are forgotten, so there are hardly more moments than the longest chain
// has.
//
// Fast-forward (sim/fast_forward.h). Before the state of the machine is compared all threads get
// causes of their own, of no length (Mark). When time moves over n periods the chain of every
// thread since the mark leads to one of those: to the thread k' from which k came to be. It does so
// again in each period that is passed over; Repeat notes that, and the walk back follows it.
#ifndef TPUSIM_MODELS_EVENTS_CAUSES_H_
#define TPUSIM_MODELS_EVENTS_CAUSES_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "configs/units.h"
#include "models/isa/iterations.h"
#include "models/steady/state.h"

namespace tpusim::events {

// The resource that a part of the critical path takes time on.
enum class Spent : uint8_t {
  kMxu,      // blocks whose matrix slots are the fuller ones
  kVpu,      // blocks whose vector slots are
  kHbm,      // windows and copies between memories of the chip, transfers that these slow down
  kIci,      // bytes on links, as far as links set their rate
  kDcn,      // bytes between slices, likewise
  kHost,     // bytes over PCIe
  kLatency,  // launches, hops, starts of DMA, control
};
inline constexpr int kSpentKinds = 7;

class Causes {
 public:
  // Holds a cause. Empty: the start of the step; or nothing is kept (no log).
  class Ref {
   public:
    Ref() = default;
    Ref(const Ref& other) : log_(other.log_), id_(other.id_) { Hold(); }
    Ref(Ref&& other) noexcept : log_(std::exchange(other.log_, nullptr)), id_(other.id_) {}
    Ref& operator=(Ref other) noexcept {
      std::swap(log_, other.log_);
      std::swap(id_, other.id_);
      return *this;
    }
    ~Ref() {
      if (log_ != nullptr) log_->Release(id_);
    }
    // Shows it to what marks and moves causes.
    void Visit(steady::StateVisitor& visitor) {
      if (log_ != nullptr) visitor.Cause(id_);
    }

   private:
    friend class Causes;
    Ref(Causes* log, uint32_t id) : log_(log), id_(id) {}
    void Hold() {
      if (log_ != nullptr) ++log_->nodes_[id_].held;
    }
    Causes* log_ = nullptr;
    uint32_t id_ = 0;
  };

  Causes();
  Causes(const Causes&) = delete;

  Ref Start() { return Share(0); }
  // The time since the cause's moment has been spent for this; its moment is now `end`. An `op`
  // of -1 is that of before.
  void Spend(Ref& cause, Picoseconds end, int32_t op, Spent spent);
  Picoseconds At(const Ref& cause) const;

  // The cause of what is released at this moment; the caller sets it.
  const Ref& current() const { return current_; }
  void SetCurrent(Ref cause) { current_ = std::move(cause); }

  // Something ended at the moment of this cause; the latest, or the first of those, is what the
  // step ends with.
  void Finished(const Ref& cause);

  // Replaces every cause that it visits by a mark of its own.
  class Marks : public steady::CauseVisitor {
   public:
    explicit Marks(Causes& causes) : causes_(causes) {}
    ~Marks() override;
    void Visit(uint32_t& id) override;

   private:
    friend class Causes;
    Causes& causes_;
    std::vector<Ref> marks_;
  };
  // Moves the causes shown, in the same order, over `times` periods from the earlier marks to
  // the later. Null: they cannot, or all is given up. If the states at the marks are not
  // exactly the same, causes move by whole periods as the states do, and the longest part of
  // the path takes what is then missing or too much.
  std::unique_ptr<steady::CauseVisitor> Repeat(std::shared_ptr<const Marks> earlier,
                                               std::shared_ptr<const Marks> later,
                                               Picoseconds period, int64_t times,
                                               const isa::Iterations* iterations,
                                               int64_t per_period, bool is_exact = true);

  // Returns whether there is no critical path: it would be too long to keep, or has repetitions
  // that cannot be followed.
  bool given_up() const;

  struct PathPart {
    int32_t op = -1;  // -1: none
    Spent spent = Spent::kLatency;
    Picoseconds time{0};
  };
  // Returns the critical path by operation and resource, every pair once, in the order of both.
  std::vector<PathPart> CriticalPath() const;

  int64_t moments() const { return static_cast<int64_t>(nodes_.size() - free_.size()); }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  enum class MomentKind : uint8_t { kSpent, kMark, kRepeat };
  struct Moment {
    Picoseconds end;
    uint32_t before = kNone;
    int32_t op = -1;      // kRepeat: which
    uint32_t held = 0;    // by Refs and later nodes
    uint32_t thread = 0;  // kRepeat
    MomentKind form = MomentKind::kSpent;
    Spent spent = Spent::kLatency;
  };
  struct Repeated {
    std::shared_ptr<const Marks> earlier, later;
    std::vector<uint32_t> from;  // by thread: from which it came to be in a period
    int64_t times = 0;
    const isa::Iterations* iterations = nullptr;
    int64_t per_period = 0;
  };
  class Mover;
  class Walk;
  // The moments of threads after so many more periods.
  std::vector<Picoseconds> MovedEnds(const Repeated& repeated, Picoseconds period,
                                     bool is_exact) const;

  Ref Share(uint32_t id) {
    ++nodes_[id].held;
    return Ref(this, id);
  }
  uint32_t NewNode(const Moment& node);
  void Release(uint32_t id);

  std::vector<Moment> nodes_;
  std::vector<uint32_t> free_;
  std::vector<Repeated> repeats_;
  int refused_ = 0;
  Ref current_, last_;
};

}  // namespace tpusim::events

#endif  // TPUSIM_MODELS_EVENTS_CAUSES_H_
