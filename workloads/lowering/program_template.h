// The programs of all devices at once.
//
// Partitions of an SPMD program do the same, but for the roles that they play in
// collectives and the branches that they take. So it is lowered once, into bodies
// that are the same everywhere and what varies between them; the program of a device is
// made of that by its roles, and calls the bodies that it shares with others. A large
// program takes the memory of one, and what varies once more per distinct program.
#ifndef TPUSIM_WORKLOADS_LOWERING_PROGRAM_TEMPLATE_H_
#define TPUSIM_WORKLOADS_LOWERING_PROGRAM_TEMPLATE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "models/isa/program.h"

namespace tpusim::lowering {

// One of the roles of a device, by its place among them.
struct TemplateRole {
  size_t index = 0;
  std::optional<int32_t> same;  // what it is, if it is the same for all devices
};

class ProgramTemplate {
 public:
  // The instruction of devices that play a role; nullopt: none.
  using OfRole = std::function<std::optional<isa::Instruction>(int32_t role)>;

  template <typename Kind>
  void Add(Kind kind) {
    common_.push_back(isa::Instruction{std::move(kind)});
  }
  void Add(const isa::Body& body) { common_.insert(common_.end(), body.begin(), body.end()); }
  void AddVarying(const TemplateRole& role, OfRole instruction);
  // `iterations`: their names, if each has its own.
  void AddLoop(int64_t count, ProgramTemplate body,
               std::shared_ptr<const isa::Iterations> iterations = nullptr);
  // The role is the branch that is taken.
  void AddBranch(const TemplateRole& role, std::vector<ProgramTemplate> bodies);

  // No more is added.
  void Finish();
  // The program of a device that plays these roles, once finished.
  isa::SharedBody Program(const std::vector<int32_t>& roles) const;

 private:
  // A part that all have in common: the first of an instruction, a loop and a branch that is set.
  struct SharedPart {
    isa::SharedBody common;
    OfRole instruction;
    std::optional<isa::Loop> loop;       // without its body
    size_t role = 0;                     // its place
    std::vector<ProgramTemplate> inner;  // body of the loop, or branches
  };

  // Whether it is the same for all roles.
  bool uniform() const;

  isa::Body common_;  // that is being made
  std::vector<SharedPart> parts_;
};

}  // namespace tpusim::lowering

#endif  // TPUSIM_WORKLOADS_LOWERING_PROGRAM_TEMPLATE_H_
