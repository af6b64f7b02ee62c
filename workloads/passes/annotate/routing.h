// Rows that the devices of a mixture of experts get where tokens are not routed evenly.
//
// Experts are numbered over all devices of a group: device d holds the experts d * E / D to
// (d + 1) * E / D - 1. A share is that of an expert in all rows that the group routes; a device
// whose experts are asked for more often than the mean is the hot one, and all others wait for it.
#ifndef TPUSIM_WORKLOADS_PASSES_ANNOTATE_ROUTING_H_
#define TPUSIM_WORKLOADS_PASSES_ANNOTATE_ROUTING_H_

#include <cstdint>
#include <vector>

#include "workloads/passes/pipeline/statements.h"

namespace tpusim::passes {

// Returns a share for each of `experts`, in shares of 1 / rank^exponent. The experts asked for most
// lie on different devices: rank r is on device r % devices.
std::vector<double> ZipfShares(double exponent, int64_t experts, int64_t devices);

// Returns the shares of one layer, of which at least one count is not 0. Of several layers, which
// one operation of a loop executes, the mean of the busiest device's, of the second busiest's, ...
std::vector<double> CountedShares(const std::vector<std::vector<int64_t>>& layers, int64_t devices);

// The rows of the hot device, and what becomes of all.
struct RoutedRows {
  std::vector<int64_t> rows;  // of each expert that the hot device holds, or to each device
  int64_t hot = 0;            // device in its group
  double imbalance = 1;       // rows of the hot device over the mean, before any are dropped
  double dropped = 0;         // share of all rows that fit into no buffer
};

// Returns the rows of each expert of the hot device. `balanced` rows are a device's mean; a device
// has room for `room` rows, and drops the others.
RoutedRows RowsOfHotDevice(const std::vector<double>& shares, int64_t devices, int64_t balanced,
                           int64_t room);

// Returns the rows that each device sends to each device, `sent` of them before any are dropped.
RoutedRows RowsSentTo(const std::vector<double>& shares, int64_t devices, int64_t sent,
                      int64_t room);

}  // namespace tpusim::passes

#endif  // TPUSIM_WORKLOADS_PASSES_ANNOTATE_ROUTING_H_
