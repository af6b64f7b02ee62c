#include "tests/workloads/buffers/validate_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "configs/memory.h"
#include "configs/status_macros.h"
#include "workloads/hlo/analysis/async.h"
#include "workloads/hlo/analysis/donation.h"
#include "workloads/hlo/analysis/in_place.h"
#include "workloads/hlo/ir/opcode.h"

namespace tpusim::buffers {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;
using hlo::Shape;

absl::Status Wrong(const std::string& what) {
  return absl::InternalError("the memory plan is wrong: " + what);
}

// The place of an array, and the value that was written there when it was made.
struct Stored {
  int32_t buffer = -1;   // none: it is in no planned memory
  int64_t contents = 0;  // 0: nothing needs to be there
};
using Leaves = std::vector<Stored>;  // of a shape

// Buffers that come and go, and what they hold.
class Memory {
 public:
  explicit Memory(const MemoryPlan& plan)
      : plan_(plan), allocated_(plan.buffers.size()), held_(plan.buffers.size()) {}

  absl::Status Alloc(int32_t b) {
    const hlo::LiveBuffer& buffer = plan_.buffers[b];
    if (allocated_[b]) return Wrong(NameOf(b) + " is allocated twice");
    allocated_[b] = true;
    Bytes& live = live_[buffer.space];
    live += buffer.bytes;
    peaks_[buffer.space] = std::max(peaks_[buffer.space], live);
    if (buffer.space != hlo::kHbmSpace || buffer.argument) return absl::OkStatus();
    const auto [at, is_new] = heap_.emplace(plan_.offsets[b], b);
    if (!is_new) return Overlap(b, at->second);
    top_ = std::max(top_, plan_.offsets[b] + buffer.bytes);
    if (const auto next = std::next(at);
        next != heap_.end() && plan_.offsets[b] + buffer.bytes > next->first) {
      return Overlap(b, next->second);
    }
    if (at == heap_.begin()) return absl::OkStatus();
    const auto before = std::prev(at);
    const bool apart = before->first + plan_.buffers[before->second].bytes <= plan_.offsets[b];
    return apart ? absl::OkStatus() : Overlap(b, before->second);
  }

  absl::Status Free(int32_t b) {
    if (!allocated_[b]) return Wrong(NameOf(b) + " is freed and was not allocated");
    allocated_[b] = false;
    held_[b] = 0;
    live_[plan_.buffers[b].space] -= plan_.buffers[b].bytes;
    if (plan_.buffers[b].space == hlo::kHbmSpace) heap_.erase(plan_.offsets[b]);
    return absl::OkStatus();
  }

  // New contents.
  absl::StatusOr<Stored> Write(const Instruction& i, int32_t b) {
    if (b < 0) return Stored();
    if (!allocated_[b]) return Wrong(i.name() + " writes " + NameOf(b) + ", which is not there");
    held_[b] = ++written_;
    return Stored{b, written_};
  }

  absl::Status Read(const Instruction& i, const Stored& array) const {
    if (array.buffer < 0 || array.contents == 0) return absl::OkStatus();
    if (held_[array.buffer] == array.contents) return absl::OkStatus();
    return Wrong(fmt::format("{} needs what was in {}, which is {}", i.name(), NameOf(array.buffer),
                             allocated_[array.buffer] ? "overwritten" : "freed"));
  }
  absl::Status Read(const Instruction& i, const Leaves& arrays) const {
    for (const Stored& array : arrays) RETURN_IF_ERROR(Read(i, array));
    return absl::OkStatus();
  }

  // Returns the value in each buffer, less those that one or another branch may have overwritten.
  std::vector<int64_t> held() const { return held_; }
  void Restore(std::vector<int64_t> held) { held_ = std::move(held); }
  void KeepIfIn(const std::vector<int64_t>& other) {
    for (size_t b = 0; b < held_.size(); ++b) {
      if (held_[b] != other[b]) held_[b] = 0;
    }
  }

