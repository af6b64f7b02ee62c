// Passes of loops over which time is moved change nothing but what a simulation costs.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <string>

#include "tests/sim/in_child.h"
#include "tests/sim/pod_testing.h"

namespace tpusim::sim {
namespace {

using namespace tpusim::testing;  // NOLINT: the vocabulary of these tests

// `steps` of a ring around x: everybody sends so many bytes to the next chip and
// waits for what the last one sends, on a stream of its own.
struct Ring {
  int64_t steps = 7;
  int64_t bytes = 10'000;
  bool adds = false;
};

isa::PodProgram RingProgram(const configs::Config& config, const std::vector<Ring>& rings,
                            const isa::Body& beside = {}) {
  std::vector<std::pair<int32_t, int32_t>> pairs;
  for (int64_t d = 0; d < config.devices(); ++d) {
    const int64_t next =
        config.topology.Neighbour(d, configs::MakeDirection(/*axis=*/0, /*plus=*/true));
    pairs.emplace_back(static_cast<int32_t>(d), static_cast<int32_t>(next));
  }
  isa::Body body;
  for (size_t r = 0; r < rings.size(); ++r) {
    isa::Rdma rdma;
    rdma.bytes = Bytes(rings[r].bytes);
    rdma.arrival_flag = static_cast<int32_t>(r);
    if (rings[r].adds) rdma.reduce = isa::ReduceAdd{4, 1};
    isa::Start start;
    start.stream = {isa::StreamKind::kCollective, static_cast<int32_t>(r)};
    start.token = static_cast<int32_t>(r);
    start.body = Share(isa::Loop{
        rings[r].steps, Share(rdma, isa::Wait{.flag = static_cast<int32_t>(r), .count = 1})});
    body.push_back({start});
  }
  body.insert(body.end(), beside.begin(), beside.end());
  for (size_t r = 0; r < rings.size(); ++r) body.push_back({isa::Done{static_cast<int32_t>(r)}});
  const auto shared = std::make_shared<const isa::Body>(std::move(body));
  isa::PodProgram program;
  program.programs = {shared};
  program.program_of_device.assign(static_cast<size_t>(config.devices()), 0);
  program.routes.push_back(RouteBetween(config, pairs));
  program.flags = program.tokens = 8;
  return program;
}

configs::Config RingOf(int64_t chips) { return TestConfig({chips, 1, 1}, {true, false, false}); }

// Both ways of running it agree; returns their events, those with every step second.
std::pair<int64_t, int64_t> ExpectTheSame(const configs::Config& config,
                                          const isa::PodProgram& program, SimulationOptions options,
                                          const std::string& what) {
  const Figures passed = InChild(config, program, options);
  options.every_step = true;
  const Figures executed = InChild(config, program, options);
  EXPECT_FALSE(passed.times.empty()) << what;
  EXPECT_EQ(passed.times, executed.times) << what;
  EXPECT_EQ(passed.bytes, executed.bytes) << what;
  EXPECT_EQ(passed.ops, executed.ops) << what;
  EXPECT_EQ(passed.rest, executed.rest) << what;
  EXPECT_EQ(passed.spans, executed.spans) << what;
  return {passed.events, executed.events};
}

TEST(FastForward, ALongRingCostsWhatAShortOneDoes) {
  std::vector<int64_t> events;
  for (const int64_t chips : {8, 64, 512}) {
    const configs::Config config = RingOf(chips);
    const isa::PodProgram program = RingProgram(config, {{.steps = chips - 1}});
    const Figures figures = InChild(config, program, {});
    // Each step: 10,000 B at 10 ps each, and a hop of 1 us.
    EXPECT_EQ(figures.times[0], (chips - 1) * (100'000 + 1'000'000));
    // Every device has read and written (chips - 1) x 10,000 B.
    EXPECT_EQ(figures.bytes[0], (chips - 1) * 20'000);
    events.push_back(figures.events);
  }
  EXPECT_EQ(events[0], events[1]);
  EXPECT_EQ(events[0], events[2]);
}

TEST(FastForward, EveryStepIsInTheRecord) {
  const configs::Config config = RingOf(8);
  SimulationOptions options;
  options.record_devices = {0, 1};
  isa::PodProgram program = RingProgram(config, {{.steps = 40, .adds = true}});
  const auto [passed, executed] = ExpectTheSame(config, program, options, "two of eight devices");
  EXPECT_LT(passed, executed / 5);
}

TEST(FastForward, ManyPassesAreStoredLikeAFew) {
  // A layer: a kernel of 30 steps beside nothing, then a ring of 7.
  isa::Kernel kernel;
  kernel.grid = {{30, 1.0}};
  kernel.block = Compute(500);
  const configs::Config config = RingOf(8);
  const isa::PodProgram ring = RingProgram(config, {{.steps = 7}});
  isa::Body layer = {{kernel}};
  layer.insert(layer.end(), ring.programs[0]->begin(), ring.programs[0]->end());
  SimulationOptions options;
  options.record_devices = {0, 1, 2, 3};
  const auto run = [&](int64_t layers) {
    isa::PodProgram program = ring;
    program.programs[0] = Share(isa::Loop{layers, std::make_shared<const isa::Body>(layer)});
    return InChild(config, program, options);
  };
  const Figures few = run(8), many = run(64);
  EXPECT_EQ(many.spans.size(), 8 * few.spans.size());
  EXPECT_GT(few.spans.size(), 8u * 4 * (30 + 7) * 5);
  EXPECT_EQ(many.stored, few.stored);
  EXPECT_LT(few.stored, static_cast<int64_t>(few.spans.size()) / 5 / 4);
  // With merged steps a kernel is eight spans at most, beside the transfers of the rings.
  options.record_steps = 4;
  const Figures merged = run(64);
  EXPECT_LT(merged.stored, many.stored * 2 / 3);
  EXPECT_EQ(merged.times, many.times);
}

TEST(FastForward, AStragglingLinkIsSteppedThrough) {
  const configs::Config config = RingOf(8);
  SimulationOptions options;
  options.impairments.links = {{{3, configs::MakeDirection(0, true)}, 0.5}};
  ExpectTheSame(config, RingProgram(config, {{.steps = 30}}), options, "a link at half its rate");
}

TEST(FastForward, WhatIsDueMeanwhileIsNotMissed) {
  const configs::Config config = RingOf(4);
  // Steps of 1.1 us; the core computes for 20 us and then loads for 5 us from HBM.
  const isa::Body beside = MakeBody(Compute(20'000), isa::Dma{.bytes = Bytes(5'000'000)});
  const auto [passed, executed] = ExpectTheSame(
      config, RingProgram(config, {{.steps = 60}}, beside), {}, "beside a block and a load");
  EXPECT_LT(passed, executed / 2);
}

// The stop before it has skipped what is left until a second ring is launched: that
// one begins when the first goes on, and has skipped nothing.
TEST(FastForward, WhoArrivesWhenOthersGoOnHasAllStepsBefore) {
  const configs::Config config = RingOf(4);
  isa::PodProgram program = RingProgram(config, {{.steps = 60}});
  isa::Rdma rdma;
  rdma.bytes = Bytes(10'000);
  rdma.arrival_flag = 1;
  isa::Start start;
  start.stream = {isa::StreamKind::kCollective, 1};
  start.token = 1;
  // Ten steps of 1.1 us after the first ring.
  start.body = Share(Latency(11'000), isa::Loop{20, Share(rdma, isa::Wait{.flag = 1, .count = 1})});
  isa::Body body = *program.programs[0];
  body.insert(body.begin(), {start});
  body.push_back({isa::Done{1}});
  program.programs[0] = std::make_shared<const isa::Body>(std::move(body));
  ExpectTheSame(config, program, {}, "a second ring at the end of a step");
  // The same with the second ring on the stream that is built first.
  start.stream.index = 0;
  isa::Body swapped = *program.programs[0];
  swapped[0] = {start};
  std::get<isa::Start>(swapped[1].kind).stream.index = 1;
  program.programs[0] = std::make_shared<const isa::Body>(std::move(swapped));
  ExpectTheSame(config, program, {}, "the streams the other way round");
}

TEST(FastForward, RandomRingsBesideRandomWork) {
  std::mt19937 random(20);
  const auto number = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random() % static_cast<uint32_t>(high - low + 1));
  };
  int64_t fewer = 0;
  for (int i = 0; i < 150; ++i) {
    const configs::Config config = RingOf(number(3, 9));
    std::vector<Ring> rings(static_cast<size_t>(number(1, 3)));
    for (Ring& ring : rings) ring = {number(1, 40), number(1, 200'000), number(0, 1) == 1};
    isa::Body beside;
    for (int64_t n = number(0, 3); n > 0; --n) {
      if (number(0, 1) == 0) {
        beside.push_back({Compute(number(1, 30'000))});
      } else {
        beside.push_back({isa::Dma{.bytes = Bytes(number(1, 3'000'000))}});
      }
    }
    SimulationOptions options;
    options.folding = number(0, 1) == 0 ? Folding::kExact : Folding::kOff;
    if (number(0, 2) == 0) options.record_devices = {0};
    if (number(0, 3) == 0) {
      options.impairments.chips.push_back({number(0, config.devices() - 1), 0.8});
    }
    if (number(0, 3) == 0) {
      const configs::Link link{number(0, config.devices() - 1), configs::MakeDirection(0, true)};
      options.impairments.links.push_back({link, 0.5});
    }
    const auto [passed, executed] = ExpectTheSame(config, RingProgram(config, rings, beside),
                                                  options, fmt::format("case {}", i));
    fewer += passed < executed ? 1 : 0;
  }
  EXPECT_GT(fewer, 50);
}

// Layers of a kernel and a ring through a chip that is slower and one that is slower still, on
// rates that are no whole number of bytes per picosecond: passes go on to differ by some.
TEST(FastForward, PassesThatAreNearlyTheSameStayWithinTheBound) {
  std::mt19937 random(25);
  const auto number = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random() % static_cast<uint32_t>(high - low + 1));
  };
  int64_t bounded = 0, fewer = 0;
  for (int i = 0; i < 60; ++i) {
    configs::Config config = RingOf(number(3, 8));
    config.chip.hbm.bytes_per_second = BytesPerSecond(0.77e12);
    config.chip.ici.link_bytes_per_second =
        BytesPerSecond(static_cast<double>(number(3, 90)) * 1.01e10);
    isa::Kernel kernel;
    kernel.grid = {{number(3, 60), 1.0}};
    kernel.block = Compute(number(1, 3'000));
    kernel.windows = {Input(number(1, 900'000), 1)};
    const isa::PodProgram ring = RingProgram(
        config, {{.steps = number(2, 9), .bytes = number(1, 900'000), .adds = number(0, 1) == 0}},
        MakeBody(kernel));
    isa::PodProgram program = ring;
    // All of a pass is one operation.
    const int32_t work = AddOp(program, "pass");
    isa::Body pass = MakeBody(isa::Label{work, true});
    pass.insert(pass.end(), ring.programs[0]->begin(), ring.programs[0]->end());
    pass.push_back({isa::Label{work, false}});
    program.programs[0] = Share(isa::Loop{100, std::make_shared<const isa::Body>(std::move(pass))});
    SimulationOptions options;
    options.impairments.chips = {{0, 0.93}, {2, 0.87}};
    options.folding = Folding::kExact;
    const Figures exact = InChild(config, program, options);
    options.folding = Folding::kAutomatic;
    options.exact_events = 0;
    const Figures near = InChild(config, program, options);
    ASSERT_EQ(near.times.size(), exact.times.size());
    EXPECT_EQ(exact.error_bound, 0);
    EXPECT_LE(near.error_bound, exact.times[0] / 100'000);
    EXPECT_LE(std::abs(near.times[0] - exact.times[0]), near.error_bound) << "case " << i;
    // The time of the main stream adds up to the step, whatever passes differ by.
    constexpr size_t kMainOf = 5;
    EXPECT_EQ(exact.rest[kMainOf], exact.times[0]) << "case " << i;
    EXPECT_EQ(near.rest[kMainOf], near.times[0]) << "case " << i;
    for (size_t b = 0; b < exact.bytes.size(); ++b) {
      EXPECT_NEAR(static_cast<double>(near.bytes[b]), static_cast<double>(exact.bytes[b]),
                  1e-6 * static_cast<double>(exact.bytes[b]))
          << "case " << i;
    }
    bounded += near.error_bound > 0;
    fewer += near.events < exact.events;
  }
  EXPECT_GT(bounded, 5);
  EXPECT_GT(fewer, 5);
}

// Windowed einsums of a loop over layers: each device multiplies the shard that it has while it
// sends that to the next device, row by row of a 4 x 4 slice. Where a row ends that is two hops,
// and the links round the rows have more to carry, so that devices differ in their loads and in
// when they begin a pass.
isa::PodProgram WindowedLayers(const configs::Config& config, int64_t layers) {
  std::vector<std::pair<int32_t, int32_t>> pairs;
  const auto devices = static_cast<int32_t>(config.devices());
  for (int32_t d = 0; d < devices; ++d) pairs.emplace_back(d, (d + 1) % devices);
  isa::PodProgram program = RingProgram(config, {});
  program.routes = {RouteBetween(config, pairs)};
  isa::Rdma rdma;
  rdma.bytes = Bytes(300'000);
  rdma.arrival_flag = 0;
  isa::Start start;
  start.stream = {isa::StreamKind::kCollective, 0};
  start.token = 0;
  start.body = Share(rdma, isa::Wait{.flag = 0, .count = 1});
  isa::Kernel kernel;
  kernel.grid = {{4, 1.0}};
  kernel.block = Compute(700);
  kernel.windows = {Input(400'000, 1), Output(30'000, 1)};
  program.programs = {Share(
      isa::Loop{layers, Share(isa::Loop{5, Share(start, kernel, isa::Done{0})}, Compute(3'000))})};
  return program;
}

TEST(FastForward, WindowedEinsumsWithSeveralLoadsSettle) {
  configs::Config config = TestConfig({4, 4, 1}, {true, true, false});
  config.chip.hbm.bytes_per_second = BytesPerSecond(0.77e12);
  config.chip.ici.link_bytes_per_second = BytesPerSecond(4.7e10);
  const isa::PodProgram few = WindowedLayers(config, 6), many = WindowedLayers(config, 400);
  SimulationOptions options;
  options.folding = Folding::kOff;
  ExpectTheSame(config, few, options, "every device");
  options.folding = Folding::kExact;
  ExpectTheSame(config, few, options, "one of each class");
  // All of them are one steady state: sixteen devices in 400 layers of five passes would be a
  // hundred times as many events.
  EXPECT_LT(InChild(config, many, options).events, 10'000);
}

// Layers that were written out one by one: each computes, sends to the next chip beside that
// and in its next layer waits for what the last chip sent. Names are those of the layer. Equal
// layers are iterations of a loop, where the lowering would make one.
struct Unrolled {
  int64_t layers = 40;
  int64_t bytes = 10'000;
  int64_t loaded = 1'000'000;
  int64_t kept = 0;          // bytes that each layer leaves behind; negative: that it frees
  int64_t other_layer = -1;  // one that computes something else
  bool skewed = false;       // one chip begins later
};

constexpr int32_t kOpsOfLayer = 3;
constexpr int64_t kFewestInLoop = 6;

// The names of an operation, of the one that sends and of the one that waits follow each other.
isa::Body LayerBody(const Unrolled& unrolled, int32_t layer) {
  const int32_t work = kOpsOfLayer * layer, send = work + 1, done = work + 2;
  isa::Rdma rdma;
  rdma.bytes = Bytes(unrolled.bytes);
  rdma.arrival_flag = layer;
  isa::Start start;
  start.stream = {isa::StreamKind::kCollective, 0};
  start.token = layer;
  start.body = Share(isa::Label{send, true}, rdma, isa::Wait{.flag = layer, .count = 1},
                     isa::Label{send, false});
  isa::Kernel kernel;
  kernel.grid = {{6, 1.0}};
  kernel.block = Compute(layer == unrolled.other_layer ? 700 : 500);
  kernel.windows = {Input(unrolled.loaded / 6, 1), Output(1000, 1)};
  isa::Body body = MakeBody(start);
  if (unrolled.kept > 0) body.push_back({isa::Alloc{isa::MemorySpace::kHbm, layer}});
  for (const isa::Instruction& i :
       MakeBody(isa::Label{work, true}, kernel,
                isa::Loop{5, Share(Compute(20), isa::Dma{.bytes = Bytes(1000)})},
                isa::Label{work, false})) {
    body.push_back(i);
  }
  if (unrolled.kept < 0) body.push_back({isa::Free{isa::MemorySpace::kHbm, layer}});
  if (layer == 0) return body;
  for (const isa::Instruction& i :
       MakeBody(isa::Label{done, true}, isa::Done{layer - 1}, isa::Label{done, false})) {
    body.push_back(i);
  }
  return body;
}

isa::PodProgram UnrolledProgram(const configs::Config& config, const Unrolled& unrolled) {
  isa::PodProgram program = RingProgram(config, {});
  program.flags = program.tokens = static_cast<int32_t>(unrolled.layers);
  isa::Body body;
  for (int32_t layer = 0; layer < unrolled.layers; ++layer) {
    AddOp(program, fmt::format("work.{}", layer));
    const int32_t send = AddOp(program, fmt::format("send.{}", layer), /*collective=*/true);
    const int32_t done = AddOp(program, fmt::format("done.{}", layer));
    if (layer > 0) program.info.ops[done].waits_for = send - kOpsOfLayer;
    program.info.buffers.push_back({"kept", Bytes(std::abs(unrolled.kept))});
    if (unrolled.kept < 0) body.push_back({isa::Alloc{isa::MemorySpace::kHbm, layer}});
  }
  for (int64_t layer = 0; layer < unrolled.layers;) {
    // The first one waits for nothing.
    int64_t end = layer == 0 || layer == unrolled.other_layer ? layer + 1 : unrolled.layers;
    if (layer < unrolled.other_layer) end = std::min(end, unrolled.other_layer);
    const auto first = static_cast<int32_t>(layer);
    if (end - layer >= kFewestInLoop) {
      const int32_t op = kOpsOfLayer * first;
      const isa::Iterations iterations(
          end - layer, isa::Iterations::Ranges{{{{op, op, kOpsOfLayer, kOpsOfLayer}},
                                                {{first - 1, first, 1, 1}},
                                                {{first, first, 1, 1}}}});
      body.push_back(
          {isa::Loop{end - layer, std::make_shared<const isa::Body>(LayerBody(unrolled, first)),
                     std::make_shared<const isa::Iterations>(iterations)}});
      layer = end;
      continue;
    }
    for (; layer < end; ++layer) {
      const isa::Body alone = LayerBody(unrolled, static_cast<int32_t>(layer));
      body.insert(body.end(), alone.begin(), alone.end());
    }
  }
  body.push_back({isa::Done{static_cast<int32_t>(unrolled.layers - 1)}});
  const auto shared = std::make_shared<const isa::Body>(body);
  program.programs = {shared};
  if (unrolled.skewed) {
    // It calls what all execute.
    const auto half = body.begin() + static_cast<ptrdiff_t>(body.size() / 2);
    isa::Body late = MakeBody(Compute(3000));
    late.push_back({isa::Call{std::make_shared<const isa::Body>(body.begin(), half)}});
    late.push_back({isa::Call{std::make_shared<const isa::Body>(half, body.end())}});
    program.programs.push_back(std::make_shared<const isa::Body>(std::move(late)));
    program.program_of_device[1] = 1;
  }
  return program;
}

// The loop does what its iterations do one by one, each under its own name.
TEST(FastForward, AnUnrolledLoopIsItsIterations) {
  const configs::Config config = RingOf(4);
  const Unrolled unrolled{.layers = 8};
  const isa::PodProgram loop = UnrolledProgram(config, unrolled);
  isa::PodProgram written = loop;
  isa::Body body;
  for (int32_t layer = 0; layer < unrolled.layers; ++layer) {
    for (const isa::Instruction& i : LayerBody(unrolled, layer)) body.push_back(i);
  }
  body.push_back({isa::Done{static_cast<int32_t>(unrolled.layers - 1)}});
  written.programs = {std::make_shared<const isa::Body>(std::move(body))};
  SimulationOptions options;
  options.record_devices = {0, 1};
  const Figures one = InChild(config, loop, options), other = InChild(config, written, options);
  EXPECT_EQ(one.times, other.times);
  EXPECT_EQ(one.ops, other.ops);
  EXPECT_EQ(one.rest, other.rest);
  EXPECT_EQ(one.spans, other.spans);
}

TEST(FastForward, ManyUnrolledLayersCostWhatAFewDo) {
  const configs::Config config = RingOf(4);
  std::vector<int64_t> events;
  for (const int64_t layers : {40, 80, 320}) {
    const auto [passed, executed] = ExpectTheSame(
        config, UnrolledProgram(config, {.layers = layers}), {}, fmt::format("{} layers", layers));
    events.push_back(passed);
  }
  EXPECT_EQ(events[0], events[1]);
  EXPECT_EQ(events[0], events[2]);
}

TEST(FastForward, UnrolledLayersGrowAndShrinkWhatIsLive) {
  const configs::Config config = RingOf(4);
  for (const int64_t kept : {1'000'000, -1'000'000}) {
    const isa::PodProgram program = UnrolledProgram(config, {.layers = 60, .kept = kept});
    const auto [passed, executed] = ExpectTheSame(config, program, {}, fmt::format("{}", kept));
    EXPECT_LT(passed, executed / 2);
    for (const bool every_step : {false, true}) {
      SimulationOptions options;
      options.every_step = every_step;
      EXPECT_EQ(InChild(config, program, options).peak, 60'000'000) << kept << every_step;
    }
  }
}

TEST(FastForward, AnUnequalLayerIsExecuted) {
  const configs::Config config = RingOf(4);
  const auto [passed, executed] = ExpectTheSame(
      config, UnrolledProgram(config, {.layers = 60, .other_layer = 30}), {}, "one of sixty");
  EXPECT_LT(passed, executed * 2 / 3);
  ExpectTheSame(config, UnrolledProgram(config, {.layers = 10, .other_layer = 5}), {},
                "too few on both sides");
}

TEST(FastForward, RandomUnrolledLayers) {
  std::mt19937 random(21);
  const auto number = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random() % static_cast<uint32_t>(high - low + 1));
  };
  int64_t fewer = 0;
  for (int i = 0; i < 60; ++i) {
    const configs::Config config = RingOf(number(2, 7));
    Unrolled unrolled;
    unrolled.layers = number(1, 60);
    unrolled.bytes = number(1, 400'000);
    unrolled.loaded = number(6, 8'000'000);
    unrolled.kept = number(-10'000, 10'000);
    if (number(0, 3) == 0) unrolled.other_layer = number(0, 59);
    unrolled.skewed = number(0, 2) == 0;
    SimulationOptions options;
    options.folding = number(0, 1) == 0 ? Folding::kExact : Folding::kOff;
    if (number(0, 5) == 0) options.record_devices = {0};
    if (number(0, 3) == 0) {
      options.impairments.chips.push_back({number(0, config.devices() - 1), 0.8});
    }
    const auto [passed, executed] = ExpectTheSame(config, UnrolledProgram(config, unrolled),
                                                  options, fmt::format("case {}", i));
    fewer += passed < executed * 3 / 4 ? 1 : 0;
  }
  EXPECT_GT(fewer, 20);
}

}  // namespace
}  // namespace tpusim::sim
