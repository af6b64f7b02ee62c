#include "workloads/lowering/repeated_runs.h"

#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "configs/status_macros.h"
#include "workloads/cost/schedule_graph.h"
#include "workloads/hlo/analysis/async.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/lowering/limits.h"

namespace tpusim::lowering {
namespace {

using hlo::Computation;
using hlo::Execution;
using hlo::Instruction;

// Instructions of a run that is worth a loop.
constexpr int64_t kFewestInRun = 48;

// Returns the most frequent distances between equal operations, in ascending order.
std::set<size_t> Lengths(const std::vector<int32_t>& done) {
  std::unordered_map<int32_t, size_t> last;  // looked up, never iterated over
  std::map<size_t, int64_t> counts;
  for (size_t i = 0; i < done.size(); ++i) {
    const auto [before, is_new] = last.try_emplace(done[i], i);
    if (!is_new) ++counts[i - std::exchange(before->second, i)];
  }
  std::vector<std::pair<int64_t, size_t>> found;  // how often, negative, and how far
  for (const auto& [length, count] : counts) found.emplace_back(-count, length);
  std::sort(found.begin(), found.end());
  if (const int64_t most = limits::kRecurrences.most(); std::ssize(found) > most) {
    limits::kRecurrences.Reached(std::ssize(found) - most);
    found.resize(static_cast<size_t>(most));
  }
  std::set<size_t> lengths;
  for (const auto& [count, length] : found) {
    // Two equal halves may differ in what surrounds them.
    lengths.insert(length);
    lengths.insert(2 * length);
  }
  return lengths;
}

// The names of parts of the program: the first of each kind, and the first behind the part.
using Spans = std::vector<std::pair<NextNames, NextNames>>;
void AddCalled(const Instruction& i, const Operations& operations, Spans& spans) {
  if (!hlo::IsControlFlow(i.opcode())) return;
  for (const Computation* called : i.called()) {
    spans.push_back(operations.names.at(called));
    for (const Instruction* inner : called->Order()) AddCalled(*inner, operations, spans);
  }
}

}  // namespace

std::vector<RepeatedRun> FindRepeatedRuns(const std::vector<int32_t>& done) {
  std::vector<RepeatedRun> found;
  for (const size_t length : Lengths(done)) {
    size_t same = 0;  // so many before this one are as those one length later
    for (size_t i = 0; i + length <= done.size(); ++i) {
      if (i + length < done.size() && done[i] == done[i + length]) {
        ++same;
        continue;
      }
      const auto count = static_cast<int64_t>(same / length) + 1;
      if (count >= kFewestIterations && count * static_cast<int64_t>(length) >= kFewestInRun) {
        found.push_back({i - same, length, count});
      }
      same = 0;
    }
  }
  // The longest, where several claim the same instructions; of these that of the shortest
  // iterations.
  const auto size = [](const RepeatedRun& run) {
    return run.length * static_cast<size_t>(run.count);
  };
  std::stable_sort(found.begin(), found.end(),
                   [&](const RepeatedRun& a, const RepeatedRun& b) { return size(a) > size(b); });
  std::vector<RepeatedRun> taken;
  for (const RepeatedRun& run : found) {
    const auto overlaps = [&](const RepeatedRun& other) {
      return run.begin < other.begin + size(other) && other.begin < run.begin + size(run);
    };
    if (std::none_of(taken.begin(), taken.end(), overlaps)) taken.push_back(run);
  }
  std::sort(taken.begin(), taken.end(),
            [](const RepeatedRun& a, const RepeatedRun& b) { return a.begin < b.begin; });
  return taken;
}

std::shared_ptr<const isa::Iterations> IterationsOf(const RepeatedRun& run,
                                                    const std::vector<Scheduled>& schedule,
                                                    const Operations& operations) {
  // Of an iteration itself and of all that it calls.
  const auto spans = [&](int64_t iteration) {
    const size_t begin = run.begin + run.length * static_cast<size_t>(iteration);
    Spans of = {{operations.of.at(schedule[begin].instruction).names, {}}};
    for (size_t n = begin; n < begin + run.length; ++n)
      AddCalled(*schedule[n].instruction, operations, of);
    return of;
  };
  Spans first = spans(0);
  const Spans second = spans(1);
  first[0].second = second[0].first;
  for (int64_t iteration = 2; iteration < run.count; ++iteration) {
    const Spans later = spans(iteration);
    for (size_t n = 0; n < later.size(); ++n) {
      for (int kind = 0; kind < isa::kNameKinds; ++kind) {
        const int32_t from = first[n].first[kind], stride = second[n].first[kind] - from;
        if (later[n].first[kind] != from + stride * iteration) return nullptr;
      }
    }
  }
  isa::Iterations::Ranges ranges;
  for (size_t n = 0; n < first.size(); ++n) {
    for (int kind = 0; kind < isa::kNameKinds; ++kind) {
      const int32_t from = first[n].first[kind], stride = second[n].first[kind] - from;
      if (stride < 0) return nullptr;
      if (stride > 0) ranges[kind].push_back({from, from, first[n].second[kind] - from, stride});
    }
  }
  // What an iteration waits for may have been started in one before.
  for (size_t n = run.begin; n < run.begin + run.length; ++n) {
    const Instruction& i = *schedule[n].instruction;
    if (operations.of.at(&i).what != Execution::kDone) continue;
    auto& tokens = ranges[static_cast<int>(isa::NameKind::kToken)];
    TPUSIM_CHECK(!tokens.empty(), "iterations wait for what none of them starts");
    int32_t& lowest = tokens.front().lowest;
    lowest = std::min(lowest, operations.of.at(&hlo::StartOf(i)).collective);
  }
  return std::make_shared<const isa::Iterations>(run.count, std::move(ranges));
}

void AppendWork(const isa::Block& block, std::vector<int64_t>& work) {
  const isa::MxuWork& mxu = block.mxu;
  work.insert(work.end(), {mxu.m, mxu.k, mxu.n, static_cast<int64_t>(mxu.format), mxu.batch,
                           block.valu, block.eup, block.xlu, block.load, block.store,
                           block.scalar.value(), block.latency.value(), block.stated.value(),
                           static_cast<int64_t>(block.stated_products)});
}

void AppendWork(const isa::Kernel& kernel, std::vector<int64_t>& work) {
  AppendWork(kernel.block, work);
  work.push_back(kernel.polls);
  work.push_back(static_cast<int64_t>(kernel.grid.size()));
  for (const isa::GridDim& dim : kernel.grid) {
    work.insert(work.end(), {dim.count, std::bit_cast<int64_t>(dim.last_fraction)});
  }
  for (const isa::Window& w : kernel.windows) {
    work.insert(work.end(),
                {static_cast<int64_t>(w.kind), static_cast<int64_t>(w.space), w.bytes.value(),
                 w.rows, static_cast<int64_t>(w.moves_with), w.buffers});
  }
}

void AppendWork(const isa::Body& transfer, std::vector<int64_t>& work) {
  for (const isa::Instruction& instruction : transfer) {
    if (const auto* dma = std::get_if<isa::Dma>(&instruction.kind)) {
      work.insert(work.end(), {static_cast<int64_t>(dma->from), static_cast<int64_t>(dma->to),
                               dma->bytes.value(), dma->rows});
    } else if (const auto* block = std::get_if<isa::Block>(&instruction.kind)) {
      AppendWork(*block, work);
    } else {
      const auto* host = std::get_if<isa::HostDma>(&instruction.kind);
      TPUSIM_CHECK(host != nullptr, "a transfer of one device is made of copies and blocks");
      work.insert(work.end(), {-1, static_cast<int64_t>(host->to_host), host->bytes.value()});
    }
  }
}

}  // namespace tpusim::lowering
