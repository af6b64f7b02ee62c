// From steps to instruction bodies. Devices whose bodies are equal play one role
// and share one body; repeated steps become loops, so that a body does not grow
// with the ring.
#ifndef TPUSIM_WORKLOADS_COLLECTIVES_BODIES_H_
#define TPUSIM_WORKLOADS_COLLECTIVES_BODIES_H_

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "configs/config.h"
#include "workloads/collectives/candidates.h"
#include "workloads/collectives/collective.h"

namespace tpusim::collectives {

// A part of a body without loops: idle time, a poll, transfers out, local copies, then waits.
struct BodyStage {
  Cycles idle{0};
  bool polled = false;  // it begins when a kernel has a moment for it
  std::vector<isa::Rdma> sends;
  std::vector<isa::Dma> copies;
  std::vector<isa::Wait> waits;
};

// Some of the stages, which run so many times.
struct RepeatedStages {
  size_t first = 0, last = 0;  // [first, last)
  int64_t times = 1;
};

// Collects the distinct bodies of one collective.
class Roles {
 public:
  // `launch` = fixed cost at the start of every body.
  Roles(const configs::ChipParams& chip, int64_t devices);

  // Role that runs these stages, after the launch unless `local`.
  int32_t Add(const std::vector<BodyStage>& stages, bool local = false,
              const RepeatedStages& repeated = {});
  void Assign(int64_t device, int32_t role) { role_of_device_[device] = role; }

  std::vector<isa::SharedBody> bodies() const { return bodies_; }
  std::vector<int32_t> role_of_device() const { return role_of_device_; }

 private:
  Cycles launch_;
  std::vector<isa::SharedBody> bodies_;
  std::vector<int32_t> role_of_device_;
  std::map<std::vector<int64_t>, int32_t> role_of_code_;
};

// Flags of one collective: every sender of a device has a flag of its own, so
// that arrivals are counted in order, however far ahead a sender is.
class FlagTable {
 public:
  explicit FlagTable(isa::PodProgram& program) : program_(program) {}
  // Flag for what comes from the position `delta` away on the dimension.
  int32_t For(int dimension, int64_t delta);
  // Flag for what this device has sent; every step takes all that it counts.
  int32_t ForSent() { return For(-1, 0); }
  // Returns the flag of transfers that a later step takes.
  int32_t ForSent(int dimension, int64_t delta) { return For(-2 - dimension, delta); }

 private:
  isa::PodProgram& program_;
  std::map<std::pair<int, int64_t>, int32_t> flags_;
};

// Bodies for all groups of a form; adds what routes and flags they need.
void AddBodies(const configs::Config& config, const CollectiveRequest& request,
               const GroupForm& form, const Algorithm& candidate, isa::PodProgram& program,
               FlagTable& flags, Roles& roles);

}  // namespace tpusim::collectives

#endif  // TPUSIM_WORKLOADS_COLLECTIVES_BODIES_H_
