// Structures of HLO text: names, quotes, and attributes that are more than a number, a word or a
// list. Each is read and printed here.
#ifndef TPUSIM_WORKLOADS_HLO_IO_TEXT_STRUCTURES_H_
#define TPUSIM_WORKLOADS_HLO_IO_TEXT_STRUCTURES_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "workloads/hlo/hlo.pb.h"
#include "workloads/hlo/io/text_cursor.h"
#include "workloads/hlo/ir/ir.h"

namespace tpusim::hlo {

// "text", with quotes, backslashes and control characters escaped.
std::string QuotedText(const std::string& text);
// A name in a file may hold what ends a name in text: then as \x20.
std::string NameText(const std::string& name);

// Every character changed by std::toupper or std::tolower.
std::string WithCase(std::string_view text, int (*change)(int));

// {a="x",b={y}}
absl::Status ParseFrontendAttributes(TextCursor& text, pb::FrontendAttributes& attributes);
std::string FrontendAttributesText(const pb::FrontendAttributes& attributes);

// {[0:8], [1:5:2]}
absl::Status ParseSlice(TextCursor& text, pb::HloInstructionProto& proto);
std::string SliceText(const pb::HloInstructionProto& proto);
// 0_1x2_2_1; nothing where there is no dimension.
absl::Status ParsePadding(TextCursor& text, pb::HloInstructionProto& proto);
std::string PaddingText(const pb::HloInstructionProto& proto);
// {size=3x3 stride=2x1 pad=0_1x2_2}; "" where there is no window.
absl::Status ParseWindow(TextCursor& text, pb::HloInstructionProto& proto);
std::string WindowText(const pb::HloInstructionProto& proto);
// bf01_oi01->bf01
absl::Status ParseConvolutionLabels(TextCursor& text, pb::HloInstructionProto& proto);
std::string ConvolutionLabelsText(const pb::HloInstructionProto& proto);
// {{0,1},{1,0}}; "" where there are none.
absl::Status ParseSourceTargetPairs(TextCursor& text, pb::HloInstructionProto& proto);
std::string SourceTargetPairsText(const pb::HloInstructionProto& proto);
// {default,highest}: one per operand; "" where all are the default.
absl::Status ParsePrecision(TextCursor& text, pb::HloInstructionProto& proto);
std::string PrecisionText(const pb::HloInstructionProto& proto);
// dot_bf16_bf16_f32, which is read only.
absl::Status ParseDotAlgorithm(TextCursor& text, pb::HloInstructionProto& proto);
// {op_name="f" source="f.py:3"}, or XLA's source_file and source_line; "" where nothing is known.
absl::Status ParseMetadata(TextCursor& text, pb::HloInstructionProto& proto);
std::string MetadataText(const Instruction& instruction);
// {kind="sharding", entry={...}, exit={...}}
absl::Status ParseDomain(TextCursor& text, pb::HloInstructionProto& proto);
std::string DomainText(const pb::HloInstructionProto& proto);
// {{0}: (1, {}), {1}: (0, {})}; "" where there is none.
absl::Status ParseOutputAliasing(TextCursor& text, pb::HloInstructionProto& proto);
std::string OutputAliasingText(const pb::HloInstructionProto& proto);
// JSON as it is, or quoted; printed in quotes.
absl::Status ParseBackendConfig(TextCursor& text, pb::HloInstructionProto& proto);

}  // namespace tpusim::hlo

#endif  // TPUSIM_WORKLOADS_HLO_IO_TEXT_STRUCTURES_H_
