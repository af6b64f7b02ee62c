#include "sim/results/trace/xplane_memory.h"

#include <charconv>
#include <map>
#include <string_view>
#include <vector>

namespace tpusim::results {
namespace {

namespace xm = ::tpusim::xplane;

// Numbers of XLA's element types.
int32_t ElementTypeOf(std::string_view name) {
  static const auto* types = new std::map<std::string_view, int32_t>{
      {"pred", 1},    {"s8", 2},        {"s16", 3},  {"s32", 4},   {"s64", 5},
      {"u8", 6},      {"u16", 7},       {"u32", 8},  {"u64", 9},   {"f16", 10},
      {"f32", 11},    {"f64", 12},      {"c64", 15}, {"bf16", 16}, {"c128", 18},
      {"f8e5m2", 19}, {"f8e4m3fn", 20}, {"s4", 21},  {"u4", 22}};
  const auto it = types->find(name);
  return it == types->end() ? 6 : it->second;
}

// "1,4,2048" at the beginning of `text`.
std::vector<int64_t> NumbersAt(std::string_view text) {
  std::vector<int64_t> numbers;
  const char* at = text.data();
  const char* const last = text.data() + text.size();
  while (at < last) {
    int64_t number = 0;
    const auto [end, error] = std::from_chars(at, last, number);
    if (error != std::errc()) break;
    numbers.push_back(number);
    if (end == last || *end != ',') break;
    at = end + 1;
  }
  return numbers;
}

// "f32[1,4,2048]{2,1,0:T(8,128)}"
void SetShape(std::string_view text, xm::ShapeProto& shape) {
  const size_t open = text.find('[');
  shape.set_element_type(ElementTypeOf(text.substr(0, open)));
  if (open == std::string_view::npos) return;
  for (const int64_t extent : NumbersAt(text.substr(open + 1))) {
    shape.add_dimensions(extent);
    shape.add_is_dynamic_dimension(false);
  }
  const size_t layout = text.find('{', open);
  if (layout == std::string_view::npos) return;
  for (const int64_t dimension : NumbersAt(text.substr(layout + 1))) {
    shape.mutable_layout()->add_minor_to_major(dimension);
  }
}

}  // namespace

xm::HloProto MemoryAtPeak(const isa::ProgramInfo& info) {
  xm::HloProto hlo;
  xm::HloModuleProto& module = *hlo.mutable_hlo_module();
  module.set_name(info.module_name);
  module.set_id(1);
  module.set_entry_computation_name("peak");
  module.set_entry_computation_id(1);
  xm::HloComputationProto& computation = *module.add_computations();
  computation.set_name("peak");
  computation.set_id(1);
  xm::BufferAssignmentProto& assignment = *hlo.mutable_buffer_assignment();
  xm::BufferAllocationProto& heap = *assignment.add_buffer_allocations();
  xm::HeapSimulatorTrace& trace = *assignment.add_heap_simulator_traces();
  trace.set_whole_module_simulation(true);
  int64_t id = 0, offset = 0;
  for (const isa::LiveArray& array : info.live_at_peak) {
    ++id;
    xm::HloInstructionProto& instruction = *computation.add_instructions();
    instruction.set_id(id);
    instruction.set_name(array.name);
    // XProf groups by opcode; whose an array is says more.
    instruction.set_opcode(array.owner);
    SetShape(array.shape, *instruction.mutable_shape());
    xm::OpMetadata& metadata = *instruction.mutable_metadata();
    metadata.set_op_name(array.scope);
    metadata.set_source_file(array.source);
    xm::LogicalBufferProto& buffer = *assignment.add_logical_buffers();
    buffer.set_id(id);
    buffer.set_size(array.bytes.value());
    buffer.mutable_defined_at()->set_instruction_name(array.name);
    buffer.mutable_defined_at()->set_instruction_id(id);
    xm::BufferAllocationProto::Assigned& assigned = *heap.add_assigned();
    assigned.set_logical_buffer_id(id);
    assigned.set_offset(offset);
    assigned.set_size(array.bytes.value());
    offset += array.bytes.value();
    xm::HeapSimulatorTrace::Event& event = *trace.add_events();
    event.set_buffer_id(id);
    event.set_computation_name(computation.name());
    event.set_instruction_name(array.name);
  }
  computation.set_root_id(id);
  heap.set_size(offset);
  for (int64_t n = 1; n <= id; ++n) {
    xm::HeapSimulatorTrace::Event& event = *trace.add_events();
    event = trace.events(static_cast<int>(n - 1));
    event.set_kind(1);
  }
  return hlo;
}

}  // namespace tpusim::results
