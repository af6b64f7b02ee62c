#include "workloads/passes/fusion/explanation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tpusim::passes::fusion {
namespace {

std::string NameOf(const Plan& plan, int g) {
  return plan.graph().At(plan.group(g).roots[0]).name();
}

std::string NamesOf(const Plan& plan, const std::vector<int>& groups) {
  constexpr size_t kMost = 4;
  std::string names;
  for (size_t n = 0; n < groups.size() && n < kMost; ++n) {
    names += (n > 0 ? ", " : "") + NameOf(plan, groups[n]);
  }
  if (groups.size() > kMost) names += fmt::format(" and {} more", groups.size() - kMost);
  return names;
}

double Microseconds(Picoseconds time) { return static_cast<double>(time.value()) / 1e6; }

}  // namespace

void Explanation::Inlined(const Plan& plan, int producer, const std::vector<int>& consumers,
                          bool stays, Picoseconds gain) {
  if (!wanted()) return;
  lines_->push_back(fmt::format("{} is computed in {}{}: {:.3f} us less", NameOf(plan, producer),
                                NamesOf(plan, consumers), stays ? ", and stored for others" : "",
                                Microseconds(gain)));
}

void Explanation::Kept(const Plan& plan, int producer, int consumer, const char* why) {
  if (!wanted()) return;
  lines_->push_back(fmt::format("{} is not computed in {}: {}", NameOf(plan, producer),
                                NameOf(plan, consumer), why));
}

void Explanation::NotWorth(const Plan& plan, int producer, const std::vector<int>& consumers,
                           Picoseconds loss) {
  if (!wanted()) return;
  lines_->push_back(fmt::format("{} is stored: computed in {} it would take {:.3f} us more",
                                NameOf(plan, producer), NamesOf(plan, consumers),
                                Microseconds(loss)));
}

void Explanation::Joined(const Plan& plan, int a, int b, const char* how, Picoseconds gain) {
  if (!wanted()) return;
  lines_->push_back(fmt::format("{} and {} are results of one kernel, {}: {:.3f} us less",
                                NameOf(plan, a), NameOf(plan, b), how, Microseconds(gain)));
}

void Explanation::Reused(const Plan& plan, int value, const std::vector<int>& readers,
                         Picoseconds gain) {
  if (!wanted()) return;
  lines_->push_back(fmt::format("{} is stored instead of what {} computed it from: {:.3f} us less",
                                plan.graph().At(value).name(), NamesOf(plan, readers),
                                Microseconds(gain)));
}

}  // namespace tpusim::passes::fusion
