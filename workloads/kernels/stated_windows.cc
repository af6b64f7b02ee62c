#include "workloads/kernels/stated_windows.h"

#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "configs/memory.h"
#include "models/timing/kernel_timing.h"
#include "workloads/hlo/ir/attributes.h"

namespace tpusim::kernels {
namespace {

// 64-bit integers are strings in the JSON of a message. Nothing: no positive number that a grid or
// a time could have.
std::optional<int64_t> Positive(const nlohmann::json& value) {
  constexpr int64_t kMost = int64_t{1} << 48;
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

namespace {
constexpr char kTakesEstimate[] = "tpusim.takes_estimate";
}  // namespace

void TakeEstimate(hlo::Instruction* kernel) {
  hlo::SetFrontendAttribute(kernel, kTakesEstimate, "true");
}

bool TakesEstimate(const hlo::Instruction& kernel) {
  return hlo::FrontendAttribute(kernel, kTakesEstimate).has_value();
}

bool FitsStated(const isa::Kernel& kernel, const target::Target& target) {
  return timing::WindowBytes(kernel) <= configs::VmemCapacity(target.chip());
}

std::optional<StatedGrid> GridOfProduct(const StatedWindows& windows, int64_t spatial_dimensions) {
  const std::vector<int64_t>& bounds = windows.iterations;
  if (static_cast<int64_t>(bounds.size()) != 2 * spatial_dimensions + 3) return std::nullopt;
  StatedGrid grid;
  grid.columns = bounds[0];
  grid.rows = bounds[1];
  for (int64_t s = 0; s < spatial_dimensions; ++s) {
    grid.positions *= bounds[2 + s];
    grid.depth *= bounds[2 + spatial_dimensions + s];
  }
  grid.depth *= bounds.back();
  return grid;
}

std::optional<StatedGrid> GridOfExchanged(const hlo::Instruction& convolution,
                                          const StatedWindows& windows, const StatedGrid& grid,
                                          const target::Target& target) {
  const hlo::Shape& result = convolution.shape();
  const auto rank = static_cast<size_t>(result.rank());
  if (convolution.opcode() != hlo::Opcode::kConvolution || windows.result.size() != rank) {
    return std::nullopt;
  }
  const configs::VpuParams& vpu = target.chip().vpu;
  const auto blocks_along = [&](int64_t d) {
    const int64_t place = hlo::PlaceFromMinor(result, d);
    const int64_t unit = place == 0 ? vpu.lanes : place == 1 ? vpu.sublanes : 1;
    const int64_t window = windows.result[rank - 1 - static_cast<size_t>(place)];
    return CeilDiv(result.dims[static_cast<size_t>(d)], SaturatedProduct(window, unit));
  };
  const auto& numbers = convolution.attrs().convolution_dimension_numbers();
  const int64_t rows = blocks_along(numbers.output_batch_dimension());
  const int64_t columns = blocks_along(numbers.output_feature_dimension());
  const bool turned = columns == grid.rows && rows == grid.columns;
  const bool rows_along_lanes = hlo::PlaceFromMinor(result, numbers.output_batch_dimension()) == 0;
  if (turned && (rows_along_lanes || grid.rows != grid.columns)) return grid;
  if (!rows_along_lanes || columns != grid.columns || rows != grid.rows) return std::nullopt;
  StatedGrid other = grid;
  std::swap(other.columns, other.rows);
  other.rows_outside = !grid.rows_outside;
  return other;
}

}  // namespace tpusim::kernels
