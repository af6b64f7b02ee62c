// The shardings that a search chooses from.
//
//   mesh         sizes for the named axes, in each order: all that fill the slice
//   decisions    of each (sharding/decisions/decisions.h), the axes that split its dimensions, in the order
//                of the mesh
//   constraints  on values that are named for it, by dimension: as is decided, or any axes; and a
//                value has a constraint where that is said of any of its dimensions
//   resolutions  of a candidate's conflicts: by propagation, or by constraints that give the axis
//                to the one or to the other decision, for the three with the most bytes
//
// Decisions about few bytes are not searched. Those about arguments that go by the same name as
// larger ones, such as the short tables of many, follow these: the same axes split them, as far as
// they divide them. Others are left whole, but for the batch. A batch of a few rows has few bytes
// beside the weights, and yet all work is done along it. So it is known by its work, whatever it is
// called: products that are split with it take a share of the time of all products. (A scale, or a
// table of a few biases, is in no product.) In a program without products it is of half as many
// values as any dimension is. What is left whole or follows is no choice: whoever says that nothing
// in the space is shorter has to name it.
//
// A candidate has a choice of each. It is not possible where an axis would split two dimensions of
// one argument, or where axes do not divide a dimension of an argument: JAX refuses both.
//
// What is counted are choices of mesh, decisions and constraints; those that are excluded are so
// with all resolutions of their conflicts.
#ifndef TPUSIM_WORKLOADS_SEARCH_SPACE_H_
#define TPUSIM_WORKLOADS_SEARCH_SPACE_H_

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "workloads/search/stated_dims.h"
#include "workloads/sharding/decisions/decisions.h"
#include "workloads/sharding/types/sharding.h"

namespace tpusim::search {

// A set of axes of a mesh: bit i is axis i.
using AxisSet = uint32_t;
// A dimension of a named value that is split as the decisions have it.
constexpr AxisSet kAsDecided = AxisSet{1} << 31;

using MeshAxes = std::vector<sharding::MeshAxis>;
// "data=16,model=16", as --mesh has it.
std::string ToString(const MeshAxes& mesh);
int64_t SizeOf(const MeshAxes& mesh, AxisSet axes);  // shards that they make

struct SpaceOptions {
  int64_t devices = 1;
  std::vector<std::string> axes;  // names of the axes of the mesh
  MeshAxes mesh;                  // none: all of those axes
  // The program's own constraints stay, by the names of axes. Else they are stated anew, as the
  // decisions have it.
  bool keeps_constraints = false;
  std::vector<StatedDims> fixed, forbidden;
  // Values for which constraints are stated beside: candidates state none.
  std::set<std::string> constrained;
  // Decisions with fewer bytes than this share of the largest one's, in all values and in
  // arguments, are not searched, unless they have this share of work.
  double least_share = sharding::kLeastShare;
  std::vector<double> work;  // by decision of the program (Variant::work); none: of no decision
};

// The resolution of a conflict: by propagation, or for the first or the second decision.
enum class ConflictResolution : int8_t { kByPropagation, kFirst, kSecond };

struct Candidate {
  int32_t mesh = 0;           // of the space
  std::vector<AxisSet> axes;  // by decision of the space, dimensions of named values at the end
  std::vector<ConflictResolution> conflicts;  // by conflict of the space; none: all by propagation
  int32_t variant = 0;                // of the program

  bool operator==(const Candidate&) const = default;
};

// A conflict that constraints can resolve: not one between dimensions of an argument.
struct OpenConflict {
  int32_t first = 0, second = 0;  // decisions of the space
  int32_t conflict = 0;           // of the program's
};

// A dimension of a value that may get a constraint.
struct NamedDim {
  int32_t value = 0;  // of the program's named values
  int32_t dim = 0;

  bool operator==(const NamedDim&) const = default;
};

class Space {
 public:
  // Errors: a decision that is fixed has no such choice on any mesh, or all are forbidden; names
  // of arguments that the program has not; more decisions than a space can have.
  static absl::StatusOr<Space> Of(const sharding::Decisions& program, const SpaceOptions& options);

  const sharding::Decisions& program() const { return *program_; }
  const std::vector<MeshAxes>& meshes() const { return meshes_; }
  // Counts decisions of the program and, behind them, one for each dimension of a named value.
  size_t decisions() const { return decisions_.size() + named_.size(); }
  const std::vector<NamedDim>& named() const { return named_; }
  // The program's decision that decision `d` of the space is, if it is one of those.
  const sharding::Decision& Decision(size_t d) const { return program_->all[decisions_[d]]; }
  // Returns the dimension of decision `d` of the space; null: it is one of the program's.
  const NamedDim* Named(size_t d) const {
    return d < decisions_.size() ? nullptr : &named_[d - decisions_.size()];
  }
  // "state.weights['up'] 1", "context 2": a dimension.
  std::string NameOf(size_t d) const;
  // The space's number of a dimension of a named value; -1: nothing can split it.
  int32_t InSpace(const NamedDim& named) const;
  // The space's number of a decision of the program; -1: it is not in the space.
  int32_t InSpace(int32_t decision) const { return decision < 0 ? -1 : in_space_[decision]; }
  // Returns the one that it follows, itself if it is in the space; -1: it is left whole.
  int32_t Leader(int32_t decision) const { return decision < 0 ? -1 : leaders_[decision]; }
  // Decisions of the program that axes of some mesh could split, and which are not in the space:
  // with -1, or the decision of the space that each follows.
  const std::vector<std::pair<int32_t, int32_t>>& left_out() const { return left_out_; }
  const std::vector<AxisSet>& Choices(size_t mesh, size_t d) const { return choices_[mesh][d]; }
  const std::vector<OpenConflict>& conflicts() const { return conflicts_; }
  bool keeps_constraints() const { return keeps_constraints_; }
  bool IsConstrained(const std::string& value) const;

  // Whether decision `axes.size() - 1` goes with those before it.
  bool Possible(const std::vector<AxisSet>& axes) const;
  // Choices of mesh and decisions, whether possible or not; of those below a partial choice of
  // `decided` decisions.
  double Count() const;
  double Below(size_t mesh, size_t decided) const;
  // The conflicts that are some: both decisions have an axis in common.
  std::vector<size_t> Conflicts(const std::vector<AxisSet>& axes) const;

 private:
  const sharding::Decisions* program_ = nullptr;
  std::vector<MeshAxes> meshes_;
  std::vector<int32_t> decisions_, in_space_, leaders_;
  std::vector<std::pair<int32_t, int32_t>> left_out_;
  std::vector<NamedDim> named_;
  std::vector<std::vector<std::vector<AxisSet>>> choices_;  // by mesh, by decision
  std::vector<uint64_t> together_;  // by decision, those that share an argument, as bits
  std::vector<OpenConflict> conflicts_;
  bool keeps_constraints_ = false;
  std::set<std::string> constrained_;
};

}  // namespace tpusim::search

#endif  // TPUSIM_WORKLOADS_SEARCH_SPACE_H_
