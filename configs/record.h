// Records: what a stage decided, left alone, assumed or warns of, and why, as data.
//
// A record names its subject (an instruction, a value, an option), a reason and numbers. A reason
// is a row of a table: an id, which programs can rely on, what became of the subject, and a
// sentence with placeholders, which people read. `--explain`, the report's warnings and
// assumptions, its JSON and its page are printers of records; none of them knows a pass.
//
//   constexpr Reason kStored{"fusion.stored", Action::kKept,
//                            "{subject} is stored: computed in {reader} it would take {more_us:.3f}
//                            us more"};
//   if (records.wanted()) records.Add(kStored, i.name(), {{"reader", r.name()},
//   {"more_us", 1.25}}); records.Limit("fusion.most_rounds", 8, "rounds");
#ifndef TPUSIM_CONFIGS_RECORD_H_
#define TPUSIM_CONFIGS_RECORD_H_

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace tpusim {

// The outcome for the subject.
enum class Action {
  kChanged,
  kKept,     // considered, and left as it was
  kLimited,  // not considered: a limit of effort was reached
  kAssumed,  // taken to be so, as nothing says it
  kWarned,
};
std::string_view ToString(Action action);

struct Reason {
  std::string_view id;  // "stage.what"
  Action action;
  // A format of fmt; its arguments are `subject` and the record's values, by name.
  std::string_view sentence;
};

// Units are in the names, as in the report: saved_bytes, gain_us.
struct RecordValue {
  std::string_view name;
  std::variant<int64_t, double, std::string> value;
};

struct Record {
  std::string_view pass;  // or stage; of static storage
  const Reason* reason = nullptr;
  std::string subject;
  std::vector<RecordValue> values;

  const RecordValue* Find(std::string_view name) const;  // null: it has no such value
};

// The sentence of its reason, filled in.
std::string ToString(const Record& record);
// A line each.
std::string Lines(const std::vector<Record>& records);
// The sentences of those with this action.
std::vector<std::string> TextsOf(const std::vector<Record>& records, Action action);

// The reason of every record of a limit of effort that was reached; {subject} is the limit's name.
extern const Reason kLimitReached;

// The collection that a stage adds its records to. Decisions (what changed, what was kept) are many
// and kept only where they are asked for; warnings, assumptions and limits are few and always kept.
class Records {
 public:
  Records() = default;  // keeps nothing
  explicit Records(std::vector<Record>* all) : decisions_(all), notes_(all) {}
  Records(std::vector<Record>* decisions, std::vector<Record>* notes)
      : decisions_(decisions), notes_(notes) {}

  // Returns whether decisions are asked for, to be asked before values are made that cost
  // something.
  bool wanted() const { return decisions_ != nullptr; }
  // `reason` must be of static storage.
  void Add(const Reason& reason, std::string_view subject,
           std::initializer_list<RecordValue> values = {}) const;
  // The limit `name` left `count` of `what` ("candidates") out. One record per name.
  void Limit(std::string_view name, int64_t limit, std::string_view what, int64_t count = 1) const;

 private:
  std::vector<Record>* decisions_ = nullptr;
  std::vector<Record>* notes_ = nullptr;
};

}  // namespace tpusim

#endif  // TPUSIM_CONFIGS_RECORD_H_
