#include "sim/symmetry/limiting_links.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace tpusim::sim {
namespace {

// The transfers of a class over a route, and how often they cross a link for its rate.
struct Crossing {
  size_t path = 0;
  double load = 0;
};
using Crossings = std::vector<Crossing>;  // by increasing path

// Whether every transfer that crosses `less` crosses `more` at least as often.
bool Outdoes(const Crossings& more, const Crossings& less) {
  if (less.size() > more.size()) return false;
  auto at = more.begin();
  for (const Crossing& crossing : less) {
    while (at != more.end() && at->path < crossing.path) ++at;
    if (at == more.end() || at->path != crossing.path || at->load < crossing.load) return false;
  }
  return true;
}

}  // namespace

std::vector<bool> LimitingLinks(const std::vector<std::vector<RouteLoad>>& loads,
                                const std::vector<double>& rates) {
  std::vector<const RouteLoad*> paths;
  std::vector<Crossings> of_link(rates.size());
  for (const std::vector<RouteLoad>& of_route : loads) {
    for (const RouteLoad& load : of_route) {
      for (const RouteLoad::OnLinks& on : load.links) {
        const double for_its_rate = static_cast<double>(on.flows) / rates[on.link_class];
        of_link[on.link_class].push_back({paths.size(), for_its_rate});
      }
      paths.push_back(&load);
    }
  }
  std::vector<bool> limiting(rates.size());
  for (size_t link = 0; link < rates.size(); ++link) {
    const Crossings& crossings = of_link[link];
    if (crossings.empty()) continue;
    const auto outdoes = [&](const RouteLoad::OnLinks& on) {
      const auto other = static_cast<size_t>(on.link_class);
      // Of equal links the first stays.
      return other != link && Outdoes(of_link[other], crossings) &&
             (other < link || !Outdoes(crossings, of_link[other]));
    };
    // All transfers that cross the link cross what outdoes it, so those of one way say which.
    const std::vector<RouteLoad::OnLinks>& others = paths[crossings.front().path]->links;
    limiting[link] = std::none_of(others.begin(), others.end(), outdoes);
  }
  return limiting;
}

}  // namespace tpusim::sim
