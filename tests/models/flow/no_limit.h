// The rate of flows that nothing but the links limits.
#ifndef TPUSIM_TESTS_MODELS_FLOW_NO_LIMIT_H_
#define TPUSIM_TESTS_MODELS_FLOW_NO_LIMIT_H_

#include <limits>

namespace tpusim::flow {

inline constexpr double kInf = std::numeric_limits<double>::infinity();

}  // namespace tpusim::flow

#endif  // TPUSIM_TESTS_MODELS_FLOW_NO_LIMIT_H_
