// Kernels around one dot: a grid over N, M and K tiles, weights and rows through
// VMEM windows, the epilogue on the vector slots of the last K step.

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_set>
#include <utility>
#include <vector>

#include "configs/status_macros.h"
#include "models/timing/kernel_steps.h"
#include "models/timing/kernel_time.h"
#include "models/timing/kernel_timing.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/kernels/tiling/inner_products.h"
#include "workloads/kernels/tiling/kernels.h"
#include "workloads/kernels/tiling/ragged_steps.h"
#include "workloads/kernels/tiling/stated_windows.h"
#include "workloads/kernels/tiling/tile_bytes.h"
#include "workloads/kernels/vector_work/vector_cost.h"
#include "workloads/kernels/view/product.h"
#include "workloads/kernels/view/ragged_tiling.h"
#include "workloads/kernels/view/whole_rows.h"

namespace tpusim::kernels {
namespace {

using hlo::Instruction;
using hlo::Opcode;
using hlo::PrimitiveType;
using hlo::Shape;

// Grid dimensions, outermost first. K is innermost, so that partial sums stay.
// number: dimensions of a grid
enum GridIndex : uint32_t { kBatch = 0, kOuter = 1, kInner = 2, kContract = 3 };

// Steps along the dimensions of a product, columns outermost or rows.
struct Grid {
  int64_t batch = 1, m = 1, n = 1, k = 1;
  bool n_outer = true;
  Picoseconds bound{0};  // no kernel of it is shorter
};

struct Sides {
  std::vector<int> lhs, rhs, epilogue;
};

class DotKernelBuilder {
 public:
  // `weights` is the operand that stays in the arrays: 1, or 0 for the transposed
  // product.
  DotKernelBuilder(const KernelView& view, const target::Target& target, const Instruction& dot,
                   const Product& product, int weights)
      : view_(view),
        target_(target),
        tiles_(target),
        dot_(dot),
        weights_(weights),
        p_(product),
        unit_n_(target.chip().mxu.columns),
        unit_k_(target.chip().mxu.rows),
        cores_along_columns_(target.chip().CoresPerDevice()) {
    const bool packed = p_.format == isa::NumberFormat::kBf16;  // others are widened either way
    if (packed && ContractsAlongLanes(weights)) {
      turned_ = target.chip();
      turned_->mxu.weight_rows_per_cycle =
          std::min(turned_->mxu.weight_rows_per_cycle, kTurnedRowsPerCycle);
    }
    sides_.lhs = InputsBehind(view, dot, 1 - weights);
    sides_.rhs = InputsBehind(view, dot, weights);
    std::set<int> used(sides_.lhs.begin(), sides_.lhs.end());
    used.insert(sides_.rhs.begin(), sides_.rhs.end());
    for (int n = 0; n < static_cast<int>(view.inputs.size()); ++n) {
      if (!used.contains(n)) sides_.epilogue.push_back(n);
    }
    for (const KernelInput& input : view.inputs) {
      inputs_.push_back({input.value->shape().element_type, kernels::ElementsOf(input),
                         BytesOf(input, target), input.space});
    }
    for (const KernelOutput& output : view.outputs) {
      outputs_.push_back({output.written.element_type,
                          static_cast<double>(output.written.ElementCount()),
                          BytesOf(output, target), output.space});
    }
    waits_for_product_ = std::any_of(view.members.begin(), view.members.end(), [&](const auto* m) {
      const bool reduces = m->opcode() == Opcode::kReduce || m->opcode() == Opcode::kReduceWindow;
      return reduces && SpreadsOver(view, *m);
    });
    for (const Instruction* reduction : ReductionsSpreadIn(view.members, target.policy())) {
      const int along = OperandAlongRows(dot, *reduction, target.policy());
      whole_m_ = whole_m_ || along == 1 - weights;
      whole_n_ = whole_n_ || along == weights;
    }
  }

