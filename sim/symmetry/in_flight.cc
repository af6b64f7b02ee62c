#include "sim/symmetry/in_flight.h"

#include <algorithm>
#include <systemc>

namespace tpusim::sim {

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

void InFlight::FlightEnds(int32_t device, int32_t route) {
  const int32_t i = IndexOf(device, route);
  if (i < 0 || --flights_[i] > 0) return;
  used_[i / 64] &= ~(uint64_t{1} << (i % 64));
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
