#include "sim/symmetry/in_flight.h"

#include <algorithm>
#include <numeric>
#include <systemc>

#include "models/events/sim_time.h"

namespace tpusim::sim {
namespace {

// Of one class over one route for one operation; what comes later is like what came before.
constexpr size_t kMostEnds = 4096;

}  // namespace

InFlight::InFlight(const Symmetry& symmetry, const isa::PodProgram& program)
    : symmetry_(symmetry),
      program_(program),
      index_(program.programs.size(), std::vector<int32_t>(program.routes.size(), -1)),
      flights_(symmetry.all().size(), 0),
      used_((symmetry.all().size() + 63) / 64, 0) {
  for (size_t i = 0; i < symmetry.all().size(); ++i) {
    const auto& [its_program, route] = symmetry.all()[i];
    index_[its_program][route] = static_cast<int32_t>(i);
  }
}

void InFlight::FlightBegins(int32_t device, int32_t route) {
  const int32_t i = IndexOf(device, route);
  if (i < 0 || flights_[i]++ > 0) return;
  used_[i / 64] |= uint64_t{1} << (i % 64);
  grown_ = true;
}

void InFlight::FlightEnds(int32_t device, int32_t route, int32_t op) {
  const int32_t i = IndexOf(device, route);
  if (i < 0) {
    std::vector<Picoseconds>& ends =
        overlooked_[{route, op}][symmetry_.classes().devices.class_of[device]];
    if (ends.size() < kMostEnds) ends.push_back(events::Now());
    return;
  }
  if (--flights_[i] > 0) return;
  used_[i / 64] &= ~(uint64_t{1} << (i % 64));
}

std::vector<int32_t> InFlight::SendersOn(int32_t route) const {
  const std::vector<RouteLoad>& loads = symmetry_.classes().loads[route];
  std::vector<int32_t> first(loads.size());
  std::iota(first.begin(), first.end(), 0);
  std::map<int32_t, int32_t> sender_to;
  for (size_t c = 0; c < loads.size(); ++c) {
    for (const RouteLoad::Receiver& to : loads[c].receivers) {
      const int32_t other = first[sender_to.try_emplace(to.receiver, c).first->second];
      const auto [low, high] = std::minmax(first[c], other);
      std::replace(first.begin(), first.end(), int32_t{high}, int32_t{low});
    }
  }
  return first;
}

Picoseconds InFlight::Spread() const {
  Picoseconds spread{0};
  for (const auto& [overlooked, ends_of_class] : overlooked_) {
    const std::vector<int32_t> senders = SendersOn(overlooked.route);
    // Who has another number of transfers has another part in the operation.
    std::map<std::pair<int32_t, size_t>, const std::vector<Picoseconds>*> known;
    for (const auto& [one, ends] : ends_of_class) {
      const std::vector<Picoseconds>& others =
          *known.try_emplace({senders[one], ends.size()}, &ends).first->second;
      for (size_t n = 0; n < ends.size(); ++n) {
        spread = std::max({spread, ends[n] - others[n], others[n] - ends[n]});
      }
    }
  }
  return spread;
}

bool InFlight::Allowed() {
  const auto is_part_of = [this](const Bits& set) {
    for (size_t i = 0; i < used_.size(); ++i) {
      if ((used_[i] & ~set[i]) != 0) return false;
    }
    return true;
  };
  if (std::any_of(allowed_.begin(), allowed_.end(), is_part_of)) return true;
  RouteSet set;
  for (size_t i = 0; i < flights_.size(); ++i) {
    if (flights_[i] > 0) set.push_back(symmetry_.all()[i]);
  }
  if (!symmetry_.Allows(set)) {
    refused_ = std::move(set);
    return false;
  }
  // What this set contains need not be kept beside it.
  std::erase_if(allowed_, [this](const Bits& other) {
    for (size_t i = 0; i < used_.size(); ++i) {
      if ((other[i] & ~used_[i]) != 0) return false;
    }
    return true;
  });
  allowed_.push_back(used_);
  return true;
}

void InFlight::InstantSettled() {
  if (!grown_ || refused_) return;
  grown_ = false;
  if (!Allowed()) sc_core::sc_stop();
}

}  // namespace tpusim::sim
