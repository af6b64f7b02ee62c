// Factorisations, triangular systems and Fourier transforms.
//
// A factorisation works in panels as wide as the array: inside a panel one column
// follows from the one before (a chain of latencies that nothing hides), the rest
// of the matrix is updated by products. So do QR and LU in XLA's TPU compiler, in panels of
// a register's lanes (its calls QrDecompositionBlock, CompactWyHelper, LuDecompositionBlock).
// A Fourier transform of n points is log2(n) rounds of butterflies. Eigenvectors come from
// sweeps of rotations, as XLA's expansion of the call has them (eigh_expander.cc).

#include <algorithm>
#include <bit>
#include <cmath>

#include "configs/status_macros.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/hlo/rules/assumed_trips.h"
#include "workloads/kernels/opaque/custom_cost.h"
#include "workloads/kernels/tiling/kernels.h"
#include "workloads/kernels/vector_work/vector_cost.h"

namespace tpusim::kernels {
namespace {

using hlo::Instruction;
using hlo::Opcode;
using hlo::Shape;

// One column of a panel: a diagonal element through the transcendental unit, its
// reciprocal to all lanes by the cross-lane unit, scale, and a rank-one update of
// the panel, each waiting for the one before.
double ColumnLatency(const configs::VpuParams& vpu) {
  const double alu = static_cast<double>(vpu.latency_cycles);
  // number: a sum of steps, as above
  return 4 * alu + vpu.eup_cycles_per_vreg + 2 * vpu.xlu_cycles_per_vreg;
}

// `columns` one after the other, each an update of a panel of `rows` x `width`
// below its diagonal: half the rows on average.
VectorWork ColumnByColumn(double columns, int64_t rows, int64_t width,
                          const configs::VpuParams& vpu) {
  const double registers =
      static_cast<double>(CeilDiv(rows, vpu.sublanes) * CeilDiv(width, vpu.lanes)) / 2;
  VectorWork work;
  work.valu = 2 * columns * registers;
  work.load = columns * registers;
  work.store = columns * registers;
  work.eup = columns;
  work.xlu = 2 * columns;
  work.latency = columns * ColumnLatency(vpu);
  return work;
}

int64_t Batches(const Shape& shape) {
  int64_t n = 1;
  for (int64_t d = 0; d + 2 < shape.rank(); ++d) n *= shape.dims[d];
  return n;
}

struct Algebra {
  VectorWork work;
  isa::MxuWork mxu;
  int64_t batch = 1;    // independent problems
  int64_t rounds = 1;   // a loop over what is in VMEM, with a step of the grid for each pass
  int64_t abreast = 1;  // problems that fill registers together, as rows do
};

Algebra CholeskyOf(const Instruction& i, const target::Target& target) {
  const configs::ChipParams& chip = target.chip();
  const Shape& a = i.operand(0)->shape();
  const int64_t n = a.dims.back();
  const int64_t panel = std::min(n, chip.mxu.rows);
  const int64_t panels = CeilDiv(n, panel);
  Algebra algebra;
  algebra.batch = Batches(a);
  const double columns = static_cast<double>(n) * static_cast<double>(algebra.batch);
  algebra.work = ColumnByColumn(columns, n, panel, chip.vpu);
  if (panels > 1) {
    // What is left after panel p is [r,panel] x [panel,r] with r = n - p panel; the
    // sum of r^2 is a third of panels n^2.
    // number: an integral, as above
    algebra.mxu = {n, panel, CeilDiv(n, 3), isa::NumberFormat::kF32Highest,
                   (panels - 1) * algebra.batch};
  }
  return algebra;
}

Algebra TriangularSolveOf(const Instruction& i, const target::Target& target) {
  const configs::ChipParams& chip = target.chip();
  const Shape& a = i.operand(0)->shape();
  const Shape& b = i.operand(1)->shape();
  const int64_t n = a.dims.back();
  const int64_t others = b.ElementCount() / std::max<int64_t>(1, n * Batches(b));
  const int64_t panel = std::min(n, chip.mxu.rows);
  Algebra algebra;
  algebra.batch = Batches(a);
  // The diagonal blocks are inverted column by column ...
  const double columns = static_cast<double>(n) * static_cast<double>(algebra.batch);
  algebra.work = ColumnByColumn(columns, panel, panel, chip.vpu);
  // ... and the rest are products with the lower half of the matrix.
  algebra.mxu = {others, panel, CeilDiv(n + panel, 2), isa::NumberFormat::kF32Highest,
                 CeilDiv(n, panel) * algebra.batch};
  return algebra;
}

// Returns the updates right of and below the panels of an m x n matrix, m >= n: (m - j) x (n - j)
// at column j: n/2 (m - n/3) elements on average. `products` of a panel's width with it.
isa::MxuWork TrailingUpdates(int64_t m, int64_t n, int64_t panel, int64_t products) {
  // number: an integral, as above
  return {m - n / 3, panel, CeilDiv(n, 2), isa::NumberFormat::kF32Highest, products};
}

// The rows and columns of the factorised matrix, the longer one first.
struct Extents {
  int64_t m, n;
};
Extents ExtentsOf(const Shape& a) {
  const auto [n, m] = std::minmax(a.dims[a.rank() - 2], a.dims[a.rank() - 1]);
  return {m, n};
}

// A column of QR or LU waits for a reduction over its rows (its norm, its pivot), for one
// more pass over the panel before the update (the products of QR's reflector with the
// columns, the exchange of LU's rows), and has a reciprocal, as Cholesky's has.
Algebra ColumnsWithReduction(const Instruction& i, const target::Target& target) {
  const configs::VpuParams& vpu = target.chip().vpu;
  const auto [m, n] = ExtentsOf(i.operand(0)->shape());
  Algebra algebra;
  algebra.batch = Batches(i.operand(0)->shape());
  const int64_t panel = std::min(n, vpu.lanes);
  const double columns = static_cast<double>(n) * static_cast<double>(algebra.batch);
  // Half of n rows are above the diagonal on average, which ColumnByColumn has taken off.
  algebra.work = ColumnByColumn(columns, 2 * m - n, panel, vpu);
  algebra.work += ColumnByColumn(columns, 2 * m - n, panel, vpu);
  return algebra;
}

Algebra QrOf(const Instruction& i, const target::Target& target) {
  const auto [m, n] = ExtentsOf(i.operand(0)->shape());
  const int64_t panel = std::min(n, target.chip().vpu.lanes);
  Algebra algebra = ColumnsWithReduction(i, target);
  // The reflectors V of a panel together are I - V T V': T, then V'A, and V (T V'A) off A.
  const double columns = static_cast<double>(n) * static_cast<double>(algebra.batch);
  algebra.work += ColumnByColumn(columns, panel, panel, target.chip().vpu);
  if (n > panel) {
    algebra.mxu = TrailingUpdates(m, n, panel, 2 * (CeilDiv(n, panel) - 1) * algebra.batch);
  }
  return algebra;
}

// The reflectors are there; the products of every panel with what it changes of Q remain.
Algebra MakeQOf(const Instruction& i, const target::Target& target) {
  const Shape& a = i.operand(0)->shape();
  const auto [m, n] = ExtentsOf(a);
  const int64_t panel = std::min(n, target.chip().vpu.lanes);
  Algebra algebra;
  algebra.batch = Batches(a);
  const double columns = static_cast<double>(n) * static_cast<double>(algebra.batch);
  algebra.work = ColumnByColumn(columns, panel, panel, target.chip().vpu);
  algebra.mxu = TrailingUpdates(m, n, panel, 2 * CeilDiv(n, panel) * algebra.batch);
  return algebra;
}

Algebra LuOf(const Instruction& i, const target::Target& target) {
  const auto [m, n] = ExtentsOf(i.operand(0)->shape());
  const int64_t panel = std::min(n, target.chip().vpu.lanes);
  Algebra algebra = ColumnsWithReduction(i, target);
  if (n > panel) {
    // Rows right of a panel change places and are solved with its triangle, column by
    // column; then one product.
    const double columns = static_cast<double>(n) * static_cast<double>(algebra.batch);
    algebra.work += ColumnByColumn(columns, panel, panel, target.chip().vpu);
    algebra.mxu = TrailingUpdates(m, n, panel, (CeilDiv(n, panel) - 1) * algebra.batch);
  }
  return algebra;
}

// Brent and Luk's order of Jacobi's rotations: all n/2 of a round side by side, n - 1 rounds to
// a sweep. Matrix and vectors are four quadrants each, whose rows (and columns of the matrix)
// move on by one after a round, so that every two of them meet once.
Algebra EighOf(const Instruction& call, const target::Target& target) {
  const configs::VpuParams& vpu = target.chip().vpu;
  const Shape& a = call.operand(0)->shape();
  const int64_t half = CeilDiv(a.dims.back(), 2);
  const bool is_complex = hlo::IsComplex(a.element_type);
  Algebra algebra;
  algebra.batch = Batches(a);
  algebra.rounds = std::max<int64_t>(1, hlo::SweepsOf(call) * (2 * half - 1));
  const double quadrants =
      4.0 * static_cast<double>(  // number: quadrants of a matrix
                VectorRegisters(target, hlo::MakeShape(hlo::PrimitiveType::kF32, {half, half})));
  const double parts = is_complex ? 2 : 1;
  VectorWork round;
  // Two products and a sum per element: by rows and by columns of the matrix, by rows of the
  // vectors; then the diagonals, which three quadrants give and all four get.
  // number: counted, as above
  round.valu = (3 * 3 * (is_complex ? 4 : 1) + (3 * 2 + 4) / 4.0) * quadrants;
  round.load = round.store = 2 * quadrants * parts;
  round.xlu = 3 * quadrants * parts;  // number: counted, as above
  // tau = (c - a) / 2b, t = 1 / (tau + sqrt(1 + tau^2)), cos = 1 / sqrt(1 + t^2), sin = t cos:
  // eight operations and four of the transcendental unit, one after the other, between a
  // diagonal that is collected from the lanes and results that are spread over them.
  round.eup = 4 * static_cast<double>(CeilDiv(half, vpu.lanes));  // number: counted, as above
  // number: counted, as above
  round.latency = 8 * static_cast<double>(vpu.latency_cycles) + 4 * vpu.eup_cycles_per_vreg +
                  2 * vpu.xlu_cycles_per_vreg;
  algebra.work = round * static_cast<double>(algebra.rounds) * static_cast<double>(algebra.batch);
  return algebra;
}

Algebra FactorizationOf(const Instruction& call, const target::Target& target) {
  const std::string& name = call.attrs().custom_call_target();
  if (name == hlo::kEighTarget) return EighOf(call, target);
  if (name == kLuTarget) return LuOf(call, target);
  return name == kQrTarget ? QrOf(call, target) : MakeQOf(call, target);
}

// A butterfly of two complex values: a complex product and two complex sums, ten
// real operations, five per value. Both components are loaded and stored in every
// round; partners closer than one register cross lanes or sublanes.
Algebra FftOf(const Instruction& i, const target::Target& target) {
  const configs::VpuParams& vpu = target.chip().vpu;
  const Shape& widest = i.operand(0)->shape().ElementCount() > i.shape().ElementCount()
                            ? i.operand(0)->shape()
                            : i.shape();
  Algebra algebra;
  double points = 1;
  int64_t rounds = 0, crossing = 0;
  const auto& length = i.attrs().fft_length();
  for (int d = 0; d < length.size(); ++d) {
    const auto log2 = static_cast<int64_t>(
        std::bit_width(static_cast<uint64_t>(std::max<int64_t>(1, length[d]) - 1)));
    rounds += log2;
    const int from_minor = length.size() - 1 - d;
    const int64_t inside = from_minor == 0 ? vpu.lanes : from_minor == 1 ? vpu.sublanes : 1;
    crossing += std::min<int64_t>(
        log2, static_cast<int64_t>(std::bit_width(static_cast<uint64_t>(inside - 1))));
    points *= static_cast<double>(length[d]);
  }
  algebra.batch = std::max<int64_t>(
      1, static_cast<int64_t>(static_cast<double>(widest.ElementCount()) / std::max(points, 1.0)));
  Shape complex = widest;
  complex.element_type = hlo::PrimitiveType::kC64;
  if (length.size() == 1 && complex.rank() > 1) {
    // Rows lie in tiles of so many, the last of which may not be full.
    algebra.abreast = target.TileOf(complex).front();
    const int64_t rows = std::max<int64_t>(1, complex.dims[complex.rank() - 2]);
    algebra.batch = std::max<int64_t>(1, algebra.batch / rows) * RoundUp(rows, algebra.abreast);
  }
  const double words = static_cast<double>(VectorRegisters(target, complex));
  // number: counted in a radix-2 step
  algebra.work.valu = 5.0 / 2 * words * static_cast<double>(rounds);
  // number: counted in a radix-2 step
  algebra.work.load = words * static_cast<double>(rounds) * 1.5;  // with the twiddle factors
  algebra.work.store = words * static_cast<double>(rounds);
  algebra.work.xlu = words * static_cast<double>(crossing);
  return algebra;
}

// The way of a kernel's data through VMEM: in blocks of so many problems, or in pieces of one.
struct Blocks {
  int64_t problems = 1;
  int64_t pieces = 1;
};

isa::Kernel KernelIn(const Blocks& blocks, const Algebra& algebra,
                     std::vector<isa::Window> windows) {
  Split split{blocks.problems, {CeilDiv(algebra.batch, blocks.problems), 1.0}};
  const int64_t last = algebra.batch - (split.dim.count - 1) * split.block;
  split.dim.last_fraction = static_cast<double>(last) / static_cast<double>(split.block);
  const int64_t pieces = blocks.pieces;
  // Work that spans more than VMEM holds goes over the data once per doubling.
  const auto doublings = static_cast<int64_t>(std::bit_width(static_cast<uint64_t>(pieces - 1)));
  const int64_t passes = std::max(pieces > 1 ? 1 + doublings : 1, algebra.rounds);
  isa::Kernel kernel;
  kernel.grid = {split.dim, {passes, 1.0}, {pieces, 1.0}};
  // What fits stays for all passes.
  // number: one bit for each dimension of the grid
  const uint32_t moves = pieces > 1 ? 7U : split.dim.count > 1 ? 1U : 0U;
  const double share =
      static_cast<double>(split.block) / static_cast<double>(algebra.batch * pieces);
  for (isa::Window& w : windows) {
    w.bytes =
        // number: rounding
        Bytes(static_cast<int64_t>(std::ceil(static_cast<double>(w.bytes.value()) * share - 1e-6)));
    w.moves_with = moves;
    w.buffers = moves != 0 ? 2 : 1;
  }
  kernel.windows = std::move(windows);
  // A block whose rows do not fill a register takes as long as if they did.
  const double of_problems = static_cast<double>(CeilDiv(algebra.batch, algebra.abreast)) /
                             static_cast<double>(CeilDiv(split.block, algebra.abreast));
  kernel.block = BlockOf(algebra.work, of_problems * static_cast<double>(passes * pieces));
  kernel.block.mxu = algebra.mxu;
  if (algebra.mxu.m > 0) {
    // Products are shared out by batch where there are enough, else by rows.
    const double steps = kernel.FullSteps();
    const auto in_step = [steps](int64_t total) {
      // number: rounding
      return static_cast<int64_t>(std::ceil(static_cast<double>(total) / steps - 1e-9));
    };
    if (static_cast<double>(algebra.mxu.batch) >= steps) {
      kernel.block.mxu.batch = in_step(algebra.mxu.batch);
    } else {
      kernel.block.mxu.m = in_step(algebra.mxu.m * algebra.mxu.batch);
      kernel.block.mxu.batch = 1;
    }
  }
  return kernel;
}

}  // namespace

absl::StatusOr<isa::Kernel> BuildAlgebraKernel(const KernelView& view,
                                               const target::Target& target) {
  Algebra algebra;
  VectorWork others;
  for (const Instruction* m : view.members) {
    switch (m->opcode()) {
      case Opcode::kCholesky:
        algebra = CholeskyOf(*m, target);
        break;
      case Opcode::kTriangularSolve:
        algebra = TriangularSolveOf(*m, target);
        break;
      case Opcode::kFft:
        algebra = FftOf(*m, target);
        break;
      case Opcode::kCustomCall:
        algebra = FactorizationOf(*m, target);
        break;
      default: {
        ASSIGN_OR_RETURN(const VectorWork one, VectorWorkOf(*m, target));
        others += one;
      }
    }
  }
  algebra.work += others;

  const std::vector<isa::Window> windows = WholeWindows(view, target);
  Bytes all(0);
  for (const KernelInput& input : view.inputs) all += BytesOf(input, target);
  for (const KernelOutput& output : view.outputs) all += BytesOf(output, target);
  // A problem that does not fit with the next one beside it streams through VMEM once per pass;
  // else as many problems make a block as is fastest.
  const Bytes one = Bytes(CeilDiv(all.value(), algebra.batch));
  const Bytes half(target.ScopedVmem().value() / 2);
  if (one > half) return KernelIn({1, CeilDiv(one.value(), half.value())}, algebra, windows);
  FastestKernel fastest(target);
  for (const int64_t problems : CandidateCounts(algebra.batch, algebra.batch)) {
    if (problems == algebra.batch && all > half) continue;
    fastest.Offer(KernelIn({problems, 1}, algebra, windows), Bytes(0));
  }
  return fastest.best() ? *fastest.best() : KernelIn({1, 1}, algebra, windows);
}

}  // namespace tpusim::kernels
