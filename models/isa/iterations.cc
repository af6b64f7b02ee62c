#include "models/isa/iterations.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "configs/status_macros.h"

namespace tpusim::isa {

namespace {

// Fewer cost more to find than they save.
constexpr size_t kFewestIterations = 6;
// Instructions by which a stretch is recognised where it occurs again.
constexpr size_t kWindow = 32;
// Distances of recurrence that are looked into: a program has few kinds of layers.
constexpr size_t kMostLengths = 8;

int64_t NameOf(const void* pointer) { return std::bit_cast<int64_t>(pointer); }

// The instructions of a program with those that it calls.
struct Flat {
  const Body* body = nullptr;
  std::vector<const Instruction*> instructions;
  std::vector<size_t> starts;
};

// Nothing if calls are nested.
std::optional<Flat> Flatten(const Body& program) {
  Flat flat;
  flat.body = &program;
  flat.starts.reserve(program.size() + 1);
  for (const Instruction& i : program) {
    flat.starts.push_back(flat.instructions.size());
    const auto* call = std::get_if<Call>(&i.kind);
    if (call == nullptr) {
      flat.instructions.push_back(&i);
      continue;
    }
    for (const Instruction& called : *call->body) {
      if (std::holds_alternative<Call>(called.kind)) return std::nullopt;
      flat.instructions.push_back(&called);
    }
  }
  flat.starts.push_back(flat.instructions.size());
  return flat;
}

const Label* BeginOfOp(const Instruction& i) {
  const auto* label = std::get_if<Label>(&i.kind);
  return label != nullptr && label->begin ? label : nullptr;
}

bool SameKernel(const Kernel& a, const Kernel& b) {
  if (a.grid != b.grid || !(a.block == b.block) || a.windows.size() != b.windows.size()) {
    return false;
  }
  for (size_t w = 0; w < a.windows.size(); ++w) {
    const Window &x = a.windows[w], &y = b.windows[w];
    if (x.kind != y.kind || x.space != y.space || x.bytes != y.bytes || x.rows != y.rows ||
        x.moves_with != y.moves_with || x.buffers != y.buffers) {
      return false;
    }
  }
  return true;
}

bool SameTransfer(const Rdma& a, const Rdma& b) {
  return a.route == b.route && a.bytes == b.bytes && a.rows == b.rows && a.from == b.from &&
         a.to == b.to && a.reduce == b.reduce;
}

// A number for what an instruction does, whatever the names in it. Equal ones are compared
// before anything rests on it.
class Digest {
 public:
  explicit Digest(const PodProgram& program) : program_(program) {}

  uint64_t Of(const Instruction& i) {
    uint64_t sum = i.kind.index();
    std::visit([&](const auto& kind) { Add(sum, kind); }, i.kind);
    return sum;
  }