  absl::Status SumVectorWork() {
    ASSIGN_OR_RETURN(inner_, InnerProducts::Of(view_, dot_, weights_, target_));
    const std::unordered_set<const Instruction*> into_lhs =
        MembersBehind(view_, dot_, 1 - weights_);
    const std::unordered_set<const Instruction*> into_rhs = MembersBehind(view_, dot_, weights_);
    for (size_t n = 0; n < view_.members.size(); ++n) {
      const Instruction* m = view_.members[n];
      ASSIGN_OR_RETURN(VectorWork work, VectorWorkOf(*m, target_));
      work = work * view_.shares[n];
      if (into_lhs.contains(m)) lhs_work_ += work;
      if (into_rhs.contains(m)) rhs_work_ += work;
      if (!into_lhs.contains(m) && !into_rhs.contains(m)) epilogue_work_ += work;
    }
    for (size_t n = 0; n < view_.inputs.size(); ++n) {
      // bf16 and int8 operands go to the arrays as they are; f16 goes as f32 does.
      const bool f16 = view_.inputs[n].value->shape().element_type == PrimitiveType::kF16;
      if (InputFeedsArraysDirectly(view_.inputs[n]) && !f16) continue;
      const double unpacking = UnpackWork(view_.inputs[n], target_);
      const auto feeds = [n](const std::vector<int>& side) {
        return std::find(side.begin(), side.end(), static_cast<int>(n)) != side.end();
      };
      if (feeds(sides_.lhs)) lhs_work_.valu += unpacking;
      if (feeds(sides_.rhs)) rhs_work_.valu += unpacking;
      if (feeds(sides_.epilogue)) epilogue_work_.valu += unpacking;
    }
    for (const KernelOutput& output : view_.outputs) {
      epilogue_work_.valu += RepackWork(output.written, target_);
    }
    if (p_.packs_taps) {
      // However many taps they have, and whatever the arrays would allow.
      const configs::VpuParams& vpu = target_.chip().vpu;
      epilogue_work_.xlu +=
          target_.instructions().At("packed-taps").xlu *
          static_cast<double>(p_.batch * CeilDiv(p_.m, vpu.sublanes) * CeilDiv(p_.n, vpu.lanes));
    }
    return absl::OkStatus();
  }

