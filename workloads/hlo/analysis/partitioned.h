// Whether XLA's partitioner has been over a module already: it is the program of one device.
//
// Dumps of XLA come from every stage. Before the partitioner shapes are those of whole arrays, and
// shardings say how devices divide them. Behind it shapes are those of one device and collectives
// connect all of them, but parameters keep the `sharding=` that they had, so that the two look
// alike. What tells them apart for certain is what the partitioner does to every module: it calls
// the entry NAME_spmd, and leaves none of the custom calls that mark shardings and the borders of
// manual regions.
#ifndef TPUSIM_WORKLOADS_HLO_ANALYSIS_PARTITIONED_H_
#define TPUSIM_WORKLOADS_HLO_ANALYSIS_PARTITIONED_H_

#include "workloads/hlo/ir/ir.h"

namespace tpusim::hlo {

bool IsPartitioned(const Module& module);

}  // namespace tpusim::hlo

#endif  // TPUSIM_WORKLOADS_HLO_ANALYSIS_PARTITIONED_H_
