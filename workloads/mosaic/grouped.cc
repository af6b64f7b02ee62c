#include "workloads/mosaic/grouped.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "configs/units.h"
#include "workloads/mosaic/limits.h"

namespace tpusim::mosaic {
namespace {

// A dimension of an array whose block is the one that a table has for the place on an axis.
struct TabledDimension {
  size_t table = 0;  // of those that are read ahead
  int64_t block = 0, extent = 0;
  bool of_result = false;
};

// Returns the operation that makes a value, behind operations of scalars with a first operand that
// is one: a cast, an offset that is taken off.
const Operation* LoadBehind(const Value* value) {
  const Operation* by = value->defined_by;
  while (by != nullptr && by->name != "memref.load" && !by->operands.empty()) {
    by = by->operands[0]->defined_by;
  }
  return by != nullptr && by->name == "memref.load" && by->operands.size() == 2 ? by : nullptr;
}

const Value* Uncast(const Value* value) {
  while (value->defined_by != nullptr && value->defined_by->name == "arith.index_cast") {
    value = value->defined_by->operands[0];
  }
  return value;
}

// Adds the dimensions of one window that tables place on an axis.
void AddDimensions(const Block& indexed, const std::vector<int64_t>& bounds,
                   const Call::Array& array, bool of_result, size_t axis, size_t rank,
                   std::vector<TabledDimension>* found) {
  if (indexed.operations.empty() || indexed.arguments.size() <= axis) return;
  const std::vector<const Value*>& places = indexed.operations.back()->operands;
  for (size_t d = 0; d < places.size() && d < bounds.size() && d < array.shape.size(); ++d) {
    const Operation* load = LoadBehind(places[d]);
    if (load == nullptr || Uncast(load->operands[1]) != indexed.arguments[axis]) continue;
    const auto argument = std::ranges::find(indexed.arguments, load->operands[0]);
    const auto at = static_cast<size_t>(argument - indexed.arguments.begin());
    if (argument == indexed.arguments.end() || at < rank) continue;
    found->push_back({at - rank, bounds[d], array.shape[d], of_result});
  }
}

std::shared_ptr<const Table> TableOf(std::vector<int64_t> values) {
  return std::make_shared<const Table>(Table{{std::ssize(values)}, std::move(values)});
}

// Finds the tables of a kernel that runs its own pipeline (`pltpu.emit_pipeline`), of which the grid
// says nothing: offsets of groups, then the group and the tile of every step, in the order in which
// `make_group_metadata` of megablox and what came of it return them; a matrix for each group among
// the arrays, rows in tiles as many as the lengths leave.
std::optional<GroupedProduct> FindPipeline(const Call& call) {
  constexpr int64_t kIntegerBytes = 4;  // number: of an s32
  constexpr size_t kTables = 3;  // number: offsets, groups, tiles
  constexpr int64_t kSublanes = 8;  // number: tiles are whole registers
  const auto is_table = [&](size_t n) {
    const Call::Array& array = call.operands[n];
    return array.shape.size() == 1 && array.element_bytes == kIntegerBytes &&
           array.table == nullptr;
  };
  for (size_t n = 1; n + kTables <= call.operands.size(); ++n) {
    if (!is_table(n) || !is_table(n + 1) || !is_table(n + 2)) continue;
    GroupedProduct found;
    found.groups = found.all_groups = call.operands[n].shape[0] - 1;
    const int64_t most_steps = call.operands[n + 1].shape[0];
    const int64_t tiles = most_steps - found.groups + 1;
    if (found.groups < 2 || tiles < 1 || call.operands[n + 2].shape[0] != most_steps ||
        most_steps > limits::kMostPoints) {
      continue;
    }
    std::vector<Call::Array> arrays(call.operands.begin() + static_cast<int64_t>(n + kTables),
                                    call.operands.end());
    const int64_t inputs = std::ssize(arrays);
    arrays.insert(arrays.end(), call.results.begin(), call.results.end());
    const auto grouped = std::ranges::find_if(arrays, [&](const Call::Array& array) {
      return array.shape.size() > 2 && array.shape[0] == found.groups;
    });
    const auto rows = std::ranges::find_if(
        arrays, [](const Call::Array& array) { return array.shape.size() == 2; });
    if (grouped == arrays.end() || rows == arrays.end()) continue;
    found.rows = rows->shape[0];
    found.tile = RoundUp(CeilDiv(found.rows, tiles), kSublanes);
    if (CeilDiv(found.rows, found.tile) != tiles) continue;
    found.visits_empty = grouped - arrays.begin() >= inputs;
    found.offsets = {n};
    found.group_of_step = n + 1;
    found.tile_of_step = n + 2;
    for (size_t count = 0; count < n; ++count) {
      const Call::Array& array = call.operands[count];
      if (array.shape == std::vector<int64_t>{1} && array.table == nullptr) {
        found.counts.push_back(count);
      }
    }
    return found;
  }
  return std::nullopt;
}

}  // namespace

GroupSteps StepsOf(const GroupedProduct& product, const std::vector<int64_t>& sizes) {
  GroupSteps steps;
  int64_t start = 0;
  for (int64_t group = 0; group < std::ssize(sizes); ++group) {
    const int64_t size = std::min(sizes[static_cast<size_t>(group)], product.rows - start);
    const int64_t end = start + size;
    steps.starts.push_back(start);
    int64_t at = start / product.tile;
    const int64_t last = std::max<int64_t>(0, CeilDiv(product.rows, product.tile) - 1);
    if (size == 0 && product.visits_empty) {
      steps.groups.push_back(group);
      steps.tiles.push_back(std::min(at, last));
    }
    for (; size > 0 && at * product.tile < end; ++at) {
      steps.groups.push_back(group);
      steps.tiles.push_back(at);
    }
    start = end;
  }
  // Groups that are elsewhere have no rows.
  steps.starts.resize(static_cast<size_t>(product.all_groups) + 1, start);
  return steps;
}

std::optional<GroupedProduct> FindGroups(const Module& module, const Call& call) {
  const Operation* main = module.Main();
  const Attribute* bounds = main == nullptr ? nullptr : main->Find("iteration_bounds");
  if (bounds == nullptr || std::ranges::count(bounds->integers, kDynamic) == 0) {
    return FindPipeline(call);
  }
  const Attribute* windows = main->Find("window_params");
  const Attribute* prefetched = main->Find("scalar_prefetch");
  if (windows == nullptr || prefetched == nullptr) return std::nullopt;
  const std::vector<int64_t>& grid = bounds->integers;
  const auto dynamic = std::ranges::find(grid, kDynamic);
  const auto ahead = static_cast<size_t>(std::max<int64_t>(0, prefetched->integer));
  if (std::ranges::count(grid, kDynamic) != 1 || call.operands.size() < 1 + ahead ||
      call.operands[0].table != nullptr) {
    return std::nullopt;
  }
  const auto axis = static_cast<size_t>(dynamic - grid.begin());
  std::vector<TabledDimension> dimensions;
  const size_t inputs = call.operands.size() - 1 - ahead;
  for (size_t n = 0; n < windows->elements.size(); ++n) {
    const Attribute* window = windows->elements[n];
    const Attribute* transform = window == nullptr ? nullptr : window->Find("transform_indices");
    const Attribute* of_window = window == nullptr ? nullptr : window->Find("window_bounds");
    if (transform == nullptr || of_window == nullptr) continue;
    const Operation* function = module.Function(transform->text);
    if (function == nullptr || function->regions.size() != 1 ||
        function->regions[0].blocks.size() != 1 || n >= inputs + call.results.size()) {
      continue;
    }
    AddDimensions(function->regions[0].blocks[0], of_window->integers,
                  n < inputs ? call.operands[1 + ahead + n] : call.results[n - inputs],
                  n >= inputs, axis, grid.size(), &dimensions);
  }
  const auto rows = std::ranges::find_if(dimensions, [](const auto& d) { return d.block > 1; });
  const auto group = std::ranges::find_if(dimensions, [](const auto& d) { return d.block == 1; });
  if (rows == dimensions.end() || group == dimensions.end() || rows->table == group->table ||
      rows->table >= ahead || group->table >= ahead || group->extent < 1 || rows->extent < 1) {
    return std::nullopt;
  }
  const auto shape = [&](size_t n) -> const std::vector<int64_t>& {
    return call.operands[1 + n].shape;
  };
  const int64_t tiles = CeilDiv(rows->extent, rows->block);
  if (shape(rows->table) != shape(group->table) || shape(rows->table).size() != 1 ||
      shape(rows->table)[0] > limits::kMostPoints) {
    return std::nullopt;
  }
  GroupedProduct found;
  found.axis = axis;
  found.rows = rows->extent;
  found.tile = rows->block;
  found.groups = group->extent;
  found.all_groups = shape(rows->table)[0] - tiles + 1;
  found.visits_empty = group->of_result;
  found.counts = {0};
  found.group_of_step = 1 + group->table;
  found.tile_of_step = 1 + rows->table;
  for (size_t n = 0; n < ahead; ++n) {
    if (n == rows->table || n == group->table) continue;
    if (shape(n) == std::vector<int64_t>{found.all_groups + 1}) found.offsets.push_back(1 + n);
    if (shape(n) == std::vector<int64_t>{1}) found.firsts.push_back(1 + n);
  }
  // Tables of more groups than there are matrices belong to groups that other devices have.
  if (found.all_groups == found.groups) {
    found.firsts.clear();
    return found;
  }
  const bool some_here = found.all_groups > found.groups && !found.offsets.empty() &&
                         found.firsts.size() == 1 && found.all_groups % found.groups == 0;
  return some_here ? std::optional(std::move(found)) : std::nullopt;
}

std::vector<int64_t> OffTiles(const GroupedProduct& product, std::vector<int64_t> sizes) {
  int64_t end = 0;
  for (size_t n = 0; n + 1 < sizes.size(); ++n) {
    end += sizes[n];
    if (end == 0 || end % product.tile != 0) continue;
    const int64_t moved = std::min(product.tile, sizes[n + 1]) / 2;
    sizes[n] += moved;
    sizes[n + 1] -= moved;
    end += moved;
  }
  return sizes;
}

std::vector<int64_t> EqualSizes(const GroupedProduct& product, int64_t rows) {
  std::vector<int64_t> sizes;
  int64_t taken = 0;
  const int64_t groups = product.all_groups;
  for (int64_t group = 1; group <= product.groups; ++group) {
    const int64_t end = rows / groups * group + rows % groups * group / groups;
    sizes.push_back(end - taken);
    taken = end;
  }
  return OffTiles(product, std::move(sizes));
}

GroupedCall WithSizes(const GroupedProduct& product, const Call& call,
                      const std::vector<int64_t>& sizes) {
  GroupSteps steps = StepsOf(product, sizes);
  GroupedCall made;
  made.call = call;
  made.steps = std::ssize(steps.tiles);
  std::vector<Call::Array>& operands = made.call.operands;
  // Entries beyond the last step are not read.
  const auto length = static_cast<size_t>(operands[product.tile_of_step].shape[0]);
  steps.tiles.resize(length, steps.tiles.empty() ? 0 : steps.tiles.back());
  steps.groups.resize(length, steps.groups.empty() ? 0 : steps.groups.back());
  for (const size_t n : product.counts) operands[n].table = TableOf({made.steps});
  for (const size_t n : product.firsts) operands[n].table = TableOf({0});
  for (const size_t n : product.offsets) operands[n].table = TableOf(steps.starts);
  operands[product.group_of_step].table = TableOf(std::move(steps.groups));
  operands[product.tile_of_step].table = TableOf(std::move(steps.tiles));
  return made;
}

}  // namespace tpusim::mosaic
