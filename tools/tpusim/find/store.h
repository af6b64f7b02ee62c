// Verdicts in an SQLite file: a search that is repeated or goes on asks for no verdict twice.
//
//   table verdicts (search, statements, candidate, kind, bound_ps, step_ps, peak_bytes, program,
//                   why, checksum)
//
// `search` and `statements` are what a verdict depends on (key.h); `candidate` says the same to
// people. One file holds any number of searches, also of other builds.
//
// A checksum is over all of a row: one in which something has changed is no row, and neither is one
// that says what no verdict can be, or what the search knows to be wrong. Such rows are removed,
// done again, and counted. A file that SQLite calls damaged is an error that names the command
// which saves what can be read: no row of it is changed. As in the store of tpusim.search there is
// no write-ahead log: the store is one file. One that was begun and has got no row is removed.
#ifndef TPUSIM_TOOLS_TPUSIM_FIND_STORE_H_
#define TPUSIM_TOOLS_TPUSIM_FIND_STORE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "workloads/search/branch_and_bound.h"

struct sqlite3;
struct sqlite3_stmt;

namespace tpusim::tools {

class VerdictStore {
 public:
  // Made if it is not there. Errors: not to be opened or written, damaged, a file of something
  // else.
  static absl::StatusOr<std::unique_ptr<VerdictStore>> Open(const std::string& path,
                                                            std::string search);
  ~VerdictStore();
  VerdictStore(const VerdictStore&) = delete;
  VerdictStore& operator=(const VerdictStore&) = delete;

  // Returns the verdict on a candidate, if it is known.
  std::optional<search::Verdict> Find(const std::string& statements) const;
  // A verdict that was found and is wrong: it counts as damaged.
  void Reject(const std::string& statements);
  // It is written with the next ones: a disk takes longer for a row than a search for a verdict.
  void Add(const std::string& statements, const std::string& candidate,
           const search::Verdict& verdict);
  // Writes all that was added, at once. Error: the disk is full, and the like.
  absl::Status Write();
  // Returns what could not be used, in a line; "" if all could.
  std::string Damage() const;

 private:
  struct Close {
    void operator()(sqlite3* db) const;
  };
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  using Statement = std::unique_ptr<sqlite3_stmt, Finalize>;

  struct StoredVerdict {
    std::string statements, candidate;
    search::Verdict verdict;
  };

  VerdictStore(std::string path, std::string search)
      : path_(std::move(path)), search_(std::move(search)) {}
  absl::Status Begin();
  absl::Status Execute(const char* sql);
  absl::StatusOr<Statement> Prepare(const char* sql);
  absl::StatusOr<std::string> Ask(const char* sql);  // the first column of all rows, by lines
  absl::Status MakeTable();
  absl::Status Insert(const StoredVerdict& row);
  absl::Status Read();
  absl::Status Error() const;
  absl::Status Damaged(const std::string& said) const;
  absl::Status NoStore() const;

  const std::string path_, search_;
  bool is_new_ = false;
  std::unique_ptr<sqlite3, Close> db_;
  Statement insert_;
  std::unordered_map<std::string, search::Verdict> known_;  // of this search
  std::vector<StoredVerdict> unwritten_;
  int64_t damaged_ = 0, of_another_version_ = 0;  // rows
};

}  // namespace tpusim::tools

#endif  // TPUSIM_TOOLS_TPUSIM_FIND_STORE_H_
