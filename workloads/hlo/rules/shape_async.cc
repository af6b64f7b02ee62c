// Result shapes of what runs beside the program: asynchronous calls, copies,
// transfers between programs and the host.
#include "fmt/format.h"
#include "workloads/hlo/rules/shape_rules.h"

namespace tpusim::hlo::shape_rules {
namespace {

bool IsToken(const Shape& shape) { return shape.element_type == PrimitiveType::kToken; }

absl::Status CheckToken(const Instruction& i, size_t n) {
  TPUSIM_REQUIRE(IsToken(In(i, n)), "operand {} is {}, not a token", n, In(i, n).ToString());
  return absl::OkStatus();
}

// The tuple (data, context..., token) of a send or receive in flight.
absl::Status CheckInFlight(const Shape& shape) {
  TPUSIM_REQUIRE(shape.IsTuple() && shape.tuple.size() == 3 && IsToken(shape.tuple[2]),
                 "{} is not (data, context, token)", shape.ToString());
  return absl::OkStatus();
}

}  // namespace

// ((operands), result of the callee, contexts...)
Result AsyncStart(const Instruction& i) {
  const Shape& own = i.shape();
  TPUSIM_REQUIRE(own.IsTuple() && own.tuple.size() >= 2,
                 "{} is not ((operands), result, contexts...)", own.ToString());
  TPUSIM_REQUIRE(SameDims(own.tuple[0], MakeTupleShape(OperandShapes(i, i.operands().size()))),
                 "{} does not hold the operands", own.ToString());
  const Shape& result = i.called()[0]->root()->shape();
  TPUSIM_REQUIRE(SameDims(own.tuple[1], result), "{} does not hold the result {}", own.ToString(),
                 result.ToString());
  return own;
}

Result AsyncUpdate(const Instruction& i) { return In(i, 0); }

Result DoneOfSecond(const Instruction& i) {
  TPUSIM_REQUIRE(In(i, 0).IsTuple() && In(i, 0).tuple.size() >= 2, "{} comes from no start",
                 In(i, 0).ToString());
  return In(i, 0).tuple[1];
}

// (destination, source, context)
Result CopyStart(const Instruction& i) {
  const Shape& own = i.shape();
  TPUSIM_REQUIRE(own.IsTuple() && own.tuple.size() >= 2 && SameDims(own.tuple[0], In(i, 0)) &&
                     SameDims(own.tuple[1], In(i, 0)),
                 "{} is not (destination, source, context) of {}", own.ToString(),
                 In(i, 0).ToString());
  return own;
}

Result CopyDone(const Instruction& i) {
  TPUSIM_REQUIRE(In(i, 0).IsTuple() && !In(i, 0).tuple.empty(), "{} comes from no start",
                 In(i, 0).ToString());
  return In(i, 0).tuple[0];
}

Result Send(const Instruction& i) {
  RETURN_IF_ERROR(CheckToken(i, 1));
  RETURN_IF_ERROR(CheckInFlight(i.shape()));
  TPUSIM_REQUIRE(SameDims(i.shape().tuple[0], In(i, 0)), "{} does not hold {}",
                 i.shape().ToString(), In(i, 0).ToString());
  return i.shape();
}

Result SendDone(const Instruction& i) {
  RETURN_IF_ERROR(CheckInFlight(In(i, 0)));
  return MakeTokenShape();
}

Result Recv(const Instruction& i) {
  RETURN_IF_ERROR(CheckToken(i, 0));
  RETURN_IF_ERROR(CheckInFlight(i.shape()));
  return i.shape();
}

Result RecvDone(const Instruction& i) {
  RETURN_IF_ERROR(CheckInFlight(In(i, 0)));
  return MakeTupleShape({In(i, 0).tuple[0], MakeTokenShape()});
}

// (data, token)
Result Infeed(const Instruction& i) {
  RETURN_IF_ERROR(CheckToken(i, 0));
  const Shape& own = i.shape();
  TPUSIM_REQUIRE(own.IsTuple() && own.tuple.size() == 2 && IsToken(own.tuple[1]),
                 "{} is not (data, token)", own.ToString());
  return own;
}

Result Outfeed(const Instruction& i) {
  RETURN_IF_ERROR(CheckToken(i, 1));
  return MakeTokenShape();
}

// The TPU compiler also orders behind arrays (`group_starts` of its ragged products).
Result AfterAll(const Instruction&) { return MakeTokenShape(); }

}  // namespace tpusim::hlo::shape_rules
