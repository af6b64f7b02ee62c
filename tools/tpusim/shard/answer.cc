#include "tools/tpusim/shard/answer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "configs/status_macros.h"
#include "sim/results/page/page.h"
#include "sim/results/report/text.h"
#include "tools/tpusim/command_line/producer.h"
#include "tools/tpusim/output/shell_word.h"
#include "tools/tpusim/pipeline/pipeline.h"
#include "tools/tpusim/shard/paste.h"
#include "workloads/search/statements.h"
#include "workloads/sharding/stated/stated_shardings.h"
#include "workloads/target/target.h"

namespace tpusim::tools {
namespace {

using Json = nlohmann::ordered_json;
using search::Candidate;
using search::Found;
using search::Space;

constexpr double kSecondsPerHour = 3600;
// Steps that a price is given for.
constexpr double kSteps = 1000;
// Candidates that a plot or a table of the page has: the fastest.
constexpr size_t kMostShown = 200;

double PriceOf(Picoseconds step, const configs::Config& config, double per_hour) {
  const auto chips = static_cast<double>(config.topology.chips());
  return ToSeconds(step) / kSecondsPerHour * chips * per_hour * kSteps;
}

std::string Percent(double share) { return fmt::format("{:.1f}%", share * 100); }

int64_t Whole(double count) { return static_cast<int64_t>(count); }

// "474,656"
std::string Count(double count) {
  std::string digits = fmt::format("{:.0f}", count);
  for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > 0; at -= 3) {
    digits.insert(static_cast<size_t>(at), 1, ',');
  }
  return digits;
}

// Returns the fates of choices, each with its count.
std::vector<std::pair<std::string, double>> Fates(const search::Tally& t) {
  return {
      {"invalid: one mesh axis on two dimensions of an argument", t.impossible},
      {"ruled out: the arguments alone do not fit in memory", t.memory},
      {"ruled out: matmul or HBM time alone exceeds the best step", t.rates},
      {"compiled", t.judged},
      {"not examined", t.waiting}};
}
// Returns the fates of candidates that were compiled, each with every resolution of its conflicts.
std::vector<std::pair<std::string, double>> FatesOfCompiled(const search::Tally& t) {
  const auto number = [](int64_t n) { return static_cast<double>(n); };
  return {{"ruled out when compiled: no schedule is shorter than the best step", number(t.bounded)},
          {"equal to another program on the same devices", number(t.equal)},
          {"do not fit", number(t.too_large)},
          {"refused by the compiler", number(t.refused)},
          {"simulated", number(t.simulated)}};
}

std::string FatesText(const std::vector<std::pair<std::string, double>>& fates) {
  std::string text;
  for (const auto& [what, count] : fates) {
    if (count > 0) text += fmt::format("{:>14} {}\n", Count(count), what);
  }
  return text;
}

std::string CompiledText(const FindOutcome& outcome) {
  std::string text = FatesText(FatesOfCompiled(outcome.tally));
  if (outcome.tally.refused > 0 && !outcome.refused.empty()) {
    text += fmt::format("{:>14} the first: {}\n", "", outcome.refused);
  }
  return text;
}

// Found candidates that nothing beats in time and memory, the fastest first.
std::vector<Found> Frontier(const std::vector<Found>& found) {
  std::vector<Found> frontier;
  for (const Found& one : found) {
    if (frontier.empty() || one.verdict.peak < frontier.back().verdict.peak) {
      frontier.push_back(one);
    }
  }
  return frontier;
}

std::string Line(std::string_view name, const std::string& what) {
  return fmt::format("{:<14} {}\n", name, what);
}

// Dimensions that are no choice: a line of those that are left whole, and lines of those that
// follow.
std::vector<std::pair<std::string, std::string>> LinesOfLeftOut(const FindProblem& problem) {
  std::vector<std::string> whole;
  std::map<std::string, int64_t> followers;  // by what they follow, whose name they have
  for (const auto& [name, leader] : LeftOutOf(problem)) {
    if (leader.empty()) {
      whole.push_back(name);
    } else {
      ++followers[leader];
    }
  }
  std::vector<std::pair<std::string, std::string>> lines;
  if (!whole.empty()) lines.emplace_back("left whole", fmt::format("{}", fmt::join(whole, ", ")));
  for (const auto& [leader, count] : followers) {
    lines.emplace_back(
        "follow",
        fmt::format("{}: {} with fewer bytes, as far as its axes divide them", leader, count));
  }
  return lines;
}

// Returns what is certain, and the dimensions that it does not cover.
std::string Certificate(const SliceAnswer& answer) {
  const FindOutcome& outcome = answer.outcome;
  std::string_view name = "certified";
  std::string text = "nothing in this space is shorter";
  if (outcome.gap() > 0) {
    name = "lower bound";
    text = fmt::format("{}: the optimum lies between this and {} (up to {} shorter){}",
                       results::TimeText(outcome.lower_bound),
                       results::TimeText(*outcome.shortest()), Percent(outcome.gap()),
                       outcome.stopped ? "; stopped by --seconds" : "");
  }
  const auto lines = LinesOfLeftOut(*answer.problem);
  if (lines.empty()) return Line(name, text);
  text = Line(name, text + ", except for dimensions of few bytes (--fix decides them)");
  for (const auto& [name, what] : lines) text += Line(name, what);
  return text;
}

}  // namespace