  // Nothing where it takes more VMEM than `room`. Its windows have no names yet.
  std::optional<isa::Kernel> Build(const Grid& grid, Bytes room) const {
    const bool n_outer = grid.n_outer;
    Split m = SplitExtent(p_.m, target_.chip().vpu.sublanes, grid.m);
    const Split n = SplitExtent(p_.n, unit_n_, grid.n);
    Split k = SplitExtent(p_.k, unit_k_, grid.k);
    // Uneven groups: blocks of one group after the other make one dimension. The
    // side that is the same for all blocks of a group moves with few of them: it
    // counts with its share in each.
    double rhs_share = 1, out_share = 1;
    if (!p_.groups.empty()) {
      Split& split = p_.groups_of_k ? k : m;
      int64_t blocks = 0;
      for (int64_t size : p_.groups) {
        blocks += std::max<int64_t>(1, CeilDiv(size, split.block));
      }
      split.dim = {.count = blocks, .last_fraction = 1};
      const double share = static_cast<double>(p_.groups.size()) / static_cast<double>(blocks);
      if (p_.groups_of_k) {
        out_share = share;
      } else if (grid.k == 1 && (n_outer || n.dim.count == 1)) {
        rhs_share = share;
      }
    }
    const Split b = SplitExtent(p_.batch, 1, grid.batch);
    const uint32_t m_bit = 1U << (n_outer ? kInner : kOuter);
    const uint32_t n_bit = 1U << (n_outer ? kOuter : kInner);
    const uint32_t k_bit = 1U << kContract, b_bit = 1U << kBatch;

    isa::Kernel kernel;
    kernel.grid = {b.dim, n_outer ? n.dim : m.dim, n_outer ? m.dim : n.dim, k.dim};
    // What a convolution slides over is smaller than the products that it feeds.
    const bool slides = dot_.opcode() == Opcode::kConvolution;
    const double lhs_elements = slides ? ElementsOf(*dot_.operand(1 - weights_))
                                       : static_cast<double>(p_.batch * AllRows(p_) * AllDepth(p_));
    const double rhs_elements = slides ? ElementsOf(*dot_.operand(weights_))
                                       : static_cast<double>(p_.batch * AllDepth(p_) * p_.n);
    const double out_elements = static_cast<double>(p_.batch * AllRows(p_) * p_.n);
    const bool ragged = !p_.groups.empty();
    // What comes once per group moves with the dimension of the groups as well.
    const uint32_t rhs_group = ragged && !p_.groups_of_k ? m_bit : 0;
    const uint32_t out_group = ragged && p_.groups_of_k ? k_bit : 0;
    const SideBlock lhs{lhs_elements, m.block, k.block, b_bit | m_bit | k_bit,
                        p_.lhs_density * HaloFactor(m.block)};
    const SideBlock rhs{rhs_elements, k.block, n.block, b_bit | k_bit | n_bit | rhs_group,
                        p_.rhs_density * rhs_share};
    const SideBlock out{out_elements, m.block, n.block, b_bit | m_bit | n_bit | out_group,
                        out_share};
    kernel.windows.reserve(inputs_.size() + outputs_.size());
    for (int i : sides_.lhs) AddInput(kernel, i, lhs);
    const size_t first_rhs = kernel.windows.size();
    for (int i : sides_.rhs) AddInput(kernel, i, rhs);
    const size_t first_out = kernel.windows.size();
    const BlockOfProduct block{{p_.m, m.block, m_bit}, {p_.k, k.block, k_bit},
                               {p_.n, n.block, n_bit}, p_.batch, b.block, b_bit};
    for (int i : sides_.epilogue) {
      if (!inner_.Takes(i)) {
        AddInput(kernel, i, out);
      } else if (view_.inputs[i].reads()) {
        kernel.windows.push_back(inner_.WindowOf(i, inputs_[i].bytes, inputs_[i].space, block));
      }
    }
    for (const Array& output : outputs_) {
      kernel.windows.push_back(WindowOf(isa::WindowKind::kOutput, output, out));
    }
    for (isa::Window& w : kernel.windows) {
      if ((w.moves_with & b_bit) != 0) w.bytes = w.bytes * b.block;
    }
    FitBuffers(kernel);

    // Partial sums of a split K stay in VMEM, 32 bits wide.
    // number: bits of a type
    Bytes scratch = k.dim.count > 1 && hlo::BitWidth(view_.outputs[0].written.element_type) < 32
                        ? tiles_.Of(PrimitiveType::kF32, m.block, n.block) * b.block
                        : Bytes(0);
    // A side that counts with a share takes all of its room.
    for (size_t w = first_rhs; w < kernel.windows.size(); ++w) {
      const double share = w < first_out ? rhs_share : out_share;
      const isa::Window& window = kernel.windows[w];
      const double hidden = static_cast<double>(window.bytes.value()) * (1 / share - 1);
      scratch += Bytes(std::llround(hidden)) * window.buffers;
    }
    if (timing::WindowBytes(kernel) + scratch > room) return std::nullopt;
    kernel.block = BlockOf(b.block, m.block, n.block, k.block);
    const double deep = b.dim.FullSteps() * k.dim.FullSteps();
    AddVectorWork(kernel, deep * m.dim.FullSteps(), deep * n.dim.FullSteps());
    kernel.block.latency += inner_.TimeOf(block, target_.chip());
    return kernel;
  }

  // The grid that the compiler has given the kernel, in its order: columns outermost. Its windows
  // are whole registers, not whole arrays.
  //
  // The cores of a megacore halve the outermost dimension that has steps, and each runs through
  // its half by itself: two windows, one of each core, are one step of the device, and a grid of
  // two steps is one, in which nothing is behind anything else. What does not move with that
  // dimension comes to the VMEM of either core.
  isa::Kernel BuildStated(const StatedGrid& grid) {
    unit_n_ = unit_k_ = target_.chip().vpu.lanes;
    int64_t batch = grid.batch_positions;
    int64_t m = grid.rows * grid.row_positions, n = grid.columns * grid.column_positions;
    const int64_t cores = target_.chip().CoresPerDevice();
    int64_t* const outside = grid.rows_outside ? &m : &n;
    int64_t* const inside = grid.rows_outside ? &n : &m;
    int64_t* const dealt = *outside > 1  ? outside
                           : *inside > 1 ? inside
                           : batch > 1   ? &batch
                                         : nullptr;
    const bool deals = cores > 1 && dealt != nullptr && *dealt % cores == 0;
    const uint32_t dealt_bit = dealt == outside  ? 1U << kOuter
                               : dealt == inside ? 1U << kInner
                                                 : 1U << kBatch;
    if (deals) *dealt /= cores;
    // Columns that are not dealt out are those of every core; a side that both cores need is
    // computed by both (the columns of a batch may be its products).
    const bool columns = deals && dealt == &n, rows = deals && dealt == &m;
    cores_along_columns_ = columns ? cores : 1;
    lhs_copies_ = columns && p_.batch == 1 ? cores : 1;
    rhs_copies_ = rows && p_.batch == 1 ? cores : 1;
    isa::Kernel kernel =
        *Build({batch, m, n, grid.depth, !grid.rows_outside, {}}, Bytes(INT64_MAX));
    NameWindows(kernel);
    for (isa::Window& w : kernel.windows) {
      const bool shared = w.kind == isa::WindowKind::kInput && (w.moves_with & dealt_bit) == 0;
      if (deals && shared) w.bytes = w.bytes * cores;
    }
    return kernel;
  }

