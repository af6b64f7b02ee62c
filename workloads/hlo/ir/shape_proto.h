// Shapes between the IR and the wire.
#ifndef TPUSIM_WORKLOADS_HLO_IR_SHAPE_PROTO_H_
#define TPUSIM_WORKLOADS_HLO_IR_SHAPE_PROTO_H_

#include "absl/status/statusor.h"
#include "workloads/hlo/hlo.pb.h"
#include "workloads/hlo/ir/shape.h"

namespace tpusim::hlo {

// Errors: an element type that this version does not know, dynamic or negative
// dimensions, sizes that do not fit, a layout that is no permutation. A missing
// layout becomes the row-major one.
absl::StatusOr<Shape> ShapeFromProto(const pb::ShapeProto& proto);

// Every array gets a layout: XLA refuses shapes without.
pb::ShapeProto ShapeToProto(const Shape& shape);

// Returns whether a memory space is one of the scalar core's and its partners': counters, semaphores
// and indices. What computes one element there is an instruction of the scalar core.
bool IsScalarSpace(int64_t number);

}  // namespace tpusim::hlo

#endif  // TPUSIM_WORKLOADS_HLO_IR_SHAPE_PROTO_H_
