// The rows of choices: conditions, what is wrong with a file, and everything that the TPU
// compiler printed (validation/collectives).
#include "workloads/collectives/choice_table.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "configs/chip_file.h"
#include "configs/status_macros.h"
#include "configs/xla_flags.h"
#include "workloads/collectives/compiler_choice.h"

namespace tpusim::collectives {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Json = nlohmann::json;

constexpr char kFile[] = TPUSIM_SOURCE_DIR "/configs/compilers/collectives/libtpu-0.0.42.json";

Json File() {
  std::ifstream file(kFile);
  std::stringstream text;
  text << file.rdbuf();
  return Json::parse(text.str());
}

ChoiceTable Parsed(const Json& json) { return ParseChoiceTable(json.dump(), "rows").value(); }

std::string ErrorOf(const Json& json) {
  return Message(ParseChoiceTable(json.dump(), "rows").status());
}

CollectiveKind KindOfOp(const std::string& op) {
  if (op == "psum") return CollectiveKind::kAllReduce;
  if (op.starts_with("psum_scatter")) return CollectiveKind::kReduceScatter;
  if (op.starts_with("all_gather")) return CollectiveKind::kAllGather;
  return op == "all_to_all" ? CollectiveKind::kAllToAll : CollectiveKind::kPermute;
}

CompilerQuery SweptQuery(const Json& row) {
  const auto op = row["op"].get<std::string>();
  std::array<int64_t, 3> slice = {1, 1, 1};
  for (size_t axis = 0; axis < row["slice"].size(); ++axis) {
    slice[axis] = row["slice"][axis].get<int64_t>();
  }
  const configs::ChipParams chip = configs::LoadChip(row["chip"].get<std::string>(), "")->chip;
  CompilerQuery query = QueryAlong(chip, slice, row["axes"].get<std::string>(), KindOfOp(op),
                                   Bytes(row["operand_bytes"].get<int64_t>()));
  query.minor = op.ends_with("_minor");
  if (query.minor) query.part_row = Bytes(row.value("row_bytes", 2048) / query.members);
  return query;
}

std::vector<Json> PrintedChoices() {
  std::ifstream file(TPUSIM_SOURCE_DIR "/validation/collectives/choices.jsonl");
  std::vector<Json> rows;
  for (std::string line; std::getline(file, line);) rows.push_back(Json::parse(line));
  return rows;
}

std::string DoneAs(const CompilerChoice& choice) {
  if (choice.offloaded) return "custom-call";
  const std::string name(KindName(choice.kind));
  return choice.kind == CollectiveKind::kPermute && choice.asynchronous ? name + "-start" : name;
}

TEST(ChoiceTableTest, EverythingThatWasPrintedIsReproduced) {
  const std::vector<Json> sweep = PrintedChoices();
  EXPECT_EQ(sweep.size(), 1006);
  for (const Json& row : sweep) {
    const CompilerChoice choice = ChoiceOfCompiler(SweptQuery(row));
    EXPECT_EQ(DoneAs(choice), row["done_as"].get<std::string>()) << row;
    EXPECT_EQ(choice.emitter, row.value("emitter", "")) << row;
    EXPECT_EQ(choice.strategy, row.value("strategy", "")) << row;
    EXPECT_EQ(choice.colors, row.value("colors", 0)) << row;
    EXPECT_EQ(choice.phases, row.value("phases", 0)) << row;
    // What was printed needs no assumption, unless it was not printed.
    EXPECT_EQ(choice.assumption.empty(), !choice.offloaded) << row;
  }
}

// The evidence of a row is what of the sweep reaches it. A row that nothing reaches, because others
// come before it, is an error; one of which nothing is printed says what it assumes.
TEST(ChoiceTableTest, EveryRowIsReachedByWhatItsEvidenceCounts) {
  const Json file = File();
  std::map<size_t, std::map<std::string, int>> reached;
  for (const Json& row : PrintedChoices()) {
    for (const size_t i : ChoiceOfCompiler(SweptQuery(row)).rows) {
      ++reached[i][row["chip"].get<std::string>()];
    }
  }
  for (size_t i = 0; i < file["choices"].size(); ++i) {
    const Json& row = file["choices"][i];
    const auto counted =
        row.value("evidence", Json::object()).value("agree", std::map<std::string, int>());
    EXPECT_EQ(counted, reached[i])
        << "choices[" << i << "]: " << row["when"] << "; reached by " << Json(reached[i]);
    EXPECT_TRUE(!counted.empty() || row.contains("assumed")) << row;
  }
  // Those of groups over several slices, none of which were compiled, are the first.
  CompilerQuery query = SweptQuery(PrintedChoices()[0]);
  query.slices = 2;
  EXPECT_THAT(ChoiceOfCompiler(query).rows, ElementsAre(1));
  query.kind = CollectiveKind::kAllReduce;
  EXPECT_THAT(ChoiceOfCompiler(query).rows, ElementsAre(0));
}

// The evidence of the other conditions counts what of the sweep is not reproduced without them.
TEST(ChoiceTableTest, EveryConditionOfRingsAndOffLoadsDecidesWhatItsEvidenceCounts) {
  const Json file = File();
  for (const char* list : {"rings", "offloads"}) {
    for (size_t i = 0; i < file[list].size(); ++i) {
      Json without = file;
      without[list].erase(i);
      const ChoiceTable table = Parsed(without);
      std::map<std::string, int> decided;
      for (const Json& row : PrintedChoices()) {
        const CompilerChoice choice = ChoiceOfCompiler(SweptQuery(row), table);
        if (choice.emitter != row.value("emitter", "") ||
            choice.strategy != row.value("strategy", "") || DoneAs(choice) != row["done_as"]) {
          ++decided[row["chip"].get<std::string>()];
        }
      }
      EXPECT_EQ((file[list][i]["evidence"]["decides"].get<std::map<std::string, int>>()), decided)
          << list << "[" << i << "]; it decides " << Json(decided);
      EXPECT_FALSE(decided.empty());
    }
  }
}

TEST(ChoiceTableTest, TheSweptSlicesAreThoseOfTheSweep) {
  std::map<std::string, std::set<std::array<int64_t, 3>>> swept;
  for (const Json& row : PrintedChoices()) {
    std::array<int64_t, 3> slice = SweptQuery(row).slice;
    std::sort(slice.begin(), slice.end());
    swept[row["chip"].get<std::string>()].insert(slice);
  }
  std::map<std::string, std::set<std::array<int64_t, 3>>> stated;
  for (const auto& [chip, slices] : CompilerChoices().swept) {
    stated[chip] = {slices.begin(), slices.end()};
  }
  EXPECT_EQ(stated, swept);
}

// The limit of small sums is the policy's, and --set compiler.single_phase_most_bytes moves it.
TEST(ChoiceTableTest, SmallSumsAreThoseOfThePolicy) {
  CompilerQuery query;
  query.chip = query.policy.like = "v5e";
  query.policy.single_phase_most_bytes = Bytes(64 * kKiB);
  query.slice = {4, 4, 1};
  query.extents = {4};
  query.members = 4;
  query.operand = Bytes(64 * kKiB);
  EXPECT_EQ(ChoiceOfCompiler(query).emitter, "SinglePhaseRingSumEmitter");
  query.operand += Bytes(1);
  EXPECT_EQ(ChoiceOfCompiler(query).emitter, "RotatedPincerShortEmitter");
}

// The flags beside the rows of rings each way move their limits, as --xla-flags sets them.
TEST(ChoiceTableTest, FlagsMoveTheLimitsOfRingsEachWay) {
  CompilerQuery query;
  query.chip = query.policy.like = "v5e";
  query.slice = {16, 16, 1};
  query.operand = Bytes(4 * kMiB);
  const auto strategy = [&](std::vector<int64_t> extents, const std::string& flags) {
    configs::ChipParams chip = configs::LoadChip("v5e", "")->chip;
    EXPECT_THAT(configs::ApplyXlaFlags(flags, chip).value(), IsEmpty()) << flags;
    query.policy = chip.compiler;
    query.members = 1;
    for (const int64_t extent : extents) query.members *= extent;
    query.extents = std::move(extents);
    return ChoiceOfCompiler(query).strategy;
  };
  EXPECT_EQ(strategy({8}, ""), "UniDirection1DRingStrategy");
  EXPECT_EQ(strategy({16}, ""), "StrategyRing");
  EXPECT_EQ(strategy({16}, "--xla_tpu_uni_direction_ring_max_size=16"),
            "UniDirection1DRingStrategy");
  EXPECT_EQ(strategy({8}, "--xla_tpu_uni_direction_ring_max_size=4"), "StrategyRing");
  const std::string plane = "--xla_tpu_uni_direction_ring_max_size_2d_plane=";
  EXPECT_EQ(strategy({8, 8}, ""), "UniDirectionNDRingStrategy");
  EXPECT_EQ(strategy({16, 16}, ""), "StrategyND");
  EXPECT_EQ(strategy({16, 16}, plane + "16"), "UniDirectionNDRingStrategy");
  EXPECT_EQ(strategy({8, 8}, plane + "4"), "StrategyND");
  query.operand = Bytes(64 * kKiB);
  EXPECT_EQ(strategy({8}, ""), "StrategyRing");
  EXPECT_EQ(strategy({8}, "--xla_jf_single_phase_ring_max_kib=64"), "");
}

// A new choice is a row of data: here all-gathers of 32 MiB and more over planes of v6e as two
// rings, with an emitter that the rows do not know yet.
TEST(ChoiceTableTest, ARowIsAddedByDataAlone) {
  Json file = File();
  file["algorithms"]["two rings"] = {"rotated"};
  file["choices"].insert(
      file["choices"].begin(),
      Json::parse(R"({"when": {"kinds": ["all-gather"], "chips": ["v6e"], "axes": 2,
                               "operand_bytes": {"least": 33554432}},
                      "choice": {"emitter": "2DAllGatherOnMajorDim", "colors_per_axis": 1,
                                 "phases": 2, "by": "two rings"}})"));
  const ChoiceTable table = Parsed(file);
  CompilerQuery query;
  query.kind = CollectiveKind::kAllGather;
  query.chip = query.policy.like = "v6e";
  query.slice = {16, 16, 1};
  query.extents = {16, 16};
  query.members = 256;
  query.operand = Bytes(32 * kMiB);
  const CompilerChoice large = ChoiceOfCompiler(query, table);
  EXPECT_EQ(large.emitter, "2DAllGatherOnMajorDim");
  EXPECT_EQ(large.colors, 2);
  EXPECT_EQ(large.phases, 2);
  EXPECT_THAT(large.families, ElementsAre("rotated"));
  EXPECT_THAT(large.rows, ElementsAre(0));
  query.operand = Bytes(32 * kMiB - 1);
  EXPECT_EQ(ChoiceOfCompiler(query, table).emitter, "1DAllGatherNonMajorDimImbalanced");
  query.operand = Bytes(32 * kMiB);
  query.policy.like = "v5e";
  EXPECT_EQ(ChoiceOfCompiler(query, table).emitter, "1DAllGatherNonMajorDimImbalanced");
}