std::string NothingFound(const SliceAnswer& answer) {
  const FindOutcome& outcome = answer.outcome;
  const Bytes usable = target::Target(answer.problem->config()).Usable(hlo::kHbmSpace);
  if (outcome.smallest_too_large) {
    return fmt::format("nothing fits: the least that was seen needs {} of {} usable HBM",
                       results::BytesText(*outcome.smallest_too_large), results::BytesText(usable));
  }
  if (!outcome.refused.empty()) return "no valid choice: " + outcome.refused;
  if (outcome.tally.bounded > 0 && !outcome.stopped) {
    return "nothing was simulated to its end: all take more instructions than --max-events";
  }
  if (outcome.stopped) return "nothing was simulated before --seconds were over";
  return "no valid choice: each has one mesh axis on two dimensions of an argument";
}

std::string ToText(const SliceAnswer& answer, const AnswerOptions& options) {
  const FindProblem& problem = *answer.problem;
  const FindOutcome& outcome = answer.outcome;
  const Space& space = problem.spaces.front();
  const int64_t chips = problem.config().topology.chips();
  std::string text =
      Line("workload", fmt::format("{} on {}: {} chip{}", problem.name, problem.config().name,
                                   chips, chips == 1 ? "" : "s"));
  const size_t variants = problem.program.variants.size();
  const std::string forms = variants == 1 ? "" : fmt::format(", {} forms of the program", variants);
  text +=
      Line("space", fmt::format("{} choices: {} mesh{}, {} decisions{}", Count(outcome.tally.all),
                                space.meshes().size(), space.meshes().size() == 1 ? "" : "es",
                                space.decisions(), forms));
  const auto price = [&](Picoseconds step) {
    if (!options.price) return std::string();
    return fmt::format(", {:.4g} per {:.0f} steps", PriceOf(step, problem.config(), *options.price),
                       kSteps);
  };
  const std::optional<search::Verdict>& own = outcome.as_it_is;
  const bool own_ran = own && own->kind == search::Verdict::Kind::kSimulated;
  if (own_ran) {
    text += Line("as it is", fmt::format("{}, peak {}{}", results::TimeText(own->step),
                                         results::BytesText(own->peak), price(own->step)));
  } else if (own && own->kind == search::Verdict::Kind::kTooLarge) {
    text +=
        Line("as it is", fmt::format("does not fit: it needs {}", results::BytesText(own->peak)));
  }
  const bool keeps_own = outcome.as_it_is_counts &&
                         (outcome.found.empty() || own->step <= outcome.found[0].verdict.step);
  if (outcome.found.empty() || keeps_own) {
    text += Line("found", keeps_own ? "nothing that is shorter than the program as it is"
                                    : NothingFound(answer));
    if (keeps_own) text += Certificate(answer);
    text += Line("took", fmt::format("{:.1f} s", outcome.seconds)) + "\n";
    return text + FatesText(Fates(outcome.tally)) + CompiledText(outcome);
  }
  const Found& best = outcome.found[0];
  std::string gain;
  if (own_ran) {
    const double change = Ratio(best.verdict.step, own->step) - 1;
    gain = fmt::format(" ({} {})", Percent(std::abs(change)), change > 0 ? "longer" : "shorter");
  }
  text +=
      Line("found",
           fmt::format("{}{}, peak {} of {} usable HBM{}", results::TimeText(best.verdict.step),
                       gain, results::BytesText(best.verdict.peak),
                       results::BytesText(target::Target(problem.config()).Usable(hlo::kHbmSpace)),
                       price(best.verdict.step)));
  text += Certificate(answer);
  text += Line("took", fmt::format("{:.1f} s", outcome.seconds));
  text += "\n" + FatesText(Fates(outcome.tally)) + "\n" + CompiledText(outcome);
  std::vector<std::vector<std::string>> rows = {{"step time", "peak HBM", "<shardings"}};
  for (const Found& one : Frontier(outcome.found)) {
    if (rows.size() > options.top) break;
    rows.push_back({results::TimeText(one.verdict.step), results::BytesText(one.verdict.peak),
                    ToString(problem.program, SpaceOf(problem, one.candidate), one.candidate)});
  }
  text += "\n" + results::TableText(rows, options.width, results::LastColumn::kBelow);
  if (answer.compared.size() > 1) {
    results::CompareOptions compare;
    compare.width = options.width;
    compare.top = options.top;
    text += "\n" + results::Compare(answer.compared, compare);
  }
  text += "\n" + PythonOf(problem, best.candidate);
  std::vector<std::string> words;
  for (const auto& of : {options.run_words, OptionsOf(problem, best.candidate).Words()}) {
    for (const std::string& word : of) words.push_back(ShellWord(word));
  }
  return text + fmt::format("\n# tpusim run {} --config {} {}\n",
                            ShellWord(problem.options.workload),
                            ShellWord(problem.config().name), fmt::join(words, " "));
}

