#include "configs/chip_schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>

#include "configs/chip_file.h"
#include "configs/config.h"
#include "configs/status_macros.h"
#include "tests/configs/json_schemas.h"

namespace tpusim::configs {
namespace {

using ::testing::HasSubstr;

std::string ReadText(const std::string& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

TEST(ChipSchemaTest, PathsAreUniqueAndEndInTheirUnit) {
  // Suffixes that promise a unit must keep the promise.
  const std::vector<std::pair<std::string, std::string>> suffixes = {
      {"_ns", "ns"},           {"_cycles", "cycles"}, {".bytes", "bytes"},
      {"_bytes", "bytes"},     {"_hz", "hertz"},      {"flops_per_second", "flops_per_second"},
      {"_efficiency", "ratio"}};
  std::set<std::string> seen;
  for (const Parameter& p : ChipParameters()) {
    EXPECT_TRUE(seen.insert(p.path).second) << p.path;
    EXPECT_LT(p.minimum, p.maximum) << p.path;
    EXPECT_FALSE(p.description.empty()) << p.path;
    for (const auto& [suffix, unit] : suffixes) {
      if (p.path.ends_with(suffix)) {
        EXPECT_EQ(p.unit, unit) << p.path;
      }
    }
    EXPECT_EQ(p.path.ends_with("bytes_per_second"), p.unit == "bytes_per_second") << p.path;
    EXPECT_EQ(FindParameter(p.path), &p);
  }
  EXPECT_EQ(FindParameter("chip.mxu"), nullptr);
}

TEST(ChipSchemaTest, EveryRowHasAMemberOfItsOwn) {
  // Writing one row must change that row and no other.
  for (const Parameter& written : ChipParameters()) {
    ChipParams chip;
    for (const Parameter& p : ChipParameters()) p.set(chip, p.minimum);
    std::vector<double> before;
    for (const Parameter& p : ChipParameters()) before.push_back(p.get(chip));
    const double value = written.integer ? written.minimum + 1 : written.maximum;
    ASSERT_TRUE(SetParameter(written, value, &chip).ok());
    for (size_t i = 0; i < before.size(); ++i) {
      const Parameter& p = ChipParameters()[i];
      EXPECT_EQ(p.get(chip), &p == &written ? value : before[i]) << written.path << " " << p.path;
    }
  }
}

TEST(ChipSchemaTest, ConvertsUnits) {
  ChipParams chip;
  ASSERT_TRUE(SetParameter(*FindParameter("ici.hop_latency_ns"), 0.5, &chip).ok());
  EXPECT_EQ(chip.ici.hop_latency, Picoseconds(500));
  ASSERT_TRUE(SetParameter(*FindParameter("chip.hbm.bytes"), 17179869184.0, &chip).ok());
  EXPECT_EQ(chip.hbm.bytes, Bytes(16 * kGiB));
  ASSERT_TRUE(SetParameter(*FindParameter("chip.clock_hz"), 1.5e9, &chip).ok());
  EXPECT_EQ(chip.clock, Hertz(1.5e9));
}

TEST(ChipSchemaTest, RefusesValuesOutOfRange) {
  ChipParams chip;
  const Parameter& efficiency = *FindParameter("chip.hbm.efficiency");
  const absl::Status over = SetParameter(efficiency, 1.1, &chip);
  EXPECT_FALSE(over.ok());
  EXPECT_THAT(Message(over),
              HasSubstr("chip.hbm.efficiency = 1.1 is out of range: from 0.01 to 1"));
  EXPECT_FALSE(SetParameter(efficiency, -1, &chip).ok());
  EXPECT_FALSE(SetParameter(efficiency, std::numeric_limits<double>::quiet_NaN(), &chip).ok());
  EXPECT_FALSE(SetParameter(efficiency, std::numeric_limits<double>::infinity(), &chip).ok());
  const absl::Status fraction = SetParameter(*FindParameter("chip.mxu.rows"), 1.5, &chip);
  EXPECT_THAT(Message(fraction), HasSubstr("chip.mxu.rows = 1.5 must be a whole number"));
}

TEST(ChipSchemaTest, NumbersPrintShortAndExact) {
  EXPECT_EQ(FormatNumber(128), "128");
  EXPECT_EQ(FormatNumber(17179869184.0), "17179869184");
  EXPECT_EQ(FormatNumber(0.94), "0.94");
  EXPECT_EQ(FormatNumber(1.97e14), "1.97e+14");
  EXPECT_EQ(FormatNumber(1.0 / 3), "0.3333333333333333");
}

// The committed schemas are generated; set TPUSIM_UPDATE=1 to write them anew.
TEST(ChipSchemaTest, CommittedSchemasAreTheTable) {
  for (const auto& [folder, schema] :
       {std::pair("chips", ChipJsonSchema()), {"compilers", CompilerJsonSchema()}}) {
    const std::string path = std::string(TPUSIM_SOURCE_DIR) + "/configs/" + folder + "/schema.json";
    if (std::getenv("TPUSIM_UPDATE") != nullptr) std::ofstream(path) << schema;
    EXPECT_TRUE(ReadText(path) == schema)
        << path << " is stale: run this test with TPUSIM_UPDATE=1";
  }
}

TEST(ChipSchemaTest, SchemaHasExactlyTheParametersOfTheTable) {
  const auto schema = nlohmann::json::parse(ChipJsonSchema());
  for (const Parameter& p : ChipParameters()) {
    std::string pointer;
    std::stringstream path(p.path);
    for (std::string part; std::getline(path, part, '.');) pointer += "/properties/" + part;
    const nlohmann::json leaf = schema.at(nlohmann::json::json_pointer(pointer));
    const std::string reference = leaf.at("$ref").get<std::string>();
    const nlohmann::json entry =
        schema.at(nlohmann::json::json_pointer(reference.substr(1))).at("anyOf").at(0);
    EXPECT_EQ(entry.at("properties").at("unit").at("const"), p.unit) << p.path;
    const nlohmann::json& value = entry.at("properties").at("value");
    if (p.unit == kFlagUnit) {
      EXPECT_EQ(value.at("type"), "boolean") << p.path;
    } else if (!p.words.empty()) {
      EXPECT_EQ(value.at("enum"), p.words) << p.path;
    } else {
      EXPECT_EQ(value.at("maximum"), p.maximum) << p.path;
    }
  }
}

// Why `json` does not match `schema`, or "". Knows the keywords that our schema
// uses, and fails on any other.
std::string Mismatch(const nlohmann::json& schema, const nlohmann::json& json,
                     const nlohmann::json& root, const std::string& at) {
  const auto number = [](const nlohmann::json& j) { return j.get<double>(); };
  for (const auto& [keyword, rule] : schema.items()) {
    bool good = true;
    if (keyword == "$ref") {
      const std::string pointer = rule.get<std::string>().substr(1);
      const std::string why =
          Mismatch(root.at(nlohmann::json::json_pointer(pointer)), json, root, at);
      if (!why.empty()) return why;
    } else if (keyword == "anyOf") {
      good = std::any_of(rule.begin(), rule.end(), [&](const nlohmann::json& option) {
        return Mismatch(option, json, root, at).empty();
      });
    } else if (keyword == "type") {
      const std::string type = rule.get<std::string>();
      good = type == "object"    ? json.is_object()
             : type == "array"   ? json.is_array()
             : type == "string"  ? json.is_string()
             : type == "boolean" ? json.is_boolean()
             : type == "integer" ? json.is_number() && std::floor(number(json)) == number(json)
                                 : type == "number" && json.is_number();
    } else if (keyword == "properties") {
      for (const auto& [key, child] : rule.items()) {
        if (!json.is_object() || !json.contains(key)) continue;
        const std::string why = Mismatch(child, json[key], root, at + "/" + key);
        if (!why.empty()) return why;
      }
    } else if (keyword == "additionalProperties") {
      if (!json.is_object()) continue;
      for (const auto& [key, child] : json.items()) {
        if (schema.contains("properties") && schema.at("properties").contains(key)) continue;
        if (!rule.is_object()) return at + ": unknown " + key;
        const std::string why = Mismatch(rule, child, root, at + "/" + key);
        if (!why.empty()) return why;
      }
    } else if (keyword == "required") {
      for (const nlohmann::json& key : rule) good = good && json.contains(key.get<std::string>());
    } else if (keyword == "items") {
      for (const nlohmann::json& item : json) {
        const std::string why = Mismatch(rule, item, root, at + "[]");
        if (!why.empty()) return why;
      }
    } else if (keyword == "enum") {
      good = std::find(rule.begin(), rule.end(), json) != rule.end();
    } else if (keyword == "const") {
      good = json == rule;
    } else if (keyword == "minimum") {
      good = !json.is_number() || number(json) >= number(rule);
    } else if (keyword == "maximum") {
      good = !json.is_number() || number(json) <= number(rule);
    } else if (keyword == "minItems") {
      good = json.size() >= rule.get<size_t>();
    } else if (keyword == "maxItems") {
      good = json.size() <= rule.get<size_t>();
    } else if (keyword == "minLength") {
      good = !json.is_string() || json.get<std::string>().size() >= rule.get<size_t>();
    } else if (keyword == "pattern") {
      good = !json.is_string() ||
             std::regex_search(json.get<std::string>(), std::regex(rule.get<std::string>()));
    } else if (keyword != "$schema" && keyword != "$defs" && keyword != "title" &&
               keyword != "description") {
      return at + ": no check for the keyword " + keyword;
    }
    if (!good) return at + ": " + keyword + " " + rule.dump();
  }
  return "";
}

TEST(ChipsTest, BuiltInFilesMatchTheSchema) {
  const auto schema = nlohmann::json::parse(ChipJsonSchema());
  for (const std::string& name : ChipNames()) {
    const std::string path = std::string(TPUSIM_SOURCE_DIR) + "/configs/chips/" + name + ".json";
    EXPECT_EQ(Mismatch(schema, nlohmann::json::parse(ReadText(path)), schema, name), "");
  }
  // The check itself notices a wrong unit, a missing source, a stray field.
  auto wrong =
      nlohmann::json::parse(R"({"ici": {"launch_ns": {"value": 5, "unit": "us", "source": "x"}}})");
  EXPECT_THAT(Mismatch(schema, wrong, schema, ""), HasSubstr("/ici/launch_ns: anyOf"));
  wrong = nlohmann::json::parse(R"({"host": {"chips_x": {"value": 5, "unit": "count"}}})");
  EXPECT_THAT(Mismatch(schema, wrong, schema, ""), HasSubstr("/host/chips_x: anyOf"));
  wrong = nlohmann::json::parse(R"({"icy": {}})");
  EXPECT_EQ(Mismatch(schema, wrong, schema, ""), ": unknown icy");
}

TEST(ChipsTest, TheFilesOfCompilersMatchTheirSchema) {
  const auto schema = nlohmann::json::parse(CompilerJsonSchema());
  nlohmann::json file;
  for (const std::string& name : CompilerNames()) {
    const std::string path =
        std::string(TPUSIM_SOURCE_DIR) + "/configs/compilers/" + name + ".json";
    file = nlohmann::json::parse(ReadText(path));
    EXPECT_EQ(file["name"], name);
    EXPECT_EQ(Mismatch(schema, file, schema, ""), "");
    if (file.contains("like")) {
      EXPECT_NE(CompilerFile(file["like"].get<std::string>()), nullptr);
    }
  }
  // A file that is like none says all.
  file.erase("like");
  EXPECT_THAT(Mismatch(schema, file, schema, ""), HasSubstr("anyOf"));
  file = *CompilerFile(CompilerName());
  // Chips are those that there are, and a chip that is like another has a row.
  const std::vector<std::string> chips = ChipNames();
  EXPECT_EQ(file["chips"].size(), chips.size());
  for (const std::string& chip : chips) {
    EXPECT_TRUE(file["chips"].contains(file["chips"][chip]["like"].get<std::string>())) << chip;
  }
  std::set<std::string> flags;
  for (const auto& [name, row] : file["values"].items()) {
    if (row.contains("flag")) {
      EXPECT_TRUE(flags.insert(row["flag"].get<std::string>()).second) << row["flag"];
    }
    const auto by_chip = row.value("by_chip", nlohmann::json::object());
    for (const auto& [chip, unused] : by_chip.items()) {
      EXPECT_THAT(chips, ::testing::Contains(chip)) << name;
    }
  }
  // The check itself notices a row without a bracket, and a value that is no such flag.
  file["values"]["products_in_vmem"]["value"] = "always";
  EXPECT_THAT(Mismatch(schema, file, schema, ""),
              HasSubstr("/values/products_in_vmem/value: type"));
  file["values"]["copies_in_flight"].erase("bracket");
  EXPECT_THAT(Mismatch(schema, file, schema, ""), HasSubstr("/values/copies_in_flight: required"));
}

TEST(ChipsTest, EveryValueOfABuiltInChipHasUnitAndSource) {
  for (const std::string& name : ChipNames()) {
    const std::string path = std::string(TPUSIM_SOURCE_DIR) + "/configs/chips/" + name + ".json";
    const auto json = nlohmann::json::parse(ReadText(path));
    for (const Parameter& p : ChipParameters()) {
      std::string pointer = "/" + p.path;
      std::replace(pointer.begin(), pointer.end(), '.', '/');
      const nlohmann::json::json_pointer at(pointer);
      if (IsPolicy(p) || (!p.fallback.empty() && !json.contains(at))) continue;
      const nlohmann::json entry = json.at(at);
      EXPECT_EQ(entry.at("unit"), p.unit) << name << " " << p.path;
      EXPECT_GE(entry.at("source").get<std::string>().size(), 5u) << name << " " << p.path;
    }
  }
}

TEST(ChipsTest, ArraysReachThePublishedPeak) {
  for (const std::string& name : ChipNames()) {
    const absl::StatusOr<ChipFile> file = LoadChip(name, "");
    ASSERT_TRUE(file.ok()) << Message(file.status());
    const ChipParams& chip = file->chip;
    const double made = chip.FastestPeak().value() * static_cast<double>(chip.devices);
    EXPECT_NEAR(made / chip.peak_bf16.value(), 1, 0.02) << name;
  }
}

}  // namespace
}  // namespace tpusim::configs
