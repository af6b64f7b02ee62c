// The cases of tests/sim/collective_contention_test.cc in SimGrid, another simulator
// that shares bandwidth max-min fairly; docs/validation/contention.md has the
// numbers. Not part of the build:
//
//   apt install libsimgrid-dev
//   g++ -std=c++17 -O1 tools/validation/simgrid_flows.cc -lsimgrid -o /tmp/simgrid_flows
//   for i in 0 1 2 3 4; do /tmp/simgrid_flows $i; done
//
// A message takes its bytes through all links of its route at once; the receiver
// takes note one hop latency per link after the last byte, as in tpusim.
#include <cstdlib>
#include <iostream>
#include <simgrid/s4u.hpp>
#include <string>
#include <vector>

namespace s4u = simgrid::s4u;

namespace {

constexpr double kHop = 1e-6;

struct Chain {
  int n = 0;
  bool ring = false;
  std::vector<s4u::Host*> hosts;

  // Links that a message crosses, `distance` positions up or down.
  int HopsBetween(int from, int to) const {
    const int up = (to - from + n) % n;
    if (!ring) return std::abs(to - from);
    return std::min(up, n - up);
  }
};

// One directed link each way between neighbours, the shorter way round a ring.
Chain MakeChain(int n, bool ring, double rate) {
  Chain chain{n, ring, {}};
  auto* zone = s4u::create_full_zone("slice");
  std::vector<s4u::Link*> up, down;
  for (int i = 0; i < n; ++i) {
    const std::string id = std::to_string(i);
    chain.hosts.push_back(zone->create_host("chip" + id, 1e9));
    up.push_back(zone->create_link(id + "+", rate)->set_latency(0)->seal());
    down.push_back(zone->create_link(id + "-", rate)->set_latency(0)->seal());
  }
  for (int from = 0; from < n; ++from) {
    for (int to = 0; to < n; ++to) {
      if (from == to) continue;
      const int way_up = (to - from + n) % n;
      const bool goes_up = ring ? way_up * 2 <= n : to > from;
      std::vector<s4u::LinkInRoute> links;
      for (int at = from; at != to; at = (at + (goes_up ? 1 : n - 1)) % n) {
        links.emplace_back(goes_up ? up[at] : down[at]);
      }
      zone->add_route(chain.hosts[from]->get_netpoint(), chain.hosts[to]->get_netpoint(), nullptr,
                      nullptr, links, false);
    }
  }
  zone->seal();
  return chain;
}

// All-gather over a ring of four members, every `stride` chips from `first`: the
// whole shard both ways, then halves.
void AddGather(const Chain& chain, int first, int stride, double shard, int collective) {
  for (int i = 0; i < 4; ++i) {
    const int at = first + i * stride;
    const int next = (at + stride) % chain.n, previous = (at + chain.n - stride) % chain.n;
    s4u::Actor::create("gather", chain.hosts[at], [=] {
      static char nothing;
      char* ignored = nullptr;
      const auto box = [&](int from, int to, bool up) {
        return s4u::Mailbox::by_name(std::to_string(from) + (up ? "+" : "-") + std::to_string(to) +
                                     "/" + std::to_string(collective));
      };
      for (const double bytes : {shard, shard / 2}) {
        const auto size = static_cast<uint64_t>(bytes);
        const std::vector<s4u::CommPtr> step = {
            box(previous, at, true)->get_async<char>(&ignored),
            box(next, at, false)->get_async<char>(&ignored),
            box(at, next, true)->put_async(&nothing, size),
            box(at, previous, false)->put_async(&nothing, size)};
        for (const s4u::CommPtr& comm : step) comm->wait();
        s4u::this_actor::sleep_for(kHop * stride);
      }
      if (i == 0) {
        std::cout << "  gather " << collective << " ends at " << s4u::Engine::get_clock() * 1e6
                  << " us\n";
      }
    });
  }
}

void AddSend(const Chain& chain, const std::string& name, int from, int to, double bytes) {
  s4u::Actor::create("send", chain.hosts[from], [=] {
    static char nothing;
    s4u::Mailbox::by_name(name)->put(&nothing, static_cast<uint64_t>(bytes));
  });
  s4u::Actor::create("receive", chain.hosts[to], [=] {
    s4u::Mailbox::by_name(name)->get<char>();
    s4u::this_actor::sleep_for(kHop * chain.HopsBetween(from, to));
    std::cout << "  " << name << " ends at " << s4u::Engine::get_clock() * 1e6 << " us\n";
  });
}

}  // namespace

int main(int argc, char** argv) {
  s4u::Engine engine(&argc, argv);
  // Plain max-min sharing: no TCP.
  for (const char* setting :
       {"network/model:CM02", "network/TCP-gamma:0", "network/weight-S:0", "network/crosstraffic:0",
        "maxmin/precision:1e-9", "surf/precision:1e-12"}) {
    s4u::Engine::set_config(setting);
  }
  const int which = argc > 1 ? std::atoi(argv[1]) : 0;
  if (which == 0) {
    std::cout << "one gather alone\n";
    AddGather(MakeChain(4, true, 1e11), 0, 1, 2e6, 1);
  } else if (which == 1) {
    std::cout << "two gathers over one ring\n";
    const Chain chain = MakeChain(4, true, 1e11);
    AddGather(chain, 0, 1, 2e6, 1);
    AddGather(chain, 0, 1, 1e6, 2);
  } else if (which == 2) {
    std::cout << "interleaved groups of one ring\n";
    const Chain chain = MakeChain(8, true, 1e11);
    AddGather(chain, 0, 2, 1e6, 1);
    AddGather(chain, 1, 2, 3e6, 2);
  } else if (which == 3) {
    std::cout << "three gathers over one ring\n";
    const Chain chain = MakeChain(4, true, 1e11);
    for (int i = 1; i <= 3; ++i) AddGather(chain, 0, 1, 1e6, i);
  } else {
    std::cout << "permutes over one line\n";
    const Chain chain = MakeChain(8, false, 5e10);
    AddSend(chain, "P", 0, 7, 3e6);
    AddSend(chain, "Q", 1, 4, 2e6);
    AddSend(chain, "R", 2, 3, 1e6);
    AddSend(chain, "S", 5, 6, 4e6);
  }
  engine.run();
  return 0;
}
