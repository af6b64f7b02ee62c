#include "sim/results/trace/xplane.h"

#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

#include "configs/memory.h"
#include "configs/status_macros.h"
#include "sim/recording/recording.h"
#include "sim/results/report/atomic_file.h"
#include "sim/results/report/rollup.h"
#include "sim/results/trace/xplane.pb.h"
#include "sim/results/trace/xplane_memory.h"

namespace tpusim::results {
namespace {

namespace xp = ::tpusim::xplane;

// Any number: there is one program.
constexpr int64_t kProgramId = 1;
constexpr int64_t kRunId = 1;
// XProf adds what is read and what is written, and shows nothing of an operation of neither kind.
constexpr int32_t kRead = 1;
constexpr uint64_t kHbmSpace = 1;

// Returns whether a sample is of the live bytes of HBM.
bool IsOfHbm(const sim::CounterSample& sample) {
  return sample.lane == static_cast<int32_t>(configs::IndexOf(configs::MemorySpace::kHbm));
}

// One device; what its lines are made of.
struct XDevice {
  std::vector<sim::Span> main, async;
  std::vector<sim::CounterSample> samples;
};

// A plane with its tables of names, which are filled by use.
class XPlaneBuilder {
 public:
  XPlaneBuilder(xp::XSpace& space, int64_t id, const std::string& name)
      : plane_(*space.add_planes()) {
    plane_.set_id(id);
    plane_.set_name(name);
  }
  xp::XPlane& plane() { return plane_; }

  int64_t StatId(const std::string& name) {
    const auto [it, is_new] = stats_.emplace(name, static_cast<int64_t>(stats_.size()) + 1);
    if (is_new) {
      xp::XStatMetadata& metadata = (*plane_.mutable_stat_metadata())[it->second];
      metadata.set_id(it->second);
      metadata.set_name(name);
    }
    return it->second;
  }
  template <typename Owner>
  xp::XStat& Stat(Owner& owner, const std::string& name) {
    xp::XStat& stat = *owner.add_stats();
    stat.set_metadata_id(StatId(name));
    return stat;
  }
  // Id 0: a new one. An event of that name must not be there yet.
  xp::XEventMetadata& AddEvent(const std::string& name, int64_t id = 0) {
    if (id == 0) id = ++events_;
    xp::XEventMetadata& metadata = (*plane_.mutable_event_metadata())[id];
    metadata.set_id(id);
    metadata.set_name(name);
    return metadata;
  }
  xp::XLine& AddLine(const std::string& name) {
    xp::XLine& line = *plane_.add_lines();
    line.set_id(plane_.lines_size());
    line.set_name(name);
    return line;
  }

 private:
  xp::XPlane& plane_;
  std::map<std::string, int64_t> stats_;
  int64_t events_ = 0;
};

xp::XEvent& AddEvent(xp::XLine& line, int64_t metadata, Picoseconds start, Picoseconds end) {
  xp::XEvent& event = *line.add_events();
  event.set_metadata_id(metadata);
  event.set_offset_ps(start.value());
  event.set_duration_ps((end - start).value());
  return event;
}

class XPlaneWriter {
 public:
  XPlaneWriter(const configs::Config& config, const isa::ProgramInfo& info,
               const sim::Timeline& timeline)
      : config_(config),
        info_(info),
        timeline_(timeline),
        numbers_(configs::JaxDeviceNumbers(config)) {}

  void Read() {
    for (const int32_t device : timeline_.recorded_devices) devices_[device];
    sim::RecordingReader reader(timeline_.recording);
    std::vector<sim::Span> spans;
    std::vector<sim::CounterSample> samples;
    while (reader.Next(spans, samples)) {
      for (const sim::Span& s : spans) {
        if (s.op < 0) continue;
        XDevice& device = devices_[s.device];
        const bool label = s.track == sim::Track::kCollective ||
                           s.track == sim::Track::kSparseCore || s.track == sim::Track::kCopies;
        if (s.track == sim::Track::kTensorCore) {
          device.main.push_back(s);
        } else if (label && info_.ops[s.op].is_async && s.bytes == Bytes(0)) {
          device.async.push_back(s);
        }
      }
      for (const sim::CounterSample& s : samples) devices_[s.device].samples.push_back(s);
    }
    for (auto& [id, device] : devices_) {
      std::ranges::stable_sort(
          device.main, {}, [](const sim::Span& span) { return std::pair(span.start, span.order); });
      std::ranges::stable_sort(device.async, {}, &sim::Span::start);
      std::ranges::stable_sort(device.samples, {}, &sim::CounterSample::time);
    }
  }

