#include "workloads/collectives/phases.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "configs/status_macros.h"

namespace tpusim::collectives {
namespace {

// Steps that end within this of each other, in seconds, end together.
constexpr double kSoon = 1e-12;  // number: rounding

// A load is what one dimension carries in one phase: the data of all colors that take it then in
// the same shape and the same way. A dimension that still is a line for some and a ring for others
// (twisted tori) serves them one after the other.
struct Load {
  Dimension dimension;
  int index = 0;  // of the dimension
  Way way = Way::kBoth;
  size_t phase = 0;
  std::vector<int> colors = {};
  Bytes bundle = Bytes(0);  // of one position: a shard, or a block
};
struct DimensionTrack {
  std::vector<Load> loads;
};

bool Exchanges(const Plan& plan) { return plan.kind == CollectiveKind::kAllToAll; }

// Bytes of the color that a position holds for each step when it comes to this phase.
Bytes BundleAt(const Plan& plan, size_t color, size_t phase) {
  int64_t held = plan.halves;
  if (Exchanges(plan)) {
    held *= plan.members() / plan.dimensions[plan.orders[color][phase]].n;
  } else if (!plan.single_phase) {
    for (size_t i = 0; i < phase; ++i) held *= plan.dimensions[plan.orders[color][i]].n;
  }
  return plan.chunk_bytes * held;
}

// The tracks of every phase, by dimension; opposite ways round a ring have links of their own.
std::vector<std::vector<DimensionTrack>> TracksOf(const Plan& plan) {
  std::vector<std::vector<DimensionTrack>> phases(plan.dimensions.size());
  for (size_t color = 0; color < plan.orders.size(); ++color) {
    for (size_t phase = 0; phase < plan.dimensions.size(); ++phase) {
      const int index = plan.orders[color][phase];
      const Dimension dimension = plan.DimensionAt(color, phase);
      const Way way = plan.WayOf(color);
      std::vector<DimensionTrack>& tracks = phases[phase];
      auto track = std::ranges::find_if(tracks, [&](const DimensionTrack& t) {
        return t.loads[0].index == index && t.loads[0].way == way;
      });
      if (track == tracks.end()) track = tracks.insert(track, DimensionTrack{});
      auto load = std::ranges::find_if(
          track->loads, [&](const Load& l) { return l.dimension.shape == dimension.shape; });
      if (load == track->loads.end()) {
        load = track->loads.insert(load, {dimension, index, way, phase});
      }
      load->colors.push_back(static_cast<int>(color));
      load->bundle += BundleAt(plan, color, phase);
    }
  }
  return phases;
}

std::vector<Picoseconds> StepTimes(const Plan& plan, const Load& load) {
  return Exchanges(plan)
             ? AllToAllStepTimes(load.dimension, load.bundle, plan.hop_latency)
             : AllGatherStepTimes(load.dimension, load.bundle, plan.hop_latency, load.way);
}

// Returns the chunks of one color that the device holds when it comes to dimension `phase` of the
// order.
Chunks HeldAt(const Plan& plan, const Position& position, int color, size_t phase) {
  Chunks held;
  held.color = color;
  held.summed = plan.single_phase;
  for (size_t i = 0; i < plan.orders[color].size(); ++i) {
    const int dimension = plan.orders[color][i];
    const PositionRange own = {position[dimension], 1};
    const PositionRange all = {0, plan.dimensions[dimension].n};
    held.origin[dimension] = i < phase ? all : own;
    if (Exchanges(plan)) held.destination[dimension] = i < phase ? own : all;
  }
  return held;
}

// Adds the chunks of transfers that are made together.
void Join(std::vector<ChunkTransfer>& transfers, const std::vector<ChunkTransfer>& more) {
  TPUSIM_CHECK(transfers.size() == more.size(), "colors on one dimension make equal transfers");
  for (size_t i = 0; i < transfers.size(); ++i) {
    transfers[i].chunks.insert(transfers[i].chunks.end(), more[i].chunks.begin(),
                               more[i].chunks.end());
  }
}

DeviceSteps StepsOf(const Plan& plan, const Load& load, const Position& position) {
  DeviceSteps steps;
  for (const int color : load.colors) {
    const Chunks held = HeldAt(plan, position, color, load.phase);
    const DeviceSteps one = Exchanges(plan)
                                ? AllToAllSteps(load.dimension, load.index, held)
                                : AllGatherSteps(load.dimension, load.index, held, load.way);
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

// When the steps of the tracks end, counted from the begin of the phase; in that order. Steps of
// one track never end together: those that take no time, or longer than can be counted, still come
// one after the other.
struct End {
  Picoseconds time;
  size_t before = 0;  // steps of the track that end at this time, too
  size_t track = 0, step = 0;
  auto operator<=>(const End&) const = default;
  bool TogetherWith(const End& other) const { return time == other.time && before == other.before; }
};
std::vector<End> EndsOf(const Plan& plan, const std::vector<DimensionTrack>& tracks) {
  std::vector<End> ends;
  for (size_t track = 0; track < tracks.size(); ++track) {
    End end = {Picoseconds(0), 0, track, 0};
    for (const Load& load : tracks[track].loads) {
      for (const Picoseconds time : StepTimes(plan, load)) {
        const Picoseconds last = end.time;
        end.time += time;
        end.before = end.step > 0 && end.time == last ? end.before + 1 : 0;
        ends.push_back(end);
        ++end.step;
      }
    }
  }
  std::ranges::sort(ends);
  return ends;
}

void Append(const std::vector<ChunkTransfer>& transfers, int lasts,
            std::vector<ChunkTransfer>& to) {
  for (ChunkTransfer transfer : transfers) {
    transfer.lasts = lasts;
    to.push_back(std::move(transfer));
  }
}

Picoseconds TimeOfTrack(const Plan& plan, const DimensionTrack& track) {
  Picoseconds sum(0);
  for (const Load& load : track.loads) {
    sum += Exchanges(plan) ? AllToAllTime(load.dimension, load.bundle, plan.hop_latency)
                           : AllGatherTime(load.dimension, load.bundle, plan.hop_latency, load.way);
  }
  return sum;
}

// Returns how often the bytes of a dimension pass the memory of the device that has most to do in
// this step of a gathering: read where they are sent, written where they arrive. `sums`: in the
// mirror image, where a receiver also reads what is added to.
int64_t MemoryPasses(const Dimension& dimension, Way way, int64_t step, bool sums) {
  const int64_t sent = sums ? 2 : 1;
  if (way != Way::kBoth || dimension.shape == Dimension::Shape::kSwitched) return 1 + sent;
  if (dimension.shape != Dimension::Shape::kLine) return 2 * (1 + sent);
  int64_t most = 0;
  for (int64_t before = 0; before < dimension.n; ++before) {
    const int64_t behind = dimension.n - 1 - before;  // positions on this side and on that
    const int64_t in = (before > step ? 1 : 0) + (behind > step ? 1 : 0);
    const int64_t out =
        (before >= step && behind > 0 ? 1 : 0) + (behind >= step && before > 0 ? 1 : 0);
    most = std::max(most, in + out * sent);
  }
  return most;
}

// A track on its way: steps with what they need.
struct Running {
  struct RunningStep {
    double seconds, passes;  // at the rate of the dimension; of each byte through memory
  };
  double rate;
  Picoseconds latency;
  std::vector<RunningStep> steps;  // the last one comes first
};
Running RunningOf(const Plan& plan, const DimensionTrack& track, bool sums) {
  Plan at_once = plan;
  at_once.hop_latency = Picoseconds(0);
  Running running = {track.loads[0].dimension.rate.value(), TimeOfTrack(plan, track), {}};
  for (const Load& load : track.loads) {
    for (const Picoseconds time : StepTimes(at_once, load)) {
      running.latency -= time;
      const auto step = static_cast<int64_t>(running.steps.size());
      const int64_t passes = MemoryPasses(load.dimension, load.way, step, sums);
      running.steps.push_back({ToSeconds(time), static_cast<double>(passes)});
    }
  }
  std::ranges::reverse(running.steps);
  return running;
}

// Tracks side by side. Where memory cannot serve all of them their transfers get equal
// shares of it, but none more than its dimension carries.
Picoseconds TogetherTime(const Plan& plan, const std::vector<DimensionTrack>& tracks, bool sums) {
  Picoseconds longest(0);
  double needed = 0;
  for (const DimensionTrack& track : tracks) {
    const Load& load = track.loads[0];
    longest = std::max(longest, TimeOfTrack(plan, track));
    needed += load.dimension.rate.value() *
              static_cast<double>(MemoryPasses(load.dimension, load.way, /*step=*/0, sums));
  }
  if (plan.memory.value() <= 0 || needed <= plan.memory.value()) return longest;
  std::vector<Running> running;
  for (const DimensionTrack& track : tracks) running.push_back(RunningOf(plan, track, sums));
  // Slow dimensions first: they take less than an equal share.
  std::ranges::stable_sort(running,
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

// When the members of a dimension have all that comes over it: those in the middle of a
// line before those at its ends, to which the farthest is twice as far.
struct Exchanged {
  int index = 0;  // of the dimension
  Picoseconds middle, end;
};

// An exchange along lines is direct, so that phases overlap: the middle of a line goes on
// while its ends still wait. In the next phase a link is busy from when the first of its dimension
// comes, unless the last one comes so late that only its own blocks are left. What
// other dimensions hold up comes late for some whole dimension.
Picoseconds ExchangeTime(const Plan& plan) {
  std::vector<Exchanged> before;
  const auto latest = [&](int except) {
    Picoseconds time(0);
    for (const Exchanged& dimension : before) {
      if (dimension.index != except) time = std::max(time, dimension.end);
    }
    return time;
  };
  for (const std::vector<DimensionTrack>& tracks : TracksOf(plan)) {
    std::vector<Exchanged> now;
    for (const DimensionTrack& track : tracks) {
      const Dimension& dimension = track.loads[0].dimension;
      const Picoseconds time = TimeOfTrack(plan, track);
      if (dimension.shape != Dimension::Shape::kLine) {
        const Picoseconds end = latest(-1) + time;
        now.push_back({track.loads[0].index, end, end});
        continue;
      }
      Picoseconds first = latest(track.loads[0].index);
      for (const Exchanged& lane_before : before) {
        if (lane_before.index == track.loads[0].index) first = std::max(first, lane_before.middle);
      }
      const Picoseconds hop = plan.hop_latency * dimension.hops;
      const Picoseconds bytes = time - hop * (dimension.n - 1);
      const Picoseconds moved =
          std::max(first + bytes, latest(-1) + bytes / CeilDiv(dimension.n, 2));
      now.push_back(
          {track.loads[0].index, moved + hop * (dimension.n / 2), moved + hop * (dimension.n - 1)});
    }
    if (!now.empty()) before = std::move(now);
  }
  return latest(-1);
}

}  // namespace

DeviceSteps PhasedSteps(const Plan& plan, const Position& position) {
  DeviceSteps all;
  for (const std::vector<DimensionTrack>& tracks : TracksOf(plan)) {
    std::vector<DeviceSteps> steps;
    for (const DimensionTrack& track : tracks) {
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
      for (; i < ends.size() && ends[i].TogetherWith(ends[first]); ++i) {
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

Picoseconds PhasedTime(const Plan& plan, bool sums) {
  if (Exchanges(plan)) return ExchangeTime(plan);
  Picoseconds time(0);
  for (const std::vector<DimensionTrack>& tracks : TracksOf(plan)) {
    time += TogetherTime(plan, tracks, sums);
  }
  return time;
}

}  // namespace tpusim::collectives
