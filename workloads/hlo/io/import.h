// From a file's bytes to a verified Module.
//
// The room answers how modules come in and go out: wire format and text. `ImportFile` is its entry
// point. A file is measured before it is parsed, as a few compressed bytes can become gigabytes
// (parsed_size.h).
#ifndef TPUSIM_WORKLOADS_HLO_IO_IMPORT_H_
#define TPUSIM_WORKLOADS_HLO_IO_IMPORT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/workload.pb.h"

namespace tpusim::hlo {

// The module of a file and what else the file held.
struct ImportedWorkload {
  std::unique_ptr<Module> module;
  // The Workload's side channel; empty fields when the file was a bare HLO
  // container. `workload.hlo_module` has been consumed.
  tpusim::Workload workload;
  std::string container;  // "Workload", "HloModuleProto", "HloProto", ...
  // From the container's configuration where it has one, else 0.
  int64_t num_partitions = 0;
  // The program of one device: what `tpusim compile --emit partitioned` wrote, XLA's partitioner
  // (hlo/analysis/partitioned.h) or the TPU compiler.
  bool partitioned = false;
  // Whether the TPU compiler wrote it (hlo/analysis/compiled.h).
  bool compiled = false;
  // "compiled for CPUs, as fusion.2 says": passes read that, but no TPU runs it.
  std::string compiled_for_other;
};

// Accepts a Workload, HloModuleProto, HloProto, HloModuleProtoWithConfig,
// HloSnapshot or HLO text, gzip or not. `file` is for messages only. Errors say what the
// bytes look like instead (empty, truncated, StableHLO, ...).
absl::StatusOr<ImportedWorkload> Import(const std::string& bytes, const std::string& file);
// Reads a file; "-" is stdin. Of a folder that XLA wrote (--xla_dump_to), its only module.
absl::StatusOr<ImportedWorkload> ImportFile(const std::string& file);

}  // namespace tpusim::hlo

#endif  // TPUSIM_WORKLOADS_HLO_IO_IMPORT_H_
