// One function per family of operations: which of its arrays lie alike, and what it costs
// where they do not.

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>

#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/hlo/rules/cost.h"
#include "workloads/kernels/custom_cost.h"
#include "workloads/kernels/product.h"
#include "workloads/passes/layout/layout_problem.h"
#include "workloads/passes/memory/placement.h"
#include "workloads/passes/pipeline/control.h"

namespace tpusim::passes {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;
using hlo::Shape;

bool HasOrder(const Shape& shape) { return shape.IsArray() && shape.rank() > 1; }

// The custom calls that take arrays as they lie.
bool TakesAnyLayout(const Instruction& call) {
  return PlacementOf(call).has_value() || kernels::IsTopKCall(call) ||
         kernels::IsPartialReduceCall(call);
}

class Poser {
 public:
  explicit Poser(const hlo::Module& module, const target::Target& target)
      : module_(module), target_(target) {}

  LayoutProblem Run() {
    const std::vector<Computation*> computations = ControlComputations(module_);
    NoteTrips(computations);
    for (const Computation* computation : computations) {
      for (const Instruction* i : computation->PostOrder()) AddValues(*i);
    }
    for (const Computation* computation : computations) {
      trips_ = trips_of_.at(computation);
      for (const Instruction* i : computation->PostOrder()) {
        Pose(*i);
        AddMemory(*i);
      }
    }
    FixResults();
    // What may also be moved comes after all that may not.
    for (const Instruction* transpose : transposes_) PoseTranspose(*transpose);
    return std::move(problem_);
  }

 private:
  // How often each computation runs, as far as that is known.
  void NoteTrips(const std::vector<Computation*>& computations) {
    for (const Computation* c : computations) trips_of_.emplace(c, 1.0);
    for (const Computation* c : computations) {  // callers first
      const double outer = trips_of_.at(c);
      for (const Instruction* i : c->PostOrder()) {
        const double times =
            i->opcode() == Opcode::kWhile
                ? static_cast<double>(std::max<int64_t>(1, hlo::TripCount(*i).value_or(1)))
                : 1.0;
        for (const Computation* called : i->called()) {
          const auto at = trips_of_.find(called);
          if (at != trips_of_.end()) at->second = std::max(at->second, outer * times);
        }
      }
    }
  }

  void AddValues(const Instruction& i) {
    std::vector<int32_t>& made = problem_.made[&i];
    for (const Shape* leaf : hlo::Leaves(i.shape())) {
      made.push_back(HasOrder(*leaf) ? problem_.classes.Add(leaf->rank()) : -1);
    }
    problem_.seen[&i] = problem_.made[&i];
  }

  // ---- Values ----------------------------------------------------------------

  int32_t Made(const Instruction& i, size_t leaf = 0) const { return problem_.made.at(&i)[leaf]; }
  int32_t Seen(const Instruction& i, size_t leaf = 0) const { return problem_.seen.at(&i)[leaf]; }

  void Unite(int32_t a, int32_t b) {
    if (a >= 0 && b >= 0) problem_.classes.UniteEqual(a, b);
  }
  void UniteLeaves(const Instruction& from, const Instruction& to, size_t first_from = 0,
                   size_t first_to = 0) {
    const size_t n = std::min(problem_.seen.at(&from).size() - first_from,
                              problem_.made.at(&to).size() - first_to);
    for (size_t leaf = 0; leaf < n; ++leaf) {
      Unite(Seen(from, first_from + leaf), Made(to, first_to + leaf));
    }
  }

  void AddTerm(Term::Kind kind, int32_t value, const Shape& shape, Dims dims, double count = 1) {
    if (value < 0) return;
    problem_.terms.push_back({kind, value, shape, std::move(dims), count * trips_});
  }
  void AddLink(Link::Kind kind, int32_t from, int32_t to, const Shape& a, const Shape& b,
               Dims map = {}) {
    if (from < 0 || to < 0) return;
    problem_.links.push_back({kind, from, to, a, b, std::move(map), trips_});
  }

