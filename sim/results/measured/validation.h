// Simulated against measured: what became of the rows of a file of measurements, and what that says
// of a chip.
#ifndef TPUSIM_SIM_RESULTS_MEASURED_VALIDATION_H_
#define TPUSIM_SIM_RESULTS_MEASURED_VALIDATION_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "sim/results/measured/measurements.h"
#include "sim/results/report/producer.h"
#include "sim/results/report/report.h"

namespace tpusim::results {

// Returns what the report of the workload says of the measurement. Error: the report has no such
// quantity.
absl::StatusOr<Outcome> OutcomeOf(const Report& report, const Measurement& measurement);

// Tables of the rows and of mean absolute errors by chip, kind and role, and what is
// pending, at most `width` wide. An upper bound has no error, but is named if it is exceeded.
std::string FormatValidation(const std::vector<Outcome>& outcomes,
                             const std::vector<Pending>& pending, size_t width);

// Schema "tpusim.validation/1": the rows with simulated times and errors.
std::string ToJson(const std::vector<Outcome>& outcomes, const std::vector<Pending>& pending,
                   const Producer& producer);

}  // namespace tpusim::results

#endif  // TPUSIM_SIM_RESULTS_MEASURED_VALIDATION_H_
