#include "workloads/kernels/known_moves.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/hlo/rules/integer_arithmetic.h"
#include "workloads/kernels/limits.h"

namespace tpusim::kernels {
namespace {

using hlo::Instruction;
using hlo::Opcode;
using hlo::Shape;
using Results = std::optional<std::vector<WholeNumbers>>;

template <typename Dims>
bool IsAmong(const Dims& dims, int64_t d) {
  return std::find(dims.begin(), dims.end(), d) != dims.end();
}

// The dimensions below `rank` that are in neither list.
template <typename A, typename B>
WholeNumbers Others(int64_t rank, const A& some, const B& more) {
  WholeNumbers others;
  for (int64_t d = 0; d < rank; ++d) {
    if (!IsAmong(some, d) && !IsAmong(more, d)) others.push_back(d);
  }
  return others;
}

// A computation of scalars.
class Region {
 public:
  explicit Region(const hlo::Computation& computation) : steps_(computation.PostOrder()) {
    for (size_t n = 0; n < steps_.size(); ++n) places_[steps_[n]] = n;
    root_ = computation.root();
  }

  // nullopt: there is something in it without a rule.
  std::optional<WholeNumbers> operator()(const WholeNumbers& arguments) const {
    WholeNumbers values(steps_.size());
    const auto value = [&](const Instruction* i) { return values[places_.at(i)]; };
    for (size_t n = 0; n < steps_.size(); ++n) {
      const Instruction& i = *steps_[n];
      if (i.opcode() == Opcode::kTuple) continue;
      if (i.opcode() == Opcode::kParameter) {
        values[n] = arguments[static_cast<size_t>(i.attrs().parameter_number())];
        continue;
      }
      std::optional<int64_t> made = hlo::ScalarIntConstant(i);
      const size_t operands = i.operands().size();
      if (!made && i.opcode() == Opcode::kSelect) {
        made = value(i.operand(value(i.operand(0)) != 0 ? 1 : 2));
      } else if (!made && hlo::IsElementwise(i) && (operands == 1 || operands == 2)) {
        made = hlo::EvaluateInteger(i, value(i.operand(0)), value(i.operand(operands - 1)));
      }
      if (!made) return std::nullopt;
      values[n] = *made;
    }
    if (root_->opcode() != Opcode::kTuple) return WholeNumbers{value(root_)};
    WholeNumbers results;
    for (const Instruction* result : root_->operands()) results.push_back(value(result));
    return results;
  }

