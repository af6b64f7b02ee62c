// Generated sharded programs of any size, for the benchmark of the front end and
// for tests of scale: layers of a perceptron on a 4x2 mesh, as JAX exports them.
#ifndef TPUSIM_TESTS_WORKLOADS_SHARDED_PROGRAM_H_
#define TPUSIM_TESTS_WORKLOADS_SHARDED_PROGRAM_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "configs/units.h"
#include "fmt/format.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/ir.h"

namespace tpusim::workloads {

// The kind of a layer. In all kinds the first weights are split by columns, the second by rows, so
// that every layer ends in an all-reduce.
enum class ProgramForm {
  kFlat,      // one long body
  kCalls,     // every layer a computation of its own
  kReshards,  // flat; constraints move the activations to other axes and back
};

class ShardedProgram {
 public:
  static constexpr int64_t kPartitions = 8;

  // About `size` instructions, those of called computations included.
  static std::unique_ptr<hlo::Module> Make(int64_t size, ProgramForm form) {
    return ShardedProgram(form).Build(size);
  }

 private:
  using Instruction = hlo::Instruction;
  using Computation = hlo::Computation;
  using Opcode = hlo::Opcode;
  static constexpr int64_t kBatch = 64, kWidth = 128, kHidden = 512;

  explicit ShardedProgram(ProgramForm form) : form_(form) {}

  static hlo::Shape F32(std::vector<int64_t> dims) {
    return hlo::MakeShape(hlo::PrimitiveType::kF32, std::move(dims));
  }

  static void Say(Instruction* instruction, const char* key, const std::string& text) {
    (*instruction->mutable_attrs().mutable_frontend_attributes()->mutable_map())[key] = text;
  }

  static void Shard(Instruction* instruction, std::string_view dims) {
    Say(instruction, "xla.sdy.sharding", fmt::format("#sdy.sharding<@mesh, {}>", dims));
  }

  Instruction* Parameter(std::vector<int64_t> dims, std::string_view sharding) {
    Instruction* p = main_->AddParameter(parameters_++, F32(std::move(dims)), "p");
    Shard(p, sharding);
    return p;
  }

  Instruction* Add(Computation* c, Opcode opcode, hlo::Shape shape,
                   std::vector<Instruction*> operands, const char* what) {
    Instruction* i = c->Add(opcode, std::move(shape), std::move(operands));
    hlo::pb::OpMetadata& metadata = *i->mutable_attrs().mutable_metadata();
    metadata.set_op_name(fmt::format("jit(train_step)/jvp(layer_{})/{}", layer_, what));
    metadata.set_source_file("model.py");
    metadata.set_source_line(static_cast<int>(layer_ % 1000));
    return i;
  }

  Instruction* Dot(Computation* c, Instruction* lhs, Instruction* rhs) {
    const hlo::Shape shape = F32({lhs->shape().dims[0], rhs->shape().dims[1]});
    Instruction* dot = Add(c, Opcode::kDot, shape, {lhs, rhs}, "dot_general");
    hlo::SetDotDims(dot, {{1}, {0}, {}, {}});
    return dot;
  }

  Instruction* Broadcast(Computation* c, Instruction* value, hlo::Shape shape, int64_t dim) {
    Instruction* wide = Add(c, Opcode::kBroadcast, std::move(shape), {value}, "broadcast_in_dim");
    hlo::SetDimensions(wide, {dim});
    return wide;
  }

  Instruction* Constraint(Computation* c, Instruction* value, std::string_view dims) {
    Instruction* marker =
        Add(c, Opcode::kCustomCall, value->shape(), {value}, "sharding_constraint");
    marker->mutable_attrs().set_custom_call_target("Sharding");
    Shard(marker, dims);
    return marker;
  }

