#include "workloads/search/space.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include "configs/status_macros.h"
#include "workloads/search/limits.h"

namespace tpusim::search {
namespace {

// Lists all ways to write `devices` as a product of `sizes.size()` factors, in order.
void Factorize(int64_t devices, size_t axis, std::vector<int64_t>& sizes,
               const std::function<void(const std::vector<int64_t>&)>& visit) {
  if (axis + 1 == sizes.size()) {
    sizes[axis] = devices;
    visit(sizes);
    return;
  }
  for (int64_t size = 1; size <= devices; ++size) {
    if (devices % size != 0) continue;
    sizes[axis] = size;
    Factorize(devices / size, axis + 1, sizes, visit);
  }
}

// Returns meshes of the axes in every order. Axes of size 1 split nothing: meshes that differ only
// in where they have them are one, and where names do not matter, meshes that differ only in names.
std::vector<MeshAxes> MeshesOf(const SpaceOptions& options) {
  if (!options.mesh.empty()) return {options.mesh};
  const bool names_matter = options.keeps_constraints || !options.constrained.empty() ||
                            !options.fixed.empty() || !options.forbidden.empty();
  std::vector<MeshAxes> meshes;
  std::set<std::vector<std::pair<std::string, int64_t>>> seen;
  std::vector<size_t> order(options.axes.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  do {
    std::vector<int64_t> sizes(order.size());
    Factorize(options.devices, 0, sizes, [&](const std::vector<int64_t>& made) {
      MeshAxes mesh;
      std::vector<std::pair<std::string, int64_t>> key;
      for (size_t i = 0; i < order.size(); ++i) {
        mesh.push_back({options.axes[order[i]], made[i]});
        if (made[i] == 1) continue;
        key.emplace_back(names_matter ? mesh.back().name : "", made[i]);
      }
      if (seen.insert(key).second) meshes.push_back(std::move(mesh));
    });
  } while (std::ranges::next_permutation(order).found);
  return meshes;
}

AxisSet Real(const MeshAxes& mesh) {
  AxisSet real = 0;
  for (size_t i = 0; i < mesh.size(); ++i) {
    if (mesh[i].size > 1) real |= AxisSet{1} << i;
  }
  return real;
}

// Whether a statement about dimensions of this decision has these axes. Who names an axis means one
// that splits: a mesh where it has size 1 has no such choice.
bool Says(const StatedDim& stated, const MeshAxes& mesh, AxisSet axes) {
  AxisSet said = 0;
  for (size_t i = 0; i < mesh.size(); ++i) {
    if (std::ranges::find(stated.axes, mesh[i].name) == stated.axes.end()) continue;
    if (mesh[i].size == 1) return false;
    said |= AxisSet{1} << i;
  }
  return said == axes;
}

// Error: an axis that no mesh has.
absl::Status CheckAxes(std::string_view option, const std::vector<StatedDim>& stated,
                       const MeshAxes& mesh) {
  std::vector<std::string> names;
  for (const sharding::MeshAxis& axis : mesh) names.push_back(axis.name);
  for (const StatedDim& dim : stated) {
    for (const std::string& axis : dim.axes) {
      if (std::ranges::find(names, axis) != names.end()) continue;
      return UserError(fmt::format("{} {}: meshes have no axis '{}'; theirs are {}", option,
                                   dim.text, axis, fmt::join(names, ", ")));
    }
  }
  return absl::OkStatus();
}

// Returns the first of `others` about the same dimensions of arguments by name; -1: none is.
int32_t LeaderOf(const sharding::Decisions& program, size_t decision,
                 const std::vector<int32_t>& others) {
  const std::vector<std::string>& names = program.all[decision].arguments;
  for (const int32_t other : others) {
    if (std::ranges::is_permutation(names, program.all[other].arguments)) return other;
  }
  return -1;
}

// The decisions that count by their bytes, and those that are fixed.
std::vector<int32_t> WithBytes(const sharding::Decisions& program,
                               const std::vector<StatedDim>& fixed, const SpaceOptions& options) {
  Bytes most(0), most_of_arguments(0);
  for (const sharding::Decision& decision : program.all) {
    most = std::max(most, decision.bytes);
    most_of_arguments = std::max(most_of_arguments, decision.argument_bytes);
  }
  std::vector<int32_t> decisions;
  for (size_t d = 0; d < program.all.size(); ++d) {
    const sharding::Decision& decision = program.all[d];
    const bool is_fixed = std::ranges::any_of(
        fixed, [d](const StatedDim& dim) { return dim.decision == static_cast<int32_t>(d); });
    if (is_fixed || Ratio(decision.bytes, most) >= options.least_share ||
        Ratio(decision.argument_bytes, most_of_arguments) >= options.least_share) {
      decisions.push_back(static_cast<int32_t>(d));
    }
  }
  return decisions;
}

// And what would be left whole though it has work: in the order of the program.
std::vector<int32_t> WithBatch(const sharding::Decisions& program,
                               const std::vector<int32_t>& with_bytes,
                               const SpaceOptions& options) {
  const bool any_work = std::ranges::any_of(options.work, [](double work) { return work > 0; });
  int64_t most_values = 0;
  for (const sharding::Decision& decision : program.all) {
    most_values = std::max(most_values, decision.values);
  }
  std::vector<int32_t> decisions = with_bytes;
  for (size_t d = 0; d < program.all.size(); ++d) {
    const auto number = static_cast<int32_t>(d);
    if (std::ranges::find(with_bytes, number) != with_bytes.end()) continue;
    if (LeaderOf(program, d, with_bytes) >= 0) continue;
    // An argument that nothing else has a dimension of tells nothing.
    const int64_t values = program.all[d].values;
    const bool is_batch =
        any_work ? options.work[d] >= options.least_share : values > 1 && 2 * values >= most_values;
    if (is_batch) decisions.push_back(number);
  }
  if (const int64_t beyond = std::ssize(decisions) - limits::kDecisions.most(); beyond > 0) {
    limits::kDecisions.Reached(beyond);
    decisions.resize(decisions.size() - static_cast<size_t>(beyond));
  }
  std::ranges::sort(decisions);
  return decisions;
}

}  // namespace

std::string ToString(const MeshAxes& mesh) {
  std::vector<std::string> axes;
  for (const sharding::MeshAxis& axis : mesh) {
    axes.push_back(fmt::format("{}={}", axis.name, axis.size));
  }
  return fmt::format("{}", fmt::join(axes, ","));
}

int64_t SizeOf(const MeshAxes& mesh, AxisSet axes) {
  int64_t size = 1;
  for (size_t i = 0; i < mesh.size(); ++i) {
    if ((axes >> i & 1) != 0) size *= mesh[i].size;
  }
  return size;
}

absl::StatusOr<Space> Space::Of(const sharding::Decisions& program, const SpaceOptions& options) {
  Space space;
  space.program_ = &program;
  space.keeps_constraints_ = options.keeps_constraints;
  space.constrained_ = options.constrained;
  space.meshes_ = MeshesOf(options);
  ASSIGN_OR_RETURN(const std::vector<StatedDim> fixed, DimsOf("--fix", options.fixed, program));
  ASSIGN_OR_RETURN(const std::vector<StatedDim> forbidden,
                   DimsOf("--forbid", options.forbidden, program));
  RETURN_IF_ERROR(CheckAxes("--fix", fixed, space.meshes_[0]));
  RETURN_IF_ERROR(CheckAxes("--forbid", forbidden, space.meshes_[0]));
  Bytes most(0);
  for (const sharding::Decision& decision : program.all) most = std::max(most, decision.bytes);
  const std::vector<int32_t> with_bytes = WithBytes(program, fixed, options);
  space.decisions_ = WithBatch(program, with_bytes, options);
  space.in_space_.assign(program.all.size(), -1);
  for (size_t n = 0; n < space.decisions_.size(); ++n) {
    space.in_space_[space.decisions_[n]] = static_cast<int32_t>(n);
  }
  space.leaders_ = space.in_space_;
  for (size_t d = 0; d < program.all.size(); ++d) {
    const int32_t leader = space.in_space_[d] < 0 ? LeaderOf(program, d, with_bytes) : -1;
    if (leader >= 0) space.leaders_[d] = space.in_space_[leader];
  }
  for (size_t v = 0; v < program.named.size(); ++v) {
    for (size_t d = 0; d < program.named[v].divisors.size(); ++d) {
      if (program.named[v].divisors[d] == 1) continue;
      space.named_.push_back({static_cast<int32_t>(v), static_cast<int32_t>(d)});
    }
  }
  if (std::ssize(space.decisions_) + std::ssize(space.named_) > limits::kDecisions.most()) {
    return UserError(
        fmt::format("--may-constrain: {} decisions and dimensions of values are more than {}: name "
                    "fewer values",
                    space.decisions(), limits::kDecisions.most()));
  }
  std::erase_if(space.meshes_, [&](const MeshAxes& mesh) {
    std::vector<std::vector<AxisSet>> choices;
    const AxisSet real = Real(mesh);
    for (const int32_t number : space.decisions_) {
      std::vector<AxisSet>& of = choices.emplace_back();
      for (AxisSet axes = 0; axes <= real; ++axes) {
        if ((axes & ~real) != 0) continue;
        if (program.all[number].divisor % SizeOf(mesh, axes) != 0) continue;
        const auto says = [&](const StatedDim& dim) { return Says(dim, mesh, axes); };
        const auto other = [&](const StatedDim& dim) {
          return dim.decision == number && !says(dim);
        };
        const auto same = [&](const StatedDim& dim) { return dim.decision == number && says(dim); };
        if (std::ranges::any_of(fixed, other) || std::ranges::any_of(forbidden, same)) continue;
        of.push_back(axes);
      }
      if (of.empty()) return true;
    }
    for (const NamedDim& named : space.named_) {
      std::vector<AxisSet>& of = choices.emplace_back(1, kAsDecided);
      const int64_t divisor = program.named[named.value].divisors[named.dim];
      for (AxisSet axes = 0; axes <= real; ++axes) {
        if ((axes & ~real) == 0 && divisor % SizeOf(mesh, axes) == 0) of.push_back(axes);
      }
    }
    space.choices_.push_back(std::move(choices));
    return false;
  });
  if (space.meshes_.empty()) {
    return UserError(NothingLeft(options.fixed, options.forbidden, MeshesOf(options)));
  }
  for (size_t d = 0; d < program.all.size(); ++d) {
    if (space.in_space_[d] >= 0) continue;
    const auto splits = [&](const MeshAxes& mesh) {
      AxisSet axes = 0;
      for (const AxisSet real = Real(mesh); axes < real;) {
        ++axes;
        if ((axes & ~real) == 0 && program.all[d].divisor % SizeOf(mesh, axes) == 0) return true;
      }
      return false;
    };
    if (std::ranges::any_of(space.meshes_, splits)) {
      space.left_out_.emplace_back(static_cast<int32_t>(d), space.leaders_[d]);
    }
  }
  space.together_.assign(space.decisions(), 0);
  for (const sharding::DecidedArgument& argument : program.arguments) {
    for (const int32_t a : argument.decisions) {
      for (const int32_t b : argument.decisions) {
        const int32_t in_a = space.InSpace(a), in_b = space.InSpace(b);
        if (in_a >= 0 && in_b >= 0 && in_a != in_b) {
          space.together_[in_a] |= uint64_t{1} << static_cast<uint32_t>(in_b);
        }
      }
    }
  }
  for (const NamedDim& a : space.named_) {
    for (const NamedDim& b : space.named_) {
      if (a.value == b.value && a.dim != b.dim) {
        space.together_[space.InSpace(a)] |= uint64_t{1} << static_cast<uint32_t>(space.InSpace(b));
      }
    }
  }
  for (size_t c = 0; c < program.conflicts.size(); ++c) {
    const sharding::Conflict& conflict = program.conflicts[c];
    const int32_t first = space.InSpace(conflict.first), second = space.InSpace(conflict.second);
    if (first < 0 || second < 0 || conflict.places.empty()) continue;
    if ((space.together_[first] >> static_cast<uint32_t>(second) & 1) != 0) continue;
    if (Ratio(conflict.bytes, most) < options.least_share) continue;
    space.conflicts_.push_back({first, second, static_cast<int32_t>(c)});
  }
  return space;
}

bool Space::Possible(const std::vector<AxisSet>& axes) const {
  const size_t last = axes.size() - 1;
  for (size_t d = 0; d < last; ++d) {
    const AxisSet both = axes[d] & axes[last] & ~kAsDecided;
    if ((together_[last] >> d & 1) != 0 && both != 0) return false;
  }
  return true;
}

bool Space::IsConstrained(const std::string& value) const { return constrained_.contains(value); }

std::string Space::NameOf(size_t d) const {
  const NamedDim* named = Named(d);
  if (named == nullptr) return Decision(d).name;
  return fmt::format("{} {}", program_->named[named->value].name, named->dim);
}

int32_t Space::InSpace(const NamedDim& named) const {
  const auto found = std::ranges::find(named_, named);
  if (found == named_.end()) return -1;
  return static_cast<int32_t>(decisions_.size() + static_cast<size_t>(found - named_.begin()));
}

double Space::Below(size_t mesh, size_t decided) const {
  double count = 1;
  for (size_t d = decided; d < decisions(); ++d) {
    count *= static_cast<double>(choices_[mesh][d].size());
  }
  return count;
}

double Space::Count() const {
  double count = 0;
  for (size_t mesh = 0; mesh < meshes_.size(); ++mesh) count += Below(mesh, 0);
  return count;
}

std::vector<size_t> Space::Conflicts(const std::vector<AxisSet>& axes) const {
  std::vector<size_t> active;
  for (size_t c = 0; c < conflicts_.size(); ++c) {
    if ((axes[conflicts_[c].first] & axes[conflicts_[c].second]) != 0) active.push_back(c);
  }
  return active;
}

}  // namespace tpusim::search
