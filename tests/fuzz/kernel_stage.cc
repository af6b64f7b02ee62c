#include <memory>
#include <utility>

#include "configs/chip_file.h"
#include "configs/status_macros.h"
#include "stages.h"
#include "workloads/mosaic/assembly.h"
#include "workloads/mosaic/price.h"

namespace tpusim::fuzz {
namespace {

// A call of which the body may say what it likes.
mosaic::Call AnyCall(size_t operands) {
  mosaic::Call call;
  const auto table = std::make_shared<const mosaic::Table>(mosaic::Table{{4}, {0, 0, 1, 3}});
  for (size_t n = 0; n < operands; ++n) call.operands.push_back({{4}, 4, table});
  call.results.assign(4, {{512, 512}, 2});
  static const auto* const file = new configs::ChipFile(configs::LoadChip("v5e", "").value());
  call.chip = &file->chip;
  call.weights = {1e-14, 1e-10, 1e-9, 1e-9, 1e-12, 1e-11};
  return call;
}

bool ExerciseKernel(const std::string& bytes) {
  const auto module = mosaic::ReadBody(bytes);
  if (!module.ok()) {
    TPUSIM_CHECK(!module.status().message().empty(), "a refusal without a reason");
    return false;
  }
  bool priced = false;
  for (const size_t operands : {1, 2, 3}) {
    const auto cost = mosaic::PriceOf(**module, AnyCall(operands));
    if (!cost.ok()) {
      TPUSIM_CHECK(!cost.status().message().empty(), "a refusal without a reason");
      continue;
    }
    priced = true;
    TPUSIM_CHECK(cost->flops() >= 0 && cost->bytes_accessed() >= 0, cost->ShortDebugString());
  }
  return priced;
}

}  // namespace

constexpr Stage kKernel = {"kernel", &ExerciseKernel, &MutateBytes};

}  // namespace tpusim::fuzz
