#include "workloads/hlo/analysis/integer_arrays.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "workloads/hlo/analysis/limits.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/hlo/rules/integer_arithmetic.h"

namespace tpusim::hlo {
namespace {

using Results = std::optional<std::vector<Integers>>;

template <typename Dims>
bool IsAmong(const Dims& dims, int64_t d) {
  return std::find(dims.begin(), dims.end(), d) != dims.end();
}

// The dimensions below `rank` that are in neither list, ascending.
template <typename A, typename B>
Integers Others(int64_t rank, const A& some, const B& more) {
  Integers others;
  for (int64_t d = 0; d < rank; ++d) {
    if (!IsAmong(some, d) && !IsAmong(more, d)) others.push_back(d);
  }
  return others;
}

// A computation on integer scalars, such as the combiner of a reduce.
class ScalarRegion {
 public:
  explicit ScalarRegion(const Computation& computation) : steps_(computation.PostOrder()) {
    for (size_t n = 0; n < steps_.size(); ++n) places_[steps_[n]] = n;
    root_ = computation.root();
  }

  // Returns its results. nullopt: an instruction in it has no rule.
  std::optional<Integers> operator()(const Integers& arguments) const {
    Integers values(steps_.size());
    const auto value = [&](const Instruction* i) { return values[places_.at(i)]; };
    for (size_t n = 0; n < steps_.size(); ++n) {
      const Instruction& i = *steps_[n];
      if (i.opcode() == Opcode::kTuple) continue;
      if (i.opcode() == Opcode::kParameter) {
        values[n] = arguments[static_cast<size_t>(i.attrs().parameter_number())];
        continue;
      }
      std::optional<int64_t> made = ScalarIntConstant(i);
      const size_t operands = i.operands().size();
      if (!made && i.opcode() == Opcode::kSelect) {
        made = value(i.operand(value(i.operand(0)) != 0 ? 1 : 2));
      } else if (!made && IsElementwise(i) && (operands == 1 || operands == 2)) {
        made = EvaluateInteger(i, value(i.operand(0)), value(i.operand(operands - 1)));
      }
      if (!made) return std::nullopt;
      values[n] = *made;
    }
    if (root_->opcode() != Opcode::kTuple) return Integers{value(root_)};
    Integers results;
    for (const Instruction* result : root_->operands()) results.push_back(value(result));
    return results;
  }