  // When all is over.
  absl::Status CheckPeaks() const {
    Bytes arguments(0);
    for (size_t b = 0; b < allocated_.size(); ++b) {
      const hlo::LiveBuffer& buffer = plan_.buffers[b];
      if (allocated_[b] != buffer.argument) {
        return Wrong(NameOf(static_cast<int32_t>(b)) + " is never freed");
      }
      if (buffer.argument && buffer.space == hlo::kHbmSpace) arguments += buffer.bytes;
    }
    for (const auto& [space, peak] : peaks_) {
      const bool hbm = space == hlo::kHbmSpace;
      const Bytes planned = hbm ? plan_.LivePeak() : plan_.PeakOf(space);
      if (peak == planned) continue;
      return Wrong(fmt::format("{} bytes of S({}) are live at most, not {}", peak.value(), space,
                               planned.value()));
    }
    const Bytes needed = arguments + top_;
    if (needed == plan_.PeakOf(hlo::kHbmSpace)) return absl::OkStatus();
    return Wrong(fmt::format("arguments and heap take {} bytes, not {}", needed.value(),
                             plan_.PeakOf(hlo::kHbmSpace).value()));
  }

 private:
  std::string NameOf(int32_t b) const {
    const hlo::LiveBuffer& buffer = plan_.buffers[b];
    return fmt::format("buffer {} ({} {})", b, buffer.made_by->name(), buffer.array->ToString());
  }
  absl::Status Overlap(int32_t a, int32_t b) const {
    return Wrong(NameOf(a) + " overlaps " + NameOf(b));
  }

  const MemoryPlan& plan_;
  std::vector<bool> allocated_;
  std::vector<int64_t> held_;  // contents; 0: nothing
  int64_t written_ = 0;
  std::map<Bytes, int32_t> heap_;  // what is allocated in HBM, by offset
  std::map<int64_t, Bytes> live_, peaks_;
  Bytes top_{0};
};

class Execution {
 public:
  Execution(const MemoryPlan& plan, const target::Target& target)
      : plan_(plan), target_(target), memory_(plan) {
    // Of several calls of a computation, the last.
    for (size_t b = 0; b < plan.buffers.size(); ++b) {
      buffer_of_[plan.buffers[b].made_by].emplace_back(plan.buffers[b].leaf,
                                                       static_cast<int32_t>(b));
    }
  }

  absl::Status Run(const hlo::Module& module) {
    for (const int32_t b : plan_.arguments) RETURN_IF_ERROR(memory_.Alloc(b));
    std::vector<Leaves> arguments;
    for (const Instruction* p : module.entry()->parameters()) {
      ASSIGN_OR_RETURN(arguments.emplace_back(), Make(*p, {}));
    }
    RETURN_IF_ERROR(RunComputation(*module.entry(), arguments, nullptr));
    return memory_.CheckPeaks();
  }

 private:
  using Values = std::unordered_map<const Instruction*, Leaves>;

  // Runs a computation; with `carried` its results go to these places and replace their contents.
  absl::Status RunComputation(const Computation& computation, const std::vector<Leaves>& given,
                              Leaves* carried) {
    const auto lives = plan_.computations.find(&computation);
    if (lives == plan_.computations.end()) return Wrong(computation.name() + " is not in it");
    const std::vector<Instruction*> order = computation.Order();
    Values values;
    for (size_t n = 0; n < order.size(); ++n) {
      const Instruction& i = *order[n];
      for (const int32_t b : lives->second.alloc_before[n]) RETURN_IF_ERROR(memory_.Alloc(b));
      if (i.opcode() == Opcode::kParameter) {
        values[&i] = given[i.attrs().parameter_number()];
      } else {
        ASSIGN_OR_RETURN(values[&i], Execute(i, values));
      }
      if (n + 1 == order.size()) {
        const Leaves& results = values.at(computation.root());
        RETURN_IF_ERROR(memory_.Read(*computation.root(), results));
        if (carried != nullptr) RETURN_IF_ERROR(Carry(*computation.root(), results, *carried));
      }
      for (const int32_t b : lives->second.free_after[n]) RETURN_IF_ERROR(memory_.Free(b));
    }
    return absl::OkStatus();
  }

