#include "workloads/hlo/ir/attributes.h"

#include <algorithm>

namespace tpusim::hlo {
namespace {

using RepeatedInt64 = google::protobuf::RepeatedField<int64_t>;

std::vector<int64_t> ToVector(const RepeatedInt64& field) { return {field.begin(), field.end()}; }
void Assign(const std::vector<int64_t>& values, RepeatedInt64* field) {
  field->Assign(values.begin(), values.end());
}

}  // namespace

std::vector<int64_t> Dimensions(const Instruction& instruction) {
  return ToVector(instruction.attrs().dimensions());
}
void SetDimensions(Instruction* instruction, const std::vector<int64_t>& dimensions) {
  Assign(dimensions, instruction->mutable_attrs().mutable_dimensions());
}
int64_t OnlyDimension(const Instruction& instruction) {
  const auto& dimensions = instruction.attrs().dimensions();
  return dimensions.size() == 1 ? dimensions[0] : -1;
}

bool IsElementwise(const Instruction& instruction) {
  return IsElementwise(instruction.opcode()) ||
         (instruction.opcode() == Opcode::kBitcastConvert &&
          instruction.shape().dims == instruction.operand(0)->shape().dims);
}

DotDims GetDotDims(const Instruction& instruction) {
  const pb::DotDimensionNumbers& proto =
      instruction.opcode() == Opcode::kRaggedDot
          ? instruction.attrs().ragged_dot_dimension_numbers().dot_dimension_numbers()
          : instruction.attrs().dot_dimension_numbers();
  return {ToVector(proto.lhs_contracting_dimensions()),
          ToVector(proto.rhs_contracting_dimensions()), ToVector(proto.lhs_batch_dimensions()),
          ToVector(proto.rhs_batch_dimensions())};
}

void SetDotDims(Instruction* dot, const DotDims& dims) {
  pb::HloInstructionProto& attrs = dot->mutable_attrs();
  pb::DotDimensionNumbers* proto =
      dot->opcode() == Opcode::kRaggedDot
          ? attrs.mutable_ragged_dot_dimension_numbers()->mutable_dot_dimension_numbers()
          : attrs.mutable_dot_dimension_numbers();
  Assign(dims.lhs_contracting, proto->mutable_lhs_contracting_dimensions());
  Assign(dims.rhs_contracting, proto->mutable_rhs_contracting_dimensions());
  Assign(dims.lhs_batch, proto->mutable_lhs_batch_dimensions());
  Assign(dims.rhs_batch, proto->mutable_rhs_batch_dimensions());
}

std::vector<int64_t> FreeDims(int64_t rank, const std::vector<int64_t>& contracting,
                              const std::vector<int64_t>& batch) {
  const auto contains = [](const std::vector<int64_t>& list, int64_t d) {
    return std::ranges::find(list, d) != list.end();
  };
  std::vector<int64_t> free;
  for (int64_t d = 0; d < rank; ++d) {
    if (!contains(contracting, d) && !contains(batch, d)) free.push_back(d);
  }
  return free;
}

std::vector<SliceDim> GetSlice(const Instruction& slice) {
  std::vector<SliceDim> dims;
  for (const auto& d : slice.attrs().slice_dimensions()) {
    dims.push_back({d.start(), d.limit(), d.stride() == 0 ? 1 : d.stride()});
  }
  return dims;
}
void SetSlice(Instruction* slice, const std::vector<SliceDim>& dims) {
  slice->mutable_attrs().clear_slice_dimensions();
  for (const SliceDim& d : dims) {
    auto* out = slice->mutable_attrs().add_slice_dimensions();
    out->set_start(d.start);
    out->set_limit(d.limit);
    out->set_stride(d.stride);
  }
}

std::vector<int64_t> DynamicSliceSizes(const Instruction& dynamic_slice) {
  return ToVector(dynamic_slice.attrs().dynamic_slice_sizes());
}
void SetDynamicSliceSizes(Instruction* dynamic_slice, const std::vector<int64_t>& sizes) {
  Assign(sizes, dynamic_slice->mutable_attrs().mutable_dynamic_slice_sizes());
}

std::vector<PaddingDim> GetPadding(const Instruction& pad) {
  std::vector<PaddingDim> dims;
  for (const auto& d : pad.attrs().padding_config().dimensions()) {
    dims.push_back({d.edge_padding_low(), d.edge_padding_high(), d.interior_padding()});
  }
  return dims;
}
void SetPadding(Instruction* pad, const std::vector<PaddingDim>& dims) {
  pb::PaddingConfig* config = pad->mutable_attrs().mutable_padding_config();
  config->clear_dimensions();
  for (const PaddingDim& d : dims) {
    auto* out = config->add_dimensions();
    out->set_edge_padding_low(d.low);
    out->set_edge_padding_high(d.high);
    out->set_interior_padding(d.interior);
  }
}

std::vector<WindowDim> GetWindow(const Instruction& instruction) {
  const auto at_least_1 = [](int64_t value) { return value == 0 ? 1 : value; };
  std::vector<WindowDim> dims;
  for (const pb::WindowDimension& d : instruction.attrs().window().dimensions()) {
    dims.push_back({d.size(), at_least_1(d.stride()), d.padding_low(), d.padding_high(),
                    at_least_1(d.window_dilation()), at_least_1(d.base_dilation()),
                    d.window_reversal()});
  }
  return dims;
}
void SetWindow(Instruction* instruction, const std::vector<WindowDim>& dims) {
  pb::Window* window = instruction->mutable_attrs().mutable_window();
  window->clear_dimensions();
  for (const WindowDim& d : dims) {
    pb::WindowDimension* out = window->add_dimensions();
    out->set_size(d.size);
    out->set_stride(d.stride);
    out->set_padding_low(d.padding_low);
    out->set_padding_high(d.padding_high);
    out->set_window_dilation(d.window_dilation);
    out->set_base_dilation(d.base_dilation);
    out->set_window_reversal(d.reversal);
  }
}

bool IsRunning(int64_t bound, const WindowDim& dim) {
  if (dim.stride != 1 || dim.window_dilation != 1 || dim.base_dilation != 1) return false;
  const bool forward = dim.padding_low == dim.size - 1 && dim.padding_high == 0;
  const bool backward = dim.padding_high == dim.size - 1 && dim.padding_low == 0;
  return dim.size > 1 && dim.size >= bound && (forward || backward);
}

int64_t WindowPositions(int64_t bound, const WindowDim& dim) {
  const int64_t dilated = bound == 0 ? 0 : (bound - 1) * dim.base_dilation + 1;
  const int64_t padded = dilated + dim.padding_low + dim.padding_high;
  const int64_t extent = dim.size == 0 ? 0 : (dim.size - 1) * dim.window_dilation + 1;
  return padded < extent || padded < 0 ? 0 : (padded - extent) / dim.stride + 1;
}

int64_t FeatureGroupCount(const Instruction& convolution) {
  return std::max<int64_t>(convolution.attrs().feature_group_count(), 1);
}
int64_t BatchGroupCount(const Instruction& convolution) {
  return std::max<int64_t>(convolution.attrs().batch_group_count(), 1);
}

std::vector<SourceTargetPair> SourceTargetPairs(const Instruction& permute) {
  std::vector<SourceTargetPair> pairs;
  for (const auto& p : permute.attrs().source_target_pairs()) {
    pairs.emplace_back(p.source(), p.target());
  }
  return pairs;
}
void SetSourceTargetPairs(Instruction* permute, const std::vector<SourceTargetPair>& pairs) {
  permute->mutable_attrs().clear_source_target_pairs();
  for (const auto& [source, target] : pairs) {
    auto* out = permute->mutable_attrs().add_source_target_pairs();
    out->set_source(source);
    out->set_target(target);
  }
}

std::optional<std::string> FrontendAttribute(const Instruction& instruction,
                                             const std::string& key) {
  const auto& map = instruction.attrs().frontend_attributes().map();
  const auto it = map.find(key);
  if (it == map.end()) return std::nullopt;
  return it->second;
}
void SetFrontendAttribute(Instruction* instruction, const std::string& key,
                          const std::string& value) {
  (*instruction->mutable_attrs().mutable_frontend_attributes()->mutable_map())[key] = value;
}
void RemoveFrontendAttribute(Instruction* instruction, const std::string& key) {
  if (!instruction->attrs().has_frontend_attributes()) return;
  pb::HloInstructionProto& attrs = instruction->mutable_attrs();
  attrs.mutable_frontend_attributes()->mutable_map()->erase(key);
  if (attrs.frontend_attributes().map().empty()) attrs.clear_frontend_attributes();
}

bool IsCallOf(const Instruction& instruction, std::string_view target) {
  return instruction.opcode() == Opcode::kCustomCall &&
         instruction.attrs().custom_call_target() == target;
}

bool IsOffLoaded(const Instruction& start) {
  return start.opcode() == Opcode::kAsyncStart &&
         start.attrs().async_execution_thread() == kSparseCoreThread;
}

const Instruction& WrappedBy(const Instruction& start) {
  return start.opcode() == Opcode::kAsyncStart ? *start.called()[0]->root() : start;
}

std::optional<Placement> PlacementOf(const Instruction& i) {
  if (i.opcode() != Opcode::kCustomCall) return std::nullopt;
  const std::string& target = i.attrs().custom_call_target();
  if (target == kMoveToHost) return Placement::kToHost;
  if (target == "MoveToDevice") return Placement::kToDevice;
  if (target != "annotate_device_placement") return std::nullopt;
  const std::string where = FrontendAttribute(i, "_xla_buffer_placement").value_or("device");
  return IsHostMemoryKind(where) ? Placement::kToHost : Placement::kToDevice;
}

bool IsHostMemoryKind(std::string_view kind) {
  return kind == "pinned_host" || kind == "unpinned_host" || kind == "host";
}

}  // namespace tpusim::hlo
