// No collective ends before its bound: every kind, algorithm and way to lie in a
// slice, on all sorts of slices (two devices per chip, several slices, twisted tori,
// lines and rings). The bound is what is compared: a report that says "bound 1.4 us,
// simulated 1.2 us" has its physics wrong.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "tests/workloads/collectives/collective_interpreter.h"
#include "workloads/collectives/candidates.h"

namespace tpusim::collectives {
namespace {

using Groups = std::vector<std::vector<int64_t>>;

constexpr CollectiveKind kKinds[] = {CollectiveKind::kAllReduce, CollectiveKind::kAllGather,
                                     CollectiveKind::kReduceScatter, CollectiveKind::kAllToAll};

// `order` cut into groups of `size`; what is left over stays out.
Groups Cut(const std::vector<int64_t>& order, size_t size) {
  Groups groups;
  for (size_t i = 0; i + size <= order.size(); i += size) {
    groups.emplace_back(order.begin() + i, order.begin() + i + size);
  }
  return groups;
}

// Boxes along every choice of axes (of devices on a chip and of slices too), halves
// and quarters of the devices in their order, neighbours at a distance, and groups
// drawn at random.
std::vector<Groups> AllGroups(const configs::Config& config) {
  std::vector<Groups> all;
  for (int axes = 1; axes < 32; ++axes) {
    std::vector<int> chosen;
    for (int axis = 0; axis < 5; ++axis) {
      if ((axes >> axis & 1) != 0) chosen.push_back(axis);
    }
    all.push_back(GroupsAlong(config.topology, chosen));
  }
  const int64_t n = config.devices();
  std::vector<int64_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  for (const int64_t size : {n / 2, n / 4, int64_t{3}}) {
    if (size > 1) all.push_back(Cut(order, size));
  }
  for (const int64_t stride : {int64_t{2}, n / 2}) {
    std::vector<int64_t> strided;
    for (int64_t first = 0; first < stride; ++first) {
      for (int64_t i = first; i < n; i += stride) strided.push_back(i);
    }
    all.push_back(Cut(strided, n / stride));
  }
  std::mt19937 random(static_cast<uint32_t>(n));
  for (const size_t size : {2, 4, 5}) {
    std::shuffle(order.begin(), order.end(), random);
    all.push_back(Cut(order, size));
  }
  std::erase_if(all, [](const Groups& g) { return g.empty() || g[0].size() < 2; });
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

void Check(const configs::Config& config, const CollectiveRequest& request,
           const AlgorithmOverrides& overrides) {
  isa::PodProgram program;
  const auto lowered = LowerCollective(config, request, program, overrides);
  if (!lowered.ok()) return;  // an algorithm that does not apply to these groups
  const BodyRun run = RunBodies(config, program, *lowered);
  const std::string who = request.groups.empty()
                              ? "pairs"
                              : fmt::format("groups like {}", fmt::join(request.groups[0], ","));
  const std::string what =
      fmt::format("{} of {} B on {}, {}: {}", lowered->info.kind, request.operand_bytes.value(),
                  config.name, who, lowered->info.algorithm);
  EXPECT_EQ(run.problem, "") << what;
  EXPECT_GE(run.time, lowered->info.bound) << what;
}

// A slice, and what its data-centre network reaches if not what the chip's file says:
// where that is fast, what other slices send may come either way.
configs::Config ConfigOf(const std::string& text) {
  const size_t space = text.find(' ');
  if (space == std::string::npos) return *configs::LoadConfig(text, {});
  const std::string rate = text.substr(space + 1);
  return *configs::LoadConfig(text.substr(0, space), {"host.dcn_bytes_per_second=" + rate,
                                                      "host.pcie_bytes_per_second=" + rate});
}

class CollectiveBounds : public ::testing::TestWithParam<const char*> {};

TEST_P(CollectiveBounds, AreNeverBeaten) {
  const configs::Config config = ConfigOf(GetParam());
  std::vector<std::string> algorithms = {kCompilersAlgorithm, kBestAlgorithm};
  // Large slices are here for the bounds of what runs there by default.
  const bool large = config.devices() > 32;
  if (!large) algorithms.insert(algorithms.end(), Families().begin(), Families().end());
  for (const Groups& groups : AllGroups(config)) {
    CollectiveRequest request;
    request.groups = groups;
    request.forms =
        std::make_shared<const std::vector<GroupForm>>(FormsOf(config.topology, groups));
    for (const CollectiveKind kind : kKinds) {
      request.kind = kind;
      // The first is small enough for a single phase; on large slices no bound is.
      for (const int64_t bytes : {int64_t{1} << 12, int64_t{1} << 26}) {
        if (large && bytes < 1 << 20) continue;
        request.operand_bytes = Bytes(bytes);
        for (const std::string& algorithm : algorithms) Check(config, request, {{"", algorithm}});
      }
    }
  }
}

TEST_P(CollectiveBounds, OfPermutesAreNeverBeaten) {
  const configs::Config config = ConfigOf(GetParam());
  const int64_t n = config.devices();
  CollectiveRequest request;
  request.kind = CollectiveKind::kPermute;
  request.operand_bytes = Bytes(1 << 24);
  std::mt19937 random(static_cast<uint32_t>(n));
  std::vector<int64_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  const auto check = [&] {
    request.pairs.clear();
    for (int64_t i = 0; i < n; ++i) request.pairs.emplace_back(i, order[i]);
    Check(config, request, {});
  };
  for (const int64_t shift : {int64_t{1}, n / 2, n - 1}) {
    for (int64_t i = 0; i < n; ++i) order[i] = (i + shift) % n;
    check();
  }
  std::reverse(order.begin(), order.end());
  check();
  for (int draw = 0; draw < 20; ++draw) {
    std::shuffle(order.begin(), order.end(), random);
    check();
  }
}

INSTANTIATE_TEST_SUITE_P(Slices, CollectiveBounds,
                         ::testing::Values("v5e-4x2", "v5e-4x4", "v5e-8x8", "v2-2x2", "v2-4x4",
                                           "v3-4x4", "v3-4x8", "v4-2x2x1", "v4-2x2x4", "v5p-2x2x2",
                                           "v5p-4x4x4", "v7x-1x1x1", "v7x-2x2x1", "v7x-2x2x2",
                                           "v7x-2x4x4", "2x(v5e-2x2)", "2x(v5e-4x4)", "3x(v5e-4x2)",
                                           "4x(v5e-4x4)", "2x(v7x-2x2x1)", "2x(v3-4x4)",
                                           "2x(v5p-2x2x2)", "2x(v5e-4x4) 1e12", "3x(v5e-4x2) 4e10",
                                           "2x(v7x-2x2x1) 1e12"),
                         [](const ::testing::TestParamInfo<const char*>& slice) {
                           std::string name = slice.param;
                           for (char& c : name)
                             c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
                           return name;
                         });

}  // namespace
}  // namespace tpusim::collectives
