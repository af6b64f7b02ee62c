#include "workloads/kernels/tiling/stated_windows.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "configs/memory.h"
#include "models/timing/kernel_timing.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/kernels/view/product.h"

namespace tpusim::kernels {
namespace {

// 64-bit integers are strings in the JSON of a message. Nothing: no positive number that a grid or
// a time could have.
std::optional<int64_t> Positive(const nlohmann::json& value) {
  constexpr int64_t kMost = int64_t{1} << 48;  // number: more than any array has
  int64_t number = 0;
  if (value.is_number_integer()) {
    number = value.get<int64_t>();
  } else if (value.is_string()) {
    const std::string& text = value.get_ref<const std::string&>();
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  }
  if (number < 1 || number > kMost) return std::nullopt;
  return number;
}

}  // namespace

int64_t StatedWindows::Steps() const {
  int64_t steps = 1;
  for (const int64_t count : iterations) steps = SaturatedProduct(steps, count);
  return steps;
}

std::optional<StatedWindows> StatedWindowsOf(const hlo::Instruction& kernel) {
  const std::string& text = kernel.attrs().backend_config();
  if (text.find("\"window_config\"") == std::string::npos) return std::nullopt;
  const auto config = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!config.is_object()) return std::nullopt;
  const auto windows = config.find("window_config");
  if (windows == config.end() || !windows->is_object()) return std::nullopt;
  StatedWindows stated;
  const auto read = [&](const char* name, std::vector<int64_t>& counts) {
    const auto bounds = windows->find(name);
    if (bounds == windows->end() || !bounds->is_array()) return true;
    for (const nlohmann::json& bound : *bounds) {
      const std::optional<int64_t> count = Positive(bound);
      if (!count) return false;
      counts.push_back(*count);
    }
    return true;
  };
  if (!read("iteration_bounds", stated.iterations)) return std::nullopt;
  if (!read("output_window_bounds", stated.result)) stated.result.clear();
  if (const auto cycles = windows->find("estimated_cycles"); cycles != windows->end()) {
    if (const std::optional<int64_t> count = Positive(*cycles)) stated.estimate = Cycles(*count);
  }
  return stated;
}

std::optional<Bytes> StatedVmemOf(const hlo::Instruction& kernel) {
  constexpr char kUsed[] = "used_scoped_memory_configs";
  const std::string& text = kernel.attrs().backend_config();
  if (text.find(kUsed) == std::string::npos) return std::nullopt;
  const auto config = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  const auto used = config.is_object() ? config.find(kUsed) : config.end();
  if (used == config.end() || !used->is_array()) return std::nullopt;
  std::optional<Bytes> vmem;
  for (const nlohmann::json& memory : *used) {
    if (!memory.is_object()) continue;
    const int64_t space = configs::MemoryOf(configs::MemorySpace::kVmem).number;
    if (Positive(memory.value("memory_space", nlohmann::json())) != space) continue;
    const std::optional<int64_t> size = Positive(memory.value("size", nlohmann::json()));
    if (size) vmem = vmem.value_or(Bytes(0)) + Bytes(*size);
  }
  return vmem;
}

bool FitsStated(const isa::Kernel& kernel, const target::Target& target) {
  return timing::WindowBytes(kernel) <= configs::VmemCapacity(target.chip());
}

namespace {

// In how many windows the result of a convolution has dimension `d`. The windows are of its rank.
int64_t BlocksAlong(const hlo::Shape& result, const StatedWindows& windows, int64_t d,
                    const target::Target& target) {
  const configs::VpuParams& vpu = target.chip().vpu;
  const auto rank = static_cast<size_t>(result.rank());
  const int64_t place = hlo::PlaceFromMinor(result, d);
  const int64_t unit = place == 0 ? vpu.lanes : place == 1 ? vpu.sublanes : 1;
  const int64_t window = windows.result[rank - 1 - static_cast<size_t>(place)];
  return CeilDiv(result.dims[static_cast<size_t>(d)], SaturatedProduct(window, unit));
}

bool HasWindowOfResult(const hlo::Instruction& product, const StatedWindows& windows) {
  return product.opcode() == hlo::Opcode::kConvolution &&
         windows.result.size() == static_cast<size_t>(product.shape().rank());
}

}  // namespace

