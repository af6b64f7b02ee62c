#include "sim/lockstep.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <variant>

#include "models/chip/sim_time.h"

namespace tpusim::sim {
namespace {

using chip::Now;

void AddFlags(const isa::Body& body, std::set<int32_t>& flags) {
  for (const isa::Instruction& instruction : body) {
    if (const auto* rdma = std::get_if<isa::Rdma>(&instruction.kind)) {
      flags.insert({rdma->arrival_flag, rdma->sent_flag});
    } else if (const auto* signal = std::get_if<isa::Signal>(&instruction.kind)) {
      flags.insert(signal->flag);
    } else if (const auto* wait = std::get_if<isa::Wait>(&instruction.kind)) {
      flags.insert(wait->flag);
    } else if (const auto* loop = std::get_if<isa::Loop>(&instruction.kind)) {
      AddFlags(*loop->body, flags);
    }
  }
}

}  // namespace

Lockstep::Lockstep(sc_core::sc_module_name name, const LockstepParts& parts)
    : sc_module(name), parts_(parts) {
  SC_HAS_PROCESS(Lockstep);
  SC_METHOD(Decide);
  sensitive << decide_;
  dont_initialize();
  SC_METHOD(Resume);
  sensitive << resume_;
  dont_initialize();
}

bool Lockstep::Arrive(chip::Stream& stream, int64_t left) {
  if (parts_.fluid.network().active_flows() > 0) return false;
  if (waiting_.empty()) decide_.notify(sc_core::SC_ZERO_TIME);
  waiting_.push_back({&stream, left});
  return true;
}

void Lockstep::Decide() {
  // Others may still arrive in this instant.
  if (sc_core::sc_pending_activity_at_current_time()) {
    decide_.notify(sc_core::SC_ZERO_TIME);
    return;
  }
  if (parts_.fluid.network().active_flows() > 0) {
    last_.reset();
  } else {
    Stop now = Look();
    const int64_t times = last_ ? RepeatableIterations(*last_, now) : 0;
    if (times > 0) {
      Repeat(*last_, now, times);
      return;
    }
    last_ = std::move(now);
  }
  for (const Waiting& waiting : std::exchange(waiting_, {})) waiting.stream->PassIterations(0);
}

void Lockstep::Resume() {
  for (const Waiting& passing : std::exchange(passing_, {})) {
    passing.stream->PassIterations(iterations_);
  }
}

Lockstep::Stop Lockstep::Look() const {
  Stop stop;
  stop.at = Now();
  stop.quiet_until = stop.at + chip::UntilNextEvent();
  stop.fewest_left = waiting_.front().left;
  std::map<const chip::Stream*, int64_t> left;
  std::set<int32_t> counted, ops;
  for (const Waiting& waiting : waiting_) {
    left[waiting.stream] = waiting.left;
    stop.fewest_left = std::min(stop.fewest_left, waiting.left);
    AddFlags(*waiting.stream->loop(), counted);
    ops.insert(waiting.stream->op());
  }
  counted.erase(-1);
  ops.erase(-1);
  for (const chip::Device* device : parts_.devices) {
    for (const chip::Stream* stream : device->streams()) {
      const auto waits = left.find(stream);
      if (waits == left.end()) {
        stop.streams.emplace_back(nullptr, stream->retired());
      } else {
        const isa::Body* loop = stream->loop();
        stop.streams.emplace_back(
            loop, stream->retired() + waits->second * static_cast<int64_t>(loop->size()));
      }
    }
    for (const int32_t flag : counted) stop.flags.push_back(device->flags().count(flag));
  }
  stop.flows = parts_.fluid.network().ReadBooks();
  for (const ici::Link* link : parts_.links) stop.links.push_back(link->traffic());
  for (const chip::Nic* nic : parts_.nics) stop.nics.push_back(nic->traffic());
  stop.mark = parts_.recorder.SetMark({ops.begin(), ops.end()});
  return stop;
}

int64_t Lockstep::RepeatableIterations(const Stop& before, const Stop& now) {
  const Picoseconds period = now.at - before.at;
  if (period <= Picoseconds(0) || before.quiet_until < now.at ||
      before.fewest_left != now.fewest_left + 1 || before.streams != now.streams ||
      before.flags != now.flags) {
    return 0;
  }
  // The last iteration is executed: what follows it is another matter.
  return std::min(now.fewest_left - 1, (now.quiet_until - now.at).value() / period.value());
}

void Lockstep::Repeat(const Stop& before, const Stop& now, int64_t times) {
  parts_.fluid.network().Repeat(before.flows, times);
  for (size_t i = 0; i < parts_.links.size(); ++i) {
    parts_.links[i]->Repeat(before.links[i], times);
  }
  for (size_t i = 0; i < parts_.nics.size(); ++i) parts_.nics[i]->Repeat(before.nics[i], times);
  parts_.recorder.Repeat(before.mark, now.at - before.at, times);
  iterations_ = times;
  resume_.notify(chip::ScTime((now.at - before.at) * times));
  last_.reset();
  passing_ = std::exchange(waiting_, {});
}

}  // namespace tpusim::sim
