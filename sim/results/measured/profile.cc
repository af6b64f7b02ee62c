#include "sim/results/measured/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <system_error>
#include <utility>

#include "absl/numeric/int128.h"
#include "configs/mean_times.h"
#include "configs/status_macros.h"
#include "sim/results/trace/xplane.pb.h"

namespace tpusim::results {
namespace {

namespace xp = ::tpusim::xplane;
namespace fs = std::filesystem;

constexpr std::string_view kSuffix = ".xplane.pb";
constexpr std::string_view kModules = "XLA Modules";
constexpr std::string_view kOps = "XLA Ops";
// An execution with less of the operations than this share of the most that one has was cut.
constexpr double kWholeShare = 0.9;
// No execution is longer: an hour. What claims to be is no profile, and would not add up.
constexpr int64_t kLongest = 3'600'000'000'000'000;

struct Interval {
  int64_t start = 0, end = 0;  // picoseconds
};
struct ProgramRun {
  Interval when;
  int64_t metadata = 0;
};

// A plane with the tables that its names are in.
class PlaneReader {
 public:
  explicit PlaneReader(const xp::XPlane& plane) : plane_(plane) {
    for (const xp::XLine& line : plane.lines()) {
      if (line.name() == kModules) base_ns_ = line.timestamp_ns();
    }
  }

  std::vector<ProgramRun> EventsOf(std::string_view line_name) const {
    std::vector<ProgramRun> events;
    for (const xp::XLine& line : plane_.lines()) {
      if (line.name() != line_name) continue;
      // Lines begin at a time of day in nanoseconds, which in picoseconds is no number of 64 bits.
      const absl::int128 begin = (absl::int128(line.timestamp_ns()) - base_ns_) * 1000;
      for (const xp::XEvent& event : line.events()) {
        const absl::int128 at = begin + event.offset_ps();
        if (at < -kLongest || at > kLongest) continue;
        if (event.duration_ps() < 0 || event.duration_ps() > kLongest) continue;
        const auto start = static_cast<int64_t>(at);
        events.push_back({{start, start + event.duration_ps()}, event.metadata_id()});
      }
    }
    // Those around others first.
    std::ranges::stable_sort(
        events, {}, [](const ProgramRun& e) { return std::pair(e.when.start, -e.when.end); });
    return events;
  }

  std::string NameOf(int64_t metadata) const {
    const auto at = plane_.event_metadata().find(metadata);
    return at == plane_.event_metadata().end() ? "" : at->second.name();
  }

  ProfiledOp OpOf(int64_t metadata) const {
    ProfiledOp op;
    const auto at = plane_.event_metadata().find(metadata);
    if (at == plane_.event_metadata().end()) return op;
    op.name = at->second.display_name();
    if (op.name.empty()) op.name = InstructionName(at->second.name());
    for (const xp::XStat& stat : at->second.stats()) {
      const std::string name = StatName(static_cast<int64_t>(stat.metadata_id()));
      if (name == "hlo_category") op.category = Text(stat);
      if (name == "source") op.source = Text(stat);
      if (name != "tf_op") continue;
      op.scope = Text(stat);
      if (op.scope.ends_with(':')) op.scope.pop_back();
    }
    return op;
  }

 private:
  // "%fusion.3 = bf16[8]{0} fusion(...)"
  static std::string InstructionName(const std::string& text) {
    const size_t begin = text.starts_with('%') ? 1 : 0;
    return text.substr(begin, text.find(' ') - begin);
  }
  std::string StatName(int64_t id) const {
    const auto at = plane_.stat_metadata().find(id);
    return at == plane_.stat_metadata().end() ? "" : at->second.name();
  }
  // A text may be kept among the names of statistics, once for all.
  std::string Text(const xp::XStat& stat) const {
    if (stat.value_case() == xp::XStat::kRefValue) {
      return StatName(static_cast<int64_t>(stat.ref_value()));
    }
    return stat.str_value();
  }

