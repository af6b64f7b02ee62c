#include "models/isa/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <unordered_set>
#include <utility>

#include "configs/memory.h"
#include "configs/status_macros.h"

namespace tpusim::isa {
namespace {

// An instruction table index: within [0, size).
template <typename T>
bool Within(int64_t index, const std::vector<T>& table) {
  return index >= 0 && index < static_cast<int64_t>(table.size());
}

class Verifier {
 public:
  Verifier(const PodProgram& program, const configs::Topology& topology)
      : program_(program), topology_(topology) {}

  absl::Status Run() {
    if (program_.devices() != topology_.devices()) {
      return Bad(fmt::format("it is for {} devices, the slice has {}", program_.devices(),
                             topology_.devices()));
    }
    for (const int32_t index : program_.program_of_device) {
      if (!Within(index, program_.programs) || program_.programs[index] == nullptr) {
        return Bad(fmt::format("a device runs program {}, which does not exist", index));
      }
    }
    RETURN_IF_ERROR(CheckRoutes());
    for (size_t i = 0; i < program_.programs.size(); ++i) {
      if (program_.programs[i] == nullptr) return Bad(fmt::format("program {} is missing", i));
      program_index_ = static_cast<int32_t>(i);
      seen_.clear();
      const absl::Status status = CheckBody(program_.programs[i].get(), StreamId{});
      if (!status.ok()) return Bad(fmt::format("program {}: {}", i, Message(status)));
    }
    return absl::OkStatus();
  }

 private:
  static absl::Status Bad(const std::string& what) {
    return absl::InternalError("the instruction streams are not a program: " + what);
  }

  absl::Status CheckRoutes() {
    for (const Route& route : program_.routes) {
      if (static_cast<int64_t>(route.from.size()) != program_.devices()) {
        return Bad(fmt::format("route '{}' is for {} devices", route.name, route.from.size()));
      }
      for (int64_t device = 0; device < program_.devices(); ++device) {
        const RouteEnd& end = route.from[device];
        if (end.peer < 0) continue;
        int64_t chip = device / topology_.devices_per_chip();
        for (const configs::Link& link : end.links) {
          if (link.chip != chip || !topology_.HasLink(chip, link.direction)) {
            return Bad(fmt::format("route '{}' from device {} breaks at chip {}", route.name,
                                   device, chip));
          }
          chip = topology_.Neighbour(chip, link.direction);
        }
        const bool to_slice =
            end.peer < program_.devices() &&
            topology_.SliceOf(chip) != topology_.SliceOf(end.peer / topology_.devices_per_chip());
        if (end.dcn && to_slice && end.links.empty()) continue;
        if (end.dcn || end.peer >= program_.devices() ||
            chip != end.peer / topology_.devices_per_chip()) {
          return Bad(fmt::format("route '{}' from device {} ends at chip {}, not at device {}",
                                 route.name, device, chip, end.peer));
        }
      }
    }
    return absl::OkStatus();
  }

  absl::Status CheckBody(const Body* body, const StreamId& stream) {
    if (body == nullptr) return absl::InternalError("a body is missing");
    if (!seen_.insert({body, stream, in_.number}).second) return absl::OkStatus();
    std::vector<int32_t> labels;
    RETURN_IF_ERROR(CheckAll(*body, stream, labels));
    if (!labels.empty()) {
      return absl::InternalError(
          fmt::format("label '{}' does not end", program_.info.ops[labels.back()].name));
    }
    return absl::OkStatus();
  }

  // Checks the body as executed inside of `labels`.
  absl::Status CheckAll(const Body& body, const StreamId& stream, std::vector<int32_t>& labels) {
    for (const Instruction& instruction : body) {
      absl::Status status;
      if (const Label* label = std::get_if<Label>(&instruction.kind)) {
        RETURN_IF_ERROR(CheckLabel(*label, labels));
      } else if (const Call* call = std::get_if<Call>(&instruction.kind)) {
        RETURN_IF_ERROR(CheckCall(call->body.get(), stream, labels));
      } else {
        status =
            std::visit([&](const auto& kind) { return Check(kind, stream); }, instruction.kind);
      }
      if (!status.ok()) {
        return absl::Status(
            status.code(),
            labels.empty()
                ? Message(status)
                : fmt::format("{}: {}", program_.info.ops[labels.back()].name, Message(status)));
      }
    }
    return absl::OkStatus();
  }

