// A chip with round numbers, so that times can be computed by hand, and short ways to write
// programs for it.
//
//   clock          1 GHz: a cycle is 1000 ps
//   HBM            1e12 B/s: a byte takes 1 ps
//   DMA            0.5 us to the first byte
//   kernel launch  2 us, no overhead per step
//   link           1e11 B/s nominal; wrapped axes reach all of it (10 ps a byte),
//                  unwrapped ones half (20 ps a byte)
//   hop            1 us
//   PCIe           1e10 B/s (100 ps a byte) after 3 us
//   host           2x2 chips; 1e9 B/s per chip to other slices, after 10 us more
//   VALU           4 slots of 8 x 128 lanes: Compute(n) below takes n cycles
#ifndef TPUSIM_TESTS_MODELS_TEST_CHIP_H_
#define TPUSIM_TESTS_MODELS_TEST_CHIP_H_

#include <memory>
#include <ostream>
#include <utility>

#include "configs/chip.h"
#include "configs/units.h"
#include "models/isa/program.h"

namespace tpusim {

// Prints a quantity for GoogleTest.
template <typename Tag, typename Rep>
void PrintTo(const Quantity<Tag, Rep>& quantity, std::ostream* out) {
  *out << quantity.value();
}

}  // namespace tpusim

namespace tpusim::testing {

inline configs::ChipParams TestChip() {
  configs::ChipParams chip;
  chip.name = "test";
  chip.tensor_cores = 1;
  chip.devices = 1;
  chip.clock = Hertz(1e9);
  chip.mxu.count = 1;
  chip.mxu.rows = 128;
  chip.mxu.columns = 128;
  chip.vpu.alus_per_lane = 4;
  chip.vpu.load_slots = 1;
  chip.vpu.store_slots = 1;
  chip.vmem.bytes = Bytes(16'000'000);
  chip.hbm.bytes = Bytes(1'000'000'000);
  chip.hbm.reserved_bytes = Bytes(100'000'000);
  chip.hbm.bytes_per_second = BytesPerSecond(1e12);
  chip.dma.start_latency = chip.dma.write_start_latency = Nanoseconds(500);
  chip.tensor_core.kernel_launch = Microseconds(2);
  chip.ici.link_bytes_per_second = BytesPerSecond(1e11);
  chip.ici.unwrapped_efficiency = 0.5;
  chip.ici.pair_efficiency = 0.5;
  chip.ici.die_to_die_bytes_per_second = BytesPerSecond(1e11);
  chip.ici.hop_latency = Microseconds(1);
  chip.ici.reduce_window = Bytes(1000);
  chip.host.pcie_bytes_per_second = BytesPerSecond(1e10);
  chip.host.pcie_latency = Microseconds(3);
  chip.host.dcn_bytes_per_second = BytesPerSecond(1e9);
  chip.host.dcn_latency = Microseconds(10);
  chip.host.chips_x = chip.host.chips_y = 2;
  return chip;
}

template <typename... Kinds>
isa::Body MakeBody(Kinds&&... kinds) {
  isa::Body body;
  (body.push_back(isa::Instruction{std::forward<Kinds>(kinds)}), ...);
  return body;
}

template <typename... Kinds>
isa::SharedBody Share(Kinds&&... kinds) {
  return std::make_shared<const isa::Body>(MakeBody(std::forward<Kinds>(kinds)...));
}

// Work of the vector slots for so many cycles.
inline isa::Block Compute(int64_t cycles) {
  isa::Block block;
  block.valu = 4 * cycles;
  return block;
}

inline isa::Block Latency(int64_t cycles) {
  isa::Block block;
  block.latency = Cycles(cycles);
  return block;
}

inline isa::Window Input(int64_t bytes, uint32_t moves_with, int32_t buffers = 2) {
  isa::Window window;
  window.bytes = Bytes(bytes);
  window.moves_with = moves_with;
  window.buffers = buffers;
  return window;
}

inline isa::Window Output(int64_t bytes, uint32_t moves_with, int32_t buffers = 2) {
  isa::Window window = Input(bytes, moves_with, buffers);
  window.kind = isa::WindowKind::kOutput;
  return window;
}

}  // namespace tpusim::testing

#endif  // TPUSIM_TESTS_MODELS_TEST_CHIP_H_