 private:
  std::vector<Instruction*> steps_;
  std::unordered_map<const Instruction*, size_t> places_;
  const Instruction* root_;
};

// Takes each element from the first operand, at the index that `from` writes.
template <typename From>
Results Picked(const Instruction& i, const std::vector<Integers>& operands, const From& from) {
  const Shape& shape = i.operand(0)->shape();
  Integers at(shape.dims.size(), 0), elements;
  ForEachIndex(i.shape(), [&](const Integers& index) {
    from(index, &at);
    elements.push_back(operands[0][FlatIndex(shape, at)]);
  });
  return {{std::move(elements)}};
}

Results IotaElements(const Instruction& i) {
  const auto axis = static_cast<size_t>(OnlyDimension(i));
  Integers elements;
  ForEachIndex(i.shape(), [&](const Integers& index) { elements.push_back(index[axis]); });
  return {{std::move(elements)}};
}

Results Broadcasted(const Instruction& i, const std::vector<Integers>& operands) {
  const Integers dimensions = Dimensions(i);
  return Picked(i, operands, [&](const Integers& index, Integers* from) {
    for (size_t d = 0; d < dimensions.size(); ++d) {
      (*from)[d] = index[static_cast<size_t>(dimensions[d])];
    }
  });
}

Results Sliced(const Instruction& i, const std::vector<Integers>& operands) {
  const std::vector<SliceDim> slice = GetSlice(i);
  return Picked(i, operands, [&](const Integers& index, Integers* from) {
    for (size_t d = 0; d < slice.size(); ++d) {
      (*from)[d] = slice[d].start + index[d] * slice[d].stride;
    }
  });
}

Results DynamicallySliced(const Instruction& i, const std::vector<Integers>& operands) {
  const Shape& shape = i.operand(0)->shape();
  return Picked(i, operands, [&](const Integers& index, Integers* from) {
    for (size_t d = 0; d < index.size(); ++d) {
      const int64_t last = shape.dims[d] - i.shape().dims[d];
      (*from)[d] = std::clamp<int64_t>(operands[d + 1][0], 0, last) + index[d];
    }
  });
}

Results Concatenated(const Instruction& i, const std::vector<Integers>& operands) {
  const auto axis = static_cast<size_t>(OnlyDimension(i));
  Integers elements(static_cast<size_t>(i.shape().ElementCount()));
  int64_t before = 0;
  for (size_t o = 0; o < operands.size(); ++o) {
    const Shape& shape = i.operand(o)->shape();
    size_t n = 0;
    ForEachIndex(shape, [&](Integers index) {
      index[axis] += before;
      elements[FlatIndex(i.shape(), index)] = operands[o][n++];
    });
    before += shape.dims[axis];
  }
  return {{std::move(elements)}};
}

Results EvaluatedByElement(const Instruction& i, const std::vector<Integers>& operands) {
  if (!IsElementwise(i) || operands.empty() || operands.size() > 2) return std::nullopt;
  Integers elements;
  for (size_t n = 0; n < operands[0].size() && n < operands.back().size(); ++n) {
    const auto value = EvaluateInteger(i, operands[0][n], operands.back()[n]);
    if (!value) return std::nullopt;
    elements.push_back(*value);
  }
  return {{std::move(elements)}};
}

Results Reversed(const Instruction& i, const std::vector<Integers>& operands) {
  const Integers turned = Dimensions(i);
  return Picked(i, operands, [&](const Integers& index, Integers* from) {
    for (size_t d = 0; d < index.size(); ++d) {
      const bool turns = IsAmong(turned, static_cast<int64_t>(d));
      (*from)[d] = turns ? i.shape().dims[d] - 1 - index[d] : index[d];
    }
  });
}

Results Transposed(const Instruction& i, const std::vector<Integers>& operands) {
  const Integers order = Dimensions(i);
  return Picked(i, operands, [&](const Integers& index, Integers* from) {
    for (size_t d = 0; d < index.size(); ++d) (*from)[static_cast<size_t>(order[d])] = index[d];
  });
}

Results Padded(const Instruction& i, const std::vector<Integers>& operands) {
  const std::vector<PaddingDim> padding = GetPadding(i);
  Integers elements(static_cast<size_t>(i.shape().ElementCount()), operands[1][0]);
  size_t n = 0;
  ForEachIndex(i.operand(0)->shape(), [&](Integers index) {
    bool inside = true;
    for (size_t d = 0; d < index.size(); ++d) {
      index[d] = padding[d].low + index[d] * (1 + padding[d].interior);
      inside = inside && index[d] >= 0 && index[d] < i.shape().dims[d];
    }
    if (inside) elements[FlatIndex(i.shape(), index)] = operands[0][n];
    ++n;
  });
  return {{std::move(elements)}};
}

Results Updated(const Instruction& i, const std::vector<Integers>& operands) {
  Integers elements = operands[0];
  const Shape& update = i.operand(1)->shape();
  size_t n = 0;
  ForEachIndex(update, [&](Integers index) {
    for (size_t d = 0; d < index.size(); ++d) {
      const int64_t last = i.shape().dims[d] - update.dims[d];
      index[d] += std::clamp<int64_t>(operands[d + 2][0], 0, last);
    }
    elements[FlatIndex(i.shape(), index)] = operands[1][n++];
  });
  return {{std::move(elements)}};
}

// Evaluates select and clamp; a scalar operand stands for all elements.
Results Chosen(const Instruction& i, const std::vector<Integers>& operands) {
  const auto element = [&](size_t operand, size_t n) {
    return operands[operand].size() == 1 ? operands[operand][0] : operands[operand][n];
  };
  Integers elements(static_cast<size_t>(i.shape().ElementCount()));
  for (size_t n = 0; n < elements.size(); ++n) {
    if (i.opcode() == Opcode::kSelect) {
      elements[n] = element(element(0, n) != 0 ? 1 : 2, n);
    } else {
      elements[n] = std::min(std::max(element(0, n), element(1, n)), element(2, n));
    }
  }
  return {{std::move(elements)}};
}

// The indices at which the windows of a gather or scatter start.
class WindowStarts {
 public:
  // `map` is start_index_map or scatter_dims_to_operand_dims; dimension `batching[n]` of the array
  // goes with dimension `of_indices[n]` of the indices.
  template <typename Dims>
  WindowStarts(const Shape& indices, const Integers& numbers, int64_t vector_dim, const Dims& map,
         const Dims& batching, const Dims& of_indices)
      : indices_(indices),
        numbers_(numbers),
        vector_dim_(static_cast<size_t>(vector_dim)),
        map_(map.begin(), map.end()),
        batching_(batching.begin(), batching.end()),
        of_indices_(of_indices.begin(), of_indices.end()) {}