  // Checks a called body; of one that was checked already only labels count that do not begin and
  // end in it.
  absl::Status CheckCall(const Body* body, const StreamId& stream, std::vector<int32_t>& labels) {
    if (body == nullptr) return absl::InternalError("a body is missing");
    const auto [it, is_new] = open_labels_.try_emplace({body, stream, in_.number});
    if (!is_new) {
      for (const Label& label : it->second) RETURN_IF_ERROR(CheckLabel(label, labels));
      return absl::OkStatus();
    }
    RETURN_IF_ERROR(CheckAll(*body, stream, labels));
    std::vector<Label> open;
    AddOpenLabels(*body, stream, open);
    open_labels_[{body, stream, in_.number}] = std::move(open);
    return absl::OkStatus();
  }

  void AddOpenLabels(const Body& body, const StreamId& stream, std::vector<Label>& open) const {
    const auto add = [&](const Label& label) {
      const bool ends = !label.begin && !open.empty() && open.back().begin;
      if (ends) {
        open.pop_back();
      } else {
        open.push_back(label);
      }
    };
    for (const Instruction& instruction : body) {
      if (const Label* label = std::get_if<Label>(&instruction.kind)) {
        add(*label);
      } else if (const Call* call = std::get_if<Call>(&instruction.kind)) {
        for (const Label& inner : open_labels_.at({call->body.get(), stream, in_.number})) {
          add(inner);
        }
      }
    }
  }

  absl::Status CheckLabel(const Label& label, std::vector<int32_t>& labels) const {
    const int32_t op = in_.Op(label.op);
    if (!Within(op, program_.info.ops)) {
      return absl::InternalError(fmt::format("a label of op {}, which is unknown", op));
    }
    if (label.begin) {
      labels.push_back(op);
    } else if (labels.empty() || labels.back() != op) {
      return absl::InternalError(
          fmt::format("label '{}' ends without having begun", program_.info.ops[op].name));
    } else {
      labels.pop_back();
    }
    return absl::OkStatus();
  }

