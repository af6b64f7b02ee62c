#include "sim/results/report/atomic_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <utility>

#include "configs/status_macros.h"

namespace tpusim::results {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGQUIT, SIGXCPU, SIGALRM};

// Paths of temporary files, for the signal handler: it may neither lock nor
// allocate. A slot that is used holds a whole path.
struct PathSlot {
  std::atomic<bool> used = false;
  char path[PATH_MAX] = {};
};
constexpr int kSlots = 64;
PathSlot slots[kSlots];  // NOLINT: a signal handler has nothing but globals
static_assert(std::atomic<bool>::is_always_lock_free);

extern "C" void EndOnSignal(int signal) {
  RemoveTemporaries();
  ::_exit(128 + signal);
}

// While one exists, the signals wait: between making a file and writing down its
// name, or between renaming it and forgetting the name.
class SignalsWait {
 public:
  SignalsWait() {
    sigset_t set;
    sigemptyset(&set);
    for (const int signal : kSignals) sigaddset(&set, signal);
    ::sigprocmask(SIG_BLOCK, &set, &before_);
  }
  ~SignalsWait() { ::sigprocmask(SIG_SETMASK, &before_, nullptr); }
  SignalsWait(const SignalsWait&) = delete;
  SignalsWait& operator=(const SignalsWait&) = delete;

 private:
  sigset_t before_;
};

// -1 if the table is full or the path too long: then the file is an ordinary one.
int Remember(const std::string& path) {
  if (path.size() >= PATH_MAX) return -1;
  for (int i = 0; i < kSlots; ++i) {
    if (slots[i].used.load()) continue;
    std::memcpy(slots[i].path, path.c_str(), path.size() + 1);
    slots[i].used.store(true);
    return i;
  }
  return -1;
}

std::string Why(int error) {
  return fmt::format("{}{}", std::strerror(error),
                     error == ENOENT ? "; create its folder first" : "");
}

absl::Status Failed(const std::string& path, std::string_view why) {
  return UserError(fmt::format("cannot write '{}': {}", path, why));
}

// Zero or the errno of what failed.
int WriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0) {
      if (errno == EINTR) continue;
      return errno;
    }
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return 0;
}

// The file gets owner, group and permissions of the one that it will replace, as far as this process
// may give files away. What another group must not read it does not get to read.
void BelongTo(const struct stat& replaced, int fd) {
  const bool is_owned = ::fchown(fd, replaced.st_uid, replaced.st_gid) == 0 ||
                        ::fchown(fd, static_cast<uid_t>(-1), replaced.st_gid) == 0;
  ::fchmod(fd, replaced.st_mode & (is_owned ? 0777 : 0707));
}

}  // namespace

TemporaryFile::TemporaryFile(std::string path, int fd, int slot)
    : path_(std::move(path)), fd_(fd), slot_(slot) {}

TemporaryFile::TemporaryFile(TemporaryFile&& other) noexcept
    : path_(std::exchange(other.path_, "")),
      fd_(std::exchange(other.fd_, -1)),
      slot_(std::exchange(other.slot_, -1)) {}

TemporaryFile::~TemporaryFile() {
  Close();
  if (path_.empty()) return;
  const SignalsWait wait;
  ::unlink(path_.c_str());
  if (slot_ >= 0) slots[slot_].used.store(false);
}

absl::StatusOr<TemporaryFile> TemporaryFile::Beside(const std::string& path) {
  // A process of this number may have been killed here before.
  constexpr int kNames = 100;
  // Less of a long name: what is put behind it counts, too.
  constexpr size_t kNameBytes = 100;
  struct stat replaced;
  const bool replaces = ::stat(path.c_str(), &replaced) == 0;
  if (!replaces && errno == ENAMETOOLONG) return UserError(Why(errno));
  const size_t name_begin = path.rfind('/') + 1;
  const std::string stem = path.substr(0, name_begin) + path.substr(name_begin, kNameBytes);
  const SignalsWait wait;
  for (int n = 0;; ++n) {
    std::string name = fmt::format("{}.tmp.{}", stem, ::getpid());
    if (n > 0) name += fmt::format(".{}", n);
    // Never through a link that someone put there; 0666 is narrowed by the umask.
    const mode_t mode = replaces ? 0600 : 0666;
    const int fd = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd >= 0) {
      const int slot = Remember(name);
      TemporaryFile file(std::move(name), fd, slot);
      if (replaces) BelongTo(replaced, fd);
      return file;
    }
    if (errno != EEXIST || n == kNames) return UserError(Why(errno));
  }
}

