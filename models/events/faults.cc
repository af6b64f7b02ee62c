#include "models/events/faults.h"

#include <systemc>
#include <utility>

namespace tpusim::events {

void Faults::Report(absl::Status status) {
  if (status.ok() || !status_.ok()) return;
  status_ = std::move(status);
  sc_core::sc_stop();
}

bool Faults::TooMany() {
  Report(absl::ResourceExhaustedError("too many events"));
  return false;
}

}  // namespace tpusim::events