 private:
  std::vector<Instruction*> steps_;
  std::unordered_map<const Instruction*, size_t> places_;
  const Instruction* root_;
};

// Each element is the one of the first operand at the place that `from` gives.
template <typename From>
Results Picked(const Instruction& i, const std::vector<WholeNumbers>& operands, const From& from) {
  const Shape& shape = i.operand(0)->shape();
  WholeNumbers at(shape.dims.size(), 0), elements;
  ForEachPlace(i.shape(), [&](const WholeNumbers& place) {
    from(place, &at);
    elements.push_back(operands[0][IndexOf(shape, at)]);
  });
  return {{std::move(elements)}};
}

Results Reversed(const Instruction& i, const std::vector<WholeNumbers>& operands) {
  const WholeNumbers turned = hlo::Dimensions(i);
  return Picked(i, operands, [&](const WholeNumbers& place, WholeNumbers* from) {
    for (size_t d = 0; d < place.size(); ++d) {
      const bool turns = IsAmong(turned, static_cast<int64_t>(d));
      (*from)[d] = turns ? i.shape().dims[d] - 1 - place[d] : place[d];
    }
  });
}

Results Transposed(const Instruction& i, const std::vector<WholeNumbers>& operands) {
  const WholeNumbers order = hlo::Dimensions(i);
  return Picked(i, operands, [&](const WholeNumbers& place, WholeNumbers* from) {
    for (size_t d = 0; d < place.size(); ++d) (*from)[static_cast<size_t>(order[d])] = place[d];
  });
}

Results Padded(const Instruction& i, const std::vector<WholeNumbers>& operands) {
  const std::vector<hlo::PaddingDim> padding = hlo::GetPadding(i);
  WholeNumbers elements(static_cast<size_t>(i.shape().ElementCount()), operands[1][0]);
  size_t n = 0;
  ForEachPlace(i.operand(0)->shape(), [&](WholeNumbers place) {
    bool inside = true;
    for (size_t d = 0; d < place.size(); ++d) {
      place[d] = padding[d].low + place[d] * (1 + padding[d].interior);
      inside = inside && place[d] >= 0 && place[d] < i.shape().dims[d];
    }
    if (inside) elements[IndexOf(i.shape(), place)] = operands[0][n];
    ++n;
  });
  return {{std::move(elements)}};
}

Results Updated(const Instruction& i, const std::vector<WholeNumbers>& operands) {
  WholeNumbers elements = operands[0];
  const Shape& update = i.operand(1)->shape();
  size_t n = 0;
  ForEachPlace(update, [&](WholeNumbers place) {
    for (size_t d = 0; d < place.size(); ++d) {
      const int64_t last = i.shape().dims[d] - update.dims[d];
      place[d] += std::clamp<int64_t>(operands[d + 2][0], 0, last);
    }
    elements[IndexOf(i.shape(), place)] = operands[1][n++];
  });
  return {{std::move(elements)}};
}

// Selections, and numbers between two others; scalars stand for all elements.
Results Chosen(const Instruction& i, const std::vector<WholeNumbers>& operands) {
  const auto element = [&](size_t operand, size_t n) {
    return operands[operand].size() == 1 ? operands[operand][0] : operands[operand][n];
  };
  WholeNumbers elements(static_cast<size_t>(i.shape().ElementCount()));
  for (size_t n = 0; n < elements.size(); ++n) {
    if (i.opcode() == Opcode::kSelect) {
      elements[n] = element(element(0, n) != 0 ? 1 : 2, n);
    } else {
      elements[n] = std::min(std::max(element(0, n), element(1, n)), element(2, n));
    }
  }
  return {{std::move(elements)}};
}

// The begins of the windows of a gather or scatter in an array.
class Starts {
 public:
  // `map` has the dimension of the array that each number of an index is for; `batching` those that
  // are as the dimensions `of_indices` of the indices.
  template <typename Dims>
  Starts(const Shape& indices, const WholeNumbers& numbers, int64_t vector_dim, const Dims& map,
         const Dims& batching, const Dims& of_indices)
      : indices_(indices),
        numbers_(numbers),
        vector_dim_(static_cast<size_t>(vector_dim)),
        map_(map.begin(), map.end()),
        batching_(batching.begin(), batching.end()),
        of_indices_(of_indices.begin(), of_indices.end()) {}

  // Returns the begin of the window at this place among all.
  WholeNumbers Of(const WholeNumbers& window, size_t rank) const {
    WholeNumbers place = window;
    const bool has_vector = vector_dim_ < indices_.dims.size();
    if (has_vector) place.insert(place.begin() + static_cast<ptrdiff_t>(vector_dim_), 0);
    WholeNumbers start(rank, 0);
    for (size_t n = 0; n < map_.size(); ++n) {
      if (has_vector) place[vector_dim_] = static_cast<int64_t>(n);
      start[static_cast<size_t>(map_[n])] = numbers_[IndexOf(indices_, place)];
    }
    for (size_t n = 0; n < batching_.size(); ++n) {
      start[static_cast<size_t>(batching_[n])] = place[static_cast<size_t>(of_indices_[n])];
    }
    return start;
  }

