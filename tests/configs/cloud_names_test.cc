#include "configs/cloud_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "configs/config.h"
#include "configs/status_macros.h"

namespace tpusim::configs {
namespace {

using ::testing::HasSubstr;

std::string NameOf(const char* text) {
  const auto config = LoadConfig(text, {});
  return config.ok() ? config->name : Message(config.status());
}

TEST(CloudNamesTest, ChipsOnV5eAndV6eCoresOnOthers) {
  EXPECT_EQ(NameOf("v5litepod-8"), "v5e-2x4");
  EXPECT_EQ(NameOf("v6e-8"), "v6e-2x4");
  EXPECT_EQ(NameOf("v6e-256"), "v6e-16x16");
  EXPECT_EQ(NameOf("v4-32"), "v4-2x2x4");     // 16 chips
  EXPECT_EQ(NameOf("v5p-128"), "v5p-4x4x4");  // 64 chips
  EXPECT_EQ(NameOf("v3-32"), "v3-4x4");       // 16 chips
}

TEST(CloudNamesTest, OfOthersAndOfMachines) {
  EXPECT_EQ(NameOf("tpu7x-128"), "v7x-4x4x4");  // 128 devices
  EXPECT_EQ(NameOf("v7x-8"), "v7x-2x2x1");
  EXPECT_EQ(NameOf("tpu7x:4x4x4"), "v7x-4x4x4");
  EXPECT_EQ(NameOf("2x(tpu7x-2x2x1)"), "2x(v7x-2x2x1)");
  EXPECT_EQ(NameOf("v5e:4x2"), "v5e-4x2");
  EXPECT_EQ(NameOf("v5litepod-4x4"), "v5e-4x4");
  EXPECT_EQ(NameOf("tpu7x-standard-4t"), "v7x-2x2x1");
  EXPECT_EQ(NameOf("ct5lp-hightpu-8t"), "v5e-2x4");
  EXPECT_EQ(NameOf("ct5p-hightpu-4t"), "v5p-2x2x1");
  EXPECT_THAT(NameOf("ct6e-standard-x"), HasSubstr("ct6e"));
  EXPECT_THAT(NameOf("v7x-7"), HasSubstr("two per chip"));
}

TEST(CloudNamesTest, TheMostCompactSlice) {
  EXPECT_EQ(NameOf("v4-1024"), "v4-8x8x8");  // not 4x8x16
  EXPECT_EQ(SliceOfChips({"2x8", "4x4"}, 16), "4x4");
  EXPECT_EQ(SliceOfChips({"2x8", "4x4"}, 15), "");
}

TEST(CloudNamesTest, NumbersThatNoSliceHas) {
  EXPECT_THAT(NameOf("v6e-7"), HasSubstr("no slice of 7 chips"));
  EXPECT_THAT(NameOf("v4-7"), HasSubstr("counts TensorCores"));
}

TEST(CloudNamesTest, OtherNamesAreNone) {
  EXPECT_FALSE(ParseCloudName("v5e-4x2"));
  EXPECT_FALSE(ParseCloudName("v9-8"));
  EXPECT_FALSE(ParseCloudName("v4"));
}

}  // namespace
}  // namespace tpusim::configs
