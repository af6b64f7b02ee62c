#include "configs/limit.h"

#include <algorithm>

namespace tpusim {
namespace {

thread_local LimitScope* innermost_scope = nullptr;

}  // namespace

int64_t Limit::most() const {
  if (innermost_scope == nullptr) return value;
  for (const auto& [other, stated] : innermost_scope->values_) {
    if (other == name) return stated;
  }
  return value;
}

void Limit::Reached(int64_t count) const {
  if (innermost_scope == nullptr) return;
  auto& reached = innermost_scope->reached_;
  const auto found =
      std::ranges::find_if(reached, [this](const auto& entry) { return entry.first == this; });
  if (found != reached.end()) {
    found->second += count;
  } else {
    reached.emplace_back(this, count);
  }
}

LimitScope::LimitScope(std::initializer_list<std::pair<std::string_view, int64_t>> values)
    : outer_(innermost_scope), values_(values) {
  if (outer_ != nullptr)
    values_.insert(values_.end(), outer_->values_.begin(), outer_->values_.end());
  innermost_scope = this;
}

LimitScope::~LimitScope() { innermost_scope = outer_; }

void LimitScope::AddTo(const Records& records) const {
  for (const auto& [limit, count] : reached_) {
    records.Limit(limit->name, limit->most(), limit->left_out, count);
  }
}

}  // namespace tpusim