std::optional<StatedGrid> GridOfProduct(const hlo::Instruction& product,
                                        const StatedWindows& windows,
                                        const target::Target& target) {
  const std::vector<int64_t>& bounds = windows.iterations;
  const std::vector<Role> roles = RolesOfPositions(product);
  const size_t spatial = roles.size();
  // number: dimensions that are not spatial
  if (bounds.size() != 2 * spatial + 3) return std::nullopt;
  StatedGrid grid;
  grid.columns = bounds[0];
  // Of the batch, then of every position.
  std::vector<int64_t> blocks(bounds.begin() + 1, bounds.begin() + 2 + spatial);
  if (HasWindowOfResult(product, windows)) {
    const auto& numbers = product.attrs().convolution_dimension_numbers();
    const auto along = [&](int64_t d) { return BlocksAlong(product.shape(), windows, d, target); };
    std::vector<int64_t> of_result = {along(numbers.output_batch_dimension())};
    for (const int64_t d : numbers.output_spatial_dimensions()) of_result.push_back(along(d));
    const int64_t features = along(numbers.output_feature_dimension());
    std::vector<int64_t> turned = of_result;
    turned[0] = features;  // with the left operand in the arrays (GridOfExchanged)
    const bool is_turned =
        of_result[0] == grid.columns && std::ranges::is_permutation(turned, blocks);
    if (features == grid.columns && std::ranges::is_permutation(of_result, blocks)) {
      blocks = std::move(of_result);
    } else if (!is_turned) {
      // Emitters of batched products have the batch first.
      std::vector<int64_t> all = of_result, stated = blocks;
      all.push_back(features);
      stated.push_back(grid.columns);
      if (std::ranges::is_permutation(all, stated)) {
        grid.columns = features;
        blocks = std::move(of_result);
      }
    }
  }
  grid.rows = blocks[0];
  for (size_t s = 0; s < spatial; ++s) {
    int64_t& positions = roles[s] == Role::kBatch     ? grid.batch_positions
                         : roles[s] == Role::kColumns ? grid.column_positions
                                                      : grid.row_positions;
    positions *= blocks[1 + s];
    grid.depth *= bounds[2 + spatial + s];
  }
  grid.depth *= bounds.back();
  return grid;
}

std::optional<StatedGrid> GridOfExchanged(const hlo::Instruction& convolution,
                                          const StatedWindows& windows, const StatedGrid& grid,
                                          const target::Target& target) {
  const hlo::Shape& result = convolution.shape();
  if (!HasWindowOfResult(convolution, windows)) return std::nullopt;
  const auto& numbers = convolution.attrs().convolution_dimension_numbers();
  const auto blocks_along = [&](int64_t d) { return BlocksAlong(result, windows, d, target); };
  const int64_t rows = blocks_along(numbers.output_batch_dimension());
  const int64_t columns = blocks_along(numbers.output_feature_dimension());
  StatedGrid other = grid;
  std::swap(other.column_positions, other.row_positions);
  const bool turned = columns == grid.rows && rows == grid.columns;
  const bool rows_along_lanes = hlo::PlaceFromMinor(result, numbers.output_batch_dimension()) == 0;
  if (turned && (rows_along_lanes || grid.rows != grid.columns)) return other;
  if (!rows_along_lanes || columns != grid.columns || rows != grid.rows) return std::nullopt;
  std::swap(other.columns, other.rows);
  other.rows_outside = !grid.rows_outside;
  return other;
}

}  // namespace tpusim::kernels
