// Builders of small programs for tests.
#ifndef TPUSIM_TESTS_MODELS_ISA_SMALL_PROGRAMS_H_
#define TPUSIM_TESTS_MODELS_ISA_SMALL_PROGRAMS_H_

#include <memory>
#include <utility>

#include "configs/topology.h"
#include "models/isa/program.h"

namespace tpusim::isa {

inline SharedBody Share(Body body) { return std::make_shared<const Body>(std::move(body)); }

// Two chips side by side.
inline configs::Topology Pair() {
  return configs::Topology({2, 1, 1}, {false, false, false}, 1);
}

}  // namespace tpusim::isa

#endif  // TPUSIM_TESTS_MODELS_ISA_SMALL_PROGRAMS_H_
