#include "models/events/causes.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "configs/status_macros.h"

namespace tpusim::events {
namespace {

// Half a gigabyte. A simulation that goes beyond has no critical path: many devices that are
// coupled and all different, for long.
constexpr size_t kMostMoments = size_t{1} << 24;
// So often a repetition that cannot be followed is left for the next pass.
constexpr int kMostRefused = 8;

}  // namespace

Causes::Causes() {
  nodes_.push_back({.end = Picoseconds(0), .held = 1, .form = MomentKind::kMark});
  current_ = Start();
}

bool Causes::given_up() const { return nodes_.size() > kMostMoments || refused_ >= kMostRefused; }

uint32_t Causes::NewNode(const Moment& node) {
  if (free_.empty()) {
    nodes_.push_back(node);
    return static_cast<uint32_t>(nodes_.size() - 1);
  }
  const uint32_t id = free_.back();
  free_.pop_back();
  nodes_[id] = node;
  return id;
}

void Causes::Release(uint32_t id) {
  // A chain may be as long as the program.
  while (id != kNone && --nodes_[id].held == 0) {
    free_.push_back(id);
    id = nodes_[id].before;
  }
}

Picoseconds Causes::At(const Ref& cause) const {
  return cause.log_ == nullptr ? Picoseconds(0) : nodes_[cause.id_].end;
}

void Causes::Spend(Ref& cause, Picoseconds end, int32_t op, Spent spent) {
  if (given_up()) return;
  if (cause.log_ == nullptr) cause = Start();
  Moment& last = nodes_[cause.id_];
  TPUSIM_CHECK(end >= last.end, "a cause comes before what it causes");
  if (end == last.end) return;
  const bool is_spent = last.form == MomentKind::kSpent;
  if (op < 0 && is_spent) op = last.op;
  if (is_spent && last.held == 1 && last.op == op && last.spent == spent) {
    last.end = end;
    return;
  }
  // The new one takes over what the caller held.
  cause.id_ = NewNode({.end = end, .before = cause.id_, .op = op, .held = 1, .spent = spent});
}

void Causes::Finished(const Ref& cause) {
  if (last_.log_ == nullptr || At(cause) > At(last_)) last_ = cause;
}

Causes::Marks::~Marks() {
  // There are thousands, scattered over memory: the next are on their way while one is released.
  constexpr size_t kAhead = 16;
  for (size_t i = 0; i < marks_.size(); ++i) {
    if (i + kAhead < marks_.size()) __builtin_prefetch(&causes_.nodes_[marks_[i + kAhead].id_], 1);
    marks_[i] = Ref();
  }
}

void Causes::Marks::Visit(uint32_t& id) {
  if (causes_.given_up()) return;
  id = causes_.NewNode(
      {.end = causes_.nodes_[id].end, .before = id, .held = 1, .form = MomentKind::kMark});
  marks_.push_back(causes_.Share(id));
}

// Puts repetitions behind the causes shown.
class Causes::Mover : public steady::CauseVisitor {
 public:
  Mover(Causes& causes, size_t repeated, std::vector<Picoseconds> ends)
      : causes_(causes), repeated_(repeated), ends_(std::move(ends)) {
    // The threads from which all came to be at the begin of the repetitions.
    std::vector<uint32_t> power = causes.repeats_[repeated].from;
    for (size_t k = 0; k < power.size(); ++k) first_.push_back(static_cast<uint32_t>(k));
    for (int64_t n = causes.repeats_[repeated].times; n > 0; n /= 2) {
      if (n % 2 != 0) {
        for (uint32_t& thread : first_) thread = power[thread];
      }
      std::vector<uint32_t> twice;
      for (const uint32_t thread : power) twice.push_back(power[thread]);
      power.swap(twice);
    }
  }