namespace {

Json ToJson(const FindProblem& problem, const Found& found) {
  const Space& space = SpaceOf(problem, found.candidate);
  const search::Statements statements = search::StatementsOf(space, found.candidate);
  Json j = {{"step_time_ns", ToNanoseconds(found.verdict.step)},
            {"peak_hbm_bytes", found.verdict.peak.value()},
            {"mesh", Json::object()},
            {"decisions", Json::object()},
            {"arguments", Json::object()},
            {"constraints", Json::array()},
            {"options", OptionsOf(problem, found.candidate).Words()}};
  const search::Variant& variant = VariantOf(problem, found.candidate);
  if (variant.donated) j["donated"] = true;
  for (const remat::StatedPolicy& policy : variant.remat) {
    j["remat"][policy.name] = remat::ToString(policy.policy);
  }
  for (const sharding::MeshAxis& axis : statements.mesh) j["mesh"][axis.name] = axis.size;
  for (size_t d = 0; d < space.decisions(); ++d) {
    if (found.candidate.axes[d] == search::kAsDecided) continue;
    Json axes = Json::array();
    for (size_t i = 0; i < statements.mesh.size(); ++i) {
      if ((found.candidate.axes[d] >> i & 1) != 0) axes.push_back(statements.mesh[i].name);
    }
    j["decisions"][space.NameOf(d)] = std::move(axes);
  }
  for (const sharding::StatedConstraint& stated : statements.arguments) {
    j["arguments"][stated.values[0]] = stated.dims;
  }
  for (size_t i = 0; i < statements.constraints.size(); ++i) {
    j["constraints"].push_back({{"value", statements.constraints[i].values[0]},
                                {"source", statements.places[i].source},
                                {"scope", statements.places[i].scope},
                                {"is_result", statements.places[i].is_result},
                                {"dims", statements.constraints[i].dims}});
  }
  return j;
}

Json ToJson(const SliceAnswer& answer, const AnswerOptions& options) {
  const FindProblem& problem = *answer.problem;
  const FindOutcome& outcome = answer.outcome;
  const search::Tally& t = outcome.tally;
  Json j = {{"config", problem.config().name},
            {"chips", problem.config().topology.chips()},
            {"usable_hbm_bytes", target::Target(problem.config()).Usable(hlo::kHbmSpace).value()},
            {"choices", Whole(t.all)},
            {"left_out", Json::array()},
            {"impossible", Whole(t.impossible)},
            {"excluded_by_memory", Whole(t.memory)},
            {"excluded_by_rates", Whole(t.rates)},
            {"compiled", Whole(t.judged)},
            {"not_looked_at", Whole(t.waiting)},
            {"candidates_compiled", t.candidates},
            {"excluded_when_compiled", t.bounded},
            {"equal", t.equal},
            {"do_not_fit", t.too_large},
            {"refused", t.refused},
            {"simulated", t.simulated}};
  for (const auto& [name, leader] : LeftOutOf(problem)) {
    Json& left_out = j["left_out"].emplace_back(Json{{"dimension", name}});
    if (!leader.empty()) left_out["split_as"] = leader;
  }
  const std::optional<search::Verdict>& own = outcome.as_it_is;
  if (own && own->kind == search::Verdict::Kind::kSimulated) {
    j["as_it_is"] = {{"step_time_ns", ToNanoseconds(own->step)},
                     {"peak_hbm_bytes", own->peak.value()}};
  }
  if (outcome.shortest()) {
    j["lower_bound_ns"] = ToNanoseconds(outcome.lower_bound);
    j["gap"] = outcome.gap();
  }
  if (const std::optional<Picoseconds> shortest = outcome.shortest()) {
    const bool as_it_is =
        outcome.found.empty() || (outcome.as_it_is_counts && outcome.as_it_is->step == *shortest);
    j["best"] = as_it_is ? "as_it_is" : "found";
  }
  if (outcome.found.empty()) {
    if (!outcome.shortest()) j["problem"] = NothingFound(answer);
    return j;
  }
  if (options.price) {
    j["price_per_step"] =
        PriceOf(outcome.found[0].verdict.step, problem.config(), *options.price) / kSteps;
  }
  j["found"] = Json::array();
  for (const Found& one : outcome.found) {
    if (j["found"].size() >= kMostShown) break;
    j["found"].push_back(ToJson(problem, one));
  }
  j["python"] = PythonOf(problem, outcome.found[0].candidate);
  return j;
}

// Panels of one slice.
Json TabOf(const SliceAnswer& answer, const AnswerOptions& options) {
  const FindProblem& problem = *answer.problem;
  const FindOutcome& outcome = answer.outcome;
  Json panels = Json::array();
  Json figures = Json::array();
  const auto figure = [&](std::string name, std::string text) {
    figures.push_back({{"name", std::move(name)}, {"text", std::move(text)}});
  };
  if (!outcome.found.empty()) {
    figure("step time", results::TimeText(outcome.found[0].verdict.step));
    figure("peak HBM", results::BytesText(outcome.found[0].verdict.peak));
    figure("not ruled out",
           outcome.gap() > 0 ? fmt::format("up to {} shorter", Percent(outcome.gap())) : "nothing");
    if (options.price) {
      figure(fmt::format("price of {:.0f} steps", kSteps),
             fmt::format("{:.4g}",
                         PriceOf(outcome.found[0].verdict.step, problem.config(), *options.price)));
    }
  }
  figure("choices", Count(outcome.tally.all));
  panels.push_back({{"kind", "figures"}, {"title", problem.config().name}, {"figures", figures}});
  Json left_out = Json::array();
  for (const auto& [name, what] : LinesOfLeftOut(problem)) left_out.push_back(name + " " + what);
  if (!left_out.empty()) {
    panels.push_back({{"kind", "text"},
                      {"title", "not searched, for their few bytes"},
                      {"lines", left_out}});
  }
  if (outcome.found.empty()) {
    panels.push_back(
        {{"kind", "text"}, {"title", "Nothing found"}, {"lines", {NothingFound(answer)}}});
  }
  Json fates = Json::array();
  for (const auto& list : {Fates(outcome.tally), FatesOfCompiled(outcome.tally)}) {
    for (const auto& [what, count] : list) fates.push_back({what, count});
  }
  panels.push_back({{"kind", "table"},
                    {"title", "what became of the choices"},
                    {"columns", {{{"name", "what"}}, {{"name", "how many"}, {"unit", "count"}}}},
                    {"rows", fates}});
  if (outcome.found.empty()) return {{"title", problem.config().name}, {"panels", panels}};
  Json rows = Json::array();
  for (const Found& one : outcome.found) {
    if (rows.size() >= kMostShown) break;
    rows.push_back({ToNanoseconds(one.verdict.step), one.verdict.peak.value(),
                    ToString(problem.program, SpaceOf(problem, one.candidate), one.candidate)});
  }
  panels.push_back({{"kind", "table"},
                    {"title", "simulated"},
                    {"columns",
                     {{{"name", "step time"}, {"unit", "ns"}},
                      {{"name", "peak HBM"}, {"unit", "bytes"}},
                      {{"name", "shardings"}}}},
                    {"rows", rows}});
  Json lines = Json::array();
  const std::string python = PythonOf(problem, outcome.found[0].candidate);
  for (size_t at = 0; at < python.size();) {
    const size_t end = std::min(python.find('\n', at), python.size());
    lines.push_back(python.substr(at, end - at));
    at = end + 1;
  }
  panels.push_back({{"kind", "text"}, {"title", "to paste"}, {"lines", lines}});
  return {{"title", problem.config().name}, {"panels", panels}};
}

// Returns a panel with each found candidate of all slices, one figure over another.
Json ScatterOf(const std::vector<SliceAnswer>& answers, const std::string& title, const Json& x,
               const std::function<double(const SliceAnswer&, const Found&)>& value) {
  Json points = Json::array();
  for (const SliceAnswer& answer : answers) {
    const std::vector<Found>& found = answer.outcome.found;
    const std::vector<Found> frontier = Frontier(found);
    for (size_t i = 0; i < std::min(found.size(), kMostShown); ++i) {
      const bool marked = std::ranges::any_of(
          frontier, [&](const Found& f) { return f.candidate == found[i].candidate; });
      points.push_back(
          {{"x", value(answer, found[i])},
           {"y", ToNanoseconds(found[i].verdict.step)},
           {"name", ToString(answer.problem->program, SpaceOf(*answer.problem, found[i].candidate),
                             found[i].candidate)},
           {"group", answer.problem->config().name},
           {"marked", marked}});
    }
  }
  return {{"kind", "scatter"},
          {"title", title},
          {"x", x},
          {"y", {{"name", "step time"}, {"unit", "ns"}}},
          {"line", false},
          {"points", points}};
}

}  // namespace

