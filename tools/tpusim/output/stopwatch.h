// Wall clock since it was made.
#ifndef TPUSIM_TOOLS_TPUSIM_OUTPUT_STOPWATCH_H_
#define TPUSIM_TOOLS_TPUSIM_OUTPUT_STOPWATCH_H_

#include <chrono>

namespace tpusim::tools {

class Stopwatch {
 public:
  double Seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace tpusim::tools

#endif  // TPUSIM_TOOLS_TPUSIM_OUTPUT_STOPWATCH_H_
