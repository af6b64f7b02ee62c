// A bench for one module of the machine: an sc_module that owns the module under test and stands
// in for what its ports lead to (stubs.h). It has three layers:
//
//   the module        made by the bench of its test, bound to stubs or to nothing
//   the clock         SystemC's, which a test moves on: RunTo, RunOut
//   the gates         moments at which something happens, and not a picosecond before: HappensAt
//
//   struct HostLinkBench : Bench {
//     explicit HostLinkBench(sc_core::sc_module_name name = "bench") : Bench(name) {}
//     chip::HostLink link{"link", fluid, chip, 1};
//   };
//   HostLinkBench bench;
//   bench.Elaborate();
//   bench.link.Issue(...);          // now
//   EXPECT_TRUE(bench.HappensAt(3'100'000, [&] { return note.times.size() == 1; }));
//
// Moments are picoseconds. SystemC elaborates once per process, so that a test has one bench and
// runs in a process of its own (as ctest runs it).
#ifndef TPUSIM_TESTS_MODELS_BENCH_H_
#define TPUSIM_TESTS_MODELS_BENCH_H_

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <systemc>

#include "models/events/fluid.h"
#include "models/events/sim_time.h"
#include "tests/models/test_chip.h"

namespace tpusim::testing {

class Bench : public sc_core::sc_module {
 public:
  explicit Bench(sc_core::sc_module_name name) : sc_module(name) {}

  configs::ChipParams chip = TestChip();
  events::Fluid fluid{"fluid"};

  // Completes the bindings of ports; time 0.
  void Elaborate() { sc_core::sc_start(sc_core::SC_ZERO_TIME); }

  // Everything that happens until then, and at that moment, has happened.
  void RunTo(int64_t moment) {
    if (Picoseconds(moment) > events::Now()) {
      sc_core::sc_start(events::ScTime(Picoseconds(moment) - events::Now()));
    }
    // SystemC holds off what happens at that moment itself.
    while (sc_core::sc_pending_activity_at_current_time() &&
           sc_core::sc_get_status() != sc_core::SC_STOPPED) {
      sc_core::sc_start(sc_core::SC_ZERO_TIME);
    }
  }
  // Until nothing is pending.
  void RunOut() { sc_core::sc_start(); }

  // A tight gate: not a picosecond earlier. Time is there afterwards.
  ::testing::AssertionResult HappensAt(int64_t moment, const std::function<bool()>& happened) {
    RunTo(moment - 1);
    if (happened()) return ::testing::AssertionFailure() << "it has happened before " << moment;
    RunTo(moment);
    if (!happened()) return ::testing::AssertionFailure() << "it has not happened at " << moment;
    return ::testing::AssertionSuccess();
  }

  // A flow of so much on one resource, alone or beside others.
  void Flow(flow::ResourceId resource, double amount, events::FlowListener* listener) {
    const std::array<flow::ResourceUse, 1> uses = {{{resource, 1}}};
    fluid.Start(amount, std::numeric_limits<double>::infinity(), uses, listener, 0);
  }
};

}  // namespace tpusim::testing

#endif  // TPUSIM_TESTS_MODELS_BENCH_H_