  // Returns the contents of each host's file.
  std::map<int64_t, xp::XSpace> Spaces() {
    std::map<int64_t, xp::XSpace> spaces;
    std::map<int64_t, std::vector<int32_t>> of_host;
    for (const auto& [id, device] : devices_) {
      of_host[configs::HostOf(config_, ChipOf(id))].push_back(id);
    }
    for (auto& [host, devices] : of_host) {
      std::ranges::sort(devices, {}, [&](int32_t device) { return numbers_[device]; });
      xp::XSpace& space = spaces[host];
      space.add_hostnames(fmt::format("host_{}", host));
      for (size_t i = 0; i < devices.size(); ++i) {
        AddDevice(space, devices[i], static_cast<int64_t>(i));
      }
      AddMetadata(space);
      AddHost(space, devices);
    }
    return spaces;
  }

 private:
  int64_t ChipOf(int32_t device) const { return device / config_.topology.devices_per_chip(); }

  void AddDevice(xp::XSpace& space, int32_t id, int64_t ordinal) {
    const XDevice& device = devices_[id];
    const int64_t per_chip = config_.topology.devices_per_chip();
    XPlaneBuilder plane(space, ordinal + 1, fmt::format("/device:TPU:{}", numbers_[id]));
    plane.Stat(plane.plane(), "device_type_string").set_str_value("TPU " + config_.chip.name);
    const auto rate = [&](const char* name, double value) {
      plane.Stat(plane.plane(), name).set_double_value(value);
    };
    const double devices = static_cast<double>(per_chip);
    rate("peak_teraflops_per_second", config_.chip.peak_bf16.value() * 1e-12 / devices);
    rate("peak_hbm_bw_gigabytes_per_second",
         config_.chip.hbm.bytes_per_second.value() * 1e-9 / devices);
    plane.Stat(plane.plane(), "has_megacore")
        .set_int64_value(config_.chip.tensor_cores > per_chip ? 1 : 0);
    xp::CoreDetails core;
    core.set_device_ordinal(static_cast<uint32_t>(ordinal));
    core.set_core_num(static_cast<uint32_t>(id % per_chip));
    core.set_local_chip_id(static_cast<uint32_t>(ordinal / per_chip));
    core.set_global_chip_id(static_cast<uint32_t>(numbers_[id] / per_chip));
    core.set_global_core_id(static_cast<uint32_t>(numbers_[id]));
    plane.Stat(plane.plane(), "core_details").set_bytes_value(core.SerializeAsString());

    const Picoseconds begin(0), end = timeline_.step_time;
    AddEvent(plane.AddLine("Steps"), plane.AddEvent("0").id(), begin, end);
    xp::XEventMetadata& module = plane.AddEvent(ModuleName());
    plane.Stat(module, "program_id").set_uint64_value(kProgramId);
    plane.Stat(AddEvent(plane.AddLine("XLA Modules"), module.id(), begin, end), "run_id")
        .set_uint64_value(kRunId);

    std::map<int32_t, int64_t> metadata_of;
    AddOps(plane, "XLA Ops", device.main, metadata_of);
    AddOps(plane, "Async XLA Ops", device.async, metadata_of);
    AddCounters(plane, device.samples);
  }

  std::string ModuleName() const { return fmt::format("{}({})", info_.module_name, kProgramId); }

  void AddOps(XPlaneBuilder& plane, const std::string& name, const std::vector<sim::Span>& spans,
              std::map<int32_t, int64_t>& metadata_of) {
    xp::XLine& line = plane.AddLine(name);
    for (const sim::Span& s : spans) {
      int64_t& metadata = metadata_of[s.op];  // ids begin at 1
      if (metadata == 0) metadata = AddOp(plane, s.op);
      AddEvent(line, metadata, s.start, s.end);
    }
  }

