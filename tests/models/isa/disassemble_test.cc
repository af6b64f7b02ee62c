#include <gtest/gtest.h>

#include "models/isa/program.h"
#include "tests/models/isa/small_programs.h"

namespace tpusim::isa {
namespace {

TEST(Disassemble, ShowsEveryInstructionWhereItIs) {
  PodProgram program;
  program.info.module_name = "jit_f";
  program.info.ops.resize(2);
  program.info.ops[0].name = "fusion.3";
  program.info.ops[0].category = "convolution fusion";
  program.info.ops[0].flops = Flops(4096);
  program.info.ops[0].source = "f.py:12";
  program.info.ops[1].name = "all-gather.1";
  program.info.ops[1].category = "all-gather";
  program.info.buffers = {{"%a", Bytes(64)}};
  program.program_of_device = {0, 0, 1, 0};
  Route route;
  route.name = "right";
  route.from.resize(4);
  route.from[0] = {1, {{0, configs::Direction::kXPlus}}};
  route.from[1] = {3, {{1, configs::Direction::kXPlus}, {2, configs::Direction::kXPlus}}};
  program.routes = {route};

  Kernel kernel;
  kernel.grid = {{4, 1.0}, {2, 0.5}};
  kernel.block.mxu.m = 256;
  kernel.block.mxu.k = 1024;
  kernel.block.mxu.n = 512;
  kernel.block.valu = 128;
  Window in, out;
  in.operand = "%a";
  in.bytes = Bytes(262144);
  in.moves_with = 3;
  out.kind = WindowKind::kOutput;
  out.operand = "%r";
  out.bytes = Bytes(1024);
  out.buffers = 1;
  kernel.windows = {in, out};

  Rdma rdma;
  rdma.bytes = Bytes(4096);
  rdma.arrival_flag = 3;
  rdma.sent_flag = 1;
  rdma.reduce = ReduceAdd{2, 3};
  Block launch;
  launch.latency = Cycles(75);
  const SharedBody gather =
      Share({{Label{1, true}}, {launch}, {rdma}, {Wait{3, 2}}, {Signal{0, 4}}, {Label{1, false}}});
  program.programs = {
      Share({{Alloc{MemorySpace::kHbm, 0}},
             {Start{{StreamKind::kCollective, 1}, 7, gather}},
             {Label{0, true}},
             {kernel},
             {Label{0, false}},
             {Loop{5, Share({{Dma{MemorySpace::kHbm, MemorySpace::kVmem, Bytes(8)}}})}},
             {Branch{1, {Share({}), Share({{HostDma{true, Bytes(16)}}})}}},
             {Done{7}},
             {Free{MemorySpace::kHbm, 0}}}),
      Share({})};

  EXPECT_EQ(Disassemble(program),
            R"(module jit_f
route 'right': from devices 0-1, 1-2 hops; from 0 to 1 over 0:x+
program 0: devices 0-1,3
  alloc hbm %a 64 B
  start collective[1] token 7
    begin all-gather.1 [all-gather]
      block latency 75
      rdma 'right' 4096 B hbm -> hbm, adds elements of 2 B, arrives at flag 3, sent at flag 1
      wait flag 3 count 2
      signal 'right' flag 4
    end all-gather.1
  begin fusion.3 [convolution fusion] flops=4096 f.py:12
    kernel grid 4x2(0.5) step mxu 256x1024x512 bf16, valu 128
      in  %a 262144 B hbm, moves with d0 d1, 2 buffers
      out %r 1024 B hbm, stays, 1 buffer
  end fusion.3
  loop 5 times
    dma 8 B hbm -> vmem
  branch 1 of 2 taken
    hdma 16 B hbm -> host
  done token 7
  free hbm %a 64 B
program 1: devices 2
)");
}

}  // namespace
}  // namespace tpusim::isa
