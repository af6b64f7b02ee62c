// Prices the copies that a kernel's body starts by itself.
//
// The size of a slice may be computed (`pl.ds(start, size)`): what is left of a sequence, say.
// Where it is known at every point of the grid, each point has its own. Where it is data, the
// largest copy that there can be counts: no slice is longer than the dimension that it is taken
// from, at either end, nor longer than what its size is bounded by (`jnp.minimum(block, left)`).
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "workloads/mosaic/body.h"

namespace tpusim::mosaic {
namespace {

// A dimension of what is copied: its length, or the value that has it and what bounds it.
struct Extent {
  int64_t length = 0;
  const Value* size = nullptr;
};

// Finds the extents of a reference or a view of one; false: a shape that is not followed.
bool ExtentsOf(const Value* reference, std::vector<Extent>* extents) {
  const std::vector<int64_t>& shape = reference->type->shape;
  extents->clear();
  for (const int64_t length : shape) extents->push_back({length});
  if (std::find(shape.begin(), shape.end(), kDynamic) == shape.end()) return true;
  const Operation* view = reference->defined_by;
  if (view == nullptr || !IsView(view->name) || view->operands.empty()) return false;
  std::vector<Extent> before;
  if (!ExtentsOf(view->operands[0], &before)) return false;
  if (view->name == "tpu.memref_slice") {
    const std::vector<int64_t> segments = view->Segments();
    // number: operands of a copy
    if (segments.size() != 3 || before.size() != shape.size()) return false;
    auto size = static_cast<size_t>(segments[0] + segments[1]);
    for (size_t d = 0; d < shape.size(); ++d) {
      if (shape[d] != kDynamic) continue;
      if (size >= view->operands.size() || before[d].size != nullptr) return false;
      (*extents)[d] = {before[d].length, view->operands[size++]};
    }
    return true;
  }
  // Dimensions of one are dropped; the others stay as they are.
  size_t from = 0;
  for (size_t d = 0; d < shape.size(); ++d, ++from) {
    const auto differs = [&](const Extent& e) {
      return shape[d] == kDynamic ? e.size == nullptr : e.size != nullptr || e.length != shape[d];
    };
    while (from < before.size() && differs(before[from]) && before[from].length == 1) ++from;
    if (from >= before.size()) return false;
    if (shape[d] == kDynamic) (*extents)[d] = before[from];
    if (shape[d] == kDynamic && before[from].size == nullptr) return false;
  }
  return true;
}

// Returns NumPy's name of a type.
std::string NameOf(const Type& type) {
  const std::string_view name = type.name;
  if (name == "bf16") return "bfloat16";
  if (name == "i1") return "bool";
  if (name.starts_with("i")) return fmt::format("int{}", name.substr(1));
  if (name.starts_with("f8")) return fmt::format("float8_{}", name.substr(2));
  return name.starts_with("f") ? fmt::format("float{}", name.substr(1)) : std::string(name);
}

}  // namespace

// Charges what a copy moves; more than one price if its size differs between points of the grid.
void Body::Copies(const Operation& copy, Scope* scope, PointCosts* total) {
  // Source, its semaphore, target, its semaphore, device, core.
  std::vector<int64_t> segments = copy.Segments();
  segments.resize(6, 0);  // number: operands of a copy
  std::vector<const Value*> parts(segments.size(), nullptr);
  size_t at = 0;
  for (size_t n = 0; n < segments.size(); ++n) {
    if (segments[n] > 0) parts[n] = copy.operands[at];
    at += static_cast<size_t>(segments[n]);
  }
  // number: operands of a copy
  const Value *const source = parts[0], *const target = parts[2], *const device = parts[4];
  std::vector<Extent> ends[2];
  const auto is_reference = [](const Value* value) {
    return value != nullptr && value->type->kind == Type::Kind::kMemRef;
  };
  if (!is_reference(source) || !is_reference(target) || !ExtentsOf(source, &ends[0]) ||
      !ExtentsOf(target, &ends[1])) {
    Fail(copy, "such a copy");
    return;
  }
  std::vector<std::pair<const Value*, Scalar>> sizes;
  const auto size_of = [&](const Value* value) -> const Scalar& {
    return std::find_if(sizes.begin(), sizes.end(),
                        [&](const auto& size) { return size.first == value; })
        ->second;
  };
  bool all_known = true;
  for (const std::vector<Extent>& end : ends) {
    for (const Extent& extent : end) {
      if (extent.size == nullptr) continue;
      const Scalar size = SizeOf(extent.size, scope);
      all_known = all_known && size.exact != nullptr;
      sizes.emplace_back(extent.size, size);
    }
  }
  const Type* element = source->type->element;
  const std::string place = PlaceAround(copy);
  const auto price_at = [&](size_t point) {
    int64_t bytes = 0;
    std::vector<int64_t> smallest;
    for (const std::vector<Extent>& end : ends) {
      std::vector<int64_t> shape;
      int64_t elements = 1;
      for (const Extent& extent : end) {
        int64_t length = extent.length;
        if (extent.size != nullptr) {
          const Scalar& size = size_of(extent.size);
          const double most = size.exact ? static_cast<double>((*size.exact)[point]) : size.high;
          length = static_cast<int64_t>(
              std::clamp(most, 0.0, static_cast<double>(std::max<int64_t>(0, length))));
        }
        shape.push_back(length);
        elements = Times(elements, length);
      }
      const int64_t of_end = Times(elements, (BitsOf(*element) + 7) / 8);  // number: bits of a byte
      if (smallest.empty() || of_end < bytes) {
        bytes = of_end;
        smallest = shape;
      }
    }
    Price price;
    const int in_hbm = (IsInHbm(*source->type) ? 1 : 0) + (IsInHbm(*target->type) ? 1 : 0);
    price.bytes = Times(bytes, in_hbm);
    price.remote_bytes = device == nullptr ? 0 : bytes;
    if (!all_known && bytes > 0) {
      price.largest_copies.push_back(fmt::format("{}[{}]{}{}", NameOf(*element),
                                                 fmt::join(smallest, ","),
                                                 place.empty() ? "" : " at ", place));
    }
    return price;
  };
  // Points with the same sizes go together.
  std::map<Numbers, Numbers> groups;
  for (size_t point = 0; point < scope->points()->size(); ++point) {
    Numbers known;
    for (const auto& [value, size] : sizes) {
      if (size.exact) known.push_back((*size.exact)[point]);
    }
    groups[std::move(known)].push_back(static_cast<int64_t>(point));
  }
  for (const auto& [known, places] : groups) {
    total->Charge(price_at(static_cast<size_t>(places.front())),
                  sets_.Some(scope->points(), places), when_);
  }
}

}  // namespace tpusim::mosaic
