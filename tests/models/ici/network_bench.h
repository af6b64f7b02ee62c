// Devices on a line, 0 - 1 - 2, and the router of the first: what it sends crosses links of
// 1e11 B/s, 10 ps a byte.
//
//   route 0   0 to 1, one link
//   route 1   0 to 2, two links
//   route 2   0 to 1, on the same chip
//   route 3   0 to 1, to another slice
#ifndef TPUSIM_TESTS_MODELS_ICI_NETWORK_BENCH_H_
#define TPUSIM_TESTS_MODELS_ICI_NETWORK_BENCH_H_

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/ici/fabric.h"
#include "models/ici/router.h"
#include "tests/models/bench.h"
#include "tests/models/stubs.h"

namespace tpusim::testing {

// A device as the network reaches it.
struct Node {
  Node(int number, events::Fluid& fluid)
      : endpoint(("endpoint" + std::to_string(number)).c_str(), /*multiplicity=*/1) {
    const auto add = [&](const char* what, double rate) {
      return fluid.network().AddResource(what + std::to_string(number), rate);
    };
    hbm.served_by = add("hbm", 1e12);
    vpu.served_by = add("adds", 4e9);
    pcie.out = add("to_host", 1e10);
    pcie.in = add("from_host", 1e10);
    nic.out = add("egress", 4e9);
    nic.in = add("ingress", 4e9);
    die.served_by = add("die", 1e11);
    endpoint.hbm(hbm);
    endpoint.vpu(vpu);
    endpoint.flags(flags);
    endpoint.host_link(pcie);
  }
  StubMemory hbm;
  StubServer vpu, die;
  StubFlags flags;
  StubDuplex pcie, nic;
  ici::Endpoint endpoint;
};

class NetworkBench : public Bench, public ici::FabricProbe {
 public:
  static constexpr int32_t kNeighbour = 0, kFar = 1, kSameChip = 2, kOtherSlice = 3;

  explicit NetworkBench(sc_core::sc_module_name name = "bench") : Bench(name) {
    for (int n = 0; n < 3; ++n) nodes.emplace_back(n, fluid);
    ici::LinkRates rates;
    rates[0] = BytesPerSecond(1e11);
    router.emplace("router", fluid, chip, /*chip=*/0, rates, program, *this);
    next.emplace("next", fluid, configs::Link{1, configs::Direction::kXPlus}, BytesPerSecond(1e11));
    fabric.links(*router->link(configs::Direction::kXPlus));
    fabric.links(*next);
    router->fabric(fabric);
    for (Node& node : nodes) fabric.AddDevice({&node.endpoint, /*device_class=*/0});
    const configs::Link first{0, configs::Direction::kXPlus}, second{1, configs::Direction::kXPlus};
    AddRoute({.peer = 1, .links = {first}}, PathTo(1, {{.link = 0}}));
    AddRoute({.peer = 2, .links = {first, second}}, PathTo(2, {{.link = 0}, {.link = 1}}));
    AddRoute({.peer = 1, .links = {}}, PathTo(1, {}));
    AddRoute({.peer = 1, .links = {}, .dcn = true}, PathTo(1, {}));
  }

  // From device 0, whose transfers take this path.
  int32_t AddRoute(const isa::RouteEnd& end, const ici::Path& path) {
    isa::Route& route = program.routes.emplace_back();
    route.from.resize(3);
    route.from[0] = end;
    fabric.AddRoute({path});
    return static_cast<int32_t>(program.routes.size() - 1);
  }
  // Written and counted where it ends.
  static ici::Path PathTo(int32_t device, std::vector<ici::Path::LinkCrossing> crossings) {
    ici::Path path;
    path.crossings = std::move(crossings);
    path.receivers = {{.device = device}};
    path.arrivals = {{.device = device}};
    path.timed_by = 0;
    return path;
  }

  // From VMEM to VMEM; flag 5 of the receiver and 4 of the sender.
  static isa::Rdma Transfer(int32_t route, int64_t bytes) {
    isa::Rdma rdma;
    rdma.route = route;
    rdma.bytes = Bytes(bytes);
    rdma.arrival_flag = 5;
    rdma.sent_flag = 4;
    rdma.from = rdma.to = isa::MemorySpace::kVmem;
    return rdma;
  }
  // Sends from a stream of device 0; the transfer must outlive the run.
  void Send(const isa::Rdma& rdma, int32_t stream = 0) {
    router->Send(0, rdma, program.routes[rdma.route].from[0], {{}, stream}, /*op=*/-1, {});
  }
  void Signal(int32_t route) {
    router->Signal(0, {route, /*flag=*/5}, program.routes[route].from[0], {});
  }
  size_t Arrived(int device = 1) const {
    return nodes[static_cast<size_t>(device)].flags.raised.size();
  }
  size_t Sent() const { return nodes[0].flags.raised.size(); }
  void RdmaEnded(const ici::RdmaRecord& record) override { records.push_back(record); }

  isa::PodProgram program;
  std::deque<Node> nodes;
  ici::Fabric fabric{"fabric"};
  std::optional<ici::Router> router;
  std::optional<ici::Link> next;  // of device 1's chip
  std::vector<ici::RdmaRecord> records;
};

}  // namespace tpusim::testing

#endif  // TPUSIM_TESTS_MODELS_ICI_NETWORK_BENCH_H_
