#include "configs/names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tpusim::configs {
namespace {

TEST(EditDistanceTest, CountsInsertionsDeletionsAndSubstitutions) {
  EXPECT_EQ(EditDistance("", ""), 0);
  EXPECT_EQ(EditDistance("", "abc"), 3);
  EXPECT_EQ(EditDistance("abc", ""), 3);
  // kitten -> sitten -> sittin -> sitting.
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3);
  EXPECT_EQ(EditDistance("v5e", "v5e"), 0);
  // A swap of neighbours is two substitutions.
  EXPECT_EQ(EditDistance("hbm", "hmb"), 2);
}

TEST(NearestTest, PrefersACandidateThatEndsInTheName) {
  // "dma.bytes" is 3 edits from "hbm.bytes"; "chip.hbm.bytes" is 5, yet meant.
  EXPECT_EQ(Nearest("hbm.bytes", {"dma.bytes", "chip.hbm.bytes"}), "chip.hbm.bytes");
  // A component elsewhere in the name is the next best; "ici" is nearer by letters.
  EXPECT_EQ(Nearest("hbm", {"ici", "chip.hbm.bytes", "hbmm.x"}), "chip.hbm.bytes");
  // Not at a dot: plain distance decides.
  EXPECT_EQ(Nearest("ytes", {"bytes", "kbytes"}), "bytes");
}

TEST(NearestTest, TiesGoToTheFirstAndCaseIsIgnored) {
  EXPECT_EQ(Nearest("v4", {"v5", "v6"}), "v5");
  EXPECT_EQ(Nearest("V5E", {"abc", "v5e"}), "v5e");
  EXPECT_EQ(Nearest("x", {}), "");
}

TEST(JoinTest, SeparatesOnlyBetween) {
  EXPECT_EQ(Join({}, ", "), "");
  EXPECT_EQ(Join({"a"}, ", "), "a");
  EXPECT_EQ(Join({"a", "b"}, ", "), "a, b");
}

}  // namespace
}  // namespace tpusim::configs
