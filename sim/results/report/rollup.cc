#include "sim/results/report/rollup.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "sim/results/report/critical_path.h"
#include "sim/results/report/name_pattern.h"
#include "sim/results/report/scope.h"

namespace tpusim::results {
namespace {

// Time of the main stream in one operation.
struct Spent {
  int64_t count = 0;
  Picoseconds time{0}, compute{0}, exposed{0};
};

void AddTo(RollupRow& row, const Spent& spent) {
  row.count += spent.count;
  row.time += spent.time;
  row.compute += spent.compute;
  row.exposed += spent.exposed;
}

Spent SpentIn(const isa::ProgramInfo& info, const sim::Timeline& timeline, int32_t op) {
  const sim::OpTotals& t = timeline.ops[op];
  const bool waits = isa::WaitsFor(info, op) >= 0;
  return {t.count, t.main, t.main_busy, waits ? t.main - t.main_busy : Picoseconds(0)};
}

// Returns the kind of collective that a wait is for; "" for other operations.
std::string ExposedKind(const isa::ProgramInfo& info, int32_t op) {
  const int32_t transfer = isa::WaitsFor(info, op);
  if (transfer < 0) return "";
  const isa::OpInfo& what = info.ops[transfer];
  return what.collective >= 0 ? info.collectives[what.collective].kind : what.category;
}

std::string CategoryOf(const isa::ProgramInfo& info, int32_t op) {
  const std::string kind = ExposedKind(info, op);
  return kind.empty() ? info.ops[op].category : "exposed " + kind;
}

void LongestFirst(std::vector<RollupRow>& rows) {
  std::erase_if(rows, [](const RollupRow& row) {
    return row.time == Picoseconds(0) && row.total == Picoseconds(0) &&
           row.in_flight == Picoseconds(0);
  });
  std::ranges::stable_sort(rows, std::greater<>(), &RollupRow::time);
}

// Rows by key, in the order of the keys.
class RowsByName {
 public:
  // Names of one key differ in numbers only, and so do their scopes.
  RollupRow& Row(const std::string& key, const std::string& name, const std::string& scope = "") {
    Named& named = rows_[key];
    named.name.Add(name);
    named.scope.Add(scope);
    return named.row;
  }
  std::vector<RollupRow> Take() {
    std::vector<RollupRow> rows;
    for (auto& [key, named] : rows_) {
      named.row.name = named.name.text();
      named.row.scope = named.scope.text();
      named.row.members = named.name.members();
      rows.push_back(std::move(named.row));
    }
    LongestFirst(rows);
    return rows;
  }

 private:
  struct Named {
    NamePattern name, scope;
    RollupRow row;
  };
  std::map<std::string, Named> rows_;
};

// Scopes by the keys of their components, so that unrolled layers meet.
class ScopeTree {
 public:
  void Add(const std::vector<std::string>& path, const Spent& spent) {
    ScopeNode* node = &root_;
    std::string name;
    for (const std::string& part : path) {
      name += (name.empty() ? "" : "/") + part;
      node = &node->inside[NumberlessKey(part)];
      node->pattern.Add(name);
      node->row.total += spent.time;
    }
    AddTo(node->row, spent);
  }

  std::vector<RollupRow> Take() {
    std::vector<RollupRow> rows;
    // A scope is deep only if its name is long; those inside are put on top of the stack.
    std::vector<ScopeNode*> open = Inside(root_);
    while (!open.empty()) {
      ScopeNode* node = open.back();
      open.pop_back();
      node->row.name = node->pattern.text();
      node->row.members = node->pattern.members();
      if (node->row.total > Picoseconds(0)) rows.push_back(node->row);
      const std::vector<ScopeNode*> inside = Inside(*node);
      open.insert(open.end(), inside.begin(), inside.end());
    }
    return rows;
  }

 private:
  struct ScopeNode {
    NamePattern pattern;
    RollupRow row;
    std::map<std::string, ScopeNode> inside;
  };
  // The longest last.
  static std::vector<ScopeNode*> Inside(ScopeNode& node) {
    std::vector<ScopeNode*> inside;
    for (auto& [key, child] : node.inside) inside.push_back(&child);
    std::ranges::reverse(inside);
    std::ranges::stable_sort(inside, {}, [](const ScopeNode* node) { return node->row.total; });
    return inside;
  }
  ScopeNode root_;
};

RollupRow Sum(const std::vector<RollupRow>& rows, const std::vector<size_t>& which) {
  RollupRow sum;
  sum.members = 0;
  for (const size_t i : which) {
    const RollupRow& row = rows[i];
    AddTo(sum, {row.count, row.time, row.compute, row.exposed});
    sum.members += row.members;
    sum.in_flight += row.in_flight;
    sum.hidden += row.hidden;
  }
  return sum;
}

// Scopes and what is inside them, the table from which lines are made. Names of scopes that are
// inside of each other may differ in which numbers are told, so keys are compared.
class ScopeLines {
 public:
  explicit ScopeLines(const std::vector<RollupRow>& rows) : rows_(rows) {
    for (const RollupRow& row : rows) keys_.push_back(NumberlessKey(row.name));
  }

