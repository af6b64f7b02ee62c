// Trip counts of loops in JAX's linear algebra, which end when their result has converged.
//
// On TPUs eigh and svd of jax.numpy.linalg, and all that is built on them (lstsq, pinv,
// matrix_rank, polar), are loops over data, and small eigenproblems a custom call that
// iterates inside. Theory says about how many iterations these methods need; that count is assumed
// for a loop unless --trip-count states another. A loop is recognised by its op_name, which ends
// with the JAX function that wrote it (jit(qdwh)/while). Counts are written onto the instructions
// before passes change what they are derived from.
#ifndef TPUSIM_WORKLOADS_HLO_RULES_ASSUMED_TRIPS_H_
#define TPUSIM_WORKLOADS_HLO_RULES_ASSUMED_TRIPS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "workloads/hlo/ir/ir.h"

namespace tpusim::hlo {

// JAX's name for the eigenvectors and eigenvalues of small Hermitian matrices on TPUs.
inline constexpr std::string_view kEighTarget = "Eigh";
bool IsEighCall(const Instruction& instruction);

struct AssumedTrips {
  int64_t count = 0;
  // No statement about loops in general goes beyond it.
  std::optional<int64_t> most;
  // Times that each branch is taken, in a loop whose body is a choice by size; or empty.
  std::vector<int64_t> of_branches;
  // "runs 4 times, as ... is assumed to"
  std::string sentence;
};

// Writes counts onto all loops of a module that are known, and onto its Eigh calls; not onto loops
// that `counts_itself` says to have a count of their own.
void SetAssumedTrips(Module& module,
                     const std::function<bool(const Instruction& loop)>& counts_itself);

// Returns the counts that were written; nullopt: nothing is assumed.
std::optional<AssumedTrips> AssumedTripsOf(const Instruction& instruction);

// Sweeps of an Eigh call: what SetSweeps wrote, else what is assumed.
int64_t SweepsOf(const Instruction& eigh);
void SetSweeps(Instruction* eigh, int64_t sweeps);

}  // namespace tpusim::hlo

#endif  // TPUSIM_WORKLOADS_HLO_RULES_ASSUMED_TRIPS_H_
