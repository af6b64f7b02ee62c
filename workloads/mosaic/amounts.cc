#include "workloads/mosaic/amounts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace tpusim::mosaic {
namespace {

// Larger than anything that a chip could do.
constexpr int64_t kLargest = int64_t{1} << 60;  // number: larger than anything that a chip does
// Copies that an assumption names.
constexpr size_t kNamedCopies = 3;  // number: names in a message

std::string CountedAtMost(const std::vector<std::string>& copies) {
  const size_t named = std::min(copies.size(), kNamedCopies);
  const std::string more =
      copies.size() > named ? fmt::format(" and {} more", copies.size() - named) : "";
  return fmt::format(
      "copies slices whose size is data, counted at their largest: {}{}",
      fmt::join(copies.begin(), copies.begin() + static_cast<ptrdiff_t>(named), ", "), more);
}

void AllCopies(const Price& price, std::vector<std::string>* all) {
  AddDistinct(price.largest_copies, all);
  for (const LoopPrice& loop : price.loops) AllCopies(loop.once, all);
}

double FlopsOf(const Product& p, int64_t count) {
  return 2.0 * static_cast<double>(p.m) * static_cast<double>(p.k) * static_cast<double>(p.n) *
         static_cast<double>(count);
}

template <typename Message>
void AddProducts(const Stage& stage, Message* message) {
  for (const auto& [product, count] : stage.products) {
    if (count == 0) continue;
    tpusim::KernelProduct& m = *message->add_products();
    m.set_m(product.m);
    m.set_k(product.k);
    m.set_n(product.n);
    m.set_number_format(std::string(product.format));
    m.set_count(count);
  }
}

// Without the assumptions, which are of the whole kernel.
tpusim::KernelCost MessageOf(const Price& price, const std::string& kernel) {
  tpusim::KernelCost message;
  const Stage total = price.Total();
  message.set_flops(total.flops);
  message.set_transcendentals(total.transcendentals);
  message.set_bytes_accessed(price.bytes);
  message.set_remote_bytes(price.remote_bytes);
  message.set_chain_flops(price.chain_flops);
  message.set_exposed_flops(price.exposed_flops);
  AddProducts(total, &message);
  for (const Stage& stage : price.stages) {
    if (stage == Stage{}) continue;
    tpusim::KernelStage& m = *message.add_stages();
    m.set_flops(stage.flops);
    m.set_transcendentals(stage.transcendentals);
    m.set_spilled_bytes(stage.spilled_bytes);
    m.set_valu(stage.valu);
    m.set_eup(stage.eup);
    m.set_xlu(stage.xlu);
    AddProducts(stage, &m);
  }
  std::vector<const LoopPrice*> loops;
  for (const LoopPrice& loop : price.loops) loops.push_back(&loop);
  std::stable_sort(loops.begin(), loops.end(), [](const LoopPrice* a, const LoopPrice* b) {
    return a->loop.number < b->loop.number;
  });
  for (const LoopPrice* each : loops) {
    tpusim::KernelLoop& m = *message.add_loops();
    m.set_name(
        fmt::format("{}/{}.{}", kernel, each->loop.axis ? "grid" : "loop", each->loop.number));
    *m.mutable_pass() = MessageOf(each->once, kernel);
    m.set_source(each->loop.source);
    if (each->loop.at_most) m.set_at_most(*each->loop.at_most);
  }
  return message;
}

}  // namespace

int64_t Plus(int64_t a, int64_t b) { return std::min(kLargest, a + b); }

int64_t Times(int64_t a, int64_t b) {
  int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? kLargest : std::min(kLargest, product);
}

void Stage::Add(const Stage& other, int64_t times) {
  flops = Plus(flops, Times(other.flops, times));
  transcendentals = Plus(transcendentals, Times(other.transcendentals, times));
  spilled_bytes = Plus(spilled_bytes, Times(other.spilled_bytes, times));
  valu += other.valu * static_cast<double>(times);
  eup += other.eup * static_cast<double>(times);
  xlu += other.xlu * static_cast<double>(times);
  for (const auto& [product, count] : other.products) {
    int64_t& all = products[product];
    all = Plus(all, Times(count, times));
  }
}

