#include "models/isa/used_routes.h"

#include <set>
#include <unordered_set>
#include <variant>

namespace tpusim::isa {
namespace {

std::vector<int32_t> RoutesOf(const Body& program) {
  std::set<int32_t> routes;
  std::unordered_set<const Body*> seen;  // asked, never iterated over
  std::vector<const Body*> work = {&program};
  while (!work.empty()) {
    const Body* body = work.back();
    work.pop_back();
    if (!seen.insert(body).second) continue;
    for (const Instruction& instruction : *body) {
      if (const auto* rdma = std::get_if<Rdma>(&instruction.kind)) {
        routes.insert(rdma->route);
      } else if (const auto* signal = std::get_if<Signal>(&instruction.kind)) {
        routes.insert(signal->route);
      } else if (const auto* loop = std::get_if<Loop>(&instruction.kind)) {
        work.push_back(loop->body.get());
      } else if (const auto* call = std::get_if<Call>(&instruction.kind)) {
        work.push_back(call->body.get());
      } else if (const auto* branch = std::get_if<Branch>(&instruction.kind)) {
        work.push_back(branch->bodies[branch->taken].get());
      } else if (const auto* start = std::get_if<Start>(&instruction.kind)) {
        work.push_back(start->body.get());
      }
    }
  }
  return {routes.begin(), routes.end()};
}

}  // namespace

std::vector<std::vector<int32_t>> UsedRoutes(const PodProgram& program) {
  std::vector<std::vector<int32_t>> used;
  for (const SharedBody& body : program.programs) used.push_back(RoutesOf(*body));
  return used;
}

}  // namespace tpusim::isa
