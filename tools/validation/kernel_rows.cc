// Predicts kernels that the TPU compiler printed: JSON lines in, JSON lines out.
//
//   tpusim_kernel_rows --config v5e-1x1 [--set NAME=VALUE]... < rows.jsonl
//
// A row (validation/kernels/README.md) says what a fusion contains: operand and
// result types, products, and how many elements its other operations have. From
// these a fusion is built, lowered and timed as any other; the tiles are those of
// our own search. Conventions of the estimates that the machine model does not
// share are switches (kernel_conventions.h):
//
//   --loop-step-cycles N      a step of a kernel without a product waits so long, and
//                             nothing overlaps the wait (0: no conventions at all)
//   --loop-bytes-per-cycle X  ... and its transfers move so many bytes per cycle
//   --vmem-share X            operands of loop fusions in VMEM cost this share of what
//                             HBM operands cost (0)
//   --cmem-share X            operands of products in CMEM likewise, on their way to VMEM (0)

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "configs/config.h"
#include "configs/memory.h"
#include "configs/status_macros.h"
#include "models/timing/kernel_time.h"
#include "models/timing/kernel_timing.h"
#include "tools/validation/kernel_conventions.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/kernels/tiling/kernels.h"

namespace tpusim::validation {
namespace {

using hlo::Instruction;
using hlo::Opcode;
using hlo::PrimitiveType;
using hlo::Shape;
using Json = nlohmann::ordered_json;

class RowBuilder {
 public:
  RowBuilder(const Json& row, const Conventions& conventions)
      : row_(row), conventions_(conventions), module_("row") {
    inner_ = module_.AddComputation("fused");
    entry_ = module_.AddComputation("main");
    module_.set_entry(entry_);
  }

  absl::StatusOr<const Instruction*> Build() {
    const bool product = !row_["convs"].empty();
    for (const Json& input : row_["inputs"]) AddInput(ParseOperand(input), product);
    Instruction* value = nullptr;
    if (product) {
      ASSIGN_OR_RETURN(value, BuildProduct(row_["convs"][0]));
      product_ = value;
    }
    for (const auto& [name, counts] : row_["ops"].items()) {
      if (name == "convolution") continue;
      Instruction* made = AddOps(name, counts[0].get<int64_t>(), counts[1].get<int64_t>(), product);
      if (made != nullptr && value == nullptr) value = made;
    }
    return Finish(value);
  }

 private:
  void AddInput(Operand operand, bool product) {
    Shape shape = product ? operand.logical : operand.physical;
    const bool in_hbm = Counts(row_, operand, conventions_);
    if (!in_hbm) shape.layout.memory_space = hlo::kVmemSpace;
    const auto number = static_cast<int64_t>(parameters_.size());
    outer_.push_back(entry_->AddParameter(number, shape, "p"));
    parameters_.push_back(inner_->AddParameter(number, shape, "p"));
    operands_.push_back(std::move(operand));
  }

