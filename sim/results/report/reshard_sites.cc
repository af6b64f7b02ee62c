#include "sim/results/report/reshard_sites.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "sim/results/report/text.h"

namespace tpusim::results {
namespace {

// Shares of the step. Less exposed time is not worth the attention that a warning costs; a sharding
// that was lost is, if so much of the step waits for communication.
constexpr double kWorthAWarning = 0.02, kWaitsForCommunication = 0.1;
constexpr size_t kMostWarnings = 3;
// A share of the largest value that was resharded unasked.
constexpr double kLarge = 0.1;
// A list of values, one per layer, is what `tpusim advise` is for.
constexpr size_t kReadableConstraint = 60;

std::string Advice(const isa::ReshardSite& site) {
  if (site.constraints.empty()) return "";
  const std::string& text = site.constraints[0].text;
  if (text.size() > kReadableConstraint) return "; `tpusim advise` tries constraints on it";
  return fmt::format("; try --constrain \"{}\" (tpusim advise)", text);
}

std::string Place(const isa::ReshardSite& site) {
  return site.source.empty() ? site.scope : site.source;
}

std::string MovedText(const ReshardSiteReport& r, double share) {
  const isa::ReshardSite& site = r.site;
  return fmt::format(
      "{}: {} of {} {} ({}) from {} to {} for {}{}, {} exposed ({} of the step): {}{}", Place(site),
      site.kind, site.value, site.shape, BytesText(site.whole), site.from, site.to, site.user,
      site.places > 1 ? fmt::format(" and {} more", site.places - 1) : "", TimeText(r.exposed),
      PercentText(share), site.why, Advice(site));
}

std::string LostText(const isa::ReshardSite& site) {
  return fmt::format("{}: {} ({}) is resharded: {}{}", Place(site), site.user,
                     BytesText(site.lost_by), site.why, Advice(site));
}

}  // namespace

std::vector<ReshardSiteReport> ReshardSites(const isa::ProgramInfo& info,
                                            const sim::Timeline& timeline) {
  std::vector<ReshardSiteReport> all;
  for (const isa::ReshardSite& site : info.reshard_sites) {
    all.push_back({site, static_cast<int64_t>(all.size())});
  }
  for (size_t i = 0; i < timeline.ops.size(); ++i) {
    const int32_t collective = info.ops[i].collective;
    if (collective < 0 || timeline.ops[i].count == 0) continue;
    const int32_t site = info.collectives[collective].reshard_site;
    if (site < 0 || site >= static_cast<int32_t>(all.size())) continue;
    all[site].count += timeline.ops[i].count;
    all[site].total += timeline.ops[i].total;
    all[site].exposed += timeline.ops[i].exposed;
  }
  std::erase_if(all, [](const ReshardSiteReport& site) { return site.count == 0; });
  std::ranges::stable_sort(all, std::greater<>(), &ReshardSiteReport::exposed);
  return all;
}

std::vector<const ReshardSiteReport*> SitesThatMatter(const std::vector<ReshardSiteReport>& sites,
                                                      size_t most) {
  Bytes largest{0};
  for (const ReshardSiteReport& site : sites) largest = std::max(largest, site.site.lost_by);
  std::vector<const ReshardSiteReport*> by_time, by_loss;
  for (const ReshardSiteReport& site : sites) {
    by_time.push_back(&site);
    const bool is_large = largest > Bytes(0) && Ratio(site.site.lost_by, largest) >= kLarge;
    if (is_large) by_loss.push_back(&site);
  }
  std::ranges::stable_sort(by_loss, {}, &ReshardSiteReport::order);
  std::vector<const ReshardSiteReport*> chosen;
  for (size_t i = 0; i < by_time.size() && chosen.size() < most; ++i) {
    for (const auto* list : {&by_loss, &by_time}) {
      if (i >= list->size() || chosen.size() == most) continue;
      const ReshardSiteReport* site = (*list)[i];
      if (std::find(chosen.begin(), chosen.end(), site) == chosen.end()) chosen.push_back(site);
    }
  }
  return chosen;
}

std::vector<std::string> ReshardWarnings(const std::vector<ReshardSiteReport>& sites,
                                         Picoseconds exposed, Picoseconds step) {
  std::vector<std::string> warnings;
  if (step == Picoseconds(0)) return warnings;
  const bool waits = Ratio(exposed, step) >= kWaitsForCommunication;
  for (const ReshardSiteReport* r : SitesThatMatter(sites, sites.size())) {
    if (warnings.size() == kMostWarnings) break;
    const double share = Ratio(r->exposed, step);
    if (share >= kWorthAWarning) {
      warnings.push_back(MovedText(*r, share));
    } else if (waits && r->site.lost_by > r->site.whole) {
      warnings.push_back(LostText(r->site));
    }
  }
  return warnings;
}

}  // namespace tpusim::results
