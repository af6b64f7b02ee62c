// Costs of runs at the scale of a pod, in events: instructions retired and flows started and ended.
// Seconds depend on the machine; benchmarks/pod_benchmark.cc prints them for the same programs.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "configs/status_macros.h"
#include "tools/tpusim/pipeline/pipeline.h"

namespace tpusim::tools {
namespace {

constexpr char kPrograms[] = TPUSIM_SOURCE_DIR "/benchmarks/pod_programs/";
constexpr char kExamples[] = TPUSIM_SOURCE_DIR "/workloads/examples/";

struct Cost {
  int64_t events = 0, device_classes = 0, simulations = 0;
};

Cost CostOf(const std::string& workload, const MachineFlags& flags = {}) {
  const absl::StatusOr<Prepared> prepared = Prepare(workload, "", {}, {});
  EXPECT_TRUE(prepared.ok()) << Message(prepared.status());
  const absl::StatusOr<Simulated> simulated = Simulate(*prepared, flags, {});
  EXPECT_TRUE(simulated.ok()) << Message(simulated.status());
  const sim::Timeline& timeline = simulated->timeline;
  return {timeline.events, timeline.folding.device_classes, timeline.folding.simulations};
}

int64_t EventsOf(const std::string& workload, const MachineFlags& flags = {}) {
  return CostOf(workload, flags).events;
}

TEST(PodEvents, AnAllReduceOver4096ChipsIsTwoStepsOfOneChip) {
  // Six phases, of whose 15 steps the first two and the last are executed at most, each
  // with six transfers: their starts, ends and waits.
  const std::string program = std::string(kPrograms) + "all_reduce_4096.pb.gz";
  const int64_t events = EventsOf(program);
  EXPECT_GT(events, 6 * 2 * 6 * 4);
  EXPECT_LT(events, 6 * 3 * 6 * 5);
  MachineFlags flags;
  flags.detail = "tile";
  EXPECT_GT(EventsOf(program, flags), 6 * 15 * 6 * 2);
}

TEST(PodEvents, RingsDoNotCostTheirLength) {
  // 16 x 16 folds to one chip, and a step of its rings is two transfers per axis.
  const int64_t events = EventsOf(std::string(kExamples) + "all_reduce_64mib_16x16.pb.gz");
  EXPECT_GT(events, 0);
  EXPECT_LT(events, 300);
}

TEST(PodEvents, TrainingStepsDoNotGrowWithTheNumberOfChips) {
  const int64_t few = EventsOf(std::string(kPrograms) + "mlp_train_64.pb.gz");
  const int64_t many = EventsOf(std::string(kPrograms) + "mlp_train_9216.pb.gz");
  EXPECT_LT(EventsOf(std::string(kPrograms) + "mlp_train_256.pb.gz"), 15'000);
  EXPECT_LT(few, 20'000);
  // 144 times the chips: longer rings beside kernels, no more classes.
  EXPECT_LT(many, 35'000);
  EXPECT_LT(many, 3 * few);
}

// Train steps of a decoder of 32 layers: rings round the whole slice, collectives along its
// axes, lines where tensor parallelism does not close a ring. One pass of a layer and the
// steps of its kernels are what they cost. Windowed einsums over groups that are part of a line or
// plane (fsdp_tp_64, fsdp_tp_256) tell devices apart by where the way back of their ring is.
TEST(PodEvents, DecodersFoldAndTheirLayersRepeat) {
  struct Case {
    const char* name;
    int64_t classes, events;
  };
  for (const Case& c : {Case{"fsdp_256", 1, 120'000}, Case{"fsdp_1024", 23, 1'000'000},
                        Case{"fsdp_tp_64", 16, 4'000'000}, Case{"fsdp_tp_256", 8, 1'500'000},
                        Case{"fsdp_tp_4096", 8, 500'000}, Case{"fsdp_tp_9216", 2, 140'000}}) {
    const Cost cost = CostOf(std::string(kPrograms) + "decoder_" + c.name + ".pb.gz");
    EXPECT_EQ(cost.device_classes, c.classes) << c.name;
    EXPECT_GT(cost.events, 10'000) << c.name;
    EXPECT_LT(cost.events, c.events) << c.name;
    EXPECT_LE(cost.simulations, 2) << c.name;
  }
}

// Around a slow chip of a torus, and along a slow link, images of each other are one class:
// 9 multichoose 3 distances, and 16 places along the link's axis times 9 multichoose 2.
TEST(PodEvents, ASlowPartLeavesMirrorImagesAlike) {
  const std::string program = std::string(kPrograms) + "all_reduce_4096.pb.gz";
  MachineFlags flags;
  flags.slow = {"chip=100:0.8"};
  const Cost slow_chip = CostOf(program, flags);
  EXPECT_EQ(slow_chip.device_classes, 165);
  EXPECT_LT(slow_chip.events, 250'000);
  flags.slow.clear();
  flags.links = {"100:x+=0.5"};
  const Cost slow_link = CostOf(program, flags);
  EXPECT_EQ(slow_link.device_classes, 16 * 45);
  EXPECT_LT(slow_link.events, 1'000'000);
}

TEST(PodEvents, UnfoldedChipsBesideAStragglerCostTheirOwnWork) {
  MachineFlags flags;
  flags.fold = "off";
  flags.slow = {"chip=3:0.8"};
  const std::string program = std::string(kPrograms) + "all_reduce_beside_kernel_64.pb.gz";
  const int64_t fast = EventsOf(program, flags);
  flags.detail = "tile";
  const int64_t every = EventsOf(program, flags);
  // A kernel of 64 steps is 256 flow events on each of 64 chips; passed over, some 30.
  EXPECT_GT(every - fast, 64 * 200);
  EXPECT_LT(fast, 25'000);
}

}  // namespace
}  // namespace tpusim::tools