  // "0bf_0oi->0bf"; digits are batch dimensions unless the row says convolution.
  absl::StatusOr<Instruction*> BuildProduct(const Json& conv) {
    const std::string labels = conv["dim_labels"].get<std::string>();
    const size_t first = labels.find('_'), second = labels.find("->");
    const std::string lhs = labels.substr(0, first);
    const std::string rhs = labels.substr(first + 1, second - first - 1);
    const Shape left = ParseOperand(conv["lhs"]).logical, right = ParseOperand(conv["rhs"]).logical;
    const Shape out = ParseOperand(conv["out"]).logical;
    Instruction* a = FindParameter(left);
    Instruction* b = FindParameter(right, a);
    if (a == nullptr || b == nullptr) {
      return UserError("an operand of the product is made inside the fusion");
    }
    if (row_["family"] == "conv") return BuildConvolution(conv, a, b, out, lhs, rhs);
    Instruction* dot = inner_->Add(Opcode::kDot, out, {a, b}, "dot");
    hlo::DotDims dims;
    for (size_t d = 0; d < lhs.size(); ++d) {
      if (lhs[d] == 'f') dims.lhs_contracting.push_back(static_cast<int64_t>(d));
      if (std::isdigit(static_cast<unsigned char>(lhs[d])) != 0) {
        dims.lhs_batch.push_back(static_cast<int64_t>(d));
        dims.rhs_batch.push_back(static_cast<int64_t>(rhs.find(lhs[d])));
      }
    }
    dims.rhs_contracting.push_back(static_cast<int64_t>(rhs.find('i')));
    hlo::SetDotDims(dot, dims);
    const Json precision = row_["meta"].value("prec", Json());
    const std::string p = precision.is_string() ? precision.get<std::string>() : "";
    if (p == "high" || p == "hi") {
      for (int n = 0; n < 2; ++n) {
        dot->mutable_attrs().mutable_precision_config()->add_operand_precision(
            p == "high" ? hlo::pb::PrecisionConfig::HIGH : hlo::pb::PrecisionConfig::HIGHEST);
      }
    }
    return dot;
  }

  Instruction* BuildConvolution(const Json& conv, Instruction* a, Instruction* b, const Shape& out,
                                const std::string& lhs, const std::string& rhs) {
    Instruction* c = inner_->Add(Opcode::kConvolution, out, {a, b}, "convolution");
    auto* n = c->mutable_attrs().mutable_convolution_dimension_numbers();
    const std::string labels = conv["dim_labels"].get<std::string>();
    const std::string result = labels.substr(labels.find("->") + 2);
    n->set_input_batch_dimension(static_cast<int64_t>(lhs.find('b')));
    n->set_input_feature_dimension(static_cast<int64_t>(lhs.find('f')));
    n->set_kernel_input_feature_dimension(static_cast<int64_t>(rhs.find('i')));
    n->set_kernel_output_feature_dimension(static_cast<int64_t>(rhs.find('o')));
    n->set_output_batch_dimension(static_cast<int64_t>(result.find('b')));
    n->set_output_feature_dimension(static_cast<int64_t>(result.find('f')));
    std::vector<hlo::WindowDim> window;
    for (char digit = '0'; lhs.find(digit) != std::string::npos; ++digit) {
      const auto in = static_cast<int64_t>(lhs.find(digit));
      const auto k = static_cast<int64_t>(rhs.find(digit));
      const auto o = static_cast<int64_t>(result.find(digit));
      n->add_input_spatial_dimensions(in);
      n->add_kernel_spatial_dimensions(k);
      n->add_output_spatial_dimensions(o);
      hlo::WindowDim dim;
      dim.size = b->shape().dims[k];
      dim.stride = CeilDiv(a->shape().dims[in], out.dims[o]);
      window.push_back(dim);
    }
    hlo::SetWindow(c, window);
    return c;
  }

  // Converted and reshaped.
  Instruction* As(const Shape& shape, Instruction* value) {
    if (value->shape().element_type != shape.element_type) {
      Shape converted = value->shape();
      converted.element_type = shape.element_type;
      value = inner_->Add(Opcode::kConvert, converted, {value}, "convert");
    }
    if (value->shape().dims == shape.dims) return value;
    return inner_->Add(Opcode::kBitcast, shape, {value}, "bitcast");
  }