  // The library kernel of rows in groups: tiles of the device's cores are beside each other.
  isa::Kernel BuildRagged(const RaggedTiling& tiling) const {
    const int64_t columns = tiling.columns * target_.chip().CoresPerDevice();
    const Grid grid{1, tiling.tiles, CeilDiv(p_.n, columns), CeilDiv(p_.k, tiling.depth), true, {}};
    isa::Kernel kernel = *Build(grid, Bytes(INT64_MAX));
    NameWindows(kernel);
    StepThroughGroups(tiling, target_.chip(), kInner, kContract, &kernel);
    return kernel;
  }

  // Names windows by what is read and written through them, in the order of Build.
  void NameWindows(isa::Kernel& kernel) const {
    size_t window = 0;
    for (const std::vector<int>* side : {&sides_.lhs, &sides_.rhs, &sides_.epilogue}) {
      for (const int i : *side) {
        const KernelInput& input = view_.inputs[i];
        if (input.reads()) kernel.windows[window++].operand = input.value->name();
      }
    }
    for (size_t i = 0; i < outputs_.size(); ++i) {
      kernel.windows[window++].operand = view_.instruction->name();
    }
  }

  const Product& product() const { return p_; }

  // The TPU compiler limits a block whose epilogue waits for it as it does windows of loops.
  bool KeepsBlock(const isa::Kernel& kernel) const {
    if (!waits_for_product_) return true;
    const isa::MxuWork& mxu = kernel.block.mxu;
    if ((whole_m_ && mxu.m < p_.m) || (whole_n_ && mxu.n < p_.n)) return false;
    const int64_t registers = mxu.batch * CeilDiv(mxu.m, target_.chip().vpu.sublanes) *
                              CeilDiv(mxu.n, target_.chip().vpu.lanes);
    return registers <= target_.policy().window_registers * target_.chip().CoresPerDevice();
  }

 private:
  // An array with this share of the elements of a side covers it. Others are broadcast or
  // reduced on their way: they lack a dimension of the side, and so have at most half of its
  // elements, while equal groups that are rounded up have less than twice as many as are
  // there.
  static constexpr double kWhole = 0.5;  // number: a bound that its comment derives

  static double ElementsOf(const Instruction& i) {
    return static_cast<double>(i.shape().ElementCount());
  }

  bool InputFeedsArraysDirectly(const KernelInput& input) const {
    return input.inside == dot_.operand(0) || input.inside == dot_.operand(1);
  }

  // Input rows of a block of a convolution, over those that would do without halo.
  double HaloFactor(int64_t m_block) const {
    if (p_.halo_rows == 0 || m_block >= p_.m) return 1;
    const double rows =
        std::max(1.0, static_cast<double>(m_block) / static_cast<double>(p_.row_elements));
    return 1 + static_cast<double>(p_.halo_rows) / rows;
  }

  // A block of a side: elements in all, rows x columns of a block, the grid
  // dimensions it moves with, and its bytes over those of whole tiles.
  struct SideBlock {
    double covered = 0;
    int64_t rows = 0, columns = 0;
    uint32_t moves_with = 0;
    double density = 1;
  };

  void AddInput(isa::Kernel& kernel, int index, const SideBlock& block) const {
    if (!view_.inputs[index].reads()) return;
    kernel.windows.push_back(WindowOf(isa::WindowKind::kInput, inputs_[index], block));
  }

  // An operand as it is read, or a result as it is written.
  struct Array {
    PrimitiveType type;
    double elements = 0;
    Bytes bytes{0};
    isa::MemorySpace space;
  };

