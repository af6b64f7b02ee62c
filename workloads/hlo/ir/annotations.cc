#include "workloads/hlo/ir/annotations.h"

#include <algorithm>

#include "absl/strings/str_split.h"
#include "configs/number_text.h"
#include "configs/status_macros.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "workloads/hlo/ir/attributes.h"

namespace tpusim::hlo {
namespace {

using annotations::DimensionOrders;
using annotations::Flag;
using annotations::Integer;
using annotations::Integers;
using annotations::Lines;
using annotations::Text;

std::string AnnotationText(const Flag& /*flag*/) { return "true"; }
std::string AnnotationText(Integer value) { return std::to_string(value); }
std::string AnnotationText(const Integers& values) {
  return fmt::format("{}", fmt::join(values, ","));
}
std::string AnnotationText(const Text& text) { return text; }
std::string AnnotationText(const Lines& lines) { return fmt::format("{}", fmt::join(lines, "\n")); }
std::string AnnotationText(const DimensionOrders& orders) {
  std::string text;
  for (const auto& [element, order] : orders) {
    text += fmt::format("{}{}:{}", text.empty() ? "" : ";", element, fmt::join(order, ","));
  }
  return text;
}

bool ParseAnnotation(std::string_view /*text*/, Flag& /*flag*/) { return true; }
bool ParseAnnotation(std::string_view text, Integer& value) {
  const std::optional<Integer> number = configs::NumberIn<Integer>(text);
  value = number.value_or(0);
  return number.has_value();
}
bool ParseAnnotation(std::string_view text, Integers& values) {
  std::optional<Integers> numbers = configs::NumbersIn(text);
  if (!numbers) return false;
  values = *std::move(numbers);
  return true;
}
bool ParseAnnotation(std::string_view text, Text& value) {
  value = text;
  return true;
}
bool ParseAnnotation(std::string_view text, Lines& lines) {
  lines = absl::StrSplit(std::string(text), '\n');
  return true;
}
bool ParseAnnotation(std::string_view text, DimensionOrders& orders) {
  const Lines entries = absl::StrSplit(std::string(text), ';');
  for (const std::string_view entry : entries) {
    const size_t colon = entry.find(':');
    Integer element = 0;
    if (colon == std::string_view::npos) return false;
    if (!ParseAnnotation(entry.substr(0, colon), element)) return false;
    std::vector<int64_t>& order = orders[element];
    const std::string_view dims = entry.substr(colon + 1);
    if (!dims.empty() && !ParseAnnotation(dims, order)) return false;
  }
  return true;
}

template <typename Value>
bool IsOfType(std::string_view text) {
  Value value;
  return ParseAnnotation(text, value);
}

template <typename Value>
constexpr std::string_view kTypeName;
template <>
constexpr std::string_view kTypeName<Flag> = "flag";
template <>
constexpr std::string_view kTypeName<Integer> = "integer";
template <>
constexpr std::string_view kTypeName<Integers> = "integers";
template <>
constexpr std::string_view kTypeName<Text> = "text";
template <>
constexpr std::string_view kTypeName<Lines> = "lines";
template <>
constexpr std::string_view kTypeName<DimensionOrders> = "dimension orders";

#define TPUSIM_ANNOTATION_ROW(key, Type, name, writer, readers, dropped_by, meaning) \
  {name, kTypeName<Type>, writer, readers, dropped_by, meaning},
constexpr AnnotationRow kAnnotations[] = {TPUSIM_ANNOTATIONS(TPUSIM_ANNOTATION_ROW)};
#undef TPUSIM_ANNOTATION_ROW

#define TPUSIM_ANNOTATION_CHECK(key, Type, name, writer, readers, dropped_by, meaning) \
  IsOfType<Type>,
constexpr bool (*kIsOfType[])(std::string_view) = {TPUSIM_ANNOTATIONS(TPUSIM_ANNOTATION_CHECK)};
#undef TPUSIM_ANNOTATION_CHECK

}  // namespace

std::span<const AnnotationRow> AnnotationTable() { return kAnnotations; }

template <typename Value>
bool Annotation<Value>::On(const Instruction& instruction) const {
  return FrontendAttribute(instruction, name).has_value();
}

template <typename Value>
std::optional<Value> Annotation<Value>::Of(const Instruction& instruction) const {
  const std::optional<std::string> text = FrontendAttribute(instruction, name);
  Value value;
  if (!text || !ParseAnnotation(*text, value)) return std::nullopt;
  return value;
}

template <typename Value>
void Annotation<Value>::Set(Instruction* instruction, const Value& value) const {
  SetFrontendAttribute(instruction, name, AnnotationText(value));
}

template <typename Value>
void Annotation<Value>::Drop(Instruction* instruction) const {
  RemoveFrontendAttribute(instruction, name);
}

template struct Annotation<Flag>;
template struct Annotation<Integer>;
template struct Annotation<Integers>;
template struct Annotation<Text>;
template struct Annotation<Lines>;
template struct Annotation<DimensionOrders>;

absl::Status CheckAnnotations(const Instruction& instruction) {
  if (!instruction.attrs().has_frontend_attributes()) return absl::OkStatus();
  std::map<std::string, std::string> sorted;
  for (const auto& [key, value] : instruction.attrs().frontend_attributes().map()) {
    if (key.starts_with("tpusim.")) sorted.emplace(key, value);
  }
  for (const auto& [key, value] : sorted) {
    const auto* row = std::ranges::find(kAnnotations, key, &AnnotationRow::name);
    if (row == std::end(kAnnotations)) {
      return UserError(fmt::format(
          "there is no annotation {} (tpusim opt --list-annotations prints those there are)", key));
    }
    if (!kIsOfType[row - std::begin(kAnnotations)](value)) {
      return UserError(fmt::format("annotation {}: '{}' is not of type {}", key, value, row->type));
    }
  }
  return absl::OkStatus();
}

}  // namespace tpusim::hlo
