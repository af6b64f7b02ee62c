// Attributes in HLO text that have a form of their own.
#ifndef TPUSIM_WORKLOADS_HLO_IO_TEXT_STRUCTURES_H_
#define TPUSIM_WORKLOADS_HLO_IO_TEXT_STRUCTURES_H_

#include "absl/status/status.h"
#include "workloads/hlo/hlo.pb.h"
#include "workloads/hlo/io/text_cursor.h"

namespace tpusim::hlo {

// {[0:8], [1:5:2]}
absl::Status ParseSlice(TextCursor& text, pb::HloInstructionProto& proto);
// 0_1x2_2_1
absl::Status ParsePadding(TextCursor& text, pb::HloInstructionProto& proto);
// {size=3x3 stride=2x1 pad=0_1x2_2}
absl::Status ParseWindow(TextCursor& text, pb::HloInstructionProto& proto);
// bf01_oi01->bf01
absl::Status ParseConvolutionLabels(TextCursor& text, pb::HloInstructionProto& proto);
// {op_name="f" source="f.py:3"}, or XLA's source_file and source_line
absl::Status ParseMetadata(TextCursor& text, pb::HloInstructionProto& proto);
// {kind="sharding", entry={...}, exit={...}}
absl::Status ParseDomain(TextCursor& text, pb::HloInstructionProto& proto);
// {{0}: (1, {}), {1}: (0, {})}
absl::Status ParseOutputAliasing(TextCursor& text, pb::HloInstructionProto& proto);
// JSON as it is, or quoted.
absl::Status ParseBackendConfig(TextCursor& text, pb::HloInstructionProto& proto);

}  // namespace tpusim::hlo

#endif  // TPUSIM_WORKLOADS_HLO_IO_TEXT_STRUCTURES_H_
