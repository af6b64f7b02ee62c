// Faults: the first error of any module ends the simulation and becomes its result.
#ifndef TPUSIM_MODELS_EVENTS_FAULTS_H_
#define TPUSIM_MODELS_EVENTS_FAULTS_H_

#include <cstdint>
#include <limits>

#include "absl/status/status.h"

namespace tpusim::events {

class Faults {
 public:
  // Keeps the first error and stops SystemC after the current delta cycle.
  void Report(absl::Status status);
  const absl::Status& status() const { return status_; }

  // Ends the simulation with RESOURCE_EXHAUSTED once `events` more have been counted: a program
  // that would run for hours is told so.
  void LimitEvents(int64_t events) { limit_ = counted_ + events; }
  // Counts events that are about to happen; false: there may be no more.
  bool Count(int64_t events = 1) {
    counted_ += events;
    return counted_ <= limit_ || TooMany();
  }
  int64_t counted() const { return counted_; }

 private:
  bool TooMany();

  int64_t counted_ = 0;
  int64_t limit_ = std::numeric_limits<int64_t>::max();
  absl::Status status_;
};

}  // namespace tpusim::events

#endif  // TPUSIM_MODELS_EVENTS_FAULTS_H_
