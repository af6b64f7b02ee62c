#include "workloads/kernels/opaque/custom_cost.h"

#include <fmt/format.h>
#include <fnmatch.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "configs/status_macros.h"
#include "workloads/hlo/ir/annotations.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/hlo/rules/assumed_trips.h"
#include "workloads/hlo/rules/cost.h"
#include "workloads/hlo/rules/host_callback.h"
#include "workloads/kernels/opaque/body_cost.h"

namespace tpusim::kernels {
namespace {

constexpr Reason kCostAssumed{"kernel-cost.assumed", Action::kAssumed, "{call}{more} {sentence}"};
constexpr Reason kFreeCallback{
    "kernel-cost.free-callback", Action::kAssumed,
    "{call} waits for the host, which is taken to cost the device no time (--kernel-cost "
    "{subject}=TIME)"};

using hlo::Instruction;
using hlo::Opcode;
namespace annotations = hlo::annotations;

constexpr std::pair<std::string_view, isa::NumberFormat> kFormats[] = {
    {"bf16", isa::NumberFormat::kBf16},        {"f32", isa::NumberFormat::kF32},
    {"f32_high", isa::NumberFormat::kF32High}, {"f32_highest", isa::NumberFormat::kF32Highest},
    {"int8", isa::NumberFormat::kInt8},        {"int4", isa::NumberFormat::kInt4},
    {"fp8", isa::NumberFormat::kFp8},          {"int32", isa::NumberFormat::kInt32},
};

// More steps or larger blocks than any chip could take.
constexpr int64_t kMost = int64_t{1} << 40;  // number: more than any chip takes
// No call takes a day.
// number: seconds of a day in ps
constexpr Picoseconds kLongest(int64_t{86400} * 1'000'000'000'000);

tpusim::KernelProduct MessageOf(const CustomProduct& product) {
  tpusim::KernelProduct message;
  message.set_m(product.m);
  message.set_k(product.k);
  message.set_n(product.n);
  message.set_count(product.count);
  for (const auto& [name, format] : kFormats) {
    if (format == product.format) message.set_number_format(std::string(name));
  }
  return message;
}

tpusim::KernelCost MessageOf(const CustomCost& cost) {
  tpusim::KernelCost message;
  message.set_flops(cost.flops.value());
  message.set_transcendentals(cost.transcendentals.value());
  message.set_bytes_accessed(cost.bytes.value());
  message.set_remote_bytes(cost.remote.value());
  for (const CustomProduct& product : cost.products) *message.add_products() = MessageOf(product);
  for (const CustomStage& stage : cost.stages) {
    tpusim::KernelStage& m = *message.add_stages();
    m.set_flops(stage.flops.value());
    m.set_transcendentals(stage.transcendentals.value());
    m.set_spilled_bytes(stage.spilled.value());
    m.set_valu(stage.valu);
    m.set_eup(stage.eup);
    m.set_xlu(stage.xlu);
    for (const CustomProduct& product : stage.products) *m.add_products() = MessageOf(product);
  }
  message.set_chain_flops(1);
  message.set_exposed_flops(cost.exposed_share);
  message.set_one_core(cost.one_core);
  for (const std::string& sentence : cost.assumed) message.add_assumed(sentence);
  if (cost.time) message.set_picoseconds(cost.time->value());
  if (!cost.pipeline) return message;
  for (const int64_t size : cost.pipeline->grid) message.add_grid(size);
  for (const CustomPipeline::BlockSpec& block : cost.pipeline->blocks) {
    tpusim::KernelBlock& m = *message.add_blocks();
    m.set_bytes(block.bytes.value());
    m.set_output(block.output);
    for (int axis = 0; axis < 32; ++axis) {  // number: bits of a word
      if ((block.moves_with >> axis & 1U) != 0) m.add_moves_with(axis);
    }
  }
  return message;
}

// Adds `kernel`, with its loops, `times` to the sum; false if a sum is impossibly large
// or a figure negative. Loops of unknown count, which lie in the loop `inside`, go to `open`.
bool AddTimes(const tpusim::KernelCost& kernel, int64_t times, const KernelTrips& trips,
              const std::string& inside, tpusim::KernelCost* sum, std::vector<OpenLoop>* open) {
  bool fits = true;
  const auto add = [&](int64_t figure, int64_t so_far) {
    int64_t product = 0, total = 0;
    fits = fits && figure >= 0 && !__builtin_mul_overflow(figure, times, &product) &&
           !__builtin_add_overflow(so_far, product, &total);
    return total;
  };
  sum->set_one_core(sum->one_core() || kernel.one_core());
  sum->set_flops(add(kernel.flops(), sum->flops()));
  sum->set_transcendentals(add(kernel.transcendentals(), sum->transcendentals()));
  sum->set_bytes_accessed(add(kernel.bytes_accessed(), sum->bytes_accessed()));
  sum->set_remote_bytes(add(kernel.remote_bytes(), sum->remote_bytes()));
  sum->set_chain_flops(sum->chain_flops() + static_cast<double>(times) * kernel.chain_flops());
  sum->set_exposed_flops(sum->exposed_flops() +
                         static_cast<double>(times) * kernel.exposed_flops());
  const auto add_products = [&](const auto& from, auto* to) {
    for (const tpusim::KernelProduct& product : from) {
      if (times == 0) break;
      tpusim::KernelProduct& m = *to->Add();
      m = product;
      m.set_count(add(product.count(), 0));
    }
  };
  add_products(kernel.products(), sum->mutable_products());
  for (int n = 0; n < kernel.stages_size(); ++n) {
    const tpusim::KernelStage& stage = kernel.stages(n);
    tpusim::KernelStage& m = n < sum->stages_size() ? *sum->mutable_stages(n) : *sum->add_stages();
    m.set_flops(add(stage.flops(), m.flops()));
    m.set_transcendentals(add(stage.transcendentals(), m.transcendentals()));
    m.set_spilled_bytes(add(stage.spilled_bytes(), m.spilled_bytes()));
    const auto often = static_cast<double>(times);
    m.set_valu(m.valu() + often * stage.valu());
    m.set_eup(m.eup() + often * stage.eup());
    m.set_xlu(m.xlu() + often * stage.xlu());
    add_products(stage.products(), m.mutable_products());
  }
  for (const tpusim::KernelLoop& loop : kernel.loops()) {
    const std::optional<int64_t> count = trips(loop);
    if (!count.has_value()) open->push_back({loop.name(), loop.source(), inside});
    int64_t passes = 0;
    if (__builtin_mul_overflow(times, count.value_or(1), &passes)) return false;
    fits = fits && AddTimes(loop.pass(), passes, trips, count ? inside : loop.name(), sum, open);
  }
  return fits;
}

// Loops in each other as they are in the kernel: those around a loop come before it.
tpusim::KernelCost MessageOf(const std::vector<OpenLoop>& loops) {
  tpusim::KernelCost message;
  std::unordered_map<std::string, tpusim::KernelCost*> insides;
  for (const OpenLoop& loop : loops) {
    const auto around = insides.find(loop.inside);
    tpusim::KernelLoop& m = *(around == insides.end() ? &message : around->second)->add_loops();
    m.set_name(loop.name);
    m.set_source(loop.source);
    insides[loop.name] = m.mutable_pass();
  }
  return message;
}

bool IsTimeAlone(const CustomCost& cost) {
  CustomCost nothing;
  nothing.time = cost.time;
  return cost.time && MessageOf(cost).ShortDebugString() == MessageOf(nothing).ShortDebugString();
}

// nullopt: none is stated.
absl::StatusOr<std::optional<Picoseconds>> TimeOf(int64_t picoseconds) {
  if (picoseconds < 0 || picoseconds > kLongest.value()) {
    return UserError("a kernel takes less than no time, or more than a day");
  }
  return picoseconds > 0 ? std::optional(Picoseconds(picoseconds)) : std::nullopt;
}

// The last part of "jit(f)/layer/flash_attention"; a Pallas kernel's name stands before
// "/pallas_call".
std::string LastOf(std::string path) {
  constexpr std::string_view kPallas = "/pallas_call";
  if (path.ends_with(kPallas)) path.resize(path.size() - kPallas.size());
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

// Returns what is known of a call, with the time that is stated: of a Pallas call before
// SetBodyCosts has run, that time alone.
CustomCost TimedCost(const Instruction& call, const CustomCost& stated) {
  if (IsPallasCall(call) && !IsPriced(call)) return stated;
  const absl::StatusOr<CustomCost> known = CustomCostOf(call);
  CustomCost cost = known.ok() ? *known : CustomCost{};
  cost.time = stated.time;
  return cost;
}

}  // namespace

absl::StatusOr<CustomCost> CostOf(const tpusim::KernelCost& kernel) {
  CustomCost cost{Flops(kernel.flops()), Flops(kernel.transcendentals()),
                  Bytes(kernel.bytes_accessed()), Bytes(kernel.remote_bytes())};
  const auto bad = [&](std::string_view what) {
    return UserError(fmt::format("the cost of a kernel: {}", what));
  };
  const auto bad_products = [&](const auto& from, std::vector<CustomProduct>* to) {
    for (const tpusim::KernelProduct& product : from) {
      CustomProduct p{product.m(), product.k(), product.n()};
      p.count = product.count();
      const auto format =
          std::find_if(std::begin(kFormats), std::end(kFormats),
                       [&](const auto& known) { return known.first == product.number_format(); });
      if (format == std::end(kFormats)) {
        return fmt::format("products of '{}', which is no format of the arrays",
                           product.number_format());
      }
      p.format = format->second;
      for (const int64_t size : {p.m, p.k, p.n, p.count}) {
        if (size < 1 || size > kMost) return std::string("a product of an impossible size");
      }
      to->push_back(p);
    }
    return std::string();
  };
  if (const std::string why = bad_products(kernel.products(), &cost.products); !why.empty()) {
    return bad(why);
  }
  for (const tpusim::KernelStage& stage : kernel.stages()) {
    CustomStage s{Flops(stage.flops()), Flops(stage.transcendentals()),
                  Bytes(stage.spilled_bytes())};
    s.valu = stage.valu();
    s.eup = stage.eup();
    s.xlu = stage.xlu();
    if (std::min({stage.flops(), stage.transcendentals(), stage.spilled_bytes()}) < 0 ||
        !(std::min({s.valu, s.eup, s.xlu}) >= 0 && std::max({s.valu, s.eup, s.xlu}) < kMost)) {
      return bad("a stage of less than no work");
    }
    if (const std::string why = bad_products(stage.products(), &s.products); !why.empty()) {
      return bad(why);
    }
    cost.stages.push_back(s);
  }
  Flops flops(0), transcendentals(0);
  for (const CustomStage& stage : cost.stages) {
    flops += stage.flops;
    transcendentals += stage.transcendentals;
  }
  ASSIGN_OR_RETURN(cost.time, TimeOf(kernel.picoseconds()));
  if (kernel.chain_flops() > 0) cost.exposed_share = kernel.exposed_flops() / kernel.chain_flops();
  if (!(cost.exposed_share >= 0 && cost.exposed_share <= 1)) {
    return bad("more waits are exposed than there are");
  }
  cost.one_core = kernel.one_core();
  cost.assumed.assign(kernel.assumed().begin(), kernel.assumed().end());
  if (!cost.stages.empty() && (flops != cost.flops || transcendentals != cost.transcendentals)) {
    return bad("its stages do not add up to it");
  }
  if (kernel.grid().empty()) return cost;
  CustomPipeline pipeline;
  int64_t steps = 1;
  for (const int64_t size : kernel.grid()) {
    if (size < 1 || size > kMost / steps) return bad("its grid has no steps, or too many");
    steps *= size;
    pipeline.grid.push_back(size);
  }
  // number: bits of a word
  if (pipeline.grid.size() > 31) return bad("its grid has more than 31 axes");
  for (const tpusim::KernelBlock& block : kernel.blocks()) {
    if (block.bytes() < 0 || block.bytes() > kMost) return bad("a block of an impossible size");
    CustomPipeline::BlockSpec b{Bytes(block.bytes()), block.output()};
    for (const int32_t axis : block.moves_with()) {
      if (axis < 0 || axis >= kernel.grid_size())
        return bad("a block moves with no axis of its grid");
      b.moves_with |= 1U << axis;
    }
    pipeline.blocks.push_back(b);
  }
  cost.pipeline = std::move(pipeline);
  return cost;
}

absl::StatusOr<NamedCost> NamedCostOf(const tpusim::StatedKernelCost& kernel) {
  NamedCost stated{kernel.name(),
                   {Flops(kernel.flops()), Flops(kernel.transcendentals()),
                    Bytes(kernel.bytes_accessed()), Bytes(kernel.remote_bytes())}};
  ASSIGN_OR_RETURN(stated.cost.time, TimeOf(kernel.picoseconds()));
  return stated;
}

absl::StatusOr<OpenCost> OpenCostOf(const tpusim::KernelCost& kernel, const KernelTrips& trips) {
  OpenCost found;
  tpusim::KernelCost sum = kernel;
  if (kernel.loops_size() > 0) {
    sum.Clear();
    *sum.mutable_assumed() = kernel.assumed();
    if (!AddTimes(kernel, 1, trips, "", &sum, &found.open_loops)) {
      return UserError("the cost of a kernel's loops is impossible");
    }
    if (!found.open_loops.empty()) {
      std::string loops, options;
      for (const OpenLoop& loop : found.open_loops) {
        loops += fmt::format("{}{}{}", loops.empty() ? "" : ", ", loop.name,
                             loop.source.empty() ? "" : " (" + loop.source + ")");
        options += fmt::format(" --trip-count {}=N", loop.name);
      }
      found.unpriced =
          fmt::format("how often {} runs depends on data; state it with{}", loops, options);
      return found;
    }
  }
  ASSIGN_OR_RETURN(found.cost, CostOf(sum));
  return found;
}

std::string UnpricedReason(const Instruction& call) {
  if (annotations::kKernelCost.On(call)) return "";
  return annotations::kKernelUnpriced.Of(call).value_or("");
}

std::vector<OpenLoop> OpenLoopsOf(const Instruction& call) {
  std::vector<OpenLoop> loops;
  const auto text = annotations::kKernelOpenLoops.Of(call);
  if (!text || UnpricedReason(call).empty()) return loops;
  tpusim::KernelCost message;
  TPUSIM_CHECK(google::protobuf::TextFormat::ParseFromString(*text, &message),
               "the loops of a kernel do not parse");
  const std::function<void(const tpusim::KernelCost&, const std::string&)> add =
      [&](const tpusim::KernelCost& cost, const std::string& inside) {
        for (const tpusim::KernelLoop& loop : cost.loops()) {
          loops.push_back({loop.name(), loop.source(), inside});
          add(loop.pass(), loop.name());
        }
      };
  add(message, "");
  return loops;
}

std::vector<Record> CostAssumptions(const hlo::Module& module) {
  // By sentence: the first call, and how many there are.
  std::vector<std::string> sentences;
  std::unordered_map<std::string, std::pair<const Instruction*, int64_t>> calls;
  for (const hlo::Computation* computation : module.PostOrder()) {
    for (const Instruction* i : computation->instructions()) {
      if (i->opcode() != Opcode::kCustomCall) continue;
      const auto text = annotations::kKernelCost.Of(*i);
      tpusim::KernelCost message;
      if (!text || !google::protobuf::TextFormat::ParseFromString(*text, &message)) continue;
      for (const std::string& sentence : message.assumed()) {
        const auto [it, fresh] = calls.try_emplace(sentence, i, 0);
        if (fresh) sentences.push_back(sentence);
        ++it->second.second;
      }
    }
  }
  std::vector<Record> records;
  for (const std::string& sentence : sentences) {
    const auto& [call, count] = calls.at(sentence);
    const std::string more = count > 1 ? fmt::format(" (as {} more calls)", count - 1) : "";
    Records(&records).Add(kCostAssumed, call->name(),
                          {{"call", call->Describe()}, {"more", more}, {"sentence", sentence}});
  }
  return records;
}

std::vector<Record> FreeHostCallbacks(const hlo::Module& module) {
  std::vector<Record> records;
  for (const hlo::Computation* computation : module.PostOrder()) {
    for (const Instruction* i : computation->instructions()) {
      if (!hlo::IsHostCallback(*i) || annotations::kKernelCost.On(*i)) continue;
      Records(&records).Add(kFreeCallback, i->name(), {{"call", i->Describe()}});
    }
  }
  return records;
}

absl::StatusOr<CustomCost> CustomCostOf(const Instruction& call) {
  if (const auto stated = annotations::kKernelCost.Of(call)) {
    tpusim::KernelCost message;
    if (!google::protobuf::TextFormat::ParseFromString(*stated, &message)) {
      return UserError(fmt::format("{}: its attribute {} is no KernelCost: '{}'", call.Describe(),
                                   annotations::kKernelCost.name, *stated));
    }
    return CostOf(message);
  }
  if (const auto carried = hlo::CarriedCost(call)) {
    const hlo::Cost& cost = carried->cost;
    return CustomCost{cost.flops, cost.transcendentals, cost.bytes_read + cost.bytes_written,
                      carried->remote};
  }
  if (hlo::IsHostCallback(call)) return CustomCost{};  // FreeHostCallbacks says so.
  const std::string reason = UnpricedReason(call);
  return NoRule(fmt::format(
      "no kernel for {}: {}; state {} with --kernel-cost {}=FLOPS,BYTES", call.Describe(),
      reason.empty()
          ? fmt::format("custom call to '{}' has no cost", call.attrs().custom_call_target())
          : reason,
      reason.empty() ? "it" : "the whole cost", call.name()));
}

void SetCustomCost(Instruction* call, const CustomCost& cost) {
  annotations::kKernelCost.Set(call, MessageOf(cost).ShortDebugString());
}

void SetUnpriced(Instruction* call, const OpenCost& found) {
  annotations::kKernelUnpriced.Set(call, found.unpriced);
  annotations::kKernelOpenLoops.Set(call, MessageOf(found.open_loops).ShortDebugString());
}

bool IsPriced(const Instruction& call) {
  return annotations::kKernelCost.On(call) || annotations::kKernelUnpriced.On(call);
}

std::optional<Picoseconds> TimeAlone(const Instruction& call) {
  if (!annotations::kKernelCost.On(call)) return std::nullopt;
  const absl::StatusOr<CustomCost> stated = CustomCostOf(call);
  return stated.ok() && IsTimeAlone(*stated) ? stated->time : std::nullopt;
}

bool IsPallasCall(const Instruction& i) {
  return i.opcode() == Opcode::kCustomCall && i.attrs().custom_call_target() == "tpu_custom_call";
}

bool IsNamed(const Instruction& call, const std::string& pattern) {
  const auto matches = [&](const std::string& name) {
    return !name.empty() && fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
  };
  const std::string& path = call.op_name();
  return matches(call.name()) || matches(path.substr(path.rfind('/') + 1)) ||
         matches(LastOf(path)) ||
         matches(hlo::FrontendAttribute(call, "kernel_name").value_or("")) ||
         matches(NameOfBody(call));
}

std::vector<std::vector<std::string>> SetCustomCosts(hlo::Module& module,
                                                     const std::vector<NamedCost>& costs) {
  std::vector<std::vector<std::string>> uses(costs.size());
  if (costs.empty()) return uses;
  for (hlo::Computation* computation : module.computations()) {
    for (Instruction* i : computation->instructions()) {
      if (i->opcode() != Opcode::kCustomCall) continue;
      for (size_t n = 0; n < costs.size(); ++n) {
        if (!IsNamed(*i, costs[n].name)) continue;
        const CustomCost& stated = costs[n].cost;
        SetCustomCost(i, IsTimeAlone(stated) ? TimedCost(*i, stated) : stated);
        uses[n].push_back(i->name());
        break;
      }
    }
  }
  return uses;
}

bool IsTopKCall(const Instruction& i) {
  if (i.opcode() != Opcode::kCustomCall) return false;
  const std::string& target = i.attrs().custom_call_target();
  return target == "TopK" || target == "ApproxTopK";
}

bool IsPartialReduceCall(const Instruction& i) {
  return i.opcode() == Opcode::kCustomCall && i.attrs().custom_call_target() == "PartialReduce";
}

bool IsFactorizationCall(const Instruction& i) {
  if (i.opcode() != Opcode::kCustomCall || annotations::kKernelCost.On(i)) return false;
  if (i.operands().empty() || i.operand(0)->shape().rank() < 2) return false;
  const std::string& target = i.attrs().custom_call_target();
  return target == kQrTarget || target == kMakeQTarget || target == kLuTarget ||
         target == hlo::kEighTarget;
}

bool HasKernelOfItsOwn(const Instruction& i) {
  if (annotations::kKernelCost.On(i)) return false;
  return IsTopKCall(i) || IsPartialReduceCall(i) || IsFactorizationCall(i);
}

}  // namespace tpusim::kernels
