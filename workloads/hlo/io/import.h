// From a file's bytes to a verified Module.
#ifndef TPUSIM_WORKLOADS_HLO_IMPORT_H_
#define TPUSIM_WORKLOADS_HLO_IMPORT_H_

#include <google/protobuf/message.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/workload.pb.h"

namespace tpusim::hlo {

// What a file held besides the module.
struct ImportedWorkload {
  std::unique_ptr<Module> module;
  // The Workload's side channel; empty fields when the file was a bare HLO
  // container. `workload.hlo_module` has been consumed.
  tpusim::Workload workload;
  std::string container;  // "Workload", "HloModuleProto", "HloProto", ...
  // From the container's configuration where it has one, else 0.
  int64_t num_partitions = 0;
};

// Accepts a Workload, HloModuleProto, HloProto, HloModuleProtoWithConfig or
// HloSnapshot, gzip or not. `file` is for messages only. Errors say what the
// bytes look like instead (empty, truncated, HLO text, StableHLO, ...).
absl::StatusOr<ImportedWorkload> Import(const std::string& bytes, const std::string& file);
absl::StatusOr<ImportedWorkload> ImportFile(const std::string& file);

// Builds and verifies a module from its wire message. Move the message in where
// it is not needed any more: its attributes move on into the module.
absl::StatusOr<std::unique_ptr<Module>> FromProto(pb::HloModuleProto proto);
// The wire message of a module; ids are written in XLA's 64-bit form.
pb::HloModuleProto ToProto(const Module& module);
// The same bytes for the same message: protobuf's own order of map entries
// differs from run to run.
std::string SerializeDeterministic(const google::protobuf::Message& message);

// Ids, shapes, arities, cycles, called computations.
absl::Status Verify(const Module& module);
// Replica groups and source-target pairs, for a program of so many partitions:
// every partition in exactly one group (or no groups at all), and source and
// target of at most one pair.
absl::Status VerifyCollectives(const Module& module, int64_t num_partitions);

// Text that reads like HLO.
std::string ToString(const Module& module);
std::string ToString(const Computation& computation);
std::string ToString(const Instruction& instruction);

}  // namespace tpusim::hlo

#endif  // TPUSIM_WORKLOADS_HLO_IMPORT_H_
