#include "tools/tpusim/output/outputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include "configs/status_macros.h"
#include "tests/temporary_folder.h"

namespace tpusim::tools {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

class OutputsTest : public ::testing::Test {
 protected:
  std::string In(const std::string& name) const { return (folder_ / name).string(); }
  int64_t Files() const {
    return std::distance(fs::directory_iterator(folder_), fs::directory_iterator());
  }

  const TemporaryFolder temporary_;
  const fs::path folder_ = temporary_.path();
};

TEST_F(OutputsTest, TryingLeavesNothingBehind) {
  EXPECT_TRUE(CheckOutputs({{"--trace", In("t")}, {"--report", In("r")}, {"-o", ""}}, {}).ok());
  EXPECT_EQ(Files(), 0);
}

TEST_F(OutputsTest, AnExistingFileMayBeReplaced) {
  std::ofstream(In("r")) << "old";
  EXPECT_TRUE(CheckOutputs({{"--report", In("r")}}, {{"workload", In("w.pb")}}).ok());
  EXPECT_EQ(Files(), 1);
}

TEST_F(OutputsTest, NamesTheFlagAndThePath) {
  const std::string missing = In("no/such/r.json");
  EXPECT_THAT(Message(CheckOutputs({{"--report", missing}}, {})),
              AllOf(HasSubstr("--report"), HasSubstr(missing), HasSubstr("create its folder")));
  EXPECT_THAT(Message(CheckOutputs({{"--trace", folder_.string()}}, {})),
              AllOf(HasSubstr("--trace"), HasSubstr("Is a directory")));
  EXPECT_FALSE(CheckOutputs({{"--trace", In("new_folder/")}}, {}).ok());
  EXPECT_EQ(Files(), 0);
}

TEST_F(OutputsTest, TwoOutputsNeedTwoFiles) {
  EXPECT_THAT(Message(CheckOutputs({{"--trace", In("a")}, {"--report", In("./a")}}, {})),
              AllOf(HasSubstr("--trace"), HasSubstr("--report")));
  // A device takes both.
  EXPECT_TRUE(CheckOutputs({{"--trace", "/dev/null"}, {"--report", "/dev/null"}}, {}).ok());
}

TEST_F(OutputsTest, TheWorkloadIsNotOverwritten) {
  std::ofstream(In("w.pb")) << "workload";
  const std::string same = In("../" + folder_.filename().string() + "/w.pb");
  EXPECT_THAT(Message(CheckOutputs({{"--report", In("w.pb")}}, {{"workload", same}})),
              HasSubstr("the workload itself"));
}

}  // namespace
}  // namespace tpusim::tools
