#include "workloads/collectives/bodies.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <tuple>

#include "workloads/collectives/routes.h"

namespace tpusim::collectives {
namespace {

using RouteTie = configs::Topology::RouteTie;

// The numbers that make two stages equal.
std::vector<int64_t> CodeOf(const BodyStage& stage) {
  std::vector<int64_t> code = {
      stage.idle.value(), stage.polled, static_cast<int64_t>(stage.sends.size()),
      static_cast<int64_t>(stage.copies.size()), static_cast<int64_t>(stage.waits.size())};
  for (const isa::Rdma& send : stage.sends) {
    code.insert(code.end(), {send.route, send.bytes.value(), send.arrival_flag, send.sent_flag,
                             static_cast<int64_t>(send.from), send.reduce.has_value()});
  }
  for (const isa::Dma& copy : stage.copies) {
    code.insert(code.end(), {static_cast<int64_t>(copy.from), static_cast<int64_t>(copy.to),
                             copy.bytes.value()});
  }
  for (const isa::Wait& wait : stage.waits) code.insert(code.end(), {wait.flag, wait.count});
  return code;
}

void Append(const BodyStage& stage, isa::Body& body) {
  if (stage.idle > Cycles(0)) {
    isa::Block block;
    block.latency = stage.idle;
    body.push_back({block});
  }
  if (stage.polled) body.push_back({isa::Poll()});
  for (const isa::Rdma& send : stage.sends) body.push_back({send});
  for (const isa::Dma& copy : stage.copies) body.push_back({copy});
  for (const isa::Wait& wait : stage.waits) body.push_back({wait});
}

// Waits of equal flags become one.
void AddWait(int32_t flag, std::vector<isa::Wait>& waits) {
  for (isa::Wait& wait : waits) {
    if (wait.flag == flag) {
      ++wait.count;
      return;
    }
  }
  waits.push_back({flag, 1});
}

// Whether something comes in from behind while this goes out. If not (the start
// of a line, a line's last steps), nothing would keep the device from sending the
// next step's data into the same link at the same time, which would hold up what
// others wait for: it waits until its own has left.
// `end` is the step in which the transfer ends.
bool HasUpstream(const DeviceStep& end, const ChunkTransfer& send) {
  return std::ranges::any_of(end.receives, [&](const ChunkTransfer& transfer) {
    return transfer.dimension == send.dimension && transfer.delta == -send.delta &&
           transfer.lasts == send.lasts;
  });
}

// The routes that a candidate's transfers take, made when first asked for.
class RouteTable {
 public:
  RouteTable(const configs::Config& config, const Algorithm& candidate, isa::PodProgram& program)
      : topology_(config.topology), candidate_(candidate), program_(program) {}

  int32_t For(const ChunkTransfer& transfer) {
    const std::tuple<int, int64_t, bool> key = {transfer.dimension, transfer.delta,
                                                transfer.other_way};
    const auto found = routes_.find(key);
    if (found != routes_.end()) return found->second;
    const Dimension& dimension = candidate_.plan.dimensions[transfer.dimension];
    const int32_t route =
        dimension.axis >= 0
            ? AddAxisRoute(topology_, dimension.axis, transfer.delta * dimension.stride, program_)
            : AddRoute(OnList(transfer), program_);
    routes_[key] = route;
    return route;
  }

 private:
  isa::Route OnList(const ChunkTransfer& transfer) const {
    const bool plus = (transfer.delta > 0) != transfer.other_way;
    return ListRoute(topology_,
                     fmt::format("{} {:+d}{}", candidate_.algorithm, transfer.delta,
                                 transfer.other_way ? ", other way" : ""),
                     candidate_.lists, candidate_.plan.dimensions[transfer.dimension],
                     transfer.delta, plus ? RouteTie::kPlus : RouteTie::kMinus);
  }

