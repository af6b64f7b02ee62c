#include "models/steady/state.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "configs/status_macros.h"

namespace tpusim::steady {
namespace {

double AsDouble(int64_t bits) { return std::bit_cast<double>(bits); }

// Sums of the same numbers in another order differ by this much at most.
constexpr double kRounding = 1e-9;
constexpr double kBytesRounding = 1.0 / 1024;

// Faster than what moves bytes in any chip, in bytes per picosecond: bytes that differ
// by less are moved in the time by which their ends differ.
constexpr double kFastest = 1e2;

bool SameBytes(double a, double b) { return std::abs(a - b) <= kBytesRounding; }

// From now. A pending moment that has come means nothing any more, whenever it was.
int64_t Ahead(NumberKind kind, int64_t at, int64_t now) {
  return kind == NumberKind::kPending ? std::max<int64_t>(0, at - now) : at - now;
}

}  // namespace

int64_t PeriodsAhead(const Snapshot& earlier, const Snapshot& later) {
  return FindRecurrence(earlier, later, Picoseconds(0)).periods;
}

Recurrence FindRecurrence(const Snapshot& earlier, const Snapshot& later, Picoseconds tolerance) {
  const int64_t then = earlier.at.value(), now = later.at.value();
  const int64_t period = now - then;
  if (period <= 0 || earlier.count != later.count ||
      !std::equal(later.kinds.data(), later.kinds.data() + later.count, earlier.kinds.data())) {
    return {};
  }
  int64_t periods = kUnlimited;
  bool is_exact = true;
  int64_t iterations = 0;  // per period, once it is known
  bool persists = false;   // what the last kBegan speaks of is the same thing in both
  // Of moments, or of times to go.
  const auto near = [&](int64_t before, int64_t after) {
    const int64_t difference = std::abs(after - before);
    if (difference > tolerance.value()) return false;
    is_exact = is_exact && difference == 0;
    return true;
  };
  for (size_t i = 0; i < later.count; ++i) {
    const NumberKind kind = later.kinds[i];
    const int64_t before = earlier.values[i], after = later.values[i];
    switch (kind) {
      case NumberKind::kSame:
        if (before != after) return {};
        break;
      case NumberKind::kRate: {
        const double a = AsDouble(before), b = AsDouble(after);
        if (a != b && !(std::abs(a - b) <= kRounding * std::max(std::abs(a), std::abs(b)))) {
          return {};
        }
        break;
      }
      case NumberKind::kPending:
        if (near(Ahead(kind, before, then), Ahead(kind, after, now))) break;
        if (before != after) return {};
        periods = std::min(periods, (after - now - 1) / period);
        break;
      case NumberKind::kBegan:
        persists = before == after;
        if (!persists && !near(Ahead(kind, before, then), Ahead(kind, after, now))) return {};
        break;
      case NumberKind::kLeft:
      case NumberKind::kLeftTime:
        if (before == after) break;
        // What began anew has to have as much left as what it replaces.
        if (!persists) {
          if (kind != NumberKind::kLeftTime || !near(before, after)) return {};
          break;
        }
        if (after > before) return {};
        periods = std::min(periods, (after - 1) / (before - after));
        break;
      case NumberKind::kLeftBytes: {
        const double a = AsDouble(before), b = AsDouble(after);
        if (SameBytes(a, b)) break;
        if (!persists) {
          if (std::abs(a - b) > kFastest * static_cast<double>(tolerance.value())) return {};
          is_exact = false;
          break;
        }
        if (b > a) return {};
        const double fits = std::floor(b / (a - b + kBytesRounding)) - 1;
        periods = std::min(periods, static_cast<int64_t>(std::clamp(fits, 0.0, 1e18)));
        break;
      }
      case NumberKind::kIteration:
        if (before < 0 || after < 0) {
          if (before != after) return {};
          break;
        }
        if (after <= before || (iterations != 0 && after - before != iterations)) return {};
        iterations = after - before;
        break;
      case NumberKind::kSince:
      case NumberKind::kCounter:
      case NumberKind::kDoubleCounter:
        break;
    }
    if (periods <= 0) return {};
  }
  return {periods, is_exact};
}

int64_t IterationsPerPeriod(const Snapshot& earlier, const Snapshot& later) {
  for (size_t i = 0; i < later.count; ++i) {
    if (later.kinds[i] == NumberKind::kIteration && later.values[i] != earlier.values[i]) {
      return later.values[i] - earlier.values[i];
    }
  }
  return 0;
}

StateVisitor StateVisitor::Read(Picoseconds now, Snapshot storage,
                                const isa::Iterations* iterations) {
  StateVisitor visitor;
  visitor.iterations_ = iterations;
  visitor.read_ = std::move(storage);
  visitor.read_.at = now;
  visitor.next_value_ = visitor.read_.values.data();
  visitor.next_kind_ = visitor.read_.kinds.data();
  visitor.end_ = visitor.next_value_ + visitor.read_.values.size();
  return visitor;
}

void StateVisitor::MakeRoom() {
  const ptrdiff_t read = next_value_ - read_.values.data();
  const auto size = static_cast<size_t>(read + std::max<ptrdiff_t>(64, read / 2));
  read_.values.resize(size);
  read_.kinds.resize(size);
  next_value_ = read_.values.data() + read;
  next_kind_ = read_.kinds.data() + read;
  end_ = read_.values.data() + size;
}

Snapshot StateVisitor::TakeSnapshot() {
  read_.count = static_cast<size_t>(next_value_ - read_.values.data());
  return std::move(read_);
}

StateVisitor StateVisitor::Move(const Snapshot& earlier, const Snapshot& later, int64_t periods,
                                const isa::Iterations* iterations) {
  StateVisitor visitor;
  visitor.iterations_ = iterations;
  visitor.earlier_ = &earlier;
  visitor.later_ = &later;
  visitor.periods_ = periods;
  visitor.by_ = (later.at - earlier.at) * periods;
  return visitor;
}

void StateVisitor::Write(NumberKind kind, int64_t& value) {
  if (later_ == nullptr) {
    MakeRoom();
    *next_value_++ = value;
    *next_kind_++ = kind;
    return;
  }
  TPUSIM_CHECK(next_ < later_->count && later_->kinds[next_] == kind,
               "a module shows other numbers when it is moved than when it was read");
  const int64_t before = earlier_->values[next_], after = later_->values[next_];
  ++next_;
  switch (kind) {
    case NumberKind::kSame:
    case NumberKind::kRate:
      return;
    case NumberKind::kPending:
    case NumberKind::kBegan:
      // What was the same moment in both belongs to what does not repeat.
      if (kind == NumberKind::kBegan) persists_ = before == after;
      if (before != after) value += by_.value();
      return;
    case NumberKind::kLeft:
    case NumberKind::kLeftTime:
    case NumberKind::kSince:
      // What began anew is as far, nearly, as what it replaced.
      if (persists_) value += (after - before) * periods_;
      return;
    case NumberKind::kIteration:
    case NumberKind::kCounter:
      value += (after - before) * periods_;
      return;
    case NumberKind::kLeftBytes:
      if (!persists_ || SameBytes(AsDouble(before), AsDouble(after))) return;
      [[fallthrough]];
    case NumberKind::kDoubleCounter:
      value = std::bit_cast<int64_t>(AsDouble(value) + (AsDouble(after) - AsDouble(before)) *
                                                           static_cast<double>(periods_));
      return;
  }
}

void StateVisitor::CheckComplete() const {
  TPUSIM_CHECK(next_ == later_->count,
               "a module shows fewer numbers when it is moved than when it was read");
}

}  // namespace tpusim::steady