Json ToJson(const std::vector<SliceAnswer>& answers, const AnswerOptions& options) {
  Json j = results::HeadOf("tpusim.shard/1", ThisProducer());
  j["workload"] = answers[0].problem->name;
  j["slices"] = Json::array();
  for (const SliceAnswer& answer : answers) j["slices"].push_back(ToJson(answer, options));
  return j;
}

absl::StatusOr<std::string> PageOf(const std::vector<SliceAnswer>& answers,
                                   const AnswerOptions& options) {
  Json frontier = Json::array();
  const bool any = std::ranges::any_of(
      answers, [](const SliceAnswer& answer) { return !answer.outcome.found.empty(); });
  if (any) {
    frontier.push_back(ScatterOf(answers, "time over memory",
                                 {{"name", "peak HBM of a device"}, {"unit", "bytes"}},
                                 [](const SliceAnswer&, const Found& f) {
                                   return static_cast<double>(f.verdict.peak.value());
                                 }));
    frontier.push_back(ScatterOf(answers, "time over chips", {{"name", "chips"}, {"unit", "count"}},
                                 [](const SliceAnswer& a, const Found&) {
                                   return static_cast<double>(a.problem->config().topology.chips());
                                 }));
    if (options.price) {
      frontier.push_back(
          ScatterOf(answers, "time over price",
                    {{"name", fmt::format("price of {:.0f} steps", kSteps)}, {"unit", "number"}},
                    [&](const SliceAnswer& a, const Found& f) {
                      return PriceOf(f.verdict.step, a.problem->config(), *options.price);
                    }));
    }
  }
  Json tabs = Json::array();
  if (any) tabs.push_back({{"title", "Frontier"}, {"panels", frontier}});
  for (const SliceAnswer& answer : answers) tabs.push_back(TabOf(answer, options));
  std::vector<results::PageRun> runs;
  for (const SliceAnswer& answer : answers) {
    const results::Report* first = nullptr;
    for (const results::Compared& c : answer.compared) {
      if (!c.report) continue;
      runs.push_back({fmt::format("{} on {}", c.workload, c.config),
                      results::ToJson(*c.report, results::JsonDetail::kExchange), ""});
      if (first == nullptr) {
        first = &*c.report;
      } else {
        runs.back().difference =
            results::ExplainDifference(answer.compared[0].workload, *first, c.workload, *c.report);
      }
    }
  }
  return results::PageOfRuns(fmt::format("shardings found for {}", answers[0].problem->name), runs,
                             results::JsonText(tabs));
}