  const configs::Topology& topology_;
  const Algorithm& candidate_;
  isa::PodProgram& program_;
  std::map<std::tuple<int, int64_t, bool>, int32_t> routes_;
};

}  // namespace

Roles::Roles(const configs::ChipParams& chip, int64_t devices)
    : launch_(ToCycles(chip.ici.launch, chip.clock)), role_of_device_(devices, -1) {}

int32_t Roles::Add(const std::vector<BodyStage>& stages, bool local,
                   const RepeatedStages& repeated) {
  std::vector<std::vector<int64_t>> codes;
  std::vector<int64_t> code = {local, static_cast<int64_t>(repeated.first),
                               static_cast<int64_t>(repeated.last), repeated.times};
  for (const BodyStage& stage : stages) {
    codes.push_back(CodeOf(stage));
    code.insert(code.end(), codes.back().begin(), codes.back().end());
  }
  const auto [entry, is_new] = role_of_code_.emplace(code, static_cast<int32_t>(bodies_.size()));
  if (!is_new) return entry->second;

  isa::Body body;
  if (!local) {
    isa::Block launch;
    launch.latency = launch_;
    body.push_back({launch});
  }
  const auto add_loop = [](int64_t times, isa::Body once, isa::Body& to) {
    if (times == 1 || once.empty()) {
      to.insert(to.end(), once.begin(), once.end());
    } else {
      to.push_back({isa::Loop{times, std::make_shared<const isa::Body>(std::move(once))}});
    }
  };
  // Equal stages in a row become a loop.
  const auto add_stages = [&](size_t begin, size_t end, isa::Body& to) {
    for (size_t first = begin; first < end;) {
      size_t last = first + 1;
      while (last < end && codes[last] == codes[first]) ++last;
      isa::Body once;
      Append(stages[first], once);
      add_loop(static_cast<int64_t>(last - first), std::move(once), to);
      first = last;
    }
  };
  add_stages(0, repeated.first, body);
  isa::Body span;
  add_stages(repeated.first, repeated.last, span);
  add_loop(repeated.times, std::move(span), body);
  add_stages(repeated.last, stages.size(), body);
  bodies_.push_back(std::make_shared<const isa::Body>(std::move(body)));
  return entry->second;
}

int32_t FlagTable::For(int dimension, int64_t delta) {
  const auto [entry, is_new] = flags_.emplace(std::pair(dimension, delta), program_.flags);
  if (is_new) ++program_.flags;
  return entry->second;
}

void AddBodies(const configs::Config& config, const CollectiveRequest& request,
               const GroupForm& form, const Algorithm& candidate, isa::PodProgram& program,
               FlagTable& flags, Roles& roles) {
  const Plan& plan = candidate.plan;
  RouteTable routes(config, candidate, program);
  // What all spans but one add stands before the transfers of all of them, which are made in one
  // go: a step waits for its neighbours once, not once per span.
  RepeatedStages repeated = {.times = plan.spans - 1};
  const isa::MemorySpace space = plan.in_vmem ? isa::MemorySpace::kVmem : request.space;
  const auto stages_at = [&](const Position& position, const std::vector<Bytes>& chunk_bytes) {
    std::vector<BodyStage> stages;
    const auto copy = [&](isa::MemorySpace from, isa::MemorySpace to, Bytes bytes) {
      if (bytes == Bytes(0)) return;
      BodyStage& stage = stages.emplace_back();
      stage.copies.push_back({.from = from, .to = to, .bytes = bytes});
    };
    const auto read = [&](Picoseconds idle) {
      if (idle > Picoseconds(0)) stages.emplace_back().idle = ToCycles(idle, config.chip.clock);
      for (const Bytes bytes : plan.reads) {
        copy(isa::MemorySpace::kHbm, isa::MemorySpace::kVmem, bytes);
      }
    };
    const auto write = [&] {
      for (const Bytes bytes : plan.writes) {
        copy(isa::MemorySpace::kVmem, isa::MemorySpace::kHbm, bytes);
      }
    };
    copy(isa::MemorySpace::kVmem, request.space, plan.zeros_before);  // zeros come out of VMEM
    repeated.first = stages.size();
    if (plan.spans > 1) {
      read(plan.barriers + plan.refill);
      write();
    }
    repeated.last = stages.size();
    read(plan.barriers);
    DeviceSteps steps = StepsAt(plan, position);
    for (DeviceStep& step : steps) {
      // Parts of nothing are not sent.
      const auto empty = [&](const ChunkTransfer& transfer) {
        return BytesOf(plan, transfer, chunk_bytes) == Bytes(0);
      };
      std::erase_if(step.sends, empty);
      std::erase_if(step.receives, empty);
    }
    const size_t first = stages.size();
    stages.resize(first + steps.size());
    for (size_t i = 0; i < steps.size(); ++i) {
      BodyStage& stage = stages[first + i];
      stage.polled = request.carried && i > 0 && !steps[i].sends.empty();
      for (const ChunkTransfer& transfer : steps[i].sends) {
        isa::Rdma send;
        send.route = routes.For(transfer);
        send.bytes = BytesOf(plan, transfer, chunk_bytes);
        // The receiver sees this end as far away the other way.
        send.arrival_flag = flags.For(transfer.dimension, -transfer.delta);
        send.from = send.to = space;
        if (transfer.reduce) {
          send.reduce = isa::ReduceAdd{.element_bytes = request.element_bytes,
                                       .sparse_core = request.sparse_core};
        }
        const size_t end = i + static_cast<size_t>(transfer.lasts);
        if (!HasUpstream(steps[end], transfer)) {
          send.sent_flag = transfer.lasts == 0 ? flags.ForSent()
                                               : flags.ForSent(transfer.dimension, transfer.delta);
          AddWait(send.sent_flag, stages[first + end].waits);
        }
        stage.sends.push_back(send);
      }
      for (const ChunkTransfer& transfer : steps[i].receives) {
        AddWait(flags.For(transfer.dimension, transfer.delta), stage.waits);
      }
    }
    write();
    copy(request.space, request.space, plan.slice_after);
    return stages;
  };
  const bool all_alike =
      request.parts.empty() && std::ranges::all_of(plan.dimensions, [](const Dimension& dimension) {
        return dimension.Symmetric();
      });
  if (all_alike) {
    const std::vector<BodyStage> stages = stages_at({}, {});
    const int32_t role = roles.Add(stages, /*local=*/request.carried, repeated);
    for (const size_t g : form.groups) {
      for (const int64_t device : request.groups[g]) roles.Assign(device, role);
    }
    return;
  }
  // All positions of a ring do the same, unless parts differ.
  std::map<Position, int32_t> role_at;
  for (size_t i = 0; i < form.groups.size(); ++i) {
    const std::vector<int64_t>& group = request.groups[form.groups[i]];
    const std::vector<Position> positions = PositionsOf(config.topology, form, candidate, i, group);
    const std::vector<Bytes> chunk_bytes = ChunkBytesFor(request, plan, positions);
    if (!chunk_bytes.empty()) role_at.clear();
    for (size_t member = 0; member < group.size(); ++member) {
      Position like = positions[member];
      for (size_t dimension = 0; dimension < plan.dimensions.size(); ++dimension) {
        const bool alike = chunk_bytes.empty() && plan.dimensions[dimension].Symmetric();
        if (alike) like[dimension] = 0;
      }
      const auto [known, is_new] = role_at.try_emplace(like, -1);
      if (is_new) {
        const std::vector<BodyStage> stages = stages_at(like, chunk_bytes);
        known->second = roles.Add(stages, /*local=*/request.carried, repeated);
      }
      roles.Assign(group[member], known->second);
    }
  }
}

}  // namespace tpusim::collectives
