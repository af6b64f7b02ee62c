// The counters of the network: what resources have carried, and whether it adds up.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "configs/status_macros.h"
#include "models/flow/network.h"

namespace tpusim::flow {
namespace {

// The rounding of sums, relative to them.
constexpr double kRounding = 1e-9;

double InSeconds(int64_t picoseconds) { return ToSeconds(Picoseconds(picoseconds)); }

}  // namespace

double Network::Carried(ResourceId id) const {
  const Resource& resource = resources_[id.value];
  double sum = resource.carried;
  for (const User& user : resource.users) {
    const Flow& flow = flows_[user.flow];
    const double moved = std::min(flow.remaining, flow.rate * InSeconds(now_ - flow.settled));
    sum += flow.uses[user.use].weight * moved;
  }
  return sum;
}

double Network::Demand(ResourceId id) const {
  const Resource& resource = resources_[id.value];
  return resource.charged == 0 ? 0 : resource.charged / resource.capacity;
}

double Network::ToCome(const Resource& resource) const {
  double to_come = 0;
  for (const User& user : resource.users) {
    const Flow& flow = flows_[user.flow];
    to_come += flow.uses[user.use].weight * flow.remaining;
  }
  return to_come;
}

void Network::Balance(Resource& resource) const {
  const double carried = resource.charged - ToCome(resource);
  if (std::abs(carried - resource.carried) > kRounding * resource.charged) {
    resource.carried = carried;
  }
}

std::string Network::CheckConservation() const {
  for (uint32_t r = 0; r < resources_.size(); ++r) {
    const Resource& resource = resources_[r];
    const Ledger& ledger = ledgers_[r];
    const double to_come = ToCome(resource);
    if (std::abs(resource.carried + to_come - resource.charged) > kRounding * resource.charged) {
      return fmt::format("{}: {} units charged, but {} carried and {} to come", ledger.name,
                         resource.charged, resource.carried, to_come);
    }
    const double offered = resource.capacity * InSeconds(now_);
    const double slack = resource.capacity *
                         InSeconds(static_cast<int64_t>(resource.ended + resource.users.size()));
    const double carried = Carried(ResourceId{r});
    if (carried > offered * (1 + kRounding) + slack + ledger.lent) {
      return fmt::format("{}: {} units carried, but its capacity allows {}", ledger.name, carried,
                         offered);
    }
  }
  return "";
}

}  // namespace tpusim::flow