 private:
  static void Mix(uint64_t& sum, int64_t value) {
    sum = (sum ^ static_cast<uint64_t>(value)) * 0x9E3779B97F4A7C15u;
    sum ^= sum >> 29;
  }
  void Add(uint64_t& sum, const Block& block) {
    for (const int64_t n : {block.mxu.m, block.mxu.k, block.mxu.n, block.mxu.batch, block.valu,
                            block.load, block.scalar.value(), block.latency.value()}) {
      Mix(sum, n);
    }
  }
  void Add(uint64_t& sum, const Kernel& kernel) {
    for (const GridDim& dim : kernel.grid) Mix(sum, dim.count);
    for (const Window& window : kernel.windows) {
      Mix(sum, window.bytes.value());
      Mix(sum, static_cast<int64_t>(window.space));
    }
    Add(sum, kernel.block);
  }
  void Add(uint64_t& sum, const Dma& dma) { Mix(sum, dma.bytes.value()); }
  void Add(uint64_t& sum, const HostDma& dma) { Mix(sum, dma.bytes.value()); }
  void Add(uint64_t& sum, const Rdma& rdma) {
    Mix(sum, rdma.bytes.value());
    Mix(sum, rdma.route);
  }
  void Add(uint64_t& sum, const Signal& signal) { Mix(sum, signal.route); }
  void Add(uint64_t& sum, const Wait& wait) { Mix(sum, wait.count); }
  void Add(uint64_t& sum, const Loop& loop) {
    Mix(sum, loop.count);
    Mix(sum, static_cast<int64_t>(OfBody(loop.body)));
  }
  void Add(uint64_t& sum, const Call& call) { Mix(sum, static_cast<int64_t>(OfBody(call.body))); }
  void Add(uint64_t& sum, const Branch& branch) {
    Mix(sum, static_cast<int64_t>(OfBody(branch.bodies[branch.taken])));
  }
  void Add(uint64_t& sum, const Label& label) { Mix(sum, label.begin); }
  void Add(uint64_t& sum, const Alloc& alloc) {
    Mix(sum, program_.info.buffers[alloc.buffer].bytes.value());
  }
  void Add(uint64_t& sum, const Free& free) {
    Mix(sum, program_.info.buffers[free.buffer].bytes.value());
  }
  void Add(uint64_t& sum, const Start& start) {
    Mix(sum, static_cast<int64_t>(start.stream.kind));
    Mix(sum, start.stream.index);
    Mix(sum, static_cast<int64_t>(OfBody(start.body)));
  }
  void Add(uint64_t&, const Done&) {}

  uint64_t OfBody(const SharedBody& body) {
    const auto known = bodies_.find(body.get());
    if (known != bodies_.end()) return known->second;
    uint64_t sum = body->size();
    for (const Instruction& i : *body) Mix(sum, static_cast<int64_t>(Of(i)));
    return bodies_[body.get()] = sum;
  }

  const PodProgram& program_;
  std::unordered_map<const Body*, uint64_t> bodies_;  // looked up, never iterated over
};

// A stretch of the first program that recurs after `length` instructions, again and again.
struct Stretch {
  size_t begin = 0, length = 0;
  size_t matches = 0;  // instructions that recur
};

// How far away stretches occur again, the most frequent distances first.
std::vector<size_t> Lengths(const std::vector<uint64_t>& digests) {
  constexpr uint64_t kBase = 0x100000001B3u;
  uint64_t power = 1;
  for (size_t n = 0; n < kWindow; ++n) power *= kBase;
  std::unordered_map<uint64_t, size_t> last;  // looked up, never iterated over
  std::map<size_t, size_t> counts;
  uint64_t window = 0;
  for (size_t i = 0; i < digests.size(); ++i) {
    window = window * kBase + digests[i];
    if (i >= kWindow) window -= power * digests[i - kWindow];
    if (i + 1 < kWindow) continue;
    const auto [before, is_new] = last.try_emplace(window, i);
    if (is_new) continue;
    ++counts[i - before->second];
    before->second = i;
  }
  std::vector<std::pair<size_t, size_t>> found;  // how often and how far
  for (const auto& [length, count] : counts) found.emplace_back(count, length);
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  if (found.size() > kMostLengths) found.resize(kMostLengths);
  std::set<size_t> lengths;
  for (const auto& [count, length] : found) {
    // Two equal halves may differ in what surrounds them.
    lengths.insert(length);
    lengths.insert(2 * length);
  }
  return {lengths.begin(), lengths.end()};
}

std::vector<Stretch> Stretches(const std::vector<uint64_t>& digests) {
  std::vector<Stretch> found;
  for (const size_t length : Lengths(digests)) {
    size_t run = 0;
    for (size_t i = 0; i + length < digests.size(); ++i) {
      run = digests[i] == digests[i + length] ? run + 1 : 0;
      const bool last = i + length + 1 == digests.size() || digests[i + 1] != digests[i + 1 + length];
      if (last && run >= (kFewestIterations - 1) * length) {
        found.push_back({i + 1 - run, length, run});
      }
    }
  }
  // Those with the most that recurs, where several claim the same instructions.
  std::stable_sort(found.begin(), found.end(),
                   [](const Stretch& a, const Stretch& b) { return a.matches > b.matches; });
  std::vector<Stretch> taken;
  for (const Stretch& s : found) {
    const auto end = [](const Stretch& x) { return x.begin + x.matches + x.length; };
    if (std::none_of(taken.begin(), taken.end(), [&](const Stretch& t) {
          return s.begin < end(t) && t.begin < end(s);
        })) {
      taken.push_back(s);
    }
  }
  std::sort(taken.begin(), taken.end(),
            [](const Stretch& a, const Stretch& b) { return a.begin < b.begin; });
  return taken;
}

}  // namespace

// Finds the iterations of one stretch in all programs, and the successors of names.
class IterationFinder {
 public:
  explicit IterationFinder(const PodProgram& program) : program_(program) {}

