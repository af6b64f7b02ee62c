#include "workloads/mosaic/balanced.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "workloads/mosaic/limits.h"

namespace tpusim::mosaic {
namespace {

// A dimension of an array whose block is the one that a table has for the place on an axis.
struct TabledDimension {
  size_t table = 0;  // of those that are read ahead
  int64_t block = 0, extent = 0;
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
                   const Call::Array& array, size_t axis, size_t rank,
                   std::vector<TabledDimension>* found) {
  if (indexed.operations.empty() || indexed.arguments.size() <= axis) return;
  const std::vector<const Value*>& places = indexed.operations.back()->operands;
  for (size_t d = 0; d < places.size() && d < bounds.size() && d < array.shape.size(); ++d) {
    const Operation* load = LoadBehind(places[d]);
    if (load == nullptr || Uncast(load->operands[1]) != indexed.arguments[axis]) continue;
    const auto argument = std::ranges::find(indexed.arguments, load->operands[0]);
    const auto at = static_cast<size_t>(argument - indexed.arguments.begin());
    if (argument == indexed.arguments.end() || at < rank) continue;
    found->push_back({at - rank, bounds[d], array.shape[d]});
  }
}

std::shared_ptr<const Table> TableOf(std::vector<int64_t> values) {
  return std::make_shared<const Table>(Table{{std::ssize(values)}, std::move(values)});
}

// Steps of groups of about equal size: each tile once for each group with rows in it.
struct Steps {
  std::vector<int64_t> starts, groups, tiles;
};

// Sizes that are data end groups at the end of a tile once in as many cases as a tile has rows; so no
// group does that here, and each but the last shares a tile with the next.
Steps StepsOf(int64_t rows, int64_t tile, int64_t groups) {
  Steps steps;
  const int64_t shift = std::min(tile, rows / groups) / 2;
  for (int64_t group = 0; group <= groups; ++group) {
    int64_t start = rows / groups * group + rows % groups * group / groups;
    if (group > 0 && group < groups && start % tile == 0) start += shift;
    steps.starts.push_back(start);
  }
  for (int64_t group = 0; group < groups; ++group) {
    const int64_t first = steps.starts[static_cast<size_t>(group)];
    const int64_t end = steps.starts[static_cast<size_t>(group) + 1];
    for (int64_t at = first / tile; at * tile < end && first < end; ++at) {
      steps.groups.push_back(group);
      steps.tiles.push_back(at);
    }
  }
  return steps;
}

// The tables of a grouped product in a row of operands: offsets of groups, then the group and the
// tile of every step, in the order in which `make_group_metadata` of megablox and what came of it
// return them.
struct GroupTables {
  size_t offsets = 0;  // the number of the operand; groups and tiles come behind
  int64_t groups = 0, rows = 0, tile = 0, most_steps = 0;
};

// Finds the tables of a kernel that runs its own pipeline (`pltpu.emit_pipeline`), of which the grid
// says nothing: three tables of fitting lengths, a matrix for each group among the arrays, rows in
// tiles as many as the lengths leave.
std::optional<GroupTables> FindTables(const Call& call) {
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
    GroupTables found;
    found.offsets = n;
    found.groups = call.operands[n].shape[0] - 1;
    found.most_steps = call.operands[n + 1].shape[0];
    const int64_t tiles = found.most_steps - found.groups + 1;
    if (found.groups < 2 || tiles < 1 || call.operands[n + 2].shape[0] != found.most_steps) continue;
    std::vector<Call::Array> arrays(call.operands.begin() + static_cast<int64_t>(n + kTables),
                                    call.operands.end());
    arrays.insert(arrays.end(), call.results.begin(), call.results.end());
    const auto grouped = std::ranges::find_if(arrays, [&](const Call::Array& array) {
      return array.shape.size() > 2 && array.shape[0] == found.groups;
    });
    const auto rows = std::ranges::find_if(
        arrays, [](const Call::Array& array) { return array.shape.size() == 2; });
    if (grouped == arrays.end() || rows == arrays.end()) continue;
    found.rows = rows->shape[0];
    const int64_t each = (found.rows + tiles - 1) / tiles;
    found.tile = (each + kSublanes - 1) / kSublanes * kSublanes;
    if ((found.rows + found.tile - 1) / found.tile != tiles) continue;
    return found;
  }
  return std::nullopt;
}

std::optional<BalancedCall> BalancedPipeline(const Call& call) {
  const std::optional<GroupTables> tables = FindTables(call);
  if (!tables || tables->most_steps > limits::kMostPoints) return std::nullopt;
  Steps steps = StepsOf(tables->rows, tables->tile, tables->groups);
  BalancedCall balanced;
  balanced.call = call;
  balanced.groups = tables->groups;
  balanced.steps = std::ssize(steps.tiles);
  const auto length = static_cast<size_t>(tables->most_steps);
  steps.tiles.resize(length, steps.tiles.back());
  steps.groups.resize(length, steps.groups.back());
  std::vector<Call::Array>& operands = balanced.call.operands;
  for (size_t n = 0; n < tables->offsets; ++n) {
    const bool counts = operands[n].shape == std::vector<int64_t>{1} && operands[n].table == nullptr;
    if (counts) operands[n].table = TableOf({balanced.steps});
  }
  operands[tables->offsets].table = TableOf(std::move(steps.starts));
  operands[tables->offsets + 1].table = TableOf(std::move(steps.groups));
  operands[tables->offsets + 2].table = TableOf(std::move(steps.tiles));
  return balanced;
}

}  // namespace

