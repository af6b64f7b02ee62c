#include "tools/tpusim/shard/find.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "configs/status_macros.h"
#include "sim/results/report/text.h"
#include "tools/tpusim/find/judge.h"
#include "tools/tpusim/find/key.h"
#include "tools/tpusim/find/pool.h"
#include "tools/tpusim/find/store.h"
#include "tools/tpusim/output/console.h"
#include "tools/tpusim/output/outputs.h"
#include "tools/tpusim/output/stopwatch.h"
#include "tools/tpusim/pipeline/pipeline.h"
#include "workloads/hlo/io/import.h"
#include "workloads/search/forest.h"
#include "workloads/search/rate_bound.h"
#include "workloads/search/statements.h"
#include "workloads/sharding/normalised/named_values.h"
#include "workloads/target/target.h"

namespace tpusim::tools {
namespace {

using search::BranchAndBound;
using search::Candidate;
using search::Verdict;

// Names of axes where neither the program nor the user has any.
const char* const kAxes[] = {"data", "model"};
// The question about the program as it is.
constexpr char kAsItIs[] = "as it is";
constexpr double kSecondsOfNews = 2;
// Verdicts of so many seconds may be lost where the process is killed.
constexpr double kSecondsUnwritten = 0.2;

absl::StatusOr<std::vector<search::StatedDims>> StatedDimsOf(const std::vector<std::string>& all) {
  std::vector<search::StatedDims> stated;
  for (const std::string& text : all) {
    ASSIGN_OR_RETURN(search::StatedDims dims, search::ParseStatedDims(text));
    stated.push_back(std::move(dims));
  }
  return stated;
}

// The axes that meshes have: those that the user names, the program's, or two.
std::vector<std::string> AxesOf(const FindOptions& options, const search::Program& program) {
  if (!options.axes.empty()) return options.axes;
  std::vector<std::string> axes;
  for (const sharding::MeshAxis& axis : program.mesh.axes) {
    if (!axis.name.empty()) axes.push_back(axis.name);
  }
  for (const char* name : kAxes) {
    if (axes.size() >= std::size(kAxes)) break;
    if (std::ranges::find(axes, name) == axes.end()) axes.emplace_back(name);
  }
  return axes;
}

// The values of a variant that the user states constraints for.
std::set<std::string> ConstrainedIn(const search::Variant& variant,
                                    const std::vector<sharding::StatedConstraint>& constraints) {
  std::set<std::string> constrained;
  if (constraints.empty()) return constrained;
  const sharding::NamedValues values(*variant.source.normalised);
  for (const sharding::StatedConstraint& stated : constraints) {
    for (const std::string& pattern : stated.values) {
      for (const hlo::Instruction* value : values.Find(pattern)) constrained.insert(value->name());
    }
  }
  return constrained;
}

// The mesh that all candidates have; none: any of the axes. A shard_map is for the program's own.
absl::StatusOr<std::vector<sharding::MeshAxis>> MeshOf(const FindProblem& problem) {
  const std::vector<sharding::MeshAxis>& stated = problem.compile.mesh;
  if (!problem.program.keeps_mesh) return stated;
  const sharding::Mesh& own = problem.program.mesh;
  const auto error = [&](const std::string& what) {
    return UserError(
        fmt::format("{}: the program has a shard_map, whose shapes are those of shards "
                    "of its own mesh, {}",
                    what, search::ToString(own.axes)));
  };
  if (!problem.options.axes.empty()) return error("--axes");
  if (!stated.empty() && stated != own.axes) return error("--mesh");
  if (own.size() != problem.config().devices()) {
    const configs::Config& config = problem.config();
    return error(fmt::format("{} has {} devices", config.name, config.devices()));
  }
  return own.axes;
}

// Returns what tells a candidate apart in a store.
std::string KeyOf(const FindProblem& problem, const Candidate& candidate) {
  return StatementsKey(search::StatementsOf(SpaceOf(problem, candidate), candidate),
                       VariantOf(problem, candidate));
}

// Judges a variant of the program as `stated` has it.
absl::StatusOr<Verdict> Judged(const FindProblem& problem, size_t variant,
                               compiler::CompileOptions stated, Picoseconds cutoff, Judge& judge) {
  // What is donated is written down later than the program is identified.
  const bool donated = problem.program.variants[variant].donated;
  stated.stated.donate = stated.stated.donate || donated;
  stated.verify_passes = false;
  const absl::StatusOr<Verdict> verdict = judge.Of({.source = problem.sources[variant],
                                                    .machine = problem.machine,
                                                    .flags = problem.options.program,
                                                    .options = stated,
                                                    .key = donated ? " donated" : "",
                                                    .simulation = &problem.simulation,
                                                    .bounds = true,
                                                    .cutoff = cutoff});
  if (verdict.ok() || absl::IsInternal(verdict.status())) return verdict;
  Verdict impossible;
  impossible.why = Message(verdict.status());
  return impossible;
}

class ShardSearch {
 public:
  ShardSearch(const FindProblem& problem, std::unique_ptr<VerdictStore> store)
      : problem_(problem),
        store_(std::move(store)),
        rates_(RatesOf(problem)),
        tree_(problem.spaces, rates_, GoalOf(problem)),
        workers_(problem.options.jobs,
                 [this](const std::string& question) { return Answer(question); }),
        own_(search::OwnCandidates(problem.spaces.front(), problem.program)) {
    for (const Candidate& own : own_) tree_.Suggest(own);
  }

