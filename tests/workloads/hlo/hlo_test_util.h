// Small modules by hand and committed exports, for the tests of the IR.
#ifndef TPUSIM_TESTS_WORKLOADS_HLO_HLO_TEST_UTIL_H_
#define TPUSIM_TESTS_WORKLOADS_HLO_HLO_TEST_UTIL_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "configs/status_macros.h"
#include "workloads/hlo/analysis/verify.h"
#include "workloads/hlo/io/import.h"
#include "workloads/hlo/io/printer.h"
#include "workloads/hlo/io/wire.h"
#include "workloads/hlo/ir/attributes.h"

namespace tpusim::hlo {

inline Shape F32(std::vector<int64_t> dims) {
  return MakeShape(PrimitiveType::kF32, std::move(dims));
}
inline Shape S32(std::vector<int64_t> dims) {
  return MakeShape(PrimitiveType::kS32, std::move(dims));
}
inline Shape Pred() { return MakeScalarShape(PrimitiveType::kPred); }

// A module with an entry computation "main"; the last instruction that was
// added is the root.
class TestModule {
 public:
  TestModule() : module_("test"), entry_(module_.AddComputation("main")) {
    module_.set_entry(entry_);
  }

  Instruction* Param(Shape shape) { return Param(entry_, std::move(shape)); }
  static Instruction* Param(Computation* c, Shape shape) {
    Instruction* p = c->AddParameter(c->num_parameters(), std::move(shape), "p");
    c->set_root(p);
    return p;
  }
  Instruction* Add(Opcode op, Shape shape, std::vector<Instruction*> operands) {
    return Add(entry_, op, std::move(shape), std::move(operands));
  }
  static Instruction* Add(Computation* c, Opcode op, Shape shape,
                          std::vector<Instruction*> operands) {
    Instruction* i = c->Add(op, std::move(shape), std::move(operands));
    c->set_root(i);
    return i;
  }
  // (a, b) -> op(a, b) over scalars.
  Computation* Reducer(Opcode op, PrimitiveType type = PrimitiveType::kF32) {
    Computation* c = module_.AddComputation("reducer");
    Instruction* a = Param(c, MakeScalarShape(type));
    Instruction* b = Param(c, MakeScalarShape(type));
    Add(c, op, MakeScalarShape(type), {a, b});
    return c;
  }

  Module& module() { return module_; }
  Computation* entry() { return entry_; }

 private:
  Module module_;
  Computation* entry_;
};

inline std::string ReadBytes(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

inline std::string DataFile(const std::string& name) {
  return std::string(TPUSIM_SOURCE_DIR) + "/tests/workloads/hlo/data/" + name;
}

// Everything that is committed: the modules beside the tests and the examples.
inline std::vector<std::string> CommittedExports() {
  std::vector<std::string> files;
  for (const char* folder : {"/tests/workloads/hlo/data", "/workloads/examples"}) {
    for (const auto& entry :
         std::filesystem::directory_iterator(std::string(TPUSIM_SOURCE_DIR) + folder)) {
      if (entry.path().extension() == ".pb") files.push_back(entry.path().string());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

inline std::unique_ptr<Module> Load(const std::string& file) {
  absl::StatusOr<ImportedWorkload> imported = ImportFile(file);
  EXPECT_TRUE(imported.ok()) << Message(imported.status());
  return imported.ok() ? std::move(imported->module) : nullptr;
}

// Instructions of one opcode, over all computations.
inline std::vector<Instruction*> FindAll(const Module& module, Opcode opcode) {
  std::vector<Instruction*> found;
  for (Computation* c : module.computations()) {
    for (Instruction* i : c->instructions()) {
      if (i->opcode() == opcode) found.push_back(i);
    }
  }
  return found;
}

}  // namespace tpusim::hlo

#endif  // TPUSIM_TESTS_WORKLOADS_HLO_HLO_TEST_UTIL_H_