  const xp::XPlane& plane_;
  int64_t base_ns_ = 0;
};

// "jit_step(1234)" -> "jit_step"
std::string WithoutFingerprint(const std::string& module) {
  return module.substr(0, module.find('('));
}

bool IsTensorCore(const std::string& plane) {
  constexpr std::string_view kPrefix = "/device:TPU:";
  if (!plane.starts_with(kPrefix) || plane.size() == kPrefix.size()) return false;
  return std::ranges::all_of(plane.substr(kPrefix.size()),
                             [](char c) { return c >= '0' && c <= '9'; });
}

// One execution of a program on one device, operation by operation.
struct Execution {
  Interval when;
  std::map<int64_t, std::pair<int64_t, int64_t>> ops;  // by metadata: count, own time
  int64_t events = 0;
};

// The own time of every operation inside `execution`; `ops` are sorted, those around others first.
void AddOps(const std::vector<ProgramRun>& ops, Execution& execution) {
  std::vector<ProgramRun> open;  // each inside the one before
  for (const ProgramRun& op : ops) {
    if (op.when.start < execution.when.start || op.when.start >= execution.when.end) continue;
    while (!open.empty() && open.back().when.end <= op.when.start) open.pop_back();
    auto& [count, time] = execution.ops[op.metadata];
    ++count;
    ++execution.events;
    const int64_t end =
        std::min(op.when.end, open.empty() ? execution.when.end : open.back().when.end);
    time += end - op.when.start;
    if (!open.empty()) execution.ops[open.back().metadata].second -= end - op.when.start;
    open.push_back({{op.when.start, end}, op.metadata});
  }
}

struct DeviceProfile {
  const xp::XPlane* plane = nullptr;
  std::vector<Execution> executions;
};

// Sums over devices; operations of one name are one.
class ProfileSums {
 public:
  explicit ProfileSums(std::string module) { profile_.module = std::move(module); }

  void Add(const DeviceProfile& device) {
    const PlaneReader reader(*device.plane);
    ++profile_.devices;
    for (size_t i = 0; i < device.executions.size(); ++i) {
      const Execution& execution = device.executions[i];
      const Picoseconds length(execution.when.end - execution.when.start);
      const bool first = profile_.executions++ == 0;
      step_ += static_cast<double>(length.value());
      profile_.shortest = first ? length : std::min(profile_.shortest, length);
      profile_.longest = std::max(profile_.longest, length);
      if (i > 0) {
        const int64_t gap = execution.when.start - device.executions[i - 1].when.end;
        gap_ += static_cast<double>(std::max<int64_t>(gap, 0));
        ++gaps_;
      }
      for (const auto& [metadata, op] : execution.ops) {
        ProfiledOp known = reader.OpOf(metadata);
        Sum& sum = ops_[{known.name, known.category}];
        sum.op = std::move(known);
        sum.count += static_cast<double>(op.first);
        sum.time += static_cast<double>(op.second);
      }
    }
  }

  Profile Mean() {
    const auto executions = static_cast<double>(profile_.executions);
    profile_.step = MeanTimes(executions).Next(step_);
    MeanTimes mean(executions);
    for (auto& [key, sum] : ops_) {
      sum.op.count = sum.count / executions;
      sum.op.time = mean.Next(sum.time);
      profile_.ops.push_back(std::move(sum.op));
    }
    std::ranges::stable_sort(profile_.ops, std::greater<>(), &ProfiledOp::time);
    if (gaps_ > 0) profile_.gap = Picoseconds(std::llround(gap_ / static_cast<double>(gaps_)));
    return std::move(profile_);
  }

 private:
  // A sum over all executions; picoseconds of many hours do not fit 64 bits.
  struct Sum {
    ProfiledOp op;
    double count = 0, time = 0;
  };

  Profile profile_;
  std::map<std::pair<std::string, std::string>, Sum> ops_;
  double step_ = 0, gap_ = 0;
  int64_t gaps_ = 0;
};

// Returns the files of the newest run in a folder: jax.profiler writes into plugins/profile/TIME.
absl::StatusOr<std::vector<std::string>> FilesOf(const std::string& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    if (!fs::exists(path, error)) return UserError(fmt::format("{}: no such file", path));
    return std::vector<std::string>{path};
  }
  std::map<fs::path, std::vector<std::string>> runs;
  fs::recursive_directory_iterator at(path, fs::directory_options::skip_permission_denied, error);
  for (; !error && at != fs::recursive_directory_iterator(); at.increment(error)) {
    if (!at->path().string().ends_with(kSuffix)) continue;
    runs[at->path().parent_path()].push_back(at->path().string());
  }
  if (runs.empty()) {
    return UserError(fmt::format("{}: no *{} file in it; jax.profiler.trace(FOLDER) writes some",
                                 path, kSuffix));
  }
  std::vector<std::string>* newest = nullptr;
  fs::file_time_type newest_time;
  for (auto& [folder, files] : runs) {
    std::ranges::sort(files);
    const fs::file_time_type time = fs::last_write_time(files.front(), error);
    if (newest != nullptr && time < newest_time) continue;
    newest = &files;
    newest_time = time;
  }
  return *newest;
}

absl::StatusOr<xp::XSpace> ReadSpace(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) return UserError(fmt::format("{}: cannot be read", file));
  xp::XSpace space;
  if (!space.ParseFromIstream(&in) || space.planes().empty()) {
    return UserError(fmt::format("{}: not a profile of XProf (*{})", file, kSuffix));
  }
  return space;
}

