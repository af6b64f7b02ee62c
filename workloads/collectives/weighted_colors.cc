#include "workloads/collectives/weighted_colors.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "workloads/collectives/linear_program.h"
#include "workloads/collectives/slots.h"

namespace tpusim::collectives {
namespace {

// Colors of less than a thousandth are not worth their messages.
constexpr double kLeastShare = 1e-3;
// Times are compared for shards of this size; any other would do.
constexpr Bytes kSample(1 << 20);

// One way to take the dimensions.
struct Course {
  std::vector<int> order, slots;
  std::vector<double> times;  // of the phases, if it carried everything
};

// Time that a phase takes, latency aside.
double PhaseTime(const Plan& plan, const std::vector<int>& order, size_t phase) {
  Plan one = plan;
  one.orders = {order};
  Dimension dimension = one.DimensionAt(0, phase);
  dimension.dcn_latency = Picoseconds(0);
  if (plan.kind == CollectiveKind::kAllToAll) {
    return ToSeconds(
        AllToAllTime(dimension, kSample * (plan.members() / dimension.n), Picoseconds(0)));
  }
  int64_t held = 1;
  for (size_t i = 0; i < phase; ++i) held *= plan.dimensions[order[i]].n;
  return ToSeconds(AllGatherTime(dimension, kSample * held, Picoseconds(0)));
}

// Every choice of `count` numbers below `limit`, ascending.
std::vector<std::vector<int>> Choices(int count, int limit) {
  std::vector<std::vector<int>> choices;
  std::vector<int> choice(count);
  std::iota(choice.begin(), choice.end(), 0);
  while (true) {
    choices.push_back(choice);
    int at = count - 1;
    while (at >= 0 && choice[at] == limit - count + at) --at;
    if (at < 0) return choices;
    ++choice[at];
    for (int i = at + 1; i < count; ++i) choice[i] = choice[i - 1] + 1;
  }
}

std::vector<Course> AllCourses(const Plan& plan, int slots) {
  std::vector<Course> courses;
  std::vector<int> order(plan.dimensions.size());
  std::iota(order.begin(), order.end(), 0);
  const auto choices = Choices(static_cast<int>(order.size()), slots);
  do {
    std::vector<double> times;
    for (size_t phase = 0; phase < order.size(); ++phase) {
      times.push_back(PhaseTime(plan, order, phase));
    }
    for (const std::vector<int>& choice : choices) courses.push_back({order, choice, times});
  } while (std::next_permutation(order.begin(), order.end()));
  return courses;
}

// Whole numbers of kWholeWeight that add up to it; the largest takes what rounding leaves.
std::vector<int64_t> WholeWeights(const std::vector<double>& shares) {
  std::vector<int64_t> weights;
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  for (const double share : shares) {
    weights.push_back(std::llround(share / sum * static_cast<double>(kWholeWeight)));
  }
  *std::ranges::max_element(weights) +=
      kWholeWeight - std::accumulate(weights.begin(), weights.end(), int64_t{0});
  return weights;
}

}  // namespace

Plan WeightedPlan(CollectiveKind kind, const std::vector<Dimension>& dimensions, int slots) {
  Plan plan;
  plan.kind = kind;
  plan.dimensions = dimensions;
  const std::vector<Course> courses = AllCourses(plan, slots);
  std::vector<std::vector<double>> loads;  // per course, one for each slot and dimension
  for (const Course& course : courses) {
    std::vector<double>& load = loads.emplace_back(slots * dimensions.size());
    for (size_t phase = 0; phase < course.order.size(); ++phase) {
      load[course.slots[phase] * dimensions.size() + course.order[phase]] = course.times[phase];
    }
  }
  const std::vector<double> solved = LeastSumOfMaxima(loads, static_cast<int>(dimensions.size()));
  std::vector<double> shares;
  for (size_t i = 0; i < courses.size(); ++i) {
    if (solved[i] < kLeastShare) continue;
    plan.orders.push_back(courses[i].order);
    plan.slots.push_back(courses[i].slots);
    shares.push_back(solved[i]);
  }
  plan.weights = WholeWeights(shares);
  return plan;
}

std::vector<Plan> WeightedPlans(CollectiveKind kind, const std::vector<Dimension>& dimensions,
                                BytesPerSecond memory) {
  const bool alike = std::ranges::all_of(dimensions, [&](const Dimension& dimension) {
    return dimension.SameSpeed(dimensions[0]) && dimension.closes_after == 0;
  });
  if (dimensions.size() < 2 || alike) return {};
  const bool sums = kind == CollectiveKind::kAllReduce || kind == CollectiveKind::kReduceScatter;
  double needed = 0;
  for (const Dimension& dimension : dimensions) {
    needed += dimension.rate.value() *
              static_cast<double>(MemoryPasses(dimension, Way::kBoth, /*step=*/0, sums));
  }
  if (memory.value() > 0 && needed > memory.value()) return {};
  const int least = static_cast<int>(dimensions.size());
  return {WeightedPlan(kind, dimensions, least + 1), WeightedPlan(kind, dimensions, least + 3)};
}

}  // namespace tpusim::collectives
