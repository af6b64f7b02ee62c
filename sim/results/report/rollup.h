// Roll-ups: the time of a step in several tables.
//
// The main stream of a device does one thing at a time: it executes an operation, waits for a
// transfer, or has nothing to do. So its step falls apart into intervals that do not overlap,
// each of which belongs to one row of a table, and the rows of every table add up to the step:
//
//   op          operations; equal ones of unrolled layers are one row (see below)
//   scope       named scopes (scope.h), a tree: `time` is without the scopes inside
//   source      lines of the program
//   category    kinds of operations, "exposed all-gather" for waits, "idle"
//   xprof       XProf's hlo_category: as category, but a wait is the operation that waits
//               ("all-gather", or "collective-permute-done" if other work went on meanwhile)
//   collective  kinds of collectives that the main stream waits for, and all the rest
//   path        the critical path (critical_path.h), which leads over all devices: operations, and
//               the resources that take time in them, as categories
//
// Of the time of a row a compute slot is busy in `compute`, and the main stream waits for a
// transfer in `exposed`; in the rest windows are on their way or something is being launched.
//
// Unrolled layers are one: names that differ in numbers only ("layers_3", "layers_4") become one
// row, "layers_*" with two `members`. Numbers that are the same in all of them stay. Operations
// must be of equal category, line and (but for numbers) scope, too: "fusion.3" has little to do
// with "fusion.4" elsewhere.
#ifndef TPUSIM_SIM_RESULTS_REPORT_ROLLUP_H_
#define TPUSIM_SIM_RESULTS_REPORT_ROLLUP_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "configs/units.h"
#include "models/isa/program_info.h"
#include "sim/timeline.h"

namespace tpusim::results {

enum class RollupBy { kOp, kScope, kSource, kCategory, kXprof, kCollective, kPath };
inline constexpr std::array kRollups = {
    RollupBy::kOp,    RollupBy::kScope,      RollupBy::kSource, RollupBy::kCategory,
    RollupBy::kXprof, RollupBy::kCollective, RollupBy::kPath};
std::string_view RollupName(RollupBy by);  // "op", "scope", ...
std::optional<RollupBy> RollupOf(std::string_view name);

struct RollupRow {
  std::string name;
  int64_t members = 1;  // operations, scopes, lines that are counted together
  int64_t count = 0;    // executions
  Picoseconds time{0}, compute{0}, exposed{0};
  std::string category, source, scope;  // of operations
  Picoseconds total{0};                 // of a scope: with the scopes inside
  Picoseconds in_flight{0}, hidden{0};  // of a kind of collectives
};

// Longest first; scopes in the order of the tree, every one before those inside.
struct Rollups {
  std::array<std::vector<RollupRow>, kRollups.size()> tables;
  std::vector<RollupRow>& Of(RollupBy by) { return tables[static_cast<size_t>(by)]; }
  const std::vector<RollupRow>& Of(RollupBy by) const { return tables[static_cast<size_t>(by)]; }
};

inline constexpr std::string_view kIdle = "idle";
inline constexpr std::string_view kNoOperation = "(no operation)";
inline constexpr std::string_view kNoScope = "(no scope)";
inline constexpr std::string_view kNoSource = "(no source)";
inline constexpr std::string_view kNoCollective = "(no collective)";

// Returns whether an operation only holds others: its time is that of the operations inside.
bool IsContainer(const isa::OpInfo& op);

// Returns XProf's hlo_category of what the main stream does in an operation.
std::string XprofCategory(const isa::OpInfo& op);

Rollups RollUp(const isa::ProgramInfo& info, const sim::Timeline& timeline);

// A line of a table that has no room for all rows: there are `top` lines and one for all others, or
// one more if that is the only other.
struct RollupLine {
  RollupRow row;             // their sum
  std::vector<size_t> rows;  // of the table
};
// Returns the lines of a table. In the tree of scopes the longest are opened as long as there is
// room for what is inside.
std::vector<RollupLine> TopLines(const std::vector<RollupRow>& rows, RollupBy by, size_t top);

// Merges tables of several programs. Rows with the same KeyOf are one, whatever numbers their names
// have.
std::vector<RollupRow> Merge(const std::vector<const std::vector<RollupRow>*>& tables, RollupBy by);
std::string KeyOf(const RollupRow& row);

}  // namespace tpusim::results

#endif  // TPUSIM_SIM_RESULTS_REPORT_ROLLUP_H_