  // Users of `i` see it in a layout that may differ from the one in which it is made.
  void Separate(const Instruction& i) {
    const std::vector<const Shape*> leaves = hlo::Leaves(i.shape());
    for (size_t leaf = 0; leaf < leaves.size(); ++leaf) {
      if (Made(i, leaf) < 0) continue;
      const int32_t seen = problem_.classes.Add(leaves[leaf]->rank());
      problem_.seen[&i][leaf] = seen;
      AddLink(Link::Kind::kCopy, Made(i, leaf), seen, *leaves[leaf], *leaves[leaf]);
    }
  }
  void Fix(int32_t value, const Shape& shape) {
    if (value >= 0) problem_.fixed.emplace(value, hlo::MinorToMajor(shape));
  }
  // Operand `n` of `user` in a layout of its own.
  int32_t Want(const Instruction& user, size_t n) {
    const Instruction& operand = *user.operand(n);
    if (!HasOrder(operand.shape())) return -1;
    const int32_t wanted = problem_.classes.Add(operand.shape().rank());
    problem_.wanted[{user.id(), static_cast<int64_t>(n)}] = wanted;
    AddLink(Link::Kind::kCopy, Seen(operand), wanted, operand.shape(), operand.shape());
    return wanted;
  }

  // ---- Families --------------------------------------------------------------

  void Pose(const Instruction& i) {
    if (hlo::IsElementwise(i.opcode()) || i.opcode() == Opcode::kMap) return PoseElementwise(i);
    if (hlo::IsCollective(i.opcode())) return PoseCollective(i);
    switch (i.opcode()) {
      case Opcode::kParameter:
        if (i.parent() == module_.entry()) PoseArgument(i);
        return;
      case Opcode::kConstant:
      case Opcode::kIota:
      case Opcode::kRngBitGenerator:
      case Opcode::kPartitionId:
      case Opcode::kReplicaId:
        return;
      case Opcode::kTuple: {
        size_t leaf = 0;
        for (const Instruction* o : i.operands()) {
          UniteLeaves(*o, i, 0, leaf);
          leaf += problem_.seen.at(o).size();
        }
        return;
      }
      case Opcode::kGetTupleElement:
        return UniteLeaves(
            *i.operand(0), i,
            static_cast<size_t>(LeavesBefore(i.operand(0)->shape(), i.attrs().tuple_index())));
      case Opcode::kOptBarrier:
      case Opcode::kCopy:
      case Opcode::kDomain:
      case Opcode::kAddDependency:
        return UniteLeaves(*i.operand(0), i);
      case Opcode::kWhile:
        UniteLeaves(*i.operand(0), i);
        for (const Computation* c : i.called()) UniteLeaves(*i.operand(0), *c->parameters()[0]);
        UniteLeaves(*i.called()[0]->root(), i);
        return;
      case Opcode::kConditional:
        for (size_t b = 0; b < i.called().size(); ++b) {
          UniteLeaves(*i.operand(b + 1), *i.called()[b]->parameters()[0]);
          UniteLeaves(*i.called()[b]->root(), i);
        }
        return;
      case Opcode::kCall: {
        const std::vector<Instruction*> parameters = i.called()[0]->parameters();
        for (size_t n = 0; n < parameters.size(); ++n) UniteLeaves(*i.operand(n), *parameters[n]);
        return UniteLeaves(*i.called()[0]->root(), i);
      }
      case Opcode::kTranspose:
        transposes_.push_back(&i);
        return;
      case Opcode::kReshape:
        return AddLink(Link::Kind::kReshape, Seen(*i.operand(0)), Made(i), i.operand(0)->shape(),
                       i.shape());
      case Opcode::kBroadcast:
        return AddLink(Link::Kind::kLanes, Seen(*i.operand(0)), Made(i), i.operand(0)->shape(),
                       i.shape(), hlo::Dimensions(i));
      case Opcode::kReduce:
        return PoseReduce(i);
      case Opcode::kSlice:
      case Opcode::kDynamicSlice:
      case Opcode::kPad:
      case Opcode::kReverse:
      case Opcode::kConcatenate:
      case Opcode::kDynamicUpdateSlice:
        return PosePieces(i);
      case Opcode::kReduceWindow:
      case Opcode::kSelectAndScatter:
        return PoseWindow(i);
      case Opcode::kSort:
      case Opcode::kTopk:
        return PoseSort(i);
      case Opcode::kGather:
      case Opcode::kScatter:
        return PoseIndexed(i);
      case Opcode::kDot:
        return PoseDot(i);
      case Opcode::kConvolution:
      case Opcode::kRaggedDot:
        return;  // the arrays take what the padding allows
      default:
        break;
    }
    if (i.opcode() == Opcode::kCustomCall && TakesAnyLayout(i)) {
      for (size_t leaf = 0; leaf < problem_.made.at(&i).size(); ++leaf) {
        if (!i.operands().empty()) Unite(Seen(*i.operand(0)), Made(i, leaf));
      }
      return;
    }
    // Nothing is known of it but how its author sees its arrays.
    const std::vector<const Shape*> leaves = hlo::Leaves(i.shape());
    for (size_t leaf = 0; leaf < leaves.size(); ++leaf) Fix(Made(i, leaf), *leaves[leaf]);
    Separate(i);
    for (size_t n = 0; n < i.operands().size(); ++n) Fix(Want(i, n), i.operand(n)->shape());
  }

