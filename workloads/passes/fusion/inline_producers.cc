#include <queue>
#include <utility>
#include <vector>

#include "workloads/passes/fusion/limits.h"
#include "workloads/passes/fusion/reasons.h"
#include "workloads/passes/fusion/steps.h"

namespace tpusim::passes::fusion {
namespace {

class Inliner {
 public:
  Inliner(Plan& plan, const Records& records)
      : plan_(plan),
        records_(records),
        choices_(plan.size()),
        current_(plan.size(), 0),
        queued_(plan.size(), 0) {}

  bool Run() {
    for (int g = 0; g < plan_.size(); ++g) {
      if (plan_.group(g).alive) Consider(g);
    }
    bool changed = false;
    while (!queue_.empty()) {
      const Entry entry = queue_.top();
      queue_.pop();
      const int producer = -entry.second;
      queued_[producer] = 0;
      if (!plan_.group(producer).alive) continue;
      if (current_[producer] == 0) {
        Consider(producer);
        continue;
      }
      Apply(producer);
      changed = true;
    }
    if (records_.wanted()) ExplainTheRest();
    return changed;
  }

 private:
  // Bytes that are not moved, -producer: what spares memory the most comes first and, of equals,
  // the first producer. Time would make the order, and with it which of several products takes
  // their sum, depend on rates of the chip.
  using Entry = std::pair<int64_t, int>;

  struct Choice {
    std::vector<int> consumers;
    std::vector<Price> prices;  // of each of them with the producer
    bool stays = false;
    Price gain;
  };

  Choice ChoiceFor(int producer) const {
    Choice choice;
    const Plan::Consumers consumers = plan_.ConsumersOf(producer);
    if (consumers.groups.empty()) return choice;
    if (std::ssize(consumers.groups) > limits::kConsumers.most()) {
      limits::kConsumers.Reached();
      return choice;
    }
    choice.stays = consumers.others;
    for (int c : consumers.groups) {
      (WhyNotInline(plan_, producer, c) == nullptr ? legal_ : illegal_).push_back(c);
    }
    choice.stays = choice.stays || !illegal_.empty();
    illegal_.clear();
    choice.consumers = std::exchange(legal_, {});
    // A product or reduction is not done twice.
    const Part hero = plan_.HeroOf(producer);
    const bool demanding = hero != Part::kExpression;
    if (choice.consumers.empty() || (demanding && (choice.stays || choice.consumers.size() > 1))) {
      choice.consumers.clear();
      return choice;
    }
    const Group& p = plan_.group(producer);
    if (!choice.stays) choice.gain += p.price;
    for (int c : choice.consumers) {
      const Group& consumer = plan_.group(c);
      choice.prices.push_back(
          plan_.PriceOf(Plan::Union(p.members, consumer.members), consumer.roots));
      choice.gain += consumer.price;
      choice.gain -= choice.prices.back();
    }
    return choice;
  }

  void Consider(int producer) {
    Choice choice = ChoiceFor(producer);
    if (choice.consumers.empty() || choice.gain.time <= Picoseconds(0)) return;
    current_[producer] = 1;
    queued_[producer] = 1;
    queue_.emplace(choice.gain.moved.value(), -producer);
    choices_[producer] = std::move(choice);
  }

  void Apply(int producer) {
    const Choice choice = std::exchange(choices_[producer], {});
    if (records_.wanted()) {
      records_.Add(choice.stays ? reasons::kInlinedAndStored : reasons::kInlined,
                   plan_.NameOf(producer),
                   {{"readers", plan_.NamesOf(choice.consumers)},
                    {"less_us", ToMicroseconds(choice.gain.time)}});
    }
    plan_.Inline(producer, choice.consumers, choice.prices, choice.stays);
    for (int c : choice.consumers) {
      Outdated(c);
      for (int m : plan_.group(c).members) {
        for (int operand : plan_.graph().operands[m]) {
          const int feeds = plan_.MadeBy(operand);
          if (feeds >= 0) Outdated(feeds);
        }
      }
    }
    if (choice.stays) Outdated(producer);
  }

  // Marks a group whose price has changed: it is priced again when its turn comes, or at the end.
  void Outdated(int group) {
    current_[group] = 0;
    if (queued_[group] != 0) return;
    queued_[group] = 1;
    queue_.emplace(0, -group);
  }

  void ExplainTheRest() {
    for (int g = 0; g < plan_.size(); ++g) {
      if (!plan_.group(g).alive) continue;
      for (int c : plan_.ConsumersOf(g).groups) {
        if (const char* why = WhyNotInline(plan_, g, c)) {
          records_.Add(reasons::kNotInlined, plan_.NameOf(g),
                       {{"reader", plan_.NameOf(c)}, {"why", why}});
        }
      }
      const Choice choice = ChoiceFor(g);
      if (!choice.consumers.empty()) {
        records_.Add(reasons::kStored, plan_.NameOf(g),
                     {{"readers", plan_.NamesOf(choice.consumers)},
                      {"more_us", ToMicroseconds(Picoseconds(0) - choice.gain.time)}});
      }
    }
  }

  Plan& plan_;
  const Records& records_;
  std::vector<Choice> choices_;  // of what is current
  std::vector<char> current_;    // the choice is that of the plan as it is, and queued
  std::vector<char> queued_;
  std::priority_queue<Entry> queue_;
  mutable std::vector<int> legal_, illegal_;
};

}  // namespace

bool InlineProducers(Plan& plan, const Records& records) { return Inliner(plan, records).Run(); }

}  // namespace tpusim::passes::fusion
