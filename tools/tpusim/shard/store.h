// Verdicts in an SQLite file: a search that is repeated or goes on asks for no verdict twice.
//
//   table verdicts (search, candidate, kind, bound_ps, step_ps, peak_bytes, equal, why)
//
// `search` tells what a verdict depends on: the program's bytes, the slice, the options, the
// version of tpusim. `candidate` is search::ToString. One file holds any number of searches.
#ifndef TPUSIM_TOOLS_TPUSIM_SHARD_STORE_H_
#define TPUSIM_TOOLS_TPUSIM_SHARD_STORE_H_

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "workloads/search/branch_and_bound.h"

struct sqlite3;
struct sqlite3_stmt;

namespace tpusim::tools {

class VerdictStore {
 public:
  // Made if it is not there. Errors: not to be opened or written, a file of something else.
  static absl::StatusOr<VerdictStore> Open(const std::string& path, std::string search);

  // What is known of a candidate.
  std::optional<search::Verdict> Find(const std::string& candidate) const;
  // Error: the disk is full, and the like.
  absl::Status Add(const std::string& candidate, const search::Verdict& verdict);

 private:
  struct Close {
    void operator()(sqlite3* db) const;
  };
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  VerdictStore(std::string path, std::string search)
      : path_(std::move(path)), search_(std::move(search)) {}
  absl::Status Execute(const char* sql);
  absl::Status Read();
  absl::Status Error() const;

  std::string path_, search_;
  std::unique_ptr<sqlite3, Close> db_;
  std::unique_ptr<sqlite3_stmt, Finalize> insert_;
  std::unordered_map<std::string, search::Verdict> known_;  // of this search
};

}  // namespace tpusim::tools

#endif  // TPUSIM_TOOLS_TPUSIM_SHARD_STORE_H_
