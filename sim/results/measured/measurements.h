// The rows of a file of measurements, and what became of each when it was simulated.
//
// The file (schema "tpusim.measurements/1") lists measurements with the workload
// that repeats each, and those that nothing repeats yet, with the reason. A row has
// one of three roles, and only the second says how well the model predicts:
//   calibration   a parameter of the chip was set by it
//   validation    nothing was fitted to it
//   upper bound   it contains more than the program, such as dispatch from the host
// Steps of models, of kind "training" or "inference", never calibrate (model_steps.h).
#ifndef TPUSIM_SIM_RESULTS_MEASURED_MEASUREMENTS_H_
#define TPUSIM_SIM_RESULTS_MEASURED_MEASUREMENTS_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "configs/units.h"
#include "sim/results/report/critical_path.h"

namespace tpusim::results {

inline constexpr std::string_view kStepTime = "step time";

enum class MeasurementRole { kCalibration, kValidation, kUpperBound };

// The time of a step that XProf counts in one category.
struct CategoryTime {
  std::string name;
  Picoseconds time;
};

struct Measurement {
  std::string id, name, chip;
  std::string kind;      // "matmul", "collective", ...: what averages are taken over
  std::string workload;  // relative to the file
  std::string quantity;  // "step time", or a kind of collective: the time of one
  Picoseconds measured;
  // Model FLOPs of one device, as the source counts them for its model FLOP rate; 0: not said.
  double model_flops = 0;
  std::vector<CategoryTime> categories;  // of a step (step_categories.h); empty: not measured
  Bytes peak_hbm{0};                     // of one device; 0: not measured
  std::string xla_flags;                 // that the source ran the TPU compiler with
  MeasurementRole role = MeasurementRole::kValidation;
  std::string reproducibility;  // "A": exact program and conditions are known, to "C"
  std::string source, note;
  std::vector<std::string> assumptions;  // what the source does not say, and what stands for it
};

std::string NameOf(MeasurementRole role);  // "calibration", "validation", "upper bound"

// Returns whether it is a whole step of a model.
bool IsModelStep(const Measurement& measurement);

// A measurement without a workload.
struct PendingMeasurement {
  std::string id, chip, what, measured, why, source;
};

struct Measurements {
  std::vector<Measurement> rows;
  std::vector<PendingMeasurement> pending;
};

// Reads a file. Error: it does not have the schema; the message says which row and field.
absl::StatusOr<Measurements> ParseMeasurements(const std::string& json);

struct Outcome {
  Measurement measurement;
  Picoseconds simulated;
  // Figures of the report, for steps of models.
  Bytes peak_hbm{0}, usable_hbm{0};
  FlopsPerSecond peak_flops_per_second{0};
  PathTimes critical_path{};
  std::vector<Picoseconds> categories;  // of every measured one, the simulated time

  // Returns the error relative to the measured value; negative: simulated faster.
  double Error() const;
};

}  // namespace tpusim::results

#endif  // TPUSIM_SIM_RESULTS_MEASURED_MEASUREMENTS_H_