  // 12 instructions, 14 with reshards.
  Instruction* Layer(Computation* c, Instruction* x, Instruction* in, Instruction* out,
                     Instruction* bias) {
    const hlo::Shape hidden = F32({kBatch, kHidden}), shape = F32({kBatch, kWidth});
    Instruction* zero = hlo::AddConstant(c, hlo::PrimitiveType::kF32, 0);
    Instruction* product = Dot(c, x, in);
    Instruction* biased =
        Add(c, Opcode::kAdd, hidden, {product, Broadcast(c, bias, hidden, 1)}, "add");
    Instruction* active = Add(c, Opcode::kTanh, hidden, {biased}, "tanh");
    if (form_ == ProgramForm::kReshards) {
      active = Constraint(c, active, R"([{"y"}, {"x"}])");
    }
    Instruction* result = Dot(c, active, out);
    if (form_ == ProgramForm::kReshards) {
      result = Constraint(c, result, R"([{"x", "y"}, {}])");
    } else if (layer_ % 4 == 0) {
      result = Constraint(c, result, R"([{"x"}, {}])");
    }
    Instruction* square = Add(c, Opcode::kMultiply, shape, {result, result}, "square");
    Instruction* sum = Add(c, Opcode::kReduce, F32({kBatch}), {square, zero}, "reduce_sum");
    hlo::SetDimensions(sum, {1});
    sum->set_called({add_});
    Instruction* scale = Add(c, Opcode::kRsqrt, F32({kBatch}), {sum}, "rsqrt");
    Instruction* scaled =
        Add(c, Opcode::kMultiply, shape, {result, Broadcast(c, scale, shape, 0)}, "mul");
    return Add(c, Opcode::kAdd, shape, {x, scaled}, "residual");
  }

  std::unique_ptr<hlo::Module> Build(int64_t size) {
    auto module = std::make_unique<hlo::Module>("layers");
    (*module->mutable_fields().mutable_frontend_attributes()->mutable_map())["xla.sdy.meshes"] =
        R"({mesh = #sdy.mesh<["x"=4, "y"=2]>})";
    const hlo::Shape scalar = F32({});
    add_ = module->AddComputation("add");
    Instruction* a = add_->AddParameter(0, scalar, "a");
    Instruction* b = add_->AddParameter(1, scalar, "b");
    add_->set_root(add_->Add(Opcode::kAdd, scalar, {a, b}));
    // Callees come first in a file.
    constexpr int64_t kPerLayer[] = {14, 19, 16};  // without constraints of every fourth
    const int64_t layers = CeilDiv(size, kPerLayer[static_cast<size_t>(form_)]);
    std::vector<Computation*> bodies;
    for (layer_ = 0; form_ == ProgramForm::kCalls && layer_ < layers; ++layer_) {
      Computation* body = module->AddComputation(fmt::format("layer_{}", layer_));
      Instruction* x = body->AddParameter(0, F32({kBatch, kWidth}), "x");
      Instruction* in = body->AddParameter(1, F32({kWidth, kHidden}), "in");
      Instruction* out = body->AddParameter(2, F32({kHidden, kWidth}), "out");
      Instruction* bias = body->AddParameter(3, F32({kHidden}), "bias");
      body->set_root(Layer(body, x, in, out, bias));
      bodies.push_back(body);
    }
    main_ = module->AddComputation("main");
    module->set_entry(main_);
    Instruction* x = Parameter({kBatch, kWidth}, R"([{"x"}, {}])");
    Instruction* bias = Parameter({kHidden}, R"([{"y"}])");
    for (layer_ = 0; layer_ < layers; ++layer_) {
      Instruction* in = Parameter({kWidth, kHidden}, R"([{}, {"y"}])");
      Instruction* out = Parameter({kHidden, kWidth}, R"([{"y"}, {}])");
      if (form_ == ProgramForm::kCalls) {
        x = Add(main_, Opcode::kCall, x->shape(), {x, in, out, bias}, "layer");
        x->set_called({bodies[layer_]});
      } else {
        x = Layer(main_, x, in, out, bias);
      }
    }
    main_->set_root(x);
    return module;
  }

  const ProgramForm form_;
  Computation* add_ = nullptr;
  Computation* main_ = nullptr;
  int64_t parameters_ = 0, layer_ = 0;
};

}  // namespace tpusim::workloads

#endif  // TPUSIM_TESTS_WORKLOADS_SHARDED_PROGRAM_H_
