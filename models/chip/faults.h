// What went wrong while the machine ran: the first error of any module ends the
// simulation and becomes its result.
#ifndef TPUSIM_MODELS_CHIP_FAULTS_H_
#define TPUSIM_MODELS_CHIP_FAULTS_H_

#include "absl/status/status.h"

namespace tpusim::chip {

class Faults {
 public:
  // Keeps the first error and stops SystemC after the current delta cycle.
  void Report(absl::Status status);
  const absl::Status& status() const { return status_; }

 private:
  absl::Status status_;
};

}  // namespace tpusim::chip

#endif  // TPUSIM_MODELS_CHIP_FAULTS_H_
