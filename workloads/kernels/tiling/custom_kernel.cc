// Opaque kernels: what a Pallas kernel or another custom call costs has been written on the
// instruction (custom_cost.h), as its body or the user says.

#include <algorithm>
#include <cmath>

#include "configs/status_macros.h"
#include "configs/vector_register.h"
#include "models/timing/kernel_timing.h"
#include "workloads/kernels/opaque/custom_cost.h"
#include "workloads/kernels/tiling/kernels.h"
#include "workloads/kernels/vector_work/vector_cost.h"

namespace tpusim::kernels {

namespace {

double FlopsOf(const CustomProduct& p) {
  return 2.0 * static_cast<double>(p.m) * static_cast<double>(p.k) * static_cast<double>(p.n);
}

// Rows that the arrays take for it, once per tile of weights and pass: short sides leave part of
// an array idle.
double RowsFed(const CustomProduct& p, const configs::MxuParams& mxu) {
  return static_cast<double>(p.m) * static_cast<double>(CeilDiv(p.k, mxu.rows)) *
         static_cast<double>(CeilDiv(p.n, mxu.columns)) *
         std::max(1.0, timing::FormatPasses(mxu, p.format));
}

// The products of one of so many steps. The arrays take one kind at a time: the one that takes
// longest counts for all, as often as all of them take.
//
// `copies`: a kernel that one core runs alone takes as long as if the others did as much beside it.
isa::MxuWork ProductsOfStep(const std::vector<CustomProduct>& products, int64_t steps,
                            int64_t copies, const configs::MxuParams& mxu) {
  double all = 0, most = 0;
  const CustomProduct* longest = nullptr;
  for (const CustomProduct& product : products) {
    const double rows = RowsFed(product, mxu) * static_cast<double>(product.count);
    all += rows;
    if (rows <= most) continue;
    most = rows;
    longest = &product;
  }
  if (longest == nullptr) return {};
  const double per_step = all / RowsFed(*longest, mxu) / static_cast<double>(steps);
  const auto batch = std::max<int64_t>(1, static_cast<int64_t>(per_step));
  // Rounded up: never less work than there is.
  const double rows = static_cast<double>(longest->m) * per_step / static_cast<double>(batch);
  return {std::max<int64_t>(1, static_cast<int64_t>(std::ceil(rows))), longest->k, longest->n,
          longest->format, batch * copies};
}

// Returns the FLOPs that are not part of products.
int64_t ElementwiseFlops(const CustomCost& cost) {
  double left = static_cast<double>(cost.flops.value());
  for (const CustomProduct& product : cost.products) {
    left -= FlopsOf(product) * static_cast<double>(product.count);
  }
  return std::max<int64_t>(0, static_cast<int64_t>(left));
}

// Returns what a stage is in one of so many steps, in as many copies.
isa::Block BlockOf(const CustomStage& stage, int64_t steps, int64_t copies,
                   const configs::ChipParams& chip) {
  VectorWork work;
  work.valu = stage.valu;
  work.eup = stage.eup;
  work.xlu = stage.xlu;
  work.load = work.store =
      static_cast<double>(CeilDiv(stage.spilled.value(), configs::RegisterBytes(chip.vpu)));
  isa::Block block = BlockOf(work * static_cast<double>(copies), static_cast<double>(steps));
  block.mxu = ProductsOfStep(stage.products, steps, copies, chip.mxu);
  return block;
}

// Returns all of a kernel as one stage. What is stated of a kernel in FLOPs alone is taken to be an
// operation for each element.
CustomStage AllOf(const CustomCost& cost, const configs::ChipParams& chip) {
  CustomStage all{cost.flops, cost.transcendentals, Bytes(0), cost.products};
  if (cost.stages.empty()) {
    const auto lanes = static_cast<double>(chip.vpu.sublanes * chip.vpu.lanes);
    all.valu = static_cast<double>(ElementwiseFlops(cost)) / lanes;
    all.eup = static_cast<double>(cost.transcendentals.value()) / lanes;
  }
  for (const CustomStage& stage : cost.stages) {
    all.spilled += stage.spilled;
    all.valu += stage.valu;
    all.eup += stage.eup;
    all.xlu += stage.xlu;
  }
  return all;
}

// Returns one of so many steps of the body: the slots run side by side, but for the stages that
// wait for one another.
isa::Block BodyOf(const CustomCost& cost, int64_t steps, const configs::ChipParams& chip) {
  const int64_t copies = cost.one_core ? chip.CoresPerDevice() : 1;
  Cycles one_by_one(0);
  for (const CustomStage& stage : cost.stages) {
    one_by_one += timing::TimeBlock(chip, BlockOf(stage, steps, copies, chip)).total;
  }
  isa::Block body = BlockOf(AllOf(cost, chip), steps, copies, chip);
  const Cycles side_by_side = timing::TimeBlock(chip, body).total;
  body.latency = Cycles(chip.vpu.latency_cycles);
  if (one_by_one > side_by_side) {
    const auto waits = static_cast<double>((one_by_one - side_by_side).value());
    body.latency += Cycles(static_cast<int64_t>(std::ceil(waits * cost.exposed_share)));
  }
  return body;
}

// A step per point of the grid. What the body does differently at some points is
// spread over all of them.
isa::Kernel Pipelined(const CustomCost& cost, const std::string& name,
                      const configs::ChipParams& chip) {
  const CustomPipeline& pipeline = *cost.pipeline;
  isa::Kernel kernel;
  for (const int64_t size : pipeline.grid) kernel.grid.push_back({size, 1.0});
  const int64_t steps = kernel.Steps();
  kernel.block = BodyOf(cost, steps, chip);
  Bytes in(0), out(0);
  for (const CustomPipeline::BlockSpec& block : pipeline.blocks) {
    isa::Window w;
    w.kind = block.output ? isa::WindowKind::kOutput : isa::WindowKind::kInput;
    w.operand = name;
    w.bytes = block.bytes;
    w.moves_with = block.moves_with;
    w.buffers = block.moves_with == 0 ? 1 : 2;
    kernel.windows.push_back(w);
    (block.output ? out : in) += block.bytes;
  }
  kernel.block.load += CeilDiv(in.value(), configs::RegisterBytes(chip.vpu));
  kernel.block.store += CeilDiv(out.value(), configs::RegisterBytes(chip.vpu));
  return kernel;
}

}  // namespace

Flops MatrixFlops(const CustomCost& cost, const target::Target& target) {
  if (cost.products.empty()) {
    return cost.pipeline || !cost.stages.empty() ? Flops(0) : cost.flops;
  }
  double flops = 0;
  for (const CustomProduct& product : cost.products) {
    flops += FlopsOf(product) * static_cast<double>(product.count) *
             timing::FormatPasses(target.chip().mxu, product.format);
  }
  return Flops(static_cast<int64_t>(flops));
}

absl::StatusOr<isa::Kernel> BuildCustomKernel(const KernelView& view,
                                              const target::Target& target) {
  const hlo::Instruction& call = *view.instruction;
  ASSIGN_OR_RETURN(const CustomCost cost, CustomCostOf(call));
  const configs::ChipParams& chip = target.chip();
  Bytes results(0);
  for (const KernelOutput& output : view.outputs) results += BytesOf(output, target);
  if (cost.time) return BuildTimedKernel(cost, results, call.name(), target);
  // As many buffers as the kernel asks for are its author's choice: what VMEM holds
  // is the limit, not what the compiler would use.
  if (cost.pipeline) return Pipelined(cost, call.name(), chip);
  // Stated bytes are reads and writes together; results are at least written.
  const Bytes written = std::min(results, cost.bytes);
  const Bytes read = cost.bytes - written;

  FastestKernel fastest(target);
  // number: effort: steps that are tried
  const int64_t most = std::max<int64_t>(1, cost.bytes.value() / kMiB * 4);
  for (int64_t parts : CandidateCounts(most, most)) {
    isa::Kernel kernel;
    kernel.grid = {{parts, 1.0}};
    const auto add = [&](isa::WindowKind kind, Bytes bytes) {
      if (bytes == Bytes(0)) return;
      isa::Window w;
      w.kind = kind;
      w.operand = call.name();
      w.bytes = Bytes(CeilDiv(bytes.value(), parts));
      w.moves_with = parts > 1 ? 1U : 0U;
      w.buffers = parts > 1 ? 2 : 1;
      kernel.windows.push_back(w);
    };
    add(isa::WindowKind::kInput, read);
    add(isa::WindowKind::kOutput, written);
    if (!cost.products.empty() || !cost.stages.empty()) {
      kernel.block = BodyOf(cost, parts, chip);
      fastest.Offer(kernel, Bytes(0));
      continue;
    }
    // Nothing is known of them: FLOPs go to the arrays as full-size bf16 products (two per
    // cell and row); transcendentals to their unit, a register at a time.
    const double rows =
        static_cast<double>(cost.flops.value()) /
        (2.0 * static_cast<double>(chip.mxu.rows) * static_cast<double>(chip.mxu.columns) *
         static_cast<double>(chip.mxu.count) * static_cast<double>(parts));
    if (rows > 0) {
      kernel.block.mxu = {std::max<int64_t>(1, static_cast<int64_t>(std::ceil(rows))),
                          chip.mxu.rows, chip.mxu.columns * chip.mxu.count,
                          isa::NumberFormat::kBf16, 1};
    }
    kernel.block.eup =
        CeilDiv(cost.transcendentals.value(), chip.vpu.sublanes * chip.vpu.lanes * parts);
    kernel.block.latency = Cycles(chip.vpu.latency_cycles);
    fastest.Offer(kernel, Bytes(0));
  }
  return fastest.Best(call);
}

}  // namespace tpusim::kernels
