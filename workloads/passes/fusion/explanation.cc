#include "workloads/passes/fusion/explanation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "workloads/passes/pipeline/reasons.h"

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

}  // namespace

void Explanation::Inlined(const Plan& plan, int producer, const std::vector<int>& consumers,
                          bool stays, Picoseconds gain) {
  if (!wanted()) return;
  records_.Add(stays ? reasons::kInlinedAndStored : reasons::kInlined, NameOf(plan, producer),
               {{"readers", NamesOf(plan, consumers)}, {"less_us", ToMicroseconds(gain)}});
}

void Explanation::Kept(const Plan& plan, int producer, int consumer, const char* why) {
  if (!wanted()) return;
  records_.Add(reasons::kNotInlined, NameOf(plan, producer),
               {{"reader", NameOf(plan, consumer)}, {"why", why}});
}

void Explanation::NotWorth(const Plan& plan, int producer, const std::vector<int>& consumers,
                           Picoseconds loss) {
  if (!wanted()) return;
  records_.Add(reasons::kStored, NameOf(plan, producer),
               {{"readers", NamesOf(plan, consumers)}, {"more_us", ToMicroseconds(loss)}});
}

void Explanation::Joined(const Plan& plan, int a, int b, const char* how, Picoseconds gain) {
  if (!wanted()) return;
  records_.Add(reasons::kJoined, NameOf(plan, a),
               {{"other", NameOf(plan, b)}, {"how", how}, {"less_us", ToMicroseconds(gain)}});
}

void Explanation::Reused(const Plan& plan, int value, const std::vector<int>& readers,
                         Picoseconds gain) {
  if (!wanted()) return;
  records_.Add(reasons::kReused, plan.graph().At(value).name(),
               {{"readers", NamesOf(plan, readers)}, {"less_us", ToMicroseconds(gain)}});
}

}  // namespace tpusim::passes::fusion
