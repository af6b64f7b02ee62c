#include "sim/results/report/reshard_sites.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sample.h"
#include "sim/results/report/build_report.h"

namespace tpusim::results {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

isa::ReshardSite Site(const std::string& user, int64_t whole, int64_t lost_by) {
  isa::ReshardSite site;
  site.kind = "all-gather";
  site.value = "act";
  site.user = user;
  site.source = "model.py:7";
  site.shape = "bf16[1000,1000]";
  site.from = "[{x}, {}]";
  site.to = "[{}, {}]";
  site.why = "`x` shards dim 0 of act";
  site.whole = Bytes(whole);
  site.lost_by = Bytes(lost_by);
  site.places = 2;
  site.constraints = {{user + "=P('x', None)", true}};
  return site;
}

// The all-gather of the sample (20 us, exposed) is of the second site.
Sample WithSites() {
  Sample sample = MakeSample();
  sample.info.reshard_sites = {Site("quiet", 8, 0), Site("dot.1", 2'000'000, 0)};
  sample.info.collectives[0].reshard_site = 1;
  return sample;
}

TEST(ReshardSitesTest, SumsOfTheirCollectives) {
  const Sample sample = WithSites();
  const std::vector<ReshardSiteReport> sites = ReshardSites(sample.info, sample.timeline);
  ASSERT_EQ(sites.size(), 1u);  // the other did not run
  EXPECT_EQ(sites[0].site.user, "dot.1");
  EXPECT_EQ(sites[0].count, 1);
  EXPECT_EQ(sites[0].total, Microseconds(20));
  EXPECT_EQ(sites[0].exposed, Microseconds(20));
}

TEST(ReshardSitesTest, AreInTheReportAndComeBack) {
  const Sample sample = WithSites();
  const auto report = BuildReport(sample.config, sample.info, sample.timeline, "f");
  ASSERT_TRUE(report.ok()) << report.status();
  const auto again = FromJson(ToJson(*report));
  ASSERT_TRUE(again.ok()) << again.status();
  ASSERT_EQ(again->reshard_sites.size(), 1u);
  const ReshardSiteReport& site = again->reshard_sites[0];
  EXPECT_EQ(site.site.why, "`x` shards dim 0 of act");
  EXPECT_EQ(site.site.whole, Bytes(2'000'000));
  EXPECT_EQ(site.site.places, 2);
  EXPECT_EQ(site.exposed, Microseconds(20));
  ASSERT_EQ(site.site.constraints.size(), 1u);
  EXPECT_EQ(site.site.constraints[0].text, "dot.1=P('x', None)");
  EXPECT_TRUE(site.site.constraints[0].of_result);
  EXPECT_EQ(ToJson(*again), ToJson(*report));
}

TEST(ReshardWarningsTest, SayWhereHowMuchWhyAndWhatToTry) {
  const ReshardSiteReport site = {Site("dot.1", 2'000'000, 0), 0, 1, Microseconds(20),
                                  Microseconds(20)};
  EXPECT_THAT(
      ReshardWarnings({site}, Microseconds(20), Microseconds(100)),
      ElementsAre("model.py:7: all-gather of act bf16[1000,1000] (1.907 MiB) from [{x}, {}] "
                  "to [{}, {}] for dot.1 and 1 more, 20.00 us exposed (20.0% of the step): "
                  "`x` shards dim 0 of act; try --constrain \"dot.1=P('x', None)\" "
                  "(tpusim advise)"));
  // 20 us of 10 ms are 0.2 %.
  EXPECT_TRUE(ReshardWarnings({site}, Microseconds(20), Microseconds(10'000)).empty());
}

TEST(ReshardWarningsTest, WhatLosesAShardingMattersWhereTheStepWaits) {
  const ReshardSiteReport site = {Site("gather.1", 1000, 2'000'000), 0, 1, Microseconds(1),
                                  Microseconds(1)};
  EXPECT_TRUE(ReshardWarnings({site}, Microseconds(9), Microseconds(100)).empty());
  EXPECT_THAT(
      ReshardWarnings({site}, Microseconds(10), Microseconds(100)),
      ElementsAre(HasSubstr(
          "model.py:7: gather.1 (1.907 MiB) is resharded: `x` shards dim 0 of act")));
}

TEST(SitesThatMatterTest, InTurnByLossInTheProgramsOrderAndByTime) {
  std::vector<ReshardSiteReport> sites;
  const int64_t lost_by[] = {0, 0, 90, 50, 8};
  for (int i = 0; i < 5; ++i) {
    // The longest exposed comes last in the program.
    sites.push_back({Site(std::to_string(i), 1, lost_by[i]), 5 - i, 1, Microseconds(10 - i),
                     Microseconds(10 - i)});
  }
  std::vector<std::string> users;
  for (const ReshardSiteReport* site : SitesThatMatter(sites, 10)) users.push_back(site->site.user);
  // 3 loses a sharding before 2 does, 4 less than a tenth of what 2 does; 0 is exposed longest.
  EXPECT_THAT(users, ElementsAre("3", "0", "2", "1", "4"));
  EXPECT_EQ(SitesThatMatter(sites, 3).size(), 3u);
}

}  // namespace
}  // namespace tpusim::results