  std::optional<Iterations> Find(const Flat& first, const Stretch& stretch,
                                 const std::vector<std::pair<const Body*, Flat>>& flats) {
    size_t begin = stretch.begin;
    const size_t end = stretch.begin + stretch.length;
    while (begin < end && BeginOfOp(*first.instructions[begin]) == nullptr) ++begin;
    if (begin == end) return std::nullopt;
    Iterations found;
    for (size_t i = begin; i < stretch.begin + stretch.matches + stretch.length;
         i += stretch.length) {
      const Label* label = BeginOfOp(*first.instructions[i]);
      if (label == nullptr) break;
      found.first_ops_.push_back(label->op);
    }
    size_t fewest = found.first_ops_.size();
    for (const auto& [body, flat] : flats) {
      const std::optional<Iterations::InProgram> in = InProgramOf(flat, found.first_ops_);
      if (!in) return std::nullopt;
      fewest = std::min(fewest, (in->end - in->begin) / in->length);
      found.programs_.emplace(body, *in);
    }
    if (fewest < kFewestIterations) return std::nullopt;
    found.first_ops_.resize(fewest);
    for (int kind = 0; kind < kNameKinds; ++kind) {
      if (!Chain(successors_[kind], found.chains_[kind])) return std::nullopt;
    }
    return found;
  }

 private:
  // Which name follows which; each follows one.
  struct Successors {
    std::unordered_map<int64_t, int64_t> next, before;
    std::vector<int64_t> order;  // in which they were found
  };

  std::optional<Iterations::InProgram> InProgramOf(const Flat& flat,
                                                   const std::vector<int32_t>& first_ops) {
    const std::vector<const Instruction*>& all = flat.instructions;
    size_t from = all.size(), to = all.size();
    for (size_t i = 0; i < all.size() && to == all.size(); ++i) {
      const Label* label = BeginOfOp(*all[i]);
      if (label == nullptr) continue;
      if (label->op == first_ops[0]) from = i;
      if (label->op == first_ops[1]) to = i;
    }
    if (to == all.size() || from >= to) return std::nullopt;
    Iterations::InProgram in{flat.starts, from, to - from, 0};
    size_t i = from;
    Place a(flat), b(flat);
    while (i + in.length < all.size()) {
      // What programs have in common is compared once.
      const Call* first = a.CallAt(i);
      const Call* second = b.CallAt(i + in.length);
      if (first != nullptr && second != nullptr && Alike(*first->body, *second->body)) {
        i += first->body->size();
      } else if (Follows(*all[i], *all[i + in.length])) {
        ++i;
      } else {
        break;
      }
    }
    in.end = i + in.length;
    return in;
  }

  // Walks along a program.
  class Place {
   public:
    explicit Place(const Flat& flat) : flat_(flat) {}
    // The call whose first instruction this is; null: none.
    const Call* CallAt(size_t instruction) {
      while (flat_.starts[at_ + 1] <= instruction) ++at_;
      if (flat_.starts[at_] != instruction) return nullptr;
      return std::get_if<Call>(&(*flat_.body)[at_].kind);
    }

   private:
    const Flat& flat_;
    size_t at_ = 0;
  };

