#include <gtest/gtest.h>

#include <string>

#include "tests/workloads/buffers/checked_plan.h"
#include "tests/workloads/passes/pass_test.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/passes/schedule/choose_order.h"

namespace tpusim::passes {
namespace {

// Nodes in post-order, without costs.
cost::ScheduleGraph GraphOf(const hlo::Computation& computation) {
  cost::ScheduleGraph graph;
  for (hlo::Instruction* i : computation.PostOrder()) {
    graph.nodes.emplace_back().instruction = i;
  }
  return graph;
}

cost::ScheduleOrder Named(const cost::ScheduleGraph& graph, const std::vector<std::string>& names) {
  cost::ScheduleOrder order;
  for (const std::string& name : names) {
    for (size_t n = 0; n < graph.nodes.size(); ++n) {
      if (graph.nodes[n].instruction->name() == name) order.push_back(static_cast<int>(n));
    }
  }
  EXPECT_EQ(order.size(), graph.nodes.size());
  return order;
}

// Two chains of f32[512,512], 1 MiB, each of which shrinks to f32[8,128], 4 KiB, at its end.
TEST(OrderMemory, OneChainAfterTheOtherTakesLess) {
  PassText test(R"(HloModule m
ENTRY e {
  x = f32[512,512]{1,0} parameter(0)
  a = f32[512,512]{1,0} tanh(x)
  b = f32[512,512]{1,0} bitcast(a)
  c = f32[8,128]{1,0} slice(b), slice={[0:8], [0:128]}
  p = f32[512,512]{1,0} negate(x)
  q = f32[8,128]{1,0} slice(p), slice={[0:8], [0:128]}
  ROOT s = f32[8,128]{1,0} add(c, q)
})",
                "v5e-1x1");
  const hlo::Computation& entry = *test.module().entry();
  const cost::ScheduleGraph graph = GraphOf(entry);
  const configs::Config config = configs::LoadConfig("v5e-1x1", {}).value();
  const OrderMemory memory(graph, target::Target(config), hlo::AliasAnalysis(entry), {});
  // a and c (and b is a): 1 MiB and 4 KiB; then c, p and q.
  EXPECT_EQ(memory.PeakOf(Named(graph, {"x", "a", "b", "c", "p", "q", "s"})),
            Bytes(kMiB + 2 * 4 * kKiB));
  // a and p together, and c.
  EXPECT_EQ(memory.PeakOf(Named(graph, {"x", "a", "p", "b", "c", "q", "s"})),
            Bytes(2 * kMiB + 4 * kKiB));
}

// A buffer that is updated in place stays live; a loop takes what its body does.
TEST(OrderMemory, LoopsAndUpdatesInPlace) {
  PassText test(R"(HloModule m
body {
  s = (f32[512,512]{1,0}) parameter(0)
  v = f32[512,512]{1,0} get-tuple-element(s), index=0
  w = f32[512,512]{1,0} tanh(v)
  ROOT t = (f32[512,512]{1,0}) tuple(w)
}
more {
  s = (f32[512,512]{1,0}) parameter(0)
  ROOT y = pred[] constant(true)
}
ENTRY e {
  x = f32[512,512]{1,0} parameter(0)
  r = f32[8,128]{1,0} parameter(1)
  z = s32[] constant(0)
  a = f32[512,512]{1,0} tanh(x)
  u = f32[512,512]{1,0} dynamic-update-slice(a, r, z, z)
  i = (f32[512,512]{1,0}) tuple(u)
  l = (f32[512,512]{1,0}) while(i), condition=more, body=body
  ROOT g = f32[512,512]{1,0} get-tuple-element(l), index=0
})",
                "v5e-1x1");
  const hlo::Computation& entry = *test.module().entry();
  const cost::ScheduleGraph graph = GraphOf(entry);
  const configs::Config config = configs::LoadConfig("v5e-1x1", {}).value();
  const hlo::Computation* body = nullptr;
  for (const hlo::Instruction* i : entry.instructions()) {
    if (i->opcode() == hlo::Opcode::kWhile) body = i->called()[0];
  }
  const OrderMemory memory(graph, target::Target(config), hlo::AliasAnalysis(entry),
                           {{body, Bytes(kMiB)}});
  cost::ScheduleOrder order;
  for (size_t n = 0; n < graph.nodes.size(); ++n) order.push_back(static_cast<int>(n));
  // a, which is also u, i, l and g; z has no byte worth a tile of its own: 512.
  EXPECT_EQ(memory.PeakOf(order), Bytes(2 * kMiB));
}

}  // namespace
}  // namespace tpusim::passes
