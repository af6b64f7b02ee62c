#include "configs/instructions.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "configs/embedded_files.h"
#include "configs/status_macros.h"

namespace tpusim::configs {
namespace {

using Json = nlohmann::json;

struct UnitColumn {
  const char* name;
  const char* text;
  double InstructionCost::*member;
};
constexpr UnitColumn kUnits[] = {{"valu", "VALU", &InstructionCost::valu},
                           {"eup", "EUP", &InstructionCost::eup},
                           {"xlu", "XLU", &InstructionCost::xlu},
                           {"scalar", "scalar", &InstructionCost::scalar},
                           {"mxu", "MXU", &InstructionCost::mxu}};

constexpr double kMostOperations = 1e4;

absl::StatusOr<InstructionRow> ReadRow(const Json& json, const std::string& where) {
  if (!json.is_object()) return UserError(where + ": a row is an object");
  InstructionRow row;
  row.source = where;
  for (const auto& [key, value] : json.items()) {
    if (key == "chips") continue;
    std::string* text = key == "operation" ? &row.operation
                        : key == "type"    ? &row.type
                        : key == "source"  ? &row.source
                                           : nullptr;
    if (text != nullptr) {
      if (!value.is_string()) return UserError(fmt::format("{}: {} must be text", where, key));
      *text = value.get<std::string>();
      continue;
    }
    const auto* unit =
        std::ranges::find_if(kUnits, [&](const UnitColumn& u) { return key == u.name; });
    if (unit == std::end(kUnits)) {
      return UserError(fmt::format(
          "{}: unknown field \"{}\"; operation, type, valu, eup, xlu, scalar, mxu, source", where,
          key));
    }
    const double number = value.is_number() ? value.get<double>() : -1;
    if (!(number >= 0 && number <= kMostOperations)) {
      return UserError(
          fmt::format("{}: {} must be a number from 0 to {}", where, key, kMostOperations));
    }
    row.cost.*(unit->member) = number;
  }
  if (row.operation.empty() || row.type.empty()) {
    return UserError(where + ": a row has an operation and a type");
  }
  return row;
}

// Returns how well a row of the built-in table fits: 0 not at all, 3 if it names the chip.
int Fit(const Json& row, const std::string& chip, const std::string& like) {
  if (!row.contains("chips")) return 1;
  const auto names = [&](const std::string& name) {
    return std::ranges::find(row["chips"], Json(name)) != row["chips"].end();
  };
  return names(chip) ? 3 : names(like) ? 2 : 0;
}

bool IsFloating(std::string_view type) {
  return type.starts_with("f") || type.starts_with("bf") || type.starts_with("c");
}

bool IsNarrowFloating(std::string_view type) {
  return type == "f16" || type.starts_with("f8") || type.starts_with("f4");
}

// Returns the text of "KEY" or "KEY: more", with the sentence of `sources` in place of the key.
std::string SourceOf(const std::string& text, const Json& sources) {
  const std::string key = text.substr(0, text.find_first_of(":;"));
  if (!sources.contains(key)) return text;
  return sources[key].get<std::string>() + text.substr(key.size());
}

}  // namespace

void Instructions::Add(InstructionRow row) {
  std::vector<size_t>& known = by_operation_[row.operation];
  const auto same =
      std::ranges::find_if(known, [&](size_t n) { return rows_[n].type == row.type; });
  if (same != known.end()) {
    rows_[*same] = std::move(row);
    return;
  }
  known.push_back(rows_.size());
  rows_.push_back(std::move(row));
}

const InstructionRow* Instructions::Find(std::string_view operation, std::string_view type) const {
  const auto known = by_operation_.find(operation);
  if (known == by_operation_.end()) return nullptr;
  constexpr std::string_view kWord = "f32";
  const std::string_view like = IsNarrowFloating(type) ? "bf16" : IsFloating(type) ? kWord : "s32";
  for (const std::string_view wanted : {type, like, kWord}) {
    for (const size_t n : known->second) {
      if (rows_[n].type == wanted) return &rows_[n];
    }
  }
  return nullptr;
}

const InstructionCost& Instructions::At(std::string_view operation, std::string_view type) const {
  const InstructionRow* row = Find(operation, type);
  TPUSIM_CHECK(row != nullptr, fmt::format("no row of {} on {}", operation, type));
  return row->cost;
}

Instructions BuiltInInstructions(const std::string& chip, const std::string& like) {
  static const Json* const table = [] {
    const EmbeddedFile& file = EmbeddedFiles("instructions").back();
    return new Json(Json::parse(file.text.begin(), file.text.end()));
  }();
  std::map<std::pair<std::string, std::string>, int> fits;
  Instructions instructions;
  for (const Json& json : (*table)["rows"]) {
    const int fit = Fit(json, chip, like);
    if (fit == 0) continue;
    absl::StatusOr<InstructionRow> row = ReadRow(json, "the table of instructions");
    TPUSIM_CHECK(row.ok(), Message(row.status()));
    int& best = fits[{row->operation, row->type}];
    if (fit < best) continue;
    TPUSIM_CHECK(fit != best, fmt::format("two rows of {} on {}", row->operation, row->type));
    best = fit;
    row->source = SourceOf(row->source, (*table)["sources"]);
    instructions.Add(*std::move(row));
  }
  return instructions;
}

absl::Status AddInstructions(const Json& rows, const std::string& where,
                             Instructions* instructions) {
  if (!rows.is_array()) return UserError(where + " must be a list");
  for (const Json& json : rows) {
    ASSIGN_OR_RETURN(InstructionRow row, ReadRow(json, where));
    if (instructions->Find(row.operation, row.type) == nullptr) {
      return UserError(fmt::format("{}: there is no operation \"{}\"", where, row.operation));
    }
    instructions->Add(std::move(row));
  }
  return absl::OkStatus();
}

std::string ToString(const InstructionCost& cost) {
  std::string text;
  for (const UnitColumn& unit : kUnits) {
    const double number = cost.*(unit.member);
    if (number != 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", number, unit.text);
  }
  return text.empty() ? "0" : text;
}

void AddTo(Digest& digest, const Instructions& instructions) {
  for (const InstructionRow& row : instructions.rows()) {
    const auto& [valu, eup, xlu, scalar, mxu] = row.cost;
    digest.Add(row.operation, row.type, valu, eup, xlu, scalar, mxu);
  }
}

}  // namespace tpusim::configs
