// The critical path of a step (events/causes.h) by resource, and what binds the step.
//
// The parts of the path add up to the step. The part of the machine that has most of it binds
// the step: a step gets shorter only where the path does. What is hidden beside it counts nothing,
// however busy it is. By operation it is a table of the roll-up (rollup.h).
#ifndef TPUSIM_SIM_RESULTS_REPORT_CRITICAL_PATH_H_
#define TPUSIM_SIM_RESULTS_REPORT_CRITICAL_PATH_H_

#include <array>
#include <string>
#include <string_view>

#include "configs/units.h"
#include "models/events/causes.h"
#include "sim/timeline.h"

namespace tpusim::results {

using PathTimes = std::array<Picoseconds, events::kSpentKinds>;  // by events::Spent

// Return the name of a resource: SpentText for people ("MXU", "ICI", "latency"), SpentKey for
// reports ("mxu", "ici", "latency").
std::string_view SpentText(events::Spent spent);
std::string_view SpentKey(events::Spent spent);

PathTimes PathTimesOf(const sim::Timeline& timeline);

enum class Binding { kCompute, kHbm, kIci, kDcn, kHost, kLatency };
std::string_view BindingName(Binding b);  // "compute", "hbm", ..., "launch/latency"
Binding BindingOf(const PathTimes& path);
// "ici (critical path: ICI 63.2%, MXU 30.0%, latency 6.8%)"
std::string BindingText(const PathTimes& path);

}  // namespace tpusim::results

#endif  // TPUSIM_SIM_RESULTS_REPORT_CRITICAL_PATH_H_
