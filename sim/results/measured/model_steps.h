// Measured steps of models beside their simulations: training steps and inference.
//
// Sources give a step time, or a rate of model FLOPs: those that the mathematics of the model
// needs, over the step time. The model FLOPs utilization (MFU) is that rate over the chip's
// published peak. A program that is known to have run must fit into HBM.
#ifndef TPUSIM_SIM_RESULTS_MEASURED_MODEL_STEPS_H_
#define TPUSIM_SIM_RESULTS_MEASURED_MODEL_STEPS_H_

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "sim/results/measured/measurements.h"

namespace tpusim::results {

// Returns the utilization for a time that the step takes; 0 without model FLOPs.
double ModelFlopsUtilization(const Outcome& outcome, Picoseconds step);

// Returns the share of pairs of steps that the simulation puts in the measured order, among all
// pairs on one chip whose measured utilizations differ by more than a twentieth; `pairs` is their
// number.
double RankedAlike(const std::vector<Outcome>& outcomes, int64_t* pairs);

// Adds a table of the steps of models among the outcomes, if any.
void AddModelSteps(const std::vector<Outcome>& outcomes, size_t width,
                   std::vector<std::string>& lines);

// Returns utilizations, peak of HBM and critical path.
nlohmann::ordered_json ModelStepJson(const Outcome& outcome);

}  // namespace tpusim::results

#endif  // TPUSIM_SIM_RESULTS_MEASURED_MODEL_STEPS_H_
