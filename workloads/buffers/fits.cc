#include "workloads/buffers/fits.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/cord.h"
#include "configs/memory.h"
#include "configs/status_macros.h"
#include "workloads/buffers/owners.h"

namespace tpusim::buffers {
namespace {

constexpr size_t kLargestShown = 5;  // number: names in a message
constexpr char kNeededHbm[] = "tpusim/needed_hbm_bytes";

// Writes memory as JAX prints it, in powers of 1024.
std::string Mebibytes(Bytes bytes) {
  const auto size = static_cast<double>(bytes.value());
  if (bytes >= Bytes(kGiB)) return fmt::format("{:.2f} GiB", size / static_cast<double>(kGiB));
  return fmt::format("{:.1f} MiB", size / static_cast<double>(kMiB));
}

// "saved activations 120.0 MiB, arguments 3.0 MiB", most first.
std::string ByOwner(const std::vector<isa::LiveArray>& live) {
  std::map<std::string, Bytes> sums;
  for (const isa::LiveArray& array : live) sums[array.owner] += array.bytes;
  std::vector<std::pair<std::string, Bytes>> owners(sums.begin(), sums.end());
  std::stable_sort(owners.begin(), owners.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string text;
  for (const auto& [owner, bytes] : owners) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", owner, Mebibytes(bytes));
  }
  return text;
}

absl::Status TooLittleHbm(const hlo::Module& module, const MemoryPlan& plan,
                          const target::Target& target) {
  const Bytes usable = target.Usable(hlo::kHbmSpace), peak = plan.PeakOf(hlo::kHbmSpace);
  const std::vector<isa::LiveArray> live = FindOwners(module, plan).at_peak;
  std::string largest;
  for (size_t n = 0; n < live.size() && n < kLargestShown; ++n) {
    const isa::LiveArray& array = live[n];
    largest += fmt::format("{}{} {} {} ({}{}{})", n == 0 ? "" : ", ", array.name, array.shape,
                           Mebibytes(array.bytes), array.owner, array.source.empty() ? "" : ", ",
                           array.source);
  }
  std::string holes;
  if (plan.fragmentation > Bytes(0)) {
    holes = fmt::format(", holes between arrays {}", Mebibytes(plan.fragmentation));
  }
  absl::Status status = absl::ResourceExhaustedError(fmt::format(
      "the program does not fit in HBM: it needs {} per device at its peak{}, {} more than the {} "
      "that {} has for programs; {}{}; largest arrays: {}; shard them over more devices or donate "
      "arguments",
      Mebibytes(peak),
      plan.peak_at == nullptr ? "" : fmt::format(" ({})", plan.peak_at->Describe()),
      Mebibytes(peak - usable), Mebibytes(usable), target.chip().name, ByOwner(live), holes,
      largest));
  status.SetPayload(kNeededHbm, absl::Cord(fmt::format("{}", peak.value())));
  return status;
}

}  // namespace

std::optional<Bytes> NeededHbm(const absl::Status& status) {
  const auto needed = status.GetPayload(kNeededHbm);
  if (!needed) return std::nullopt;
  return Bytes(std::stoll(std::string(*needed)));
}

absl::Status CheckFits(const hlo::Module& module, const MemoryPlan& plan,
                       const target::Target& target) {
  for (const auto& [space, most] : plan.peaks) {
    if (most <= target.Usable(space)) continue;
    if (space == hlo::kHbmSpace) return TooLittleHbm(module, plan, target);
    return UserError(fmt::format(
        "what the program's layouts place in {} (S({})) does not fit: {} at its peak, {} has {}",
        configs::MemoryOfNumber(space).title, space, Mebibytes(most), target.chip().name,
        Mebibytes(target.Usable(space))));
  }
  return absl::OkStatus();
}

}  // namespace tpusim::buffers
