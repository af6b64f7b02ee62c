// The one table of parameters: of the chip, and of what the TPU compiler does on it.
//
// A row binds a JSON path to a member of ChipParams, with its unit and the
// range of values that make sense. The loader, --set, `tpusim configs NAME` and
// the JSON schemas (chips/schema.json, compilers/schema.json) all read this table, so a parameter
// cannot exist for one of them only. Adding a parameter of the chip is: a member in chip.h,
// a row in chip_schema.cc, a value with its source in every file of configs/chips. Adding a value
// of the compiler ("compiler.NAME") is: a member in policy.h, a row in policy_schema.cc, a value
// with its source and bracket in configs/compilers.
#ifndef TPUSIM_CONFIGS_CHIP_SCHEMA_H_
#define TPUSIM_CONFIGS_CHIP_SCHEMA_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "configs/chip.h"

namespace tpusim::configs {

// Work that a program may ask of the machine. A parameter that only some work reads has no effect
// on a program without it.
enum class MachineWork {
  kProducts,  // of matrices
  kBf16Products,
  kF32Products,
  kF32HighProducts,
  kF32HighestProducts,
  kInt8Products,
  kInt4Products,
  kFp8Products,
  kInt32Products,
  kTranscendentals,
  kCrossLaneMoves,
  kKeptArrays,      // by the body of a kernel
  kArraysThere,     // that might live in the memory that the parameter is of
  kTransfersThere,  // to or from it
  kIndexedSlices,   // gathers and scatters, with a DMA per slice
  kAllGathers,
  kAllReduces,
  kReduceScatters,
  kSparseCores,
  kTransfers,  // to another device
  kTransfersWithinChip,
  kReduceAdds,  // on arrival
  kWrappedAxes,
  kUnwrappedAxes,
  kPairs,
  kPcie,
  kSlices,  // more than one
  kDcn,
};

struct Parameter {
  std::string path;         // "chip.hbm.bytes_per_second"
  std::string unit;         // as it stands in the JSON files
  std::string description;  // one line
  double minimum = 0;       // inclusive
  double maximum = 0;       // inclusive
  bool integer = false;
  double (*get)(const ChipParams&) = nullptr;  // in `unit`
  void (*set)(ChipParams&, double) = nullptr;
  std::vector<MachineWork> read_by = {};  // all of it; none: every program does
  // The value if a file leaves the parameter out: a number, or the path of the parameter whose
  // value it takes. Empty: files must have it.
  std::string fallback = {};
  // The words of a parameter whose values are words, numbered from 0; kFlagUnit has false and true,
  // other units have none.
  std::vector<std::string> words = {};
};

inline constexpr std::string_view kFlagUnit = "flag";
inline constexpr std::string_view kPolicyPrefix = "compiler.";

inline bool IsPolicy(const Parameter& parameter) {
  return parameter.path.starts_with(kPolicyPrefix);
}

// The table in the order of chip.h, then the values of the compiler in the order of policy.h.
const std::vector<Parameter>& ChipParameters();
std::vector<Parameter> PolicyParameters();  // only these, for that table
std::vector<std::string> ParameterPaths();

// Why there is no such parameter: the nearest that there is, or that it was one without effect.
std::string NoParameterText(std::string_view path);

// Returns the parameter with this path, or null.
const Parameter* FindParameter(std::string_view path);

// Checks range and integrality, then writes. The message names path, value, range and unit.
absl::Status SetParameter(const Parameter& parameter, double value, ChipParams* chip);

// Returns the value as the JSON files write it: a number, or a word.
std::string FormatValue(const Parameter& parameter, double value);
// The number of a word; nothing if the parameter has no such word.
std::optional<double> ValueOfWord(const Parameter& parameter, std::string_view text);

// The shortest text that reads back as the same number; integers that fit a line in full.
std::string FormatNumber(double value);

}  // namespace tpusim::configs

#endif  // TPUSIM_CONFIGS_CHIP_SCHEMA_H_
