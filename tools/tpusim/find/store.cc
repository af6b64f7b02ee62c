#include "tools/tpusim/find/store.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "configs/digest.h"
#include "configs/number_text.h"
#include "configs/status_macros.h"
#include "tools/tpusim/output/shell_word.h"

namespace tpusim::tools {
namespace {

using search::Verdict;

// The version of the table; a table without one has no checksums.
constexpr const char* kVersion = "2";
constexpr const char* kSetVersion = "PRAGMA user_version = 2";
constexpr const char* kTable =
    "CREATE TABLE verdicts (search TEXT NOT NULL, statements TEXT NOT NULL, "
    "candidate TEXT NOT NULL, kind INTEGER NOT NULL, bound_ps INTEGER NOT NULL, "
    "step_ps INTEGER NOT NULL, peak_bytes INTEGER NOT NULL, program TEXT NOT NULL, "
    "why TEXT NOT NULL, checksum INTEGER NOT NULL, PRIMARY KEY (search, statements))";
constexpr const char* kColumns =
    "search\nstatements\ncandidate\nkind\nbound_ps\nstep_ps\npeak_bytes\nprogram\nwhy\nchecksum\n";
constexpr const char* kFirstColumns =
    "search\ncandidate\nkind\nbound_ps\nstep_ps\npeak_bytes\nequal\nwhy\n";
constexpr const char* kInsert =
    "INSERT OR REPLACE INTO verdicts (search, statements, candidate, kind, bound_ps, step_ps, "
    "peak_bytes, program, why, checksum) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
constexpr const char* kSelect =
    "SELECT statements, candidate, kind, bound_ps, step_ps, peak_bytes, program, why, checksum, "
    "rowid FROM verdicts WHERE search = ?";
// Another process may write for a while.
constexpr int kWaitSeconds = 10;

std::string TextAt(sqlite3_stmt* statement, int column) {
  const unsigned char* text = sqlite3_column_text(statement, column);
  if (text == nullptr) return "";
  return {reinterpret_cast<const char*>(text),
          static_cast<size_t>(sqlite3_column_bytes(statement, column))};
}

// Whether the columns of kSelect are what was bound: another type is read as some number or text.
bool HasTypes(sqlite3_stmt* row) {
  for (int column = 0; column < sqlite3_column_count(row); ++column) {
    const bool is_text = column < 2 || column == 6 || column == 7;
    if (sqlite3_column_type(row, column) != (is_text ? SQLITE_TEXT : SQLITE_INTEGER)) return false;
  }
  return true;
}

void Bind(sqlite3_stmt* statement, int column, const std::string& text) {
  sqlite3_bind_text(statement, column, text.c_str(), static_cast<int>(text.size()),
                    SQLITE_TRANSIENT);
}

int64_t Checksum(const std::string& search, const std::string& statements,
                 const std::string& candidate, const Verdict& verdict) {
  const uint64_t low =
      configs::Digest()
          .Add(search, statements, candidate, static_cast<int>(verdict.kind), verdict.bound.value(),
               verdict.step.value(), verdict.peak.value(), verdict.program, verdict.why)
          .Low();
  return static_cast<int64_t>(low);
}

// Whether a candidate can have come to it.
bool IsPossible(const Verdict& verdict) {
  if (verdict.bound < Picoseconds(0) || verdict.peak < Bytes(0)) return false;
  switch (verdict.kind) {
    case Verdict::Kind::kSimulated:
      return verdict.step > Picoseconds(0) && verdict.bound <= verdict.step;
    case Verdict::Kind::kTooLarge:
      return verdict.peak > Bytes(0);
    case Verdict::Kind::kBounded:
    case Verdict::Kind::kImpossible:
      return true;
    case Verdict::Kind::kFits:
      return false;
  }
  return false;
}

std::string RowsText(int64_t count) {
  return count == 1 ? "1 row is" : fmt::format("{} rows are", count);
}

}  // namespace

void VerdictStore::Close::operator()(sqlite3* db) const { sqlite3_close(db); }
void VerdictStore::Finalize::operator()(sqlite3_stmt* statement) const {
  sqlite3_finalize(statement);
}

absl::Status VerdictStore::Damaged(const std::string& said) const {
  return UserError(
      fmt::format("--store {}: damaged ({}); what can be read is saved by: sqlite3 {} .recover | "
                  "sqlite3 NEW.sqlite; name that, or another file",
                  path_, said, ShellWord(path_)));
}

absl::Status VerdictStore::NoStore() const {
  return UserError(
      fmt::format("--store {}: a database, but not of tpusim shard; name another file", path_));
}

absl::Status VerdictStore::Error() const {
  const std::string said = sqlite3_errmsg(db_.get());
  switch (sqlite3_errcode(db_.get())) {
    case SQLITE_NOTADB:
    case SQLITE_CANTOPEN:
      return UserError(fmt::format("--store {}: {}; name another file", path_, said));
    case SQLITE_CORRUPT:
    case SQLITE_FORMAT:
    case SQLITE_ERROR:
    case SQLITE_CONSTRAINT:
    case SQLITE_MISMATCH:
      return Damaged(said);
    case SQLITE_BUSY:
      return UserError(fmt::format(
          "--store {}: locked by another process for {} s; search again when that has ended", path_,
          kWaitSeconds));
    case SQLITE_FULL:
      return UserError(
          fmt::format("--store {}: the disk is full; search again when there is room", path_));
    default:
      return UserError(fmt::format("--store {}: {}; what is finished is in it", path_, said));
  }
}

absl::Status VerdictStore::Execute(const char* sql) {
  return sqlite3_exec(db_.get(), sql, nullptr, nullptr, nullptr) == SQLITE_OK ? absl::OkStatus()
                                                                              : Error();
}

absl::StatusOr<VerdictStore::Statement> VerdictStore::Prepare(const char* sql) {
  sqlite3_stmt* made = nullptr;
  if (sqlite3_prepare_v2(db_.get(), sql, -1, &made, nullptr) != SQLITE_OK) return Error();
  return Statement(made);
}

absl::StatusOr<std::string> VerdictStore::Ask(const char* sql) {
  ASSIGN_OR_RETURN(const Statement statement, Prepare(sql));
  std::string lines;
  int step = SQLITE_ROW;
  while ((step = sqlite3_step(statement.get())) == SQLITE_ROW) {
    lines += TextAt(statement.get(), 0) + "\n";
  }
  if (step != SQLITE_DONE) return Error();
  return lines;
}

absl::StatusOr<std::unique_ptr<VerdictStore>> VerdictStore::Open(const std::string& path,
                                                                 std::string search) {
  std::unique_ptr<VerdictStore> store(new VerdictStore(path, std::move(search)));
  RETURN_IF_ERROR(store->Begin());
  return store;
}

absl::Status VerdictStore::Begin() {
  std::error_code error;
  is_new_ = !std::filesystem::exists(path_, error);
  sqlite3* db = nullptr;
  const int opened = sqlite3_open(path_.c_str(), &db);
  db_.reset(db);
  if (opened != SQLITE_OK) return Error();
  sqlite3_busy_timeout(db, 1000 * kWaitSeconds);
  // What is in the file may be anybody's.
  for (const int off : {SQLITE_DBCONFIG_ENABLE_TRIGGER, SQLITE_DBCONFIG_ENABLE_VIEW,
                        SQLITE_DBCONFIG_TRUSTED_SCHEMA}) {
    sqlite3_db_config(db, off, 0, nullptr);
  }
  RETURN_IF_ERROR(Execute("BEGIN IMMEDIATE"));
  RETURN_IF_ERROR(MakeTable());
  RETURN_IF_ERROR(Execute("COMMIT"));
  // Other versions kept a log beside; it ends when nobody else has the file open.
  Execute("PRAGMA journal_mode = DELETE").IgnoreError();
  ASSIGN_OR_RETURN(insert_, Prepare(kInsert));
  return Read();
}

absl::Status VerdictStore::MakeTable() {
  ASSIGN_OR_RETURN(const std::string version, Ask("PRAGMA user_version"));
  ASSIGN_OR_RETURN(const std::string names, Ask("SELECT name FROM sqlite_master"));
  const auto make = [&]() -> absl::Status {
    RETURN_IF_ERROR(Execute(kTable));
    return Execute(kSetVersion);
  };
  if (names.empty() && version == "0\n") return make();
  ASSIGN_OR_RETURN(const std::string said, Ask("PRAGMA integrity_check(1)"));
  if (said != "ok\n") return Damaged(said.substr(0, said.find('\n')));
  ASSIGN_OR_RETURN(const std::string columns,
                   Ask("SELECT name FROM pragma_table_info('verdicts')"));
  if (columns.starts_with(kColumns) && version == kVersion + std::string("\n"))
    return absl::OkStatus();
  if (columns != kFirstColumns || version != "0\n") return NoStore();
  // What another version has found is asked for anew: there is nothing to keep.
  ASSIGN_OR_RETURN(const std::string count, Ask("SELECT count(*) FROM verdicts"));
  of_another_version_ = configs::NumberIn<int64_t>(count.substr(0, count.size() - 1)).value_or(0);
  RETURN_IF_ERROR(Execute("DROP TABLE verdicts"));
  return make();
}

absl::Status VerdictStore::Read() {
  ASSIGN_OR_RETURN(const Statement select, Prepare(kSelect));
  sqlite3_stmt* row = select.get();
  Bind(row, 1, search_);
  std::vector<int64_t> damaged;
  int step = SQLITE_ROW;
  while ((step = sqlite3_step(row)) == SQLITE_ROW) {
    const bool has_types = HasTypes(row);
    Verdict verdict;
    const std::string statements = TextAt(row, 0), candidate = TextAt(row, 1);
    const int64_t kind = sqlite3_column_int64(row, 2);
    verdict.bound = Picoseconds(sqlite3_column_int64(row, 3));
    verdict.step = Picoseconds(sqlite3_column_int64(row, 4));
    verdict.peak = Bytes(sqlite3_column_int64(row, 5));
    verdict.program = TextAt(row, 6);
    verdict.why = TextAt(row, 7);
    const bool known =
        has_types && kind >= 0 && kind <= static_cast<int>(Verdict::Kind::kImpossible);
    if (known) verdict.kind = static_cast<Verdict::Kind>(kind);
    if (!known || !IsPossible(verdict) ||
        sqlite3_column_int64(row, 8) != Checksum(search_, statements, candidate, verdict)) {
      damaged.push_back(sqlite3_column_int64(row, 9));
      continue;
    }
    known_[statements] = std::move(verdict);
  }
  if (step != SQLITE_DONE) return Error();
  damaged_ = std::ssize(damaged);
  // So that they are counted once, also where nobody asks for the candidate.
  for (const int64_t id : damaged) {
    RETURN_IF_ERROR(Execute(fmt::format("DELETE FROM verdicts WHERE rowid = {}", id).c_str()));
  }
  return absl::OkStatus();
}

VerdictStore::~VerdictStore() {
  Write().IgnoreError();
  if (!is_new_ || db_ == nullptr) return;
  // Without the table there is no row either.
  const absl::StatusOr<std::string> row = Ask("SELECT 1 FROM verdicts LIMIT 1");
  insert_.reset();
  db_.reset();
  if (row.ok() && !row->empty()) return;
  std::error_code error;
  for (const char* part : {"", "-journal"}) std::filesystem::remove(path_ + part, error);
}

std::optional<Verdict> VerdictStore::Find(const std::string& statements) const {
  const auto found = known_.find(statements);
  return found == known_.end() ? std::nullopt : std::optional(found->second);
}

void VerdictStore::Reject(const std::string& statements) {
  damaged_ += static_cast<int64_t>(known_.erase(statements));
}

void VerdictStore::Add(const std::string& statements, const std::string& candidate,
                       const Verdict& verdict) {
  known_[statements] = verdict;
  unwritten_.push_back({statements, candidate, verdict});
}

absl::Status VerdictStore::Write() {
  const std::vector<StoredVerdict> rows = std::exchange(unwritten_, {});
  if (rows.empty()) return absl::OkStatus();
  RETURN_IF_ERROR(Execute("BEGIN IMMEDIATE"));
  absl::Status status;
  for (size_t n = 0; n < rows.size() && status.ok(); ++n) status = Insert(rows[n]);
  if (status.ok()) status = Execute("COMMIT");
  if (!status.ok()) Execute("ROLLBACK").IgnoreError();
  return status;
}

absl::Status VerdictStore::Insert(const StoredVerdict& row) {
  const auto& [statements, candidate, verdict] = row;
  sqlite3_stmt* insert = insert_.get();
  sqlite3_reset(insert);
  Bind(insert, 1, search_);
  Bind(insert, 2, statements);
  Bind(insert, 3, candidate);
  sqlite3_bind_int(insert, 4, static_cast<int>(verdict.kind));
  sqlite3_bind_int64(insert, 5, verdict.bound.value());
  sqlite3_bind_int64(insert, 6, verdict.step.value());
  sqlite3_bind_int64(insert, 7, verdict.peak.value());
  Bind(insert, 8, verdict.program);
  Bind(insert, 9, verdict.why);
  sqlite3_bind_int64(insert, 10, Checksum(search_, statements, candidate, verdict));
  return sqlite3_step(insert) == SQLITE_DONE ? absl::OkStatus() : Error();
}

std::string VerdictStore::Damage() const {
  std::vector<std::string> lines;
  if (damaged_ > 0) lines.push_back(fmt::format("{} damaged, and done again", RowsText(damaged_)));
  if (of_another_version_ > 0) {
    lines.push_back(
        fmt::format("{} of another version of tpusim, and done again",
                    RowsText(of_another_version_)));
  }
  std::string text;
  for (const std::string& line : lines) text += (text.empty() ? "" : "; ") + line;
  return text.empty() ? "" : fmt::format("--store {}: {}", path_, text);
}

}  // namespace tpusim::tools
