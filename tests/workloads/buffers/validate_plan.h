// Whether a memory plan is right, found by running the schedule on a memory that only remembers who
// wrote what.
//
// Every array has contents of its own, which its maker writes into the buffer that the plan gives
// it. Whatever needs the array must find these contents there, unharmed by what was written since:
// results in the places of arguments, updates in place, the next iteration of a loop, which is run
// twice. Buffers may not overlap while they are allocated, nor be used while they are not, and the
// peaks of the plan must be what was needed. Nothing of how a plan is made is used: not the
// aliases, not the live intervals, not the heap.
#ifndef TPUSIM_TESTS_WORKLOADS_BUFFERS_VALIDATE_PLAN_H_
#define TPUSIM_TESTS_WORKLOADS_BUFFERS_VALIDATE_PLAN_H_

#include "absl/status/status.h"
#include "workloads/buffers/memory_plan.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/target/target.h"

namespace tpusim::buffers {

// Internal error: what is wrong first. The module must be scheduled, with the copies that execution
// in place needs.
absl::Status ValidatePlan(const hlo::Module& module, const MemoryPlan& plan,
                          const target::Target& target);

}  // namespace tpusim::buffers

#endif  // TPUSIM_TESTS_WORKLOADS_BUFFERS_VALIDATE_PLAN_H_