TEST(ChoiceTableTest, RowsAreTextForPeople) {
  const ChoiceTable& table = CompilerChoices();
  EXPECT_EQ(TextOf(table.rows[7].when),
            "reduce-scatter, members <= 4, minor_dimension, single_phase");
  EXPECT_EQ(TextOf(table.rows[7]), "as an all-reduce");
  EXPECT_EQ(TextOf(table.rows[24].when), "all-reduce, even, operand_bytes <= 524288");
  EXPECT_EQ(TextOf(table.rows[24]),
            "RotatedPincerShortEmitter, StrategyND, 1 colors per axis, 1 phases per axis, here: "
            "rotated, axis-by-axis, kernel: short pincer over axes");
  EXPECT_EQ(TextOf(table.rows[6].when), "reduce-scatter, even, every_chip, not ring");
  EXPECT_EQ(TextOf(table.rows[30].when), "collective-permute, slice_chips >= 17");
  EXPECT_EQ(TextOf(table.rows[30]), "synchronous");
  EXPECT_EQ(TextOf(table.rings[0].when), "axes = 1");
  EXPECT_EQ(TextOf(Condition()), "always");
}

TEST(ChoiceTableTest, ConditionsBoundFacts) {
  Facts facts = {};
  facts[static_cast<size_t>(Fact::kMembers)] = 8;
  const auto holds = [&](const char* when, CollectiveKind kind, const char* chip) {
    Json file = File();
    file["choices"] = Json::array({{{"when", Json::parse(when)}}});
    return Parsed(file).rows[0].when.Holds(kind, chip, facts);
  };
  constexpr auto kSum = CollectiveKind::kAllReduce;
  EXPECT_TRUE(holds("{}", kSum, "v5e"));
  EXPECT_TRUE(holds(R"({"members": 8})", kSum, "v5e"));
  EXPECT_FALSE(holds(R"({"members": 9})", kSum, "v5e"));
  EXPECT_TRUE(holds(R"({"members": {"least": 8, "most": 8}})", kSum, "v5e"));
  EXPECT_FALSE(holds(R"({"members": {"least": 9}})", kSum, "v5e"));
  EXPECT_FALSE(holds(R"({"members": {"most": 7}})", kSum, "v5e"));
  EXPECT_TRUE(holds(R"({"ring": false, "members": {"most": 8}})", kSum, "v5e"));
  EXPECT_FALSE(holds(R"({"ring": true, "members": {"most": 8}})", kSum, "v5e"));
  EXPECT_TRUE(holds(R"({"kinds": ["all-gather", "all-reduce"], "chips": ["v5e"]})", kSum, "v5e"));
  EXPECT_FALSE(holds(R"({"kinds": ["all-gather"]})", kSum, "v5e"));
  EXPECT_FALSE(holds(R"({"chips": ["v5p", "v6e"]})", kSum, "v5e"));
}

