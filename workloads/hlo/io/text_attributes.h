// Attributes of an instruction in HLO text: what comes after its operands.
//
// One table has a row per attribute: its name, the opcodes that have it, the field of the message
// that holds it, and when it is printed. Reading and printing both follow it. Attributes are
// compared as bytes of the message (Instruction::AttributeBytes), which needs no list of them.
#ifndef TPUSIM_WORKLOADS_HLO_IO_TEXT_ATTRIBUTES_H_
#define TPUSIM_WORKLOADS_HLO_IO_TEXT_ATTRIBUTES_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "workloads/hlo/hlo.pb.h"
#include "workloads/hlo/io/text_cursor.h"
#include "workloads/hlo/ir/ir.h"

namespace tpusim::hlo {

// A name in the text and where it is. A callee without a name is a computation that is written out
// there, between brackets.
struct NameInText {
  std::string name;
  size_t at = 0;
};

struct TextAttributes {
  pb::HloInstructionProto proto;
  std::vector<NameInText> called;  // in the order of Instruction::called()
  std::vector<NameInText> control_predecessors;
};

// Parses `, name=value` until no comma follows, or, for an operation inside of another one's
// operands, until what follows is no attribute. Errors: a name that is not known.
absl::Status ParseAttributes(TextCursor& text, Opcode opcode, bool inside,
                             TextAttributes& attributes);

// `, name=value` of everything that the instruction states.
std::string AttributesText(const Instruction& instruction);

}  // namespace tpusim::hlo

#endif  // TPUSIM_WORKLOADS_HLO_IO_TEXT_ATTRIBUTES_H_
