#include "sim/results/report/atomic_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "configs/status_macros.h"
#include "tests/temporary_folder.h"

namespace tpusim::results {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class AtomicFileTest : public ::testing::Test {
 protected:
  std::string Path(const std::string& name) const { return (folder_ / name).string(); }
  static std::string Read(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    std::ostringstream out;
    out << in.rdbuf();
    return out.str();
  }
  size_t Files() const {
    return static_cast<size_t>(
        std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }

  const TemporaryFolder temporary_;
  const fs::path folder_ = temporary_.path();
};

TEST_F(AtomicFileTest, WritesAllBytesAndNothingElse) {
  const std::string bytes("a\0b\n", 4);
  ASSERT_TRUE(WriteFileAtomically(Path("out"), bytes).ok());
  EXPECT_EQ(Read(Path("out")), bytes);
  EXPECT_EQ(Files(), 1u);
}

TEST_F(AtomicFileTest, ReplacesWhatWasThere) {
  ASSERT_TRUE(WriteFileAtomically(Path("out"), "a long first version").ok());
  ASSERT_TRUE(WriteFileAtomically(Path("out"), "second").ok());
  EXPECT_EQ(Read(Path("out")), "second");
  EXPECT_EQ(Files(), 1u);
}

TEST_F(AtomicFileTest, KeepsThePermissionsOfWhatItReplaces) {
  for (const fs::perms permissions : {fs::perms(0600), fs::perms(0640), fs::perms(0444)}) {
    ASSERT_TRUE(WriteFileAtomically(Path("out"), "first").ok());
    fs::permissions(Path("out"), permissions);
    ASSERT_TRUE(WriteFileAtomically(Path("out"), "second").ok());
    EXPECT_EQ(Read(Path("out")), "second");
    EXPECT_EQ(fs::status(Path("out")).permissions(), permissions);
    // Nobody else may read what is written before it is whole.
    const auto half = TemporaryFile::Beside(Path("out"));
    ASSERT_TRUE(half.ok());
    EXPECT_EQ(fs::status(half->path()).permissions(), permissions);
  }
}

TEST_F(AtomicFileTest, TakesEveryNameThatAFileCanHave) {
  for (const size_t bytes : {99, 100, 101, 250, 251, 255}) {
    const std::string path = Path(std::string(bytes, 'x'));
    EXPECT_TRUE(WriteFileAtomically(path, "whole").ok()) << bytes;
    EXPECT_EQ(Read(path), "whole");
  }
  EXPECT_EQ(Files(), 6u);
  const absl::Status status = WriteFileAtomically(Path(std::string(256, 'x')), "x");
  EXPECT_THAT(Message(status), HasSubstr("File name too long"));
  EXPECT_EQ(Files(), 6u);
}

TEST_F(AtomicFileTest, WritesThroughLinks) {
  ASSERT_TRUE(WriteFileAtomically(Path("real"), "first").ok());
  fs::create_symlink("real", Path("link"));
  ASSERT_TRUE(WriteFileAtomically(Path("link"), "second").ok());
  EXPECT_TRUE(fs::is_symlink(Path("link")));
  EXPECT_EQ(Read(Path("real")), "second");
}

TEST_F(AtomicFileTest, WritesThroughALinkToWhatIsYetToBeMade) {
  fs::create_symlink("to_come", Path("link"));
  EXPECT_EQ(ResolvedPath(Path("link")), fs::canonical(folder_).string() + "/to_come");
  ASSERT_TRUE(WriteFileAtomically(Path("link"), "made").ok());
  EXPECT_TRUE(fs::is_symlink(Path("link")));
  EXPECT_EQ(Read(Path("to_come")), "made");
}

TEST_F(AtomicFileTest, ATemporaryFileIsGoneUnlessItWasRenamed) {
  {
    const auto file = TemporaryFile::Beside(Path("out"));
    ASSERT_TRUE(file.ok());
    EXPECT_EQ(Files(), 1u);
    // Of the same process, as of one that was killed, the name is taken.
    EXPECT_NE(TemporaryFile::Beside(Path("out"))->path(), file->path());
  }
  EXPECT_EQ(Files(), 0u);
}

TEST_F(AtomicFileTest, ASignalRemovesTemporaryFiles) {
  EXPECT_EXIT(
      {
        RemoveTemporariesOnSignals();
        auto file = TemporaryFile::Beside(Path("out"));
        TPUSIM_CHECK(file->Write("half") == 0, "a full disk");
        ::raise(SIGTERM);
      },
      ::testing::ExitedWithCode(143), "");
  EXPECT_EQ(Files(), 0u);
}

TEST_F(AtomicFileTest, LeavesDevicesWhereTheyAre) {
  ASSERT_TRUE(WriteFileAtomically("/dev/null", "gone").ok());
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST_F(AtomicFileTest, SaysWhatToDoAboutAMissingFolder) {
  const absl::Status status = WriteFileAtomically(Path("none/out"), "x");
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Message(status), HasSubstr("none/out': No such file or directory"));
  EXPECT_THAT(Message(status), HasSubstr("create its folder first"));
}

TEST_F(AtomicFileTest, AFolderIsNoFile) {
  const absl::Status status = WriteFileAtomically(folder_.string(), "x");
  EXPECT_THAT(Message(status), HasSubstr("Is a directory"));
  EXPECT_EQ(Files(), 0u);
}

}  // namespace
}  // namespace tpusim::results