bool Price::IsNothing() const {
  return bytes == 0 && remote_bytes == 0 && chain_flops == 0 && loops.empty() &&
         largest_copies.empty() &&
         std::all_of(stages.begin(), stages.end(), [](const Stage& s) { return s == Stage{}; });
}

void Price::Add(const Price& other, int64_t times) {
  if (stages.size() < other.stages.size()) stages.resize(other.stages.size());
  for (size_t n = 0; n < other.stages.size(); ++n) stages[n].Add(other.stages[n], times);
  bytes = Plus(bytes, Times(other.bytes, times));
  remote_bytes = Plus(remote_bytes, Times(other.remote_bytes, times));
  chain_flops += other.chain_flops * static_cast<double>(times);
  exposed_flops += other.exposed_flops * static_cast<double>(times);
  for (const LoopPrice& each : other.loops) {
    const auto same = [&](const LoopPrice& l) {
      return l.loop.axis == each.loop.axis && l.loop.number == each.loop.number;
    };
    const auto known = std::find_if(loops.begin(), loops.end(), same);
    if (known == loops.end()) {
      loops.push_back({each.loop, each.once.TimesOf(times)});
      continue;
    }
    // The same loop, reached at another time.
    std::optional<int64_t>& most = known->loop.at_most;
    most = most && each.loop.at_most ? std::optional(std::max(*most, *each.loop.at_most))
                                     : std::nullopt;
    known->once.Add(each.once, times);
  }
  if (times > 0) AddDistinct(other.largest_copies, &largest_copies);
}

Price Price::TimesOf(int64_t count) const {
  Price result;
  result.Add(*this, count);
  return result;
}

Price Price::InLoop(const Loop& loop) const {
  Price result;
  if (!IsNothing()) result.loops.push_back({loop, *this});
  return result;
}

Stage Price::Total() const {
  Stage total;
  for (const Stage& stage : stages) total.Add(stage);
  return total;
}

double Price::Size(const Weights& weights) const {
  const Stage total = Total();
  double size = weights.valu * total.valu + weights.eup * total.eup + weights.xlu * total.xlu +
                weights.byte * static_cast<double>(bytes) +
                weights.remote_byte * static_cast<double>(remote_bytes);
  for (const auto& [p, count] : total.products) size += weights.product_flop * FlopsOf(p, count);
  for (const LoopPrice& each : loops) size += each.once.Size(weights);
  return size;
}

double SizeOf(const tpusim::KernelCost& cost, const Weights& weights) {
  double size = weights.byte * static_cast<double>(cost.bytes_accessed()) +
                weights.remote_byte * static_cast<double>(cost.remote_bytes());
  for (const tpusim::KernelStage& stage : cost.stages()) {
    size += weights.valu * stage.valu() + weights.eup * stage.eup() + weights.xlu * stage.xlu();
  }
  for (const tpusim::KernelProduct& p : cost.products()) {
    size += weights.product_flop * FlopsOf({p.m(), p.k(), p.n(), ""}, p.count());
  }
  for (const tpusim::KernelLoop& loop : cost.loops()) size += SizeOf(loop.pass(), weights);
  return size;
}

tpusim::KernelCost Price::Cost(const std::string& kernel) const {
  tpusim::KernelCost message = MessageOf(*this, kernel);
  std::vector<std::string> copies;
  AllCopies(*this, &copies);
  if (!copies.empty()) message.add_assumed(CountedAtMost(copies));
  return message;
}

void AddDistinct(const std::vector<std::string>& more, std::vector<std::string>* all) {
  for (const std::string& each : more) {
    if (std::find(all->begin(), all->end(), each) == all->end()) all->push_back(each);
  }
}

}  // namespace tpusim::mosaic
