// Attributes of an instruction in HLO text: what comes after its operands.
#ifndef TPUSIM_WORKLOADS_HLO_IO_TEXT_ATTRIBUTES_H_
#define TPUSIM_WORKLOADS_HLO_IO_TEXT_ATTRIBUTES_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "workloads/hlo/hlo.pb.h"
#include "workloads/hlo/io/text_cursor.h"
#include "workloads/hlo/ir/opcode.h"

namespace tpusim::hlo {

// A name in the text and where it is.
struct NameInText {
  std::string name;
  size_t at = 0;
};

struct TextAttributes {
  pb::HloInstructionProto proto;
  std::vector<NameInText> called;  // in the order of Instruction::called()
  std::vector<NameInText> control_predecessors;
};

// `, name=value` until no comma follows. Errors: a name that is not known.
absl::Status ParseAttributes(TextCursor& text, Opcode opcode, TextAttributes& attributes);

// {a="x",b={y}}
absl::Status ParseFrontendAttributes(TextCursor& text, pb::FrontendAttributes& attributes);

}  // namespace tpusim::hlo

#endif  // TPUSIM_WORKLOADS_HLO_IO_TEXT_ATTRIBUTES_H_