  void Visit(uint32_t& id) override {
    const size_t thread = next_++;
    TPUSIM_CHECK(
        thread < ends_.size() && causes_.repeats_[repeated_].later->marks_[thread].id_ == id,
        "other causes are moved than were marked");
    if (ends_[thread] == causes_.nodes_[id].end) return;
    const uint32_t before = causes_.repeats_[repeated_].later->marks_[first_[thread]].id_;
    ++causes_.nodes_[before].held;
    causes_.Release(id);
    id = causes_.NewNode({.end = ends_[thread],
                          .before = before,
                          .op = static_cast<int32_t>(repeated_),
                          .held = 1,
                          .thread = static_cast<uint32_t>(thread),
                          .form = MomentKind::kRepeat});
  }

 private:
  Causes& causes_;
  const size_t repeated_;
  const std::vector<Picoseconds> ends_;
  std::vector<uint32_t> first_;
  size_t next_ = 0;
};

std::vector<Picoseconds> Causes::MovedEnds(const Repeated& repeated, Picoseconds period,
                                           bool is_exact) const {
  const size_t threads = repeated.from.size();
  const auto end = [&](const std::shared_ptr<const Marks>& marks, size_t thread) {
    return nodes_[marks->marks_[thread].id_].end;
  };
  std::vector<Picoseconds> ends(threads), next(threads);
  if (!is_exact) {
    // As the state is moved: what took part by whole periods, the rest not at all.
    for (size_t k = 0; k < threads; ++k) {
      ends[k] = end(repeated.later, k);
      if (ends[k] != end(repeated.earlier, k)) ends[k] += period * repeated.times;
    }
    return ends;
  }
  // A thread comes to be from others which, in the end, repeat or stay: after as many periods as
  // there are threads it is known which.
  for (size_t k = 0; k < threads; ++k) ends[k] = end(repeated.later, k);
  for (int64_t n = 0; n < repeated.times; ++n) {
    bool same = true, all_move = true;
    for (size_t k = 0; k < threads; ++k) {
      const size_t from = repeated.from[k];
      next[k] = end(repeated.later, k) + (ends[from] - end(repeated.earlier, from));
      same = same && next[k] == ends[k];
      all_move = all_move && (next[k] == ends[k] || next[k] == ends[k] + period);
    }
    const std::vector<Picoseconds> before = ends;
    ends.swap(next);
    if (same) break;
    if (!all_move) continue;
    // What moved by a period does so from now on, if what it came from did.
    bool steady = true;
    for (size_t k = 0; k < threads && steady; ++k) {
      const size_t from = repeated.from[k];
      steady = (ends[k] == before[k]) == (ends[from] == before[from]);
    }
    if (!steady) continue;
    for (size_t k = 0; k < threads; ++k) {
      if (ends[k] != before[k]) ends[k] += period * (repeated.times - n - 1);
    }
    break;
  }
  return ends;
}

std::unique_ptr<steady::CauseVisitor> Causes::Repeat(std::shared_ptr<const Marks> earlier,
                                                     std::shared_ptr<const Marks> later,
                                                     Picoseconds period, int64_t times,
                                                     const isa::Iterations* iterations,
                                                     int64_t per_period, bool is_exact) {
  if (given_up()) return nullptr;
  Repeated repeated{std::move(earlier), std::move(later), {}, times, iterations, per_period};
  if (repeated.earlier->marks_.size() != repeated.later->marks_.size()) {
    ++refused_;
    return nullptr;
  }
  std::vector<std::pair<uint32_t, uint32_t>> marks;  // node, thread
  for (const Ref& mark : repeated.earlier->marks_) {
    marks.emplace_back(mark.id_, static_cast<uint32_t>(marks.size()));
  }
  std::ranges::sort(marks);
  for (const Ref& mark : repeated.later->marks_) {
    uint32_t id = mark.id_;
    while (true) {
      const auto at =
          std::ranges::lower_bound(marks, id, {}, &std::pair<uint32_t, uint32_t>::first);
      if (at != marks.end() && at->first == id) {
        repeated.from.push_back(at->second);
        break;
      }
      id = nodes_[id].before;
      if (id == kNone) {
        ++refused_;
        return nullptr;
      }
    }
  }
  std::vector<Picoseconds> ends = MovedEnds(repeated, period, is_exact);
  repeats_.push_back(std::move(repeated));
  return std::make_unique<Mover>(*this, repeats_.size() - 1, std::move(ends));
}

// Adds up chains.
class Causes::Walk {
 public:
  using Sums = std::map<std::pair<int32_t, Spent>, Picoseconds>;

