// Assumptions and warnings of the compiler as a whole (configs/record.h).
#ifndef TPUSIM_WORKLOADS_COMPILER_REASONS_H_
#define TPUSIM_WORKLOADS_COMPILER_REASONS_H_

#include "configs/record.h"

namespace tpusim::compiler::reasons {

// Trip counts of loops.
inline constexpr Reason kLoopStated{"trip-counts.stated", Action::kAssumed,
                                    "{loop} runs {count} times, as stated"};
inline constexpr Reason kLoopMost{
    "trip-counts.most", Action::kAssumed,
    "{loop} runs {count} times, the most that it can (--trip-count {subject}=N)"};
inline constexpr Reason kLoopAssumed{"trip-counts.assumed", Action::kAssumed,
                                     "{loop} {sentence} (--trip-count {subject}=N)"};
inline constexpr Reason kTripCountUnused{"trip-counts.no-effect", Action::kWarned,
                                         "trip count {subject}={count} has no effect: {why}"};

// Devices and axes of the mesh that are left unused.
inline constexpr Reason kDevicesIdle{
    "mesh.devices-idle", Action::kWarned,
    "{idle} of the {devices} devices of {subject} are idle: the program has {partitions}"};
inline constexpr Reason kAxisUnused{
    "mesh.axis-unused", Action::kWarned,
    "nothing is split over axis `{subject}` of the mesh: the {devices} devices along it all do "
    "the same"};

inline constexpr Reason kOrderDropped{
    "schedule.order-dropped", Action::kWarned,
    "the module comes in an order of execution (is_scheduled), which is not kept: passes have "
    "changed it, and its instructions are ordered anew"};

inline constexpr Reason kPlacesKept{
    "memory-space-assignment.places-kept", Action::kWarned,
    "the module comes compiled, with arrays in VMEM or CMEM: they stay there, and no others are "
    "put there (memory-space-assignment is not run)"};

// Sentences of the exporter, and of the choice of algorithms of collectives.
inline constexpr Reason kExporterAssumed{"exporter.assumed", Action::kAssumed, "{sentence}"};
inline constexpr Reason kAlgorithmAssumed{"collectives.assumed", Action::kAssumed, "{sentence}"};

}  // namespace tpusim::compiler::reasons

#endif  // TPUSIM_WORKLOADS_COMPILER_REASONS_H_