  std::vector<RollupLine> Top(size_t top) const {
    std::vector<RollupLine> lines;
    for (const Subtree& part : OpenLongest(top)) {
      RollupLine line;
      for (size_t i = part.first; i < part.end; ++i) line.rows.push_back(i);
      line.row = Sum(rows_, line.rows);
      line.row.name = rows_[part.first].name;
      line.row.members = rows_[part.first].members;
      if (part.alone && HasInside(part.first)) line.row.name += "/(rest)";
      lines.push_back(std::move(line));
    }
    return lines;
  }

 private:
  // One line with what it covers.
  struct Subtree {
    size_t first = 0, end = 0;  // rows; a scope and all inside
    bool alone = false;         // without those inside
    Picoseconds time{0};
  };

  bool IsInside(size_t row, size_t outer) const {
    const std::string &scope = keys_[row], &of = keys_[outer];
    return scope.size() > of.size() && scope[of.size()] == '/' && scope.starts_with(of);
  }
  bool HasInside(size_t row) const { return row + 1 < rows_.size() && IsInside(row + 1, row); }

  std::vector<Subtree> PartsOf(size_t first, size_t end) const {
    std::vector<Subtree> parts;
    for (size_t i = first; i < end;) {
      size_t next = i + 1;
      while (next < end && IsInside(next, i)) ++next;
      parts.push_back({i, next, next == i + 1, rows_[i].total});
      i = next;
    }
    return parts;
  }

  std::vector<Subtree> Opened(const Subtree& part) const {
    std::vector<Subtree> inside = PartsOf(part.first + 1, part.end);
    if (const Picoseconds own = rows_[part.first].time; own > Picoseconds(0)) {
      inside.push_back({part.first, part.first + 1, true, own});
    }
    return inside;
  }

  std::vector<Subtree> OpenLongest(size_t top) const {
    std::vector<Subtree> parts = PartsOf(0, rows_.size());
    while (true) {
      size_t best = parts.size();
      std::vector<Subtree> inside_best;
      for (size_t i = 0; i < parts.size(); ++i) {
        if (parts[i].alone) continue;
        if (best < parts.size() && parts[i].time <= parts[best].time) continue;
        std::vector<Subtree> inside = Opened(parts[i]);
        // One line for all says nothing: then there are others (TopLines).
        const size_t more = parts.size() - 1 + inside.size();
        if (inside.size() > 1 && (parts.size() > 1 || top == 1) && more > top) continue;
        best = i;
        inside_best = std::move(inside);
      }
      if (best == parts.size()) return parts;
      parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(best));
      parts.insert(parts.end(), inside_best.begin(), inside_best.end());
    }
  }

  const std::vector<RollupRow>& rows_;
  std::vector<std::string> keys_;
};

}  // namespace

std::string_view RollupName(RollupBy by) {
  static constexpr std::string_view kNames[] = {"op",    "scope",      "source", "category",
                                                "xprof", "collective", "path"};
  return kNames[static_cast<size_t>(by)];
}

std::optional<RollupBy> RollupOf(std::string_view name) {
  for (const RollupBy by : kRollups) {
    if (RollupName(by) == name) return by;
  }
  return std::nullopt;
}

namespace {

std::vector<RollupRow> PathRows(const isa::ProgramInfo& info, const sim::Timeline& timeline) {
  RowsByName rows;
  Picoseconds rest = timeline.step_time;
  for (const events::Causes::PathPart& part : timeline.critical_path) {
    const isa::OpInfo op = part.op < 0 ? isa::OpInfo() : info.ops[part.op];
    const std::string name = part.op < 0 ? std::string(kNoOperation) : op.name;
    const std::string category(SpentText(part.spent));
    const std::string scope = ScopeText(ScopesOf(op.scope));
    const std::string key = fmt::format("{}\n{}\n{}\n{}", NumberlessKey(name), category, op.source,
                                        NumberlessKey(scope));
    RollupRow& row = rows.Row(key, name, scope);
    row.category = category;
    row.source = op.source;
    row.time += part.time;
    rest -= part.time;
  }
  if (rest != Picoseconds(0)) rows.Row(std::string(kIdle), std::string(kIdle)).time = rest;
  return rows.Take();
}

}  // namespace

bool IsContainer(const isa::OpInfo& op) {
  return op.category == "while" || op.category == "conditional" || op.category == "call";
}

std::string XprofCategory(const isa::OpInfo& op) {
  // In modules of the TPU compiler these are fusions.
  if (op.carried) return "custom fusion";
  // Ours names the memory that is waited for.
  return op.category == "wait for host" ? "copy-done" : op.category;
}