  absl::StatusOr<FindOutcome> Run() {
    RETURN_IF_ERROR(AskForProgramAsItIs());
    const double most = problem_.options.seconds;
    while (most <= 0 || clock_.Seconds() < most) {
      RETURN_IF_ERROR(AskWorkers());
      if (!workers_.busy()) break;
      const auto wait = std::chrono::milliseconds(500);
      if (const std::optional<Pool::Reply> reply = workers_.Wait(wait)) {
        RETURN_IF_ERROR(Hear(*reply));
      }
      if (store_ && clock_.Seconds() >= written_ + kSecondsUnwritten) {
        written_ = clock_.Seconds();
        RETURN_IF_ERROR(store_->Write());
      }
      SayHowFar();
    }
    if (said_ > 0 && !problem_.options.program.verbose) ShowProgress("");
    if (store_) RETURN_IF_ERROR(store_->Write());
    if (store_ && !problem_.options.program.quiet && !store_->Damage().empty()) {
      PrintWarnings({store_->Damage()});
    }
    outcome_.stopped = workers_.busy();
    outcome_.seconds = clock_.Seconds();
    outcome_.tally = tree_.tally();
    outcome_.lower_bound = tree_.LowerBound();
    outcome_.smallest_too_large = tree_.smallest_too_large();
    outcome_.found = tree_.found();
    std::ranges::stable_sort(outcome_.found, {},
                             [](const search::Found& f) { return f.verdict.step; });
    return std::move(outcome_);
  }

 private:
  static std::vector<search::RateBound> RatesOf(const FindProblem& problem) {
    std::vector<search::RateBound> rates;
    for (size_t variant = 0; variant < problem.program.variants.size(); ++variant) {
      rates.emplace_back(problem.program, problem.spaces[variant], variant,
                         problem.compile.constraints);
    }
    return rates;
  }

  static BranchAndBound::Options GoalOf(const FindProblem& problem) {
    return {problem.options.gap, target::Target(problem.config()).Usable(hlo::kHbmSpace),
            problem.options.all};
  }

  // In a worker.
  absl::StatusOr<std::string> Answer(const std::string& question) {
    if (question == kAsItIs) {
      ASSIGN_OR_RETURN(const Verdict verdict, VerdictOnProgram(problem_, judge_));
      return ToText(verdict);
    }
    const auto [candidate, cutoff] = CandidateOf(question);
    ASSIGN_OR_RETURN(const Verdict verdict, VerdictOn(problem_, candidate, cutoff, judge_));
    return ToText(verdict);
  }

  absl::Status AskForProgramAsItIs() {
    const bool same_devices = problem_.program.mesh.size() == problem_.config().devices();
    if (!same_devices || !problem_.compile.mesh.empty()) return absl::OkStatus();
    as_it_is_ = tag_++;
    return workers_.Ask(as_it_is_, kAsItIs);
  }

