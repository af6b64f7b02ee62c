#include "workloads/mosaic/operations.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

namespace tpusim::mosaic {
namespace {

// Names with spaces around each.
bool Contains(std::string_view names, std::string_view name) {
  for (size_t at = names.find(name); at != std::string_view::npos; at = names.find(name, at + 1)) {
    if (names[at - 1] == ' ' && names[at + name.size()] == ' ') return true;
  }
  return false;
}

constexpr std::string_view kTranscendental =
    " math.exp math.exp2 math.expm1 math.log math.log2 math.log10 math.log1p math.tanh math.sin "
    "math.cos math.tan math.asin math.acos math.atan math.atan2 math.sinh math.cosh math.asinh "
    "math.acosh math.atanh math.erf math.erfc math.rsqrt math.sqrt math.cbrt math.powf "
    "tpu.reciprocal ";
constexpr std::string_view kElementwise =
    " math.absf math.absi math.ceil math.floor math.round math.roundeven math.trunc math.copysign "
    "math.ctpop math.ctlz math.cttz math.fma math.fpowi math.ipowi math.isfinite math.isnan "
    "math.isinf tpu.pack_elementwise tpu.unpack_elementwise tpu.pack_subelements "
    "tpu.unpack_subelements tpu.stochastic_convert tpu.stochastic_convert_elementwise tpu.fptosi "
    "tpu.fptoui tpu.sitofp tpu.uitofp tpu.extf tpu.truncf ";
constexpr std::string_view kReductions =
    " vector.multi_reduction vector.reduction tpu.reduce_index tpu.all_reduce tpu.scan "
    "tpu.scan_count ";
constexpr std::string_view kFree =
    " arith.constant arith.bitcast arith.index_cast arith.index_castui ub.poison "
    "vector.broadcast vector.shape_cast vector.transpose vector.extract vector.insert "
    "vector.extract_strided_slice vector.insert_strided_slice vector.load vector.store "
    "vector.create_mask vector.splat vector.interleave vector.deinterleave memref.load "
    "memref.store memref.alloca memref.alloc memref.dealloc memref.dim memref.cast memref.subview "
    "memref.assume_alignment tpu.load tpu.store tpu.vector_load tpu.vector_store tpu.strided_load "
    "tpu.strided_store tpu.shuffled_load tpu.shuffled_store tpu.vector_load_idx "
    "tpu.vector_store_idx tpu.broadcast_in_sublanes tpu.transpose tpu.bitcast tpu.bitcast_vreg "
    "tpu.iota tpu.concatenate tpu.repeat tpu.reshape tpu.rotate tpu.dynamic_rotate tpu.gather "
    "tpu.dynamic_gather tpu.create_mask tpu.create_subelement_mask tpu.mask_cast tpu.relayout "
    "tpu.assume_layout tpu.assume_multiple tpu.erase_memref_layout tpu.memref_slice "
    "tpu.memref_squeeze tpu.memref_reshape tpu.memref_bitcast tpu.reinterpret_cast "
    "tpu.sem_alloc tpu.sem_signal tpu.sem_wait tpu.sem_read tpu.sem_barrier tpu.barrier "
    "tpu.wait_dma "
    "tpu.wait_dma2 tpu.wait_indirect_dma tpu.trace_start tpu.trace_stop tpu.trace_value tpu.log "
    "tpu.log_buffer tpu.delay tpu.device_id tpu.subcore_id tpu.iteration_bound "
    "tpu.internal_scratch "
    "tpu.prng_set_seed_32 tpu.prng_random_bits tpu.get_barrier_semaphore tpu.fetch_and_add_sync "
    "tpu.task_id ";
constexpr std::string_view kReads =
    " memref.load memref.dim vector.load tpu.load tpu.vector_load tpu.strided_load "
    "tpu.shuffled_load tpu.vector_load_idx tpu.wait_dma tpu.wait_dma2 tpu.wait_indirect_dma "
    "tpu.sem_wait tpu.sem_read tpu.log tpu.log_buffer ";
constexpr std::string_view kViews =
    " memref.cast memref.subview memref.assume_alignment tpu.memref_slice tpu.memref_squeeze "
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

}  // namespace

Rule RuleOf(std::string_view name) {
  if (name == "tpu.matmul") return Rule::kProduct;
  if (Contains(kFree, name)) return Rule::kFree;
  if (Contains(kTranscendental, name)) return Rule::kTranscendental;
  if (Contains(kReductions, name)) return Rule::kReduction;
  // Whatever else arithmetic there is.
  return name.starts_with("arith.") || Contains(kElementwise, name) ? Rule::kElementwise
                                                                    : Rule::kNone;
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

Stage StageOf(const Operation& operation, Rule rule) {
  Stage stage;
  if (rule == Rule::kTranscendental) {
    stage.transcendentals = ElementsOf(*operation.results[0]->type);
  } else if (rule == Rule::kElementwise) {
    stage.flops = ElementsOf(*operation.results[0]->type);
  } else if (rule == Rule::kReduction && !operation.operands.empty()) {
    stage.flops = ElementsOf(*operation.operands[0]->type);
  }
  return stage;
}

}  // namespace tpusim::mosaic
