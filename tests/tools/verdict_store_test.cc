#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "configs/status_macros.h"
#include "tools/tpusim/shard/store.h"

namespace tpusim::tools {
namespace {

using search::Verdict;

class VerdictStoreTest : public ::testing::Test {
 protected:
  std::string Path(const std::string& name) const {
    return (std::filesystem::path(::testing::TempDir()) / ("verdicts_" + name)).string();
  }
};

Verdict Simulated() {
  Verdict verdict;
  verdict.kind = Verdict::Kind::kSimulated;
  verdict.bound = Picoseconds(5);
  verdict.step = Picoseconds(7);
  verdict.peak = Bytes(11);
  return verdict;
}

TEST_F(VerdictStoreTest, KeepsWhatItIsTold) {
  const std::string path = Path("kept");
  std::filesystem::remove(path);
  {
    VerdictStore store = VerdictStore::Open(path, "one").value();
    ASSERT_TRUE(store.Add("x=8; a 0: x", Simulated()).ok());
    Verdict refused;
    refused.why = "no rule for \"it\"";
    ASSERT_TRUE(store.Add("x=8", refused).ok());
  }
  const VerdictStore store = VerdictStore::Open(path, "one").value();
  const Verdict known = store.Find("x=8; a 0: x").value();
  EXPECT_EQ(known.kind, Verdict::Kind::kSimulated);
  EXPECT_EQ(known.bound, Picoseconds(5));
  EXPECT_EQ(known.step, Picoseconds(7));
  EXPECT_EQ(known.peak, Bytes(11));
  EXPECT_EQ(store.Find("x=8")->why, "no rule for \"it\"");
  EXPECT_FALSE(store.Find("x=4").has_value());
  // Another search in the same file.
  EXPECT_FALSE(VerdictStore::Open(path, "two")->Find("x=8").has_value());
}

TEST_F(VerdictStoreTest, WhatIsNoStoreIsSaid) {
  const std::string path = Path("text");
  std::ofstream(path) << "this is a text, and it is longer than the head of a database file is "
                         "long, so that there is no doubt about it at all";
  const auto store = VerdictStore::Open(path, "one");
  ASSERT_FALSE(store.ok());
  EXPECT_EQ(Message(store.status()), "--store " + path + ": file is not a database");
}

}  // namespace
}  // namespace tpusim::tools
