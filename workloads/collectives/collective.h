// From a collective to what every member of its group does on the torus.
//
// A request is placed on physical devices already (partition ids have become
// device ids). The answer has one body per distinct role in the algorithm (the
// end of a line does less than its middle) and says which device plays which.
//
// The room answers how a collective runs on the torus and how long it takes; it does not know HLO.
// `DecideCollective` is its entry point. Colors of unequal parts, sized by a linear program, were
// tried and rejected: on slices of unequal axes they are shorter (a third on v5e 8x16), but the TPU
// compiler does nothing like it. Lists of device ids were rejected for pods: groups are iota forms,
// placed once.
#ifndef TPUSIM_WORKLOADS_COLLECTIVES_COLLECTIVE_H_
#define TPUSIM_WORKLOADS_COLLECTIVES_COLLECTIVE_H_

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "configs/config.h"
#include "configs/topology.h"
#include "models/isa/program.h"

namespace tpusim::collectives {

enum class CollectiveKind { kAllReduce, kAllGather, kReduceScatter, kAllToAll, kPermute };
// "all-reduce", as HLO says.
std::string_view KindName(CollectiveKind kind);
std::optional<CollectiveKind> KindOf(std::string_view name);
std::vector<std::string> KindNames();  // of all

struct GroupForm;

// An emitter, a strategy and a number of colors as the compiler prints them:
// "RotatedPincerEmitter", "StrategyRing", 1. Empty: nothing is stated.
struct StatedEmitter {
  std::string emitter, strategy;
  int colors = 0;
};

struct CollectiveRequest {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  std::string name;  // HLO name, for messages
  std::string axes;  // mesh axes for the report, may be empty
  // Devices of each group in group order (order matters: shard index). Groups
  // are disjoint; devices in none take no part. Unused by kPermute.
  std::vector<std::vector<int64_t>> groups;
  // The forms of the groups in the torus (FormsOf); null: not found yet.
  std::shared_ptr<const std::vector<GroupForm>> forms;
  // kPermute: (source, target) devices; self pairs are local copies.
  std::vector<std::pair<int64_t, int64_t>> pairs;
  // Bytes of one device's operand: all-reduce V, all-gather the shard (V / N),
  // reduce-scatter the full input V, all-to-all the full local buffer, permute
  // the message.
  Bytes operand_bytes;
  // All-to-all with parts that differ: what each device sends to the first, second
  // ... member of its group (itself included). Empty: equal parts of the operand.
  std::vector<Bytes> parts;
  int64_t element_bytes = 4;  // number: bytes of a word
  bool sparse_core = false;  // it adds, where something is added
  // Kernels forward what arrives (isa::Poll), and who starts it has done what comes before the
  // first transfer. Alone it takes as long as if it were not.
  bool carried = false;
  // All-gather and reduce-scatter of the last of several dimensions: the TPU
  // compiler chooses differently.
  bool minor_dimension = false;
  Bytes part_row_bytes{0};  // then: of a part, along that dimension
  isa::MemorySpace space = isa::MemorySpace::kHbm;
  // The emitter that the module states; empty: the TPU compiler's choice is derived.
  StatedEmitter stated;
};

inline constexpr char kCompilersAlgorithm[] = "compiler";
inline constexpr char kBestAlgorithm[] = "best";

// The algorithm to use: what the TPU compiler would choose, the fastest by its closed form, or a
// family by name (collectives/candidates.h lists them). The last entry that names the kind, or
// none, counts. Permutes have no choice.
struct AlgorithmOverride {
  std::string kind;  // "all-reduce", ...; "" = all
  std::string name;
};
using AlgorithmOverrides = std::vector<AlgorithmOverride>;

// NAME or KIND=NAME. Error: no such kind or algorithm; lists them.
absl::StatusOr<AlgorithmOverride> ParseAlgorithmOverride(const std::string& text);

// The algorithm of a collective, chosen before any instruction is made.
struct CollectiveDecision;
const isa::CollectiveInfo& InfoOf(const CollectiveDecision& decision);

// The resources that a collective keeps busy while it is in flight, and for how long alone: nothing
// for its latency, then, for parts of `time`, the busiest link of each direction, the way between
// the devices of a chip, the way to other slices, and a device's HBM. For the scheduler, which asks
// what can run side by side; a collective over axes of the torus is taken to use their links evenly
// from its launch to its end.
struct CollectiveUse {
  Picoseconds latency{0}, time{0};
  std::array<Picoseconds, configs::kDirections> links = {};
  Picoseconds die{0}, host{0}, hbm{0};
  BytesPerSecond rate;  // of one of its transfers
};
const CollectiveUse& UseOf(const CollectiveDecision& decision);

// Returns the assumptions of the decision, each sentence once.
const std::vector<std::string>& AssumptionsOf(const CollectiveDecision& decision);

// Error (no rule): a group that no algorithm can serve, named; an algorithm asked
// for that does not apply.
absl::StatusOr<std::shared_ptr<const CollectiveDecision>> DecideCollective(
    const configs::Config& config, const CollectiveRequest& request,
    const AlgorithmOverrides& overrides = {});

struct LoweredCollective {
  isa::CollectiveInfo info;
  std::vector<isa::SharedBody> bodies;                         // one per role
  std::shared_ptr<const std::vector<int32_t>> role_of_device;  // -1: takes no part
};

// Adds the routes and flags it needs to `program`. Equal routes are shared.
LoweredCollective LowerCollective(const configs::Config& config, const CollectiveRequest& request,
                                  const CollectiveDecision& decision, isa::PodProgram& program);

// Makes `program`, whose routes and flags it uses, run this and nothing else.
void RunAlone(const LoweredCollective& lowered, isa::PodProgram& program);

}  // namespace tpusim::collectives

#endif  // TPUSIM_WORKLOADS_COLLECTIVES_COLLECTIVE_H_
