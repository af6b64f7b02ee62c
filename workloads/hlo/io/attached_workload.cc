#include "workloads/hlo/io/attached_workload.h"

#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <string>
#include <utility>

#include "absl/strings/escaping.h"
#include "configs/status_macros.h"

namespace tpusim::hlo {
namespace {

constexpr char kAttribute[] = "tpusim.workload";

}  // namespace

void AttachWorkload(const tpusim::Workload& workload, pb::HloModuleProto& module) {
  tpusim::Workload without = workload;
  without.clear_hlo_module();
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  without.SerializeToCodedStream(&coded);
  coded.Trim();
  (*module.mutable_frontend_attributes()->mutable_map())[kAttribute] = absl::Base64Escape(bytes);
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
