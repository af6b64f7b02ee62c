// Memory plans of tests: each is validated.
#ifndef TPUSIM_TESTS_WORKLOADS_BUFFERS_CHECKED_PLAN_H_
#define TPUSIM_TESTS_WORKLOADS_BUFFERS_CHECKED_PLAN_H_

#include <gtest/gtest.h>

#include "tests/workloads/buffers/validate_plan.h"
#include "workloads/buffers/memory_plan.h"

namespace tpusim::buffers {

inline MemoryPlan CheckedPlan(const hlo::Module& module, const target::Target& target) {
  MemoryPlan plan = PlanBuffers(module, target);
  const absl::Status valid = ValidatePlan(module, plan, target);
  EXPECT_TRUE(valid.ok()) << valid;
  return plan;
}

}  // namespace tpusim::buffers

#endif  // TPUSIM_TESTS_WORKLOADS_BUFFERS_CHECKED_PLAN_H_
