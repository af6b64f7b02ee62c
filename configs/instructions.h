// The costs of operations on a chip: the only table of them.
//
// A row of configs/compilers/instructions/NAME.json says what an operation takes of the slots of a
// core for one vector register of 32-bit elements that it computes, for an element type and for
// some chips, and where the number is from. Kernels of HLO (workloads/kernels) and bodies of Pallas
// kernels (workloads/mosaic) read the same rows; an operation without a row has no cost, and the
// program does not run.
#ifndef TPUSIM_CONFIGS_INSTRUCTIONS_H_
#define TPUSIM_CONFIGS_INSTRUCTIONS_H_

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "configs/digest.h"

namespace tpusim::configs {

// Operations of each unit per register. `scalar` counts bundles of the scalar core, `mxu` products
// on the arrays.
struct InstructionCost {
  double valu = 0, eup = 0, xlu = 0, scalar = 0, mxu = 0;

  friend bool operator==(const InstructionCost&, const InstructionCost&) = default;
};

struct InstructionRow {
  std::string operation;  // as HLO writes it: "sine"
  std::string type;       // of the elements that are computed on: "f32"
  InstructionCost cost;
  std::string source;
};

// The rows of one chip.
class Instructions {
 public:
  // Replaces a row of the same operation and type.
  void Add(InstructionRow row);

  // Returns the row of an operation on a type. If the table has none, returns the row of the type
  // that stands for it ("bf16" for narrow floats, "f32" for other floats, "s32" for integers), else
  // the row of f32. Null: there is none.
  const InstructionRow* Find(std::string_view operation, std::string_view type) const;
  // Returns the cost of a row that the built-in table has.
  const InstructionCost& At(std::string_view operation, std::string_view type = "f32") const;

  // Operations in the order of the file.
  const std::vector<InstructionRow>& rows() const { return rows_; }

 private:
  struct TextHash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };

  std::vector<InstructionRow> rows_;
  std::unordered_map<std::string, std::vector<size_t>, TextHash, std::equal_to<>> by_operation_;
};

// Returns the rows of the built-in table for a chip: its own, else those of the chip that it is
// like, else those of all chips.
Instructions BuiltInInstructions(const std::string& chip, const std::string& like);

// Adds the rows of a user's chip file, each {"operation", "type", units, "source"}; a row without a
// source has the file as its source.
absl::Status AddInstructions(const nlohmann::json& rows, const std::string& where,
                             Instructions* instructions);

// "147 VALU, 2 EUP": the units that an operation takes at all.
std::string ToString(const InstructionCost& cost);

void AddTo(Digest& digest, const Instructions& instructions);

}  // namespace tpusim::configs

#endif  // TPUSIM_CONFIGS_INSTRUCTIONS_H_