  isa::Window WindowOf(isa::WindowKind kind, const Array& array, const SideBlock& block) const {
    isa::Window w;
    w.kind = kind;
    w.space = array.space;
    if (array.elements >= block.covered * kWhole) {
      const Bytes tile = tiles_.Of(array.type, block.rows, block.columns);
      w.bytes = timing::Scaled(tile, block.density);
      w.rows = block.rows;
      w.moves_with = block.moves_with;
      return w;
    }
    // Broadcast on its way in, or reduced on its way out. What is small is moved once, of
    // the rest comes what belongs to a block.
    w.bytes = array.bytes;
    const double share =
        static_cast<double>(block.rows) * static_cast<double>(block.columns) / block.covered;
    const double resident = target_.policy().resident_vmem_share;
    if (Ratio(w.bytes, target_.ScopedVmem()) > resident && share < 1) {
      w.bytes = timing::Scaled(w.bytes, share);
      w.rows = block.rows;
      w.moves_with = block.moves_with;
    }
    return w;
  }

  isa::Block BlockOf(int64_t batch, int64_t m, int64_t n, int64_t k) const {
    const configs::ChipParams& chip = target_.chip();
    isa::Block block;
    block.mxu = {m, k, n, p_.format, batch * p_.repeats};
    const int64_t sublanes = chip.vpu.sublanes, lanes = chip.vpu.lanes;
    const auto passes =
        static_cast<int64_t>(std::ceil(std::max(1.0, timing::FormatPasses(chip.mxu, p_.format)))) *
        p_.repeats;
    // Every pass of every weight tile pops a register of results per 8 rows and
    // 128 columns, which is added to the partial sum in VMEM.
    const int64_t pops =
        CeilDiv(m, sublanes) * CeilDiv(n, lanes) * CeilDiv(k, chip.mxu.rows) * passes * batch;
    const int64_t feeds = CeilDiv(m, sublanes) * CeilDiv(k, chip.mxu.rows) *
                          CeilDiv(n, chip.mxu.columns) * passes * batch;
    block.valu = pops;
    block.load = feeds + pops;
    block.store = CeilDiv(m, sublanes) * CeilDiv(n, lanes) * CeilDiv(k, chip.mxu.rows) * batch;
    return block;
  }

  // An operand that is computed is computed for every block that is fed to the arrays:
  // `lhs_blocks` and `rhs_blocks` different ones. The epilogue follows the last block of
  // the contraction; its work is spread over the steps. The last block of a dimension may be
  // part of one, and its work is as much less.
  void AddVectorWork(isa::Kernel& kernel, double lhs_blocks, double rhs_blocks) const {
    isa::Block& block = kernel.block;
    const auto add = [&block](const isa::Block& work) {
      block.valu += work.valu;
      block.eup += work.eup;
      block.xlu += work.xlu;
    };
    const isa::Block into_lhs = kernels::BlockOf(lhs_work_ * lhs_copies_, lhs_blocks);
    add(into_lhs);
    add(kernels::BlockOf(rhs_work_ * rhs_copies_, rhs_blocks));
    const isa::Block epilogue = kernels::BlockOf(epilogue_work_, kernel.FullSteps());
    if (waits_for_product_) {
      isa::Block alone;
      alone.valu = epilogue.valu;
      alone.eup = epilogue.eup;
      alone.xlu = epilogue.xlu;
      block.latency = timing::TimeBlock(target_.chip(), alone).vpu;
    } else {
      add(epilogue);
    }
    block.latency += WaitForComputedRows(block, into_lhs) + WaitForTurnedWeights(block);
  }

  // Weights that have the contraction along the lanes are turned on their way into the arrays.
  // Schedules of the TPU compiler have a vmatpush.xpose of 8 rows in the time of a vmatpush of 16,
  // 4 cycles. Many rows of the other side hide it.
  static constexpr double kTurnedRowsPerCycle = 2;
  Cycles WaitForTurnedWeights(const isa::Block& block) const {
    if (!turned_) return Cycles(0);
    return timing::TimeBlock(*turned_, block).total -
           timing::TimeBlock(target_.chip(), block).total;
  }

