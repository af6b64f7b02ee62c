#include "workloads/mosaic/price.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <utility>

#include "configs/status_macros.h"
#include "workloads/mosaic/body.h"

namespace tpusim::mosaic {
namespace {

// Blocks whose bytes with whole axes differ from those that move by more than this share move
// otherwise than an axis at a time.
constexpr double kSameBytes = 0.01;  // number: effort: how far blocks may differ

// The bytes that a window moves between HBM and the kernel.
struct WindowPrice {
  int64_t bytes = 0;
  tpusim::KernelBlock block;
};

int64_t BytesOf(const Call::Array& array) {
  int64_t bytes = array.element_bytes;
  for (const int64_t extent : array.shape) bytes = Times(bytes, std::max<int64_t>(0, extent));
  return bytes;
}

// The lengths of the grid; those that are data count as one.
std::vector<int64_t> LengthsOf(const std::vector<int64_t>& grid) {
  std::vector<int64_t> lengths;
  for (const int64_t size : grid) lengths.push_back(size == kDynamic ? 1 : size);
  return lengths;
}

// Returns how often one of these axes of the grid goes on, the first block counted.
int64_t TimesMoved(const std::vector<int64_t>& lengths, const std::set<int>& axes) {
  int64_t moved = 1;
  for (int axis = 0; !axes.empty() && axis <= *axes.rbegin(); ++axis) {
    moved = Times(moved, lengths[static_cast<size_t>(axis)]);
  }
  return moved;
}

// Whether an index is another where this axis goes on, anywhere.
bool MovesWith(const Column& index, const std::vector<int64_t>& lengths, size_t axis,
               size_t points) {
  if (index.IsUniform()) return false;
  size_t stride = 1;
  for (size_t n = axis + 1; n < lengths.size(); ++n) stride *= static_cast<size_t>(lengths[n]);
  const auto length = static_cast<size_t>(lengths[axis]);
  for (size_t n = 0; n + stride < points; ++n) {
    if (n / stride % length + 1 < length && index[n] != index[n + stride]) return true;
  }
  return false;
}

WindowPrice PriceOf(const std::vector<int64_t>& bounds, const Call::Array& array,
                    const std::vector<std::shared_ptr<const Column>>& indices,
                    const std::vector<int64_t>& lengths, size_t points, bool output) {
  std::vector<double> elements(points, 1);
  std::vector<bool> moved(points, false);
  if (points > 0) moved[0] = true;
  double full = 1;
  std::set<int> axes;
  for (size_t d = 0; d < bounds.size() && d < array.shape.size(); ++d) {
    const int64_t length = bounds[d], extent = array.shape[d];
    const auto most = static_cast<double>(std::min(length, extent));
    full *= most;
    if (d >= indices.size() || indices[d] == nullptr) {
      // It depends on data: another block every time.
      moved.assign(points, true);
      for (double& count : elements) count *= most;
      for (size_t axis = 0; axis < lengths.size(); ++axis) axes.insert(static_cast<int>(axis));
      continue;
    }
    const Column& index = *indices[d];
    for (size_t axis = 0; axis < lengths.size(); ++axis) {
      if (MovesWith(index, lengths, axis, points)) axes.insert(static_cast<int>(axis));
    }
    for (size_t n = 0; n < points; ++n) {
      if (n > 0 && index[n] != index[n - 1]) moved[n] = true;
      // The last block of a dimension may stand out.
      const double left =
          static_cast<double>(extent) - static_cast<double>(index[n]) * static_cast<double>(length);
      elements[n] *= std::clamp<double>(left, 0, static_cast<double>(std::max<int64_t>(0, length)));
    }
  }
  const auto item = static_cast<double>(array.element_bytes);
  double total = 0;
  for (size_t n = 0; n < points; ++n) total += moved[n] ? elements[n] * item : 0;
  constexpr double kMost = 1e18;  // number: beyond any kernel
  // Blocks that a table leaves out, or that stand out, make the others smaller on average.
  const auto times = static_cast<double>(std::max<int64_t>(1, TimesMoved(lengths, axes)));
  WindowPrice price;
  price.bytes = static_cast<int64_t>(std::min(kMost, total));
  price.block.set_bytes(
      static_cast<int64_t>(std::min({kMost, full * item, std::ceil(total / times)})));
  price.block.set_output(output);
  for (const int axis : axes) price.block.add_moves_with(axis);
  return price;
}

// The arguments of a kernel in order: places in the grid, scalars read ahead, operands, results,
// scratch.
struct Arguments {
  std::vector<int64_t> grid;
  size_t bounds = 0, ahead = 0, operands = 0, scratch = 0;
};

int64_t NumberOf(const Operation& function, std::string_view attribute) {
  const Attribute* number = function.Find(attribute);
  // number: beyond any kernel
  return number == nullptr ? 0 : std::clamp<int64_t>(number->integer, 0, 1 << 20);
}

// The one block of a function; null: it has none.
const Block* BlockOf(const Operation* function) {
  if (function == nullptr || function->regions.size() != 1) return nullptr;
  return function->regions[0].blocks.size() == 1 ? &function->regions[0].blocks[0] : nullptr;
}

absl::StatusOr<Arguments> ArgumentsOf(const Operation& main, const Block& block, const Call& call) {
  Arguments a;
  if (const Attribute* bounds = main.Find("iteration_bounds")) a.grid = bounds->integers;
  for (int64_t& length : a.grid) {
    if (length != kDynamic) continue;
    const size_t operand = a.bounds++;
    if (operand >= call.operands.size()) break;
    const Table* known = call.operands[operand].table.get();
    if (known != nullptr && known->values.size() == 1) {
      length = std::max<int64_t>(0, known->values[0]);
    }
  }
  a.ahead = static_cast<size_t>(NumberOf(main, "scalar_prefetch"));
  a.scratch = static_cast<size_t>(NumberOf(main, "scratch_operands"));
  const size_t before = a.grid.size() + a.ahead;
  if (call.operands.size() < a.bounds + a.ahead || block.arguments.size() < before + a.scratch) {
    return UserError("the body of the kernel has other arguments than its call");
  }
  a.operands = block.arguments.size() - before - a.scratch;
  if (a.operands > call.operands.size() - a.bounds - a.ahead + call.results.size()) {
    return UserError("the body of the kernel has other arguments than its call");
  }
  return a;
}

// Whether nothing lets the cores of a device share the kernel: an axis of the grid that is parallel
// does (`dimension_semantics` of Pallas).
bool RunsOnOneCore(const Operation& main) {
  const Attribute* semantics = main.Find("dimension_semantics");
  return semantics != nullptr &&
         std::ranges::none_of(semantics->elements, [](const Attribute* axis) {
           return axis != nullptr && axis->text.find("parallel") != std::string::npos;
         });
}

}  // namespace

absl::StatusOr<tpusim::KernelCost> PriceOf(const Module& module, const Call& call) {
  const Operation* main = module.Main();
  const Block* block = BlockOf(main);
  if (block == nullptr) return UserError("the body of the kernel has no function");
  ASSIGN_OR_RETURN(const Arguments arguments, ArgumentsOf(*main, *block, call));
  const std::vector<int64_t>& grid = arguments.grid;
  const std::vector<int64_t> lengths = LengthsOf(grid);
  const size_t before = grid.size() + arguments.ahead;

  Body body(grid, *call.chip, call.weights);
  const auto set_tables = [&](const Block& of) {
    for (size_t n = 0; n < arguments.ahead && grid.size() + n < of.arguments.size(); ++n) {
      body.SetTable(of.arguments[grid.size() + n], call.operands[arguments.bounds + n].table);
    }
  };
  set_tables(*block);
  // Without a grid, what is in scalar memory is there as a whole.
  for (size_t n = 0; grid.empty() && n < arguments.operands; ++n) {
    const Value* argument = block->arguments[before + n];
    const size_t operand = arguments.bounds + arguments.ahead + n;
    if (argument->type->memory_space == "smem" && operand < call.operands.size()) {
      body.SetTable(argument, call.operands[operand].table);
    }
  }
  Price total = body.PriceOf(*block);
  RETURN_IF_ERROR(body.status());
  const int64_t copied = total.bytes;
  const size_t points = body.all_points()->size();

  const Attribute* windows = main->Find("window_params");
  const size_t inputs = call.operands.size() - arguments.bounds - arguments.ahead;
  std::vector<tpusim::KernelBlock> blocks;
  int64_t sizes = 0, moved = 0;
  for (size_t n = 0; n < arguments.operands; ++n) {
    const bool output = n >= inputs;
    const Call::Array& array =
        output ? call.results[n - inputs] : call.operands[arguments.bounds + arguments.ahead + n];
    const Type& type = *block->arguments[before + n]->type;
    // The body copies what it needs; semaphores are no data.
    if (IsInHbm(type) || type.memory_space.starts_with("semaphore")) continue;
    const Attribute* window =
        windows != nullptr && n < windows->elements.size() ? windows->elements[n] : nullptr;
    const Attribute* bounds = window == nullptr ? nullptr : window->Find("window_bounds");
    const Attribute* transform = window == nullptr ? nullptr : window->Find("transform_indices");
    const Block* indexed =
        transform == nullptr ? nullptr : BlockOf(module.Function(transform->text));
    WindowPrice price;
    if (bounds != nullptr && indexed != nullptr) {
      set_tables(*indexed);
      price = PriceOf(bounds->integers, array, body.ResultsOf(*indexed), lengths, points, output);
    } else {
      // All of it, once.
      price.bytes = BytesOf(array);
      price.block.set_bytes(price.bytes);
      price.block.set_output(output);
    }
    sizes = Plus(sizes, price.bytes);
    const auto& axes = price.block.moves_with();
    moved = Plus(moved, Times(price.block.bytes(),
                              TimesMoved(lengths, std::set<int>(axes.begin(), axes.end()))));
    blocks.push_back(std::move(price.block));
  }
  RETURN_IF_ERROR(body.status());
  total.bytes = Plus(total.bytes, sizes);
  for (size_t axis = grid.size(); axis-- > 0;) {
    if (grid[axis] != kDynamic) continue;
    total = total.InLoop({true, static_cast<int>(axis), call.place, std::nullopt});
  }
  for (size_t n = 0; n < arguments.ahead; ++n) {
    total.bytes = Plus(total.bytes, BytesOf(call.operands[arguments.bounds + n]));
  }
  const Attribute* name = main->Find("sym_name");
  tpusim::KernelCost cost = total.Cost(name == nullptr ? "kernel" : name->text);
  cost.set_one_core(RunsOnOneCore(*main));
  // Blocks that come back after another move more often than with whole axes.
  const double off = std::abs(static_cast<double>(moved) - static_cast<double>(sizes));
  if (!total.loops.empty() || blocks.empty() || grid.empty() || points == 0 ||
      off > kSameBytes * static_cast<double>(sizes)) {
    return cost;
  }
  for (const int64_t length : lengths) cost.add_grid(length);
  for (tpusim::KernelBlock& each : blocks) *cost.add_blocks() = std::move(each);
  if (copied > 0) {  // What the body copies by itself goes beside the blocks, over all steps.
    tpusim::KernelBlock& beside = *cost.add_blocks();
    const auto steps = static_cast<int64_t>(points);
    beside.set_bytes((copied + steps - 1) / steps);
    for (size_t axis = 0; axis < grid.size(); ++axis) {
      beside.add_moves_with(static_cast<int>(axis));
    }
  }
  return cost;
}

}  // namespace tpusim::mosaic