  // Copies what is not there already, all of it at once.
  absl::Status Carry(const Instruction& root, const Leaves& results, Leaves& carried) {
    for (size_t n = 0; n < results.size(); ++n) {
      if (results[n].buffer == carried[n].buffer) {
        carried[n] = results[n];
      } else {
        ASSIGN_OR_RETURN(carried[n], memory_.Write(root, carried[n].buffer));
        if (results[n].contents == 0) carried[n].contents = 0;
      }
    }
    return absl::OkStatus();
  }

  absl::StatusOr<Leaves> Execute(const Instruction& i, const Values& values) {
    const bool names = hlo::ForwardsOperand(i.opcode()) && !hlo::IsControlFlow(i.opcode()) &&
                       !hlo::IsAsyncDone(i.opcode());
    if (names) return values.at(i.operand(0));
    std::vector<Leaves> operands;
    for (const Instruction* o : i.operands()) operands.push_back(values.at(o));
    if (i.opcode() == Opcode::kTuple) {
      Leaves all;
      for (const Leaves& o : operands) all.insert(all.end(), o.begin(), o.end());
      return all;
    }
    if (i.opcode() == Opcode::kGetTupleElement) {
      return Element(i.operand(0)->shape(), i.attrs().tuple_index(), operands[0]);
    }
    if (hlo::IsAsyncDone(i.opcode())) return Done(i, operands[0]);
    for (const Leaves& o : operands) RETURN_IF_ERROR(memory_.Read(i, o));
    if (hlo::IsAsyncStart(i.opcode())) return Start(i, operands);
    if (i.opcode() == Opcode::kWhile) return Loop(i, operands[0]);
    if (i.opcode() == Opcode::kConditional) RETURN_IF_ERROR(Branch(i, operands));
    if (i.opcode() == Opcode::kCall) {
      RETURN_IF_ERROR(RunComputation(*i.called()[0], operands, nullptr));
    }
    return Make(i, operands);
  }

  static Leaves Element(const Shape& tuple, int64_t index, const Leaves& all) {
    size_t first = 0;
    for (int64_t k = 0; k < index; ++k) first += hlo::Leaves(tuple.tuple[k]).size();
    const size_t count = hlo::Leaves(tuple.tuple[index]).size();
    return Leaves(all.begin() + first, all.begin() + first + count);
  }

  // Once would not show what an iteration destroys of what the next one needs.
  absl::StatusOr<Leaves> Loop(const Instruction& i, Leaves carried) {
    for (int iteration = 0; iteration < 2; ++iteration) {
      RETURN_IF_ERROR(RunComputation(*i.called()[1], {carried}, nullptr));
      const Leaves before = carried;
      RETURN_IF_ERROR(RunComputation(*i.called()[0], {before}, &carried));
    }
    return carried;
  }

  absl::Status Branch(const Instruction& i, const std::vector<Leaves>& operands) {
    const std::vector<int64_t> before = memory_.held();
    std::vector<int64_t> after;
    for (size_t b = 0; b < i.called().size(); ++b) {
      memory_.Restore(before);
      RETURN_IF_ERROR(RunComputation(*i.called()[b], {operands[b + 1]}, nullptr));
      if (b > 0) memory_.KeepIfIn(after);
      after = memory_.held();
    }
    return absl::OkStatus();
  }

