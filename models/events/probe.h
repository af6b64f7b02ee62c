// The probe of a device: its modules report to it.
//
// The machine does not know what is recorded; it says what happens, and the
// recorder in sim/ keeps totals for every device and spans for some.
#ifndef TPUSIM_MODELS_EVENTS_PROBE_H_
#define TPUSIM_MODELS_EVENTS_PROBE_H_

#include <cstdint>

#include "configs/units.h"
#include "models/isa/program.h"

namespace tpusim::events {

// A stream of a device: what it is, and its position among the device's streams.
struct StreamRef {
  isa::StreamId id;
  int32_t ordinal = 0;
};

// A core that repeats itself and will say later what it did.
class RepeatingCore {
 public:
  // Returns the busy time of the matrix or vector slots since the core began.
  virtual Picoseconds ComputeSoFar() const = 0;

 protected:
  ~RepeatingCore() = default;
};

class Probe {
 public:
  virtual ~Probe() = default;

  // Labels nest per stream.
  virtual void LabelBegan(const StreamRef& stream, int32_t op) = 0;
  virtual void LabelEnded(const StreamRef& stream, int32_t op) = 0;
  // A block started at `start`, now or while the core repeated itself; its matrix and vector slots
  // are busy from then on for `mxu` and `vpu`. `step` is -1 outside of kernels.
  virtual void BlockBegan(int32_t op, int64_t step, Picoseconds start, Picoseconds mxu,
                          Picoseconds vpu) = 0;
  // A local transfer whose data moved from `start` to `end`. Transfers of one
  // channel never overlap. `hbm` is what it read and wrote in HBM.
  virtual void TransferEnded(int32_t channel, int32_t op, int64_t step, Picoseconds start,
                             Picoseconds end, Bytes bytes, Bytes hbm) = 0;
  // Stops reports of blocks and transfers until RepeatEnded: up to `until` they are reported as
  // sums, the rest one by one, all of them if WantsEverything.
  virtual void RepeatBegan(const RepeatingCore& core) = 0;
  virtual void RepeatEnded(int32_t op, Picoseconds until, Picoseconds mxu, Picoseconds vpu,
                           Picoseconds compute, Bytes hbm) = 0;
  virtual bool WantsEverything() const = 0;
  virtual void HostTransferEnded(int32_t op, bool to_host, Picoseconds start, Bytes bytes) = 0;
  // Reports what buffers take of a memory from now on, and the one that was added or taken away.
  virtual void LiveBytesChanged(isa::MemorySpace space, Bytes live, int32_t buffer, bool added) = 0;
  virtual void StreamFinished() = 0;
};

}  // namespace tpusim::events

#endif  // TPUSIM_MODELS_EVENTS_PROBE_H_
