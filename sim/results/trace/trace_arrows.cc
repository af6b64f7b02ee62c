#include "sim/results/trace/trace_arrows.h"

#include <fmt/format.h>

#include <algorithm>

#include "configs/status_macros.h"

namespace tpusim::results {

using sim::Span;

namespace {

// Beyond all numbers of transfers.
constexpr uint64_t kFlightArrows = uint64_t{1} << 62;

}  // namespace

absl::Status ArrowMatcher::Add(const Span& span) {
  if (span.flow_out != 0) {
    Ends& ends = open_[span.flow_out];
    if (ends.out) return absl::InternalError(fmt::format("arrow {} leaves twice", span.flow_out));
    ends.out = true;
    ends.leaves = span.start;
    RETURN_IF_ERROR(Match(span.flow_out));
  }
  if (span.flow_in != 0) {
    Ends& ends = open_[span.flow_in];
    if (ends.in) return absl::InternalError(fmt::format("arrow {} arrives twice", span.flow_in));
    ends.in = true;
    ends.arrives_in_start = span.start;
    ends.arrives_in_end = span.end;
    RETURN_IF_ERROR(Match(span.flow_in));
  }
  return absl::OkStatus();
}

absl::Status ArrowMatcher::Match(uint64_t arrow) {
  const auto it = open_.find(arrow);
  const Ends& ends = it->second;
  if (!ends.out || !ends.in) return absl::OkStatus();
  if (ends.arrives_in_end < ends.leaves) {
    return absl::InternalError(fmt::format("arrow {} leaves at {} ps and arrives before {} ps",
                                           arrow, ends.leaves.value(),
                                           ends.arrives_in_end.value()));
  }
  const bool at_end = ends.arrives_in_start < ends.leaves;
  if (at_end) at_end_.insert(arrow);
  if (ends.leaves == (at_end ? ends.arrives_in_end : ends.arrives_in_start)) {
    at_once_.insert(arrow);
  }
  open_.erase(it);
  return absl::OkStatus();
}

void ArrowMatcher::Draw(const Span& span, TraceSlice& slice) const {
  // Arrows with an end on a device that is not in the trace are left out.
  if (span.flow_out != 0 && open_.count(span.flow_out) == 0) slice.flow_out = span.flow_out;
  if (span.flow_in == 0 || open_.count(span.flow_in) != 0) return;
  slice.flow_in = span.flow_in;
  slice.flow_in_at_end = at_end_.count(span.flow_in) != 0;
  slice.flow_in_at_once = at_once_.count(span.flow_in) != 0;
}

std::pair<FlightMatcher::ArrowRole, int32_t> FlightMatcher::RoleOf(const Span& span) const {
  if (span.op < 0) return {ArrowRole::kNone, -1};
  const isa::OpInfo& op = info_.ops[span.op];
  if (span.track == sim::Track::kTensorCore) {
    if (op.starts >= 0) return {ArrowRole::kStart, op.starts};
    if (op.waits_for >= 0) return {ArrowRole::kDone, op.waits_for};
    return {ArrowRole::kNone, -1};
  }
  const bool label = span.track == sim::Track::kCollective ||
                     span.track == sim::Track::kSparseCore || span.track == sim::Track::kCopies;
  // What moves bytes there is a transfer that arrived.
  if (!label || !op.is_async || span.bytes != Bytes(0)) return {ArrowRole::kNone, -1};
  return {ArrowRole::kFlight, span.op};
}

void FlightMatcher::Add(const Span& span) {
  const auto [role, op] = RoleOf(span);
  if (role == ArrowRole::kNone) return;
  Flights& flights = flights_[{span.device, op}];
  if (role == ArrowRole::kStart) ++flights.starts;
  if (role == ArrowRole::kFlight) ++flights.flights;
  if (role == ArrowRole::kDone) ++flights.dones;
}

void FlightMatcher::Number() {
  uint64_t next = kFlightArrows;
  for (auto& [key, flights] : flights_) {
    flights.whole = std::min({flights.starts, flights.flights, flights.dones});
    flights.first_arrow = next;
    next += 2 * static_cast<uint64_t>(flights.whole);
    flights.starts = flights.flights = flights.dones = 0;
  }
}

void FlightMatcher::Draw(const Span& span, TraceSlice& slice) {
  const auto [role, op] = RoleOf(span);
  if (role == ArrowRole::kNone) return;
  if (!numbered_) Number();
  numbered_ = true;
  Flights& flights = flights_[{span.device, op}];
  int64_t& count = role == ArrowRole::kStart    ? flights.starts
                   : role == ArrowRole::kFlight ? flights.flights
                                           : flights.dones;
  const int64_t n = count++;
  if (n >= flights.whole) return;
  const uint64_t to_flight = flights.first_arrow + 2 * static_cast<uint64_t>(n);
  const uint64_t to_done = to_flight + 1;
  switch (role) {
    case ArrowRole::kNone:
      break;
    case ArrowRole::kStart:
      slice.flow_out = to_flight;
      break;
    case ArrowRole::kFlight:
      slice.flow_in = to_flight;
      slice.flow_in_at_end = true;
      slice.flow_in_at_once = span.start == span.end;
      slice.flow_out = to_done;
      slice.flow_out_at_end = true;
      break;
    case ArrowRole::kDone:
      slice.flow_in = to_done;
      slice.flow_in_at_end = slice.flow_in_at_once = true;
      break;
  }
}

}  // namespace tpusim::results