  Instruction* FindParameter(const Shape& shape, const Instruction* other = nullptr) {
    for (Instruction* p : parameters_) {
      if (p != other && p->shape().dims == shape.dims) return As(shape, p);
    }
    // Reshaped on its way in.
    for (Instruction* p : parameters_) {
      if (p != other && p->shape().ElementCount() == shape.ElementCount()) {
        return As(shape, p);
      }
    }
    // One of a stack of matrices.
    if (row_["ops"].contains("dynamic-slice")) {
      for (Instruction* p : parameters_) {
        const std::vector<int64_t>& stack = p->shape().dims;
        if (p == other || stack.size() <= shape.dims.size()) continue;
        if (!std::equal(shape.dims.rbegin(), shape.dims.rend(), stack.rbegin())) continue;
        Shape one = p->shape();
        std::fill(one.dims.begin(), one.dims.end() - static_cast<ptrdiff_t>(shape.dims.size()), 1);
        Instruction* slice = inner_->Add(Opcode::kSlice, one, {p}, "slice");
        hlo::SetSlice(slice, std::vector<hlo::SliceDim>(one.dims.size()));
        return As(shape, slice);
      }
    }
    // x times x.
    return other != nullptr && hlo::SameDims(other->shape(), shape)
               ? const_cast<Instruction*>(other)
               : nullptr;
  }

  // A shape with so many elements: that of a result or operand, else rows of lanes.
  Shape ShapeOf(int64_t elements) const {
    for (const Json& output : row_["outputs"]) {
      const Operand o = ParseOperand(output);
      if (o.physical.ElementCount() == elements) return Wide(o.physical);
    }
    for (const Operand& o : operands_) {
      if (o.physical.ElementCount() == elements) return Wide(o.physical);
    }
    return hlo::MakeShape(PrimitiveType::kF32, {CeilDiv(elements, 128), 128});
  }
  static Shape Wide(Shape shape) {
    shape.element_type = PrimitiveType::kF32;
    return shape;
  }

  Instruction* Any() { return parameters_.empty() ? Scalar() : parameters_.front(); }
  Instruction* Scalar() {
    if (scalar_ == nullptr) scalar_ = hlo::AddConstant(inner_, PrimitiveType::kF32, 0);
    return scalar_;
  }
  // One operand after the other: everything that a fusion is given is read.
  Instruction* Next() {
    return parameters_.empty() ? Scalar() : parameters_[next_++ % parameters_.size()];
  }

  Instruction* AddOps(const std::string& name, int64_t count, int64_t elements, bool product) {
    const auto opcode = hlo::OpcodeFromName(name);
    if (!opcode) return nullptr;
    const int64_t each = CeilDiv(elements, std::max<int64_t>(1, count));
    Instruction* last = nullptr;
    for (int64_t n = 0; n < count; ++n) {
      switch (*opcode) {
        case Opcode::kReduce:
          if (!product) {
            last = AddReduce();
            break;
          }
          last = inner_->Add(Opcode::kAdd, ShapeOf(each), {Any(), Any()}, "reduce");
          break;
        case Opcode::kReduceWindow:
          if (!product || product_ == nullptr || product_->shape().rank() < 2) {
            last = inner_->Add(Opcode::kCopy, ShapeOf(each), {Any()}, "moved");
            break;
          }
          last = AddRowMaximum();
          break;
        case Opcode::kBroadcast:
        case Opcode::kBitcast:
        case Opcode::kConstant:
          break;
        case Opcode::kSlice:
        case Opcode::kDynamicSlice:
          last = inner_->Add(Opcode::kSlice, SliceShape(each), {Largest()}, "slice");
          hlo::SetSlice(last, std::vector<hlo::SliceDim>(last->shape().dims.size()));
          break;
        case Opcode::kCopy:
        case Opcode::kTranspose:
        case Opcode::kReshape:
          last = AddCopy(each);
          break;
        case Opcode::kPad:
          last = AddPad();
          break;
        case Opcode::kIota:
          last = inner_->Add(Opcode::kIota, ShapeOf(each), {}, "iota");
          break;
        default: {
          if (!hlo::IsElementwise(*opcode)) {
            last = inner_->Add(Opcode::kCopy, ShapeOf(each), {Any()}, "moved");
            break;
          }
          std::vector<Instruction*> operands(
              static_cast<size_t>(std::max(1, hlo::OpcodeArity(*opcode))));
          for (Instruction*& operand : operands) operand = Next();
          last = inner_->Add(*opcode, ShapeOf(each), operands, name);
        }
      }
    }
    return last;
  }

