#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include "configs/status_macros.h"
#include "tests/temporary_folder.h"
#include "tools/tpusim/find/store.h"

namespace tpusim::tools {
namespace {

using search::Verdict;
using ::testing::HasSubstr;

class VerdictStoreTest : public ::testing::Test {
 protected:
  std::string Path() const { return (folder_ / "store").string(); }
  int64_t Files() const { return std::distance(std::filesystem::directory_iterator(folder_), {}); }
  std::unique_ptr<VerdictStore> Open(const std::string& search = "one") const {
    auto store = VerdictStore::Open(Path(), search);
    EXPECT_TRUE(store.ok()) << store.status();
    return *std::move(store);
  }
  std::string Refusal() const {
    const auto store = VerdictStore::Open(Path(), "one");
    return store.ok() ? "opened" : Message(store.status());
  }
  void Sql(const std::string& statements) const {
    sqlite3* db = nullptr;
    ASSERT_EQ(sqlite3_open(Path().c_str(), &db), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(db, statements.c_str(), nullptr, nullptr, nullptr), SQLITE_OK)
        << sqlite3_errmsg(db);
    sqlite3_close(db);
  }

  const TemporaryFolder temporary_;
  const std::filesystem::path folder_ = temporary_.path();
};

Verdict Simulated() {
  Verdict verdict;
  verdict.kind = Verdict::Kind::kSimulated;
  verdict.bound = Picoseconds(5);
  verdict.step = Picoseconds(7);
  verdict.peak = Bytes(11);
  verdict.program = "12:ab";
  return verdict;
}

TEST_F(VerdictStoreTest, KeepsWhatItIsTold) {
  Verdict refused;
  refused.why = std::string("no rule for \"it\"\0", 17);
  {
    const auto store = Open();
    store->Add("k1", "x=8; a 0: x", Simulated());
    store->Add("k2", "x=8", refused);
    EXPECT_EQ(store->Find("k2")->why, refused.why);
  }
  EXPECT_EQ(Files(), 1);  // no log beside it
  const auto store = Open();
  const Verdict known = store->Find("k1").value();
  EXPECT_EQ(known.kind, Verdict::Kind::kSimulated);
  EXPECT_EQ(known.bound, Picoseconds(5));
  EXPECT_EQ(known.step, Picoseconds(7));
  EXPECT_EQ(known.peak, Bytes(11));
  EXPECT_EQ(known.program, "12:ab");
  EXPECT_EQ(store->Find("k2")->why, refused.why);
  EXPECT_FALSE(store->Find("k3").has_value());
  EXPECT_EQ(store->Damage(), "");
  // Another search in the same file.
  EXPECT_FALSE(Open("two")->Find("k1").has_value());
}

TEST_F(VerdictStoreTest, WhatHasChangedIsNoRow) {
  const Verdict verdict = Simulated();
  for (const char* change :
       {"kind = 1", "kind = 9", "kind = 'no'", "kind = -1", "bound_ps = 4611686018427387904",
        "bound_ps = bound_ps + 1", "step_ps = step_ps / 10", "peak_bytes = -1", "peak_bytes = 11.5",
        "statements = 'k2'", "candidate = 'x=4'", "program = ''", "why = 'so'", "checksum = 0",
        "checksum = -checksum"}) {
    std::filesystem::remove(Path());
    Open()->Add("k1", "x=8", verdict);
    Sql(std::string("UPDATE verdicts SET ") + change);
    const auto store = Open();
    EXPECT_FALSE(store->Find("k1").has_value()) << change;
    EXPECT_FALSE(store->Find("k2").has_value()) << change;
    EXPECT_THAT(store->Damage(), HasSubstr(": 1 row is damaged, and done again")) << change;
    store->Add("k1", "x=8", verdict);
    ASSERT_TRUE(store->Write().ok());
    EXPECT_TRUE(Open()->Find("k1").has_value()) << change;
  }
}

// The checksum is right by chance, the row is no verdict.
TEST_F(VerdictStoreTest, WhatNoVerdictCanBeIsNoRow) {
  Verdict above = Simulated(), below = Simulated(), large = Simulated(), never = Simulated();
  above.bound = Picoseconds(8);
  below.peak = Bytes(-1);
  large.kind = Verdict::Kind::kTooLarge;
  large.peak = Bytes(0);
  never.step = Picoseconds(0);
  never.bound = Picoseconds(0);
  {
    const auto store = Open();
    int64_t number = 0;
    for (const Verdict& verdict : {above, below, large, never, Simulated()}) {
      store->Add("k" + std::to_string(number++), "x=8", verdict);
    }
  }
  const auto store = Open();
  EXPECT_THAT(store->Damage(), HasSubstr(": 4 rows are damaged, and done again"));
  EXPECT_TRUE(store->Find("k4").has_value());
  store->Reject("k4");
  store->Reject("k4");
  EXPECT_FALSE(store->Find("k4").has_value());
  EXPECT_THAT(store->Damage(), HasSubstr(": 5 rows are damaged, and done again"));
}

TEST_F(VerdictStoreTest, AStoreOfTheFirstVersionIsBegunAnew) {
  Sql("PRAGMA journal_mode = WAL; CREATE TABLE verdicts (search TEXT NOT NULL, candidate TEXT NOT "
      "NULL, kind INTEGER NOT NULL, bound_ps INTEGER NOT NULL, step_ps INTEGER NOT NULL, "
      "peak_bytes INTEGER NOT NULL, equal INTEGER NOT NULL, why TEXT NOT NULL, PRIMARY KEY "
      "(search, candidate)); INSERT INTO verdicts VALUES ('one', 'x=8', 0, 1, 2, 3, 0, '')");
  {
    const auto store = Open();
    EXPECT_THAT(store->Damage(),
                HasSubstr("1 row is of another version of tpusim, and done again"));
    store->Add("k1", "x=8", Simulated());
  }
  EXPECT_EQ(Files(), 1);
  EXPECT_TRUE(Open()->Find("k1").has_value());
  EXPECT_EQ(Open()->Damage(), "");
}

TEST_F(VerdictStoreTest, WhatIsNoStoreIsSaid) {
  std::ofstream(Path()) << "this is a text, and it is longer than the head of a database file is "
                           "long, so that there is no doubt about it at all";
  EXPECT_EQ(Refusal(), "--store " + Path() + ": file is not a database; name another file");
  std::filesystem::remove(Path());
  Sql("CREATE TABLE others (name TEXT)");
  EXPECT_THAT(Refusal(), HasSubstr("a database, but not of tpusim shard"));
  Sql("CREATE TABLE verdicts (name TEXT)");
  EXPECT_THAT(Refusal(), HasSubstr("a database, but not of tpusim shard"));
  Sql("DROP TABLE verdicts; CREATE VIEW verdicts AS SELECT * FROM others");
  EXPECT_THAT(Refusal(), HasSubstr("a database, but not of tpusim shard"));
  EXPECT_EQ(Refusal().find('\n'), std::string::npos);
}

TEST_F(VerdictStoreTest, WhatIsDamagedIsLeftAsItIs) {
  {
    const auto store = Open();
    for (int n = 0; n < 200; ++n) {
      store->Add("k" + std::to_string(n), std::string(100, 'x'), Simulated());
    }
  }
  std::filesystem::resize_file(Path(), std::filesystem::file_size(Path()) / 2);
  std::ifstream before(Path(), std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(before), {});
  EXPECT_THAT(Refusal(), HasSubstr("damaged ("));
  EXPECT_THAT(Refusal(), HasSubstr("sqlite3 " + Path() + " .recover | sqlite3 NEW.sqlite"));
  std::ifstream after(Path(), std::ios::binary);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(after), {}), bytes);
}

TEST_F(VerdictStoreTest, OneWithoutRowsIsRemoved) {
  Open();
  EXPECT_EQ(Files(), 0);
  Open()->Add("k1", "x=8", Simulated());
  EXPECT_EQ(Files(), 1);
  Sql("DELETE FROM verdicts");
  Open();
  EXPECT_EQ(Files(), 1);  // It was there before.
  EXPECT_FALSE(VerdictStore::Open(folder_ / "none" / "store", "one").ok());
}

}  // namespace
}  // namespace tpusim::tools
