// The counters of the network: what resources have carried, and whether it adds up.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "configs/status_macros.h"
#include "models/flow/network.h"

namespace tpusim::flow {
namespace {

// The rounding of sums, as a share of themselves.
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

Picoseconds Network::BusyTime(ResourceId id) const {
  const Resource& resource = resources_[id.value];
  return Picoseconds(resource.busy + (resource.moving > 0 ? now_ - resource.busy_since : 0));
}

double Network::Offered(uint32_t resource) const {
  const Ledger& ledger = ledgers_[resource];
  return ledger.offered + resources_[resource].capacity * InSeconds(now_ - ledger.offered_at);
}

double Network::Utilization(ResourceId id) const {
  const double offered = Offered(id.value);
  // Half a picosecond of rounding is not overload; CheckConservation tells real
  // overload from it.
  return offered > 0 ? std::min(1.0, Carried(id) / offered) : 0;
}

double Network::BusyUtilization(ResourceId id) const {
  return now_ > 0 ? InSeconds(BusyTime(id).value()) / InSeconds(now_) : 0;
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
  if (std::abs(carried - resource.carried) > kRounding * resource.charged) resource.carried = carried;
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
    const double offered = Offered(r);
    const double slack = ledger.peak_capacity *
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
