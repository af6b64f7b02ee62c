// The memory that a message will take, computed from its bytes.
#include "workloads/hlo/io/parsed_size.h"

#include "hlo_test_util.h"
#include "workloads/hlo/io/import.h"

namespace tpusim::hlo {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kNoLimit = int64_t{1} << 60;

int64_t SizeOf(const std::string& wire) {
  return ParsedSize(wire, *pb::HloModuleProto::descriptor(), kNoLimit).value_or(-1);
}

// A length-delimited field of wire format.
std::string Field(int number, const std::string& content) {
  std::string wire(1, static_cast<char>(number << 3 | 2));
  for (size_t n = content.size();; n >>= 7) {
    wire += static_cast<char>((n & 127) | (n > 127 ? 128 : 0));
    if (n <= 127) return wire + content;
  }
}
std::string Times(int64_t count, const std::string& text) {
  std::string all;
  for (int64_t n = 0; n < count; ++n) all += text;
  return all;
}

TEST(ParsedSizeTest, AgreesWithWhatParsingTakes) {
  double most = 0;
  for (const std::string& file : CommittedExports()) {
    const std::string bytes = ReadBytes(file);
    pb::HloModuleProto module;
    if (!module.ParseFromString(bytes)) continue;
    const auto taken = static_cast<double>(module.SpaceUsedLong());
    const auto said = static_cast<double>(SizeOf(bytes));
    EXPECT_GT(said, 0.6 * taken) << file;
    EXPECT_LT(said, 1.8 * taken) << file;
    most = std::max(most, said / static_cast<double>(bytes.size()));
  }
  // Half of the limit.
  EXPECT_LT(most, 24);
}

TEST(ParsedSizeTest, CountsMessagesAndNumbersAndText) {
  const int64_t empty = SizeOf("");
  EXPECT_GE(empty, static_cast<int64_t>(sizeof(pb::HloModuleProto)));
  const int64_t computation = SizeOf(Field(3, "")) - empty;
  EXPECT_GE(computation, static_cast<int64_t>(sizeof(pb::HloComputationProto)));
  EXPECT_EQ(SizeOf(Times(1000, Field(3, ""))), empty + 1000 * computation);
  // name = 1 of a module: 40 bytes around 7 characters.
  EXPECT_EQ(SizeOf(Field(1, "seventy")), empty + 47);
  // Packed dimensions = 3 of a shape = 3 of an instruction = 2: 8 bytes per byte.
  const auto shape = [](const std::string& dims) {
    return Field(3, Field(2, Field(3, Field(3, dims))));
  };
  EXPECT_EQ(SizeOf(shape(std::string(50, '\1'))) - SizeOf(shape("")), 50 * 8);
  // A field that the schema does not have is kept: 16 bytes, and 40 around text.
  EXPECT_EQ(SizeOf(Field(9, "xyz")), empty + 16 + 43);
}

TEST(ParsedSizeTest, StopsWhereTheLimitOrTheDamageIs) {
  const std::string many = Times(1'000'000, Field(3, ""));
  EXPECT_LT(*ParsedSize(many, *pb::HloModuleProto::descriptor(), 5000), 6000);
  EXPECT_EQ(SizeOf("\x1a"), -1);                   // no length
  EXPECT_EQ(SizeOf("\x1a\x05xy"), -1);             // too long
  EXPECT_EQ(SizeOf(Field(3, "\x12\x05xy")), -1);   // too long, inside
  EXPECT_EQ(SizeOf(std::string(20, '\xff')), -1);  // endless number
  EXPECT_EQ(SizeOf("\x1f" + Field(3, "")), -1);    // no such wire type
}

// Instructions of nothing inside a computation, messages of nothing in the side
// channel, tuples of nothing: each would take more than a gigabyte.
TEST(ParsedSizeTest, BombsAreRefusedBeforeTheyAreParsed) {
  const std::string start = Field(1, "m") + Field(2, "e");
  const std::string parameter = Field(1, "p") + Field(2, "parameter");
  const int64_t count = 8'000'000;
  const std::string bombs[] = {
      start + Field(3, Field(1, "e") + Field(2, parameter) + Times(count, Field(2, ""))),
      start + Field(3, Field(1, "e") + Field(2, parameter)) + Times(count, Field(3, "")),
      start + Field(3, Field(1, "e") + Field(2, parameter + Field(3, Times(count, Field(4, ""))))),
  };
  for (const std::string& bomb : bombs) {
    const auto imported = Import(bomb, "w.pb");
    ASSERT_FALSE(imported.ok());
    EXPECT_THAT(Message(imported.status()), HasSubstr("MiB of nearly empty messages"));
  }
}

}  // namespace
}  // namespace tpusim::hlo