  Instruction* Largest() {
    Instruction* largest = Any();
    for (Instruction* p : parameters_) {
      if (p->shape().ElementCount() > largest->shape().ElementCount()) largest = p;
    }
    return largest;
  }

  Shape SliceShape(int64_t elements) {
    Shape shape = ShapeOf(elements);
    shape.element_type = Largest()->shape().element_type;
    return shape;
  }

  Instruction* AddReduce() {
    const Shape in = Largest()->shape();
    const Operand out = ParseOperand(row_["outputs"][0]);
    std::vector<int64_t> reduced, kept;
    size_t next = 0;
    for (size_t d = 0; d < in.dims.size(); ++d) {
      if (next < out.physical.dims.size() && out.physical.dims[next] == in.dims[d] &&
          (in.dims.size() - d > out.physical.dims.size() - next || reduced.size() > 0 ||
           in.dims.size() == out.physical.dims.size())) {
        ++next;
        kept.push_back(in.dims[d]);
      } else {
        reduced.push_back(static_cast<int64_t>(d));
      }
    }
    return Reduction(Largest(), reduced, kept);
  }

  // The part of a softmax that a product's fusion holds: the maximum of a row,
  // subtracted from the row.
  Instruction* AddRowMaximum() {
    const Shape& of = product_->shape();
    std::vector<int64_t> kept = of.dims;
    kept.erase(kept.end() - 2);
    Instruction* maximum = Reduction(product_, {of.rank() - 2}, kept);
    Instruction* rows = inner_->Add(Opcode::kBroadcast, of, {maximum}, "rows");
    std::vector<int64_t> dims(static_cast<size_t>(of.rank()));
    for (size_t d = 0; d < dims.size(); ++d) dims[d] = static_cast<int64_t>(d);
    dims.erase(dims.end() - 2);
    hlo::SetDimensions(rows, dims);
    return inner_->Add(Opcode::kSubtract, of, {product_, rows}, "less");
  }

  Instruction* Reduction(Instruction* of, const std::vector<int64_t>& reduced,
                         const std::vector<int64_t>& kept) {
    hlo::Computation* add = module_.AddComputation("add");
    const Shape scalar = hlo::MakeScalarShape(PrimitiveType::kF32);
    Instruction* a = add->AddParameter(0, scalar, "a");
    Instruction* b = add->AddParameter(1, scalar, "b");
    add->set_root(add->Add(Opcode::kAdd, scalar, {a, b}));
    if (scalar_ == nullptr) scalar_ = hlo::AddConstant(inner_, PrimitiveType::kF32, 0);
    Instruction* reduce = inner_->Add(Opcode::kReduce, hlo::MakeShape(PrimitiveType::kF32, kept),
                                      {of, scalar_}, "reduce");
    hlo::SetDimensions(reduce, reduced);
    reduce->set_called({add});
    return reduce;
  }

  // To the size of the result, at its end.
  Instruction* AddPad() {
    Instruction* from = Next();
    if (from->shape().ElementCount() <= 1) from = Any();
    const Shape to = ParseOperand(row_["outputs"][0]).physical;
    Shape padded = to;
    padded.element_type = from->shape().element_type;
    Instruction* pad = inner_->Add(Opcode::kPad, padded, {from, Scalar()}, "pad");
    std::vector<hlo::PaddingDim> dims(to.dims.size());
    for (size_t d = 0; d < std::min(dims.size(), from->shape().dims.size()); ++d) {
      dims[d].high = to.dims[d] - from->shape().dims[d];
    }
    hlo::SetPadding(pad, dims);
    return pad;
  }

