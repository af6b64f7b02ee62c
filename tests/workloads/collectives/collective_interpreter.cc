#include "tests/workloads/collectives/collective_interpreter.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <queue>
#include <set>
#include <tuple>
#include <utility>

#include "configs/memory.h"
#include "configs/status_macros.h"
#include "models/flow/network.h"
#include "models/timing/collective_timing.h"
#include "models/timing/kernel_timing.h"

namespace tpusim::collectives {
namespace {

int64_t Size(const isa::Body& body) {
  int64_t size = 0;
  for (const isa::Instruction& instruction : body) {
    ++size;
    if (const auto* loop = std::get_if<isa::Loop>(&instruction.kind)) size += Size(*loop->body);
  }
  return size;
}

void Expand(const isa::Body& body, std::vector<const isa::Instruction*>& out) {
  for (const isa::Instruction& instruction : body) {
    if (const auto* loop = std::get_if<isa::Loop>(&instruction.kind)) {
      for (int64_t i = 0; i < loop->count; ++i) Expand(*loop->body, out);
    } else {
      out.push_back(&instruction);
    }
  }
}

class BodyInterpreter {
 public:
  BodyInterpreter(const configs::Config& config, const isa::PodProgram& program)
      : config_(config),
        program_(program),
        resource_(config.topology.chips() * configs::kDirections) {
    for (const configs::Link& link : config.topology.AllLinks()) {
      const int axis = configs::AxisOf(link.direction);
      resource_[Index(link)] = network_.AddResource(
          "link", timing::EffectiveLinkRate(config.chip.ici, config.topology.LinksAlong(axis)));
    }
    for (int64_t d = 0; d < config.devices() && config.topology.devices_per_chip() > 1; ++d) {
      to_own_chip_.push_back(
          network_.AddResource("die link", config.chip.ici.die_to_die_bytes_per_second));
    }
    for (int64_t d = 0; d < config.devices(); ++d) {
      memory_.push_back(network_.AddResource("memory", configs::HbmRate(config.chip)));
    }
    if (config.topology.slices() == 1) return;
    for (int64_t chip = 0; chip < config.topology.chips(); ++chip) {
      const BytesPerSecond pcie = config.chip.host.pcie_bytes_per_second;
      to_host_.push_back(network_.AddResource("to host", pcie));
      from_host_.push_back(network_.AddResource("from host", pcie));
      ++chips_of_host_[configs::HostOf(config, chip)];
    }
    for (const auto& [host, chips] : chips_of_host_) {
      const BytesPerSecond rate = config.chip.host.DcnRate(chips);
      egress_.push_back(network_.AddResource("egress", rate));
      ingress_.push_back(network_.AddResource("ingress", rate));
    }
  }

  BodyRun Run(const LoweredCollective& lowered, int rounds) {
    BodyRun run;
    for (const isa::SharedBody& body : lowered.bodies) run.instructions += Size(*body);
    devices_.resize(config_.devices());
    for (int64_t d = 0; d < config_.devices(); ++d) {
      devices_[d].flags.resize(program_.flags);
      const int32_t role = (*lowered.role_of_device)[d];
      if (role < 0) continue;
      for (int i = 0; i < rounds; ++i) Expand(*lowered.bodies[role], devices_[d].code);
      Step(d);
    }
    while (true) {
      const auto flow = network_.NextCompletion();
      if (!flow && events_.empty()) break;
      if (flow && (events_.empty() || flow->value() <= std::get<0>(events_.top()))) {
        now_ = *flow;
        for (const flow::Completed& done : network_.Advance(now_)) FlowEnded(sent_[done.tag]);
      } else {
        const auto [time, device, flag] = events_.top();
        events_.pop();
        now_ = Picoseconds(time);
        if (flag >= 0) ++devices_[device].flags[flag];
        if (flag < 0) devices_[device].asleep = false;
        Step(device);
      }
    }
    run.time = now_;
    run.bytes_sent = bytes_;
    for (int64_t d = 0; d < config_.devices(); ++d) {
      const Device& device = devices_[d];
      if (device.at < device.code.size()) {
        run.problem = fmt::format("device {} hangs at {}", d, device.at);
      }
      for (const int64_t count : device.flags) {
        if (count != 0) run.problem = fmt::format("device {} did not wait for everything", d);
      }
    }
    return run;
  }

 private:
  struct Device {
    std::vector<const isa::Instruction*> code;
    size_t at = 0;
    bool asleep = false;
    std::vector<int64_t> flags;
  };
  struct Sent {
    int64_t source = 0;
    const isa::Rdma* rdma = nullptr;
    const isa::RouteEnd* end = nullptr;
  };

