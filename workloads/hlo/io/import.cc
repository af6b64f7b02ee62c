// Recognises the container that a file is, and says what the file looks like if it is none.
#include "workloads/hlo/io/import.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/stubs/logging.h>
#include <google/protobuf/unknown_field_set.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "configs/status_macros.h"
#include "fmt/format.h"
#include "workloads/hlo/analysis/call_graph.h"
#include "workloads/hlo/analysis/compiled.h"
#include "workloads/hlo/analysis/partitioned.h"
#include "workloads/hlo/io/attached_workload.h"
#include "workloads/hlo/io/dump_folder.h"
#include "workloads/hlo/io/gzip.h"
#include "workloads/hlo/io/own_frames.h"
#include "workloads/hlo/io/parsed_size.h"
#include "workloads/hlo/io/text_parser.h"
#include "workloads/hlo/io/wire.h"

namespace tpusim::hlo {
namespace {

constexpr std::string_view kWorkloadFormat = "tpusim.workload/1";
// Messages inside messages: protobuf's default. Parsing takes stack for each.
constexpr int kMaxNesting = 100;
constexpr int64_t kMaxFileBytes = (int64_t{1} << 31) - 1;  // protobuf's own limit
// Inflated. 100,000 instructions are 40 MiB; more than this is a bomb, or constants
// that are better stored unpacked.
constexpr int64_t kMaxInflatedBytes = 256 * kMiB;
// Objects of a module take 15 to 25 times its bytes. Far more than that are
// messages of nothing.
constexpr int64_t kMaxParsedRatio = 48;
constexpr int64_t kParsedFloor = 64 * kMiB;
constexpr int64_t kMaxParsedBytes = 8 * kGiB;
// Modules compress 5- to 30-fold. What compresses better counts as if it did not,
// above this: no small file takes a gigabyte.
constexpr int64_t kUsualGzipRatio = 30;
constexpr int64_t kGzipParsedFloor = 768 * kMiB;

constexpr std::string_view kWhatToDo =
    "expected a workload written by tpusim.export, or an HLO module as "
    "as_serialized_hlo_module_proto(), as_text() or --xla_dump_to write it";

// Names MLIR text, MLIR bytecode and artefacts of jax.export in messages.
constexpr std::string_view kStableHlo = "StableHLO";

struct Magic {
  std::string_view bytes;
  std::string_view what;
};
// Starts of files that people have lying beside HLO protos.
constexpr Magic kMagics[] = {
    {"ML\xefR", "MLIR bytecode (StableHLO)"},
    {"\x7f"
     "ELF",
     "an ELF program or library"},
    {"PK\x03\x04", "a zip archive"},
    {"BZh", "a bzip2 archive"},
    {"\xfd"
     "7zXZ",
     "an xz archive"},
    {"\x28\xb5\x2f\xfd", "a zstd archive"},
    {"\x93NUMPY", "a NumPy array"},
    {"\x80\x04\x95", "a Python pickle"},
    {"\x80\x05\x95", "a Python pickle"},
    {"%PDF", "a PDF document"},
    {"\x89PNG", "a PNG image"},
    {"version https://git-lfs", "a Git LFS pointer, not the file that it stands for"},
};
// First words of text, after blanks and comments.
constexpr Magic kTexts[] = {
    {"module", "MLIR text (StableHLO)"},
    {"#loc", "MLIR text (StableHLO)"},
    {"#map", "MLIR text (StableHLO)"},
    {"func.func", "MLIR text (StableHLO)"},
    {"sdy.mesh", "MLIR text (StableHLO)"},
    {"{", "JSON"},
    {"[", "JSON"},
    {"<", "HTML or XML"},
    {"import ", "Python source"},
    {"from ", "Python source"},
    {"def ", "Python source"},
    {"\"\"\"", "Python source"},
    {"#!", "a script"},
    {"hlo_module", "a text-format proto"},
};

bool LooksLikeText(std::string_view bytes) {
  return std::none_of(bytes.begin(), bytes.begin() + std::min<size_t>(bytes.size(), 512),
                      [](char c) { return static_cast<unsigned char>(c) < 9; });
}

std::string_view SkipBlanksAndComments(std::string_view text) {
  while (true) {
    const size_t start = text.find_first_not_of(" \t\r\n");
    if (start == std::string_view::npos) return "";
    text.remove_prefix(start);
    if (text.substr(0, 2) == "//") {
      text.remove_prefix(std::min(text.find('\n'), text.size()));
    } else if (text.substr(0, 2) == "/*") {
      const size_t end = text.find("*/");
      if (end == std::string_view::npos) return "";
      text.remove_prefix(end + 2);
    } else {
      return text;
    }
  }
}

// The top-level fields of what claims to be a proto message.
struct WireScan {
  int64_t fields = 0;
  int64_t messages_in_field_1 = 0;  // length-delimited field 1
  bool only_field_1 = true;
  bool ends_inside_field = false;
  bool valid = true;  // tags and wire types make sense as far as there are bytes
};

WireScan ScanWire(const std::string& bytes) {
  WireScan scan;
  google::protobuf::io::CodedInputStream in(reinterpret_cast<const uint8_t*>(bytes.data()),
                                            static_cast<int>(bytes.size()));
  while (in.CurrentPosition() < static_cast<int>(bytes.size())) {
    const uint32_t tag = in.ReadTag();
    const uint32_t field = tag >> 3;
    if (field == 0 || field > 1000) {
      scan.valid = false;
      return scan;
    }
    bool complete = false;
    uint64_t value = 0;
    switch (tag & 7) {
      case 0:
        complete = in.ReadVarint64(&value);
        break;
      case 1:
        complete = in.Skip(8);
        break;
      case 2:
        complete =
            in.ReadVarint64(&value) && value <= kMaxFileBytes && in.Skip(static_cast<int>(value));
        break;
      case 5:
        complete = in.Skip(4);
        break;
      default:
        scan.valid = false;
        return scan;
    }
    if (!complete) {
      scan.ends_inside_field = true;
      return scan;
    }
    ++scan.fields;
    scan.only_field_1 &= field == 1;
    scan.messages_in_field_1 += tag == (1 << 3 | 2);
  }
  return scan;
}

int64_t MaxParsedBytes(int64_t wire_bytes, int64_t floor) {
  return std::clamp(kMaxParsedRatio * wire_bytes, floor, kMaxParsedBytes);
}

template <typename Message>
bool IsBomb(const std::string& bytes, int64_t limit) {
  return ParsedSize(bytes, *Message::descriptor(), limit).value_or(0) > limit;
}

template <typename Message>
bool Parse(const std::string& bytes, int64_t limit, Message* message,
           int recursion_limit = kMaxNesting) {
  // Also the parser would make room for what a damaged file only announces.
  if (ParsedSize(bytes, *Message::descriptor(), limit).value_or(limit + 1) > limit) return false;
  // Its complaints would be about guesses of ours.
  const google::protobuf::LogSilencer silence;
  google::protobuf::io::CodedInputStream in(reinterpret_cast<const uint8_t*>(bytes.data()),
                                            static_cast<int>(bytes.size()));
  in.SetRecursionLimit(recursion_limit);
  return message->ParseFromCodedStream(&in) && in.ConsumedEntireMessage();
}

// At least one instruction with an opcode as XLA writes them: bytes of another
// message can decode as an empty module.
bool HoldsModule(const pb::HloModuleProto& module) {
  for (const auto& computation : module.computations()) {
    for (const auto& instruction : computation.instructions()) {
      const std::string& opcode = instruction.opcode();
      return !opcode.empty() &&
             opcode.find_first_not_of("abcdefghijklmnopqrstuvwxyz-0123456789") == std::string::npos;
    }
  }
  return false;
}

// Describes the bytes when no container fits.
std::string Diagnose(const std::string& bytes, int64_t max_parsed) {
  for (const Magic& magic : kMagics) {
    if (std::string_view(bytes).substr(0, magic.bytes.size()) == magic.bytes) {
      return fmt::format("this is {}", magic.what);
    }
  }
  if (LooksLikeText(bytes)) {
    const std::string_view text = SkipBlanksAndComments(bytes);
    for (const Magic& start : kTexts) {
      if (text.substr(0, start.bytes.size()) == start.bytes) {
        return fmt::format("this is {}", start.what);
      }
    }
  }
  if (bytes.find("ML\xefR") != std::string::npos) {
    return "this is a StableHLO artifact (jax.export)";
  }
  if (IsBomb<pb::HloModuleProto>(bytes, max_parsed) ||
      IsBomb<pb::HloModuleProtoWithConfig>(bytes, max_parsed) ||
      IsBomb<pb::HloSnapshot>(bytes, max_parsed) || IsBomb<tpusim::Workload>(bytes, max_parsed)) {
    return fmt::format("its {} bytes would become more than {} MiB of nearly empty messages",
                       bytes.size(), max_parsed / kMiB);
  }
  if (pb::HloModuleProto module; Parse(bytes, max_parsed, &module, 10 * kMaxNesting + 100)) {
    if (HoldsModule(module)) return "its messages (tuple shapes?) are nested too deeply";
  }
  const WireScan scan = ScanWire(bytes);
  if (!scan.valid) return "these bytes are no protocol buffer";
  if (scan.only_field_1 && scan.messages_in_field_1 > 1) {
    return "this looks like a trace (Perfetto or XProf)";
  }
  if (scan.ends_inside_field) {
    return scan.fields > 0 || bytes[0] == '\x0a' || bytes[0] == '\x7a'
               ? "the file is cut short"
               : "these bytes are no protocol buffer";
  }
  return "this protocol buffer holds no HLO computation";
}

// The bare containers, in an order in which the first that fits is right.
bool ParseContainer(const std::string& bytes, int64_t max_parsed, pb::HloModuleProto* module,
                    ImportedWorkload* out) {
  if (Parse(bytes, max_parsed, module) && HoldsModule(*module)) {
    out->container = "HloModuleProto";
    return true;
  }
  // With field 2 this is a configuration, without it is an HloProto.
  if (pb::HloModuleProtoWithConfig with_config;
      Parse(bytes, max_parsed, &with_config) && HoldsModule(with_config.hlo_module())) {
    out->container = with_config.has_config() ? "HloModuleProtoWithConfig" : "HloProto";
    out->num_partitions = with_config.config().num_partitions();
    module->Swap(with_config.mutable_hlo_module());
    return true;
  }
  // HloProto may carry a buffer assignment in what would be another field.
  if (pb::HloProto hlo; Parse(bytes, max_parsed, &hlo) && HoldsModule(hlo.hlo_module())) {
    out->container = "HloProto";
    module->Swap(hlo.mutable_hlo_module());
    return true;
  }
  if (pb::HloSnapshot snapshot;
      Parse(bytes, max_parsed, &snapshot) && HoldsModule(snapshot.hlo().hlo_module())) {
    out->container = "HloSnapshot";
    module->Swap(snapshot.mutable_hlo()->mutable_hlo_module());
    return true;
  }
  return false;
}

// The side channel is the user's word: check it before anybody relies on it.
absl::Status CheckWorkload(const tpusim::Workload& workload) {
  if (workload.num_partitions() < 0) {
    return UserError(fmt::format("num_partitions is {}", workload.num_partitions()));
  }
  int64_t devices = 1;
  for (const tpusim::MeshAxis& axis : workload.mesh()) {
    if (axis.size() < 1 || axis.size() > (int64_t{1} << 31) / devices) {
      return UserError(fmt::format("mesh axis '{}' has size {}", axis.name(), axis.size()));
    }
    devices *= axis.size();
  }
  const int64_t partitions = workload.num_partitions();
  if (partitions > 0 && workload.mesh_size() > 0 && devices != partitions) {
    return UserError(
        fmt::format("the mesh has {} devices but num_partitions is {}", devices, partitions));
  }
  if (partitions > 0 && workload.coordinates_size() > 0 &&
      workload.coordinates_size() != partitions) {
    return UserError(fmt::format("{} device coordinates for {} partitions",
                                 workload.coordinates_size(), partitions));
  }
  for (const tpusim::TripCount& trip_count : workload.trip_counts()) {
    if (trip_count.count() < 0) {
      return UserError(
          fmt::format("trip count of loop '{}' is {}", trip_count.loop(), trip_count.count()));
    }
  }
  for (const tpusim::StatedKernelCost& kernel : workload.kernels()) {
    if (kernel.flops() < 0 || kernel.transcendentals() < 0 || kernel.bytes_accessed() < 0 ||
        kernel.remote_bytes() < 0) {
      return UserError(fmt::format("negative cost of kernel '{}'", kernel.name()));
    }
  }
  return absl::OkStatus();
}

// Exporters of before wrote what every kernel costs, beside what the user states of some: as a
// field that is reserved now.
void NoteCostsOfBefore(tpusim::Workload& workload) {
  const auto& unknown = workload.GetReflection()->GetUnknownFields(workload);
  for (int n = 0; n < unknown.field_count(); ++n) {
    if (!workload.GetDescriptor()->IsReservedNumber(unknown.field(n).number())) continue;
    workload.add_assumptions(
        "costs of kernels that an earlier tpusim exported are not read: bodies are priced; export "
        "again, or give --kernel-cost, if some were stated");
    return;
  }
}

// Notes what has compiled the module: the TPU compiler and XLA's partitioner leave the program of
// one device.
absl::Status NoteStage(ImportedWorkload& out) {
  RETURN_IF_ERROR(CheckExtent(*out.module));
  if (out.partitioned) return absl::OkStatus();
  if (IsCompiled(*out.module)) {
    out.compiled = out.partitioned = true;
    out.num_partitions = std::max<int64_t>(1, out.num_partitions);
    return absl::OkStatus();
  }
  if (const OtherTarget other = CompiledForOther(*out.module); other.told_by != nullptr) {
    out.compiled_for_other =
        fmt::format("compiled for {}, as {} says", other.processors, other.told_by->name());
    return absl::OkStatus();
  }
  out.partitioned = IsPartitioned(*out.module);
  return absl::OkStatus();
}

// Returns the number of devices that a module has been compiled for; 0 if it does not say so or the
// count makes no sense.
int64_t DevicesAssigned(const pb::HloModuleProto& module) {
  constexpr int64_t kMost = 1 << 24;
  const auto& assignment = module.device_assignment();
  const int64_t replicas = assignment.replica_count(), partitions = assignment.computation_count();
  if (replicas < 1 || replicas > kMost || partitions < 1 || partitions > kMost) return 0;
  return replicas * partitions;
}

// Returns how to give what `diagnosis` says the file holds.
std::string WhatToDo(std::string_view diagnosis, const std::string& file) {
  if (diagnosis.find(kStableHlo) == std::string_view::npos) return std::string(kWhatToDo);
  return fmt::format(
      "`python -m tpusim.export {} -o workload.pb` converts it, and the tpusim of the Python "
      "package takes it as it is",
      file);
}

absl::StatusOr<ImportedWorkload> ImportBytes(const std::string& bytes, int64_t max_parsed,
                                             const std::string& file) {
  if (bytes.empty()) return UserError(fmt::format("the file is empty; {}", kWhatToDo));
  if (static_cast<int64_t>(bytes.size()) > kMaxFileBytes) {
    return UserError("more than 2 GiB");
  }
  ImportedWorkload out;
  if (LooksLikeHloText(bytes)) {
    ASSIGN_OR_RETURN(ParsedText parsed, ParseHloText(bytes));
    pb::HloModuleProto& fields = parsed.module->mutable_fields();
    if (fields.has_stack_frame_index()) {
      AttributeToOwnFrames({}, *fields.mutable_stack_frame_index());
    }
    out.module = std::move(parsed.module);
    out.num_partitions = parsed.num_partitions;
    out.container = "HLO text";
    RETURN_IF_ERROR(NoteStage(out));
    return out;
  }
  pb::HloModuleProto module;
  // A field-15 string that starts the file or not: only Workload has it.
  if (Parse(bytes, max_parsed, &out.workload) && out.workload.format() == kWorkloadFormat) {
    RETURN_IF_ERROR(CheckWorkload(out.workload));
    if (out.workload.hlo_module().empty()) return UserError("the workload holds no HLO module");
    ImportedWorkload inner;
    if (!ParseContainer(out.workload.hlo_module(), max_parsed, &module, &inner)) {
      return UserError(fmt::format("the workload's HLO module does not parse: {}",
                                   Diagnose(out.workload.hlo_module(), max_parsed)));
    }
    NoteCostsOfBefore(out.workload);
    out.container = "Workload";
    out.num_partitions = out.workload.num_partitions();
    out.workload.clear_hlo_module();
  } else if (out.workload.Clear(); !ParseContainer(bytes, max_parsed, &module, &out)) {
    const std::string diagnosis = Diagnose(bytes, max_parsed);
    return UserError(fmt::format("{}; {}", diagnosis, WhatToDo(diagnosis, file)));
  }
  ASSIGN_OR_RETURN(std::optional<tpusim::Workload> attached, DetachWorkload(module));
  if (attached && out.container != "Workload") {
    RETURN_IF_ERROR(CheckWorkload(*attached));
    out.workload = *std::move(attached);
    out.num_partitions = out.workload.num_partitions();
    out.container = "partitioned " + out.container;
    out.partitioned = true;
  }
  if (module.has_stack_frame_index()) {
    AttributeToOwnFrames({out.workload.library_files().begin(), out.workload.library_files().end()},
                         *module.mutable_stack_frame_index());
  }
  if (out.num_partitions == 0) out.num_partitions = DevicesAssigned(module);
  ASSIGN_OR_RETURN(out.module, FromProto(std::move(module)));
  RETURN_IF_ERROR(NoteStage(out));
  return out;
}

absl::StatusOr<ImportedWorkload> ImportMaybeGzip(const std::string& bytes,
                                                 const std::string& file) {
  const auto size = static_cast<int64_t>(bytes.size());
  if (!IsGzip(bytes)) return ImportBytes(bytes, MaxParsedBytes(size, kParsedFloor), file);
  ASSIGN_OR_RETURN(const std::string inflated, Gunzip(bytes, kMaxInflatedBytes));
  if (IsGzip(inflated)) return UserError("gzip inside gzip; unpack it first");
  const int64_t usual = std::min(static_cast<int64_t>(inflated.size()), kUsualGzipRatio * size);
  return ImportBytes(inflated, MaxParsedBytes(usual, kGzipParsedFloor), file);
}

}  // namespace

absl::StatusOr<ImportedWorkload> Import(const std::string& bytes, const std::string& file) {
  absl::StatusOr<ImportedWorkload> imported = ImportMaybeGzip(bytes, file);
  if (imported.ok()) return imported;
  return absl::Status(imported.status().code(),
                      fmt::format("{}: {}", file, Message(imported.status())));
}

namespace {

absl::StatusOr<ImportedWorkload> ImportStream(std::istream& in, const std::string& file) {
  std::string bytes;
  std::vector<char> chunk(1 << 20);
  while (in.read(chunk.data(), static_cast<std::streamsize>(chunk.size())) || in.gcount() > 0) {
    bytes.append(chunk.data(), static_cast<size_t>(in.gcount()));
    if (static_cast<int64_t>(bytes.size()) > kMaxFileBytes) {
      return UserError(fmt::format("{}: more than 2 GiB", file));
    }
  }
  if (in.bad()) return UserError(fmt::format("{}: cannot be read", file));
  return Import(bytes, file);
}

}  // namespace

absl::StatusOr<ImportedWorkload> ImportFile(const std::string& file) {
  if (file == "-") return ImportStream(std::cin, "stdin");
  std::error_code error;
  if (std::filesystem::is_directory(file, error)) {
    ASSIGN_OR_RETURN(const std::string module, ModuleOfDump(file));
    return ImportFile(module);
  }
  std::ifstream in(file, std::ios::binary);
  if (!in) return UserError(fmt::format("{}: {}", file, std::strerror(errno)));
  return ImportStream(in, file);
}

}  // namespace tpusim::hlo
