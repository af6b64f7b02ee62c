#include "configs/digest.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "configs/config_digest.h"
#include "configs/status_macros.h"

namespace tpusim::configs {
namespace {

// Files keep digests: they are the same in every process, and in the next year.
TEST(DigestTest, IsThatOfToday) {
  EXPECT_EQ(Digest().Text(), "6c62272e07bb014262b821756295c58d");
  EXPECT_EQ(Digest().Add("step", 3, true, 0.5).Text(), "1f3dff7779af058ad6421ed2992d0ce4");
  EXPECT_EQ(Digest().Low(), 0x62b821756295c58du);
}

TEST(DigestTest, WhereValuesEndCounts) {
  using Texts = std::vector<std::string>;
  const std::set<std::string> digests = {Digest().Add("ab", "c").Text(),
                                         Digest().Add("a", "bc").Text(),
                                         Digest().Add("abc").Text(),
                                         Digest().Add("abc", "").Text(),
                                         Digest().Add(Texts{"ab", "c"}).Text(),
                                         Digest().Add(Texts{}, "abc").Text(),
                                         Digest().Add(Texts{"ab"}, "c").Text(),
                                         Digest().Add(std::vector<Texts>{{"abc"}}).Text(),
                                         Digest().Add(std::string("ab\0c", 4)).Text()};
  EXPECT_EQ(digests.size(), 9u);
}

std::string DigestOf(const std::string& config, const std::vector<std::string>& overrides = {}) {
  Digest digest;
  AddTo(digest, LoadConfig(config, overrides).value());
  return digest.Text();
}

TEST(ConfigDigestTest, WhatDiffersIsToldApart) {
  EXPECT_EQ(DigestOf("v5e-4x2"), DigestOf("v5e-4x2", {"chip.hbm.bytes_per_second=1x"}));
  const std::set<std::string> digests = {
      DigestOf("v5e-4x2"),
      DigestOf("v5e-2x4"),
      DigestOf("v5e-2x2"),
      DigestOf("v6e-4x2"),
      DigestOf("2x(v5e-4x2)"),
      DigestOf("v5p-4x4x8"),
      DigestOf("v5p-4x4x8_twisted"),
      DigestOf("v5e-4x2", {"chip.hbm.bytes_per_second=2x"}),
      DigestOf("v5e-4x2", {"chip.hbm.efficiency=0.5"}),
      DigestOf("v5e-4x2", {"compiler.single_phase_most_bytes=1MiB"})};
  EXPECT_EQ(digests.size(), 10u);
}

}  // namespace
}  // namespace tpusim::configs
