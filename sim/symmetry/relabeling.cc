#include "sim/symmetry/relabeling.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <type_traits>

#include "configs/status_macros.h"
#include "models/isa/verify.h"

namespace tpusim::sim {
namespace {

// A renaming under construction that can be taken back to an earlier state.
class Renaming {
 public:
  explicit Renaming(size_t names) : to_(names, -1), from_(names, -1) {}

  // Whether `name` is, or from now on can be, renamed to `image`. -1 is no name.
  bool Agree(int32_t name, int32_t image) {
    if (name < 0 || image < 0) return name == image;
    if (to_[name] >= 0 || from_[image] >= 0) return to_[name] == image;
    to_[name] = image;
    from_[image] = name;
    made_.push_back(name);
    return true;
  }
  size_t mark() const { return made_.size(); }
  void Back(size_t mark) {
    for (; made_.size() > mark; made_.pop_back()) {
      from_[to_[made_.back()]] = -1;
      to_[made_.back()] = -1;
    }
  }
  const std::vector<int32_t>& to() const { return to_; }

 private:
  std::vector<int32_t> to_, from_;
  std::vector<int32_t> made_;
};

// Whether instructions of this kind that follow each other may change places.
bool MayChangePlaces(const isa::Instruction& instruction) {
  return std::holds_alternative<isa::Start>(instruction.kind) ||
         std::holds_alternative<isa::Done>(instruction.kind) ||
         std::holds_alternative<isa::Rdma>(instruction.kind) ||
         std::holds_alternative<isa::Signal>(instruction.kind) ||
         std::holds_alternative<isa::Wait>(instruction.kind);
}

class Matcher {
 public:
  Matcher(const isa::PodProgram& program, const RouteImage& is_image)
      : is_image_(is_image),
        routes_(program.routes.size()),
        flags_(static_cast<size_t>(program.flags)),
        tokens_(static_cast<size_t>(program.tokens)),
        streams_of_(isa::StreamsOf(program)),
        streams_(streams_of_.size()) {}

  bool Bodies(const isa::Body& a, const isa::Body& b) {
    // The renaming only grows while this stands.
    const Pair pair{&a, &b, in_};
    if (alike_.contains(pair)) return true;
    if (a.size() != b.size()) return false;
    for (size_t i = 0; i < a.size();) {
      const size_t kind = a[i].kind.index();
      size_t end = i + 1;
      if (MayChangePlaces(a[i])) {
        while (end < a.size() && a[end].kind.index() == kind) ++end;
      }
      if (!Run(a, b, i, end)) return false;
      i = end;
    }
    alike_.insert(pair);
    made_.push_back(pair);
    return true;
  }

  Relabeling relabeling() const { return {routes_.to(), flags_.to()}; }

 private:
  using Pair = std::tuple<const isa::Body*, const isa::Body*, isa::Iteration>;
  struct Checkpoint {
    size_t routes, flags, tokens, streams, bodies;
  };

  // Instructions [begin, end) of `a` against those of `b`, in any order.
  bool Run(const isa::Body& a, const isa::Body& b, size_t begin, size_t end) {
    std::vector<bool> taken(end - begin, false);
    for (size_t i = begin; i < end; ++i) {
      bool found = false;
      // The one in the same place first.
      for (size_t k = 0; k < end - begin && !found; ++k) {
        const size_t j = begin + (i - begin + k) % (end - begin);
        if (taken[j - begin]) continue;
        const Checkpoint mark = {routes_.mark(), flags_.mark(), tokens_.mark(), streams_.mark(),
                           made_.size()};
        found = Instructions(a[i], b[j]);
        if (found) {
          taken[j - begin] = true;
        } else {
          Back(mark);
        }
      }
      if (!found) return false;
    }
    return true;
  }

  void Back(const Checkpoint& mark) {
    routes_.Back(mark.routes);
    flags_.Back(mark.flags);
    tokens_.Back(mark.tokens);
    streams_.Back(mark.streams);
    for (; made_.size() > mark.bodies; made_.pop_back()) alike_.erase(made_.back());
  }

  bool Instructions(const isa::Instruction& a, const isa::Instruction& b) {
    if (a.kind.index() != b.kind.index()) return false;
    return std::visit(
        [&](const auto& one) { return Same(one, std::get<std::decay_t<decltype(one)>>(b.kind)); },
        a.kind);
  }

