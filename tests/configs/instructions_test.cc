#include "configs/instructions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "configs/chip_file.h"
#include "configs/config.h"
#include "configs/config_digest.h"
#include "configs/status_macros.h"

namespace tpusim::configs {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(InstructionsTest, ARowIsTheChipsOwnElseThatOfTheOneItIsLike) {
  const auto of = [](const std::string& chip, const char* operation, const char* type) {
    return LoadChip(chip, "")->chip.instructions->At(operation, type);
  };
  EXPECT_EQ(of("v5e", "sine", "f32"), (InstructionCost{.valu = 148}));
  EXPECT_EQ(of("v6e", "sine", "f32"), (InstructionCost{.valu = 96, .eup = 2}));
  EXPECT_EQ(of("8t", "sine", "f32"), (InstructionCost{.valu = 96, .eup = 2}));  // like v7x
  EXPECT_EQ(of("v4", "widen", "f16"), (InstructionCost{.valu = 15}));
  EXPECT_EQ(of("v5p", "widen", "f16"), (InstructionCost{.valu = 1}));
}

TEST(InstructionsTest, ATypeWithoutARowHasThatOfTheTypeThatStandsForIt) {
  const Instructions rows = BuiltInInstructions("v5e", "v5e");
  EXPECT_EQ(rows.At("divide", "f32").valu, 14);
  EXPECT_EQ(rows.At("divide", "bf16").valu, 2);
  EXPECT_EQ(rows.At("divide", "f8e4m3fn").valu, 2);
  EXPECT_EQ(rows.At("divide", "f64").valu, 14);
  EXPECT_EQ(rows.At("divide", "u8").valu, 326);
  EXPECT_EQ(rows.At("add", "s32").valu, 1);  // that of f32
  EXPECT_EQ(rows.Find("sort", "f32"), nullptr);
}

TEST(InstructionsTest, SourcesAreSentences) {
  for (const std::string& chip : ChipNames()) {
    const auto file = LoadChip(chip, "");
    for (const InstructionRow& row : file->chip.instructions->rows()) {
      EXPECT_GE(row.source.size(), 10) << chip << " " << row.operation;
    }
  }
  EXPECT_THAT(BuiltInInstructions("v5e", "v5e").Find("sine", "f32")->source,
              StartsWith("bundles of single operations"));
}

TEST(InstructionsTest, AChipOfOnesOwnReplacesRows) {
  const auto parse = [](const std::string& text) { return ParseChip(text, "my.json", ""); };
  const auto own = parse(
      R"({"base": "v5e", "instructions": [{"operation": "sine", "type": "f32", "valu": 20}]})");
  ASSERT_TRUE(own.ok()) << Message(own.status());
  EXPECT_EQ(own->chip.instructions->At("sine"), (InstructionCost{.valu = 20}));
  EXPECT_EQ(own->chip.instructions->Find("sine", "f32")->source, "my.json: instructions");
  EXPECT_EQ(own->chip.instructions->At("cosine").valu, 147);
  const auto fault = [&](const std::string& rows) {
    return Message(parse(R"({"base": "v5e", "instructions": )" + rows + "}").status());
  };
  EXPECT_EQ(fault("{}"), "my.json: instructions must be a list");
  EXPECT_THAT(fault(R"([{"operation": "sin", "type": "f32", "valu": 1}])"),
              HasSubstr("there is no operation \"sin\""));
  EXPECT_THAT(fault(R"([{"operation": "sine", "type": "f32", "vpu": 1}])"),
              HasSubstr("unknown field \"vpu\"; operation, type, valu"));
  EXPECT_THAT(fault(R"([{"operation": "sine", "type": "f32", "valu": -1}])"),
              HasSubstr("valu must be a number from 0 to 10000"));
  EXPECT_THAT(fault(R"([{"valu": 1}])"), HasSubstr("a row has an operation and a type"));
}

TEST(InstructionsTest, RowsAreInTheDigestOfAConfiguration) {
  const auto digest = [](const Instructions& rows) {
    Config config = LoadConfig("v5e-4x2", {}).value();
    config.chip.instructions = std::make_shared<const Instructions>(rows);
    Digest of;
    AddTo(of, config);
    return of.Text();
  };
  Instructions rows = BuiltInInstructions("v5e", "v5e");
  const std::string before = digest(rows);
  EXPECT_EQ(digest(rows), before);
  rows.Add({"sine", "f32", {.valu = 147}, "a wish"});
  EXPECT_NE(digest(rows), before);
}

TEST(InstructionsTest, ACostIsText) {
  EXPECT_EQ(ToString(InstructionCost{.valu = 96, .eup = 2}), "96 VALU, 2 EUP");
  EXPECT_EQ(ToString(InstructionCost{.xlu = 1}), "1 XLU");
  EXPECT_EQ(ToString(InstructionCost{}), "0");
}

}  // namespace
}  // namespace tpusim::configs