  int64_t AddOp(XPlaneBuilder& plane, int32_t op) {
    const isa::OpInfo& info = info_.ops[op];
    xp::XEventMetadata& metadata = plane.AddEvent(fmt::format("%{} = {}", info.name, info.shape));
    metadata.set_display_name(info.name);
    const auto number = [&](const char* name, int64_t value) {
      plane.Stat(metadata, name).set_uint64_value(static_cast<uint64_t>(value));
    };
    const auto text = [&](const char* name, const std::string& value) {
      if (!value.empty()) plane.Stat(metadata, name).set_str_value(value);
    };
    number("program_id", kProgramId);
    number("symbol_id", op + 1);
    number("flops", info.flops.value());
    number("model_flops", info.model_flops.value());
    number("bytes_accessed", info.hbm_bytes.value());
    xp::MemoryAccessBreakdown accesses;
    xp::MemoryAccessBreakdown::MemoryAccessed& hbm = *accesses.add_memory_accessed();
    hbm.set_operation_type(kRead);
    hbm.set_memory_space(kHbmSpace);
    hbm.set_bytes_accessed(static_cast<uint64_t>(info.hbm_bytes.value()));
    plane.Stat(metadata, "memory_access_breakdown").set_bytes_value(accesses.SerializeAsString());
    text("hlo_category", XprofCategory(info));
    text("shape_with_layout", info.shape);
    text("source", info.source);
    if (!info.scope.empty()) text("tf_op", info.scope + ":");
    return metadata.id();
  }

  void AddCounters(XPlaneBuilder& plane, const std::vector<sim::CounterSample>& samples) {
    xp::XLine& line = plane.AddLine("_counters_");
    std::map<sim::Counter, int64_t> metadata_of;
    for (const sim::CounterSample& s : samples) {
      const bool bandwidth = s.counter == sim::Counter::kBandwidth;
      if (!IsOfHbm(s) || (!bandwidth && s.counter != sim::Counter::kLive)) continue;
      int64_t& metadata = metadata_of[s.counter];
      if (metadata == 0) {
        metadata = plane.AddEvent(bandwidth ? "HBM bandwidth (GB/s)" : "Live HBM (B)").id();
      }
      plane.Stat(AddEvent(line, metadata, s.time, s.time), "counter_value")
          .set_double_value(bandwidth ? s.value * 1e-9 : s.value);
    }
  }

  void AddMetadata(xp::XSpace& space) {
    XPlaneBuilder plane(space, 1000, "/host:metadata");
    plane.Stat(plane.AddEvent(ModuleName(), kProgramId), "Hlo Proto")
        .set_bytes_value(MemoryAtPeak(info_).SerializeAsString());
  }

  // XProf's overview takes the use of arrays and of HBM from here, its page of memory what
  // is allocated.
  void AddHost(xp::XSpace& space, const std::vector<int32_t>& devices) {
    XPlaneBuilder plane(space, 1001, "/host:CPU");
    double mxu = 0, hbm = 0;
    for (const int32_t id : devices) {
      mxu += static_cast<double>(timeline_.devices[id].mxu_busy.value());
      hbm += static_cast<double>(timeline_.devices[id].moved.hbm().value());
    }
    const double step = static_cast<double>(timeline_.step_time.value());
    const double count = static_cast<double>(devices.size());
    const double rate = config_.chip.hbm.bytes_per_second.value() /
                        static_cast<double>(config_.topology.devices_per_chip());
    if (step > 0) {
      plane.Stat(plane.plane(), "matrix_unit_utilization_percent")
          .set_double_value(100 * mxu / (step * count));
      plane.Stat(plane.plane(), "hbm_utilization_percent")
          .set_double_value(100 * hbm / (step * 1e-12 * rate * count));
    }
    xp::XLine& line = plane.AddLine("allocator");
    const int64_t allocation = plane.AddEvent("MemoryAllocation").id();
    const int64_t deallocation = plane.AddEvent("MemoryDeallocation").id();
    for (const int32_t id : devices) {
      int64_t live = 0, peak = 0;
      for (const sim::CounterSample& s : devices_[id].samples) {
        if (s.counter != sim::Counter::kLive || !IsOfHbm(s)) continue;
        const auto now = static_cast<int64_t>(s.value);
        const int64_t change = now - live;
        if (change == 0) continue;
        live = now;
        peak = std::max(peak, live);
        xp::XEvent& event = AddEvent(line, change > 0 ? allocation : deallocation, s.time, s.time);
        const auto number = [&](const char* name, int64_t value) {
          plane.Stat(event, name).set_int64_value(value);
        };
        plane.Stat(event, "allocator_name").set_str_value(fmt::format("TPU_{}_HBM", numbers_[id]));
        number("bytes_reserved", 0);
        number("bytes_allocated", live);
        number("bytes_available", std::max<int64_t>(info_.usable.hbm().value() - live, 0));
        plane.Stat(event, "fragmentation").set_double_value(0);
        number("peak_bytes_in_use", peak);
        number("requested_bytes", std::abs(change));
        number("allocation_bytes", std::abs(change));
        number("addr", 0);
      }
    }
  }

