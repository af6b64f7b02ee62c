// Output files that are either whole or absent.
//
// A result that is cut short looks like a result: half a trace loads without
// any error. So everything is written beside its destination first and renamed
// over it at the end; a failed or interrupted run leaves what was there before,
// and nothing else. A file that is replaced keeps its permissions.
#ifndef TPUSIM_SIM_RESULTS_REPORT_ATOMIC_FILE_H_
#define TPUSIM_SIM_RESULTS_REPORT_ATOMIC_FILE_H_

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tpusim::results {

// The path that means stdout.
inline constexpr std::string_view kStdout = "-";

// Links are followed; a destination that is no regular file (stdout, /dev/null,
// a pipe) is written in place. Errors name the path and the reason.
absl::Status WriteFileAtomically(const std::string& path, std::string_view bytes);

// Returns the absolute path of the file that `path` means: folders and links resolved,
// also a link to a file that is yet to be made.
std::string ResolvedPath(const std::string& path);

// A new file beside its destination. It is gone when this object is, or when a
// signal ends the program (RemoveTemporariesOnSignals), unless it was renamed.
class TemporaryFile {
 public:
  // Errors: errno of what failed, as a message.
  static absl::StatusOr<TemporaryFile> Beside(const std::string& path);
  TemporaryFile(TemporaryFile&& other) noexcept;
  TemporaryFile& operator=(TemporaryFile&&) = delete;
  ~TemporaryFile();

  const std::string& path() const { return path_; }
  int fd() const { return fd_; }
  // Write, close or rename the file; each returns 0 or an errno.
  int Write(std::string_view bytes);
  int Close();
  int RenameTo(const std::string& target);  // closes it before

 private:
  TemporaryFile(std::string path, int fd, int slot);

  std::string path_;
  int fd_ = -1;
  int slot_ = -1;  // where the signal handler finds the path; -1 = nowhere
};

// WriteFileAtomically part by part, for what is too large to be in memory as a whole.
// Without Finish() the destination stays as it was.
class OutputFile {
 public:
  static absl::StatusOr<OutputFile> Open(const std::string& path);
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();

  absl::Status Append(std::string_view bytes);
  absl::Status Finish();

 private:
  explicit OutputFile(std::string path) : path_(std::move(path)) {}

  std::string path_, target_;
  std::optional<TemporaryFile> temporary_;
  int in_place_ = -1;  // of a destination that is no regular file
};

// Makes SIGINT, SIGTERM, SIGHUP, SIGPIPE (the reader of the output is gone), SIGQUIT,
// SIGXCPU (ulimit -t) and SIGALRM remove all temporary files and end the program without a message,
// with exit code 128 + the signal's number (130, 143, 129, 141, ...). Those that the caller ignores
// (nohup) stay ignored, but for SIGPIPE. A file larger than allowed (ulimit -f) is an error of
// writing it, no signal.
void RemoveTemporariesOnSignals();
// Removes temporary files, for other signal handlers: it neither locks nor allocates.
void RemoveTemporaries();

}  // namespace tpusim::results

#endif  // TPUSIM_SIM_RESULTS_REPORT_ATOMIC_FILE_H_