  absl::Status Check(const Label&, const StreamId&) { return absl::OkStatus(); }  // CheckAll
  absl::Status Check(const Call&, const StreamId&) { return absl::OkStatus(); }   // likewise
  absl::Status Check(const Block& block, const StreamId& stream) {
    const int64_t slots[] = {
        block.mxu.m, block.mxu.k, block.mxu.n, block.valu,           block.eup,
        block.xlu,   block.load,  block.store, block.scalar.value(), block.latency.value(),
        block.stated.value()};
    if (*std::min_element(std::begin(slots), std::end(slots)) < 0) {
      return absl::InternalError("a block with negative work");
    }
    const bool works = block.mxu.m > 0 || block.valu > 0 || block.eup > 0 || block.xlu > 0 ||
                       block.load > 0 || block.store > 0 || block.stated > Picoseconds(0);
    if (stream.kind != StreamKind::kTensorCore && works) {
      return NoRule("a block with vector or matrix work outside of a TensorCore stream");
    }
    return absl::OkStatus();
  }
  absl::Status Check(const Kernel& kernel, const StreamId& stream) {
    if (stream != StreamId{}) {
      return NoRule("a kernel outside of the stream tensor_core[0]");
    }
    if (kernel.grid.size() > 32) return absl::InternalError("a grid of more than 32 dimensions");
    for (const GridDim& dim : kernel.grid) {
      if (dim.count < 1 || !(dim.last_fraction > 0 && dim.last_fraction <= 1)) {
        return absl::InternalError(fmt::format("a grid dimension of {} blocks, the last one {}",
                                               dim.count, dim.last_fraction));
      }
    }
    for (const Window& window : kernel.windows) {
      if (window.space == MemorySpace::kHost) {
        return NoRule(fmt::format("window '{}' of a kernel in host memory", window.operand));
      }
      if (window.buffers < 1 || window.bytes < Bytes(0)) {
        return absl::InternalError(fmt::format("window '{}' of {} bytes with {} buffers",
                                               window.operand, window.bytes.value(),
                                               window.buffers));
      }
    }
    return Check(kernel.block, stream);
  }
  absl::Status CheckBytes(Bytes bytes) {
    if (bytes >= Bytes(0)) return absl::OkStatus();
    return absl::InternalError(fmt::format("a transfer of {} bytes", bytes.value()));
  }
  absl::Status Check(const Dma& dma, const StreamId&) {
    if (dma.from == MemorySpace::kHost || dma.to == MemorySpace::kHost) {
      return NoRule("a local DMA to or from host memory (that is a HostDma)");
    }
    return CheckBytes(dma.bytes);
  }
  absl::Status Check(const HostDma& dma, const StreamId&) { return CheckBytes(dma.bytes); }
  absl::Status CheckFlag(int32_t name) {
    const int32_t flag = in_.Flag(name);
    if (flag >= 0 && flag < program_.flags) return absl::OkStatus();
    return absl::InternalError(fmt::format("flag {} of {}", flag, program_.flags));
  }
  // The route must lead somewhere from every device that runs this program.
  absl::Status CheckRoute(int32_t route) {
    if (!Within(route, program_.routes)) {
      return absl::InternalError(fmt::format("route {}, which does not exist", route));
    }
    if (!checked_.insert({program_index_, route}).second) return absl::OkStatus();
    for (int64_t device = 0; device < program_.devices(); ++device) {
      if (program_.program_of_device[device] == program_index_ &&
          program_.routes[route].from[device].peer < 0) {
        return absl::InternalError(fmt::format("route '{}' leads nowhere from device {}",
                                               program_.routes[route].name, device));
      }
    }
    return absl::OkStatus();
  }
  absl::Status Check(const Rdma& rdma, const StreamId&) {
    RETURN_IF_ERROR(CheckRoute(rdma.route));
    if (rdma.arrival_flag >= 0) RETURN_IF_ERROR(CheckFlag(rdma.arrival_flag));
    if (rdma.sent_flag >= 0) RETURN_IF_ERROR(CheckFlag(rdma.sent_flag));
    for (const MemorySpace space : {rdma.from, rdma.to}) {
      const configs::Memory& memory = configs::MemoryOf(space);
      if (!memory.remote) return NoRule(fmt::format("a remote DMA to or from {}", memory.title));
    }
    if (rdma.reduce && (rdma.reduce->element_bytes < 1 || rdma.reduce->valu_per_vreg < 0)) {
      return absl::InternalError("a reducing transfer of elements without size");
    }
    if (rdma.from == MemorySpace::kVmem && rdma.to == MemorySpace::kVmem) {
      const std::vector<RouteEnd>& ends = program_.routes[rdma.route].from;
      for (size_t device = 0; device < ends.size(); ++device) {
        if (ends[device].peer != static_cast<int32_t>(device)) continue;
        return NoRule("a remote DMA from a device's VMEM to its own (that is a Dma)");
      }
    }
    return CheckBytes(rdma.bytes);
  }
  absl::Status Check(const Signal& signal, const StreamId&) {
    RETURN_IF_ERROR(CheckRoute(signal.route));
    return CheckFlag(signal.flag);
  }
  absl::Status Check(const Poll&, const StreamId& stream) {
    if (stream.kind != StreamKind::kTensorCore) return absl::OkStatus();
    return absl::InternalError("the main stream waits for steps of its own kernels");
  }
  absl::Status Check(const Wait& wait, const StreamId&) {
    if (wait.count < 1) return absl::InternalError("a wait for nothing");
    return CheckFlag(wait.flag);
  }
  absl::Status Check(const Loop& loop, const StreamId& stream) {
    if (loop.count < 0) return absl::InternalError("a loop with a negative trip count");
    if (loop.iterations == nullptr) return CheckBody(loop.body.get(), stream);
    if (in_.of != nullptr) return absl::InternalError("two loops whose iterations have names");
    if (loop.iterations->count() != loop.count) {
      return absl::InternalError("a loop with names for another trip count");
    }
    // Names in between are between those of the first and the last.
    for (const int64_t number : {int64_t{0}, loop.count - 1}) {
      in_ = {loop.iterations.get(), number};
      RETURN_IF_ERROR(CheckBody(loop.body.get(), stream));
    }
    in_ = {};
    return absl::OkStatus();
  }
  absl::Status Check(const Branch& branch, const StreamId& stream) {
    if (!Within(branch.taken, branch.bodies)) {
      return absl::InternalError(
          fmt::format("branch {} of {}", branch.taken, branch.bodies.size()));
    }
    return CheckBody(branch.bodies[branch.taken].get(), stream);
  }
  absl::Status CheckBuffer(MemorySpace space, int32_t buffer) {
    if (space == MemorySpace::kHost) return NoRule("an allocation in host memory");
    if (Within(buffer, program_.info.buffers)) return absl::OkStatus();
    return absl::InternalError(fmt::format("buffer {}, which is unknown", buffer));
  }
  absl::Status Check(const Alloc& alloc, const StreamId&) {
    return CheckBuffer(alloc.space, alloc.buffer);
  }
  absl::Status Check(const Free& free, const StreamId&) {
    return CheckBuffer(free.space, free.buffer);
  }
  absl::Status CheckToken(int32_t name) {
    const int32_t token = in_.Token(name);
    if (token >= 0 && token < program_.tokens) return absl::OkStatus();
    return absl::InternalError(fmt::format("token {} of {}", token, program_.tokens));
  }
  absl::Status Check(const Start& start, const StreamId& stream) {
    RETURN_IF_ERROR(CheckToken(start.token));
    if (start.stream == StreamId{} || start.stream == stream) {
      return absl::InternalError(
          "a body is started on the stream that starts it or on the main one");
    }
    return CheckBody(start.body.get(), start.stream);
  }
  absl::Status Check(const Done& done, const StreamId&) { return CheckToken(done.token); }

