// tpusim schema: the JSON Schema of every output.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "configs/embedded_files.h"
#include "configs/names.h"
#include "configs/status_macros.h"
#include "sim/results/report/text.h"
#include "tools/tpusim/command_line/command.h"
#include "tools/tpusim/command_line/help.h"
#include "tools/tpusim/output/console.h"

namespace tpusim::tools {
namespace {

using Json = nlohmann::ordered_json;

Json SchemaOf(std::string_view name) {
  const auto& all = configs::EmbeddedFiles("schemas");
  const auto found = std::ranges::find(all, name, &configs::EmbeddedFile::name);
  TPUSIM_CHECK(found != all.end(), "the parser lets no other name through");
  return Json::parse(found->text);
}

// "urn:tpusim:report:1" -> "report"; what a schema contains of others stands in its own "$defs".
void AddReferenced(const Json& part, Json& definitions) {
  if (part.is_object() && part.contains("$ref")) {
    constexpr std::string_view kUrn = "urn:tpusim:";
    const std::string target = part["$ref"];
    if (target.starts_with(kUrn)) {
      const std::string name = target.substr(kUrn.size(), target.rfind(':') - kUrn.size());
      definitions[name] = SchemaOf(name);
    }
  }
  if (!part.is_structured()) return;
  for (const Json& inner : part) AddReferenced(inner, definitions);
}

std::string SchemaText(const std::string& name) {
  Json schema = SchemaOf(name);
  Json definitions = schema.value("$defs", Json::object());
  AddReferenced(schema, definitions);
  if (!definitions.empty()) schema["$defs"] = std::move(definitions);
  return schema.dump(2) + "\n";
}

std::string SchemaList() {
  std::vector<std::vector<std::string>> table = {{"schema", "<of"}};
  for (const configs::EmbeddedFile& schema : configs::EmbeddedFiles("schemas")) {
    table.push_back({std::string(schema.name), SchemaOf(schema.name)["title"]});
  }
  return results::TableText(table, ResultColumns());
}

}  // namespace

Command AddSchema(CLI::App& parent) {
  auto name = std::make_shared<std::string>();
  CLI::App* app =
      parent.add_subcommand("schema", "Print the JSON Schema of an output, or list them");
  app->add_option("name", *name, "Name of a schema (default: list all)")
      ->type_name("SCHEMA")
      ->check(CLI::Validator(
          [](std::string& given) -> std::string {
            const std::vector<std::string> names = configs::EmbeddedNames("schemas");
            if (std::ranges::find(names, given) != names.end()) return "";
            return fmt::format("no schema \"{}\"; the nearest is {}", given,
                               configs::Nearest(given, names));
          },
          ""));
  AddExamples(*app, {{"tpusim schema", "all of them"},
                     {"tpusim schema report > report.schema.json", "that of reports"}});
  return {app, [name] { return PrintResult(name->empty() ? SchemaList() : SchemaText(*name)); }};
}

}  // namespace tpusim::tools
