// Reading chip files: the ones built in, and a user's own.
//
// A built-in file gives every parameter of chip_schema.h as an object with
// value, unit and source. A user's file names a "base" and gives what differs;
// plain numbers will do there, and the file becomes the source. Bases nest.
// What the TPU compiler does on the chip comes from configs/compilers: a user's chip has that of
// the built-in chip that it starts from, or of the one that its section "compiler" names as "like",
// but for the values that this section gives. A chip without a base has the values of no chip.
#ifndef TPUSIM_CONFIGS_CHIP_FILE_H_
#define TPUSIM_CONFIGS_CHIP_FILE_H_

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "configs/chip.h"
#include "configs/chip_schema.h"
#include "configs/compiler_files.h"

namespace tpusim::configs {

struct Provenance {
  std::string source;  // empty: the parameter has not been given
  std::string note;
  // Only values of the compiler have these: the nearest values seen to behave otherwise, and its
  // flag.
  std::string bracket, flag;
};

struct ChipFile {
  ChipParams chip;
  std::vector<Provenance> provenance;  // parallel to ChipParameters()
  std::string like_source;             // of chip.compiler.like
};

// `name` is a built-in chip, or a path to a file (it ends in ".json"), relative
// to `folder` unless absolute. Error: no such chip or compiler.
absl::StatusOr<ChipFile> LoadChip(const std::string& name, const std::string& folder,
                                  const std::string& compiler = CompilerName());

// The text of a chip file; `where` names it in messages, relative bases are looked up in `folder`.
absl::StatusOr<ChipFile> ParseChip(std::string_view text, const std::string& where,
                                   const std::string& folder);

// Checks what no single parameter can: VMEM windows fit in VMEM, devices divide the cores, ...
absl::Status CheckChip(const ChipParams& chip);

// The value of the compiler that a flag of it sets, "xla_..."; null if there is none.
const Parameter* ParameterOfFlag(std::string_view flag);

// The number, or that of the word, which `json` gives a parameter; nothing if it gives none.
std::optional<double> NumberOf(const Parameter& parameter, const nlohmann::json& json);

bool IsJsonPath(std::string_view name);
std::string FolderOf(const std::string& path);
absl::StatusOr<nlohmann::json> ReadJsonFile(const std::string& path);

}  // namespace tpusim::configs

#endif  // TPUSIM_CONFIGS_CHIP_FILE_H_
