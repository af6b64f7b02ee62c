#include "workloads/search/rate_bound.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

namespace tpusim::search {
namespace {

constexpr double kPicosecondsPerSecond = 1e12;

}  // namespace

RateBound::RateBound(const Program& program, const Space& space, size_t variant,
                     const std::vector<sharding::StatedConstraint>& stated)
    : space_(space) {
  for (size_t mesh = 0; mesh < space.meshes().size(); ++mesh) {
    std::vector<AxisSet>& any = any_.emplace_back(space.decisions(), 0);
    for (size_t d = 0; d < space.decisions(); ++d) {
      for (const AxisSet axes : space.Choices(mesh, d)) any[d] |= axes & ~kAsDecided;
    }
  }
  using Key = std::pair<std::set<int32_t>, std::set<std::string>>;
  std::map<Key, double> products, reads, arguments;
  const auto key_of = [&](const auto& decisions, const std::set<std::string>& axes) {
    Key key{{}, axes};
    for (const int32_t decision : decisions) {
      // What follows is split by no more than what leads.
      if (space.Leader(decision) >= 0) key.first.insert(space.Leader(decision));
    }
    return key;
  };
  std::set<std::string> anywhere;
  for (const sharding::StatedConstraint& constraint : stated) {
    for (const std::vector<std::string>& dim : constraint.dims) {
      // "x:(1)2" is a part of x.
      for (const std::string& axis : dim) anywhere.insert(axis.substr(0, axis.find(":(")));
    }
  }
  const auto reached = [&](const sharding::SplittableBy& reach) {
    std::set<std::string> axes = anywhere;
    axes.insert(reach.manual.begin(), reach.manual.end());
    if (space.keeps_constraints()) axes.insert(reach.axes.begin(), reach.axes.end());
    Key key = key_of(reach.decisions, axes);
    for (const auto& [value, dim] : reach.named) {
      const int32_t named = space.InSpace(NamedDim{value, dim});
      if (named >= 0) key.first.insert(named);
    }
    return key;
  };
  for (const MatrixOperation& product : program.variants[variant].products) {
    products[reached(product.reach)] += product.seconds;
  }
  for (size_t n = 0; n < program.variants[variant].read_seconds.size(); ++n) {
    const double seconds = program.variants[variant].read_seconds[n];
    if (seconds <= 0) continue;
    reads[reached(program.variants[variant].decisions.arguments[n].reach)] += seconds;
  }
  for (size_t n = 0; n < program.variants[variant].decisions.arguments.size(); ++n) {
    const sharding::DecidedArgument& argument = program.variants[variant].decisions.arguments[n];
    if (StartsOnHost(program.imported.workload, n)) continue;
    arguments[key_of(argument.decisions, {})] +=
        static_cast<double>(argument.shape.ByteSize().value());
  }
  const auto groups_of = [&](const std::map<Key, double>& amounts) {
    std::vector<Group> groups;
    for (const auto& [key, amount] : amounts) {
      Group group{{key.first.begin(), key.first.end()}, amount, {}};
      for (const MeshAxes& mesh : space.meshes()) {
        AxisSet& said = group.stated.emplace_back(0);
        for (size_t i = 0; i < mesh.size(); ++i) {
          if (key.second.contains(mesh[i].name)) said |= AxisSet{1} << i;
        }
      }
      groups.push_back(std::move(group));
    }
    return groups;
  };
  products_ = groups_of(products);
  reads_ = groups_of(reads);
  arguments_ = groups_of(arguments);
}

double RateBound::Least(const std::vector<Group>& groups, size_t mesh,
                        const std::vector<AxisSet>& decided) const {
  double least = 0;
  for (const Group& group : groups) {
    AxisSet axes = group.stated[mesh];
    for (const int32_t d : group.decisions) {
      const auto number = static_cast<size_t>(d);
      axes |= number < decided.size() ? decided[number] : any_[mesh][number];
    }
    least += group.amount / static_cast<double>(SizeOf(space_.meshes()[mesh], axes));
  }
  return least;
}

Picoseconds RateBound::Time(size_t mesh, const std::vector<AxisSet>& decided) const {
  const double seconds = std::max(Least(products_, mesh, decided), Least(reads_, mesh, decided));
  return Picoseconds(static_cast<int64_t>(seconds * kPicosecondsPerSecond));
}

Bytes RateBound::Memory(size_t mesh, const std::vector<AxisSet>& decided) const {
  return Bytes(static_cast<int64_t>(Least(arguments_, mesh, decided)));
}

}  // namespace tpusim::search
