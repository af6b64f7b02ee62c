#include "workloads/kernels/tiling/kernel_library.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>
#include <utility>

#include "configs/memory.h"
#include "configs/status_macros.h"
#include "models/timing/kernel_steps.h"
#include "models/timing/kernel_time.h"
#include "workloads/kernels/tiling/kernels.h"

namespace tpusim::kernels {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;
using hlo::Shape;

// Writes values so that no two sequences of them read the same: whatever has no fixed
// length is preceded by it.
class FormWriter {
 public:
  std::string Take() { return std::move(form_); }

  // Seven bits to a byte, as in the wire format.
  void Number(int64_t value) {
    auto rest = static_cast<uint64_t>(value);
    // number: a varint
    for (; rest >= 0x80; rest >>= 7) form_.push_back(static_cast<char>((rest & 0x7f) | 0x80));
    form_.push_back(static_cast<char>(rest));
  }

  void Numbers(const std::vector<int64_t>& values) {
    Number(static_cast<int64_t>(values.size()));
    for (const int64_t value : values) Number(value);
  }

  void Text(const std::string& text) {
    Number(static_cast<int64_t>(text.size()));
    form_ += text;
  }

  void OneShape(const Shape& shape) {
    Number(static_cast<int64_t>(shape.element_type));
    if (shape.IsTuple()) {
      Number(static_cast<int64_t>(shape.tuple.size()));
      for (const Shape& element : shape.tuple) OneShape(element);
      return;
    }
    Numbers(shape.dims);
    Numbers(shape.layout.minor_to_major);
    Number(static_cast<int64_t>(shape.layout.tiles.size()));
    for (const std::vector<int64_t>& tile : shape.layout.tiles) Numbers(tile);
    Number(shape.layout.memory_space);
    Number(shape.layout.element_size_in_bits);
    Text(shape.layout.other);
  }

  // An instruction without what leads into it.
  void Node(const Instruction& i) {
    Number(static_cast<int64_t>(i.opcode()));
    OneShape(i.shape());
    Attributes(i);
    Number(static_cast<int64_t>(i.called().size()));
    for (const Computation* called : i.called()) Inside(*called);
  }

  // A computation: instructions in the order in which kernels see them, operands and
  // users by their place in it.
  void Inside(const Computation& computation) {
    const std::vector<Instruction*> order = computation.PostOrder();
    std::unordered_map<const Instruction*, int64_t> place;
    for (const Instruction* i : order) place.emplace(i, static_cast<int64_t>(place.size()));
    Number(static_cast<int64_t>(order.size()));
    for (const Instruction* i : order) {
      Node(*i);
      Places(i->operands(), place);
      Places(i->users(), place);
    }
    Number(place.at(computation.root()));
  }

 private:
  void Places(const std::vector<Instruction*>& instructions,
              const std::unordered_map<const Instruction*, int64_t>& place) {
    Number(static_cast<int64_t>(instructions.size()));
    for (const Instruction* i : instructions) Number(place.at(i));
  }

  // Adds all attributes but those that say where the instruction comes from.
  void Attributes(const Instruction& i) {
    Text(i.AttributeBytes());
    if (!i.attrs().has_frontend_attributes()) {
      Number(0);
      return;
    }
    std::string text;
    {
      google::protobuf::io::StringOutputStream stream(&text);
      google::protobuf::io::CodedOutputStream coded(&stream);
      coded.SetSerializationDeterministic(true);
      i.attrs().frontend_attributes().SerializeToCodedStream(&coded);
    }
    Text(text);
  }

