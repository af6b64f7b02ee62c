// Limits of effort: how far a stage looks, so that its time stays in proportion to the program.
//
// A limit says nothing of the TPU compiler; what that does is policy. It has a name, a value, what
// is left out once it is reached, and why it is there. The limits of a room are in its limits.h.
//
//   inline constexpr Limit kMostConsumers{"fusion.consumers", 64, "values", "..."};
//   if (consumers > kMostConsumers.most()) { kMostConsumers.Reached(); return; }
//
// Where something that would have been looked at is not, Reached() counts it for the innermost
// LimitScope that lives; its owner makes records of the counts (record.h). A scope can also give
// limits other values, for the time in which it lives.
#ifndef TPUSIM_CONFIGS_LIMIT_H_
#define TPUSIM_CONFIGS_LIMIT_H_

#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <utility>
#include <vector>

#include "configs/record.h"

namespace tpusim {

struct Limit {
  std::string_view name;      // "stage.what"
  int64_t value = 0;          // unless a scope gives another
  std::string_view left_out;  // in the plural: "values"
  std::string_view purpose;

  int64_t most() const;
  // Records that so many were left out.
  void Reached(int64_t count = 1) const;
};

// Scopes nest and are of one thread. One inside of another has its values as well.
class LimitScope {
 public:
  LimitScope() : LimitScope({}) {}
  // Sets limits by name; the innermost scope that names a limit holds.
  explicit LimitScope(std::initializer_list<std::pair<std::string_view, int64_t>> values);
  LimitScope(const LimitScope&) = delete;
  LimitScope& operator=(const LimitScope&) = delete;
  ~LimitScope();

  // One record per limit that was reached, in the order in which they were.
  void AddTo(const Records& records) const;

 private:
  friend struct Limit;

  LimitScope* const outer_;
  std::vector<std::pair<std::string_view, int64_t>> values_;
  std::vector<std::pair<const Limit*, int64_t>> reached_;
};

}  // namespace tpusim

#endif  // TPUSIM_CONFIGS_LIMIT_H_
