#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "configs/check_handler.h"
#include "configs/status_macros.h"

namespace tpusim {
namespace {

void (*check_handler)(const std::string& what) = nullptr;
std::string (*check_advice)() = nullptr;

}  // namespace

void SetCheckHandler(void (*handler)(const std::string& what)) { check_handler = handler; }

void SetCheckAdvice(std::string (*advice)()) { check_advice = advice; }

void CheckFailed(const char* file, int line, const char* condition, const std::string& message) {
  std::string what = fmt::format("{}:{}: {} ({})", file, line, message, condition);
  // What advises may find a broken invariant, too.
  if (auto* const advice = std::exchange(check_advice, nullptr)) what += advice();
  if (check_handler != nullptr) check_handler(what);
  std::fprintf(stderr, "tpusim: internal error at %s\n", what.c_str());
  std::fflush(stderr);
  std::abort();
}

}  // namespace tpusim
