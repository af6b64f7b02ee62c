#include "workloads/mosaic/operations.h"

#include <algorithm>
#include <bit>
#include <cctype>
#include <iterator>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "configs/instructions.h"
#include "workloads/target/cross_lanes.h"

namespace tpusim::mosaic {
namespace {

constexpr double kWordBits = 32;  // number: bits of a word

// An operation, what counts of it, and the row of instructions that prices it.
struct OperationRow {
  std::string_view name;
  Rule rule = Rule::kFree;
  std::string_view row = "";
};

constexpr OperationRow kRows[] = {
    {"tpu.matmul", Rule::kProduct},
    {"arith.addf", Rule::kElementwise, "add"},
    {"arith.addi", Rule::kElementwise, "add"},
    {"arith.addui_extended", Rule::kElementwise, "add"},
    {"arith.subf", Rule::kElementwise, "subtract"},
    {"arith.subi", Rule::kElementwise, "subtract"},
    {"arith.mulf", Rule::kElementwise, "multiply"},
    {"arith.muli", Rule::kElementwise, "multiply"},
    {"arith.mulsi_extended", Rule::kElementwise, "mulhi"},
    {"arith.mului_extended", Rule::kElementwise, "mulhi"},
    {"arith.divf", Rule::kElementwise, "divide"},
    {"arith.divsi", Rule::kElementwise, "divide"},
    {"arith.divui", Rule::kElementwise, "divide"},
    {"arith.ceildivsi", Rule::kElementwise, "divide"},
    {"arith.ceildivui", Rule::kElementwise, "divide"},
    {"arith.floordivsi", Rule::kElementwise, "divide"},
    {"arith.remf", Rule::kElementwise, "remainder"},
    {"arith.remsi", Rule::kElementwise, "remainder"},
    {"arith.remui", Rule::kElementwise, "remainder"},
    {"arith.negf", Rule::kElementwise, "negate"},
    {"arith.maximumf", Rule::kElementwise, "maximum"},
    {"arith.maxnumf", Rule::kElementwise, "maximum"},
    {"arith.maxsi", Rule::kElementwise, "maximum"},
    {"arith.maxui", Rule::kElementwise, "maximum"},
    {"arith.minimumf", Rule::kElementwise, "minimum"},
    {"arith.minnumf", Rule::kElementwise, "minimum"},
    {"arith.minsi", Rule::kElementwise, "minimum"},
    {"arith.minui", Rule::kElementwise, "minimum"},
    {"arith.andi", Rule::kElementwise, "and"},
    {"arith.ori", Rule::kElementwise, "or"},
    {"arith.xori", Rule::kElementwise, "xor"},
    {"arith.shli", Rule::kElementwise, "shift-left"},
    {"arith.shrsi", Rule::kElementwise, "shift-right-arithmetic"},
    {"arith.shrui", Rule::kElementwise, "shift-right-logical"},
    {"arith.cmpf", Rule::kElementwise, "compare"},
    {"arith.cmpi", Rule::kElementwise, "compare"},
    {"arith.select", Rule::kElementwise, "select"},
    {"arith.extf", Rule::kElementwise, "widen"},
    {"arith.truncf", Rule::kElementwise, "pack"},
    {"arith.extsi", Rule::kElementwise, "convert"},
    {"arith.extui", Rule::kElementwise, "convert"},
    {"arith.trunci", Rule::kElementwise, "convert"},
    {"arith.sitofp", Rule::kElementwise, "convert"},
    {"arith.uitofp", Rule::kElementwise, "convert"},
    {"arith.fptosi", Rule::kElementwise, "convert"},
    {"arith.fptoui", Rule::kElementwise, "convert"},
    {"tpu.fptosi", Rule::kElementwise, "convert"},
    {"tpu.fptoui", Rule::kElementwise, "convert"},
    {"tpu.sitofp", Rule::kElementwise, "convert"},
    {"tpu.uitofp", Rule::kElementwise, "convert"},
    {"tpu.extf", Rule::kElementwise, "widen"},
    {"tpu.truncf", Rule::kElementwise, "pack"},
    {"math.absf", Rule::kElementwise, "abs"},
    {"math.absi", Rule::kElementwise, "abs"},
    {"math.ceil", Rule::kElementwise, "ceil"},
    {"math.floor", Rule::kElementwise, "floor"},
    {"math.trunc", Rule::kElementwise, "floor"},
    {"math.round", Rule::kElementwise, "round-nearest-afz"},
    {"math.roundeven", Rule::kElementwise, "round-nearest-even"},
    {"math.copysign", Rule::kElementwise, "copy-sign"},
    {"math.ctpop", Rule::kElementwise, "popcnt"},
    {"math.ctlz", Rule::kElementwise, "count-leading-zeros"},
    {"math.cttz", Rule::kElementwise, "count-trailing-zeros"},
    {"math.fma", Rule::kElementwise, "multiply-add"},
    {"math.fpowi", Rule::kElementwise, "integer-power"},
    {"math.ipowi", Rule::kElementwise, "integer-power"},
    {"math.isfinite", Rule::kElementwise, "is-finite"},
    {"math.isnan", Rule::kElementwise, "compare"},
    {"math.isinf", Rule::kElementwise, "is-infinite"},
    {"tpu.weird", Rule::kElementwise, "is-finite"},  // neither infinite nor NaN, negated
    {"tpu.reduce_precision", Rule::kElementwise, "reduce-precision"},
    {"tpu.pack_elementwise", Rule::kElementwise, "pack"},
    {"tpu.unpack_elementwise", Rule::kElementwise, "widen"},
    {"tpu.pack_subelements", Rule::kElementwise, "pack"},
    {"tpu.unpack_subelements", Rule::kElementwise, "widen"},
    {"tpu.stochastic_convert", Rule::kElementwise, "stochastic-convert"},
    {"tpu.stochastic_convert_elementwise", Rule::kElementwise, "stochastic-convert"},
    {"math.exp", Rule::kTranscendental, "exponential"},
    {"math.exp2", Rule::kTranscendental, "exponential-base-2"},
    {"math.expm1", Rule::kTranscendental, "exponential-minus-one"},
    {"math.log", Rule::kTranscendental, "log"},
    {"math.log2", Rule::kTranscendental, "log-base-2"},
    {"math.log10", Rule::kTranscendental, "log-base-10"},
    {"math.log1p", Rule::kTranscendental, "log-plus-one"},
    {"math.tanh", Rule::kTranscendental, "tanh"},
    {"math.sin", Rule::kTranscendental, "sine"},
    {"math.cos", Rule::kTranscendental, "cosine"},
    {"math.tan", Rule::kTranscendental, "tan"},
    {"math.asin", Rule::kTranscendental, "asin"},
    {"math.acos", Rule::kTranscendental, "acos"},
    {"math.atan", Rule::kTranscendental, "atan"},
    {"math.atan2", Rule::kTranscendental, "atan2"},
    {"math.sinh", Rule::kTranscendental, "sinh"},
    {"math.cosh", Rule::kTranscendental, "cosh"},
    {"math.asinh", Rule::kTranscendental, "asinh"},
    {"math.acosh", Rule::kTranscendental, "acosh"},
    {"math.atanh", Rule::kTranscendental, "atanh"},
    {"math.erf", Rule::kTranscendental, "erf"},
    {"math.erfc", Rule::kTranscendental, "erfc"},
    {"math.rsqrt", Rule::kTranscendental, "rsqrt"},
    {"math.sqrt", Rule::kTranscendental, "sqrt"},
    {"math.cbrt", Rule::kTranscendental, "cbrt"},
    {"math.powf", Rule::kTranscendental, "power"},
    {"tpu.logistic", Rule::kTranscendental, "logistic"},
    {"tpu.reciprocal", Rule::kTranscendental, "reciprocal"},
    {"vector.multi_reduction", Rule::kReduction},
    {"vector.reduction", Rule::kReduction},
    {"tpu.reduce_index", Rule::kReduction},
    {"tpu.all_reduce", Rule::kReduction},
    {"tpu.scan", Rule::kReduction},
    {"tpu.scan_count", Rule::kReduction},
    {"vector.broadcast", Rule::kMove, "spread-lane"},
    {"vector.transpose", Rule::kMove, "transpose-lanes"},
    {"tpu.transpose", Rule::kMove, "transpose-lanes"},
    {"vector.shape_cast", Rule::kMove, "transpose-lanes"},
    {"tpu.reshape", Rule::kMove, "transpose-lanes"},
    {"tpu.concatenate", Rule::kMove, "rotate"},
    {"vector.extract_strided_slice", Rule::kMove, "rotate"},
    {"vector.insert_strided_slice", Rule::kMove, "rotate"},
    {"tpu.rotate", Rule::kMove, "rotate"},
    {"tpu.dynamic_rotate", Rule::kMove, "rotate"},
    {"tpu.gather", Rule::kMove, "gather-lanes"},
    {"tpu.dynamic_gather", Rule::kMove, "gather-lanes"},
    {"tpu.relayout", Rule::kMove, "rotate"},
    {"vector.interleave", Rule::kMove, "pack"},
    {"vector.deinterleave", Rule::kMove, "widen"},
    {"tpu.iota", Rule::kMove, "lane-numbers"},
    {"tpu.create_mask", Rule::kMove, "compare"},
    {"tpu.create_subelement_mask", Rule::kMove, "compare"},
    {"vector.create_mask", Rule::kMove, "compare"},
    {"tpu.prng_random_bits", Rule::kMove, "hardware-random-bits"},
};

constexpr std::string_view kFree[] = {
    "arith.constant", "arith.bitcast", "arith.index_cast", "arith.index_castui", "ub.poison",
    "vector.extract", "vector.insert", "vector.load", "vector.store", "vector.splat", "memref.load",
    "memref.store", "memref.alloca", "memref.alloc", "memref.dealloc", "memref.dim", "memref.cast",
    "memref.subview", "memref.assume_alignment", "memref.memory_space_cast", "vector.bitcast",
    "tpu.annotate", "tpu.shared_memref_slice", "tpu.memref_memory_space_is", "cf.assert",
    "tpu.load", "tpu.store", "tpu.vector_load", "tpu.vector_store", "tpu.strided_load",
    "tpu.strided_store", "tpu.shuffled_load", "tpu.shuffled_store", "tpu.vector_load_idx",
    "tpu.vector_store_idx", "tpu.broadcast_in_sublanes", "tpu.bitcast", "tpu.bitcast_vreg",
    "tpu.repeat", "tpu.mask_cast", "tpu.assume_layout", "tpu.assume_multiple",
    "tpu.erase_memref_layout", "tpu.memref_slice", "tpu.memref_squeeze", "tpu.memref_reshape",
    "tpu.memref_bitcast", "tpu.reinterpret_cast", "tpu.sem_alloc", "tpu.sem_signal", "tpu.sem_wait",
    "tpu.sem_read", "tpu.sem_barrier", "tpu.barrier", "tpu.wait_dma", "tpu.wait_dma2",
    "tpu.wait_indirect_dma", "tpu.trace_start", "tpu.trace_stop", "tpu.trace_value", "tpu.log",
    "tpu.log_buffer", "tpu.delay", "tpu.device_id", "tpu.subcore_id", "tpu.iteration_bound",
    "tpu.internal_scratch", "tpu.prng_set_seed_32", "tpu.get_barrier_semaphore",
    "tpu.fetch_and_add_sync", "tpu.task_id",
};

// Returns the row of an operation; null: it has no rule.
const OperationRow* RowOf(std::string_view name) {
  static const auto* const rows = [] {
    auto* all = new std::unordered_map<std::string_view, OperationRow>();
    for (const std::string_view free : kFree) all->emplace(free, OperationRow{free});
    for (const OperationRow& row : kRows) all->emplace(row.name, row);
    return all;
  }();
  const auto known = rows->find(name);
  return known == rows->end() ? nullptr : &known->second;
}

// Returns whether a name is one of a list, in which there is a space around each.
bool Contains(std::string_view names, std::string_view name) {
  for (size_t at = names.find(name); at != std::string_view::npos; at = names.find(name, at + 1)) {
    if (names[at - 1] == ' ' && names[at + name.size()] == ' ') return true;
  }
  return false;
}

constexpr std::string_view kReads =
    " memref.load memref.dim vector.load tpu.load tpu.vector_load tpu.strided_load "
    "tpu.shuffled_load tpu.vector_load_idx tpu.wait_dma tpu.wait_dma2 tpu.wait_indirect_dma "
    "tpu.sem_wait tpu.sem_read tpu.log tpu.log_buffer ";
constexpr std::string_view kViews =
    " memref.cast memref.subview memref.assume_alignment memref.memory_space_cast tpu.annotate "
    "tpu.shared_memref_slice tpu.memref_slice tpu.memref_squeeze "
    "tpu.memref_reshape tpu.memref_bitcast tpu.reinterpret_cast tpu.erase_memref_layout "
    "tpu.assume_layout ";

// Names of number formats, as in the parameters chip.mxu.passes_*. f16 goes in as f32 does.
constexpr std::pair<std::string_view, std::string_view> kFormats[] = {
    {"bf16", "bf16"}, {"i1", "bf16"}, {"f32", "f32"},   {"f16", "f32"},   {"i8", "int8"},
    {"i4", "int4"},   {"i2", "int4"}, {"i16", "int32"}, {"i32", "int32"},
};

// The lists of "#tpu.dot_dimension_numbers<[1], [0], [0], [1], [0, 0, 1, 1], [], []>".
std::vector<std::vector<size_t>> ListsOf(std::string_view text) {
  std::vector<std::vector<size_t>> lists;
  bool digits = false;
  for (const char c : text) {
    if (c == '[') lists.emplace_back();
    const bool digit = std::isdigit(static_cast<unsigned char>(c)) != 0;
    if (digit && !lists.empty()) {
      if (!digits) lists.back().push_back(0);
      // number: digits of an attribute
      lists.back().back() = std::min<size_t>(10 * lists.back().back() + (c - '0'), 1000);
    }
    digits = digit;
  }
  return lists;
}

int64_t Extents(const Type& type, const std::vector<size_t>& dimensions) {
  int64_t product = 1;
  for (const size_t d : dimensions) {
    if (d < type.shape.size()) product = Times(product, std::max<int64_t>(0, type.shape[d]));
  }
  return product;
}

// Returns the name that HLO has for an element type.
std::string TypeNameOf(const Type& type) {
  const std::string& name = type.element == nullptr ? type.name : type.element->name;
  if (name == "i1") return "pred";
  if (name == "index") return "s32";
  return name.starts_with("i") ? "s" + name.substr(1) : name;
}

bool IsNumber(const Value& value) { return value.type->kind != Type::Kind::kVector; }

int64_t LastOf(const Type& type) { return type.shape.empty() ? 1 : type.shape.back(); }

// Returns the row's cost of so many registers.
Stage Priced(const configs::InstructionCost& each, double registers) {
  Stage stage;
  stage.valu = registers * each.valu;
  stage.eup = registers * each.eup;
  stage.xlu = registers * each.xlu;
  return stage;
}

// Returns the constant that a value repeats; null: it is none.
const Operation* ConstantBehind(const Value* value) {
  const Operation* by = value->defined_by;
  while (by != nullptr && !by->operands.empty() &&
         (by->name == "vector.broadcast" || by->name == "vector.shape_cast")) {
    by = by->operands[0]->defined_by;
  }
  return by != nullptr && by->name == "arith.constant" ? by : nullptr;
}

bool IsPowerOfTwo(const Operation& constant) {
  const Attribute* value = constant.Find("value");
  if (value == nullptr) return false;
  const int64_t number = value->integers.size() == 1 ? value->integers[0] : value->integer;
  return number > 0 && std::has_single_bit(static_cast<uint64_t>(number));
}

// Returns the name of the row that prices an operation on vectors.
std::string_view PricedAs(const Operation& operation, std::string_view row) {
  if (row == "divide" || row == "remainder") {
    const Type& type = *operation.results[0]->type;
    const Operation* divisor =
        operation.operands.size() < 2 ? nullptr : ConstantBehind(operation.operands[1]);
    if (divisor != nullptr && TypeNameOf(type).starts_with("s")) {
      return IsPowerOfTwo(*divisor) ? "divide-by-power-of-two" : "divide-by-constant";
    }
  }
  if (row == "reciprocal") {
    const Attribute* approximate = operation.Find("approx");
    if (approximate != nullptr && approximate->integer != 0) return "approximate-reciprocal";
  }
  return row;
}

// Returns the registers that an elementwise operation works on.
double RegistersWorked(const Operation& operation, std::string_view row,
                       const configs::VpuParams& vpu, const Repeats& repeats) {
  const Type& result = *operation.results[0]->type;
  const double registers = repeats.DistinctRegisters(*operation.results[0], vpu);
  if (row != "pack") return registers;
  // Packing puts two registers into one, down to as many as the result lies in.
  const Type& element = result.element == nullptr ? result : *result.element;
  return registers * std::max(0.0, 1 - static_cast<double>(BitsOf(element)) / kWordBits);
}

// Returns the dimensions that a reduction takes away.
std::vector<int64_t> ReducedBy(const Operation& operation) {
  for (const char* name : {"reduction_dims", "dim", "axis", "reduction_dim"}) {
    const Attribute* attribute = operation.Find(name);
    if (attribute == nullptr) continue;
    if (!attribute->integers.empty()) return attribute->integers;
    if (attribute->kind == Attribute::Kind::kInteger) return {attribute->integer};
  }
  const auto rank = static_cast<int64_t>(operation.operands[0]->type->shape.size());
  return {rank - 1};
}

Stage ReductionOf(const Operation& operation, const configs::ChipParams& chip) {
  const Type& type = *operation.operands[0]->type;
  const auto rank = static_cast<int64_t>(type.shape.size());
  const std::vector<int64_t> reduced = ReducedBy(operation);
  target::ReducedArray array;
  for (int64_t d = 0; d < rank; ++d) {
    const int64_t extent = std::max<int64_t>(0, type.shape[static_cast<size_t>(d)]);
    if (std::ranges::find(reduced, d) != reduced.end()) {
      array.lanes = array.lanes || d == rank - 1;
      array.sublanes = array.sublanes || d == rank - 2;
      continue;
    }
    array.kept = Times(array.kept, extent);
    if (d != rank - 1) array.kept_rows = Times(array.kept_rows, extent);
  }
  const target::CrossLaneWork crossing =
      target::CrossLaneWorkOf(array, chip.vpu, *chip.instructions);
  const configs::InstructionCost& call = chip.instructions->At("maximum", TypeNameOf(type));
  // Positions are reduced beside the values.
  const double arrays = operation.name == "tpu.reduce_index" ? 2 : 1;
  Stage stage = Priced(call, arrays * (RegistersOf(type, chip.vpu) + crossing.combinations));
  stage.xlu += arrays * crossing.xlu;
  return stage;
}

// Returns the registers that a move puts through its unit.
double RegistersMoved(const Operation& operation, const configs::VpuParams& vpu,
                      const Repeats& repeats) {
  const Type& to = *operation.results[0]->type;
  if (operation.operands.empty()) return repeats.DistinctRegisters(*operation.results[0], vpu);
  const Value& source = *operation.operands[0];
  const Type& from = *source.type;
  const std::string& name = operation.name;
  if (name == "vector.broadcast") {
    // A number is a splat. What a reduction leaves is in all lanes already.
    const Operation* by = Unshaped(&source)->defined_by;
    const bool reduced = by != nullptr && RuleOf(by->name) == Rule::kReduction;
    if (IsNumber(source) || reduced || LastOf(from) == LastOf(to)) return 0;
    return repeats.DistinctRegisters(source, vpu);
  }
  const double registers = std::max(RegistersOf(from, vpu), RegistersOf(to, vpu));
  if (name == "vector.shape_cast" || name == "tpu.reshape") {
    const int64_t before = LastOf(from), after = LastOf(to);
    return before == after || before == 1 || after == 1 ? 0 : registers;
  }
  const auto whole = [&](const Value* part) { return LastOf(*part->type) % vpu.lanes == 0; };
  if (name == "tpu.concatenate") {
    return std::ranges::all_of(operation.operands, whole) ? 0 : RegistersOf(to, vpu);
  }
  if (name == "vector.extract_strided_slice" || name == "vector.insert_strided_slice") {
    const Attribute* offsets = operation.Find("offsets");
    const bool aligned = offsets != nullptr && (offsets->integers.empty() ||
                                                offsets->integers.back() % vpu.lanes == 0);
    return aligned ? 0 : RegistersOf(to, vpu);
  }
  return registers;
}

}  // namespace

Rule RuleOf(std::string_view name) {
  const OperationRow* row = RowOf(name);
  return row == nullptr ? Rule::kNone : row->rule;
}

bool OnlyReads(std::string_view name) { return Contains(kReads, name) || IsView(name); }

bool IsView(std::string_view name) { return Contains(kViews, name); }

bool IsTerminator(std::string_view name) {
  return Contains(" scf.yield scf.condition func.return tpu.yield ", name);
}

int64_t ElementsOf(const Type& type) {
  int64_t elements = 1;
  for (const int64_t extent : type.shape) elements = Times(elements, std::max<int64_t>(0, extent));
  return elements;
}

int64_t BytesOf(const Type& type) {
  const Type& element = type.element == nullptr ? type : *type.element;
  return Times(ElementsOf(type), (BitsOf(element) + 7) / 8);  // number: bits of a byte
}

double RegistersOf(const Type& vector, const configs::VpuParams& vpu) {
  const std::vector<int64_t>& shape = vector.shape;
  double registers = 1;
  for (size_t d = 0; d < shape.size(); ++d) {
    const int64_t extent = std::max<int64_t>(0, shape[d]);
    const size_t place = shape.size() - 1 - d;
    const int64_t tile = shape.size() == 1 ? vpu.lanes * vpu.sublanes
                         : place == 0      ? vpu.lanes
                         : place == 1      ? vpu.sublanes
                                           : 1;
    registers *= static_cast<double>((extent + tile - 1) / tile);
  }
  return registers;
}

const Value* Unshaped(const Value* vector) {
  while (vector->defined_by != nullptr && vector->defined_by->name == "vector.shape_cast" &&
         !vector->defined_by->operands.empty()) {
    vector = vector->defined_by->operands[0];
  }
  return vector;
}

std::optional<Stage> ProductOf(const Operation& matmul) {
  if (matmul.operands.size() < 2) return std::nullopt;
  const Type &left = *matmul.operands[0]->type, &right = *matmul.operands[1]->type;
  if (left.element == nullptr || left.shape.size() < 2 || right.shape.size() < 2) {
    return std::nullopt;
  }
  std::string_view format;
  for (const auto& [type, name] : kFormats) {
    if (left.element->name == type) format = name;
  }
  if (left.element->name.starts_with("f8")) format = "fp8";
  if (format.empty()) return std::nullopt;
  const Attribute* precision = matmul.Find("precision");
  if (format == "f32" && precision != nullptr) {
    if (precision->text.find("fp32") != std::string::npos) format = "f32_highest";
  }
  // Contracted dimensions of both, others of both, those of the result, and batches of both.
  const Attribute* numbers = matmul.Find("dimension_numbers");
  const auto lists = ListsOf(numbers == nullptr ? "" : numbers->text);
  const Attribute* transposed = matmul.Find("transpose_lhs");
  const bool columns_first = transposed != nullptr && transposed->integer != 0;
  std::vector<size_t> contracted = {left.shape.size() - (columns_first ? 2 : 1)}, batch;
  if (lists.size() >= 6) {  // number: lists of the attribute, as above
    contracted = lists[0];
    batch = lists[5];  // number: lists of the attribute, as above
  }
  const int64_t depth = Extents(left, contracted), batches = Extents(left, batch);
  const int64_t outer = std::max<int64_t>(1, Times(depth, batches));
  const Product one{ElementsOf(left) / outer, depth, ElementsOf(right) / outer, format};
  Stage stage;
  stage.flops = Times(Times(2, batches), Times(one.m, Times(one.k, one.n)));
  if (stage.flops > 0) stage.products[one] = batches;
  return stage;
}

std::optional<Stage> StageOf(const Operation& operation, const configs::ChipParams& chip,
                             const Repeats& repeats) {
  const OperationRow* row = RowOf(operation.name);
  if (row == nullptr) return std::nullopt;
  if (row->rule == Rule::kFree || operation.results.empty()) return Stage{};
  const Value* of = operation.operands.empty() ? nullptr : operation.operands[0];
  const int64_t results = ElementsOf(*operation.results[0]->type);
  if (row->rule == Rule::kReduction) {
    if (of == nullptr) return std::nullopt;
    Stage stage = IsNumber(*of) ? Stage{} : ReductionOf(operation, chip);
    stage.flops = ElementsOf(*of->type);
    return stage;
  }
  // Comparisons and conversions compute on the type of their operand.
  constexpr std::string_view kFromOperand[] = {"compare", "convert", "widen", "is-finite",
                                               "is-infinite"};
  const bool from_operand = of != nullptr && std::ranges::count(kFromOperand, row->row) > 0;
  const std::string type = TypeNameOf(from_operand ? *of->type : *operation.results[0]->type);
  const bool moves = row->rule == Rule::kMove;
  const double registers = moves ? RegistersMoved(operation, chip.vpu, repeats)
                                 : RegistersWorked(operation, row->row, chip.vpu, repeats);
  const configs::InstructionRow* priced =
      chip.instructions->Find(PricedAs(operation, row->row), type);
  if (priced == nullptr) return std::nullopt;
  Stage stage = Priced(priced->cost, registers);
  if (row->rule == Rule::kElementwise) stage.flops = results;
  if (row->rule == Rule::kTranscendental) stage.transcendentals = results;
  return stage;
}

}  // namespace tpusim::mosaic