std::optional<BalancedCall> Balanced(const Module& module, const Call& call) {
  const Operation* main = module.Main();
  const Attribute* bounds = main == nullptr ? nullptr : main->Find("iteration_bounds");
  if (bounds == nullptr || std::ranges::count(bounds->integers, kDynamic) == 0) {
    return BalancedPipeline(call);
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
  BalancedCall balanced;
  balanced.call = call;
  const auto axis = static_cast<size_t>(dynamic - grid.begin());
  balanced.axis = axis;

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
                  axis, grid.size(), &dimensions);
  }
  const auto rows = std::ranges::find_if(dimensions, [](const auto& d) { return d.block > 1; });
  const auto group = std::ranges::find_if(dimensions, [](const auto& d) { return d.block == 1; });
  if (rows == dimensions.end() || group == dimensions.end() || rows->table == group->table ||
      rows->table >= ahead || group->table >= ahead || group->extent < 1) {
    return std::nullopt;
  }
  const auto table = [&](size_t n) -> Call::Array& { return balanced.call.operands[1 + n]; };
  const int64_t tiles = (rows->extent + rows->block - 1) / rows->block;
  const std::vector<int64_t> length = {tiles + group->extent - 1};
  if (table(rows->table).shape != length || table(group->table).shape != length ||
      length[0] > limits::kMostPoints || rows->extent < 1) {
    return std::nullopt;
  }
  Steps steps = StepsOf(rows->extent, rows->block, group->extent);
  balanced.groups = group->extent;
  balanced.steps = std::ssize(steps.tiles);
  balanced.call.operands[0].table = TableOf({balanced.steps});
  for (size_t n = 0; n < ahead; ++n) {
    const bool offsets = table(n).shape == std::vector<int64_t>{group->extent + 1};
    if (offsets && n != rows->table && n != group->table) table(n).table = TableOf(steps.starts);
  }
  // Entries beyond the last step are not read.
  steps.tiles.resize(static_cast<size_t>(length[0]), steps.tiles.back());
  steps.groups.resize(static_cast<size_t>(length[0]), steps.groups.back());
  table(rows->table).table = TableOf(std::move(steps.tiles));
  table(group->table).table = TableOf(std::move(steps.groups));
  return balanced;
}

}  // namespace tpusim::mosaic
