#include "tools/tpusim/find/verdicts.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <set>
#include <utility>

#include "configs/status_macros.h"
#include "tools/tpusim/find/judge.h"
#include "tools/tpusim/find/pool.h"
#include "tools/tpusim/output/console.h"
#include "tools/tpusim/output/progress.h"

namespace tpusim::tools {
namespace {

constexpr std::chrono::hours kUntilItComes{1};

// The questions that wait, and which of them is next.
class Queue {
 public:
  explicit Queue(const std::vector<Question>& questions) : questions_(questions) {
    for (size_t i = 0; i < questions.size(); ++i) waiting_.insert(waiting_.end(), i);
  }

  // Returns the next for a worker whose last question was `last`: one akin to it, else one that no
  // worker knows anything about, else the first.
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

void SayEffort(const std::vector<VerdictOr>& verdicts, const ProgramFlags& flags) {
  if (!flags.verbose || flags.quiet) return;
  const auto count = [&](bool search::Verdict::* done) {
    return std::ranges::count_if(verdicts, [&](const auto& v) { return v.ok() && (*v).*done; });
  };
  PrintNote(fmt::format("{} asked, {} compiled, {} simulated, all others known by then",
                        verdicts.size(), count(&search::Verdict::compiled),
                        count(&search::Verdict::simulated)));
}

}  // namespace

std::vector<VerdictOr> VerdictsOn(const std::vector<Question>& questions,
                                  const std::function<VerdictOr(size_t)>& judge,
                                  const std::function<std::string(const VerdictOr&)>& text,
                                  const ProgramFlags& flags) {
  Pool pool(Processors(), [&judge](const std::string& question) -> absl::StatusOr<std::string> {
    ASSIGN_OR_RETURN(const search::Verdict verdict, judge(std::stoull(question)));
    return ToText(verdict);
  });
  Queue queue(questions);
  ProgressRows progress(questions.size(), flags.quiet, flags.verbose);
  std::vector<VerdictOr> verdicts(questions.size(), absl::InternalError("not asked"));
  const auto end = [&](size_t i, VerdictOr verdict) {
    verdicts[i] = std::move(verdict);
    progress.Add(fmt::format("{}: {}", questions[i].name, text(verdicts[i])));
  };
  while (true) {
    while (pool.idle()) {
      const std::optional<size_t> next = queue.Next(pool.last());
      if (!next) break;
      const absl::Status begun = pool.Ask(static_cast<int64_t>(*next), std::to_string(*next));
      if (!begun.ok()) end(*next, begun);
    }
    if (!pool.busy()) break;
    if (const std::optional<Pool::Reply> reply = pool.Wait(kUntilItComes)) {
      const auto i = static_cast<size_t>(reply->tag);
      end(i, reply->answer.ok() ? VerdictOr(VerdictOf(*reply->answer)) : reply->answer.status());
    }
  }
  SayEffort(verdicts, flags);
  return verdicts;
}

}  // namespace tpusim::tools