  // The result is there when the done is; until then the operands are read.
  absl::StatusOr<Leaves> Start(const Instruction& i, const std::vector<Leaves>& operands) {
    Leaves& read = read_by_[&i];
    read.clear();
    for (const Leaves& o : operands) read.insert(read.end(), o.begin(), o.end());
    return Make(i, operands);
  }
  absl::StatusOr<Leaves> Done(const Instruction& i, const Leaves& started) {
    const Instruction& start = hlo::StartOf(i);
    RETURN_IF_ERROR(memory_.Read(i, read_by_.at(&start)));
    if (start.opcode() == Opcode::kAllReduceStart) return started;
    const Leaves result =
        Element(start.shape(), start.opcode() == Opcode::kCopyStart ? 0 : 1, started);
    RETURN_IF_ERROR(memory_.Read(i, result));
    return result;
  }

  // Arrays of its own, or in the places of operands that it updates.
  absl::StatusOr<Leaves> Make(const Instruction& i, const std::vector<Leaves>& operands) {
    const std::vector<const Shape*> shapes = hlo::Leaves(i.shape());
    Leaves result(shapes.size());
    std::vector<bool> updated(shapes.size());
    for (const hlo::InPlaceResult& update : hlo::InPlaceResults(i)) {
      updated[update.leaf] = true;
      result[update.leaf].buffer = operands[update.operand][0].buffer;
    }
    for (size_t n = 0; n < shapes.size(); ++n) {
      if (!updated[n]) {
        ASSIGN_OR_RETURN(result[n].buffer, PlaceOf(i, static_cast<int64_t>(n), *shapes[n]));
        RETURN_IF_ERROR(CheckOverwrites(i, result[n].buffer, operands));
      }
      ASSIGN_OR_RETURN(result[n], memory_.Write(i, result[n].buffer));
      // The scalar core keeps single elements in registers: loops count in the places of constants.
      if (shapes[n]->IsScalar()) result[n].contents = 0;
    }
    return result;
  }

  // Checks that an instruction overwrites its operands only element by element.
  absl::Status CheckOverwrites(const Instruction& i, int32_t buffer,
                               const std::vector<Leaves>& operands) const {
    for (size_t o = 0; buffer >= 0 && o < operands.size(); ++o) {
      for (const Stored& read : operands[o]) {
        if (read.buffer != buffer || hlo::MayOverwrite(i, static_cast<int64_t>(o))) continue;
        return Wrong(fmt::format("{} overwrites its operand {} while it reads it", i.name(), o));
      }
    }
    return absl::OkStatus();
  }

  absl::StatusOr<int32_t> PlaceOf(const Instruction& i, int64_t leaf, const Shape& shape) const {
    int32_t place = -1;
    if (const auto buffers = buffer_of_.find(&i); buffers != buffer_of_.end()) {
      for (const auto& [of, buffer] : buffers->second) {
        if (of == leaf) place = buffer;
      }
    }
    const configs::Memory& space =
        configs::MemoryOfNumber(shape.IsArray() ? shape.layout.memory_space : hlo::kHbmSpace);
    Bytes bytes = space.planned ? target_.PaddedSize(shape) : Bytes(0);
    // Of a start, only one element is an array of its own.
    if (place < 0 && hlo::IsAsyncStart(i.opcode())) bytes = Bytes(0);
    const Bytes planned = place < 0 ? Bytes(0) : plan_.buffers[place].bytes;
    if (planned != bytes) {
      return Wrong(fmt::format("{}, leaf {}: {} bytes for {}", i.name(), leaf, planned.value(),
                               bytes.value()));
    }
    if (place < 0) return place;
    if (plan_.buffers[place].space != space.number) return Wrong(i.name() + ": another memory");
    const int32_t inside = plan_.buffers[place].inside;
    return inside < 0 ? place : inside;
  }

  const MemoryPlan& plan_;
  const target::Target& target_;
  Memory memory_;
  // These maps are looked up, never iterated.
  std::unordered_map<const Instruction*, std::vector<std::pair<int64_t, int32_t>>> buffer_of_;
  std::unordered_map<const Instruction*, Leaves> read_by_;  // starts
};

}  // namespace

absl::Status ValidatePlan(const hlo::Module& module, const MemoryPlan& plan,
                          const target::Target& target) {
  return Execution(plan, target).Run(module);
}

}  // namespace tpusim::buffers