Rollups RollUp(const isa::ProgramInfo& info, const sim::Timeline& timeline) {
  RowsByName ops, sources, categories, xprof, collectives;
  ScopeTree scopes;
  Spent idle{0, timeline.step_time, Picoseconds(0), Picoseconds(0)};
  for (size_t i = 0; i < timeline.ops.size(); ++i) {
    const auto op = static_cast<int32_t>(i);
    if (info.ops[i].is_async || timeline.ops[i].count == 0) continue;
    const Spent spent = SpentIn(info, timeline, op);
    idle.time -= spent.time;
    const isa::OpInfo& o = info.ops[i];
    const std::string category = CategoryOf(info, op), kind = ExposedKind(info, op);
    std::vector<std::string> scope = ScopesOf(o.scope);
    const std::string inside = ScopeText(scope);
    if (scope.empty()) scope.emplace_back(kNoScope);
    const std::string key = fmt::format("{}\n{}\n{}\n{}", NumberlessKey(o.name), category, o.source,
                                        NumberlessKey(inside));
    RollupRow& row = ops.Row(key, o.name, inside);
    row.category = category;
    row.source = o.source;
    AddTo(row, spent);
    scopes.Add(scope, spent);
    const std::string source = o.source.empty() ? std::string(kNoSource) : o.source;
    AddTo(sources.Row(source, source), spent);
    AddTo(categories.Row(category, category), spent);
    const std::string of_xprof = XprofCategory(o);
    AddTo(xprof.Row(of_xprof, of_xprof), spent);
    const std::string collective = kind.empty() || info.ops[isa::WaitsFor(info, op)].collective < 0
                                       ? std::string(kNoCollective)
                                       : kind;
    AddTo(collectives.Row(collective, collective), spent);
  }
  for (const sim::CollectiveKindTotals& kind : timeline.kinds) {
    RollupRow& row = collectives.Row(kind.kind, kind.kind);
    row.in_flight = kind.in_flight;
    row.hidden = kind.hidden;
  }
  if (idle.time != Picoseconds(0)) {
    const std::string name(kIdle);
    for (RowsByName* rows : {&ops, &sources, &categories, &xprof, &collectives}) {
      AddTo(rows->Row(name, name), idle);
    }
    scopes.Add({name}, idle);
  }
  Rollups rollups;
  rollups.Of(RollupBy::kOp) = ops.Take();
  rollups.Of(RollupBy::kScope) = scopes.Take();
  rollups.Of(RollupBy::kSource) = sources.Take();
  rollups.Of(RollupBy::kCategory) = categories.Take();
  rollups.Of(RollupBy::kXprof) = xprof.Take();
  rollups.Of(RollupBy::kCollective) = collectives.Take();
  rollups.Of(RollupBy::kPath) = PathRows(info, timeline);
  return rollups;
}

std::vector<RollupLine> TopLines(const std::vector<RollupRow>& rows, RollupBy by, size_t top) {
  std::vector<RollupLine> lines;
  if (by == RollupBy::kScope) {
    lines = ScopeLines(rows).Top(top);
  } else {
    for (size_t i = 0; i < rows.size(); ++i) lines.push_back({rows[i], {i}});
  }
  std::ranges::stable_sort(lines, std::greater<>(),
                           [](const RollupLine& line) { return line.row.time; });
  // One row takes no more room than a line about it.
  if (lines.size() <= top + 1) return lines;
  RollupLine others;
  for (size_t i = top; i < lines.size(); ++i) {
    others.rows.insert(others.rows.end(), lines[i].rows.begin(), lines[i].rows.end());
  }
  others.row = Sum(rows, others.rows);
  others.row.members = 1;
  others.row.name = fmt::format("({} others)", lines.size() - top);
  lines.resize(top);
  lines.push_back(std::move(others));
  return lines;
}

std::vector<RollupRow> Merge(const std::vector<const std::vector<RollupRow>*>& tables,
                             RollupBy by) {
  RowsByName merged;
  for (const std::vector<RollupRow>* table : tables) {
    for (const RollupRow& row : *table) {
      RollupRow& sum = merged.Row(KeyOf(row), row.name);
      AddTo(sum, {row.count, row.time, row.compute, row.exposed});
      sum.total += row.total;
      sum.category = row.category;
      sum.in_flight += row.in_flight;
      sum.hidden += row.hidden;
    }
  }
  std::vector<RollupRow> rows = merged.Take();
  if (by != RollupBy::kScope) return rows;
  // Scopes before those inside.
  std::ranges::stable_sort(rows, {}, KeyOf);
  return rows;
}

std::string KeyOf(const RollupRow& row) {
  std::string key = NumberlessKey(row.name);
  if (!row.category.empty()) key += "\n" + row.category;
  // What is inside of a scope comes right behind it.
  std::replace(key.begin(), key.end(), '/', '\0');
  return key;
}

}  // namespace tpusim::results
