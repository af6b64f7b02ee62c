#include "configs/record.h"

#include <fmt/args.h>
#include <fmt/format.h>

#include <algorithm>

#include "configs/status_macros.h"

namespace tpusim {

const Reason kLimitReached{"limit", Action::kLimited,
                           "limit {subject} of {limit} reached: {count} {what} left out"};

std::string_view ToString(Action action) {
  switch (action) {
    case Action::kChanged:
      return "changed";
    case Action::kKept:
      return "kept";
    case Action::kLimited:
      return "limited";
    case Action::kAssumed:
      return "assumed";
    case Action::kWarned:
      return "warned";
  }
  TPUSIM_CHECK(false, "an action without a name");
}

const RecordValue* Record::Find(std::string_view name) const {
  const auto found = std::ranges::find(values, name, &RecordValue::name);
  return found == values.end() ? nullptr : &*found;
}

std::string ToString(const Record& record) {
  fmt::dynamic_format_arg_store<fmt::format_context> arguments;
  arguments.push_back(fmt::arg("subject", record.subject));
  for (const RecordValue& value : record.values) {
    const std::string name(value.name);
    std::visit([&](const auto& v) { arguments.push_back(fmt::arg(name.c_str(), v)); }, value.value);
  }
  return fmt::vformat(record.reason->sentence, arguments);
}

std::string Lines(const std::vector<Record>& records) {
  std::string lines;
  for (const Record& record : records) lines += ToString(record) + "\n";
  return lines;
}

std::vector<std::string> TextsOf(const std::vector<Record>& records, Action action) {
  std::vector<std::string> texts;
  for (const Record& record : records) {
    if (record.reason->action == action) texts.push_back(ToString(record));
  }
  return texts;
}

void Records::Add(const Reason& reason, std::string_view subject,
                  std::initializer_list<RecordValue> values) const {
  const bool decision = reason.action == Action::kChanged || reason.action == Action::kKept;
  std::vector<Record>* to = decision ? decisions_ : notes_;
  if (to == nullptr) return;
  to->push_back({"", &reason, std::string(subject), values});
}

void Records::Limit(std::string_view name, int64_t limit, std::string_view what,
                    int64_t count) const {
  if (notes_ == nullptr) return;
  const auto found = std::ranges::find_if(*notes_, [&](const Record& record) {
    return record.reason == &kLimitReached && record.subject == name;
  });
  if (found != notes_->end()) {
    std::get<int64_t>(found->values[1].value) += count;
    return;
  }
  notes_->push_back({"",
                     &kLimitReached,
                     std::string(name),
                     {{"limit", limit}, {"count", count}, {"what", std::string(what)}}});
}

}  // namespace tpusim
