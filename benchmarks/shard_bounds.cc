// Measures how tight the bounds of a search for shardings are, and checks that none is above what
// is simulated.
//
//   build/shard_bounds [--candidates N] [--seed N] [--jobs N] [--may-constrain VALUE] FILE.pb...
//
// Compiles and simulates N random candidates of each program on its slice. Each candidate begins
// with partial choices, whose bounds must not be above its step, nor its memory. Prints a table:
// for each program the bounds as shares of the simulated steps. Exit code 1: a bound is above.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "configs/status_macros.h"
#include "sim/results/report/text.h"
#include "tools/tpusim/find/judge.h"
#include "tools/tpusim/find/pool.h"
#include "tools/tpusim/output/shell_word.h"
#include "tools/tpusim/pipeline/pipeline.h"
#include "tools/tpusim/shard/find.h"
#include "tools/tpusim/shard/paste.h"
#include "workloads/search/rate_bound.h"
#include "workloads/search/space.h"
#include "workloads/search/statements.h"

namespace tpusim::tools {
namespace {

using search::AxisSet;
using search::Candidate;
using search::Space;

// A candidate that is possible; nothing where so many attempts have none.
std::optional<Candidate> RandomCandidate(const Space& space, std::mt19937_64& random) {
  constexpr int kAttempts = 200;
  const auto any = [&](size_t count) {
    return std::uniform_int_distribution<size_t>(0, count - 1)(random);
  };
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    Candidate candidate;
    candidate.mesh = static_cast<int32_t>(any(space.meshes().size()));
    bool possible = true;
    for (size_t d = 0; d < space.decisions() && possible; ++d) {
      const std::vector<AxisSet>& choices = space.Choices(static_cast<size_t>(candidate.mesh), d);
      candidate.axes.push_back(choices[any(choices.size())]);
      possible = space.Possible(candidate.axes);
    }
    if (!possible) continue;
    const std::vector<size_t> active = space.Conflicts(candidate.axes);
    if (!active.empty() && any(2) == 1) {
      candidate.conflicts.assign(space.conflicts().size(), search::ConflictResolution::kByPropagation);
      for (const size_t c : active) {
        candidate.conflicts[c] = any(2) == 1 ? search::ConflictResolution::kFirst : search::ConflictResolution::kSecond;
      }
    }
    return candidate;
  }
  return std::nullopt;
}

// Shares of the simulated steps.
struct Shares {
  std::vector<double> of;
  void Add(double share) { of.push_back(share); }
  std::string Text() {
    if (of.empty()) return "-";
    std::ranges::sort(of);
    return fmt::format("{:.2f} {:.2f} {:.2f}", of.front(), of[of.size() / 2], of.back());
  }
};

// The command that simulates it.
void Say(const std::string& what, const FindProblem& problem, const Candidate& candidate) {
  std::string words;
  for (const std::string& word : OptionsOf(problem, candidate).Words()) words += " " + ShellWord(word);
  std::fprintf(stderr, "%s: tpusim run %s%s\n", what.c_str(), problem.options.workload.c_str(),
               words.c_str());
}

struct BoundsRow {
  int64_t simulated = 0, partial = 0, above = 0;
  Shares root, half, whole, compiled, memory;
};

class Bounds {
 public:
  Bounds(int64_t candidates, int jobs, uint64_t seed, std::vector<std::string> may_constrain)
      : candidates_(candidates),
        jobs_(jobs),
        random_(seed),
        may_constrain_(std::move(may_constrain)) {}

