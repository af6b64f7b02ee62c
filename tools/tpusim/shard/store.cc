#include "tools/tpusim/shard/store.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <utility>

#include "configs/status_macros.h"

namespace tpusim::tools {
namespace {

using search::Verdict;

constexpr const char* kTable =
    "CREATE TABLE IF NOT EXISTS verdicts (search TEXT NOT NULL, candidate TEXT NOT NULL, "
    "kind INTEGER NOT NULL, bound_ps INTEGER NOT NULL, step_ps INTEGER NOT NULL, "
    "peak_bytes INTEGER NOT NULL, equal INTEGER NOT NULL, why TEXT NOT NULL, "
    "PRIMARY KEY (search, candidate))";
constexpr const char* kInsert = "INSERT OR REPLACE INTO verdicts VALUES (?, ?, ?, ?, ?, ?, ?, ?)";
constexpr const char* kSelect =
    "SELECT candidate, kind, bound_ps, step_ps, peak_bytes, equal, why FROM verdicts "
    "WHERE search = ?";
// Another process may write for a while.
constexpr int kWaitMilliseconds = 10'000;

std::string TextAt(sqlite3_stmt* statement, int column) {
  const unsigned char* text = sqlite3_column_text(statement, column);
  return text == nullptr ? "" : reinterpret_cast<const char*>(text);
}

void Bind(sqlite3_stmt* statement, int column, const std::string& text) {
  sqlite3_bind_text(statement, column, text.c_str(), static_cast<int>(text.size()),
                    SQLITE_TRANSIENT);
}

}  // namespace

void VerdictStore::Close::operator()(sqlite3* db) const { sqlite3_close(db); }
void VerdictStore::Finalize::operator()(sqlite3_stmt* statement) const {
  sqlite3_finalize(statement);
}

absl::Status VerdictStore::Error() const {
  return UserError(fmt::format("--store {}: {}", path_, sqlite3_errmsg(db_.get())));
}

absl::Status VerdictStore::Execute(const char* sql) {
  return sqlite3_exec(db_.get(), sql, nullptr, nullptr, nullptr) == SQLITE_OK ? absl::OkStatus()
                                                                              : Error();
}

absl::StatusOr<VerdictStore> VerdictStore::Open(const std::string& path, std::string search) {
  VerdictStore store(path, std::move(search));
  sqlite3* db = nullptr;
  const int opened = sqlite3_open(path.c_str(), &db);
  store.db_.reset(db);
  if (opened != SQLITE_OK) return store.Error();
  sqlite3_busy_timeout(db, kWaitMilliseconds);
  // A verdict that was told is kept even if the machine stops.
  RETURN_IF_ERROR(store.Execute("PRAGMA journal_mode = WAL"));
  RETURN_IF_ERROR(store.Execute(kTable));
  sqlite3_stmt* insert = nullptr;
  if (sqlite3_prepare_v2(db, kInsert, -1, &insert, nullptr) != SQLITE_OK) return store.Error();
  store.insert_.reset(insert);
  RETURN_IF_ERROR(store.Read());
  return store;
}

absl::Status VerdictStore::Read() {
  sqlite3_stmt* made = nullptr;
  if (sqlite3_prepare_v2(db_.get(), kSelect, -1, &made, nullptr) != SQLITE_OK) return Error();
  const std::unique_ptr<sqlite3_stmt, Finalize> select(made);
  Bind(made, 1, search_);
  int step = SQLITE_ROW;
  while ((step = sqlite3_step(made)) == SQLITE_ROW) {
    const int kind = sqlite3_column_int(made, 1);
    if (kind < 0 || kind > static_cast<int>(Verdict::Kind::kImpossible)) continue;
    Verdict verdict;
    verdict.kind = static_cast<Verdict::Kind>(kind);
    verdict.bound = Picoseconds(sqlite3_column_int64(made, 2));
    verdict.step = Picoseconds(sqlite3_column_int64(made, 3));
    verdict.peak = Bytes(sqlite3_column_int64(made, 4));
    verdict.equal = sqlite3_column_int(made, 5) != 0;
    verdict.why = TextAt(made, 6);
    known_[TextAt(made, 0)] = std::move(verdict);
  }
  return step == SQLITE_DONE ? absl::OkStatus() : Error();
}

std::optional<Verdict> VerdictStore::Find(const std::string& candidate) const {
  const auto found = known_.find(candidate);
  return found == known_.end() ? std::nullopt : std::optional(found->second);
}

absl::Status VerdictStore::Add(const std::string& candidate, const Verdict& verdict) {
  sqlite3_stmt* insert = insert_.get();
  sqlite3_reset(insert);
  Bind(insert, 1, search_);
  Bind(insert, 2, candidate);
  sqlite3_bind_int(insert, 3, static_cast<int>(verdict.kind));
  sqlite3_bind_int64(insert, 4, verdict.bound.value());
  sqlite3_bind_int64(insert, 5, verdict.step.value());
  sqlite3_bind_int64(insert, 6, verdict.peak.value());
  sqlite3_bind_int(insert, 7, verdict.equal ? 1 : 0);
  Bind(insert, 8, verdict.why);
  if (sqlite3_step(insert) != SQLITE_DONE) return Error();
  known_[candidate] = verdict;
  return absl::OkStatus();
}

}  // namespace tpusim::tools