// The program of that name, else the one that took most time.
absl::StatusOr<std::string> ModuleOf(const std::vector<const xp::XPlane*>& planes,
                                     const std::string& wanted, std::set<std::string>& all) {
  std::map<std::string, int64_t> times;
  for (const xp::XPlane* plane : planes) {
    const PlaneReader reader(*plane);
    for (const ProgramRun& run : reader.EventsOf(kModules)) {
      times[WithoutFingerprint(reader.NameOf(run.metadata))] += run.when.end - run.when.start;
    }
  }
  if (times.empty())
    return UserError(fmt::format("it has no line '{}': nothing ran on the TPU", kModules));
  for (const auto& [name, time] : times) all.insert(name);
  if (times.contains(wanted)) return wanted;
  return std::ranges::max_element(times, {}, [](const auto& t) { return t.second; })->first;
}

// Whole executions of the program.
DeviceProfile DeviceOf(const xp::XPlane& plane, const std::string& module) {
  const PlaneReader reader(plane);
  const std::vector<ProgramRun> ops = reader.EventsOf(kOps);
  DeviceProfile device{&plane, {}};
  int64_t most = 0;
  for (const ProgramRun& run : reader.EventsOf(kModules)) {
    if (WithoutFingerprint(reader.NameOf(run.metadata)) != module) continue;
    Execution execution{run.when, {}, 0};
    AddOps(ops, execution);
    most = std::max(most, execution.events);
    device.executions.push_back(std::move(execution));
  }
  std::erase_if(device.executions, [most](const Execution& e) {
    return e.events == 0 || static_cast<double>(e.events) < kWholeShare * static_cast<double>(most);
  });
  return device;
}

}  // namespace

Picoseconds Profile::Idle() const {
  Picoseconds idle = step;
  for (const ProfiledOp& op : ops) idle -= op.time;
  return idle;
}

absl::StatusOr<Profile> ReadProfile(const std::string& path, const std::string& module) {
  ASSIGN_OR_RETURN(const std::vector<std::string> files, FilesOf(path));
  std::vector<xp::XSpace> spaces;
  for (const std::string& file : files) {
    ASSIGN_OR_RETURN(xp::XSpace space, ReadSpace(file));
    spaces.push_back(std::move(space));
  }
  std::vector<const xp::XPlane*> planes;
  for (const xp::XSpace& space : spaces) {
    for (const xp::XPlane& plane : space.planes()) {
      if (IsTensorCore(plane.name())) planes.push_back(&plane);
    }
  }
  if (planes.empty()) {
    return UserError(fmt::format("{}: it has no plane '/device:TPU:N': of no TPU", path));
  }
  std::set<std::string> modules;
  absl::StatusOr<std::string> chosen = ModuleOf(planes, module, modules);
  if (!chosen.ok()) return UserError(fmt::format("{}: {}", path, Message(chosen.status())));
  ProfileSums sums(*chosen);
  bool any = false;
  for (const xp::XPlane* plane : planes) {
    const DeviceProfile device = DeviceOf(*plane, *chosen);
    if (device.executions.empty()) continue;
    any = true;
    sums.Add(device);
  }
  if (!any) {
    return UserError(
        fmt::format("{}: no operation of '{}' is on a line '{}'", path, *chosen, kOps));
  }
  Profile profile = sums.Mean();
  modules.erase(*chosen);
  profile.other_modules.assign(modules.begin(), modules.end());
  return profile;
}

}  // namespace tpusim::results
