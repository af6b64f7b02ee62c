// Result shapes of collectives and of their start and done forms.
#include <algorithm>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/rules/shape_rules.h"

namespace tpusim::hlo::shape_rules {
namespace {

// One dimension grows or shrinks by the group size, which shapes cannot know.
absl::Status CheckGathered(const Instruction& i, const Shape& result, bool grows) {
  const int64_t dim = OnlyDimension(i);
  const auto fits = [&](const Shape& in, const Shape& out) {
    if (!in.IsArray() || !out.IsArray() || in.rank() != out.rank() || !InRange(dim, in.rank()) ||
        in.element_type != out.element_type) {
      return false;
    }
    for (int64_t d = 0; d < in.rank(); ++d) {
      const int64_t small = grows ? in.dims[d] : out.dims[d];
      const int64_t large = grows ? out.dims[d] : in.dims[d];
      if (d == dim ? (small == 0 ? large != 0 : large % small != 0) : small != large) return false;
    }
    return true;
  };
  const bool tuple = result.IsTuple();
  TPUSIM_REQUIRE(tuple ? result.tuple.size() == i.operands().size() : i.operands().size() == 1,
                 "{} operands give {}", i.operands().size(), result.ToString());
  for (size_t n = 0; n < i.operands().size(); ++n) {
    const Shape& out = tuple ? result.tuple[n] : result;
    TPUSIM_REQUIRE(fits(In(i, n), out), "{} does not become {} along dimension {}",
                   In(i, n).ToString(), out.ToString(), dim);
  }
  return absl::OkStatus();
}

// The tuple (operands, results, contexts...) of a start: checks the operands.
absl::Status CheckStart(const Instruction& i) {
  const Shape& own = i.shape();
  TPUSIM_REQUIRE(own.IsTuple() && own.tuple.size() >= 2, "a start gives (operands, results, ...)");
  const Shape operands = i.operands().size() == 1 && !own.tuple[0].IsTuple()
                             ? In(i, 0)
                             : MakeTupleShape(OperandShapes(i, i.operands().size()));
  TPUSIM_REQUIRE(SameDims(own.tuple[0], operands), "{} does not hold the operands {}",
                 own.ToString(), operands.ToString());
  return absl::OkStatus();
}

}  // namespace

Result SameAsOperands(const Instruction& i) {
  if (i.operands().size() == 1 && i.shape().IsTuple() && !In(i, 0).IsTuple()) {
    return MakeTupleShape({In(i, 0)});
  }
  return OneOrTuple(OperandShapes(i, i.operands().size()));
}

Result AllReduce(const Instruction& i) {
  RETURN_IF_ERROR(RequireArrays(i));
  return SameAsOperands(i);
}

// The results, or (operands, results) as other starts have it.
Result AllReduceStart(const Instruction& i) {
  RETURN_IF_ERROR(RequireArrays(i));
  const Shape& own = i.shape();
  const bool pair = own.IsTuple() && own.tuple.size() == 2 && SameDims(own.tuple[0], own.tuple[1]);
  if (!pair) return SameAsOperands(i);
  if (i.operands().size() == 2) return SameAsOperands(i);  // two results of one shape
  RETURN_IF_ERROR(CheckStart(i));
  return own;
}

Result AllReduceDone(const Instruction& i) {
  const Shape& start = In(i, 0);
  const bool pair = start.IsTuple() && start.tuple.size() == 2 &&
                    SameDims(start.tuple[0], start.tuple[1]) && SameDims(i.shape(), start.tuple[1]);
  return pair ? start.tuple[1] : start;
}

Result AllGather(const Instruction& i) {
  RETURN_IF_ERROR(CheckGathered(i, i.shape(), true));
  return i.shape();
}

Result AllGatherStart(const Instruction& i) {
  RETURN_IF_ERROR(CheckStart(i));
  RETURN_IF_ERROR(CheckGathered(i, i.shape().tuple[1], true));
  return i.shape();
}

Result ReduceScatter(const Instruction& i) {
  RETURN_IF_ERROR(CheckGathered(i, i.shape(), false));
  return i.shape();
}

Result AllToAll(const Instruction& i) {
  if (Dimensions(i).empty()) {
    if (i.operands().size() == 1 && !i.shape().IsTuple()) return In(i, 0);
    return MakeTupleShape(OperandShapes(i, i.operands().size()));
  }
  TPUSIM_REQUIRE(i.operands().size() == 1 && InRange(OnlyDimension(i), In(i, 0).rank()),
                 "split dimension of {}", In(i, 0).ToString());
  return In(i, 0);
}

// Operands: input, output (rows that nothing is sent to stay as they are), then per
// group of rows the offset and size on this side, the offset on the other side
// and the size that comes back.
Result RaggedAllToAll(const Instruction& i) {
  const Shape &input = In(i, 0), &output = In(i, 1), &offsets = In(i, 2);
  bool same_rows = input.rank() == output.rank() && input.rank() > 0 &&
                   input.element_type == output.element_type;
  for (int64_t d = 1; same_rows && d < input.rank(); ++d) {
    same_rows = input.dims[d] == output.dims[d];
  }
  TPUSIM_REQUIRE(same_rows, "input {} and output {}", input.ToString(), output.ToString());
  for (size_t n = 2; n < 6; ++n) {
    TPUSIM_REQUIRE(In(i, n).dims == offsets.dims && IsIntegral(In(i, n).element_type),
                   "operand {} is {}, not integers like {}", n, In(i, n).ToString(),
                   offsets.ToString());
  }
  return output;
}

// The in-place form has a buffer and indices besides.
Result CollectivePermute(const Instruction& i) {
  const bool in_place = i.attrs().dynamic_slice_sizes_size() > 0;
  if (!in_place) return SameAsOperands(i);
  TPUSIM_REQUIRE(i.operands().size() >= 2, "{} operands of the in-place form", i.operands().size());
  return In(i, 1);
}

Result CollectivePermuteStart(const Instruction& i) {
  const Shape& own = i.shape();
  const bool in_place = i.attrs().dynamic_slice_sizes_size() > 0;
  if (in_place) {
    TPUSIM_REQUIRE(own.IsTuple() && own.tuple.size() >= 2 && i.operands().size() >= 2 &&
                       SameDims(own.tuple[1], In(i, 1)),
                   "{} does not hold the buffer", own.ToString());
    return own;
  }
  RETURN_IF_ERROR(CheckStart(i));
  TPUSIM_REQUIRE(SameDims(own.tuple[0], own.tuple[1]), "{} changes shape on the way",
                 own.ToString());
  return own;
}

}  // namespace tpusim::hlo::shape_rules