  static size_t Index(const configs::Link& link) {
    return static_cast<size_t>(link.chip * configs::kDirections) +
           static_cast<size_t>(link.direction);
  }

  Picoseconds TimeOf(const isa::Dma& dma) const {
    if (dma.from == dma.to) return timing::LocalCopy(config_.chip, dma.to, dma.bytes, 2);
    const bool reads = dma.to == isa::MemorySpace::kVmem;
    return (reads ? config_.chip.dma.start_latency : config_.chip.dma.write_start_latency) +
           TransferTime(dma.bytes, configs::HbmRate(config_.chip));
  }

  void Sleep(int64_t d, Picoseconds time) {
    devices_[d].asleep = true;
    events_.push({(now_ + time).value(), d, -1});
  }

  void FlowEnded(const Sent& sent) {
    const Picoseconds arrival = now_ + timing::RouteLatency(config_.chip, sent.source, *sent.end);
    events_.push({arrival.value(), sent.end->peer, sent.rdma->arrival_flag});
    if (sent.rdma->sent_flag >= 0) {
      ++devices_[sent.source].flags[sent.rdma->sent_flag];
      Step(sent.source);
    }
  }

  void Step(int64_t d) {
    Device& device = devices_[d];
    while (!device.asleep && device.at < device.code.size()) {
      const isa::InstructionKind& kind = device.code[device.at]->kind;
      if (const auto* wait = std::get_if<isa::Wait>(&kind)) {
        if (device.flags[wait->flag] < wait->count) return;
        device.flags[wait->flag] -= wait->count;
      } else if (const auto* block = std::get_if<isa::Block>(&kind)) {
        Sleep(d, ToTime(block->latency, config_.chip.clock));
      } else if (const auto* dma = std::get_if<isa::Dma>(&kind)) {
        Sleep(d, TimeOf(*dma));
      } else {
        Send(d, std::get<isa::Rdma>(kind));
      }
      ++device.at;
    }
  }

  void Send(int64_t d, const isa::Rdma& rdma) {
    const isa::RouteEnd& end = program_.routes[rdma.route].from[d];
    MustHold(end.peer >= 0);
    std::vector<flow::ResourceUse> uses;
    const int64_t per_chip = config_.topology.devices_per_chip();
    int64_t at = d / per_chip;
    for (const configs::Link& link : end.links) {
      MustHold(link.chip == at);
      at = config_.topology.Neighbour(at, link.direction);
      uses.push_back({resource_[Index(link)], 1});
    }
    if (end.dcn) {
      const int64_t to = end.peer / per_chip;
      MustHold(config_.topology.SliceOf(at) != config_.topology.SliceOf(to));
      uses = {{to_host_[at], 1},
              {egress_[configs::HostOf(config_, at)], 1},
              {ingress_[configs::HostOf(config_, to)], 1},
              {from_host_[to], 1}};
    }
    MustHold(end.dcn || at == end.peer / per_chip);
    if (end.links.empty() && !end.dcn && end.peer != static_cast<int64_t>(d))
      uses.push_back({to_own_chip_.at(d), 1});
    if (rdma.from == isa::MemorySpace::kHbm) {
      uses.push_back({memory_[d], 1});
      uses.push_back({memory_[end.peer], rdma.reduce ? 2.0 : 1.0});
    }
    sent_.push_back({d, &rdma, &end});
    bytes_ += rdma.bytes.value();
    network_.Start(now_, static_cast<double>(rdma.bytes.value()), 1e18, uses, sent_.size() - 1);
  }

  static void MustHold(bool ok) {
    if (!ok) CheckFailed(__FILE__, __LINE__, "route", "a body takes a route that leads nowhere");
  }

  const configs::Config& config_;
  const isa::PodProgram& program_;
  flow::Network network_;
  std::vector<flow::ResourceId> resource_, to_own_chip_;
  std::vector<flow::ResourceId> memory_;
  std::vector<flow::ResourceId> to_host_, from_host_, egress_, ingress_;
  std::map<int64_t, int64_t> chips_of_host_;
  std::vector<Device> devices_;
  std::vector<Sent> sent_;
  // (time, device, flag; -1 wakes the device)
  using Event = std::tuple<int64_t, int64_t, int32_t>;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  Picoseconds now_;
  int64_t bytes_ = 0;
};

// --- Data ---

struct Atom {
  int64_t origin = 0, destination = 0;
  int color = 0, half = 0;
  auto operator<=>(const Atom&) const = default;
};

class DataInterpreter {
 public:
  explicit DataInterpreter(const Plan& plan) : plan_(plan), n_(plan.members()) {
    for (int64_t m = 0; m < n_; ++m) {
      steps_.push_back(StepsAt(plan, PositionOf(m)));
      auto& ending = ending_.emplace_back(steps_[m].size());
      for (size_t step = 0; step < steps_[m].size(); ++step) {
        const std::vector<ChunkTransfer>& sends = steps_[m][step].sends;
        for (size_t i = 0; i < sends.size(); ++i) {
          ending.at(step + static_cast<size_t>(sends[i].lasts)).push_back({step, i});
        }
      }
    }
  }

