#include "sim/deadlock.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "configs/status_macros.h"
#include "models/chip/device.h"

namespace tpusim::sim {
namespace {

using chip::Stream;

struct WaitingStream {
  int32_t device = 0;
  const Stream* stream = nullptr;
  bool operator==(const WaitingStream&) const = default;
};

// The streams of a program that raise flags, with the instruction that does.
class Raisers {
 public:
  Raisers(const isa::PodProgram& program, int32_t device) : program_(program), device_(device) {
    Walk(*program.programs[program.program_of_device[device]], isa::StreamId{}, {});
  }

  // Does the stream `id` of this device raise `flag` of device `target`?
  bool Raises(const isa::StreamId& id, int32_t target, int32_t flag) const {
    return raised_.contains({id, target, flag});
  }

 private:
  struct Key {
    isa::StreamId id;
    int32_t device = 0;
    int32_t flag = 0;
    auto operator<=>(const Key&) const = default;
  };

  void Walk(const isa::Body& body, const isa::StreamId& id, const isa::Iteration& in) {
    if (!seen_.insert({&body, id, in}).second) return;
    for (const isa::Instruction& instruction : body) {
      if (const auto* loop = std::get_if<isa::Loop>(&instruction.kind)) {
        const isa::Iterations* iterations = loop->iterations.get();
        if (iterations == nullptr) Walk(*loop->body, id, in);
        for (int64_t n = 0; iterations != nullptr && n < loop->count; ++n) {
          Walk(*loop->body, id, {iterations, n});
        }
      } else if (const auto* call = std::get_if<isa::Call>(&instruction.kind)) {
        Walk(*call->body, id, in);
      } else if (const auto* branch = std::get_if<isa::Branch>(&instruction.kind)) {
        Walk(*branch->bodies[branch->taken], id, in);
      } else if (const auto* start = std::get_if<isa::Start>(&instruction.kind)) {
        Walk(*start->body, start->stream, in);
      } else if (const auto* rdma = std::get_if<isa::Rdma>(&instruction.kind)) {
        if (rdma->arrival_flag >= 0) {
          raised_.insert({id, PeerOver(rdma->route), in.Flag(rdma->arrival_flag)});
        }
        if (rdma->sent_flag >= 0) raised_.insert({id, device_, in.Flag(rdma->sent_flag)});
      } else if (const auto* signal = std::get_if<isa::Signal>(&instruction.kind)) {
        raised_.insert({id, PeerOver(signal->route), in.Flag(signal->flag)});
      }
    }
  }

  int32_t PeerOver(int32_t route) const { return program_.routes[route].from[device_].peer; }

  const isa::PodProgram& program_;
  const int32_t device_;
  std::set<std::tuple<const isa::Body*, isa::StreamId, isa::Iteration>>
      seen_;  // never iterated over
  std::set<Key> raised_;
};

class Explainer {
 public:
  Explainer(Pod& pod, const isa::PodProgram& program)
      : pod_(pod), program_(program), raisers_(static_cast<size_t>(pod.devices())) {}

  absl::Status Run() {
    std::optional<WaitingStream> first;
    int64_t stuck = 0;
    // Every device is told of, also where another was simulated in its place.
    for (int32_t d = 0; d < pod_.devices(); ++d) {
      for (const auto& stream : pod_.device(d).streams()) {
        if (stream->finished()) continue;
        ++stuck;
        if (!first) first = WaitingStream{d, stream.get()};
      }
    }
    if (!first) return absl::OkStatus();

    std::vector<WaitingStream> chain = {*first};
    std::vector<std::string> lines;
    for (;;) {
      std::string why;
      const std::optional<WaitingStream> next = Follow(chain.back(), why);
      lines.push_back(std::move(why));
      if (!next) break;
      const auto known = std::find(chain.begin(), chain.end(), *next);
      if (known != chain.end()) {
        lines.push_back(fmt::format("which closes the cycle at {}", Describe(*next)));
        break;
      }
      chain.push_back(*next);
    }
    std::string message = fmt::format("deadlock: {} streams wait for what will not happen", stuck);
    for (const std::string& line : lines) message += "\n  " + line;
    return absl::InternalError(message);
  }

 private:
  std::string Describe(const WaitingStream& node) const {
    std::string text =
        fmt::format("device {} {}", node.device, chip::StreamName(node.stream->ref().id));
    if (const int32_t op = node.stream->op(); op >= 0) {
      text += fmt::format(" in {}", program_.info.ops[op].name);
    }
    return text;
  }

  // Returns the stream that would have to act before this one goes on, and why.
  std::optional<WaitingStream> Follow(const WaitingStream& node, std::string& why) {
    const Stream& stream = *node.stream;
    const std::string who = Describe(node);
    switch (stream.blocked()) {
      case Stream::Blocked::kFlag: {
        const int32_t flag = stream.blocked_on();
        why = fmt::format("{} waits for flag {} to reach {} (it is {})", who, flag,
                          stream.blocked_count(), pod_.device(node.device).flags().count(flag));
        std::optional<WaitingStream> finished;
        for (int32_t d = 0; d < pod_.devices(); ++d) {
          const Raisers& raisers = RaisersOf(d);
          for (const auto& other : pod_.device(d).streams()) {
            if (!raisers.Raises(other->ref().id, node.device, flag)) continue;
            if (!other->finished()) {
              why +=
                  fmt::format(", which device {} {} raises", d, chip::StreamName(other->ref().id));
              return WaitingStream{d, other.get()};
            }
            if (!finished) finished = WaitingStream{d, other.get()};
          }
        }
        if (finished) {
          why +=
              fmt::format(", but {}, which raises it, has nothing left to do", Describe(*finished));
        } else {
          why += ", which no instruction raises";
        }
        return std::nullopt;
      }
      case Stream::Blocked::kToken: {
        const int32_t token = stream.blocked_on();
        why = fmt::format("{} waits for token {}", who, token);
        for (const auto& other : pod_.device(node.device).streams()) {
          if (!other->Holds(token)) continue;
          why += fmt::format(", which device {} {} works on", node.device,
                             chip::StreamName(other->ref().id));
          return WaitingStream{node.device, other.get()};
        }
        return std::nullopt;
      }
      case Stream::Blocked::kStep:
        why = fmt::format("{} waits for a kernel that polls, and none runs", who);
        return std::nullopt;
      case Stream::Blocked::kWork:
      case Stream::Blocked::kNo:
        why = fmt::format("{} waits for work that was given to the machine and got lost", who);
        return std::nullopt;
    }
    return std::nullopt;
  }

  const Raisers& RaisersOf(int32_t device) {
    std::unique_ptr<Raisers>& raisers = raisers_[device];
    if (raisers == nullptr) raisers = std::make_unique<Raisers>(program_, device);
    return *raisers;
  }

  Pod& pod_;
  const isa::PodProgram& program_;
  std::vector<std::unique_ptr<Raisers>> raisers_;
};

}  // namespace

absl::Status CheckFinished(Pod& pod, const isa::PodProgram& program) {
  return Explainer(pod, program).Run();
}

}  // namespace tpusim::sim