  std::string form_;
};

bool IsOtherSince(const Computation& computation, int64_t change) {
  return computation.ChangedSince(change) ||
         std::ranges::any_of(computation.callees(),
                             [&](const Computation* c) { return IsOtherSince(*c, change); });
}

// Whether the form of an instruction may be another than it was after that change.
bool IsOtherSince(const Instruction& i, int64_t change) {
  return i.ChangedSince(change) ||
         std::ranges::any_of(i.operands(),
                             [&](const Instruction* o) { return o->ChangedSince(change); }) ||
         std::ranges::any_of(i.called(),
                             [&](const Computation* c) { return IsOtherSince(*c, change); });
}

// Leaves of a shape in pre-order, as hlo::Leaves has them.
void PlaceLeaves(Shape& shape, const std::vector<bool>& there, int64_t space, size_t& leaf) {
  if (shape.IsTuple()) {
    for (Shape& element : shape.tuple) PlaceLeaves(element, there, space, leaf);
    return;
  }
  if (there[leaf++] && shape.layout.memory_space == hlo::kHbmSpace) {
    shape.layout.memory_space = space;
  }
}

// A kernel apart from its program, on parameters, with arrays in another memory: by array,
// operands first, then the leaves of the result.
struct LoneKernel {
  hlo::Module module{"kernel"};
  Instruction* kernel = nullptr;

  LoneKernel(const Instruction& i, const std::vector<bool>& there, int64_t space) {
    Computation* computation = module.AddComputation("kernel");
    module.set_entry(computation);
    std::unordered_map<const Instruction*, Instruction*> parameters;
    std::vector<Instruction*> operands;
    size_t leaf = 0;
    for (const Instruction* o : i.operands()) {
      Instruction*& parameter = parameters[o];
      if (parameter == nullptr) {
        const auto number = static_cast<int64_t>(parameters.size()) - 1;
        parameter = computation->AddParameter(number, o->shape(), "operand");
      }
      leaf = operands.size();
      Shape shape = parameter->shape();
      if (shape.IsArray()) PlaceLeaves(shape, there, space, leaf);
      parameter->set_shape(std::move(shape));
      operands.push_back(parameter);
    }
    leaf = operands.size();
    Shape result = i.shape();
    PlaceLeaves(result, there, space, leaf);
    kernel = computation->Add(i.opcode(), std::move(result), operands, "", &i);
    std::vector<Computation*> called;
    for (const Computation* c : i.called()) called.push_back(module.CloneComputation(*c));
    kernel->set_called(std::move(called));
    computation->set_root(kernel);
  }
};

}  // namespace

KernelCost CostOf(const configs::ChipParams& chip, const isa::Kernel& kernel) {
  return {timing::LaunchTime(chip, kernel), timing::KernelTime(chip, kernel),
          timing::TrafficOf(kernel), timing::WindowBytes(kernel)};
}

PlaceableKernel::PlaceableKernel(size_t operands, size_t results, const Cost& of_this_grid,
                                 Cost built)
    : operands_(operands),
      results_(results),
      built_(std::move(built)),
      saved_(arrays()),
      moved_(arrays()) {
  const KernelCost here = of_this_grid(std::vector<bool>(arrays(), false));
  const KernelCost there = of_this_grid(std::vector<bool>(arrays(), true));
  const Bytes bytes = here.moved();
  for (size_t array = 0; array < arrays(); ++array) {
    std::vector<bool> alone(arrays(), false);
    alone[array] = true;
    const KernelCost one = of_this_grid(alone);
    moved_[array] = bytes - one.moved();
    const double share = bytes > Bytes(0) ? Ratio(moved_[array], bytes) : 0;
    saved_[array] = std::max(
        {Picoseconds(0), here.time - one.time, timing::Scaled(here.time - there.time, share)});
  }
}

const KernelCost& PlaceableKernel::With(const std::vector<bool>& there) {
  const auto known = costs_.find(there);
  return known != costs_.end() ? known->second : costs_.emplace(there, built_(there)).first->second;
}

std::string CanonicalForm(const Instruction& instruction) {
  FormWriter form;
  form.Node(instruction);
  // Of operands outside, only shapes count, and whether two are the same value.
  const std::vector<Instruction*>& operands = instruction.operands();
  form.Number(static_cast<int64_t>(operands.size()));
  for (const Instruction* operand : operands) {
    form.OneShape(operand->shape());
    form.Number(std::find(operands.begin(), operands.end(), operand) - operands.begin());
  }
  return form.Take();
}

absl::StatusOr<KernelLibrary::Entry*> KernelLibrary::Find(const Instruction& instruction) {
  ++requests_;
  const auto known = known_.find(&instruction);
  if (known != known_.end() && !IsOtherSince(instruction, known->second.change)) {
    return known->second.entry;
  }
  ASSIGN_OR_RETURN(Entry* const entry, FindByForm(instruction));
  known_[&instruction] = {hlo::LastChange(), entry};
  return entry;
}