  template <typename Kind>
  bool Same(const Kind& a, const Kind& b) {
    return &a == &b || a == b;
  }
  bool Same(const isa::Rdma& a, const isa::Rdma& b) {
    return a.bytes == b.bytes && a.rows == b.rows && a.from == b.from && a.to == b.to &&
           a.reduce == b.reduce && Routes(a.route, b.route) &&
           Flags(a.arrival_flag, b.arrival_flag) && Flags(a.sent_flag, b.sent_flag);
  }
  bool Same(const isa::Signal& a, const isa::Signal& b) {
    return Routes(a.route, b.route) && Flags(a.flag, b.flag);
  }
  bool Same(const isa::Wait& a, const isa::Wait& b) {
    return a.count == b.count && Flags(a.flag, b.flag);
  }
  bool Same(const isa::Loop& a, const isa::Loop& b) {
    if (a.count != b.count || a.iterations != b.iterations) return false;
    if (a.iterations == nullptr) return Bodies(*a.body, *b.body);
    bool same = true;
    for (int64_t n = 0; n < a.count && same; ++n) {
      in_ = {a.iterations.get(), n};
      same = Bodies(*a.body, *b.body);
    }
    in_ = {};
    return same;
  }
  // Also of the same body: its names are renamed where this one calls it.
  bool Same(const isa::Call& a, const isa::Call& b) { return Bodies(*a.body, *b.body); }
  bool Same(const isa::Branch& a, const isa::Branch& b) {
    return a.taken == b.taken && a.bodies.size() == b.bodies.size() &&
           Bodies(*a.bodies[a.taken], *b.bodies[b.taken]);
  }
  bool Same(const isa::Start& a, const isa::Start& b) {
    return a.stream.kind == b.stream.kind && streams_.Agree(Index(a.stream), Index(b.stream)) &&
           Tokens(a.token, b.token) && Bodies(*a.body, *b.body);
  }
  bool Same(const isa::Done& a, const isa::Done& b) { return Tokens(a.token, b.token); }

  bool Flags(int32_t flag, int32_t image) { return flags_.Agree(in_.Flag(flag), in_.Flag(image)); }
  bool Tokens(int32_t token, int32_t image) {
    return tokens_.Agree(in_.Token(token), in_.Token(image));
  }
  bool Routes(int32_t route, int32_t image) {
    return is_image_(route, image) && routes_.Agree(route, image);
  }
  int32_t Index(const isa::StreamId& stream) const {
    const auto it = std::find(streams_of_.begin(), streams_of_.end(), stream);
    TPUSIM_CHECK(it != streams_of_.end(), "a body is started on an unknown stream");
    return static_cast<int32_t>(it - streams_of_.begin());
  }

  const RouteImage& is_image_;
  Renaming routes_, flags_, tokens_;
  const std::vector<isa::StreamId> streams_of_;
  Renaming streams_;
  isa::Iteration in_;  // that is compared
  std::set<Pair> alike_;
  std::vector<Pair> made_;  // in the order of insertion
};

}  // namespace

bool Relabeling::IsIdentity() const {
  const auto identity = [](const std::vector<int32_t>& names) {
    for (size_t i = 0; i < names.size(); ++i) {
      if (names[i] >= 0 && names[i] != static_cast<int32_t>(i)) return false;
    }
    return true;
  };
  return identity(routes) && identity(flags);
}

Relabeling Relabeling::Inverse() const {
  const auto invert = [](const std::vector<int32_t>& names) {
    std::vector<int32_t> inverse(names.size(), -1);
    for (size_t i = 0; i < names.size(); ++i) {
      if (names[i] >= 0) inverse[names[i]] = static_cast<int32_t>(i);
    }
    return inverse;
  };
  return {invert(routes), invert(flags)};
}

Relabeling Relabeling::Then(const Relabeling& other) const {
  const auto chain = [](const std::vector<int32_t>& first, const std::vector<int32_t>& second) {
    std::vector<int32_t> both(first.size(), -1);
    for (size_t i = 0; i < first.size(); ++i) {
      if (first[i] >= 0) both[i] = second[first[i]];
    }
    return both;
  };
  return {chain(routes, other.routes), chain(flags, other.flags)};
}

std::optional<Relabeling> FindRelabeling(const isa::PodProgram& program,
                                         const std::vector<std::pair<int32_t, int32_t>>& programs,
                                         const RouteImage& is_image) {
  Matcher matcher(program, is_image);
  for (const auto& [one, image] : programs) {
    if (!matcher.Bodies(*program.programs[one], *program.programs[image])) return std::nullopt;
  }
  return matcher.relabeling();
}

}  // namespace tpusim::sim