  // Rows that are computed are computed on their way to the first columns of weights and lie in
  // VMEM for the others: what the vector unit takes for them is beside one sweep over the rows,
  // not beside all of the product. Half of a core's arrays stand beside each other along the
  // columns, the others along the contraction. (Schedules of the TPU compiler: GELU in the operand
  // of bf16[2048,4096] x [4096,1024] keeps the vector unit full for the first quarter of the
  // columns and leaves it empty for the rest, on v5e as on v6e.) Where the contraction is along
  // the sublanes of the rows, they come piece by piece and are gone when all columns have had
  // them: that overlaps.
  Cycles WaitForComputedRows(const isa::Block& block, const isa::Block& into_lhs) const {
    const configs::ChipParams& chip = target_.chip();
    if (!ContractsAlongLanes(1 - weights_)) return Cycles(0);
    const int64_t at_once =
        chip.mxu.columns * std::max<int64_t>(1, chip.mxu.count / 2) * cores_along_columns_;
    const int64_t sweeps = CeilDiv(block.mxu.n, at_once);
    // Pops and the epilogue belong to each sweep alike.
    isa::Block first = into_lhs, others;
    const auto share = [&](int64_t isa::Block::*slot) {
      const int64_t rest = block.*slot - into_lhs.*slot;
      others.*slot = rest - rest / sweeps;
      first.*slot += rest / sweeps;
    };
    for (const auto slot : {&isa::Block::valu, &isa::Block::eup, &isa::Block::xlu}) share(slot);
    const timing::BlockCycles all = timing::TimeBlock(chip, block);
    const Cycles swept(all.mxu.value() / sweeps);
    const Cycles phases = std::max(timing::TimeBlock(chip, first).vpu, swept) +
                          std::max(timing::TimeBlock(chip, others).vpu, all.mxu - swept);
    return std::max(Cycles(0), phases - std::max(all.mxu, all.vpu));
  }

  // Does the operand of the product have the contracting dimension along the lanes?
  bool ContractsAlongLanes(int operand) const {
    const Shape& shape = dot_.operand(operand)->shape();
    const auto along_lanes = [&shape](int64_t d) { return hlo::PlaceFromMinor(shape, d) == 0; };
    if (dot_.opcode() == Opcode::kConvolution) {
      const auto& numbers = dot_.attrs().convolution_dimension_numbers();
      return along_lanes(operand == 0 ? numbers.input_feature_dimension()
                                      : numbers.kernel_input_feature_dimension());
    }
    const hlo::DotDims dims = hlo::GetDotDims(dot_);
    return std::ranges::any_of(operand == 0 ? dims.lhs_contracting : dims.rhs_contracting,
                               along_lanes);
  }

