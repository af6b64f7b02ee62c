// Early returns for absl::Status and absl::StatusOr, as XLA writes them.
#ifndef TPUSIM_CONFIGS_STATUS_MACROS_H_
#define TPUSIM_CONFIGS_STATUS_MACROS_H_

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#define TPUSIM_CONCAT_INNER_(a, b) a##b
#define TPUSIM_CONCAT_(a, b) TPUSIM_CONCAT_INNER_(a, b)

#define RETURN_IF_ERROR(expr)                     \
  do {                                            \
    absl::Status tpusim_status_ = (expr);         \
    if (!tpusim_status_.ok()) return tpusim_status_; \
  } while (false)

#define ASSIGN_OR_RETURN(lhs, expr) \
  ASSIGN_OR_RETURN_IMPL_(TPUSIM_CONCAT_(tpusim_status_or_, __LINE__), lhs, expr)
#define ASSIGN_OR_RETURN_IMPL_(var, lhs, expr) \
  auto var = (expr);                           \
  if (!var.ok()) return var.status();          \
  lhs = std::move(var).value()

namespace tpusim {

// A broken invariant of our own: prints where and aborts (exit code 70 by the
// handler that tools/tpusim installs). User errors are absl::Status instead.
[[noreturn]] void CheckFailed(const char* file, int line, const char* condition,
                              const std::string& message);

// Debian's absl::Status::message() is an absl::string_view, which is a type of
// its own there; this is the std::string of it.
inline std::string Message(const absl::Status& status) { return std::string(status.message()); }

// Returns an error of the user's input, which ends in exit code 1.
inline absl::Status UserError(const std::string& message) {
  return absl::InvalidArgumentError(message);
}
// An op, dtype, collective or marker without a rule: exit code 1.
inline absl::Status NoRule(const std::string& message) { return absl::UnimplementedError(message); }

}  // namespace tpusim

#define TPUSIM_CHECK(cond, message) \
  do {                              \
    if (!(cond)) ::tpusim::CheckFailed(__FILE__, __LINE__, #cond, (message)); \
  } while (false)

#endif  // TPUSIM_CONFIGS_STATUS_MACROS_H_