  // As the layout says if that is no default, else compactly.
  Dims OrderOfArgument(const Shape& shape) const {
    return hlo::IsRowMajor(shape) ? target_.DefaultOrder(shape) : hlo::MinorToMajor(shape);
  }

  void PoseArgument(const Instruction& i) {
    const std::vector<const Shape*> leaves = hlo::Leaves(i.shape());
    for (size_t leaf = 0; leaf < leaves.size(); ++leaf) {
      if (Made(i, leaf) < 0) continue;
      problem_.fixed.emplace(Made(i, leaf), OrderOfArgument(*leaves[leaf]));
    }
    // Elements of a tuple cannot be copied one by one where they are, nor what is on the host.
    if (i.shape().IsArray() && !OnHost(i.shape())) Separate(i);
  }

  void FixResults() {
    const Instruction& root = *module_.entry()->root();
    trips_ = 1;
    const auto fix = [&](const Instruction& value, int32_t at) {
      if (at >= 0) problem_.fixed.emplace(at, OrderOfArgument(value.shape()));
    };
    if (root.opcode() == Opcode::kTuple) {
      for (size_t n = 0; n < root.operands().size(); ++n) {
        if (OnHost(root.operand(n)->shape())) continue;
        const int32_t wanted = Want(root, n);
        if (wanted < 0) continue;
        fix(*root.operand(n), wanted);
        // The tuple holds what was wanted.
        const auto leaf = static_cast<size_t>(LeavesBefore(root.shape(), static_cast<int64_t>(n)));
        problem_.made[&root][leaf] = problem_.seen[&root][leaf] = wanted;
      }
      return;
    }
    if (!HasOrder(root.shape()) || OnHost(root.shape())) return;
    // As if a user of the root wanted it.
    const int32_t wanted = problem_.classes.Add(root.shape().rank());
    problem_.wanted[{root.id(), -1}] = wanted;
    AddLink(Link::Kind::kCopy, Seen(root), wanted, root.shape(), root.shape());
    fix(root, wanted);
  }

  void PoseElementwise(const Instruction& i) {
    for (const Instruction* o : i.operands()) {
      if (o->shape().IsArray() && o->shape().dims == i.shape().dims && !IsMadeAnywhere(*o)) {
        Unite(Seen(*o), Made(i));
      }
    }
  }

  // What goes over links goes as it lies.
  void PoseCollective(const Instruction& i) {
    const size_t leaves = problem_.made.at(&i).size();
    if (i.shape().IsArray()) {
      for (size_t n = 0; n < std::min<size_t>(2, i.operands().size()); ++n) {
        if (i.operand(n)->shape().rank() == i.shape().rank()) Unite(Seen(*i.operand(n)), Made(i));
      }
      return;
    }
    for (size_t n = 0; n < std::min(leaves, i.operands().size()); ++n) {
      if (i.operand(n)->shape().IsArray()) Unite(Seen(*i.operand(n)), Made(i, n));
    }
  }

  void PoseTranspose(const Instruction& i) {
    trips_ = trips_of_.at(i.parent());
    const int32_t operand = Seen(*i.operand(0)), result = Made(i);
    if (operand < 0) return;
    // Dimension d of the result is dims[d] of the operand.
    const Dims dims = hlo::Dimensions(i);
    if (problem_.classes.Unite(result, operand, dims)) return;
    // It lies in one class with its operand, and otherwise: it moves.
    AddTerm(Term::Kind::kMemory, result, i.shape(), {});
  }

  void PoseReduce(const Instruction& i) {
    const Dims dims = hlo::Dimensions(i);
    const Shape& in = i.operand(0)->shape();
    Dims map(in.dims.size(), -1);
    int64_t next = 0;
    for (int64_t d = 0; d < in.rank(); ++d) {
      if (std::find(dims.begin(), dims.end(), d) == dims.end()) {
        map[static_cast<size_t>(d)] = next++;
      }
    }
    const size_t arrays = i.operands().size() / 2;
    for (size_t n = 0; n < arrays; ++n) {
      Unite(Seen(*i.operand(0)), Seen(*i.operand(n)));
      Unite(Made(i, 0), Made(i, n));
    }
    AddTerm(Term::Kind::kReduce, Seen(*i.operand(0)), in, dims, static_cast<double>(arrays));
    AddLink(Link::Kind::kLanes, Seen(*i.operand(0)), Made(i), in, *hlo::Leaves(i.shape())[0], map);
  }

