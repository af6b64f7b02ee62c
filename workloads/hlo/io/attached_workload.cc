#include "workloads/hlo/io/attached_workload.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "absl/strings/escaping.h"
#include "configs/status_macros.h"
#include "workloads/hlo/io/wire.h"

namespace tpusim::hlo {
namespace {

constexpr char kAttribute[] = "tpusim.workload";

}  // namespace

void AttachWorkload(const tpusim::Workload& workload, pb::HloModuleProto& module) {
  tpusim::Workload without = workload;
  without.clear_hlo_module();
  (*module.mutable_frontend_attributes()->mutable_map())[kAttribute] =
      absl::Base64Escape(SerializeDeterministic(without));
}

absl::StatusOr<std::optional<tpusim::Workload>> DetachWorkload(pb::HloModuleProto& module) {
  const auto& attributes = module.frontend_attributes().map();
  const auto found = attributes.find(kAttribute);
  if (found == attributes.end()) return std::optional<tpusim::Workload>();
  std::string bytes;
  tpusim::Workload workload;
  if (!absl::Base64Unescape(found->second, &bytes) || !workload.ParseFromString(bytes)) {
    return UserError(fmt::format("the module's attribute {} does not parse", kAttribute));
  }
  module.mutable_frontend_attributes()->mutable_map()->erase(kAttribute);
  return std::optional(std::move(workload));
}

}  // namespace tpusim::hlo
