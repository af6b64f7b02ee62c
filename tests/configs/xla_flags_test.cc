#include "configs/xla_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "configs/config.h"
#include "configs/status_macros.h"

namespace tpusim::configs {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

ChipParams Chip(const char* slice) { return LoadConfig(slice, {})->chip; }

TEST(XlaFlagsTest, PerformanceStatesChangeTheClock) {
  ChipParams chip = Chip("v7x-1x1x1");
  EXPECT_EQ(chip.clock, Hertz(1.9e9));
  EXPECT_THAT(*ApplyXlaFlags("--xla_tpu_dvfs_p_state=3", chip), IsEmpty());
  EXPECT_EQ(chip.clock, Hertz(1.9e9));
  EXPECT_THAT(*ApplyXlaFlags("--xla_tpu_dvfs_p_state=5", chip),
              ElementsAre(HasSubstr("xla_tpu_dvfs_p_state=5: the clock of this state is not "
                                    "published; that of state 3 is taken")));
  EXPECT_THAT(*ApplyXlaFlags("--xla_tpu_dvfs_p_state=7", chip), IsEmpty());
  EXPECT_EQ(chip.clock, Hertz(2.2e9));
  ChipParams other = Chip("v6e-1x1");
  EXPECT_THAT(*ApplyXlaFlags("--xla_tpu_dvfs_p_state=7", other), IsEmpty());
  EXPECT_EQ(other.clock, Hertz(1.75e9));
}

TEST(XlaFlagsTest, FlagsWithACounterpartChangeTheChip) {
  ChipParams chip = Chip("v6e-1x1");
  ASSERT_EQ(chip.compiler.gathers_in_flight, 0);
  EXPECT_THAT(*ApplyXlaFlags("--xla_enable_async_all_gather=true "
                             "--xla_tpu_scoped_vmem_limit_kib=65536\n"
                             "--xla_tpu_enable_windowed_einsum_for_reduce_scatter=false "
                             "--xla_tpu_host_transfer_overlap_limit=24 "
                             "--xla_tpu_scheduler_percent_shared_memory_limit=100 "
                             "--xla_jf_rematerialization_percent_shared_memory_limit=97 "
                             "--xla_tpu_enable_sparse_core_collective_offload_all_reduce",
                             chip),
              IsEmpty());
  EXPECT_EQ(chip.compiler.gathers_in_flight, 1);
  EXPECT_EQ(chip.vmem.scoped_bytes, Bytes(64 * kMiB));
  EXPECT_TRUE(chip.compiler.windowed_gathers);
  EXPECT_FALSE(chip.compiler.windowed_scatters);
  EXPECT_EQ(chip.compiler.host_copies_in_flight, 24);
  EXPECT_EQ(chip.compiler.scheduled_percent, 100);
  EXPECT_EQ(chip.compiler.rematerialized_percent, 97);
  EXPECT_EQ(chip.sparse_core.offload_all_reduce, Bytes(64 * kKiB));
  EXPECT_EQ(chip.sparse_core.offload_all_gather, Bytes(0));
}

TEST(XlaFlagsTest, AThresholdOfWindowedEinsumsIsASizeOrTheCompilersCost) {
  ChipParams chip = Chip("v5e-1x1");
  ASSERT_TRUE(ApplyXlaFlags("--xla_jf_spmd_threshold_for_windowed_einsum_mib=1000000", chip).ok());
  EXPECT_EQ(chip.compiler.windowed_least_bytes, Bytes(1000000 * kMiB));
  ASSERT_TRUE(ApplyXlaFlags("--xla_jf_spmd_threshold_for_windowed_einsum_mib=-1", chip).ok());
  EXPECT_EQ(chip.compiler.windowed_least_bytes, Bytes(-1));
}

TEST(XlaFlagsTest, TheWindowsOfAKernelDoNotExceedVmem) {
  ChipParams chip = Chip("v5p-1x1x1");
  ASSERT_TRUE(ApplyXlaFlags("--xla_tpu_scoped_vmem_limit_kib=98304", chip).ok());
  EXPECT_EQ(chip.vmem.scoped_bytes, chip.vmem.bytes);  // 64 of the 96 MiB
}

TEST(XlaFlagsTest, OthersAreNamed) {
  ChipParams chip = Chip("v5e-1x1");
  EXPECT_THAT(*ApplyXlaFlags("--xla_tpu_rwb_fusion=false --xla_enable_async_all_gather=true "
                             "--xla_a_new_one",
                             chip),
              ElementsAre("--xla-flags: without effect here: xla_tpu_rwb_fusion, xla_a_new_one"));
}

TEST(XlaFlagsTest, ValuesOutsideOfTheirRangeAreTakenAsItsEnd) {
  ChipParams chip = Chip("v6e-1x1");
  EXPECT_THAT(*ApplyXlaFlags("--xla_tpu_scheduler_percent_shared_memory_limit=150 "
                             "--xla_tpu_scoped_vmem_limit_kib=64",
                             chip, "flags of the program"),
              ElementsAre("flags of the program: xla_tpu_scheduler_percent_shared_memory_limit=150 "
                          "is taken as 100, the most that it can be",
                          "flags of the program: xla_tpu_scoped_vmem_limit_kib=64 is taken as "
                          "1024, the least that it can be"));
  EXPECT_EQ(chip.vmem.scoped_bytes, Bytes(kMiB));
}

TEST(XlaFlagsTest, WhatIsNoFlagOrNoValueIsSaid) {
  ChipParams chip = Chip("v5e-1x1");
  EXPECT_THAT(Message(ApplyXlaFlags("xla_enable_async_all_gather", chip).status()),
              HasSubstr("\"xla_enable_async_all_gather\" is no flag of the compiler"));
  EXPECT_THAT(Message(ApplyXlaFlags("--xla_enable_async_all_gather=maybe", chip).status()),
              HasSubstr("--xla_enable_async_all_gather=maybe: true or false is wanted"));
  EXPECT_THAT(Message(ApplyXlaFlags("--xla_tpu_scoped_vmem_limit_kib=1.5", chip).status()),
              HasSubstr("a whole number from 1024 to 1048576 is wanted"));
}

}  // namespace
}  // namespace tpusim::configs
