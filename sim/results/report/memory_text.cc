#include "sim/results/report/memory_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "sim/results/report/name_pattern.h"
#include "sim/results/report/rollup.h"
#include "sim/results/report/scope.h"
#include "sim/results/report/text.h"

namespace tpusim::results {
namespace {

struct MemoryRow {
  NamePattern name;
  int64_t arrays = 0;
  Bytes bytes{0}, padding{0};
  const isa::LiveArray* first = nullptr;
};

std::string ScopeOf(const isa::LiveArray& array) {
  const std::string scope = ScopeText(ScopesOf(array.scope));
  return scope.empty() ? std::string(kNoScope) : scope;
}

// A table of bytes by key, the largest first.
class MemoryTable {
 public:
  void Add(const std::string& key, const std::string& name, const isa::LiveArray& array) {
    MemoryRow& row = rows_[key];
    row.name.Add(name);
    ++row.arrays;
    row.bytes += array.bytes;
    row.padding += array.bytes - array.unpadded;
    if (row.first == nullptr) row.first = &array;
  }
  std::vector<MemoryRow> Take() {
    std::vector<MemoryRow> rows;
    for (auto& [key, row] : rows_) rows.push_back(std::move(row));
    std::ranges::stable_sort(rows, std::greater<>(), &MemoryRow::bytes);
    return rows;
  }

 private:
  std::map<std::string, MemoryRow> rows_;
};

using Cells = std::vector<std::vector<std::string>>;

void AddRest(const std::vector<MemoryRow>& rows, size_t top, Bytes peak, size_t columns,
             Cells& cells) {
  if (rows.size() <= top) return;
  MemoryRow rest;
  for (size_t i = top; i < rows.size(); ++i) {
    rest.arrays += rows[i].arrays;
    rest.bytes += rows[i].bytes;
    rest.padding += rows[i].padding;
  }
  cells.push_back({fmt::format("({} others)", rows.size() - top), fmt::format("{}", rest.arrays),
                   BytesText(rest.bytes), PercentText(Ratio(rest.bytes, peak)),
                   BytesText(rest.padding)});
  cells.back().resize(columns);
}

std::string MemoryTableText(const Cells& cells, size_t width) {
  return "\n" + TableText(cells, width);
}

std::string Sums(std::string_view head, std::vector<MemoryRow> rows, size_t top, const Report& r,
                 Bytes holes, size_t width) {
  Cells cells = {{std::string(head), "arrays", "bytes", "peak", "padding"}};
  for (size_t i = 0; i < std::min(top, rows.size()); ++i) {
    const MemoryRow& row = rows[i];
    cells.push_back({row.name.text(), fmt::format("{}", row.arrays), BytesText(row.bytes),
                     PercentText(Ratio(row.bytes, r.peak.hbm())), BytesText(row.padding)});
  }
  AddRest(rows, top, r.peak.hbm(), cells[0].size(), cells);
  if (holes > Bytes(0)) {
    cells.push_back({"(holes between arrays)", "", BytesText(holes),
                     PercentText(Ratio(holes, r.peak.hbm())), ""});
  }
  return MemoryTableText(cells, width);
}

// Returns the contents of VMEM when most of it is in use: the windows of the kernel, and arrays.
std::string VmemText(const isa::VmemAtPeak& m, size_t top, size_t width) {
  if (m.bytes == Bytes(0)) return "";
  MemoryTable arrays;
  for (const isa::LiveArray& a : m.arrays) {
    arrays.Add(fmt::format("{}\n{}\n{}\n{}", NumberlessKey(a.name), a.owner, a.shape, a.source),
               a.name, a);
  }
  constexpr size_t kIndent = 15;
  std::string text =
      "\n" + WrappedText(fmt::format("{:<14} {} of {} VMEM, in {}", "peak of VMEM",
                                     BytesText(m.bytes), BytesText(m.capacity), m.operation),
                         kIndent, width);
  const std::vector<MemoryRow> rows = arrays.Take();
  Cells cells = {{"array", "arrays", "bytes", "peak", "padding", "<how", "<shape", "<source"}};
  if (m.windows > Bytes(0)) {
    cells.push_back({"windows of " + m.operation, "", BytesText(m.windows),
                     PercentText(Ratio(m.windows, m.bytes)), "", "windows", "", ""});
  }
  for (size_t i = 0; i < std::min(top, rows.size()); ++i) {
    const MemoryRow& row = rows[i];
    cells.push_back({row.name.text(), fmt::format("{}", row.arrays), BytesText(row.bytes),
                     PercentText(Ratio(row.bytes, m.bytes)), BytesText(row.padding),
                     row.first->owner, row.first->shape, row.first->source});
  }
  AddRest(rows, top, m.bytes, cells[0].size(), cells);
  return text + MemoryTableText(cells, width);
}

}  // namespace

std::string MemoryText(const Report& r, size_t top, size_t width) {
  const MemoryReport& m = r.memory_at_peak;
  MemoryTable owners, scopes, arrays;
  for (const isa::LiveArray& a : m.arrays) {
    owners.Add(a.owner, a.owner, a);
    const std::string scope = ScopeOf(a);
    scopes.Add(NumberlessKey(scope), scope, a);
    arrays.Add(fmt::format("{}\n{}\n{}\n{}", NumberlessKey(a.name), a.owner, a.shape, a.source),
               a.name, a);
  }
  constexpr size_t kIndent = 15;
  std::string head = fmt::format("{:<14} {} of {} usable HBM", "peak", BytesText(r.peak.hbm()),
                                 BytesText(r.usable.hbm()));
  if (r.step_time > Picoseconds(0)) {
    head += fmt::format(", {} into the step ({})", TimeText(m.time),
                        PercentText(Ratio(m.time, r.step_time)));
  }
  if (!m.operation.empty()) head += fmt::format(", in {}", m.operation);
  std::string text = "\n" + WrappedText(head, kIndent, width);
  text += Sums("owner", owners.Take(), top, r, m.fragmentation, width);
  text += Sums("scope", scopes.Take(), top, r, Bytes(0), width);
  const std::vector<MemoryRow> rows = arrays.Take();
  Cells cells = {{"array", "arrays", "bytes", "peak", "padding", "<owner", "<shape", "<source"}};
  for (size_t i = 0; i < std::min(top, rows.size()); ++i) {
    const MemoryRow& row = rows[i];
    cells.push_back({row.name.text(), fmt::format("{}", row.arrays), BytesText(row.bytes),
                     PercentText(Ratio(row.bytes, r.peak.hbm())), BytesText(row.padding),
                     row.first->owner, row.first->shape, row.first->source});
  }
  AddRest(rows, top, r.peak.hbm(), cells[0].size(), cells);
  return text + MemoryTableText(cells, width) + VmemText(r.vmem_at_peak, top, width);
}

}  // namespace tpusim::results
