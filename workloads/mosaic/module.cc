#include "workloads/mosaic/module.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <numeric>

namespace tpusim::mosaic {

const Attribute* Attribute::Find(std::string_view name) const {
  for (const auto& [key, value] : entries) {
    if (key == name) return value;
  }
  return nullptr;
}

const Attribute* Operation::Find(std::string_view attribute) const {
  return attributes == nullptr ? nullptr : attributes->Find(attribute);
}

std::vector<int64_t> Operation::Segments() const {
  const Attribute* sizes = Find("operandSegmentSizes");
  if (sizes == nullptr) return {};
  int64_t left = static_cast<int64_t>(operands.size());
  for (const int64_t size : sizes->integers) {
    if (size < 0 || size > left) return {};
    left -= size;
  }
  return left == 0 ? sizes->integers : std::vector<int64_t>{};
}

const Operation* Module::Function(std::string_view symbol) const {
  for (const Operation* operation : top.operations) {
    const Attribute* name = operation->Find("sym_name");
    if (operation->name == "func.func" && name != nullptr && name->text == symbol) {
      return operation;
    }
  }
  return nullptr;
}

const Operation* Module::Main() const {
  for (const Operation* operation : top.operations) {
    const bool runs = operation->Find("scalar_prefetch") != nullptr ||
                      operation->Find("iteration_bounds") != nullptr;
    if (operation->name == "func.func" && runs) {
      return operation;
    }
  }
  return nullptr;
}

int64_t BitsOf(const Type& scalar) {
  if (scalar.kind == Type::Kind::kIndex) return 32;  // number: bits of an index
  if (scalar.kind != Type::Kind::kInteger && scalar.kind != Type::Kind::kFloat) return 0;
  // "i32", "bf16", "f8E4M3FN": the first number.
  const auto digit = [](unsigned char c) { return std::isdigit(c) != 0; };
  auto at = std::find_if(scalar.name.begin(), scalar.name.end(), digit);
  int64_t bits = 0;
  // number: bits of a type
  for (; at != scalar.name.end() && digit(*at) && bits < 1024; ++at) bits = 10 * bits + (*at - '0');
  return bits;
}

bool IsInHbm(const Type& reference) {
  const std::string& space = reference.memory_space;
  return space.starts_with("any") || space.starts_with("hbm") || space.starts_with("host");
}

std::string PlaceOf(const Attribute* location) {
  // Places in places: more of them say nothing more.
  constexpr int kMostPlaces = 64;  // number: effort
  std::vector<const Attribute*> left = {location};
  for (int n = 0; !left.empty() && n < kMostPlaces; ++n) {
    const Attribute* next = left.back();
    left.pop_back();
    if (next == nullptr) continue;
    if (!next->text.empty() && next->integer > 0) {
      return fmt::format("{}:{}", next->text, next->integer);
    }
    left.insert(left.end(), next->elements.rbegin(), next->elements.rend());
  }
  return "";
}

}  // namespace tpusim::mosaic
