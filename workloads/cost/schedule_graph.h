// A computation as the scheduler sees it: what every instruction costs, what it waits
// for, and how many transfers of a kind may be in flight at once.
#ifndef TPUSIM_WORKLOADS_COST_SCHEDULE_GRAPH_H_
#define TPUSIM_WORKLOADS_COST_SCHEDULE_GRAPH_H_

#include <array>
#include <vector>

#include "absl/status/status.h"
#include "configs/units.h"
#include "workloads/cost/cost_model.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/target/target.h"

namespace tpusim::cost {

// Kinds of transfers that have a limit in flight each.
enum TransferKind { kPermute, kGather, kOffLoaded, kCopy, kToHost, kFromHost, kTransferKinds };
using TransferLimits = std::array<int, kTransferKinds>;

// Returns the limits of the TPU compiler's scheduler on the chip; as many off-loaded collectives
// as the device has SparseCores.
TransferLimits LimitsOf(const target::Target& target);
TransferKind KindOf(const hlo::Instruction& start);
// A matrix product: an asynchronous all-gather moves on while it runs.
bool CarriesGathers(const hlo::Instruction& i);

struct ScheduleNode {
  enum class Role { kMain, kStart, kDone };

  hlo::Instruction* instruction = nullptr;  // null in tests
  Role role = Role::kMain;
  TransferKind kind = kPermute;  // starts and dones
  int start = -1;                // of a done: its start
  bool carries_gathers = false;  // a matrix product
  bool of_constants = false;     // zeros, counts: it waits for nothing of the program
  Work work;                     // of the main stream
  Work transfer;                 // starts only: what they set in motion
  std::vector<int> predecessors;
};

// Nodes are in an order that respects what they wait for.
struct ScheduleGraph {
  std::vector<ScheduleNode> nodes;
  TransferLimits limits = {};
};

// Sets what a node is beside its work: its instruction, its role and, of a start, what it sets in
// motion. Where the start of a done is in the graph, who builds it knows.
absl::Status SetRole(hlo::Instruction& instruction, CostModel& cost, ScheduleNode& node);

// Numbers of nodes, all of them, as they are executed.
using ScheduleOrder = std::vector<int>;

// An all-gather moves on in the loops of matrix products only: those between whose
// start and done none runs will be executed whole, where the done is (passes::DemoteAsync).
// By node, starts only.
std::vector<bool> WholeGathers(const ScheduleGraph& graph, const ScheduleOrder& order);

// The time that an order of a computation takes, with what meets on links and in memory.
//
// The main stream executes one operation after the other. A start sets its transfer in
// motion, which goes on beside the main stream until it is over; a done waits for it.
// Operations under way at the same time share the resources of their Work max-min
// fairly, by the solver of the machine's flows (models/flow/max_min.h): each proceeds at the
// part of its speed alone that its rate allows.
//
// Between two events, the ends of latencies and of work, speeds are constant. There is
// an event or two per operation, and few operations are under way at once, so a replay
// takes time in proportion to the length of the order.
struct ReplayResult {
  // The whole computation as one operation: its length and its average shares.
  Work work;
  // The time from a start until its transfer is over, by node.
  std::vector<Picoseconds> in_flight;
  // The time that the done waited for a start, by node of the start.
  std::vector<Picoseconds> stall;
};

ReplayResult Replay(const ScheduleGraph& graph, const ScheduleOrder& order);

}  // namespace tpusim::cost

#endif  // TPUSIM_WORKLOADS_COST_SCHEDULE_GRAPH_H_
