// Shapes, constants and shardings in HLO text.
#ifndef TPUSIM_WORKLOADS_HLO_IO_TEXT_VALUES_H_
#define TPUSIM_WORKLOADS_HLO_IO_TEXT_VALUES_H_

#include "absl/status/statusor.h"
#include "workloads/hlo/hlo.pb.h"
#include "workloads/hlo/io/text_cursor.h"
#include "workloads/hlo/ir/shape.h"

namespace tpusim::hlo {

// bf16[8,128]{1,0:T(8,128)(2,1)S(1)}, (f32[], s32[2]{0}), token[]
absl::StatusOr<Shape> ParseShape(TextCursor& text);

// Parses the values between the parentheses of a constant; no elements for {...}, and for types
// whose values have no text of their own (complex numbers, integers below a byte). One value without
// brackets fills the array: its literal is a scalar. Error: another number of elements.
absl::StatusOr<pb::LiteralProto> ParseLiteral(TextCursor& text, const Shape& shape);

// {devices=[2,4]<=[8]T(1,0) last_tile_dim_replicate}, {replicated}, {mesh['x'=2], [{'x'}]}
absl::StatusOr<pb::OpSharding> ParseSharding(TextCursor& text);

// {{0,1},{2,3}}, [2,4]<=[8]T(1,0), mesh['x'=2] {'x'}
absl::Status ParseReplicaGroups(TextCursor& text, pb::HloInstructionProto& attrs);

}  // namespace tpusim::hlo

#endif  // TPUSIM_WORKLOADS_HLO_IO_TEXT_VALUES_H_
