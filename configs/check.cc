#include <cstdio>
#include <cstdlib>

#include "configs/status_macros.h"

namespace tpusim {

void CheckFailed(const char* file, int line, const char* condition, const std::string& message) {
  std::fprintf(stderr, "tpusim: internal error at %s:%d: %s (%s)\n", file, line, message.c_str(),
               condition);
  std::fflush(stderr);
  std::abort();
}

}  // namespace tpusim
