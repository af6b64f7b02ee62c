#include "tests/configs/json_schemas.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "configs/chip_schema.h"
#include "configs/names.h"

namespace tpusim::configs {
namespace {

using Schema = nlohmann::ordered_json;  // keeps the order of fields

// "whole_bytes_from_1_to_1e+15"; equal names are equal definitions.
std::string DefinitionName(const Parameter& parameter) {
  if (parameter.unit == kFlagUnit) return parameter.unit;
  if (!parameter.words.empty()) return Join(parameter.words, "_or_");
  return fmt::format("{}{}_from_{}_to_{}", parameter.integer ? "whole_" : "", parameter.unit,
                     FormatNumber(parameter.minimum), FormatNumber(parameter.maximum));
}

// Returns the schema of a row's value: a number in its range, a boolean, or a word.
Schema ValueSchema(const Parameter& parameter) {
  if (parameter.unit == kFlagUnit) return {{"type", "boolean"}};
  if (!parameter.words.empty()) return {{"enum", parameter.words}};
  return {{"type", parameter.integer ? "integer" : "number"},
          {"minimum", parameter.minimum},
          {"maximum", parameter.maximum}};
}

Schema RowSchema(const Parameter& parameter, const std::vector<std::string>& texts) {
  const Schema text = {{"type", "string"}};
  Schema properties = {{"value", ValueSchema(parameter)},
                       {"unit", {{"const", parameter.unit}}},
                       {"source", {{"type", "string"}, {"minLength", 1}}}};
  for (const std::string& name : texts) properties[name] = text;
  return {{"type", "object"},
          {"additionalProperties", false},
          {"required", {"value", "unit", "source"}},
          {"properties", properties}};
}

Schema SlicesSchema() {
  return {{"type", "array"},
          {"items", {{"type", "string"}, {"pattern", "^[0-9]+x[0-9]+(x[0-9]+)?$"}}}};
}

}  // namespace

std::string ChipJsonSchema() {
  Schema root = {
      {"$schema", "https://json-schema.org/draft/2020-12/schema"},
      {"title", "tpusim chip"},
      {"description",
       "A chip of configs/chips, or one of your own that names a base and gives what differs."},
      {"type", "object"},
      {"additionalProperties", false},
      {"properties",
       {{"$schema", {{"type", "string"}}},
        {"name", {{"type", "string"}}},
        {"description", {{"type", "string"}}},
        {"base", {{"type", "string"}, {"description", "chip to start from"}}}}}};
  // One definition per unit and range; parameters refer to them.
  Schema definitions = Schema::object();
  for (const Parameter& parameter : ChipParameters()) {
    const std::string definition = DefinitionName(parameter);
    definitions[definition] = {
        {"anyOf", Schema::array({RowSchema(parameter, {"note"}), ValueSchema(parameter)})}};
    // Walk to the object that holds the last component.
    Schema* at = &root;
    std::string_view rest = parameter.path;
    for (size_t dot = rest.find('.'); dot != std::string_view::npos; dot = rest.find('.')) {
      Schema& child = (*at)["properties"][std::string(rest.substr(0, dot))];
      if (child.is_null()) child = {{"type", "object"}, {"additionalProperties", false}};
      at = &child;
      rest.remove_prefix(dot + 1);
    }
    (*at)["properties"][std::string(rest)] = {{"description", parameter.description},
                                              {"$ref", "#/$defs/" + definition}};
  }
  const Schema lengths = {{"type", "array"},
                          {"items", {{"type", "integer"}, {"minimum", 1}}},
                          {"minItems", 2},
                          {"maxItems", 3}};
  const Schema text = {{"type", "string"}};
  root["properties"]["topology"] = {
      {"description", "which slices exist and which of their axes close into rings"},
      {"type", "object"},
      {"additionalProperties", false},
      {"properties",
       {{"axes", {{"type", "integer"}, {"minimum", 2}, {"maximum", 3}}},
        {"max", lengths},
        {"wrap", {{"enum", {"never", "full_pod", "axis_length_16", "whole_cubes_of_4"}}}},
        {"twisted", {{"type", "boolean"}}},
        {"slices", SlicesSchema()},
        {"source", text},
        {"note", text}}}};
  root["properties"]["device_order"] = {
      {"description", "how make_mesh of JAX places a logical mesh on this chip"},
      {"type", "object"},
      {"additionalProperties", false},
      {"properties",
       {{"enumeration_tile", lengths},
        {"splits_physical_axes", {{"type", "boolean"}}},
        {"general", {{"enum", {"torus", "listed"}}}},
        {"chip_first_since",
         {{"type", "string"},
          {"description", "the first JAX that gives a mesh axis the devices of a chip first"}}},
        {"trays",
         {{"type", "array"},
          {"items",
           {{"type", "object"},
            {"additionalProperties", false},
            {"required", {"order"}},
            {"properties",
             {{"shape", lengths},
              {"within", lengths},
              {"last_axis_only", {{"type", "boolean"}}},
              {"repeats", {{"type", "integer"}, {"minimum", 1}}},
              {"numbering", {{"enum", {"chips", "listed"}}}},
              {"one_axis_only", {{"type", "boolean"}}},
              {"since",
               {{"type", "string"}, {"description", "the first JAX that has this order"}}},
              {"order",
               {{"type", "array"}, {"items", {{"type", "integer"}, {"minimum", 0}}}}}}}}}}},
        {"source", text},
        {"note", text}}}};
  Schema& compiler = root["properties"]["compiler"];
  compiler["description"] =
      "what the TPU compiler does on this chip, where that differs from the base";
  compiler["properties"]["like"] = {
      {"type", "string"}, {"description", "the chip whose values of the compiler hold; or \"\""}};
  compiler["properties"]["source"] = compiler["properties"]["note"] = text;
  Schema operations = {{"operation", text}, {"type", text}, {"source", text}};
  for (const char* unit : {"valu", "eup", "xlu", "scalar", "mxu"}) {
    operations[unit] = {{"type", "number"}, {"minimum", 0}, {"maximum", 10000}};
  }
  root["properties"]["instructions"] = {
      {"description", "what operations cost on this chip, where that differs from the base"},
      {"type", "array"},
      {"items",
       {{"type", "object"},
        {"additionalProperties", false},
        {"required", {"operation", "type"}},
        {"properties", operations}}}};
  root["$defs"] = definitions;
  return root.dump(2) + "\n";
}

std::string CompilerJsonSchema() {
  const Schema text = {{"type", "string"}};
  const Schema object = {{"type", "object"}, {"additionalProperties", false}};
  Schema chips = {{"type", "object"},
                  {"description", "by chip, whose compiled programs its values are from"},
                  {"additionalProperties", object}};
  chips["additionalProperties"]["properties"] = {{"like", text}, {"source", text}};
  Schema values = object;
  Schema every_value = Schema::array();
  Schema definitions = Schema::object();
  for (const Parameter& parameter : ChipParameters()) {
    if (!IsPolicy(parameter)) continue;
    Schema row = RowSchema(parameter, {"bracket", "flag", "note"});
    row["required"].push_back("bracket");
    Schema of_chip = RowSchema(parameter, {"bracket", "note"});
    of_chip["properties"].erase("unit");
    of_chip["required"] = {"value"};
    row["properties"]["by_chip"] = {{"type", "object"}, {"additionalProperties", of_chip}};
    const std::string name = parameter.path.substr(kPolicyPrefix.size());
    const std::string definition = DefinitionName(parameter);
    definitions[definition] = row;
    values["properties"][name] = {{"description", parameter.description},
                                  {"$ref", "#/$defs/" + definition}};
    every_value.push_back(name);
  }
  Schema root = {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                 {"title", "tpusim compiler"},
                 {"description",
                  "What a version of the TPU compiler does where costs do not decide, a row per "
                  "value: how it was found, and the nearest values that were seen to behave "
                  "otherwise."}};
  root.update(object);
  root["required"] = {"name", "build", "values"};
  // The first file has all values, later ones what differs.
  root["anyOf"] = {{{"required", {"like"}}},
                   {{"required", {"chips"}},
                    {"properties", {{"values", {{"required", every_value}}}}}}};
  root["properties"] = {{"$schema", text},
                        {"name", text},
                        {"like", {{"type", "string"},
                                  {"description", "the file that has the values that this one "
                                                  "leaves out"}}},
                        {"build", {{"type", "string"},
                                   {"pattern", "^cl/[0-9]+$"},
                                   {"description", "what the library calls itself"}}},
                        {"description", text},
                        {"chips", chips},
                        {"values", values}};
  root["$defs"] = definitions;
  return root.dump(2) + "\n";
}

}  // namespace tpusim::configs