  bool Alike(const Body& a, const Body& b) {
    const auto [known, is_new] = alike_.try_emplace(&a, std::pair(&b, false));
    if (!is_new) return known->second == std::pair(&b, true);
    if (a.size() != b.size()) return false;
    for (size_t i = 0; i < a.size(); ++i) {
      if (!Follows(a[i], b[i])) return false;
    }
    return known->second.second = true;
  }

  // The second does what the first does, with names that follow those of the first.
  bool Follows(const Instruction& a, const Instruction& b) {
    if (a.kind.index() != b.kind.index()) return false;
    const auto [known, is_new] = followed_.try_emplace(&a, &b);
    if (!is_new && known->second == &b) return true;
    const bool follows = std::visit(
        [&](const auto& kind) {
          using Kind = std::decay_t<decltype(kind)>;
          return SameButForNames(kind, std::get<Kind>(b.kind));
        },
        a.kind);
    if (!follows && is_new) followed_.erase(&a);
    return follows;
  }

  bool SameButForNames(const Block& a, const Block& b) { return a == b; }
  bool SameButForNames(const Kernel& a, const Kernel& b) {
    return SameKernel(a, b) && Name(NameKind::kKernel, NameOf(&a), NameOf(&b));
  }
  bool SameButForNames(const Dma& a, const Dma& b) { return a == b; }
  bool SameButForNames(const HostDma& a, const HostDma& b) { return a == b; }
  bool SameButForNames(const Rdma& a, const Rdma& b) {
    return SameTransfer(a, b) && Name(NameKind::kFlag, a.arrival_flag, b.arrival_flag) &&
           Name(NameKind::kFlag, a.sent_flag, b.sent_flag) &&
           Name(NameKind::kRdma, NameOf(&a), NameOf(&b));
  }
  bool SameButForNames(const Signal& a, const Signal& b) {
    return a.route == b.route && Name(NameKind::kFlag, a.flag, b.flag);
  }
  bool SameButForNames(const Wait& a, const Wait& b) {
    return a.count == b.count && Name(NameKind::kFlag, a.flag, b.flag);
  }
  bool SameButForNames(const Loop& a, const Loop& b) {
    return a.count == b.count && Bodies(a.body, b.body);
  }
  bool SameButForNames(const Call& a, const Call& b) { return Bodies(a.body, b.body); }
  bool SameButForNames(const Branch& a, const Branch& b) {
    return a.taken == b.taken && Bodies(a.bodies[a.taken], b.bodies[b.taken]);
  }
  bool SameButForNames(const Label& a, const Label& b) {
    return a.begin == b.begin && Operations(a.op, b.op);
  }
  bool SameButForNames(const Alloc& a, const Alloc& b) {
    return a.space == b.space && SameSize(a.buffer, b.buffer);
  }
  bool SameButForNames(const Free& a, const Free& b) {
    return a.space == b.space && SameSize(a.buffer, b.buffer);
  }
  bool SameButForNames(const Start& a, const Start& b) {
    return a.stream == b.stream && Name(NameKind::kToken, a.token, b.token) &&
           Bodies(a.body, b.body);
  }
  bool SameButForNames(const Done& a, const Done& b) {
    return Name(NameKind::kToken, a.token, b.token);
  }

  bool SameSize(int32_t a, int32_t b) const {
    return program_.info.buffers[a].bytes == program_.info.buffers[b].bytes;
  }
  // What is recorded of an operation depends on whether it is a collective and which one it
  // waits for.
  bool Operations(int32_t a, int32_t b) {
    const OpInfo &x = program_.info.ops[a], &y = program_.info.ops[b];
    return (x.collective >= 0) == (y.collective >= 0) &&
           Name(NameKind::kOp, x.waits_for, y.waits_for) && Name(NameKind::kOp, a, b);
  }
  bool Bodies(const SharedBody& a, const SharedBody& b) {
    if (a->size() != b->size() || !Name(NameKind::kBody, NameOf(a.get()), NameOf(b.get()))) {
      return false;
    }
    for (size_t i = 0; i < a->size(); ++i) {
      if (!Follows((*a)[i], (*b)[i])) return false;
    }
    return true;
  }