  DataRun Run() {
    const bool gathers = plan_.kind == CollectiveKind::kAllGather || plan_.single_phase;
    if (plan_.kind == CollectiveKind::kAllToAll) {
      Exchange();
    } else if (gathers) {
      Gather();
    } else {
      Reduce();
    }
    return run_;
  }

 private:
  Position PositionOf(int64_t member) const {
    Position position = {};
    for (size_t dimension = 0; dimension < plan_.dimensions.size(); ++dimension) {
      position[dimension] = member % plan_.dimensions[dimension].n;
      member /= plan_.dimensions[dimension].n;
    }
    return position;
  }
  int64_t MemberAt(const Position& position) const {
    int64_t member = 0;
    for (size_t dimension = plan_.dimensions.size(); dimension-- > 0;) {
      const int64_t n = plan_.dimensions[dimension].n;
      member = member * n + (position[dimension] % n + n) % n;
    }
    return member;
  }

  std::vector<int64_t> Expand(const std::array<PositionRange, kMaxDimensions>& ranges) const {
    std::vector<int64_t> members;
    for (int64_t m = 0; m < n_; ++m) {
      const Position position = PositionOf(m);
      bool inside = true;
      for (size_t dimension = 0; dimension < plan_.dimensions.size(); ++dimension) {
        const int64_t n = plan_.dimensions[dimension].n;
        inside = inside && ((position[dimension] - ranges[dimension].first) % n + n) % n <
                               ranges[dimension].count;
      }
      if (inside) members.push_back(m);
    }
    return members;
  }

  std::vector<Atom> AtomsIn(const ChunkTransfer& transfer) const {
    std::vector<Atom> chunk_bytes;
    for (const Chunks& chunks : transfer.chunks) {
      const bool exchange = plan_.kind == CollectiveKind::kAllToAll;
      for (const int64_t origin : Expand(chunks.origin)) {
        for (const int64_t to : exchange ? Expand(chunks.destination) : std::vector<int64_t>{0}) {
          for (int half = 0; half < plan_.halves; ++half) {
            if (chunks.half != kBothHalves && chunks.half != half) continue;
            chunk_bytes.push_back({origin, to, chunks.color, half});
          }
        }
      }
    }
    return chunk_bytes;
  }

  void Fail(std::string problem) {
    if (run_.problem.empty()) run_.problem = std::move(problem);
  }

  // Calls send(from, to, transfer, chunks, sent) for all transfers that end in a step, after
  // checking that the other end awaits exactly this; `sent` is the step in which it was sent.
  template <typename Send>
  void ForAllSends(size_t step, Send send) {
    int64_t sends = 0, receives = 0;
    for (int64_t m = 0; m < n_; ++m) {
      receives += static_cast<int64_t>(steps_[m][step].receives.size());
      for (const auto& [sent, number] : ending_[m][step]) {
        const ChunkTransfer& transfer = steps_[m][sent].sends[number];
        ++sends;
        Position position = PositionOf(m);
        position[transfer.dimension] = plan_.dimensions[transfer.dimension].Shifted(
            position[transfer.dimension], transfer.delta);
        const int64_t to = MemberAt(position);
        const std::vector<Atom> chunk_bytes = AtomsIn(transfer);
        const auto& awaited = steps_[to][step].receives;
        if (std::none_of(awaited.begin(), awaited.end(), [&](const ChunkTransfer& other) {
              return other.dimension == transfer.dimension && other.delta == -transfer.delta &&
                     other.lasts == transfer.lasts && other.other_way == transfer.other_way &&
                     other.reduce == transfer.reduce && AtomsIn(other) == chunk_bytes;
            })) {
          Fail(fmt::format("step {}: {} sends to {} what it does not await", step, m, to));
        }
        const int64_t bytes = BytesOf(plan_, transfer, {}).value();
        int64_t expected = 0;
        expected += plan_.chunk_bytes.value() * static_cast<int64_t>(chunk_bytes.size());
        if (!plan_.single_phase && bytes != expected) {
          Fail(
              fmt::format("step {}: {} bytes for {} chunk_bytes", step, bytes, chunk_bytes.size()));
        }
        run_.bytes_sent += bytes;
        send(m, to, transfer, chunk_bytes, sent);
      }
    }
    if (sends != receives)
      Fail(fmt::format("step {}: {} sends, {} receives", step, sends, receives));
  }