  absl::Status AskWorkers() {
    while (workers_.idle()) {
      const std::optional<Candidate> next = tree_.Next();
      if (!next) break;
      if (store_) {
        const std::string statements = KeyOf(problem_, *next);
        const std::optional<Verdict> known = store_->Find(statements);
        if (known && !tree_.Believes(*next, *known)) {
          store_->Reject(statements);
        } else if (known && Suffices(*known)) {
          RETURN_IF_ERROR(tree_.Tell(*next, *known));
          continue;
        }
      }
      RETURN_IF_ERROR(workers_.Ask(tag_, ToText(*next, tree_.Cutoff())));
      asked_.emplace(tag_++, *next);
    }
    return absl::OkStatus();
  }

  // A bound that was enough for another best may not be for this one.
  bool Suffices(const Verdict& known) const {
    return known.kind != Verdict::Kind::kBounded || known.bound >= tree_.Cutoff();
  }

  absl::Status Hear(const Pool::Reply& reply) {
    RETURN_IF_ERROR(reply.answer.status());
    const Verdict verdict = VerdictOf(*reply.answer);
    if (reply.tag == as_it_is_) {
      outcome_.as_it_is = verdict;
      outcome_.as_it_is_counts = verdict.kind == Verdict::Kind::kSimulated &&
                                 problem_.options.fixed.empty() &&
                                 problem_.options.forbidden.empty();
      if (outcome_.as_it_is_counts) tree_.Know(verdict.step);
      tree_.SuggestNear(own_.front());
      return absl::OkStatus();
    }
    const Candidate candidate = asked_.at(reply.tag);
    asked_.erase(reply.tag);
    if (verdict.kind == Verdict::Kind::kImpossible && outcome_.refused.empty()) {
      outcome_.refused = verdict.why;
    }
    RETURN_IF_ERROR(tree_.Tell(candidate, verdict));
    // What it is equal to may not be a candidate of the next search.
    if (!store_ || verdict.equal) return absl::OkStatus();
    store_->Add(KeyOf(problem_, candidate),
                ToString(problem_.program, SpaceOf(problem_, candidate), candidate), verdict);
    return absl::OkStatus();
  }

  void SayHowFar() {
    const ProgramFlags& flags = problem_.options.program;
    if (flags.quiet || clock_.Seconds() < said_ + kSecondsOfNews) return;
    if (!flags.verbose && !IsTerminal()) return;
    said_ = clock_.Seconds();
    const search::Tally tally = tree_.tally();
    const std::optional<search::Found> found = tree_.best();
    const std::string best = found ? results::TimeText(found->verdict.step) : "none yet";
    const std::string line = fmt::format(
        "{:.0f} s: best {}, none below {}; {} candidates compiled, {} simulated, {:.0f} choices "
        "wait",
        said_, best, results::TimeText(tree_.LowerBound()), tally.candidates, tally.simulated,
        tally.waiting);
    if (flags.verbose) {
      PrintNote(line);
    } else {
      ShowProgress(line);
    }
  }

