#include "models/isa/instruction_count.h"

#include <algorithm>
#include <unordered_map>
#include <variant>
#include <vector>

namespace tpusim::isa {
namespace {

class InstructionCounter {
 public:
  InstructionCounter(const PodProgram& program, int64_t most_passes)
      : program_(program), most_passes_(most_passes) {}

  // Each body is counted once, however often it is used.
  double Count(const Body& body) {
    if (const auto found = counted_.find(&body); found != counted_.end()) return found->second;
    std::vector<int32_t> labels;
    const double count = Count(body, labels);
    counted_.emplace(&body, count);
    return count;
  }

  InstructionCount Run() {
    for (const SharedBody& body : program_.programs) {
      result_.instructions = std::max(result_.instructions, Count(*body));
    }
    return result_;
  }

 private:
  // Returns how many instructions of the body are executed inside of `labels`.
  double Count(const Body& body, std::vector<int32_t>& labels) {
    double count = 0;
    for (const Instruction& instruction : body) {
      if (const auto* call = std::get_if<Call>(&instruction.kind)) {
        count += Count(*call->body, labels);
        continue;
      }
      const auto* unrolled = std::get_if<Loop>(&instruction.kind);
      if (unrolled != nullptr && unrolled->iterations != nullptr) {
        count += static_cast<double>(unrolled->count) * Count(*unrolled->body);
        continue;
      }
      count += 1;
      if (const auto* label = std::get_if<Label>(&instruction.kind)) {
        if (label->begin) {
          labels.push_back(label->op);
        } else if (!labels.empty()) {
          labels.pop_back();
        }
      } else if (const auto* loop = std::get_if<Loop>(&instruction.kind)) {
        const double inside =
            static_cast<double>(std::min(loop->count, most_passes_)) * Count(*loop->body);
        count += inside;
        if (inside > largest_ && !labels.empty()) {
          largest_ = inside;
          result_.loop = program_.info.ops[labels.back()].name;
          result_.passes = loop->count;
        }
      } else if (const auto* branch = std::get_if<Branch>(&instruction.kind)) {
        count += Count(*branch->bodies[branch->taken]);
      } else if (const auto* start = std::get_if<Start>(&instruction.kind)) {
        count += Count(*start->body);
      }
    }
    return count;
  }

  const PodProgram& program_;
  const int64_t most_passes_;
  std::unordered_map<const Body*, double> counted_;  // asked, never iterated over
  double largest_ = 0;
  InstructionCount result_;
};

}  // namespace

InstructionCount CountInstructions(const PodProgram& program, int64_t most_passes) {
  return InstructionCounter(program, most_passes).Run();
}

}  // namespace tpusim::isa
