// Simulations beside measurements: the outcome of each row of a file of measurements
// (measurements.h), and mean errors of a chip by kind of program.
//
// OutcomeOf compares a report with a row; FormatValidation and ToJson print all rows. Steps of
// models have tables of their own (model_steps.h, step_categories.h). A profile that XProf took of
// a TPU is read by profile.h and compared operation by operation in profile_comparison.h. Errors
// are never averaged over the roles of rows: a row that a parameter was fitted to says nothing
// about the model.
//
// The room answers how far a simulation is from a measurement; `OutcomeOf` is its entry point.
#ifndef TPUSIM_SIM_RESULTS_MEASURED_VALIDATION_H_
#define TPUSIM_SIM_RESULTS_MEASURED_VALIDATION_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "sim/results/measured/measurements.h"
#include "sim/results/report/producer.h"
#include "sim/results/report/report.h"

namespace tpusim::results {

// Returns the report's value of what was measured. Error: the report has no such quantity.
absl::StatusOr<Outcome> OutcomeOf(const Report& report, const Measurement& measurement);

// Tables of the rows and of mean absolute errors by chip, kind and role, and what is
// pending, at most `width` wide. An upper bound has no error, but is named if it is exceeded.
std::string FormatValidation(const std::vector<Outcome>& outcomes,
                             const std::vector<PendingMeasurement>& pending, size_t width);

// Returns JSON of schema "tpusim.validation/1": the rows with simulated times and errors.
std::string ToJson(const std::vector<Outcome>& outcomes,
                   const std::vector<PendingMeasurement>& pending, const Producer& producer);

}  // namespace tpusim::results

#endif  // TPUSIM_SIM_RESULTS_MEASURED_VALIDATION_H_
