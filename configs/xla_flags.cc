#include "configs/xla_flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <sstream>

#include "configs/chip_file.h"
#include "configs/chip_schema.h"
#include "configs/status_macros.h"
#include "configs/units.h"

namespace tpusim::configs {
namespace {

// Collectives that go to the SparseCores if they are large enough.
struct OffLoad {
  std::string_view flag;
  Bytes SparseCoreParams::*least;
};
constexpr OffLoad kOffLoads[] = {
    {"xla_tpu_enable_sparse_core_collective_offload_all_gather",
     &SparseCoreParams::offload_all_gather},
    {"xla_tpu_enable_sparse_core_collective_offload_all_reduce",
     &SparseCoreParams::offload_all_reduce},
    {"xla_tpu_enable_sparse_core_collective_offload_reduce_scatter",
     &SparseCoreParams::offload_reduce_scatter},
};
constexpr std::string_view kScopedVmem = "xla_tpu_scoped_vmem_limit_kib";
constexpr std::string_view kPerformanceState = "xla_tpu_dvfs_p_state";
constexpr int kDefaultState = 3, kFastestState = 7;  // libtpu: states 0 to 7
constexpr std::string_view kLeastOffLoad =
    "xla_tpu_sparse_core_all_reduce_offload_min_size_in_bytes";

absl::Status BadValue(std::string_view name, std::string_view value, std::string_view wanted) {
  return UserError(fmt::format("--{}={}: {} is wanted", name, value, wanted));
}

absl::StatusOr<bool> ReadTruth(std::string_view flag, std::string_view value) {
  if (value.empty() || value == "true" || value == "1" || value == "ENABLED") return true;
  if (value == "false" || value == "0" || value == "DISABLED") return false;
  return BadValue(flag, value, "true or false");
}

// Returns how many units of the parameter one unit of the flag is, by the end of the flag's name.
double UnitOf(std::string_view flag) {
  return flag.ends_with("_kib") ? kKiB : flag.ends_with("_mib") ? kMiB : 1;
}

// A number outside of its range is taken as the end of the range, which a warning says.
absl::StatusOr<double> ReadNumber(std::string_view flag, std::string_view value, double least,
                                  double most, bool integer, std::vector<std::string>& warnings) {
  double number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  const bool good = error == std::errc() && end == value.data() + value.size() &&
                    (!integer || number == std::floor(number));
  if (!good) {
    return BadValue(flag, value,
                    fmt::format("a {}number from {} to {}", integer ? "whole " : "",
                                FormatNumber(least), FormatNumber(most)));
  }
  const double taken = std::clamp(number, least, most);
  if (taken != number) {
    warnings.push_back(fmt::format("{}={} is taken as {}, the {} that it can be", flag, value,
                                   FormatNumber(taken), number > most ? "most" : "least"));
  }
  return taken;
}

// A flag that allows something sets a count to none, or to at least one.
absl::Status SetValue(std::string_view flag, std::string_view value, const Parameter& parameter,
                      ChipParams& chip, std::vector<std::string>& warnings) {
  if (flag.find("_enable_") != std::string_view::npos) {
    ASSIGN_OR_RETURN(const bool on, ReadTruth(flag, value));
    parameter.set(chip, on ? std::max(1.0, parameter.get(chip)) : 0);
    return absl::OkStatus();
  }
  const double unit = UnitOf(flag);
  ASSIGN_OR_RETURN(const double number,
                   ReadNumber(flag, value, parameter.minimum, std::floor(parameter.maximum / unit),
                              parameter.integer, warnings));
  parameter.set(chip, number < 0 ? number : number * unit);  // -1 has no unit
  return absl::OkStatus();
}

// Whether the flag has a counterpart.
absl::StatusOr<bool> Apply(std::string_view name, std::string_view value, ChipParams& chip,
                           std::vector<std::string>& warnings) {
  for (const OffLoad& off_load : kOffLoads) {
    if (off_load.flag != name) continue;
    ASSIGN_OR_RETURN(const bool on, ReadTruth(name, value));
    chip.sparse_core.*off_load.least = on ? chip.compiler.offload_least_bytes : Bytes(0);
    return true;
  }
  if (name == kScopedVmem) {
    ASSIGN_OR_RETURN(const double kibibytes,
                     ReadNumber(name, value, 1024, 1 << 20, true, warnings));
    chip.vmem.scoped_bytes = std::min(Bytes(std::llround(kibibytes * kKiB)), chip.vmem.bytes);
    chip.vmem.reserved_bytes = chip.vmem.scoped_bytes;
    return true;
  }
  if (name == kPerformanceState) {
    ASSIGN_OR_RETURN(const double state, ReadNumber(name, value, 0, kFastestState, true, warnings));
    if (state == kFastestState) {
      chip.clock = chip.fastest_clock;
    } else if (state != kDefaultState) {
      warnings.push_back(fmt::format(
          "{}={}: the clock of this state is not published; that of state {} is taken", name, value,
          kDefaultState));
    }
    return true;
  }
  const Parameter* parameter = ParameterOfFlag(name);
  if (parameter == nullptr) return false;
  RETURN_IF_ERROR(SetValue(name, value, *parameter, chip, warnings));
  if (name == kLeastOffLoad && chip.sparse_core.offload_all_reduce > Bytes(0)) {
    chip.sparse_core.offload_all_reduce = chip.compiler.offload_least_bytes;
  }
  return true;
}

// Applies flags; errors and warnings do not say where the flags come from.
absl::StatusOr<std::vector<std::string>> ApplyAll(std::string_view text, ChipParams& chip) {
  std::vector<std::string> warnings, without_effect;
  std::istringstream words{std::string(text)};
  for (std::string word; words >> word;) {
    if (!word.starts_with("--xla")) {
      return UserError(fmt::format(
          "\"{}\" is no flag of the compiler, such as --xla_enable_async_all_gather=true", word));
    }
    const size_t equals = std::min(word.find('='), word.size());
    const std::string name = word.substr(2, equals - 2);
    ASSIGN_OR_RETURN(const bool applied,
                     Apply(name, word.substr(std::min(equals + 1, word.size())), chip, warnings));
    if (!applied) without_effect.push_back(name);
  }
  if (!without_effect.empty()) {
    warnings.push_back(fmt::format("without effect here: {}", fmt::join(without_effect, ", ")));
  }
  return warnings;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ApplyXlaFlags(std::string_view text, ChipParams& chip,
                                                       std::string_view origin) {
  absl::StatusOr<std::vector<std::string>> warnings = ApplyAll(text, chip);
  if (!warnings.ok()) {
    return absl::Status(warnings.status().code(),
                        fmt::format("{}: {}", origin, Message(warnings.status())));
  }
  for (std::string& warning : *warnings) warning = fmt::format("{}: {}", origin, warning);
  return warnings;
}

}  // namespace tpusim::configs