TEST(ChoiceTableTest, WhatIsWrongWithAFileIsNamed) {
  const auto with = [](const char* row) {
    Json file = File();
    file["choices"] = Json::array({Json::parse(row)});
    return ErrorOf(file);
  };
  EXPECT_THAT(with(R"({"when": {"member": 8}})"),
              HasSubstr("rows.choices[0].when: no key \"member\"; there are kinds, chips, axes"));
  EXPECT_THAT(with(R"({"when": {"kinds": ["psum"]}})"),
              HasSubstr("when.kinds: no collective \"psum\"; there are all-reduce, all-gather"));
  EXPECT_THAT(with(R"({"when": {"members": "8"}})"),
              HasSubstr("when.members must be a whole number from 0"));
  EXPECT_THAT(with(R"({"when": {"members": {"least": 9, "most": 8}}})"),
              HasSubstr("when.members: least is more than most"));
  EXPECT_THAT(with(R"({"choice": {"by": "rings"}})"),
              HasSubstr("choice.by: no list of algorithms \"rings\"; there are color per axis"));
  EXPECT_THAT(with(R"({"choice": {"as": "all-gather"}})"), HasSubstr("as must be all-reduce"));
  EXPECT_THAT(with(R"({"choice": {"emitter": 1}})"), HasSubstr("choice.emitter must be text"));
  EXPECT_THAT(with(R"({"choice": {"colors": -1}})"), HasSubstr("choice.colors must be a whole"));
  EXPECT_THAT(with(R"({"assumed": 1})"), HasSubstr("rows.choices[0].assumed must be text"));
  Json file = File();
  file["algorithms"]["ring"] = {"rings"};
  EXPECT_THAT(ErrorOf(file), HasSubstr("rows.algorithms.ring: no algorithm \"rings\"; there are"));
  file = File();
  file["swept"]["v5e"] = {"2by4"};
  EXPECT_THAT(ErrorOf(file), HasSubstr("rows.swept.v5e: \"2by4\" is not of the form AxB"));
  file = File();
  file.erase("rings");
  EXPECT_THAT(ErrorOf(file), HasSubstr("rows: rings is missing"));
  EXPECT_THAT(Message(ParseChoiceTable("{", "rows").status()), HasSubstr("rows is no JSON"));
  for (const char* key : {"swept", "algorithms", "rings", "offloads", "choices"}) {
    file = File();
    file[key] = 7;
    EXPECT_THAT(ErrorOf(file), HasSubstr(fmt::format("rows.{} must be", key)));
  }
}

// Nothing is known of it: the fastest, and the report says so.
TEST(ChoiceTableTest, WithoutARowTheFastestIsTaken) {
  Json file = File();
  file["choices"] = Json::array();
  CompilerQuery query = SweptQuery(PrintedChoices()[0]);
  const CompilerChoice choice = ChoiceOfCompiler(query, Parsed(file));
  EXPECT_THAT(choice.families, IsEmpty());
  EXPECT_THAT(choice.assumption, HasSubstr("no row of the TPU compiler's choices is about this"));
}

}  // namespace
}  // namespace tpusim::collectives
