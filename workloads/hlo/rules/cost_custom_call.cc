// Costs of custom calls: by target, or by what the call says of itself.
#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "configs/status_macros.h"
#include "fmt/format.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/rules/assumed_trips.h"
#include "workloads/hlo/rules/cost.h"
#include "workloads/hlo/rules/cost_rules.h"

namespace tpusim::hlo {
namespace {

// A non-negative integer of a cost estimate; 64-bit integers are strings in JSON.
std::optional<int64_t> Figure(const nlohmann::json& estimate, const char* key) {
  const auto it = estimate.find(key);
  if (it == estimate.end()) return 0;  // proto JSON leaves zeros out
  if (it->is_number_unsigned()) {
    return static_cast<int64_t>(
        std::min<uint64_t>(it->get<uint64_t>(), std::numeric_limits<int64_t>::max()));
  }
  if (!it->is_string()) return std::nullopt;
  const std::string& text = it->get_ref<const std::string&>();
  if (text.empty() || text.size() > 18 ||
      text.find_first_not_of("0123456789") != std::string::npos) {
    return std::nullopt;
  }
  return std::stoll(text);
}

}  // namespace

// Pallas: {"custom_call_config": {"cost_estimate": {"flops": "8", "transcendentals":
// "1", "bytes_accessed": "64"}}}, with "remote_bytes_transferred" since JAX has it. Bytes
// that exceed the result are read.
std::optional<CarriedEstimate> CarriedCost(const Instruction& i) {
  const auto json =
      nlohmann::json::parse(i.attrs().backend_config(), nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return std::nullopt;
  const auto config = json.find("custom_call_config");
  if (config == json.end() || !config->is_object()) return std::nullopt;
  const auto estimate = config->find("cost_estimate");
  if (estimate == config->end() || !estimate->is_object() || estimate->empty()) {
    return std::nullopt;
  }
  const auto flops = Figure(*estimate, "flops");
  const auto transcendentals = Figure(*estimate, "transcendentals");
  const auto bytes = Figure(*estimate, "bytes_accessed");
  const auto remote = Figure(*estimate, "remote_bytes_transferred");
  if (!flops.has_value() || !transcendentals.has_value() || !bytes.has_value() ||
      !remote.has_value()) {
    return std::nullopt;
  }
  if (*flops == 0 && *bytes == 0 && *remote == 0) return std::nullopt;
  const int64_t written = std::min(*bytes, i.shape().ByteSize().value());
  return CarriedEstimate{
      {Flops(*flops), Flops(*transcendentals), Bytes(*bytes - written), Bytes(written)},
      Bytes(*remote)};
}

namespace cost_rules {
namespace {

enum class CallTarget {
  kMarker,    // says where a value lives or how it is sharded; the value is the operand
  kTransfer,  // between host and device memory
  kTopK,
  kQr,     // Householder reflectors of an m x n matrix
  kMakeQ,  // the orthogonal matrix that reflectors stand for
  kLu,
  kEigh,  // eigenvectors and eigenvalues by Jacobi's method
};

struct TargetRow {
  std::string_view name;
  CallTarget target;
};

constexpr TargetRow kTargets[] = {
    {"Sharding", CallTarget::kMarker},
    {"SPMDFullToShardShape", CallTarget::kMarker},
    {"SPMDShardToFullShape", CallTarget::kMarker},
    {"xla.sdy.FuncResultSharding", CallTarget::kMarker},
    {"xla.sdy.GlobalToLocalShape", CallTarget::kMarker},
    {"xla.sdy.LocalToGlobalShape", CallTarget::kMarker},
    {"xla.sdy.ShardingGroup", CallTarget::kMarker},
    {"xla.sdy.PropagationBarrier", CallTarget::kMarker},
    {kAllocateBuffer, CallTarget::kMarker},  // memory, nothing in it
    {"annotate_device_placement", CallTarget::kTransfer},
    {"MoveToHost", CallTarget::kTransfer},
    {"MoveToDevice", CallTarget::kTransfer},
    {"TopK", CallTarget::kTopK},
    {"ApproxTopK", CallTarget::kTopK},
    {"Qr", CallTarget::kQr},
    {"ProductOfElementaryHouseholderReflectors", CallTarget::kMakeQ},
    {"LuDecomposition", CallTarget::kLu},
    {kEighTarget, CallTarget::kEigh},
};

Result NoCost(const Instruction& i) {
  return NoRule(
      fmt::format("{}: custom call to '{}' has no cost; give it with --kernel-cost {}=FLOPS,BYTES",
                  i.Describe(), i.attrs().custom_call_target(), i.name()));
}

// Flops of a factorisation of the last two dimensions, m x n (Golub and Van Loan,
// "Matrix Computations", sections 3.2 and 5.2).
Result Factorisation(const Instruction& i, CallTarget target) {
  const Shape& a = i.operand(0)->shape();
  if (!a.IsArray() || a.rank() < 2) return NoCost(i);
  const int64_t m = std::max(a.dims[a.rank() - 2], a.dims[a.rank() - 1]);
  const int64_t n = std::min(a.dims[a.rank() - 2], a.dims[a.rank() - 1]);
  if (n == 0) return Full(i);
  const int64_t matrices = a.ElementCount() / m / n;
  const int64_t cube = Mul(n, Mul(n, n));
  // LU takes mn^2 - n^3/3; QR and the product of its reflectors 2mn^2 - 2n^3/3.
  const int64_t lu = Mul(m, Mul(n, n)) - cube / 3;
  return Full(i, Mul(matrices, target == CallTarget::kLu ? lu : Mul(2, lu)));
}

// A sweep rotates every two rows and columns once, in rounds of n/2 rotations side by side (an
// odd n has a row more). A round gives every element of the matrix a new value by rows and one
// by columns, and of the vectors one by rows: two products and a sum each, of complex numbers
// four times that. A rotation takes a quotient, two roots and a reciprocal.
Result Jacobi(const Instruction& i) {
  const Shape& a = i.operand(0)->shape();
  if (!a.IsArray() || a.rank() < 2) return NoCost(i);
  if (a.ElementCount() == 0) return Full(i);
  const int64_t n = RoundUp(a.dims.back(), 2);
  const int64_t matrices = a.ElementCount() / a.dims.back() / a.dims[a.rank() - 2];
  const int64_t rounds = Mul(matrices, Mul(SweepsOf(i), n - 1));
  const int64_t roots = Mul(rounds, 4 * (n / 2));
  const int64_t each = IsComplex(a.element_type) ? 4 * 9 : 9;
  return Full(i, Add(roots, Mul(rounds, Mul(each, Mul(n, n)))), roots);
}

}  // namespace

Result CustomCall(const Instruction& i, const CalleeCosts&) {
  if (const auto carried = CarriedCost(i)) return carried->cost;
  const std::string& name = i.attrs().custom_call_target();
  const auto* row =
      std::ranges::find_if(kTargets, [&](const TargetRow& r) { return r.name == name; });
  if (row == std::end(kTargets)) return NoCost(i);
  if (row->target == CallTarget::kMarker) return Cost{};
  if (i.operands().empty()) return NoCost(i);
  switch (row->target) {
    case CallTarget::kTransfer:
      return Moves(i.operand(0)->shape().ByteSize());
    case CallTarget::kTopK: {
      // (values, indices), both with k in the last dimension.
      const std::vector<const Shape*> leaves = Leaves(i.shape());
      if (leaves.empty() || leaves[0]->dims.empty()) return NoCost(i);
      return Full(i, Mul(Elements(i.operand(0)->shape()), CeilLog2(leaves[0]->dims.back() + 1)));
    }
    case CallTarget::kEigh:
      return Jacobi(i);
    default:
      return Factorisation(i, row->target);
  }
}

}  // namespace cost_rules
}  // namespace tpusim::hlo