  const FindProblem& problem_;
  const std::unique_ptr<VerdictStore> store_;   // null: none
  const std::vector<search::RateBound> rates_;  // by variant
  search::Forest tree_;
  Judge judge_;  // of a worker
  Pool workers_;
  const std::vector<Candidate> own_;  // what the program itself says; a mesh has one at least
  const Stopwatch clock_;
  double said_ = 0, written_ = 0;
  int64_t tag_ = 0, as_it_is_ = -1;
  std::map<int64_t, Candidate> asked_;
  FindOutcome outcome_;
};

}  // namespace

const search::Space& SpaceOf(const FindProblem& problem, const Candidate& candidate) {
  return problem.spaces[static_cast<size_t>(candidate.variant)];
}

const search::Variant& VariantOf(const FindProblem& problem, const Candidate& candidate) {
  return problem.program.variants[static_cast<size_t>(candidate.variant)];
}

std::vector<std::pair<std::string, std::string>> LeftOutOf(const FindProblem& problem) {
  std::vector<std::pair<std::string, std::string>> left_out;
  for (const search::Space& space : problem.spaces) {
    for (const auto& [decision, leader] : space.left_out()) {
      std::pair<std::string, std::string> one = {
          space.program().all[static_cast<size_t>(decision)].name,
          leader < 0 ? "" : space.Decision(static_cast<size_t>(leader)).name};
      if (std::ranges::find(left_out, one) == left_out.end()) left_out.push_back(std::move(one));
    }
  }
  return left_out;
}

absl::StatusOr<std::unique_ptr<FindProblem>> ProblemOf(const FindOptions& options) {
  auto problem = std::make_unique<FindProblem>();
  problem->options = options;
  ASSIGN_OR_RETURN(const Source source, SourceOf(options.workload));
  ASSIGN_OR_RETURN(Opened opened, Open(source, options.config, options.program));
  problem->machine = std::move(opened.machine);
  ASSIGN_OR_RETURN(problem->simulation, SimulationOptionsOf(problem->config(), options.machine));
  problem->compile = CompileOptionsOf(options.program);
  problem->name = opened.name;
  search::VariantOptions variants;
  variants.remat = problem->compile.remat;
  variants.may_donate = options.may_donate && !options.program.donate;
  variants.constrainable = options.may_constrain;
  ASSIGN_OR_RETURN(problem->program, search::ProgramOf(std::move(opened.imported), problem->config(),
                                                       problem->compile.trip_counts, variants));
  search::SpaceOptions space;
  space.devices = problem->config().devices();
  ASSIGN_OR_RETURN(space.mesh, MeshOf(*problem));
  space.axes = AxesOf(options, problem->program);
  space.keeps_constraints = options.keeps_constraints;
  ASSIGN_OR_RETURN(space.fixed, StatedDimsOf(options.fixed));
  ASSIGN_OR_RETURN(space.forbidden, StatedDimsOf(options.forbidden));
  for (const search::Variant& variant : problem->program.variants) {
    problem->sources.push_back(
        {.file = options.workload, .import = nullptr, .normalised = &variant.source});
    space.work = variant.work;
    space.constrained = ConstrainedIn(variant, problem->compile.constraints);
    ASSIGN_OR_RETURN(search::Space of_variant, search::Space::Of(variant.decisions, space));
    problem->spaces.push_back(std::move(of_variant));
  }
  return problem;
}

absl::StatusOr<Verdict> VerdictOn(const FindProblem& problem, const Candidate& candidate,
                                  Picoseconds cutoff, Judge& judge) {
  search::Statements statements = search::StatementsOf(SpaceOf(problem, candidate), candidate);
  compiler::CompileOptions options = problem.compile;
  options.mesh = std::move(statements.mesh);
  options.arguments = std::move(statements.arguments);
  options.constraints.insert(options.constraints.end(),
                             std::make_move_iterator(statements.constraints.begin()),
                             std::make_move_iterator(statements.constraints.end()));
  return Judged(problem, static_cast<size_t>(candidate.variant), std::move(options), cutoff, judge);
}

absl::StatusOr<Verdict> VerdictOnProgram(const FindProblem& problem, Judge& judge) {
  return Judged(problem, 0, problem.compile, Picoseconds(INT64_MAX), judge);
}

std::optional<Picoseconds> FindOutcome::shortest() const {
  std::optional<Picoseconds> step;
  if (as_it_is_counts) step = as_it_is->step;
  if (!found.empty()) step = std::min(step.value_or(found[0].verdict.step), found[0].verdict.step);
  return step;
}

double FindOutcome::gap() const {
  return shortest() ? std::max(0.0, 1 - Ratio(lower_bound, *shortest())) : 1;
}

absl::StatusOr<FindOutcome> Find(const FindProblem& problem) {
  std::unique_ptr<VerdictStore> store;
  if (!problem.options.store.empty()) {
    ASSIGN_OR_RETURN(std::string search, QuestionKey(problem.options.workload, problem.machine,
                                                      problem.options.program,
                                                      problem.options.machine));
    ASSIGN_OR_RETURN(store, VerdictStore::Open(problem.options.store, std::move(search)));
  }
  return ShardSearch(problem, std::move(store)).Run();
}

}  // namespace tpusim::tools