  // Returns where the window starts that has the index `window` among all windows.
  Integers Of(const Integers& window, size_t rank) const {
    Integers index = window;
    const bool has_vector = vector_dim_ < indices_.dims.size();
    if (has_vector) index.insert(index.begin() + static_cast<ptrdiff_t>(vector_dim_), 0);
    Integers start(rank, 0);
    for (size_t n = 0; n < map_.size(); ++n) {
      if (has_vector) index[vector_dim_] = static_cast<int64_t>(n);
      start[static_cast<size_t>(map_[n])] = numbers_[FlatIndex(indices_, index)];
    }
    for (size_t n = 0; n < batching_.size(); ++n) {
      start[static_cast<size_t>(batching_[n])] = index[static_cast<size_t>(of_indices_[n])];
    }
    return start;
  }

 private:
  const Shape& indices_;
  const Integers& numbers_;
  size_t vector_dim_;
  Integers map_, batching_, of_indices_;
};

Integers At(const Integers& index, const Integers& dims) {
  Integers part;
  for (const int64_t d : dims) part.push_back(index[static_cast<size_t>(d)]);
  return part;
}

Results Gathered(const Instruction& i, const std::vector<Integers>& operands) {
  const auto& n = i.attrs().gather_dimension_numbers();
  const Shape& shape = i.operand(0)->shape();
  const auto rank = static_cast<int64_t>(shape.dims.size());
  const WindowStarts starts(i.operand(1)->shape(), operands[1], n.index_vector_dim(),
                            n.start_index_map(), n.operand_batching_dims(),
                            n.start_indices_batching_dims());
  const Integers windows =
      Others(static_cast<int64_t>(i.shape().dims.size()), n.offset_dims(), n.offset_dims());
  const Integers inside = Others(rank, n.collapsed_slice_dims(), n.operand_batching_dims());
  return Picked(i, operands, [&](const Integers& index, Integers* from) {
    *from = starts.Of(At(index, windows), shape.dims.size());
    for (size_t d = 0; d < from->size(); ++d) {
      const int64_t size = i.attrs().gather_slice_sizes()[static_cast<int>(d)];
      (*from)[d] = std::clamp<int64_t>((*from)[d], 0, shape.dims[d] - size);
    }
    for (size_t k = 0; k < inside.size(); ++k) {
      const auto offset = static_cast<size_t>(n.offset_dims()[static_cast<int>(k)]);
      (*from)[static_cast<size_t>(inside[k])] += index[offset];
    }
  });
}

Results Scattered(const Instruction& i, const std::vector<Integers>& operands) {
  if (operands.size() != 3) return std::nullopt;
  const auto& n = i.attrs().scatter_dimension_numbers();
  const Shape& updates = i.operand(2)->shape();
  const auto rank = static_cast<int64_t>(i.shape().dims.size());
  const ScalarRegion combine(*i.called()[0]);
  const WindowStarts starts(i.operand(1)->shape(), operands[1], n.index_vector_dim(),
                            n.scatter_dims_to_operand_dims(), n.input_batching_dims(),
                            n.scatter_indices_batching_dims());
  const Integers windows = Others(static_cast<int64_t>(updates.dims.size()),
                                      n.update_window_dims(), n.update_window_dims());
  const Integers inside = Others(rank, n.inserted_window_dims(), n.input_batching_dims());
  Integers elements = operands[0];
  size_t next = 0;
  bool known = true;
  ForEachIndex(updates, [&](const Integers& index) {
    const int64_t update = operands[2][next++];
    Integers at = starts.Of(At(index, windows), i.shape().dims.size());
    Integers size(at.size(), 1), offset(at.size(), 0);
    for (size_t k = 0; k < inside.size(); ++k) {
      const auto of_update = static_cast<size_t>(n.update_window_dims()[static_cast<int>(k)]);
      size[static_cast<size_t>(inside[k])] = updates.dims[of_update];
      offset[static_cast<size_t>(inside[k])] = index[of_update];
    }
    for (size_t d = 0; d < at.size(); ++d) {  // XLA leaves out a window that reaches outside.
      if (at[d] < 0 || at[d] + size[d] > i.shape().dims[d]) return;
      at[d] += offset[d];
    }
    int64_t& element = elements[FlatIndex(i.shape(), at)];
    const auto combined = combine({element, update});
    known = known && combined.has_value();
    if (combined) element = combined->at(0);
  });
  if (!known) return std::nullopt;
  return {{std::move(elements)}};
}

// Operands are the arrays, followed by their initial values.
Results Reduced(const Instruction& i, const std::vector<Integers>& operands) {
  const size_t arrays = operands.size() / 2;
  const Shape& shape = i.operand(0)->shape();
  const ScalarRegion combine(*i.called()[0]);
  const Integers summed = Dimensions(i);
  const Integers kept = Others(static_cast<int64_t>(shape.dims.size()), summed, summed);
  const Shape& result = *Leaves(i.shape()).front();
  std::vector<Integers> results;
  for (size_t n = 0; n < arrays; ++n) {
    results.emplace_back(static_cast<size_t>(result.ElementCount()), operands[arrays + n][0]);
  }
  size_t next = 0;
  bool known = true;
  ForEachIndex(shape, [&](const Integers& index) {
    const size_t to = FlatIndex(result, At(index, kept));
    Integers arguments;
    for (const Integers& so_far : results) arguments.push_back(so_far[to]);
    for (size_t n = 0; n < arrays; ++n) arguments.push_back(operands[n][next]);
    ++next;
    const auto combined = known ? combine(arguments) : std::nullopt;
    known = combined && combined->size() == arrays;
    for (size_t n = 0; known && n < arrays; ++n) results[n][to] = (*combined)[n];
  });
  if (!known) return std::nullopt;
  return results;
}

// Covers windows without base dilation or reversal, such as those of running sums.
Results ReducedInWindows(const Instruction& i, const std::vector<Integers>& operands) {
  const std::vector<WindowDim> window = GetWindow(i);
  const Shape& shape = i.operand(0)->shape();
  Shape positions = shape;
  int64_t work = i.shape().IsArray() ? i.shape().ElementCount() : 0;
  for (size_t d = 0; d < window.size(); ++d) {
    if (window[d].base_dilation != 1 || window[d].reversal) return std::nullopt;
    positions.dims[d] = window[d].size;
    if (__builtin_mul_overflow(work, window[d].size, &work)) return std::nullopt;
  }
  if (operands.size() != 2 || window.size() != shape.dims.size()) return std::nullopt;
  if (work > limits::kKnownElements.most()) {
    limits::kKnownElements.Reached();
    return std::nullopt;
  }
  const ScalarRegion combine(*i.called()[0]);
  Integers elements;
  bool known = true;
  ForEachIndex(i.shape(), [&](const Integers& index) {
    int64_t so_far = operands[1][0];
    ForEachIndex(positions, [&](const Integers& position) {
      Integers from(index.size());
      for (size_t d = 0; d < index.size(); ++d) {
        from[d] = index[d] * window[d].stride + position[d] * window[d].window_dilation -
                  window[d].padding_low;
        if (from[d] < 0 || from[d] >= shape.dims[d]) return;
      }
      const auto combined =
          known ? combine({so_far, operands[0][FlatIndex(shape, from)]}) : std::nullopt;
      known = combined.has_value();
      if (combined) so_far = combined->at(0);
    });
    elements.push_back(so_far);
  });
  if (!known) return std::nullopt;
  return {{std::move(elements)}};
}

Results Sorted(const Instruction& i, const std::vector<Integers>& operands) {
  const Shape& shape = i.operand(0)->shape();
  const auto axis = static_cast<size_t>(OnlyDimension(i));
  const ScalarRegion before(*i.called()[0]);
  std::vector<Integers> results = operands;
  Shape rows = shape;
  rows.dims[axis] = std::min<int64_t>(1, shape.dims[axis]);
  bool known = true;
  ForEachIndex(rows, [&](Integers index) {
    std::vector<size_t> at;
    for (index[axis] = 0; index[axis] < shape.dims[axis]; ++index[axis]) {
      at.push_back(FlatIndex(shape, index));
    }
    std::vector<size_t> order = at;
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      Integers arguments;
      for (const Integers& operand : operands) {
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

void ForEachIndex(const Shape& shape, const std::function<void(const Integers&)>& call) {
  Integers index(shape.dims.size(), 0);
  for (int64_t left = shape.ElementCount(); left > 0; --left) {
    call(index);
    for (size_t d = index.size(); d-- > 0;) {
      if (++index[d] < shape.dims[d]) break;
      index[d] = 0;
    }
  }
}

size_t FlatIndex(const Shape& shape, const Integers& index) {
  int64_t flat = 0;
  for (size_t d = 0; d < index.size(); ++d) flat = flat * shape.dims[d] + index[d];
  return static_cast<size_t>(flat);
}

Results EvaluateIntegers(const Instruction& i, const std::vector<Integers>& operands) {
  switch (i.opcode()) {
    case Opcode::kIota:
      return IotaElements(i);
    case Opcode::kReshape:
      if (i.operand(0)->shape().ElementCount() != i.shape().ElementCount()) return std::nullopt;
      return Results{{operands[0]}};
    case Opcode::kBroadcast:
      return Broadcasted(i, operands);
    case Opcode::kSlice:
      return Sliced(i, operands);
    case Opcode::kDynamicSlice:
      return DynamicallySliced(i, operands);
    case Opcode::kConcatenate:
      return Concatenated(i, operands);
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
      return EvaluatedByElement(i, operands);
  }
}

}  // namespace tpusim::hlo