  // A copy to another layout is a transposition of physical dimensions.
  Instruction* AddCopy(int64_t elements) {
    const Operand out = ParseOperand(row_["outputs"][0]);
    if (!MovesLanes(row_)) {
      return inner_->Add(Opcode::kCopy, ShapeOf(elements), {Any()}, "copy");
    }
    Instruction* t = inner_->Add(Opcode::kTranspose, Wide(out.physical), {Any()}, "transpose");
    std::vector<int64_t> dims(out.physical.dims.size());
    for (size_t d = 0; d < dims.size(); ++d) dims[d] = static_cast<int64_t>(dims.size() - 1 - d);
    hlo::SetDimensions(t, dims);
    return t;
  }

  const Instruction* Finish(Instruction* value) {
    std::vector<Instruction*> results;
    std::vector<Shape> shapes;
    const bool product = !row_["convs"].empty();
    for (const Json& output : row_["outputs"]) {
      const Operand o = ParseOperand(output);
      Shape shape = product ? o.logical : o.physical;
      // Narrow results of products leave by way of the packing, wherever they go.
      const bool packed = product && conventions_.loop_step_cycles > 0 && IsNarrow(o.logical);
      if (o.fast && !packed) shape.layout.memory_space = hlo::kVmemSpace;
      Instruction* from = value != nullptr && results.empty() ? value : Any();
      results.push_back(inner_->Add(Opcode::kBitcast, shape, {from}, "result"));
      shapes.push_back(shape);
    }
    Instruction* root = results[0];
    if (results.size() > 1) {
      root = inner_->Add(Opcode::kTuple, hlo::MakeTupleShape(shapes), results, "results");
    }
    if (row_["opcode"] != "fusion" && results.size() == 1 && value != nullptr) {
      if (const Instruction* lone = Lone(*value, shapes[0])) return lone;
    }
    inner_->set_root(root);
    Instruction* fusion = entry_->Add(Opcode::kFusion, root->shape(), outer_, "fusion");
    fusion->set_called({inner_});
    entry_->set_root(fusion);
    return fusion;
  }

  // The operation by itself, outside of a fusion; null if it has inner operands.
  const Instruction* Lone(const Instruction& value, const Shape& shape) {
    std::vector<Instruction*> operands;
    for (const Instruction* o : value.operands()) {
      if (o->opcode() == Opcode::kParameter) {
        operands.push_back(outer_[o->attrs().parameter_number()]);
      } else if (o->opcode() == Opcode::kConstant) {
        operands.push_back(hlo::AddConstant(entry_, PrimitiveType::kF32, 0));
      } else {
        return nullptr;
      }
    }
    // A binary operation reads all operands of the row.
    if (hlo::IsElementwise(value.opcode())) {
      for (size_t n = 0; n < std::min(operands.size(), outer_.size()); ++n) operands[n] = outer_[n];
    }
    Instruction* lone = entry_->Add(value.opcode(), shape, operands, "lone", &value);
    lone->set_called(value.called());
    entry_->set_root(lone);
    return lone;
  }