absl::StatusOr<KernelLibrary::Entry*> KernelLibrary::FindByForm(const Instruction& instruction) {
  std::string form = CanonicalForm(instruction);
  const auto known = entries_.find(form);
  if (known != entries_.end()) return &known->second;
  Entry entry;
  ASSIGN_OR_RETURN(entry.timed.kernel, BuildKernel(instruction, target_));
  static_cast<KernelCost&>(entry.timed) = kernels::CostOf(target_.chip(), entry.timed.kernel);
  const std::vector<Instruction*>& operands = instruction.operands();
  for (const isa::Window& window : entry.timed.kernel.windows) {
    int64_t of = -1;
    if (window.operand != instruction.name()) {
      const auto named = std::find_if(operands.begin(), operands.end(), [&](const Instruction* o) {
        return o->name() == window.operand;
      });
      TPUSIM_CHECK(named != operands.end(), "a window of no operand of its kernel");
      of = named - operands.begin();
    }
    entry.operand_of_window.push_back(of);
  }
  return &entries_.emplace(std::move(form), std::move(entry)).first->second;
}

absl::StatusOr<TimedKernel> KernelLibrary::Build(const Instruction& instruction) {
  ASSIGN_OR_RETURN(const Entry* entry, Find(instruction));
  TimedKernel timed = entry->timed;
  for (size_t w = 0; w < timed.kernel.windows.size(); ++w) {
    const int64_t of = entry->operand_of_window[w];
    timed.kernel.windows[w].operand =
        of < 0 ? instruction.name() : instruction.operand(static_cast<size_t>(of))->name();
  }
  return timed;
}

absl::StatusOr<KernelCost> KernelLibrary::CostOf(const Instruction& instruction) {
  ASSIGN_OR_RETURN(const Entry* entry, Find(instruction));
  return entry->timed;
}

absl::StatusOr<PlaceableKernel*> KernelLibrary::PlaceableOf(const Instruction& instruction,
                                                            int64_t space) {
  ASSIGN_OR_RETURN(Entry * entry, Find(instruction));
  std::unique_ptr<PlaceableKernel>& placeable = entry->placeable[space];
  if (placeable != nullptr) return placeable.get();
  const isa::Kernel& kernel = entry->timed.kernel;  // kept with the entry
  const size_t operands = instruction.operands().size();
  const size_t results = hlo::Leaves(instruction.shape()).size();
  // By window, the number of its array; -1: of none that could move.
  std::vector<int64_t> arrays;
  auto result = static_cast<int64_t>(operands);
  for (size_t w = 0; w < kernel.windows.size(); ++w) {
    const bool output = kernel.windows[w].kind == isa::WindowKind::kOutput;
    const int64_t array = output ? result++ : entry->operand_of_window[w];
    arrays.push_back(array < static_cast<int64_t>(operands + results) ? array : -1);
  }
  // An array moves with all windows on it.
  const auto of_this_grid = [this, &kernel, arrays, space](const std::vector<bool>& there) {
    isa::Kernel placed = kernel;
    for (size_t w = 0; w < placed.windows.size(); ++w) {
      if (arrays[w] < 0 || !there[static_cast<size_t>(arrays[w])]) continue;
      if (placed.windows[w].space != isa::MemorySpace::kHbm) continue;
      placed.windows[w].space = configs::MemoryOfNumber(space).space;
    }
    return kernels::CostOf(target_.chip(), placed);
  };
  const std::vector<bool> nowhere(operands + results, false);
  const auto built = [this, space, of_this_grid,
                      here = std::make_shared<const LoneKernel>(instruction, nowhere, space)](
                         const std::vector<bool>& there) {
    const absl::StatusOr<const Entry*> entry =
        FindByForm(*LoneKernel(*here->kernel, there, space).kernel);
    // That it cannot be built is for the lowering to say; the grid stays.
    return entry.ok() ? static_cast<const KernelCost&>((*entry)->timed) : of_this_grid(there);
  };
  placeable = std::make_unique<PlaceableKernel>(operands, results, of_this_grid, built);
  return placeable.get();
}

}  // namespace tpusim::kernels
