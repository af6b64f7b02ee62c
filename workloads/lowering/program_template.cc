#include "workloads/lowering/program_template.h"

#include <algorithm>
#include <memory>

namespace tpusim::lowering {
namespace {

// A call takes the memory of one instruction.
constexpr size_t kShortestCalled = 2;

}  // namespace

void ProgramTemplate::Finish() {
  // A program is one body at least, if an empty one.
  if (common_.empty() && !parts_.empty()) return;
  common_.shrink_to_fit();
  SharedPart part;
  part.common = std::make_shared<const isa::Body>(std::exchange(common_, {}));
  parts_.push_back(std::move(part));
}

bool ProgramTemplate::uniform() const {
  return parts_.size() == 1 && parts_.front().common != nullptr;
}

void ProgramTemplate::AddVarying(const TemplateRole& role, OfRole instruction) {
  if (role.same) {
    if (std::optional<isa::Instruction> same = instruction(*role.same)) {
      common_.push_back(*std::move(same));
    }
    return;
  }
  Finish();
  SharedPart part;
  part.instruction = std::move(instruction);
  part.role = role.index;
  parts_.push_back(std::move(part));
}

void ProgramTemplate::AddLoop(int64_t count, ProgramTemplate body,
                              std::shared_ptr<const isa::Iterations> iterations) {
  body.Finish();
  if (body.uniform()) {
    Add(isa::Loop{count, body.Program({}), std::move(iterations)});
    return;
  }
  Finish();
  SharedPart part;
  part.loop = isa::Loop{count, nullptr, std::move(iterations)};
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
  SharedPart part;
  part.role = role.index;
  part.inner = std::move(bodies);
  parts_.push_back(std::move(part));
}

isa::SharedBody ProgramTemplate::Program(const std::vector<int32_t>& roles) const {
  if (uniform()) return parts_.front().common;
  isa::Body program;
  program.reserve(parts_.size());
  for (const SharedPart& part : parts_) {
    if (part.common != nullptr) {
      if (part.common->size() < kShortestCalled) {
        program.insert(program.end(), part.common->begin(), part.common->end());
      } else {
        program.push_back({isa::Call{part.common}});
      }
    } else if (part.instruction) {
      if (auto instruction = part.instruction(roles[part.role])) {
        program.push_back(*std::move(instruction));
      }
    } else if (part.loop) {
      isa::Loop loop = *part.loop;
      loop.body = part.inner.front().Program(roles);
      program.push_back({std::move(loop)});
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