  // Dimensions along which elements do not keep their place modulo the lanes.
  Dims Shifted(const Instruction& i) const {
    const int64_t lanes = target_.chip().vpu.lanes;
    const int64_t rank = i.shape().rank();
    Dims shifted;
    for (int64_t d = 0; d < rank; ++d) {
      const auto at = static_cast<size_t>(d);
      bool shifts = false;
      switch (i.opcode()) {
        case Opcode::kSlice: {
          const hlo::SliceDim dim = hlo::GetSlice(i)[at];
          shifts = dim.start % lanes != 0 || dim.stride != 1;
          break;
        }
        case Opcode::kPad: {
          const hlo::PaddingDim dim = hlo::GetPadding(i)[at];
          shifts = dim.low % lanes != 0 || dim.interior != 0;
          break;
        }
        case Opcode::kConcatenate:
          shifts = hlo::OnlyDimension(i) == d &&
                   std::any_of(i.operands().begin(), i.operands().end() - 1,
                               [&](const auto* o) { return o->shape().dims[at] % lanes != 0; });
          break;
        case Opcode::kDynamicSlice:
          shifts = i.shape().dims[at] != i.operand(0)->shape().dims[at];
          break;
        case Opcode::kDynamicUpdateSlice:
          shifts = i.shape().dims[at] != i.operand(1)->shape().dims[at];
          break;
        default: {
          const Dims dims = hlo::Dimensions(i);
          shifts = std::find(dims.begin(), dims.end(), d) != dims.end();
        }
      }
      if (shifts) shifted.push_back(d);
    }
    return shifted;
  }

  void PosePieces(const Instruction& i) {
    for (const Instruction* o : i.operands()) {
      if (o->shape().IsArray() && o->shape().rank() == i.shape().rank() && !IsMadeAnywhere(*o)) {
        Unite(Seen(*o), Made(i));
      }
    }
    const Instruction& moved = i.opcode() == Opcode::kDynamicUpdateSlice ? *i.operand(1) : i;
    AddTerm(Term::Kind::kCrossLanes, Made(i), moved.shape(), Shifted(i));
  }

  void PoseWindow(const Instruction& i) {
    const Shape& in = i.operand(0)->shape();
    Dims windowed;
    double combinations = 0;
    const std::vector<hlo::WindowDim> window = hlo::GetWindow(i);
    for (size_t d = 0; d < window.size(); ++d) {
      if (window[d].size == 1) continue;
      windowed.push_back(static_cast<int64_t>(d));
      combinations += static_cast<double>(std::min(window[d].size - 1, 2 * CeilLog2(window[d].size)));
    }
    for (const Instruction* o : i.operands()) {
      if (o->shape().rank() == in.rank()) Unite(Seen(*i.operand(0)), Seen(*o));
    }
    for (size_t leaf = 0; leaf < problem_.made.at(&i).size(); ++leaf) {
      Unite(Seen(*i.operand(0)), Made(i, leaf));
    }
    AddTerm(Term::Kind::kCrossLanes, Seen(*i.operand(0)), in, windowed, combinations);
  }

  void PoseSort(const Instruction& i) {
    const Shape& keys = i.operand(0)->shape();
    const bool full = i.opcode() == Opcode::kSort;
    const int64_t d = full ? hlo::OnlyDimension(i) : keys.rank() - 1;
    for (const Instruction* o : i.operands()) Unite(Seen(*i.operand(0)), Seen(*o));
    for (size_t leaf = 0; leaf < problem_.made.at(&i).size(); ++leaf) {
      Unite(Seen(*i.operand(0)), Made(i, leaf));
    }
    // Rounds whose partners are in other lanes, there and back.
    const int64_t s = CeilLog2(keys.dims[static_cast<size_t>(d)]);
    double rounds = 0;
    for (int64_t j = 0; j < std::min(s, CeilLog2(target_.chip().vpu.lanes)); ++j) {
      rounds += 2 * static_cast<double>(s - j);
    }
    AddTerm(Term::Kind::kCrossLanes, Seen(*i.operand(0)), keys, {d},
            rounds * static_cast<double>(full ? i.operands().size() : 2));
  }

