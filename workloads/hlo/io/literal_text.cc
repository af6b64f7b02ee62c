#include "workloads/hlo/io/literal_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "configs/status_macros.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"

namespace tpusim::hlo {
namespace {

constexpr int64_t kManyElements = 16;

// Writes as many digits as give the same number again.
template <typename Values>
std::vector<std::string> ComplexElements(const Values& parts) {
  std::vector<std::string> elements;
  for (int n = 0; n + 1 < parts.size(); n += 2) {
    elements.push_back(fmt::format("({}, {})", parts[n], parts[n + 1]));
  }
  return elements;
}

std::vector<std::string> Elements(const pb::LiteralProto& literal, PrimitiveType type) {
  std::vector<std::string> elements;
  if (type == PrimitiveType::kC64) return ComplexElements(literal.c64s());
  if (type == PrimitiveType::kC128) return ComplexElements(literal.c128s());
  if (const auto integers = IntElements(literal)) {
    for (const int64_t value : *integers) {
      elements.push_back(type == PrimitiveType::kPred ? (value != 0 ? "true" : "false")
                         : type == PrimitiveType::kU64
                             ? fmt::format("{}", static_cast<uint64_t>(value))
                             : fmt::format("{}", value));
    }
  } else if (const auto reals = RealElements(literal)) {
    for (const double value : *reals) {
      elements.push_back(type == PrimitiveType::kF64
                             ? fmt::format("{}", value)
                             : fmt::format("{}", static_cast<float>(value)));
    }
  }
  return elements;
}

}  // namespace

std::string LiteralText(const Instruction& constant, bool large) {
  const Shape& shape = constant.shape();
  if (!shape.IsArray() || (!large && shape.ElementCount() > kManyElements)) return "{...}";
  const std::vector<std::string> elements =
      Elements(constant.attrs().literal(), shape.element_type);
  if (static_cast<int64_t>(elements.size()) != shape.ElementCount()) return "{...}";
  return shape.IsScalar() ? elements[0] : fmt::format("{{{}}}", fmt::join(elements, ", "));
}

absl::Status CheckConstantsHaveValues(const Module& module) {
  for (const Computation* computation : module.PostOrder()) {
    for (const Instruction* i : computation->instructions()) {
      if (i->opcode() != Opcode::kConstant || i->attrs().literal().has_shape()) continue;
      return UserError(fmt::format(
          "{} has no value: the text that it was read from says {{...}}; write that text with all "
          "constants (tpusim compile --print-large-constants; XLA: print_large_constants)",
          i->Describe()));
    }
  }
  return absl::OkStatus();
}

}  // namespace tpusim::hlo