std::string ExplainedText(const FindProblem& problem) {
  const Space& space = problem.spaces.front();
  std::string text = sharding::ToString(space.program());
  const std::vector<search::Variant>& variants = problem.program.variants;
  double choices = 0;
  for (const Space& of_variant : problem.spaces) choices += of_variant.Count();
  text += fmt::format("\n{:<14} {}\n", "choices", Count(choices));
  if (variants.size() > 1) {
    text += fmt::format("{:<14} {}: as it is", "forms", variants.size());
    for (size_t n = 1; n < variants.size(); ++n) text += "; " + NameOf(variants[n]);
    text += "\n";
  }
  for (const sharding::NamedValue& named : space.program().named) {
    const sharding::ConstraintPlace& place = named.places[0];
    text += fmt::format("{:<14} {}: {} value{} such as {} {}\n", "may constrain", named.name,
                        named.places.size(), named.places.size() == 1 ? "" : "s", place.value,
                        place.shape.ToString());
  }
  for (const auto& [name, what] : LinesOfLeftOut(problem)) text += Line(name, what);
  std::vector<std::vector<std::string>> rows = {{"<mesh", "choices"}};
  for (size_t mesh = 0; mesh < space.meshes().size(); ++mesh) {
    rows.push_back({search::ToString(space.meshes()[mesh]), Count(space.Below(mesh, 0))});
  }
  return text + "\n" + results::TableText(rows, 10'000);
}

}  // namespace tpusim::tools
