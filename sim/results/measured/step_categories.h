// A measured step of a model by the categories of XProf, beside the simulated one.
//
// A step time that is right may be two errors that cancel. XProf's profiles of a TPU divide the
// time of a step among categories of operations (hlo_category): products are "convolution
// fusion", elementwise kernels and reductions "loop fusion", copies "data formatting",
// collectives count with what nothing hides. The report has the same categories, so that each can
// be judged by itself. What a source does not name is not compared.
#ifndef TPUSIM_SIM_RESULTS_MEASURED_STEP_CATEGORIES_H_
#define TPUSIM_SIM_RESULTS_MEASURED_STEP_CATEGORIES_H_

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "sim/results/measured/measurements.h"
#include "sim/results/report/report.h"

namespace tpusim::results {

// Returns the simulated time of every category that was measured, in the order of the measurement;
// 0 if the step has no operation of a category.
std::vector<Picoseconds> SimulatedCategories(const Report& report, const Measurement& measurement);

// Adds a table of all steps whose categories were measured, if any, a row per category: error of
// the category, and the difference as a part of the measured step.
void AddStepCategories(const std::vector<Outcome>& outcomes, size_t width,
                       std::vector<std::string>& lines);

// [{"category", "measured_ns", "simulated_ns"}, ...]
nlohmann::ordered_json StepCategoriesJson(const Outcome& outcome);

}  // namespace tpusim::results

#endif  // TPUSIM_SIM_RESULTS_MEASURED_STEP_CATEGORIES_H_