  explicit Walk(const Causes& causes) : causes_(causes), periods_(causes.repeats_.size()) {}

  // From a node back to `stop`, or to the start of the step.
  void Add(uint32_t id, uint32_t stop, Sums& sums) {
    while (id != stop && id != kNone) {
      const Moment& node = causes_.nodes_[id];
      switch (node.form) {
        case MomentKind::kSpent: {
          const Picoseconds before = causes_.nodes_[node.before].end;
          sums[{node.op, node.spent}] += node.end - before;
          break;
        }
        case MomentKind::kMark:
          break;
        case MomentKind::kRepeat:
          AddRepeated(node, sums);
          break;
      }
      id = node.before;
    }
  }

 private:
  // Returns the sums of a stream's chain over one period.
  const Sums& PeriodOf(size_t repeated, uint32_t thread) {
    std::map<uint32_t, Sums>& known = periods_[repeated];
    const auto at = known.find(thread);
    if (at != known.end()) return at->second;
    const Repeated& r = causes_.repeats_[repeated];
    Sums sums;
    Add(r.later->marks_[thread].id_, r.earlier->marks_[r.from[thread]].id_, sums);
    return known.emplace(thread, std::move(sums)).first->second;
  }

  void AddRepeated(const Moment& node, Sums& sums) {
    Sums repeated;
    if (causes_.repeats_[node.op].iterations == nullptr) {
      AddPeriods(node, repeated);
    } else {
      AddIterations(node, repeated);
    }
    // Periods that are nearly the same do not add up to the moment that was moved to.
    Picoseconds rest = node.end - causes_.nodes_[node.before].end;
    auto longest = repeated.begin();
    for (auto part = repeated.begin(); part != repeated.end(); ++part) {
      rest -= part->second;
      if (part->second > longest->second) longest = part;
    }
    if (longest != repeated.end()) longest->second += rest;
    for (const auto& [what, time] : repeated) sums[what] += time;
  }

  void AddPeriods(const Moment& node, Sums& sums) {
    const Repeated& r = causes_.repeats_[node.op];
    std::map<uint32_t, int64_t> visits, seen;  // seen: with how many periods left
    uint32_t thread = node.thread;
    int64_t left = r.times;
    std::vector<uint32_t> way;
    while (left > 0) {
      const auto [at, is_new] = seen.emplace(thread, left);
      if (!is_new) {
        // Round and round from here on.
        const int64_t length = at->second - left, rounds = left / length;
        for (size_t i = way.size() - static_cast<size_t>(length); i < way.size(); ++i) {
          visits[way[i]] += rounds;
        }
        for (left -= rounds * length; left > 0; --left) {
          ++visits[thread];
          thread = r.from[thread];
        }
        break;
      }
      way.push_back(thread);
      ++visits[thread];
      thread = r.from[thread];
      --left;
    }
    for (const auto& [of, times] : visits) {
      for (const auto& [what, time] : PeriodOf(node.op, of)) sums[what] += time * times;
    }
  }

  // Each time the operations are others.
  void AddIterations(const Moment& node, Sums& sums) {
    const Repeated& r = causes_.repeats_[node.op];
    uint32_t thread = node.thread;
    for (int64_t n = r.times; n > 0; --n) {
      for (const auto& [what, time] : PeriodOf(node.op, thread)) {
        const auto [op, spent] = what;
        const int32_t later = op < 0 ? op : r.iterations->Later(op, n * r.per_period);
        sums[{later, spent}] += time;
      }
      thread = r.from[thread];
    }
  }

  const Causes& causes_;
  std::vector<std::map<uint32_t, Sums>> periods_;  // by repetition and thread
};

std::vector<Causes::PathPart> Causes::CriticalPath() const {
  if (last_.log_ == nullptr || given_up()) return {};
  Walk::Sums sums;
  Walk(*this).Add(last_.id_, kNone, sums);
  std::vector<PathPart> parts;
  for (const auto& [what, time] : sums) parts.push_back({what.first, what.second, time});
  return parts;
}

}  // namespace tpusim::events