  // Everybody may send what it had before the step, and nobody gets twice.
  void MoveAround(std::vector<std::set<Atom>>& held) {
    std::vector<std::vector<std::set<Atom>>> before;
    for (size_t step = 0; step < steps_[0].size(); ++step) {
      before.push_back(held);
      ForAllSends(step, [&](int64_t from, int64_t to, const ChunkTransfer&,
                            const std::vector<Atom>& chunk_bytes, size_t sent) {
        for (const Atom& chunk : chunk_bytes) {
          if (!before[sent][from].contains(chunk))
            Fail(fmt::format("{} sends what it lacks", from));
          if (!held[to].insert(chunk).second) Fail(fmt::format("{} gets something twice", to));
        }
      });
    }
  }

  int64_t PartsOfShard() const { return static_cast<int64_t>(plan_.orders.size()) * plan_.halves; }

  template <typename Use>
  void ForParts(Use use) {
    for (int color = 0; color < static_cast<int>(plan_.orders.size()); ++color) {
      for (int half = 0; half < plan_.halves; ++half) use(color, half);
    }
  }

  void Gather() {
    std::vector<std::set<Atom>> held(n_);
    for (int64_t m = 0; m < n_; ++m) {
      ForParts([&](int color, int half) { held[m].insert({m, 0, color, half}); });
    }
    MoveAround(held);
    for (int64_t m = 0; m < n_; ++m) {
      if (static_cast<int64_t>(held[m].size()) != n_ * PartsOfShard()) {
        Fail(fmt::format("{} has {} parts", m, held[m].size()));
      }
    }
  }

  void Exchange() {
    std::vector<std::set<Atom>> held(n_);
    for (int64_t m = 0; m < n_; ++m) {
      for (int64_t to = 0; to < n_; ++to) {
        ForParts([&](int color, int half) { held[m].insert({m, to, color, half}); });
      }
    }
    MoveAround(held);
    for (int64_t m = 0; m < n_; ++m) {
      for (int64_t from = 0; from < n_; ++from) {
        ForParts([&](int color, int half) {
          if (!held[m].contains({from, m, color, half})) Fail(fmt::format("{} lacks a block", m));
        });
      }
    }
  }

  // The number of times that each member's contribution is in a partial sum.
  using Sum = std::vector<int>;

  void Reduce() {
    std::vector<std::map<Atom, Sum>> sums(n_);
    for (int64_t m = 0; m < n_; ++m) {
      for (int64_t owner = 0; owner < n_; ++owner) {
        ForParts([&](int color, int half) {
          Sum& sum = sums[m][{owner, 0, color, half}];
          sum.assign(n_, 0);
          sum[m] = 1;
        });
      }
    }
    const Sum complete(n_, 1);
    std::vector<std::vector<std::map<Atom, Sum>>> before;
    for (size_t step = 0; step < steps_[0].size(); ++step) {
      before.push_back(sums);
      ForAllSends(step, [&](int64_t from, int64_t to, const ChunkTransfer& transfer,
                            const std::vector<Atom>& chunk_bytes, size_t sent_in) {
        for (const Atom& chunk : chunk_bytes) {
          const Sum& sent = before[sent_in][from].at(chunk);
          if (transfer.reduce) {
            for (int64_t m = 0; m < n_; ++m) sums[to][chunk][m] += sent[m];
            // Handed on: using it again would count it twice.
            sums[from][chunk].assign(n_, 1000);
          } else {
            if (sent != complete) Fail(fmt::format("{} spreads an unfinished sum", from));
            if (sums[to][chunk] == complete) Fail(fmt::format("{} gets a sum twice", to));
            sums[to][chunk] = sent;
          }
        }
      });
    }
    for (int64_t m = 0; m < n_; ++m) {
      for (const auto& [chunk, sum] : sums[m]) {
        const bool wanted = plan_.kind == CollectiveKind::kAllReduce || chunk.origin == m;
        if (wanted && sum != complete) Fail(fmt::format("{} has a wrong sum", m));
      }
    }
  }

  const Plan& plan_;
  int64_t n_;
  std::vector<DeviceSteps> steps_;  // per member
  // Per member and step, the transfers that end in it: the step in which they are sent, and
  // their number there.
  std::vector<std::vector<std::vector<std::pair<size_t, size_t>>>> ending_;
  DataRun run_;
};

}  // namespace

BodyRun RunBodies(const configs::Config& config, const isa::PodProgram& program,
                  const LoweredCollective& lowered, int rounds) {
  return BodyInterpreter(config, program).Run(lowered, rounds);
}

DataRun FollowData(const Plan& plan) { return DataInterpreter(plan).Run(); }

}  // namespace tpusim::collectives
