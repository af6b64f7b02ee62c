// Reading chip files: the ones built in, and a user's own.
//
// A built-in file gives every parameter of chip_schema.h as an object with
// value, unit and source. A user's file names a "base" and gives what differs;
// plain numbers will do there, and the file becomes the source. Bases nest.
#ifndef TPUSIM_CONFIGS_CHIP_FILE_H_
#define TPUSIM_CONFIGS_CHIP_FILE_H_

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "configs/chip.h"

namespace tpusim::configs {

struct Provenance {
  std::string source;  // empty: the parameter has not been given
  std::string note;
};

struct ChipFile {
  ChipParams chip;
  std::vector<Provenance> provenance;  // parallel to ChipParameters()
};

// `name` is a built-in chip, or a path to a file (it ends in ".json"), relative
// to `folder` unless absolute.
absl::StatusOr<ChipFile> LoadChip(const std::string& name, const std::string& folder);

// The text of a chip file; `where` names it in messages, relative bases are
// looked up in `folder`.
absl::StatusOr<ChipFile> ParseChip(std::string_view text, const std::string& where,
                                   const std::string& folder);

// What no single parameter can check: VMEM windows fit in VMEM, devices divide
// the cores, ...
absl::Status CheckChip(const ChipParams& chip);

bool IsJsonPath(std::string_view name);
std::string FolderOf(const std::string& path);
absl::StatusOr<nlohmann::json> ReadJsonFile(const std::string& path);

}  // namespace tpusim::configs

#endif  // TPUSIM_CONFIGS_CHIP_FILE_H_
