#include "configs/xla_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <optional>
#include <sstream>

#include "configs/status_macros.h"
#include "configs/units.h"

namespace tpusim::configs {
namespace {

std::optional<bool> Truth(std::string_view value) {
  if (value.empty() || value == "true" || value == "1" || value == "ENABLED") return true;
  if (value == "false" || value == "0" || value == "DISABLED") return false;
  return std::nullopt;
}

std::optional<int64_t> Count(std::string_view value) {
  int64_t count = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), count);
  if (error != std::errc() || end != value.data() + value.size()) return std::nullopt;
  return count;
}

// A flag that is true or false, and one that is a number.
struct Switch {
  std::string_view name;
  void (*apply)(bool on, ChipParams& chip);
};
struct Number {
  std::string_view name;
  int64_t least, most;
  void (*apply)(int64_t value, ChipParams& chip);
};

void SetOffload(bool on, Bytes* least) {
  // xla_tpu_sparse_core_all_reduce_offload_min_size_in_bytes is 65536 by default.
  *least = on ? Bytes(64 * kKiB) : Bytes(0);
}

constexpr std::array kSwitches = {
    Switch{"xla_enable_async_all_gather",
           [](bool on, ChipParams& chip) {
             int64_t& most = chip.compiler.gathers_in_flight;
             most = on ? std::max<int64_t>(most, 1) : 0;
           }},
    Switch{"xla_tpu_enable_windowed_einsum_for_all_gather",
           [](bool on, ChipParams& chip) { chip.compiler.windowed_gathers = on; }},
    Switch{"xla_tpu_enable_windowed_einsum_for_reduce_scatter",
           [](bool on, ChipParams& chip) { chip.compiler.windowed_scatters = on; }},
    Switch{"xla_tpu_enable_sparse_core_collective_offload_all_gather",
           [](bool on, ChipParams& chip) { SetOffload(on, &chip.sparse_core.offload_all_gather); }},
    Switch{"xla_tpu_enable_sparse_core_collective_offload_all_reduce",
           [](bool on, ChipParams& chip) { SetOffload(on, &chip.sparse_core.offload_all_reduce); }},
    Switch{"xla_tpu_enable_sparse_core_collective_offload_reduce_scatter",
           [](bool on, ChipParams& chip) {
             SetOffload(on, &chip.sparse_core.offload_reduce_scatter);
           }},
};

constexpr int64_t kMostMebibytes = int64_t{1} << 40;

constexpr std::array kNumbers = {
    Number{"xla_tpu_scoped_vmem_limit_kib", 1024, 1 << 20,
           [](int64_t kibibytes, ChipParams& chip) {
             chip.vmem.scoped_bytes = std::min(Bytes(kibibytes * kKiB), chip.vmem.bytes);
           }},
    Number{"xla_jf_spmd_threshold_for_windowed_einsum_mib", -1, kMostMebibytes,
           [](int64_t mebibytes, ChipParams& chip) {
             chip.compiler.windowed_least_bytes =
                 mebibytes < 0 ? std::nullopt : std::optional(Bytes(mebibytes * kMiB));
           }},
    Number{"xla_tpu_scheduler_percent_shared_memory_limit", 1, 100,
           [](int64_t percent, ChipParams& chip) { chip.compiler.scheduled_percent = percent; }},
    Number{
        "xla_jf_rematerialization_percent_shared_memory_limit", 1, 100,
        [](int64_t percent, ChipParams& chip) { chip.compiler.rematerialized_percent = percent; }},
    Number{"xla_tpu_host_transfer_overlap_limit", 1, 1 << 20,
           [](int64_t limit, ChipParams& chip) { chip.compiler.host_copies_in_flight = limit; }},
};

absl::Status BadValue(std::string_view name, std::string_view value, std::string_view wanted) {
  return UserError(fmt::format("--xla-flags: --{}={}: {} is wanted", name, value, wanted));
}

// Whether the flag has a counterpart.
absl::StatusOr<bool> Apply(std::string_view name, std::string_view value, ChipParams& chip) {
  for (const Switch& flag : kSwitches) {
    if (flag.name != name) continue;
    const std::optional<bool> on = Truth(value);
    if (!on.has_value()) return BadValue(name, value, "true or false");
    flag.apply(*on, chip);
    return true;
  }
  for (const Number& flag : kNumbers) {
    if (flag.name != name) continue;
    const std::optional<int64_t> number = Count(value);
    if (!number.has_value() || *number < flag.least || *number > flag.most) {
      return BadValue(name, value, fmt::format("a number from {} to {}", flag.least, flag.most));
    }
    flag.apply(*number, chip);
    return true;
  }
  return false;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ApplyXlaFlags(std::string_view text, ChipParams& chip) {
  std::vector<std::string> without_effect;
  std::istringstream words{std::string(text)};
  for (std::string word; words >> word;) {
    if (!word.starts_with("--xla")) {
      return UserError(
          fmt::format("--xla-flags: \"{}\" is no flag of the compiler, such as "
                      "--xla_enable_async_all_gather=true",
                      word));
    }
    const size_t equals = std::min(word.find('='), word.size());
    const std::string name = word.substr(2, equals - 2);
    ASSIGN_OR_RETURN(const bool applied,
                     Apply(name, word.substr(std::min(equals + 1, word.size())), chip));
    if (!applied) without_effect.push_back(name);
  }
  return without_effect;
}

}  // namespace tpusim::configs