  const KernelView& view_;
  const target::Target& target_;
  const TileBytes tiles_;
  const Instruction& dot_;
  const int weights_;
  const Product p_;
  int64_t unit_n_, unit_k_;  // blocks are whole multiples of
  Sides sides_;
  InnerProducts inner_;
  std::vector<Array> inputs_, outputs_;  // of the view
  VectorWork lhs_work_, rhs_work_, epilogue_work_;
  std::optional<configs::ChipParams> turned_;  // the chip, if it has to turn weights
  int64_t cores_along_columns_;
  double lhs_copies_ = 1, rhs_copies_ = 1;  // of a computed side
  bool waits_for_product_ = false;
  bool whole_m_ = false, whole_n_ = false;  // extents that a block has to hold whole
};

// Returns the grids that fit, in the order in which they are tried.
std::vector<Grid> GridsOf(const DotKernelBuilder& builder, const Product& product,
                          const target::Target& target) {
  // More tiles than this along one dimension never win before VMEM is used.
  constexpr int64_t kMaxTiles = 64;  // number: effort: tiles that are tried
  const configs::MxuParams& mxu = target.chip().mxu;
  std::vector<Grid> grids;
  // number: effort: tiles that are tried
  for (int64_t limit = kMaxTiles; grids.empty() && limit <= kMaxTiles * 4096; limit *= 16) {
    const std::vector<int64_t> rows =
        CandidateCounts(CeilDiv(product.m, target.chip().vpu.sublanes), limit);
    const std::vector<int64_t> contract = CandidateCounts(CeilDiv(product.k, mxu.rows), limit);
    for (int64_t batch : BatchCounts(product.batch)) {
      for (int64_t n : CandidateCounts(CeilDiv(product.n, mxu.columns), limit)) {
        for (int64_t m : rows) {
          for (int64_t k : contract) {
            for (bool n_outer : {true, false}) {
              const bool one = n == 1 || (m == 1 && product.groups.empty());
              if (!n_outer && one) continue;  // the same grid
              Grid grid{batch, m, n, k, n_outer, Picoseconds(0)};
              const std::optional<isa::Kernel> kernel = builder.Build(grid, target.ScopedVmem());
              if (!kernel || !builder.KeepsBlock(*kernel)) continue;
              grid.bound = timing::KernelTimeBound(target.chip(), *kernel);
              grids.push_back(grid);
            }
          }
        }
      }
    }
  }
  return grids;
}

// Offers the fastest of all grids, and of equally fast ones the first with the fewest steps. Those
// with the shortest bounds come first: most others need not be timed.
void Search(const DotKernelBuilder& builder, const Product& product, const target::Target& target,
            FastestKernel& fastest) {
  const std::vector<Grid> grids = GridsOf(builder, product, target);
  std::vector<size_t> order(grids.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {}, [&](size_t i) { return grids[i].bound; });
  using Rank = std::tuple<Picoseconds, int64_t, size_t>;  // time, steps, place
  std::optional<std::pair<Rank, isa::Kernel>> best;
  for (const size_t i : order) {
    if (best && grids[i].bound > std::get<0>(best->first)) break;
    isa::Kernel kernel = *builder.Build(grids[i], target.ScopedVmem());
    const Rank rank{timing::KernelTime(target.chip(), kernel), kernel.Steps(), i};
    if (!best || rank < best->first) best.emplace(rank, std::move(kernel));
  }
  if (best) fastest.Offer(best->second, Bytes(0));
}

}  // namespace

absl::StatusOr<isa::Kernel> BuildDotKernel(const KernelView& view, const target::Target& target) {
  const Instruction* dot = OuterProduct(view.members);
  TPUSIM_CHECK(dot != nullptr, "a dot kernel without a dot");
  ASSIGN_OR_RETURN(const Product product, ProductOf(*dot, target));
  if (const auto tiling = RaggedTilingOf(*dot, target)) {
    Product rows = product;
    rows.batch = 1;
    rows.m = tiling->all_rows;
    rows.groups.clear();
    DotKernelBuilder library(view, target, *dot, rows, /*weights=*/1);
    RETURN_IF_ERROR(library.SumVectorWork());
    return library.BuildRagged(*tiling);
  }
  FastestKernel fastest(target);
  DotKernelBuilder builder(view, target, *dot, product, /*weights=*/1);
  RETURN_IF_ERROR(builder.SumVectorWork());
  if (const auto stated = StatedWindowsOf(*view.instruction)) {
    if (const auto grid = GridOfProduct(*dot, *stated, target)) {
      // What slides or falls into groups has sides that are no matrices.
      const bool matrices = product.groups.empty() && product.halo_rows == 0 &&
                            product.row_elements == 1 && !product.packs_taps;
      const auto exchanged = GridOfExchanged(*dot, *stated, *grid, target);
      if (matrices && exchanged) {
        DotKernelBuilder other(view, target, *dot, Exchanged(product), /*weights=*/0);
        RETURN_IF_ERROR(other.SumVectorWork());
        isa::Kernel kernel = other.BuildStated(*exchanged);
        if (FitsStated(kernel, target)) return kernel;
      }
      isa::Kernel kernel = builder.BuildStated(*grid);
      if (FitsStated(kernel, target)) return kernel;
    }
  }
  Search(builder, product, target, fastest);
  const int64_t of_builder = fastest.improvements();
  const DotKernelBuilder* best = &builder;
  std::optional<DotKernelBuilder> other;
  if (const std::optional<Product> turned = TurnedGradient(*dot, product, target)) {
    other.emplace(view, target, *dot, *turned, /*weights=*/0);
    RETURN_IF_ERROR(other->SumVectorWork());
    Search(*other, *turned, target, fastest);
    if (fastest.improvements() > of_builder) best = &*other;
  }
  ASSIGN_OR_RETURN(isa::Kernel kernel, fastest.Best(*view.instruction));
  best->NameWindows(kernel);
  return kernel;
}

}  // namespace tpusim::kernels