 private:
  const Shape& indices_;
  const WholeNumbers& numbers_;
  size_t vector_dim_;
  WholeNumbers map_, batching_, of_indices_;
};

WholeNumbers At(const WholeNumbers& place, const WholeNumbers& dims) {
  WholeNumbers part;
  for (const int64_t d : dims) part.push_back(place[static_cast<size_t>(d)]);
  return part;
}

Results Gathered(const Instruction& i, const std::vector<WholeNumbers>& operands) {
  const auto& n = i.attrs().gather_dimension_numbers();
  const Shape& shape = i.operand(0)->shape();
  const auto rank = static_cast<int64_t>(shape.dims.size());
  const Starts starts(i.operand(1)->shape(), operands[1], n.index_vector_dim(), n.start_index_map(),
                      n.operand_batching_dims(), n.start_indices_batching_dims());
  const WholeNumbers windows =
      Others(static_cast<int64_t>(i.shape().dims.size()), n.offset_dims(), n.offset_dims());
  const WholeNumbers inside = Others(rank, n.collapsed_slice_dims(), n.operand_batching_dims());
  return Picked(i, operands, [&](const WholeNumbers& place, WholeNumbers* from) {
    *from = starts.Of(At(place, windows), shape.dims.size());
    for (size_t d = 0; d < from->size(); ++d) {
      const int64_t size = i.attrs().gather_slice_sizes()[static_cast<int>(d)];
      (*from)[d] = std::clamp<int64_t>((*from)[d], 0, shape.dims[d] - size);
    }
    for (size_t k = 0; k < inside.size(); ++k) {
      const auto offset = static_cast<size_t>(n.offset_dims()[static_cast<int>(k)]);
      (*from)[static_cast<size_t>(inside[k])] += place[offset];
    }
  });
}

Results Scattered(const Instruction& i, const std::vector<WholeNumbers>& operands) {
  if (operands.size() != 3) return std::nullopt;  // number: operands of a select
  const auto& n = i.attrs().scatter_dimension_numbers();
  const Shape& updates = i.operand(2)->shape();
  const auto rank = static_cast<int64_t>(i.shape().dims.size());
  const Region combine(*i.called()[0]);
  const Starts starts(i.operand(1)->shape(), operands[1], n.index_vector_dim(),
                      n.scatter_dims_to_operand_dims(), n.input_batching_dims(),
                      n.scatter_indices_batching_dims());
  const WholeNumbers windows = Others(static_cast<int64_t>(updates.dims.size()),
                                      n.update_window_dims(), n.update_window_dims());
  const WholeNumbers inside = Others(rank, n.inserted_window_dims(), n.input_batching_dims());
  WholeNumbers elements = operands[0];
  size_t next = 0;
  bool known = true;
  ForEachPlace(updates, [&](const WholeNumbers& place) {
    const int64_t update = operands[2][next++];
    WholeNumbers at = starts.Of(At(place, windows), i.shape().dims.size());
    WholeNumbers size(at.size(), 1), offset(at.size(), 0);
    for (size_t k = 0; k < inside.size(); ++k) {
      const auto of_update = static_cast<size_t>(n.update_window_dims()[static_cast<int>(k)]);
      size[static_cast<size_t>(inside[k])] = updates.dims[of_update];
      offset[static_cast<size_t>(inside[k])] = place[of_update];
    }
    for (size_t d = 0; d < at.size(); ++d) {  // A window that is not all inside is left out.
      if (at[d] < 0 || at[d] + size[d] > i.shape().dims[d]) return;
      at[d] += offset[d];
    }
    int64_t& element = elements[IndexOf(i.shape(), at)];
    const auto combined = combine({element, update});
    known = known && combined.has_value();
    if (combined) element = combined->at(0);
  });
  if (!known) return std::nullopt;
  return {{std::move(elements)}};
}

// Arrays, then the number that each begins with.
Results Reduced(const Instruction& i, const std::vector<WholeNumbers>& operands) {
  const size_t arrays = operands.size() / 2;
  const Shape& shape = i.operand(0)->shape();
  const Region combine(*i.called()[0]);
  const WholeNumbers summed = hlo::Dimensions(i);
  const WholeNumbers kept = Others(static_cast<int64_t>(shape.dims.size()), summed, summed);
  const Shape& result = *hlo::Leaves(i.shape()).front();
  std::vector<WholeNumbers> results;
  for (size_t n = 0; n < arrays; ++n) {
    results.emplace_back(static_cast<size_t>(result.ElementCount()), operands[arrays + n][0]);
  }
  size_t next = 0;
  bool known = true;
  ForEachPlace(shape, [&](const WholeNumbers& place) {
    const size_t to = IndexOf(result, At(place, kept));
    WholeNumbers arguments;
    for (const WholeNumbers& so_far : results) arguments.push_back(so_far[to]);
    for (size_t n = 0; n < arrays; ++n) arguments.push_back(operands[n][next]);
    ++next;
    const auto combined = known ? combine(arguments) : std::nullopt;
    known = combined && combined->size() == arrays;
    for (size_t n = 0; known && n < arrays; ++n) results[n][to] = (*combined)[n];
  });
  if (!known) return std::nullopt;
  return results;
}

// Running sums and the like.
Results ReducedInWindows(const Instruction& i, const std::vector<WholeNumbers>& operands) {
  const std::vector<hlo::WindowDim> window = hlo::GetWindow(i);
  const Shape& shape = i.operand(0)->shape();
  Shape positions = shape;
  int64_t work = i.shape().IsArray() ? i.shape().ElementCount() : 0;
  for (size_t d = 0; d < window.size(); ++d) {
    if (window[d].base_dilation != 1 || window[d].reversal) return std::nullopt;
    positions.dims[d] = window[d].size;
    if (__builtin_mul_overflow(work, window[d].size, &work)) return std::nullopt;
  }
  if (operands.size() != 2 || window.size() != shape.dims.size()) return std::nullopt;
  if (work > limits::kTableElements.most()) {
    limits::kTableElements.Reached();
    return std::nullopt;
  }
  const Region combine(*i.called()[0]);
  WholeNumbers elements;
  bool known = true;
  ForEachPlace(i.shape(), [&](const WholeNumbers& place) {
    int64_t so_far = operands[1][0];
    ForEachPlace(positions, [&](const WholeNumbers& position) {
      WholeNumbers from(place.size());
      for (size_t d = 0; d < place.size(); ++d) {
        from[d] = place[d] * window[d].stride + position[d] * window[d].window_dilation -
                  window[d].padding_low;
        if (from[d] < 0 || from[d] >= shape.dims[d]) return;
      }
      const auto combined =
          known ? combine({so_far, operands[0][IndexOf(shape, from)]}) : std::nullopt;
      known = combined.has_value();
      if (combined) so_far = combined->at(0);
    });
    elements.push_back(so_far);
  });
  if (!known) return std::nullopt;
  return {{std::move(elements)}};
}

Results Sorted(const Instruction& i, const std::vector<WholeNumbers>& operands) {
  const Shape& shape = i.operand(0)->shape();
  const auto axis = static_cast<size_t>(hlo::OnlyDimension(i));
  const Region before(*i.called()[0]);
  std::vector<WholeNumbers> results = operands;
  Shape rows = shape;
  rows.dims[axis] = std::min<int64_t>(1, shape.dims[axis]);
  bool known = true;
  ForEachPlace(rows, [&](WholeNumbers place) {
    std::vector<size_t> at;
    for (place[axis] = 0; place[axis] < shape.dims[axis]; ++place[axis]) {
      at.push_back(IndexOf(shape, place));
    }
    std::vector<size_t> order = at;
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      WholeNumbers arguments;
      for (const WholeNumbers& operand : operands) {
        arguments.push_back(operand[a]);
        arguments.push_back(operand[b]);
      }
      const auto holds = before(arguments);
      known = known && holds;
      return holds && holds->at(0) != 0;
    });
    for (size_t n = 0; n < operands.size(); ++n) {
      for (size_t k = 0; k < at.size(); ++k) results[n][at[k]] = operands[n][order[k]];
    }
  });
  if (!known) return std::nullopt;
  return results;
}

}  // namespace