  absl::StatusOr<BoundsRow> Of(const std::string& file) {
    FindOptions options;
    options.workload = file;
    options.may_constrain = may_constrain_;
    ASSIGN_OR_RETURN(const std::unique_ptr<FindProblem> problem, ProblemOf(options));
    const Space& space = problem->spaces.front();
    const search::RateBound rates(problem->program, space);
    Judge judge;  // of a worker
    Pool workers(jobs_, [&](const std::string& question) -> absl::StatusOr<std::string> {
      const auto [candidate, cutoff] = CandidateOf(question);
      ASSIGN_OR_RETURN(const search::Verdict verdict,
                       VerdictOn(*problem, candidate, cutoff, judge));
      return ToText(verdict);
    });
    BoundsRow row;
    std::map<int64_t, Candidate> asked;
    std::set<std::string> known;
    for (int64_t n = 0; n < candidates_ || workers.busy();) {
      while (n < candidates_ && workers.idle()) {
        const int64_t tag = n++;
        const std::optional<Candidate> candidate = RandomCandidate(space, random_);
        if (!candidate) continue;
        const std::string question = ToText(*candidate, Picoseconds(INT64_MAX));
        if (!known.insert(question).second) continue;
        RETURN_IF_ERROR(workers.Ask(tag, question));
        asked.emplace(tag, *candidate);
      }
      const auto reply = workers.Wait(std::chrono::milliseconds(1000));
      if (!reply) continue;
      RETURN_IF_ERROR(reply->answer.status());
      const search::Verdict verdict = VerdictOf(*reply->answer);
      if (verdict.kind == search::Verdict::Kind::kImpossible) {
        Say("refused, " + verdict.why, *problem, asked.at(reply->tag));
      }
      if (verdict.kind != search::Verdict::Kind::kSimulated) continue;
      Compare(*problem, rates, asked.at(reply->tag), verdict, row);
    }
    return row;
  }

 private:
  static void Compare(const FindProblem& problem, const search::RateBound& rates,
                      const Candidate& candidate, const search::Verdict& verdict, BoundsRow& row) {
    ++row.simulated;
    const auto mesh = static_cast<size_t>(candidate.mesh);
    std::vector<AxisSet> decided;
    for (size_t d = 0;; ++d) {
      const Picoseconds time = rates.Time(mesh, decided);
      const Bytes memory = rates.Memory(mesh, decided);
      ++row.partial;
      if (time > verdict.step || memory > verdict.peak) {
        ++row.above;
        Say("above", problem, candidate);
      }
      const double share = Ratio(time, verdict.step);
      if (d == 0) row.root.Add(share);
      if (d == candidate.axes.size() / 2) row.half.Add(share);
      if (d == candidate.axes.size()) {
        row.whole.Add(share);
        row.memory.Add(Ratio(memory, verdict.peak));
        break;
      }
      decided.push_back(candidate.axes[d]);
    }
    if (verdict.bound > verdict.step) {
      ++row.above;
      Say("above", problem, candidate);
    }
    row.compiled.Add(Ratio(verdict.bound, verdict.step));
  }

  const int64_t candidates_;
  const int jobs_;
  std::mt19937_64 random_;
  const std::vector<std::string> may_constrain_;
};

int Main(int argc, char** argv) {
  int64_t candidates = 20;
  uint64_t seed = 1;
  int jobs = Processors();
  std::vector<std::string> files, may_constrain;
  CLI::App app("How tight the bounds of a search for shardings are.");
  app.add_option("--candidates", candidates);
  app.add_option("--seed", seed);
  app.add_option("--jobs", jobs);
  app.add_option("--may-constrain", may_constrain)->allow_extra_args(false);
  app.add_option("files", files)->required();
  CLI11_PARSE(app, argc, argv);
  std::vector<std::vector<std::string>> table = {{"<program", "simulated", "partial", "above",
                                                  "rates, open", "half", "decided", "compiled",
                                                  "memory"}};
  BoundsRow all;
  for (const std::string& file : files) {
    absl::StatusOr<BoundsRow> row = Bounds(candidates, jobs, seed, may_constrain).Of(file);
    if (!row.ok()) {
      std::fprintf(stderr, "%s: %s\n", file.c_str(), Message(row.status()).c_str());
      if (absl::IsInternal(row.status())) return 1;
      continue;
    }
    all.simulated += row->simulated;
    all.partial += row->partial;
    all.above += row->above;
    table.push_back({NameOf(file), std::to_string(row->simulated),
                     std::to_string(row->partial), std::to_string(row->above), row->root.Text(),
                     row->half.Text(), row->whole.Text(), row->compiled.Text(),
                     row->memory.Text()});
  }
  table.push_back({"all", std::to_string(all.simulated), std::to_string(all.partial),
                   std::to_string(all.above), "", "", "", "", ""});
  std::fputs(results::TableText(table, 10'000).c_str(), stdout);
  return all.above == 0 ? 0 : 1;
}

}  // namespace
}  // namespace tpusim::tools

int main(int argc, char** argv) { return tpusim::tools::Main(argc, argv); }
