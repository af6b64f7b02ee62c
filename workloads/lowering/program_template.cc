#include "workloads/lowering/program_template.h"

#include <algorithm>
#include <memory>

namespace tpusim::lowering {
namespace {

// A call takes the memory of one instruction.
constexpr size_t kShortestCalled = 2;

}  // namespace

void ProgramTemplate::Finish() {
  // A program is one stretch at least, if an empty one.
  if (stretch_.empty() && !parts_.empty()) return;
  stretch_.shrink_to_fit();
  Part part;
  part.stretch = std::make_shared<const isa::Body>(std::exchange(stretch_, {}));
  parts_.push_back(std::move(part));
}

bool ProgramTemplate::uniform() const {
  return parts_.size() == 1 && parts_.front().stretch != nullptr;
}

void ProgramTemplate::AddVarying(const TemplateRole& role, OfRole instruction) {
  if (role.same) {
    if (std::optional<isa::Instruction> same = instruction(*role.same)) {
      stretch_.push_back(*std::move(same));
    }
    return;
  }
  Finish();
  Part part;
  part.instruction = std::move(instruction);
  part.role = role.index;
  parts_.push_back(std::move(part));
}

void ProgramTemplate::AddLoop(int64_t count, ProgramTemplate body) {
  body.Finish();
  if (body.uniform()) {
    Add(isa::Loop{count, body.Program({})});
    return;
  }
  Finish();
  Part part;
  part.count = count;
  part.inner.push_back(std::move(body));
  parts_.push_back(std::move(part));
}

void ProgramTemplate::AddBranch(const TemplateRole& role, std::vector<ProgramTemplate> bodies) {
  for (ProgramTemplate& body : bodies) body.Finish();
  const bool all_uniform = std::all_of(bodies.begin(), bodies.end(),
                                       [](const ProgramTemplate& body) { return body.uniform(); });
  if (role.same && all_uniform) {
    isa::Branch branch;
    branch.taken = *role.same;
    for (const ProgramTemplate& body : bodies) branch.bodies.push_back(body.Program({}));
    Add(std::move(branch));
    return;
  }
  Finish();
  Part part;
  part.role = role.index;
  part.inner = std::move(bodies);
  parts_.push_back(std::move(part));
}

isa::SharedBody ProgramTemplate::Program(const std::vector<int32_t>& roles) const {
  if (uniform()) return parts_.front().stretch;
  isa::Body program;
  program.reserve(parts_.size());
  for (const Part& part : parts_) {
    if (part.stretch != nullptr) {
      if (part.stretch->size() < kShortestCalled) {
        program.insert(program.end(), part.stretch->begin(), part.stretch->end());
      } else {
        program.push_back({isa::Call{part.stretch}});
      }
    } else if (part.instruction) {
      if (auto instruction = part.instruction(roles[part.role])) {
        program.push_back(*std::move(instruction));
      }
    } else if (part.count) {
      program.push_back({isa::Loop{*part.count, part.inner.front().Program(roles)}});
    } else {
      isa::Branch branch;
      branch.taken = roles[part.role];
      for (const ProgramTemplate& body : part.inner) branch.bodies.push_back(body.Program(roles));
      program.push_back({std::move(branch)});
    }
  }
  return std::make_shared<const isa::Body>(std::move(program));
}

}  // namespace tpusim::lowering
