// Loads a Config, all that is known of a slice, from the text of --config and --set.
//
// `v5e-4x2` names a chip file (configs/chips/v5e.json) and a slice. A path to a JSON file gives
// {"chip": NAME or PATH, "slice": "4x2", "set": {...}}. A user's chip file names its base and gives
// only what differs: {"base": "v5e", "name": "fast-hbm", "chip": {"hbm": {"bytes_per_second":
// 1.6e12}}}; its path is relative to the file that names it. Chip files are embedded in the binary,
// so that an installed tpusim needs no data folder. A default for a missing value was rejected: a
// chip file without a value, its unit or its source does not load.
//
// The room answers what a slice is, down to each figure and its source; `LoadConfig` is its entry
// point.
#ifndef TPUSIM_CONFIGS_CONFIG_H_
#define TPUSIM_CONFIGS_CONFIG_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "configs/chip.h"
#include "configs/topology.h"

namespace tpusim::configs {

// One parameter as `tpusim configs NAME` shows it.
struct ParameterInfo {
  std::string path;   // "chip.hbm.bytes_per_second"
  std::string value;  // as printed, in `unit`
  std::string unit;
  std::string source;
  std::string note;  // conflicts between sources, assumptions; may be empty
  // Only values of the compiler have these: the nearest values seen to behave otherwise; its flag,
  // if any.
  std::string bracket, flag;
};

// Errors name what was wrong and the nearest valid thing: unknown chip, slice that does not exist
// (with the valid ones of that size or all), unknown --set name (with the nearest), value that is
// not a number or out of range. `overrides` are "key=value" texts in command-line order.
// `compiler` is whose policy holds, one of CompilerNames (chip_file.h); "": the newest.
absl::StatusOr<Config> LoadConfig(const std::string& text,
                                  const std::vector<std::string>& overrides,
                                  const std::string& compiler = "");

// Returns the overrides that change more than how fast the machine is: sizes, counts, and cycles of
// instructions, for which VLIW code is scheduled. Speeds are rates, latencies in time and
// efficiencies, by the units of the parameters. A rate where there was none is no speed: it says
// that the chip has this memory or this link at all.
std::vector<std::string> WithoutSpeeds(const std::vector<std::string>& overrides,
                                       const Config& config);

std::vector<std::string> ChipNames();
std::vector<std::string> SliceNames(const std::string& chip);  // "1x1", "2x2", ...
absl::StatusOr<std::vector<ParameterInfo>> DescribeChip(const std::string& chip);
// Returns the values of the newest TPU compiler for this chip.
absl::StatusOr<std::vector<ParameterInfo>> DescribeCompiler(const std::string& chip);

}  // namespace tpusim::configs

#endif  // TPUSIM_CONFIGS_CONFIG_H_