  const PodProgram& program_;
  const configs::Topology& topology_;
  int32_t program_index_ = 0;
  Iteration in_;
  using Seen = std::tuple<const Body*, StreamId, int64_t>;  // with the number of the iteration
  std::set<Seen> seen_;                                     // never iterated over
  // Labels that a called body opens or closes, by body and stream.
  std::map<Seen, std::vector<Label>> open_labels_;
  std::set<std::pair<int32_t, int32_t>> checked_;  // (program, route)
};

void Collect(const Body& body, std::unordered_set<const Body*>& seen, std::set<StreamId>& streams) {
  if (!seen.insert(&body).second) return;
  for (const Instruction& instruction : body) {
    if (const Loop* loop = std::get_if<Loop>(&instruction.kind)) {
      Collect(*loop->body, seen, streams);
    } else if (const Call* call = std::get_if<Call>(&instruction.kind)) {
      Collect(*call->body, seen, streams);
    } else if (const Branch* branch = std::get_if<Branch>(&instruction.kind)) {
      Collect(*branch->bodies[branch->taken], seen, streams);
    } else if (const Start* start = std::get_if<Start>(&instruction.kind)) {
      streams.insert(start->stream);
      Collect(*start->body, seen, streams);
    }
  }
}

}  // namespace

absl::Status Verify(const PodProgram& program, const configs::Topology& topology) {
  return Verifier(program, topology).Run();
}

std::vector<StreamId> StreamsOf(const PodProgram& program) {
  std::unordered_set<const Body*> seen;  // never iterated over
  std::set<StreamId> streams;
  for (const SharedBody& body : program.programs) Collect(*body, seen, streams);
  streams.erase(StreamId{});
  std::vector<StreamId> result = {StreamId{}};
  result.insert(result.end(), streams.begin(), streams.end());
  return result;
}

}  // namespace tpusim::isa
