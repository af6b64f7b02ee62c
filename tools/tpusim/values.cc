#include "tools/tpusim/values.h"

#include <fmt/format.h>

#include <sstream>
#include <string_view>

#include "configs/chip_schema.h"
#include "configs/config.h"
#include "configs/embedded_files.h"
#include "workloads/collectives/candidates.h"
#include "workloads/collectives/collective.h"
#include "workloads/passes/passes.h"

namespace tpusim::tools {
namespace {

std::vector<std::string> Slices() {
  std::vector<std::string> slices;
  for (const std::string& chip : configs::ChipNames()) {
    for (const std::string& slice : configs::SliceNames(chip)) {
      slices.push_back(fmt::format("{}-{}", chip, slice));
    }
  }
  return slices;
}

std::vector<std::string> Parameters() {
  std::vector<std::string> names = configs::ParameterPaths();
  for (std::string& name : names) name += "=";
  return names;
}

std::vector<std::string> PassNames() {
  std::vector<std::string> names;
  for (const passes::Pass& pass : passes::AllPasses()) names.emplace_back(pass.name);
  return names;
}

std::vector<std::string> Algorithms() {
  std::vector<std::string> names = {"compiler", "best"};
  const std::vector<std::string>& families = collectives::Families();
  names.insert(names.end(), families.begin(), families.end());
  return names;
}

struct NamedValues {
  std::string_view name;
  std::vector<std::string> (*values)();
};
constexpr NamedValues kValues[] = {
    {"CONFIG", Slices},
    {"CHIP", configs::ChipNames},
    {"PARAMETER=VALUE", Parameters},
    {"PASS", PassNames},
    {"PASS{OPTION=VALUE},...", PassNames},
    {"ALGORITHM", Algorithms},
    {"[KIND=]ALGORITHM", Algorithms},
    {"KIND", collectives::KindNames},
    {"SCHEMA", SchemaNames},
};

}  // namespace

std::vector<std::string> ValuesOf(const std::string& value_name) {
  for (const NamedValues& known : kValues) {
    if (known.name == value_name) return known.values();
  }
  // "ops|blocks": words that stand for themselves; capitals do not.
  std::vector<std::string> words;
  if (value_name.find('|') == std::string::npos) return words;
  std::istringstream alternatives(value_name);
  for (std::string word; std::getline(alternatives, word, '|');) {
    if (word.find_first_not_of("abcdefghijklmnopqrstuvwxyz-") == std::string::npos) {
      words.push_back(word);
    }
  }
  return words;
}

std::vector<std::string> SchemaNames() {
  std::vector<std::string> names;
  for (const configs::EmbeddedFile& schema : configs::EmbeddedFiles("schemas"))
    names.emplace_back(schema.name);
  return names;
}

}  // namespace tpusim::tools
