#include "models/isa/used_routes.h"

#include <algorithm>
#include <iterator>
#include <unordered_map>
#include <variant>

namespace tpusim::isa {
namespace {

class Walker {
 public:
  // Returns the routes in order, each once. Bodies are shared, and each is visited once.
  const std::vector<int32_t>& RoutesOf(const Body& body) {
    const auto known = routes_.find(&body);
    if (known != routes_.end()) return known->second;
    std::vector<int32_t> routes;
    const auto use = [&](const SharedBody& inner) {
      const std::vector<int32_t>& more = RoutesOf(*inner);
      if (std::includes(routes.begin(), routes.end(), more.begin(), more.end())) return;
      std::vector<int32_t> all;
      std::set_union(routes.begin(), routes.end(), more.begin(), more.end(),
                     std::back_inserter(all));
      routes = std::move(all);
    };
    const auto use_route = [&](int32_t route) {
      const auto at = std::lower_bound(routes.begin(), routes.end(), route);
      if (at == routes.end() || *at != route) routes.insert(at, route);
    };
    for (const Instruction& instruction : body) {
      if (const auto* rdma = std::get_if<Rdma>(&instruction.kind)) {
        use_route(rdma->route);
      } else if (const auto* signal = std::get_if<Signal>(&instruction.kind)) {
        use_route(signal->route);
      } else if (const auto* loop = std::get_if<Loop>(&instruction.kind)) {
        use(loop->body);
      } else if (const auto* call = std::get_if<Call>(&instruction.kind)) {
        use(call->body);
      } else if (const auto* branch = std::get_if<Branch>(&instruction.kind)) {
        use(branch->bodies[branch->taken]);
      } else if (const auto* start = std::get_if<Start>(&instruction.kind)) {
        use(start->body);
      }
    }
    return routes_.emplace(&body, std::move(routes)).first->second;
  }

 private:
  std::unordered_map<const Body*, std::vector<int32_t>> routes_;  // asked, never iterated over
};

}  // namespace

std::vector<std::vector<int32_t>> UsedRoutes(const PodProgram& program) {
  Walker walker;
  std::vector<std::vector<int32_t>> used;
  for (const SharedBody& body : program.programs) used.push_back(walker.RoutesOf(*body));
  return used;
}

}  // namespace tpusim::isa
