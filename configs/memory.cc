#include "configs/memory.h"

#include <fmt/format.h>

#include <vector>

#include "configs/chip_file.h"
#include "configs/config.h"
#include "configs/names.h"

namespace tpusim::configs {

const Memory* MemoryOfParameter(std::string_view path) {
  for (const Memory& memory : kMemories) {
    if (path.starts_with(fmt::format("chip.{}.", memory.name))) return &memory;
  }
  return nullptr;
}

std::string RateParameter(const Memory& memory) {
  return fmt::format("chip.{}.bytes_per_second", memory.name);
}

std::string ChipsWith(const Memory& memory) {
  std::vector<std::string> chips;
  for (const std::string& name : ChipNames()) {
    const absl::StatusOr<ChipFile> file = LoadChip(name, "");
    if (file.ok() && memory.capacity(file->chip) > Bytes(0)) chips.push_back(name);
  }
  return Join(chips, " and ");
}

}  // namespace tpusim::configs
