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

// A quarter for a part that is left out, the share of letters that differ for one that is misspelt.
TEST(NearestPathTest, PartsCountInTheirOrder) {
  const std::vector<std::string> paths = {"chip.mxu.rows", "chip.mxu.efficiency",
                                          "chip.vpu.efficiency", "host.efficient"};
  EXPECT_EQ(NearestPath("chip.mxu.efficiency", paths), "chip.mxu.efficiency");
  EXPECT_EQ(NearestPath("mxu.eficiency", paths), "chip.mxu.efficiency");
  EXPECT_EQ(NearestPath("vpu", paths), "chip.vpu.efficiency");
  EXPECT_EQ(NearestPath("CHIP.MXU.ROW", paths), "chip.mxu.rows");
  EXPECT_EQ(NearestPath("host.mxu", paths), "host.efficient");
  EXPECT_EQ(NearestPath("x", {}), "");
}

TEST(NearestPathTest, AGuessComesWithWhatIsBesideIt) {
  const std::vector<std::string> paths = {"chip.hbm.bytes", "chip.hbm.bytes_per_second",
                                          "chip.hbm.deep.bytes", "ici.links"};
  EXPECT_EQ(NearestPathText("hbm.byte", paths), "the nearest is chip.hbm.bytes");
  EXPECT_EQ(NearestPathText("chip.hbm.bandwidth", paths),
            "the nearest is chip.hbm.bytes (chip.hbm has bytes, bytes_per_second)");
}

TEST(JoinTest, SeparatesOnlyBetween) {
  EXPECT_EQ(Join({}, ", "), "");
  EXPECT_EQ(Join({"a"}, ", "), "a");
  EXPECT_EQ(Join({"a", "b"}, ", "), "a, b");
}

}  // namespace
}  // namespace tpusim::configs
