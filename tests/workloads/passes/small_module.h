// Small modules for the tests of passes.
#ifndef TPUSIM_TESTS_WORKLOADS_PASSES_SMALL_MODULE_H_
#define TPUSIM_TESTS_WORKLOADS_PASSES_SMALL_MODULE_H_

#include <memory>
#include <string>
#include <vector>

#include "configs/config.h"
#include "tests/workloads/passes/fake_costs.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/passes/pipeline/pass.h"
#include "workloads/target/target.h"

namespace tpusim::passes {

using hlo::Instruction;
using hlo::MakeShape;
using hlo::Opcode;
using hlo::PrimitiveType;

class SmallModule {
 public:
  explicit SmallModule(const std::string& config = "v5e-2x2",
                       const std::vector<std::string>& overrides = {})
      : module_("test"), config_(configs::LoadConfig(config, overrides).value()), target_(config_) {
    entry_ = module_.AddComputation("main");
    module_.set_entry(entry_);
    costs_.machine = &target_;
  }

  Instruction* Parameter(std::vector<int64_t> dims, PrimitiveType type = PrimitiveType::kF32) {
    return entry_->AddParameter(parameters_++, MakeShape(type, std::move(dims)), "p");
  }
  Instruction* Add(Opcode op, std::vector<int64_t> dims, std::vector<Instruction*> operands) {
    return entry_->Add(
        op,
        MakeShape(operands.empty() ? PrimitiveType::kF32 : operands[0]->shape().element_type,
                  std::move(dims)),
        operands, hlo::OpcodeName(op));
  }
  Instruction* Dot(std::vector<int64_t> dims, Instruction* lhs, Instruction* rhs) {
    Instruction* dot = Add(Opcode::kDot, std::move(dims), {lhs, rhs});
    auto* numbers = dot->mutable_attrs().mutable_dot_dimension_numbers();
    numbers->add_lhs_contracting_dimensions(1);
    numbers->add_rhs_contracting_dimensions(0);
    return dot;
  }
  void Return(std::vector<Instruction*> values) {
    std::vector<hlo::Shape> shapes;
    for (const Instruction* v : values) shapes.push_back(v->shape());
    entry_->set_root(entry_->Add(Opcode::kTuple, hlo::MakeTupleShape(shapes), values, "result"));
  }

  hlo::Module& module() { return module_; }
  hlo::Computation& entry() { return *entry_; }
  const target::Target& target() const { return target_; }
  // The costs of the chip unless stated.
  FakeCosts& costs() { return costs_; }
  PassContext context() { return {target_, costs_}; }

  std::vector<const Instruction*> Find(Opcode op) const {
    std::vector<const Instruction*> found;
    for (const Instruction* i : entry_->PostOrder()) {
      if (i->opcode() == op) found.push_back(i);
    }
    return found;
  }

 private:
  hlo::Module module_;
  configs::Config config_;
  target::Target target_;
  FakeCosts costs_;
  hlo::Computation* entry_ = nullptr;
  int64_t parameters_ = 0;
};

}  // namespace tpusim::passes

#endif  // TPUSIM_TESTS_WORKLOADS_PASSES_SMALL_MODULE_H_
