// Between a Module and its wire message.
#ifndef TPUSIM_WORKLOADS_HLO_IO_WIRE_H_
#define TPUSIM_WORKLOADS_HLO_IO_WIRE_H_

#include <google/protobuf/message.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "workloads/hlo/ir/ir.h"

namespace tpusim::hlo {

// Builds and verifies a module from its wire message. Move the message in where
// it is not needed any more: its attributes move on into the module.
absl::StatusOr<std::unique_ptr<Module>> FromProto(pb::HloModuleProto proto);
// The wire message of a module; ids are written in XLA's 64-bit form.
pb::HloModuleProto ToProto(const Module& module);
// Writes the same bytes for the same message: protobuf's own order of map entries differs from run
// to run.
std::string SerializeDeterministic(const google::protobuf::Message& message);

}  // namespace tpusim::hlo

#endif  // TPUSIM_WORKLOADS_HLO_IO_WIRE_H_