int TemporaryFile::Write(std::string_view bytes) { return WriteAll(fd_, bytes); }

int TemporaryFile::Close() {
  if (fd_ < 0) return 0;
  return ::close(std::exchange(fd_, -1)) == 0 ? 0 : errno;
}

int TemporaryFile::RenameTo(const std::string& target) {
  if (const int error = Close()) return error;
  const SignalsWait wait;
  if (::rename(path_.c_str(), target.c_str()) != 0) return errno;
  path_.clear();
  if (slot_ >= 0) slots[std::exchange(slot_, -1)].used.store(false);
  return 0;
}

void RemoveTemporaries() {
  for (const PathSlot& slot : slots) {
    if (slot.used.load()) ::unlink(slot.path);
  }
}

void RemoveTemporariesOnSignals() {
  // Beyond the largest file that is allowed (ulimit -f) writing fails, as on a full disk.
  std::signal(SIGXFSZ, SIG_IGN);
  for (const int signal : kSignals) {
    struct sigaction action = {};
    if (::sigaction(signal, nullptr, &action) != 0) continue;
    // Python ignores SIGPIPE, also for what it becomes.
    if (action.sa_handler == SIG_IGN && signal != SIGPIPE) continue;
    action = {};
    action.sa_handler = EndOnSignal;
    sigemptyset(&action.sa_mask);
    ::sigaction(signal, &action, nullptr);
  }
}

std::string ResolvedPath(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::path at = fs::absolute(path, error);
  if (error) return path;
  // The kernel follows as many links before it gives up.
  constexpr int kMaxLinks = 40;
  for (int links = 0; links < kMaxLinks; ++links) {
    const fs::path whole = fs::canonical(at, error);
    if (!error) return whole.string();
    // The last part does not exist, or is a link to what does not.
    const fs::path folder = fs::canonical(at.parent_path(), error);
    if (error) break;
    at = folder / at.filename();
    const fs::path next = fs::read_symlink(at, error);
    if (error) return at.string();
    at = folder / next;  // an absolute `next` replaces the folder
  }
  return fs::weakly_canonical(fs::path(path), error).string();
}

absl::StatusOr<OutputFile> OutputFile::Open(const std::string& path) {
  OutputFile file(path);
  if (path == kStdout) {
    std::fflush(stdout);
    file.in_place_ = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
    if (file.in_place_ < 0) return Failed("stdout", Why(errno));
    return file;
  }
  struct stat info;
  if (::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {
    file.in_place_ = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (file.in_place_ < 0) return Failed(path, Why(errno));
    return file;
  }
  file.target_ = ResolvedPath(path);
  absl::StatusOr<TemporaryFile> temporary = TemporaryFile::Beside(file.target_);
  if (!temporary.ok()) return Failed(path, Message(temporary.status()));
  file.temporary_.emplace(*std::move(temporary));
  return file;
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : path_(std::move(other.path_)),
      target_(std::move(other.target_)),
      temporary_(std::move(other.temporary_)),
      in_place_(std::exchange(other.in_place_, -1)) {}

OutputFile::~OutputFile() {
  if (in_place_ >= 0) ::close(in_place_);
}

absl::Status OutputFile::Append(std::string_view bytes) {
  const int error = temporary_ ? temporary_->Write(bytes) : WriteAll(in_place_, bytes);
  return error == 0 ? absl::OkStatus() : Failed(path_, Why(error));
}

absl::Status OutputFile::Finish() {
  int error = 0;
  if (temporary_) {
    error = temporary_->RenameTo(target_);
  } else if (::close(std::exchange(in_place_, -1)) != 0) {
    error = errno;
  }
  return error == 0 ? absl::OkStatus() : Failed(path_, Why(error));
}

absl::Status WriteFileAtomically(const std::string& path, std::string_view bytes) {
  ASSIGN_OR_RETURN(OutputFile file, OutputFile::Open(path));
  RETURN_IF_ERROR(file.Append(bytes));
  return file.Finish();
}

}  // namespace tpusim::results
