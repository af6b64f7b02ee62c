// HLO text -> Module: what the printer prints (printer.h), what XLA prints, and the short forms that
// people write: no header, no ENTRY, shapes that the operands imply, operations as operands, a
// computation where it is called, one value for a whole constant.
//
// Computations stand before those that call them and instructions before those that
// use them, as both print them. In a scheduled module the order of lines is the
// schedule of what runs as control flow. Constants that the text leaves out ({...})
// have no value afterwards; layouts that are not written are row-major.
#ifndef TPUSIM_WORKLOADS_HLO_IO_TEXT_PARSER_H_
#define TPUSIM_WORKLOADS_HLO_IO_TEXT_PARSER_H_

#include <cstdint>
#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "workloads/hlo/ir/ir.h"

namespace tpusim::hlo {

// Whether bytes of a file are HLO text rather than a message.
bool LooksLikeHloText(std::string_view bytes);

struct ParsedText {
  std::unique_ptr<Module> module;  // verified
  int64_t num_partitions = 0;      // as the text says; 0: it does not
};
// Errors name line and column, or what the verifier finds.
absl::StatusOr<ParsedText> ParseHloText(std::string_view text);

}  // namespace tpusim::hlo

#endif  // TPUSIM_WORKLOADS_HLO_IO_TEXT_PARSER_H_
