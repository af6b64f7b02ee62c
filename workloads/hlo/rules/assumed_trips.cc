#include "workloads/hlo/rules/assumed_trips.h"

#include <algorithm>

#include "configs/number_text.h"
#include "fmt/format.h"
#include "workloads/hlo/ir/annotations.h"
#include "workloads/hlo/ir/attributes.h"

namespace tpusim::hlo {
namespace {

// QDWH, the polar decomposition by dynamically weighted Halley iterations, converges in at most
// six iterations in double precision: Nakatsukasa and Higham, "Stable and efficient spectral
// divide and conquer algorithms for the symmetric eigenvalue decomposition and the SVD", SIAM
// J. Sci. Comput. 35 (2013). Two more for what rounding and a guessed norm add; JAX stops at ten.
constexpr int64_t kQdwhIterations = 8;
// Jacobi's method converges quadratically in the end, so that matrices of up to 256 rows, for
// which JAX calls it, differ by few sweeps: Brent and Luk, "The solution of singular-value and
// symmetric eigenvalue problems on multiprocessor arrays", SIAM J. Sci. Stat. Comput. 6 (1985).
constexpr int64_t kJacobiSweeps = 8;
constexpr int64_t kMostSweeps = 100;  // what JAX allows in the call
constexpr int64_t kMostCountable = int64_t{1} << 20;

enum class LoopKind { kQdwh, kSubproblems, kOnce };

struct KnownLoop {
  std::string_view function;  // as JAX's jit names it
  bool nested;                // in control flow of the function, not in the function itself
  LoopKind kind;
};

// jax/_src/tpu/linalg: qdwh.py, eigh.py, svd.py.
constexpr KnownLoop kLoops[] = {
    // Halley iterations until the matrix stays the same. The first ones have coefficients of
    // their own and are loops of a known length; the counter goes on from them.
    {"qdwh", false, LoopKind::kQdwh},
    // Spectral divide and conquer: a pass takes one block from a list. A large block is
    // split at the median of its diagonal, a small one is solved by Jacobi's method.
    {"_eigh_work", false, LoopKind::kSubproblems},
    // Subspace iteration of a split, of at most two iterations; the first is before the loop.
    {"_eigh_work", true, LoopKind::kOnce},
    // A repair of singular vectors; its body clears the flag that the loop goes by.
    {"_svd_tall_and_square_input", false, LoopKind::kOnce},
    // The same with NaN as the result of what is not finite.
    {"svd", false, LoopKind::kOnce},
};

bool IsControlFlow(std::string_view part) {
  return part == "while" || part == "body" || part == "cond" || part == "closed_call" ||
         part.starts_with("branch_");
}

// "vmap(jit(qdwh))" -> "qdwh"
std::string_view Innermost(std::string_view part) {
  if (const size_t open = part.rfind('('); open != std::string_view::npos) {
    part.remove_prefix(open + 1);
  }
  return part.substr(0, part.find(')'));
}

// The row of ".../jit(f)/while", or of ".../jit(f)/while/body/cond/branch_1_fun/while".
const KnownLoop* KnownLoopOf(const Instruction& loop) {
  std::string_view scope = loop.op_name();
  constexpr std::string_view kEnd = "/while";
  if (!scope.ends_with(kEnd)) return nullptr;
  scope.remove_suffix(kEnd.size());
  for (bool nested = false;; nested = true) {
    const size_t slash = scope.rfind('/');
    const std::string_view part = slash == std::string_view::npos ? scope : scope.substr(slash + 1);
    if (!IsControlFlow(part)) {
      const auto* known = std::ranges::find_if(kLoops, [&](const KnownLoop& l) {
        return l.function == Innermost(part) && l.nested == nested;
      });
      return known == std::end(kLoops) ? nullptr : known;
    }
    if (slash == std::string_view::npos) return nullptr;
    scope = scope.substr(0, slash);
  }
}

const Instruction* WithoutBroadcasts(const Instruction* i) {
  while (i->opcode() == Opcode::kBroadcast || i->opcode() == Opcode::kCopy ||
         i->opcode() == Opcode::kReshape) {
    i = i->operand(0);
  }
  return i;
}

// A batch has its counters side by side; all start at the same value.
std::optional<int64_t> IntegerIn(const Instruction* i) {
  return ScalarIntConstant(*WithoutBroadcasts(i));
}

// Returns the value from which the first element of the carry counts.
std::optional<int64_t> StartOfQdwh(const Instruction& loop) {
  const Instruction* carry = loop.operand(0);
  if (carry->opcode() != Opcode::kTuple || carry->operands().empty()) return std::nullopt;
  return IntegerIn(carry->operand(0));
}
std::optional<int64_t> LimitOfQdwh(const Instruction& loop) {
  for (const Instruction* i : loop.called()[1]->instructions()) {
    if (i->opcode() != Opcode::kCompare || i->attrs().comparison_direction() != "LT") continue;
    const Instruction* counter = i->operand(0);
    if (counter->opcode() == Opcode::kGetTupleElement && counter->attrs().tuple_index() == 0) {
      return IntegerIn(i->operand(1));
    }
  }
  return std::nullopt;
}

// The condition is a flag in the carry, or its opposite, or one of a batch of them, which may
// be divided among devices.
bool GoesByAFlag(const Instruction& loop) {
  const Instruction* i = WithoutBroadcasts(loop.called()[1]->root());
  while (i->opcode() == Opcode::kNot || i->opcode() == Opcode::kReduce ||
         i->opcode() == Opcode::kAllReduce) {
    i = WithoutBroadcasts(i->operand(0));
  }
  return i->opcode() == Opcode::kGetTupleElement && i->shape().element_type == PrimitiveType::kPred;
}

// Sizes that blocks are padded to, one per branch of the choice in the loop's body: that of
// Jacobi's method first, then the whole matrix. Empty if there are none.
std::vector<int64_t> BucketsOf(const Instruction& loop) {
  size_t branches = 0;
  for (const Instruction* i : loop.called()[0]->instructions()) {
    if (i->opcode() == Opcode::kConditional) branches = i->called().size();
  }
  for (const Instruction* i : loop.called()[0]->instructions()) {
    if (i->opcode() != Opcode::kConstant || i->shape().rank() != 1) continue;
    const auto sizes = IntElements(i->attrs().literal());
    if (sizes && sizes->size() == branches && branches > 1 && (*sizes)[0] > 0 &&
        *std::ranges::max_element(*sizes) == (*sizes)[1]) {
      return *sizes;
    }
  }
  return {};
}

// Blocks that halve until they are small: 1 of n rows, 2 of n/2, ... Each is one pass, in the
// smallest bucket that holds it.
std::vector<int64_t> PassesOf(const std::vector<int64_t>& buckets) {
  std::vector<int64_t> passes(buckets.size(), 0);
  int64_t blocks = 1;
  for (int64_t rows = buckets[1]; rows > buckets[0]; rows = CeilDiv(rows, 2), blocks *= 2) {
    size_t smallest = 1;
    for (size_t b = 1; b < buckets.size(); ++b) {
      if (buckets[b] >= rows && buckets[b] < buckets[smallest]) smallest = b;
    }
    passes[smallest] += blocks;
  }
  passes[0] = blocks;
  return passes;
}

void WriteTrips(Instruction* i, const std::vector<int64_t>& counts, std::optional<int64_t> most) {
  annotations::kAssumedTrips.Set(i, counts);
  if (most) annotations::kMostTrips.Set(i, *most);
}

void MarkLoop(Instruction* loop, LoopKind kind) {
  switch (kind) {
    case LoopKind::kQdwh: {
      const int64_t before = std::max<int64_t>(0, StartOfQdwh(*loop).value_or(0));
      std::optional<int64_t> most = LimitOfQdwh(*loop);
      if (most) most = std::max<int64_t>(0, *most - before);
      const int64_t left = std::max<int64_t>(0, kQdwhIterations - before);
      return WriteTrips(loop, {std::min(left, most.value_or(left))}, most);
    }
    case LoopKind::kSubproblems: {
      const std::vector<int64_t> buckets = BucketsOf(*loop);
      // One of an unknown form is taken to be as long as others.
      if (buckets.empty()) return WriteTrips(loop, {kQdwhIterations}, std::nullopt);
      return WriteTrips(loop, PassesOf(buckets), std::nullopt);
    }
    case LoopKind::kOnce:
      return WriteTrips(loop, {1}, 1);
  }
}

// A file may state any number; a count is one that can be added up.
bool IsTripCount(int64_t number) { return number >= 0 && number <= int64_t{1} << 40; }

std::string SentenceOf(const Instruction& i, const AssumedTrips& trips) {
  if (IsEighCall(i)) {
    return fmt::format("makes {} sweeps of rotations, as Jacobi's method is assumed to need",
                       trips.count);
  }
  const std::string runs =
      trips.count == 1 ? std::string("runs once") : fmt::format("runs {} times", trips.count);
  if (trips.most == trips.count) return runs + ", the most that it can";
  if (!trips.of_branches.empty()) {
    return fmt::format(
        "{}, as every split is assumed to halve a block (its branches are taken {} times)", runs,
        fmt::join(trips.of_branches, ", "));
  }
  const KnownLoop* known = KnownLoopOf(i);
  if (known == nullptr || known->kind != LoopKind::kQdwh) return runs + ", which is assumed";
  const int64_t before = kQdwhIterations - trips.count;
  return fmt::format("{}, as QDWH is assumed to need {} iterations{}", runs, kQdwhIterations,
                     before > 0 ? fmt::format(", {} of them before", before) : "");
}

}  // namespace

bool IsEighCall(const Instruction& i) {
  return i.opcode() == Opcode::kCustomCall && i.attrs().custom_call_target() == kEighTarget;
}

void SetAssumedTrips(Module& module,
                     const std::function<bool(const Instruction& loop)>& counts_itself) {
  for (const Computation* computation : module.computations()) {
    for (Instruction* i : computation->instructions()) {
      if (annotations::kAssumedTrips.On(*i)) continue;  // The file has them.
      if (IsEighCall(*i)) WriteTrips(i, {kJacobiSweeps}, kMostSweeps);
      if (i->opcode() != Opcode::kWhile || i->called().size() != 2) continue;
      const KnownLoop* known = KnownLoopOf(*i);
      if (known == nullptr || counts_itself(*i)) continue;
      if (known->function == "svd" && !GoesByAFlag(*i)) continue;  // A name that others use, too.
      MarkLoop(i, known->kind);
    }
  }
}

std::optional<AssumedTrips> AssumedTripsOf(const Instruction& instruction) {
  const std::optional<std::vector<int64_t>> counts = annotations::kAssumedTrips.Of(instruction);
  if (!counts || !std::ranges::all_of(*counts, IsTripCount)) return std::nullopt;
  AssumedTrips trips;
  for (const int64_t count : *counts) trips.count += count;
  if (counts->size() > 1) trips.of_branches = *counts;
  trips.most = annotations::kMostTrips.Of(instruction);
  if (trips.most && !IsTripCount(*trips.most)) trips.most.reset();
  trips.sentence = SentenceOf(instruction, trips);
  return trips;
}

int64_t SweepsOf(const Instruction& eigh) {
  const auto trips = AssumedTripsOf(eigh);
  return trips ? trips->count : kJacobiSweeps;
}

void SetSweeps(Instruction* eigh, int64_t sweeps) {
  WriteTrips(eigh, {std::min(sweeps, kMostCountable)}, std::nullopt);
}

}  // namespace tpusim::hlo