  void PoseIndexed(const Instruction& i) {
    const Shape& operand = i.operand(0)->shape();
    Dims slice(operand.dims.size(), 1);
    const bool gathers = i.opcode() == Opcode::kGather;
    const size_t arrays = gathers ? 1 : i.operands().size() / 2;
    const Instruction& indices = *i.operand(gathers ? 1 : arrays);
    int64_t vector_dim = 0;
    if (gathers) {
      const auto& numbers = i.attrs().gather_dimension_numbers();
      vector_dim = numbers.index_vector_dim();
      slice.assign(i.attrs().gather_slice_sizes().begin(), i.attrs().gather_slice_sizes().end());
      // Dimensions of a slice are dimensions of the result.
      Dims map(operand.dims.size(), -1);
      int next = 0;
      for (int64_t d = 0; d < operand.rank(); ++d) {
        const auto dropped = [&](const auto& dims) {
          return std::find(dims.begin(), dims.end(), d) != dims.end();
        };
        if (dropped(numbers.collapsed_slice_dims()) || dropped(numbers.operand_batching_dims())) {
          continue;
        }
        if (next < numbers.offset_dims_size()) {
          map[static_cast<size_t>(d)] = numbers.offset_dims(next++);
        }
      }
      AddLink(Link::Kind::kLanes, Seen(*i.operand(0)), Made(i), operand, i.shape(), map);
    } else {
      const auto& numbers = i.attrs().scatter_dimension_numbers();
      vector_dim = numbers.index_vector_dim();
      const Instruction& updates = *i.operand(arrays + 1);
      Dims map(updates.shape().dims.size(), -1);
      int next = 0;
      for (int64_t d = 0; d < operand.rank(); ++d) {
        const auto dropped = [&](const auto& dims) {
          return std::find(dims.begin(), dims.end(), d) != dims.end();
        };
        if (dropped(numbers.inserted_window_dims()) || dropped(numbers.input_batching_dims())) {
          continue;
        }
        if (next >= numbers.update_window_dims_size()) break;
        const auto of_update = static_cast<size_t>(numbers.update_window_dims(next++));
        slice[static_cast<size_t>(d)] = updates.shape().dims[of_update];
        map[of_update] = d;
      }
      for (size_t n = 0; n < arrays; ++n) {
        Unite(Seen(*i.operand(0)), Seen(*i.operand(n)));
        Unite(Seen(*i.operand(n)), Made(i, n));
        AddLink(Link::Kind::kLanes, Seen(*i.operand(arrays + 1 + n)), Made(i, n),
                i.operand(arrays + 1 + n)->shape(), operand, map);
      }
    }
    int64_t count = indices.shape().ElementCount();
    if (vector_dim < indices.shape().rank()) {
      count /= std::max<int64_t>(1, indices.shape().dims[static_cast<size_t>(vector_dim)]);
    }
    AddTerm(Term::Kind::kIndexed, Seen(*i.operand(0)), operand, slice,
            static_cast<double>(count) * static_cast<double>(arrays));
  }

