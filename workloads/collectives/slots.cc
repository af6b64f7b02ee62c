#include "workloads/collectives/slots.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "configs/status_macros.h"

namespace tpusim::collectives {
namespace {

// Steps that end within this of each other, in seconds, end together.
constexpr double kSoon = 1e-12;

// What goes over one lane in one slot: all phases that have it in the same shape and the
// same way. A lane that still is a line for some and a ring for others (twisted
// tori) serves them one after the other.
struct Load {
  Lane lane;
  int index = 0;  // of the lane
  Way way = Way::kBoth;
  std::vector<std::pair<int, size_t>> phases = {};  // colour, phase
  Bytes bundle = Bytes(0);                          // of one position: a shard, or a block
};
struct Track {
  std::vector<Load> loads;
};

bool Exchanges(const Plan& plan) { return plan.kind == CollectiveKind::kAllToAll; }

// Bytes of the colour that a position holds for each step when it comes to this phase.
Bytes BundleAt(const Plan& plan, size_t colour, size_t phase) {
  int64_t held = plan.halves;
  if (Exchanges(plan)) {
    held *= plan.members() / plan.lanes[plan.orders[colour][phase]].n;
  } else if (!plan.single_phase) {
    for (size_t i = 0; i < phase; ++i) held *= plan.lanes[plan.orders[colour][i]].n;
  }
  return plan.atoms[colour] * held;
}

size_t SlotOf(const Plan& plan, size_t colour, size_t phase) {
  return plan.slots.empty() ? phase : static_cast<size_t>(plan.slots[colour][phase]);
}

size_t SlotCount(const Plan& plan) {
  size_t count = 0;
  for (size_t colour = 0; colour < plan.orders.size(); ++colour) {
    for (size_t phase = 0; phase < plan.lanes.size(); ++phase) {
      count = std::max(count, SlotOf(plan, colour, phase) + 1);
    }
  }
  return count;
}

// The tracks of every slot, by lane; opposite ways round a ring have links of their own.
std::vector<std::vector<Track>> TracksOf(const Plan& plan) {
  std::vector<std::vector<Track>> slots(SlotCount(plan));
  for (size_t colour = 0; colour < plan.orders.size(); ++colour) {
    for (size_t phase = 0; phase < plan.lanes.size(); ++phase) {
      const int index = plan.orders[colour][phase];
      const Lane lane = plan.LaneAt(colour, phase);
      const Way way = plan.WayOf(colour);
      std::vector<Track>& tracks = slots[SlotOf(plan, colour, phase)];
      auto track = std::find_if(tracks.begin(), tracks.end(), [&](const Track& t) {
        return t.loads[0].index == index && t.loads[0].way == way;
      });
      if (track == tracks.end()) track = tracks.insert(track, Track{});
      auto load = std::find_if(track->loads.begin(), track->loads.end(),
                               [&](const Load& l) { return l.lane.shape == lane.shape; });
      if (load == track->loads.end()) {
        load = track->loads.insert(load, {.lane = lane, .index = index, .way = way});
      }
      load->phases.push_back({static_cast<int>(colour), phase});
      load->bundle += BundleAt(plan, colour, phase);
    }
  }
  return slots;
}

std::vector<Picoseconds> StepTimes(const Plan& plan, const Load& load) {
  return Exchanges(plan) ? AllToAllStepTimes(load.lane, load.bundle, plan.hop_latency)
                         : AllGatherStepTimes(load.lane, load.bundle, plan.hop_latency, load.way);
}

// What the device holds of one colour when it comes to lane `phase` of the order.
Pieces HeldAt(const Plan& plan, const Position& position, int colour, size_t phase) {
  Pieces held;
  held.colour = colour;
  held.summed = plan.single_phase;
  for (size_t i = 0; i < plan.orders[colour].size(); ++i) {
    const int lane = plan.orders[colour][i];
    const Range own = {position[lane], 1};
    const Range all = {0, plan.lanes[lane].n};
    held.origin[lane] = i < phase ? all : own;
    if (Exchanges(plan)) held.destination[lane] = i < phase ? own : all;
  }
  return held;
}

// Adds the pieces of moves that are made together.
void Join(std::vector<Move>& moves, const std::vector<Move>& more) {
  TPUSIM_CHECK(moves.size() == more.size(), "colours on one lane make equal moves");
  for (size_t i = 0; i < moves.size(); ++i) {
    moves[i].pieces.insert(moves[i].pieces.end(), more[i].pieces.begin(), more[i].pieces.end());
  }
}

DeviceSteps StepsOf(const Plan& plan, const Load& load, const Position& position) {
  DeviceSteps steps;
  for (const auto& [colour, phase] : load.phases) {
    const Pieces held = HeldAt(plan, position, colour, phase);
    const DeviceSteps one = Exchanges(plan) ? AllToAllSteps(load.lane, load.index, held)
                                            : AllGatherSteps(load.lane, load.index, held, load.way);
    if (steps.empty()) {
      steps = one;
      continue;
    }
    for (size_t i = 0; i < steps.size(); ++i) {
      Join(steps[i].sends, one[i].sends);
      Join(steps[i].receives, one[i].receives);
    }
  }
  return steps;
}

// When the steps of the tracks end, counted from the begin of the slot; in that order.
struct End {
  Picoseconds time;
  size_t track = 0, step = 0;
  auto operator<=>(const End&) const = default;
};
std::vector<End> EndsOf(const Plan& plan, const std::vector<Track>& tracks) {
  std::vector<End> ends;
  for (size_t track = 0; track < tracks.size(); ++track) {
    End end = {Picoseconds(0), track, 0};
    for (const Load& load : tracks[track].loads) {
      for (const Picoseconds time : StepTimes(plan, load)) {
        end.time += time;
        ends.push_back(end);
        ++end.step;
      }
    }
  }
  std::sort(ends.begin(), ends.end());
  return ends;
}

void Append(const std::vector<Move>& moves, int lasts, std::vector<Move>& to) {
  for (Move move : moves) {
    move.lasts = lasts;
    to.push_back(std::move(move));
  }
}

Picoseconds TimeOfTrack(const Plan& plan, const Track& track) {
  Picoseconds sum(0);
  for (const Load& load : track.loads) {
    sum += Exchanges(plan) ? AllToAllTime(load.lane, load.bundle, plan.hop_latency)
                           : AllGatherTime(load.lane, load.bundle, plan.hop_latency, load.way);
  }
  return sum;
}

// A track on its way: steps with what they need.
struct Running {
  struct Step {
    double seconds, passes;  // at the rate of the lane; of each byte through memory
  };
  double rate;
  Picoseconds latency;
  std::vector<Step> steps;  // the last one comes first
};
Running RunningOf(const Plan& plan, const Track& track, bool sums) {
  Plan at_once = plan;
  at_once.hop_latency = Picoseconds(0);
  Running running = {track.loads[0].lane.rate.value(), TimeOfTrack(plan, track), {}};
  for (const Load& load : track.loads) {
    for (const Picoseconds time : StepTimes(at_once, load)) {
      running.latency -= time;
      const auto step = static_cast<int64_t>(running.steps.size());
      const int64_t passes = MemoryPasses(load.lane, load.way, step, sums);
      running.steps.push_back({ToSeconds(time), static_cast<double>(passes)});
    }
  }
  std::reverse(running.steps.begin(), running.steps.end());
  return running;
}

// Tracks side by side. Where memory cannot serve all of them their transfers get equal
// shares of it, but none more than its lane carries.
Picoseconds TogetherTime(const Plan& plan, const std::vector<Track>& tracks, bool sums) {
  Picoseconds longest(0);
  double needed = 0;
  for (const Track& track : tracks) {
    const Load& load = track.loads[0];
    longest = std::max(longest, TimeOfTrack(plan, track));
    needed += load.lane.rate.value() *
              static_cast<double>(MemoryPasses(load.lane, load.way, /*step=*/0, sums));
  }
  if (plan.memory.value() <= 0 || needed <= plan.memory.value()) return longest;
  std::vector<Running> running;
  for (const Track& track : tracks) running.push_back(RunningOf(plan, track, sums));
  // Slow lanes first: they take less than an equal share.
  std::stable_sort(running.begin(), running.end(),
                   [](const Running& a, const Running& b) { return a.rate < b.rate; });
  double now = 0;
  while (!running.empty()) {
    double memory = plan.memory.value(), passes = 0;
    for (const Running& r : running) passes += r.steps.back().passes;
    std::vector<double> speeds;
    double passed = -1;  // until the next step ends
    for (const Running& r : running) {
      const double rate = std::min(r.rate, memory / passes);
      memory -= rate * r.steps.back().passes;
      passes -= r.steps.back().passes;
      speeds.push_back(rate / r.rate);
      const double left = r.steps.back().seconds / speeds.back();
      passed = passed < 0 ? left : std::min(passed, left);
    }
    now += passed;
    for (size_t i = running.size(); i-- > 0;) {
      Running& r = running[i];
      r.steps.back().seconds -= passed * speeds[i];
      if (r.steps.back().seconds > kSoon) continue;
      r.steps.pop_back();
      if (!r.steps.empty()) continue;
      longest = std::max(longest, FromSeconds(now) + r.latency);
      running.erase(running.begin() + static_cast<int64_t>(i));
    }
  }
  return longest;
}

// When the members of a lane have all that comes over it: those in the middle of a
// line before those at its ends, to which the farthest is twice as far.
struct Exchanged {
  int index = 0;  // of the lane
  Picoseconds middle, end;
};

// An exchange along lines is direct, so that slots overlap: the middle of a line goes on
// while its ends still wait. In the next slot a link is busy from when the first of its lane
// comes, unless the last one comes so late that only its own blocks are left. What
// other lanes hold up comes late for some whole lane.
Picoseconds ExchangeTime(const Plan& plan) {
  std::vector<Exchanged> before;
  const auto latest = [&](int except) {
    Picoseconds time(0);
    for (const Exchanged& lane : before) {
      if (lane.index != except) time = std::max(time, lane.end);
    }
    return time;
  };
  for (const std::vector<Track>& tracks : TracksOf(plan)) {
    std::vector<Exchanged> now;
    for (const Track& track : tracks) {
      const Lane& lane = track.loads[0].lane;
      const Picoseconds time = TimeOfTrack(plan, track);
      if (lane.shape != Lane::Shape::kLine) {
        const Picoseconds end = latest(-1) + time;
        now.push_back({track.loads[0].index, end, end});
        continue;
      }
      Picoseconds first = latest(track.loads[0].index);
      for (const Exchanged& lane_before : before) {
        if (lane_before.index == track.loads[0].index) first = std::max(first, lane_before.middle);
      }
      const Picoseconds hop = plan.hop_latency * lane.hops;
      const Picoseconds bytes = time - hop * (lane.n - 1);
      const Picoseconds moved = std::max(first + bytes, latest(-1) + bytes / CeilDiv(lane.n, 2));
      now.push_back({track.loads[0].index, moved + hop * (lane.n / 2), moved + hop * (lane.n - 1)});
    }
    if (!now.empty()) before = std::move(now);
  }
  return latest(-1);
}

}  // namespace

DeviceSteps SlottedSteps(const Plan& plan, const Position& position) {
  DeviceSteps all;
  for (const std::vector<Track>& tracks : TracksOf(plan)) {
    std::vector<DeviceSteps> steps;
    for (const Track& track : tracks) {
      DeviceSteps& of_track = steps.emplace_back();
      for (const Load& load : track.loads) {
        const DeviceSteps one = StepsOf(plan, load, position);
        of_track.insert(of_track.end(), one.begin(), one.end());
      }
    }
    // Steps that end at the same time are waited for together; then the next ones
    // of their tracks begin.
    std::vector<size_t> begun(tracks.size(), all.size());
    const std::vector<End> ends = EndsOf(plan, tracks);
    all.emplace_back();
    for (size_t i = 0; i < ends.size();) {
      const size_t now = all.size() - 1;
      const size_t first = i;
      for (; i < ends.size() && ends[i].time == ends[first].time; ++i) {
        const DeviceStep& step = steps[ends[i].track][ends[i].step];
        const size_t from = begun[ends[i].track];
        const int lasts = static_cast<int>(now - from);
        Append(step.sends, lasts, all[from].sends);
        Append(step.receives, lasts, all[now].receives);
        begun[ends[i].track] = now + 1;
      }
      if (i < ends.size()) all.emplace_back();
    }
  }
  return all;
}

int64_t MemoryPasses(const Lane& lane, Way way, int64_t step, bool sums) {
  const int64_t sent = sums ? 2 : 1;
  if (way != Way::kBoth || lane.shape == Lane::Shape::kSwitched) return 1 + sent;
  if (lane.shape != Lane::Shape::kLine) return 2 * (1 + sent);
  int64_t most = 0;
  for (int64_t before = 0; before < lane.n; ++before) {
    const int64_t behind = lane.n - 1 - before;  // positions on this side and on that
    const int64_t in = (before > step ? 1 : 0) + (behind > step ? 1 : 0);
    const int64_t out =
        (before >= step && behind > 0 ? 1 : 0) + (behind >= step && before > 0 ? 1 : 0);
    most = std::max(most, in + out * sent);
  }
  return most;
}

Picoseconds SlottedTime(const Plan& plan, bool sums) {
  if (Exchanges(plan)) return ExchangeTime(plan);
  Picoseconds time(0);
  for (const std::vector<Track>& tracks : TracksOf(plan)) time += TogetherTime(plan, tracks, sums);
  return time;
}

}  // namespace tpusim::collectives
