#include "tools/tpusim/find/outcomes.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "configs/status_macros.h"
#include "tools/tpusim/find/pool.h"
#include "tools/tpusim/output/console.h"
#include "tools/tpusim/output/progress.h"

namespace tpusim::tools {
namespace {

using OutcomeJson = nlohmann::json;

constexpr std::chrono::hours kUntilItComes{1};

std::string OutcomeToText(const Outcome& outcome) {
  OutcomeJson j = {{"peak", outcome.peak.value()},
                   {"usable", outcome.usable.value()},
                   {"too_much", outcome.too_much},
                   {"compiled", outcome.compiled},
                   {"simulated", outcome.simulated}};
  if (outcome.step) j["step"] = outcome.step->value();
  return j.dump(-1, ' ', false, OutcomeJson::error_handler_t::replace);
}

absl::StatusOr<Outcome> FromText(const absl::StatusOr<std::string>& text) {
  RETURN_IF_ERROR(text.status());
  const OutcomeJson j = OutcomeJson::parse(*text);
  Outcome outcome{.peak = Bytes(j.at("peak").get<int64_t>()),
                  .usable = Bytes(j.at("usable").get<int64_t>()),
                  .too_much = j.at("too_much").get<std::string>(),
                  .compiled = j.at("compiled").get<bool>(),
                  .simulated = j.at("simulated").get<bool>()};
  if (j.contains("step")) outcome.step = Picoseconds(j["step"].get<int64_t>());
  return outcome;
}

// Which question is next, after which others.
class Queue {
 public:
  explicit Queue(const std::vector<Question>& questions) : questions_(questions) {
    for (size_t i = 0; i < questions.size(); ++i) waiting_.insert(waiting_.end(), i);
  }

  // For a worker whose last question was `last`: one akin to it, else one that no worker knows
  // anything about, else the first.
  std::optional<size_t> Next(std::optional<int64_t> last) {
    if (waiting_.empty()) return std::nullopt;
    const auto is_kin = [&](size_t i) {
      return last && questions_[i].kin == questions_[static_cast<size_t>(*last)].kin;
    };
    const auto is_new = [&](size_t i) { return !begun_.contains(questions_[i].kin); };
    auto next = std::ranges::find_if(waiting_, is_kin);
    if (next == waiting_.end()) next = std::ranges::find_if(waiting_, is_new);
    if (next == waiting_.end()) next = waiting_.begin();
    const size_t i = *next;
    waiting_.erase(next);
    begun_.insert(questions_[i].kin);
    return i;
  }

 private:
  const std::vector<Question>& questions_;
  std::set<size_t> waiting_;
  std::set<std::string> begun_;  // kin
};

void SayEffort(const std::vector<absl::StatusOr<Outcome>>& outcomes, const ProgramFlags& flags) {
  if (!flags.verbose || flags.quiet) return;
  const auto count = [&](bool Outcome::* done) {
    return std::ranges::count_if(outcomes, [&](const auto& o) { return o.ok() && (*o).*done; });
  };
  PrintNote(fmt::format("{} asked, {} compiled, {} simulated, all others known by then",
                        outcomes.size(), count(&Outcome::compiled), count(&Outcome::simulated)));
}

}  // namespace

std::vector<absl::StatusOr<Outcome>> OutcomesOf(
    const std::vector<Question>& questions,
    const std::function<absl::StatusOr<Outcome>(size_t)>& make,
    const std::function<std::string(const absl::StatusOr<Outcome>&)>& text,
    const ProgramFlags& flags) {
  Pool workers(Processors(),
                  [&make](const std::string& question) -> absl::StatusOr<std::string> {
                    ASSIGN_OR_RETURN(const Outcome outcome, make(std::stoull(question)));
                    return OutcomeToText(outcome);
                  });
  Queue queue(questions);
  Rows progress(questions.size(), flags.quiet, flags.verbose);
  std::vector<absl::StatusOr<Outcome>> outcomes(questions.size(), absl::InternalError("not asked"));
  const auto end = [&](size_t i, absl::StatusOr<Outcome> outcome) {
    outcomes[i] = std::move(outcome);
    progress.Add(fmt::format("{}: {}", questions[i].name, text(outcomes[i])));
  };
  while (true) {
    while (workers.idle()) {
      const std::optional<size_t> next = queue.Next(workers.last());
      if (!next) break;
      const absl::Status begun = workers.Ask(static_cast<int64_t>(*next), std::to_string(*next));
      if (!begun.ok()) end(*next, begun);
    }
    if (!workers.busy()) break;
    if (const std::optional<Pool::Reply> reply = workers.Wait(kUntilItComes)) {
      end(static_cast<size_t>(reply->tag), FromText(reply->answer));
    }
  }
  SayEffort(outcomes, flags);
  return outcomes;
}

}  // namespace tpusim::tools