  const configs::Config& config_;
  const isa::ProgramInfo& info_;
  const sim::Timeline& timeline_;
  const std::vector<int64_t> numbers_;
  std::map<int32_t, XDevice> devices_;
};

absl::Status CannotWrite(const std::string& folder, const std::string& why) {
  return UserError(fmt::format("--xplane: cannot write into '{}': {}", folder, why));
}

// Maps by key: the same step gives the same bytes.
std::string Serialized(const xp::XSpace& space) {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  {
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    space.SerializeToCodedStream(&coded);
  }
  return bytes;
}

// Returns the name with characters that folders allow.
std::string FolderName(std::string name) {
  for (char& c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '_';
    if (!plain) c = '_';
  }
  return name;
}

// Folders that are made for files, and go again if no file gets into them.
class NewFolders {
 public:
  NewFolders() = default;
  NewFolders(const NewFolders&) = delete;
  NewFolders& operator=(const NewFolders&) = delete;
  ~NewFolders() {
    std::error_code ignored;  // such as of a folder that another process writes into
    for (auto made = made_.rbegin(); made != made_.rend(); ++made) {
      std::filesystem::remove(*made, ignored);
    }
  }

  // `path` and those that it is in; errors speak of `named`.
  absl::Status Make(const std::filesystem::path& path, const std::string& named) {
    std::error_code error;
    std::filesystem::path so_far;
    for (const std::filesystem::path& part : path) {
      so_far /= part;
      if (std::filesystem::create_directory(so_far, error)) made_.push_back(so_far);
      if (error) return CannotWrite(named, error.message());
    }
    return absl::OkStatus();
  }
  void Keep() { made_.clear(); }

 private:
  std::vector<std::filesystem::path> made_;
};

}  // namespace

absl::Status WriteXPlanes(const std::string& folder, const std::string& run,
                          const configs::Config& config, const isa::ProgramInfo& info,
                          const sim::Timeline& timeline) {
  XPlaneWriter writer(config, info, timeline);
  writer.Read();
  const std::filesystem::path into =
      std::filesystem::path(folder) / "plugins" / "profile" / FolderName(run);
  NewFolders folders;
  RETURN_IF_ERROR(folders.Make(into, folder));
  // All of them, or none.
  std::vector<std::pair<std::string, TemporaryFile>> files;
  for (const auto& [host, space] : writer.Spaces()) {
    const std::string path = (into / fmt::format("host_{}.xplane.pb", host)).string();
    absl::StatusOr<TemporaryFile> file = TemporaryFile::Beside(path);
    if (!file.ok()) return CannotWrite(folder, Message(file.status()));
    int failed = file->Write(Serialized(space));
    if (failed == 0) failed = file->Close();
    if (failed != 0) return CannotWrite(folder, std::strerror(failed));
    files.emplace_back(path, *std::move(file));
  }
  for (auto& [path, file] : files) {
    if (const int failed = file.RenameTo(path)) return CannotWrite(folder, std::strerror(failed));
    folders.Keep();
  }
  return absl::OkStatus();
}

absl::Status CheckXPlaneFolder(const std::string& folder) {
  // The first part of the path that is there has to take a new one.
  std::error_code error;
  std::filesystem::path part = std::filesystem::absolute(folder, error);
  while (!error && !std::filesystem::exists(part, error) && part.has_parent_path() &&
         part != part.parent_path()) {
    part = part.parent_path();
  }
  if (!std::filesystem::is_directory(part, error)) {
    return CannotWrite(folder, std::strerror(ENOTDIR));
  }
  if (::access(part.c_str(), W_OK) != 0) return CannotWrite(folder, std::strerror(errno));
  return absl::OkStatus();
}

}  // namespace tpusim::results
