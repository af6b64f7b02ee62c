#include "models/isa/stretches.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

namespace tpusim::isa {
namespace {

// Instructions by which a stretch is recognised where it occurs again.
constexpr size_t kWindow = 32;
// Distances of recurrence that are looked into: a program has few kinds of layers.
constexpr size_t kMostLengths = 8;

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
  static void Hash(uint64_t& sum, int64_t value) {
    sum = (sum ^ static_cast<uint64_t>(value)) * 0x9E3779B97F4A7C15u;
    sum ^= sum >> 29;
  }
  void Add(uint64_t& sum, const Block& block) {
    for (const int64_t n : {block.mxu.m, block.mxu.k, block.mxu.n, block.mxu.batch, block.valu,
                            block.load, block.scalar.value(), block.latency.value()}) {
      Hash(sum, n);
    }
  }
  void Add(uint64_t& sum, const Kernel& kernel) {
    for (const GridDim& dim : kernel.grid) Hash(sum, dim.count);
    for (const Window& window : kernel.windows) {
      Hash(sum, window.bytes.value());
      Hash(sum, static_cast<int64_t>(window.space));
    }
    Add(sum, kernel.block);
  }
  void Add(uint64_t& sum, const Dma& dma) { Hash(sum, dma.bytes.value()); }
  void Add(uint64_t& sum, const HostDma& dma) { Hash(sum, dma.bytes.value()); }
  void Add(uint64_t& sum, const Rdma& rdma) {
    Hash(sum, rdma.bytes.value());
    Hash(sum, rdma.route);
  }
  void Add(uint64_t& sum, const Signal& signal) { Hash(sum, signal.route); }
  void Add(uint64_t& sum, const Wait& wait) { Hash(sum, wait.count); }
  void Add(uint64_t& sum, const Loop& loop) {
    Hash(sum, loop.count);
    Hash(sum, static_cast<int64_t>(OfBody(loop.body)));
  }
  void Add(uint64_t& sum, const Call& call) { Hash(sum, static_cast<int64_t>(OfBody(call.body))); }
  void Add(uint64_t& sum, const Branch& branch) {
    Hash(sum, static_cast<int64_t>(OfBody(branch.bodies[branch.taken])));
  }
  void Add(uint64_t& sum, const Label& label) { Hash(sum, label.begin); }
  void Add(uint64_t& sum, const Alloc& alloc) {
    Hash(sum, program_.info.buffers[alloc.buffer].bytes.value());
  }
  void Add(uint64_t& sum, const Free& free) {
    Hash(sum, program_.info.buffers[free.buffer].bytes.value());
  }
  void Add(uint64_t& sum, const Start& start) {
    Hash(sum, static_cast<int64_t>(start.stream.kind));
    Hash(sum, start.stream.index);
    Hash(sum, static_cast<int64_t>(OfBody(start.body)));
  }
  void Add(uint64_t&, const Done&) {}

  uint64_t OfBody(const SharedBody& body) {
    const auto known = bodies_.find(body.get());
    if (known != bodies_.end()) return known->second;
    uint64_t sum = body->size();
    for (const Instruction& i : *body) Hash(sum, static_cast<int64_t>(Of(i)));
    return bodies_[body.get()] = sum;
  }

  const PodProgram& program_;
  std::unordered_map<const Body*, uint64_t> bodies_;  // looked up, never iterated over
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
      const bool last =
          i + length + 1 == digests.size() || digests[i + 1] != digests[i + 1 + length];
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
    if (std::none_of(taken.begin(), taken.end(),
                     [&](const Stretch& t) { return s.begin < end(t) && t.begin < end(s); })) {
      taken.push_back(s);
    }
  }
  std::sort(taken.begin(), taken.end(),
            [](const Stretch& a, const Stretch& b) { return a.begin < b.begin; });
  return taken;
}

}  // namespace

std::vector<Stretch> StretchesThatRecur(const PodProgram& program,
                                        const std::vector<const Instruction*>& instructions) {
  Digest digest(program);
  std::vector<uint64_t> digests;
  digests.reserve(instructions.size());
  for (const Instruction* i : instructions) digests.push_back(digest.Of(*i));
  return Stretches(digests);
}

}  // namespace tpusim::isa
