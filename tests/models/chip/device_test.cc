// The modules of a device together: what is built, how it is called, what is connected.
#include "models/chip/device.h"

#include <gmock/gmock.h>

#include <optional>
#include <string>
#include <vector>

#include "configs/status_macros.h"
#include "tests/models/bench.h"
#include "tests/models/stubs.h"

namespace tpusim::chip {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::tpusim::testing::MakeBody;
using ::tpusim::testing::Share;

struct DeviceBench : testing::Bench {
  explicit DeviceBench(sc_core::sc_module_name name = "bench") : Bench(name) {
    program.flags = 2;
    program.routes.resize(1);
    program.routes[0].from.resize(1);
    program.info.buffers = {{.name = "array", .bytes = Bytes(400'000'000)}};
  }
  Device& Build(int32_t index_on_chip = 0) {
    const sc_core::sc_module_name scope("chip");
    return device.emplace(DeviceContext{.device = 0,
                                        .index_on_chip = index_on_chip,
                                        .params = chip,
                                        .program = program,
                                        .stream_ids = streams,
                                        .fluid = fluid,
                                        .host_link = host,
                                        .network = network,
                                        .faults = faults,
                                        .probe = probe,
                                        .ready = ready});
  }
  const std::vector<isa::StreamId> streams = {{isa::StreamKind::kTensorCore, 0},
                                              {isa::StreamKind::kCopy, 1}};
  isa::PodProgram program;
  events::Faults faults;
  events::RunQueue ready{"ready"};
  testing::NoProbe probe;
  testing::StubHost host;
  testing::StubNetwork network;
  std::optional<Device> device;
};

TEST(Device, StreamsAreNamed) {
  EXPECT_EQ(StreamName({isa::StreamKind::kTensorCore, 0}), "tensor_core[0]");
  EXPECT_EQ(StreamName({isa::StreamKind::kCollective, 2}), "collective[2]");
  EXPECT_EQ(StreamName({isa::StreamKind::kSparseCore, 1}), "sparse_core[1]");
  EXPECT_EQ(StreamName({isa::StreamKind::kCopy, 1}), "copy[1]");
  EXPECT_EQ(StreamName({isa::StreamKind::kHost, 0}), "host[0]");
}

TEST(Device, ModulesOfTheSecondDeviceOfAChipHaveItsNumber) {
  DeviceBench bench;
  const Device& device = bench.Build(1);
  EXPECT_THAT(std::string(bench.device->mxu().name()), HasSubstr("mxu1"));
  EXPECT_THAT(std::string(device.streams()[1]->name()), HasSubstr("stream_copy_11"));
}

TEST(Device, HasWhatItsChipHas) {
  DeviceBench bench;
  EXPECT_EQ(bench.Build().die_link(), nullptr);
  EXPECT_EQ(bench.device->sparse_core(), nullptr);
  bench.device.reset();
  bench.chip.devices = bench.chip.tensor_cores = 2;
  bench.chip.sparse_core.count = 2;
  EXPECT_NE(bench.Build(1).die_link(), nullptr);
  EXPECT_NE(bench.device->sparse_core(), nullptr);
}

// A block of 10 ns on the main stream; then a copy of 1000 bytes on another, 500 ns and 1000 ps;
// and a signal when it is joined.
TEST(Device, AProgramRunsOnItsStreams) {
  DeviceBench bench;
  Device& device = bench.Build();
  const isa::Dma copy{isa::MemorySpace::kHbm, isa::MemorySpace::kVmem, Bytes(1000)};
  const isa::Body body =
      MakeBody(testing::Compute(10), isa::Start{{isa::StreamKind::kCopy, 1}, 0, Share(copy)},
               isa::Done{0}, isa::Signal{});
  bench.Elaborate();
  device.main_stream().Enqueue(body, -1, {});
  EXPECT_TRUE(bench.HappensAt(10'000 + 500'000 + 1000,
                              [&] { return bench.network.signalled.size() == 1; }));
  EXPECT_EQ(device.vpu().busy(), Picoseconds(10'000));
  EXPECT_TRUE(device.main_stream().finished());
  EXPECT_TRUE(bench.faults.status().ok());
}

// 900 MB of HBM are for programs: two arrays of 400 fit, three do not.
TEST(Device, ArraysAreInItsMemory) {
  DeviceBench bench;
  Device& device = bench.Build();
  const isa::Alloc alloc{isa::MemorySpace::kHbm, 0};
  const isa::Body body = MakeBody(alloc, alloc, alloc, isa::Signal{});
  bench.Elaborate();
  device.main_stream().Enqueue(body, -1, {});
  bench.RunTo(0);
  EXPECT_EQ(device.memory(isa::MemorySpace::kHbm).live(), Bytes(800'000'000));
  EXPECT_THAT(Message(bench.faults.status()), HasSubstr("hbm: array needs 400000000 bytes"));
  EXPECT_TRUE(bench.network.signalled.empty());
}

}  // namespace
}  // namespace tpusim::chip