  // The arrays multiply what lies in the two fastest dimensions; the others of a batch come
  // one after the other. Contracted or not, and in which order, they take it.
  void PoseDot(const Instruction& i) {
    const hlo::DotDims dims = hlo::GetDotDims(i);
    const Shape &lhs = i.operand(0)->shape(), &rhs = i.operand(1)->shape();
    Dims lhs_map(lhs.dims.size(), -1), rhs_map(rhs.dims.size(), -1);
    int64_t next = 0;
    for (size_t n = 0; n < dims.lhs_batch.size(); ++n, ++next) {
      lhs_map[static_cast<size_t>(dims.lhs_batch[n])] = next;
      rhs_map[static_cast<size_t>(dims.rhs_batch[n])] = next;
    }
    for (int64_t d : hlo::FreeDims(lhs.rank(), dims.lhs_contracting, dims.lhs_batch)) {
      lhs_map[static_cast<size_t>(d)] = next++;
    }
    for (int64_t d : hlo::FreeDims(rhs.rank(), dims.rhs_contracting, dims.rhs_batch)) {
      rhs_map[static_cast<size_t>(d)] = next++;
    }
    if (kernels::RunsOnVectorUnits(i)) {
      // The larger side is multiplied and summed where it lies.
      const size_t larger = lhs.ElementCount() >= rhs.ElementCount() ? 0 : 1;
      const Shape& big = larger == 0 ? lhs : rhs;
      AddTerm(Term::Kind::kReduce, Seen(*i.operand(larger)), big,
              larger == 0 ? dims.lhs_contracting : dims.rhs_contracting);
      AddLink(Link::Kind::kLanes, Seen(*i.operand(larger)), Made(i), big, i.shape(),
              larger == 0 ? lhs_map : rhs_map);
      // Which dimension of the larger each of the smaller belongs to.
      const Shape& small = larger == 0 ? rhs : lhs;
      const auto& small_batch = larger == 0 ? dims.rhs_batch : dims.lhs_batch;
      const auto& big_batch = larger == 0 ? dims.lhs_batch : dims.rhs_batch;
      const auto& small_sum = larger == 0 ? dims.rhs_contracting : dims.lhs_contracting;
      const auto& big_sum = larger == 0 ? dims.lhs_contracting : dims.rhs_contracting;
      Dims map(small.dims.size(), -1);
      for (size_t n = 0; n < small_batch.size(); ++n) {
        map[static_cast<size_t>(small_batch[n])] = big_batch[n];
      }
      for (size_t n = 0; n < small_sum.size(); ++n) {
        map[static_cast<size_t>(small_sum[n])] = big_sum[n];
      }
      AddLink(Link::Kind::kLanes, Seen(*i.operand(1 - larger)), Seen(*i.operand(larger)), small,
              big, map);
      return;
    }
    const auto several = [](const Shape& shape, const auto& batch) {
      return std::any_of(batch.begin(), batch.end(),
                         [&](int64_t d) { return shape.dims[static_cast<size_t>(d)] > 1; });
    };
    if (!several(lhs, dims.lhs_batch)) return;
    const auto apart = [&](size_t n, const std::vector<int64_t>& batch) {
      const Shape& shape = i.operand(n)->shape();
      if (shape.rank() < static_cast<int64_t>(batch.size()) + 2) return;
      AddTerm(Term::Kind::kBatch, Want(i, n), shape, batch);
    };
    apart(0, dims.lhs_batch);
    apart(1, dims.rhs_batch);
    const auto batch = static_cast<int64_t>(dims.lhs_batch.size());
    if (i.shape().rank() < batch + 2) return;
    AddTerm(Term::Kind::kBatch, Made(i), i.shape(), Identity(batch));
    Separate(i);
  }

  // ---- Memory ----------------------------------------------------------------

  static bool MayFuse(const Instruction& i) {
    return hlo::IsElementwise(i.opcode()) || i.opcode() == Opcode::kBroadcast ||
           i.opcode() == Opcode::kIota || i.opcode() == Opcode::kReduce;
  }

  // What an operation makes goes to memory, but for what its only user takes at once.
  void AddMemory(const Instruction& i) {
    switch (i.opcode()) {
      case Opcode::kParameter:
      case Opcode::kTuple:
      case Opcode::kGetTupleElement:
      case Opcode::kOptBarrier:
      case Opcode::kWhile:
      case Opcode::kConditional:
      case Opcode::kCall:
      case Opcode::kTranspose:
      case Opcode::kReshape:
        return;
      default:
        break;
    }
    const bool fused = MayFuse(i) && i.users().size() == 1 && !i.IsRoot() &&
                       MayFuse(*i.users()[0]);
    const std::vector<const Shape*> leaves = hlo::Leaves(i.shape());
    for (size_t leaf = 0; leaf < leaves.size(); ++leaf) {
      AddTerm(fused ? Term::Kind::kRegisters : Term::Kind::kMemory, Made(i, leaf), *leaves[leaf],
              {});
    }
  }

  const hlo::Module& module_;
  const target::Target& target_;
  LayoutProblem problem_;
  std::unordered_map<const Computation*, double> trips_of_;
  std::vector<const Instruction*> transposes_;
  double trips_ = 1;
};

}  // namespace

int64_t LeavesBefore(const Shape& tuple, int64_t index) {
  int64_t leaves = 0;
  for (int64_t n = 0; n < index; ++n) {
    leaves += static_cast<int64_t>(hlo::Leaves(tuple.tuple[static_cast<size_t>(n)]).size());
  }
  return leaves;
}

bool IsMadeAnywhere(const Instruction& i) {
  return i.opcode() == Opcode::kIota || i.opcode() == Opcode::kConstant ||
         (i.opcode() == Opcode::kBroadcast && i.operand(0)->shape().IsScalar());
}

LayoutProblem PoseLayoutProblem(const hlo::Module& module, const target::Target& target) {
  return Poser(module, target).Run();
}

}  // namespace tpusim::passes