void ForEachPlace(const Shape& shape, const std::function<void(const WholeNumbers&)>& call) {
  WholeNumbers place(shape.dims.size(), 0);
  for (int64_t left = shape.ElementCount(); left > 0; --left) {
    call(place);
    for (size_t d = place.size(); d-- > 0;) {
      if (++place[d] < shape.dims[d]) break;
      place[d] = 0;
    }
  }
}

size_t IndexOf(const Shape& shape, const WholeNumbers& place) {
  int64_t index = 0;
  for (size_t d = 0; d < place.size(); ++d) index = index * shape.dims[d] + place[d];
  return static_cast<size_t>(index);
}

Results Moved(const Instruction& i, const std::vector<WholeNumbers>& operands) {
  switch (i.opcode()) {
    case Opcode::kReverse:
      return Reversed(i, operands);
    case Opcode::kTranspose:
      return Transposed(i, operands);
    case Opcode::kPad:
      return Padded(i, operands);
    case Opcode::kDynamicUpdateSlice:
      return Updated(i, operands);
    case Opcode::kSelect:
    case Opcode::kClamp:
      return Chosen(i, operands);
    case Opcode::kGather:
      return Gathered(i, operands);
    case Opcode::kScatter:
      return Scattered(i, operands);
    case Opcode::kReduce:
      return Reduced(i, operands);
    case Opcode::kReduceWindow:
      return ReducedInWindows(i, operands);
    case Opcode::kSort:
      return Sorted(i, operands);
    default:
      return std::nullopt;
  }
}

}  // namespace tpusim::kernels