  const Json& row_;
  const Conventions conventions_;
  hlo::Module module_;
  hlo::Computation* inner_ = nullptr;
  hlo::Computation* entry_ = nullptr;
  std::vector<Operand> operands_;
  std::vector<Instruction*> outer_, parameters_;
  Instruction* scalar_ = nullptr;
  size_t next_ = 0;
  Instruction* product_ = nullptr;
};

// The single-operation programs let the compiler fetch one operand into VMEM (another on-chip
// memory where there is one) before the kernel starts: the largest that fits beside the kernel's
// windows, or that leaves them half of VMEM. What is left of VMEM for the windows is returned.
Bytes PredictSpaces(Json& row, const target::Target& target) {
  const configs::ChipParams& chip = target.chip();
  const Bytes vmem = chip.vmem.bytes;
  const configs::Memory& fast = target.FastMemory();
  const Bytes room = fast.planned
                         ? fast.capacity(chip)
                         : std::max(vmem - chip.vmem.scoped_bytes, Bytes(vmem.value() / 2));
  Json* best = nullptr;
  Bytes most(0);
  for (Json& input : row["inputs"]) {
    input[3] = "HBM";
    const Bytes size = target.PaddedSize(ParseOperand(input).physical);
    if (size > most && size <= room) {
      best = &input;
      most = size;
    }
  }
  if (!row["prefetch"].get<bool>() || best == nullptr) return chip.vmem.scoped_bytes;
  (*best)[3] = fast.title;
  return fast.planned ? chip.vmem.scoped_bytes : std::min(chip.vmem.scoped_bytes, vmem - most);
}

Json Predict(Json row, configs::Config config, const Conventions& conventions) {
  const target::Target target(config);
  Json result;
  const bool predict = row.value("predict_spaces", false);
  if (predict) {
    std::vector<bool> given, predicted;
    for (const Json& input : row["inputs"]) given.push_back(ParseOperand(input).fast);
    config.chip.vmem.scoped_bytes = PredictSpaces(row, target);
    for (const Json& input : row["inputs"]) predicted.push_back(ParseOperand(input).fast);
    result["spaces_agree"] = given == predicted;
  }
  // Where every step waits, the fewest are best.
  const configs::ChipParams chip = config.chip;
  if (conventions.loop_step_cycles > 0 &&
      (row["convs"].empty() || row["ops"].contains("reduce-window"))) {
    config.chip.tensor_core.grid_step_overhead = FromSeconds(1);
  } else if (OnlyWrites(row, conventions)) {
    config.chip.tensor_core.grid_step_overhead =
        FromSeconds(conventions.loop_step_cycles / chip.clock.value());
  }
  RowBuilder builder(row, conventions);
  const auto instruction = builder.Build();
  if (!instruction.ok()) {
    result["error"] = Message(instruction.status());
    return result;
  }
  auto kernel = kernels::BuildKernel(**instruction, target);
  if (!kernel.ok()) {
    result["error"] = Message(kernel.status());
    return result;
  }
  ChargeWindows(**instruction, row, conventions, *kernel);
  if (IsSerial(row, conventions, *kernel)) {
    result["cycles"] = SerialTime(chip, row, conventions, *kernel);
  } else {
    const Picoseconds time = timing::KernelTime(target.chip(), *kernel);
    result["cycles"] = ToSeconds(time) * target.chip().clock.value();
  }
  std::vector<int64_t> grid;
  for (const isa::GridDim& d : kernel->grid) grid.push_back(d.count);
  result["grid"] = grid;
  result["mxu"] = {kernel->block.mxu.m, kernel->block.mxu.k, kernel->block.mxu.n};
  const timing::KernelTraffic traffic = timing::TrafficOf(*kernel);
  result["hbm_bytes"] = {traffic.read.value(), traffic.written.value()};
  result["vmem_bytes"] = timing::WindowBytes(*kernel).value();
  return result;
}

int Main(int argc, char** argv) {
  CLI::App app("Predicts kernels that the TPU compiler printed");
  std::string config_name;
  std::vector<std::string> overrides;
  Conventions conventions;
  app.add_option("--config", config_name)->required();
  app.add_option("--set", overrides)->allow_extra_args(false);
  app.add_option("--loop-step-cycles", conventions.loop_step_cycles);
  app.add_option("--loop-bytes-per-cycle", conventions.loop_bytes_per_cycle);
  app.add_option("--vmem-share", conventions.vmem_share);
  app.add_option("--cmem-share", conventions.cmem_share);
  CLI11_PARSE(app, argc, argv);
  const auto config = configs::LoadConfig(config_name, overrides);
  if (!config.ok()) {
    std::cerr << Message(config.status()) << "\n";
    return 1;
  }
  for (std::string line; std::getline(std::cin, line);) {
    Json row = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!row.is_object()) {
      std::cerr << "not a JSON object: " << line.substr(0, 80) << "\n";
      return 1;
    }
    std::cout << Predict(std::move(row), *config, conventions).dump() << "\n";
  }
  return 0;
}

}  // namespace
}  // namespace tpusim::validation

int main(int argc, char** argv) { return tpusim::validation::Main(argc, argv); }