  // False: one of them follows or is followed by something else.
  bool Name(NameKind kind, int64_t a, int64_t b) {
    if (a == -1 || b == -1) return a == b;
    Successors& names = successors_[static_cast<int>(kind)];
    const auto [next, is_new] = names.next.try_emplace(a, b);
    if (!is_new) return next->second == b;
    if (!names.before.try_emplace(b, a).second) {
      names.next.erase(next);
      return false;
    }
    names.order.push_back(a);
    return true;
  }

  // False: names come back, which no number of an iteration says.
  static bool Chain(const Successors& names, Iterations::Chains& chains) {
    for (const int64_t head : names.order) {
      if (names.before.contains(head)) continue;  // not the first of its chain, or its own
      const auto which = static_cast<int64_t>(chains.names.size());
      std::vector<int64_t>& chain = chains.names.emplace_back();
      for (int64_t name = head;; name = names.next.at(name)) {
        chains.of[name] = {which, static_cast<int64_t>(chain.size())};
        chain.push_back(name);
        if (!names.next.contains(name)) break;
      }
    }
    return std::all_of(names.order.begin(), names.order.end(), [&](int64_t name) {
      return chains.of.contains(name) || names.next.at(name) == name;
    });
  }

  const PodProgram& program_;
  std::array<Successors, kNameKinds> successors_;
  // Looked up, never iterated over.
  std::unordered_map<const Instruction*, const Instruction*> followed_;
  std::unordered_map<const Body*, std::pair<const Body*, bool>> alike_;
};

Iterations::Name Iterations::Of(NameKind kind, int64_t name) const {
  const Chains& chains = chains_[static_cast<int>(kind)];
  const auto found = chains.of.find(name);
  return found == chains.of.end() ? Name{name, -1} : found->second;
}

int64_t Iterations::In(NameKind kind, const Name& name) const {
  if (name.iteration < 0) return name.which;
  const std::vector<int64_t>& chain = chains_[static_cast<int>(kind)].names[name.which];
  TPUSIM_CHECK(name.iteration < static_cast<int64_t>(chain.size()),
               "an iteration that the program does not have");
  return chain[name.iteration];
}

int32_t Iterations::Later(int32_t op, int64_t iterations) const {
  Name name = Of(NameKind::kOp, op);
  if (name.iteration >= 0) name.iteration += iterations;
  return static_cast<int32_t>(In(NameKind::kOp, name));
}

const Iterations::InProgram* Iterations::Find(const Body* program) const {
  const auto found = programs_.find(program);
  return found == programs_.end() ? nullptr : &found->second;
}

std::vector<Iterations> FindIterations(const PodProgram& program) {
  std::vector<Iterations> found;
  std::vector<std::pair<const Body*, Flat>> flats;
  std::set<int32_t> used(program.program_of_device.begin(), program.program_of_device.end());
  if (used.empty()) return found;
  const Body& first = *program.programs[program.program_of_device[0]];
  std::optional<Flat> flat = Flatten(first);
  if (!flat) return found;
  Digest digest(program);
  std::vector<uint64_t> digests;
  digests.reserve(flat->instructions.size());
  for (const Instruction* i : flat->instructions) digests.push_back(digest.Of(*i));
  const std::vector<Stretch> stretches = Stretches(digests);
  if (stretches.empty()) return found;
  for (const int32_t p : used) {
    std::optional<Flat> other = Flatten(*program.programs[p]);
    if (!other) return found;
    flats.emplace_back(program.programs[p].get(), *std::move(other));
  }
  for (const Stretch& stretch : stretches) {
    IterationFinder finder(program);
    if (auto iterations = finder.Find(*flat, stretch, flats)) {
      found.push_back(*std::move(iterations));
    }
  }
  return found;
}

}  // namespace tpusim::isa
