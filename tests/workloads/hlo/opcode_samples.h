// One instance of every opcode, for tests over all of them.
#ifndef TPUSIM_TESTS_WORKLOADS_HLO_OPCODE_SAMPLES_H_
#define TPUSIM_TESTS_WORKLOADS_HLO_OPCODE_SAMPLES_H_

#include <functional>
#include <string>
#include <vector>

#include "hlo_test_util.h"

namespace tpusim::hlo {
namespace {  // included once

const Shape kToken = MakeTokenShape();
Shape U32(std::vector<int64_t> dims) { return MakeShape(PrimitiveType::kU32, std::move(dims)); }
Shape C64(std::vector<int64_t> dims) { return MakeShape(PrimitiveType::kC64, std::move(dims)); }

struct Example {
  std::string prints;  // part of its text
  int64_t flops, transcendentals, read, written;
};

// Builds modules whose root is the instruction in question.
class Sample {
 public:
  Instruction* P(Shape shape) { return t_.Param(std::move(shape)); }
  Instruction* Op(Opcode op, Shape shape, std::vector<Instruction*> operands) {
    return t_.Add(op, std::move(shape), std::move(operands));
  }
  Instruction* Op(Opcode op, Shape shape, std::vector<Instruction*> operands,
                  std::vector<int64_t> dimensions) {
    Instruction* i = Op(op, std::move(shape), std::move(operands));
    SetDimensions(i, dimensions);
    return i;
  }
  Computation* Unary(Opcode op, Shape shape) {
    Computation* c = t_.module().AddComputation("body");
    TestModule::Add(c, op, shape, {TestModule::Param(c, shape)});
    return c;
  }
  // n scalars of each type -> pred or the first of them
  Computation* Comparator(const std::vector<PrimitiveType>& types) {
    Computation* c = t_.module().AddComputation("compare");
    std::vector<Instruction*> parameters;
    for (PrimitiveType type : types) {
      for (int n = 0; n < 2; ++n) parameters.push_back(TestModule::Param(c, MakeScalarShape(type)));
    }
    Instruction* compare =
        TestModule::Add(c, Opcode::kCompare, Pred(), {parameters[0], parameters[1]});
    compare->mutable_attrs().set_comparison_direction("GT");
    return c;
  }
  Instruction* Calls(Instruction* i, std::vector<Computation*> called) {
    i->set_called(std::move(called));
    return i;
  }
  Instruction* Reduces(Instruction* i) { return Calls(i, {t_.Reducer(Opcode::kAdd)}); }
  Instruction* Token() { return Op(Opcode::kAfterAll, kToken, {}); }
  TestModule& module() { return t_; }

 private:
  TestModule t_;
};

using SampleBuilder = std::function<Example(Sample&)>;

// [8,16] f32: 128 elements, 512 bytes.
Example Unary(Sample& s, Opcode op, Shape in, Shape out, int64_t t) {
  const int64_t read = in.ByteSize().value(), written = out.ByteSize().value();
  const int64_t n = out.ElementCount();
  s.Op(op, out, {s.P(in)});
  return {std::string(OpcodeName(op)) + "(%p", n, t * n, read, written};
}

SampleBuilder BuilderOf(Opcode op) {
  const Shape f = F32({8, 16}), i = S32({8, 16}), p = MakeShape(PrimitiveType::kPred, {8, 16});
  using O = Opcode;
  const std::string name(OpcodeName(op));
  switch (op) {
    case O::kAnd:
    case O::kOr:
    case O::kXor:
    case O::kShiftLeft:
    case O::kShiftRightArithmetic:
    case O::kShiftRightLogical:
    case O::kMulhi:
      return [=](Sample& s) -> Example {
        s.Op(op, i, {s.P(i), s.P(i)});
        return {name + "(%p, %p.1)", 128, 0, 1024, 512};
      };
    case O::kNot:
    case O::kPopcnt:
    case O::kCountLeadingZeros:
      return [=](Sample& s) { return Unary(s, op, i, i, 0); };
    case O::kIsFinite:
      return [=](Sample& s) { return Unary(s, op, f, p, 0); };
    case O::kCompare:
      return [=](Sample& s) -> Example {
        s.Op(op, p, {s.P(f), s.P(f)})->mutable_attrs().set_comparison_direction("LT");
        return {"direction=LT", 128, 0, 1024, 128};
      };
    case O::kSelect:
      return [=](Sample& s) -> Example {
        s.Op(op, f, {s.P(p), s.P(f), s.P(f)});
        return {"pred[8,16]", 128, 0, 128 + 1024, 512};
      };
    case O::kClamp:
      return [=](Sample& s) -> Example {
        s.Op(op, f, {s.P(F32({})), s.P(f), s.P(F32({}))});
        return {"clamp(", 128, 0, 4 + 512 + 4, 512};
      };
    case O::kConvert:
      return [=](Sample& s) { return Unary(s, op, f, i, 0); };
    case O::kStochasticConvert:
      return [=](Sample& s) -> Example {
        s.Op(op, MakeShape(PrimitiveType::kBf16, {8, 16}), {s.P(f), s.P(U32({8, 16}))});
        return {"bf16[8,16]", 128, 0, 1024, 256};
      };
    case O::kReducePrecision:
      return [=](Sample& s) -> Example {
        Instruction* r = s.Op(op, f, {s.P(f)});
        r->mutable_attrs().set_exponent_bits(8);
        r->mutable_attrs().set_mantissa_bits(7);
        return {"exponent_bits=8, mantissa_bits=7", 128, 0, 512, 512};
      };
    case O::kComplex:
      return [=](Sample& s) -> Example {
        s.Op(op, C64({8, 16}), {s.P(f), s.P(f)});
        return {"c64[8,16]", 128, 0, 1024, 1024};
      };
    case O::kReal:
    case O::kImag:
      return [=](Sample& s) { return Unary(s, op, C64({8, 16}), f, 0); };
    case O::kBroadcast:
      return [=](Sample& s) -> Example {
        s.Op(op, F32({4, 8, 16}), {s.P(f)}, {1, 2});
        return {"dimensions={1,2}", 0, 0, 512, 2048};
      };
    case O::kReshape:
      return [=](Sample& s) -> Example {
        s.Op(op, F32({128}), {s.P(f)});
        return {"reshape(", 0, 0, 512, 512};
      };
    case O::kBitcast:
      return [=](Sample& s) -> Example {
        s.Op(op, F32({128}), {s.P(f)});
        return {"bitcast(", 0, 0, 0, 0};
      };
    case O::kBitcastConvert:
      return [=](Sample& s) -> Example {
        s.Op(op, MakeShape(PrimitiveType::kU8, {8, 16, 4}), {s.P(f)});
        return {"u8[8,16,4]", 0, 0, 512, 512};
      };
    case O::kTranspose:
    case O::kReverse:
      return [=](Sample& s) -> Example {
        s.Op(op, op == O::kReverse ? f : F32({16, 8}), {s.P(f)}, {1, 0});
        return {"dimensions={1,0}", 0, 0, 512, 512};
      };
    case O::kSlice:
      return [=](Sample& s) -> Example {
        SetSlice(s.Op(op, F32({4, 4}), {s.P(f)}), {{0, 8, 2}, {0, 4, 1}});
        return {"slice={[0:8:2], [0:4]}", 0, 0, 64, 64};
      };
    case O::kPad:
      return [=](Sample& s) -> Example {
        // 8 + 1 + 7 holes = 16 rows
        SetPadding(s.Op(op, F32({16, 16}), {s.P(f), s.P(F32({}))}), {{1, 0, 1}, {0, 0, 0}});
        return {"padding=1_0_1x0_0", 0, 0, 516, 1024};
      };
    case O::kConcatenate:
      return [=](Sample& s) -> Example {
        s.Op(op, F32({16, 16}), {s.P(f), s.P(f)}, {0});
        return {"dimensions={0}", 0, 0, 1024, 1024};
      };
    case O::kIota:
      return [=](Sample& s) -> Example {
        s.Op(op, i, {}, {1});
        return {"iota_dimension=1", 0, 0, 0, 512};
      };
    case O::kDynamicSlice:
      return [=](Sample& s) -> Example {
        Instruction* at = s.P(S32({}));
        SetDynamicSliceSizes(s.Op(op, F32({1, 16}), {s.P(f), at, at}), {1, 16});
        return {"dynamic_slice_sizes={1,16}", 0, 0, 64, 64};
      };
    case O::kDynamicUpdateSlice:
      return [=](Sample& s) -> Example {
        Instruction* at = s.P(S32({}));
        s.Op(op, f, {s.P(f), s.P(F32({1, 16})), at, at});
        return {"dynamic-update-slice(", 0, 0, 64, 64};
      };
    case O::kGetDimensionSize:
      return [=](Sample& s) -> Example {
        s.Op(op, S32({}), {s.P(f)}, {1});
        return {"dimensions={1}", 0, 0, 0, 0};
      };
    case O::kSetDimensionSize:
      return [=](Sample& s) -> Example {
        s.Op(op, f, {s.P(f), s.P(S32({}))}, {1});
        return {"dimensions={1}", 0, 0, 0, 0};
      };
    case O::kDot:
      return [=](Sample& s) -> Example {
        SetDotDims(s.Op(op, F32({8, 4}), {s.P(f), s.P(F32({16, 4}))}), {{1}, {0}, {}, {}});
        return {"lhs_contracting_dims={1}", 2 * 8 * 4 * 16, 0, 512 + 256, 128};
      };
    case O::kScaledDot:
      return [=](Sample& s) -> Example {
        // Two scales of 8 elements per row, one for all of the right side.
        SetDotDims(
            s.Op(op, F32({8, 4}), {s.P(f), s.P(F32({16, 4})), s.P(F32({8, 2})), s.P(F32({}))}),
            {{1}, {0}, {}, {}});
        return {"rhs_contracting_dims={0}", 1024 + 128 + 64, 0, 512 + 256 + 64 + 4, 128};
      };
    case O::kRaggedDot:
      return [=](Sample& s) -> Example {
        Instruction* dot = s.Op(op, F32({8, 4}), {s.P(f), s.P(F32({3, 16, 4})), s.P(S32({3}))});
        SetDotDims(dot, {{1}, {1}, {}, {}});
        auto& n = *dot->mutable_attrs().mutable_ragged_dot_dimension_numbers();
        n.add_lhs_ragged_dimensions(0);
        n.add_rhs_group_dimensions(0);
        return {"rhs_group_dims={0}", 2 * 8 * 16 * 4, 0, 512 + 768 + 12, 128};
      };
    case O::kConvolution:
      return [=](Sample& s) -> Example {
        // One image, one feature, 16 columns, kernel 3: 14 outputs.
        Instruction* conv = s.Op(op, F32({1, 1, 14}), {s.P(F32({1, 1, 16})), s.P(F32({1, 1, 3}))});
        auto& n = *conv->mutable_attrs().mutable_convolution_dimension_numbers();
        n.set_input_feature_dimension(1);
        n.set_kernel_output_feature_dimension(1);
        n.set_output_feature_dimension(1);
        n.add_input_spatial_dimensions(2);
        n.add_kernel_spatial_dimensions(2);
        n.add_output_spatial_dimensions(2);
        SetWindow(conv, {{3}});
        return {"dim_labels=bf0_io0->bf0", 2 * 14 * 3, 0, 64 + 12, 56};
      };
    case O::kFft:
      return [=](Sample& s) -> Example {
        Instruction* fft = s.Op(op, C64({8, 9}), {s.P(f)});
        fft->mutable_attrs().set_fft_type(pb::RFFT);
        fft->mutable_attrs().add_fft_length(16);
        return {"fft_type=RFFT, fft_length={16}", 8 * 4 * 72, 0, 512, 576};
      };
    case O::kCholesky:
      return [=](Sample& s) -> Example {
        s.Op(op, F32({6, 6}), {s.P(F32({6, 6}))})
            ->mutable_attrs()
            .mutable_cholesky_options()
            ->set_lower(true);
        return {"lower=true", 6 * 6 * 6 / 3, 0, 144, 144};
      };
    case O::kTriangularSolve:
      return [=](Sample& s) -> Example {
        auto& options = *s.Op(op, F32({6, 2}), {s.P(F32({6, 6})), s.P(F32({6, 2}))})
                             ->mutable_attrs()
                             .mutable_triangular_solve_options();
        options.set_left_side(true);
        options.set_transpose_a(pb::TriangularSolveOptions::NO_TRANSPOSE);
        return {"left_side=true, transpose_a=NO_TRANSPOSE", 6 * 2 * 6, 0, 144 + 48, 48};
      };
    case O::kRng:
      return [=](Sample& s) -> Example {
        s.Op(op, f, {s.P(F32({})), s.P(F32({}))})->mutable_attrs().set_distribution(pb::RNG_NORMAL);
        // Philox 25 per word, 7 more for Box and Muller and the scale.
        return {"distribution=rng_normal", 128 * (25 + 7), 3 * 128, 8, 512};
      };
    case O::kRngBitGenerator:
      return [=](Sample& s) -> Example {
        const Shape state = U32({4});
        s.Op(op, MakeTupleShape({state, U32({8, 16})}), {s.P(state)})
            ->mutable_attrs()
            .set_rng_algorithm(pb::RNG_PHILOX);
        return {"algorithm=RNG_PHILOX", 25 * (128 + 4), 0, 16, 528};
      };
    case O::kRngGetAndUpdateState:
      return [=](Sample& s) -> Example {
        s.Op(op, MakeShape(PrimitiveType::kU64, {2}), {})->mutable_attrs().set_delta(5);
        return {"delta=5", 2, 0, 16, 16};
      };
    case O::kReduce:
      return [=](Sample& s) -> Example {
        s.Reduces(s.Op(op, F32({8}), {s.P(f), s.P(F32({}))}, {1}));
        return {"dimensions={1}, to_apply=%reducer", 128 - 8, 0, 516, 32};
      };
    case O::kReduceWindow:
      return [=](Sample& s) -> Example {
        SetWindow(s.Reduces(s.Op(op, F32({4, 16}), {s.P(f), s.P(F32({}))})), {{2, 2}, {1}});
        return {"window={size=2x1 stride=2x1}", 64, 0, 516, 256};
      };
    case O::kSelectAndScatter:
      return [=](Sample& s) -> Example {
        Instruction* i2 = s.Op(op, f, {s.P(f), s.P(F32({4, 16})), s.P(F32({}))});
        s.Calls(i2, {s.Comparator({PrimitiveType::kF32}), s.module().Reducer(O::kAdd)});
        SetWindow(i2, {{2, 2}, {1}});
        // 64 sources: a comparison and an addition each.
        return {"select=%compare, scatter=%reducer", 128, 0, 512 + 256 + 4, 512};
      };
    case O::kMap:
      return [=](Sample& s) -> Example {
        s.Calls(s.Op(op, f, {s.P(f)}, {0, 1}), {s.Unary(O::kTanh, F32({}))});
        return {"to_apply=%body", 128, 128, 512, 512};
      };
    case O::kGather:
      return [=](Sample& s) -> Example {
        Instruction* g = s.Op(op, F32({5, 16}), {s.P(f), s.P(S32({5, 1}))});
        auto& n = *g->mutable_attrs().mutable_gather_dimension_numbers();
        n.add_offset_dims(1);
        n.add_collapsed_slice_dims(0);
        n.add_start_index_map(0);
        n.set_index_vector_dim(1);
        for (int size : {1, 16}) g->mutable_attrs().add_gather_slice_sizes(size);
        return {"slice_sizes={1,16}", 0, 0, 5 * 64 + 20, 5 * 64};
      };
    case O::kScatter:
      return [=](Sample& s) -> Example {
        Instruction* g = s.Reduces(s.Op(op, f, {s.P(f), s.P(S32({5, 1})), s.P(F32({5, 16}))}));
        auto& n = *g->mutable_attrs().mutable_scatter_dimension_numbers();
        n.add_update_window_dims(1);
        n.add_inserted_window_dims(0);
        n.add_scatter_dims_to_operand_dims(0);
        n.set_index_vector_dim(1);
        return {"scatter_dims_to_operand_dims={0}", 80, 0, 320 + 320 + 20, 320};
      };
    case O::kSort:
      return [=](Sample& s) -> Example {
        s.Calls(s.Op(op, MakeTupleShape({f, i}), {s.P(f), s.P(i)}, {1}),
                {s.Comparator({PrimitiveType::kF32, PrimitiveType::kS32})});
        return {"dimensions={1}", 128 * 7, 0, 1024, 1024};
      };
    case O::kTopk:
      return [=](Sample& s) -> Example {
        Instruction* top = s.Op(op, MakeTupleShape({F32({8, 3}), S32({8, 3})}), {s.P(f)});
        top->mutable_attrs().set_k(3);
        top->mutable_attrs().set_largest(true);
        return {"k=3, largest=true", 128 * 2, 0, 512, 192};
      };
    case O::kWhile:
      return [=](Sample& s) -> Example {
        Computation* condition = s.module().module().AddComputation("condition");
        TestModule::Param(condition, f);
        AddConstant(condition, PrimitiveType::kPred, 0);
        condition->set_root(condition->instructions().back());
        s.Calls(s.Op(op, f, {s.P(f)}), {s.Unary(O::kTanh, f), condition});
        return {"condition=%condition, body=%body", 128, 128, 512, 512};
      };
    case O::kConditional:
      return [=](Sample& s) -> Example {
        s.Calls(s.Op(op, f, {s.P(S32({})), s.P(f), s.P(f), s.P(f)}),
                {s.Unary(O::kTanh, f), s.Unary(O::kNegate, f), s.Unary(O::kAbs, f)});
        return {"branch_computations={%body,%body.1,%body.2}", 128, 128, 512, 512};
      };
    case O::kCall:
      return [=](Sample& s) -> Example {
        s.Calls(s.Op(op, f, {s.P(f)}), {s.Unary(O::kTanh, f)});
        return {"to_apply=%body", 128, 128, 512, 512};
      };
    case O::kFusion:
      return [=](Sample& s) -> Example {
        s.Calls(s.Op(op, f, {s.P(f)}), {s.Unary(O::kTanh, f)})
            ->mutable_attrs()
            .set_fusion_kind("kLoop");
        return {"kind=kLoop, calls=%body", 128, 128, 512, 512};
      };
    case O::kAsyncStart:
    case O::kAsyncUpdate:
    case O::kAsyncDone:
      return [=](Sample& s) -> Example {
        const Shape in_flight = MakeTupleShape({MakeTupleShape({f}), f, U32({})});
        Instruction* start =
            s.Calls(s.Op(O::kAsyncStart, in_flight, {s.P(f)}), {s.Unary(O::kTanh, f)});
        start->mutable_attrs().set_async_execution_thread("host");
        if (op == O::kAsyncStart) return {"async_execution_thread=\"host\"", 128, 128, 512, 512};
        s.Op(op, op == O::kAsyncUpdate ? in_flight : f, {start});
        return {name + "(%async-start)", 0, 0, 0, 0};
      };
    case O::kOptBarrier:
    case O::kDomain:
    case O::kCopy:
      return [=](Sample& s) -> Example {
        s.Op(op, f, {s.P(f)});
        const int64_t bytes = op == O::kCopy ? 512 : 0;
        return {op == O::kDomain ? "domain={kind=\"sharding\"" : name + "(%p)", 0, 0, bytes, bytes};
      };
    case O::kCopyStart:
    case O::kCopyDone:
      return [=](Sample& s) -> Example {
        Instruction* start = s.Op(O::kCopyStart, MakeTupleShape({f, f, U32({})}), {s.P(f)});
        start->mutable_attrs().set_cross_program_prefetch_index(1);
        if (op == O::kCopyStart) return {"cross_program_prefetch_index=1", 0, 0, 512, 512};
        s.Op(op, f, {start});
        return {"copy-done(%copy-start)", 0, 0, 0, 0};
      };
    case O::kAddDependency:
      return [=](Sample& s) -> Example {
        s.Op(op, f, {s.P(f), s.Token()});
        return {"add-dependency(%p, %after-all)", 0, 0, 0, 0};
      };
    case O::kAfterAll:
      return [=](Sample& s) -> Example {
        s.Op(op, kToken, {s.Token(), s.Token()});
        return {"token[]", 0, 0, 0, 0};
      };
    case O::kSend:
    case O::kSendDone:
    case O::kRecv:
    case O::kRecvDone:
      return [=](Sample& s) -> Example {
        const bool sends = op == O::kSend || op == O::kSendDone;
        const Shape in_flight = MakeTupleShape({f, U32({}), kToken});
        Instruction* start = sends ? s.Op(O::kSend, in_flight, {s.P(f), s.Token()})
                                   : s.Op(O::kRecv, in_flight, {s.Token()});
        start->mutable_attrs().set_channel_id(3);
        start->mutable_attrs().set_is_host_transfer(true);
        if (op == O::kSend) return {"is_host_transfer=true, channel_id=3", 0, 0, 512, 0};
        if (op == O::kRecv) return {"is_host_transfer=true, channel_id=3", 0, 0, 0, 512};
        s.Op(op, sends ? kToken : MakeTupleShape({f, kToken}), {start});
        return {name + "(", 0, 0, 0, 0};
      };
    case O::kInfeed:
      return [=](Sample& s) -> Example {
        s.Op(op, MakeTupleShape({f, kToken}), {s.Token()})->mutable_attrs().set_infeed_config("x");
        return {"infeed_config=\"x\"", 0, 0, 0, 512};
      };
    case O::kOutfeed:
      return [=](Sample& s) -> Example {
        s.Op(op, kToken, {s.P(f), s.Token()})->mutable_attrs().set_outfeed_config("x");
        return {"outfeed_config=\"x\"", 0, 0, 512, 0};
      };
    case O::kAllReduce:
    case O::kAllReduceStart:
    case O::kAllReduceDone:
      return [=](Sample& s) -> Example {
        const O first = op == O::kAllReduce ? op : O::kAllReduceStart;
        Instruction* start = s.Reduces(s.Op(first, f, {s.P(f)}));
        SetReplicaGroups(start, {{0, 1}, {2, 3}});
        if (op != O::kAllReduceDone) return {"replica_groups={{0,1},{2,3}}", 128, 0, 512, 512};
        s.Op(op, f, {start});
        return {"all-reduce-done(", 0, 0, 0, 0};
      };
    case O::kAllGather:
      return [=](Sample& s) -> Example {
        s.Op(op, F32({32, 16}), {s.P(f)}, {0})->mutable_attrs().set_channel_id(1);
        return {"channel_id=1", 0, 0, 512, 2048};
      };
    case O::kAllGatherStart:
    case O::kAllGatherDone:
      return [=](Sample& s) -> Example {
        const Shape out = F32({32, 16});
        Instruction* start = s.Op(O::kAllGatherStart, MakeTupleShape({f, out}), {s.P(f)}, {0});
        if (op == O::kAllGatherStart) return {"dimensions={0}", 0, 0, 512, 2048};
        s.Op(op, out, {start});
        return {"all-gather-done(", 0, 0, 0, 0};
      };
    case O::kReduceScatter:
      return [=](Sample& s) -> Example {
        s.Reduces(s.Op(op, F32({2, 16}), {s.P(f)}, {0}));
        return {"to_apply=%reducer", 128 - 32, 0, 512, 128};
      };
    case O::kAllToAll:
      return [=](Sample& s) -> Example {
        s.Op(op, MakeTupleShape({f, f}), {s.P(f), s.P(f)});
        return {"all-to-all(%p, %p.1)", 0, 0, 1024, 1024};
      };
    case O::kCollectiveBroadcast:
      return [=](Sample& s) -> Example {
        SetReplicaGroups(s.Op(op, f, {s.P(f)}), {{1, 0}});
        return {"replica_groups={{1,0}}", 0, 0, 512, 512};
      };
    case O::kCollectivePermute:
    case O::kCollectivePermuteStart:
    case O::kCollectivePermuteDone:
      return [=](Sample& s) -> Example {
        const bool async = op != O::kCollectivePermute;
        Instruction* start = async ? s.Op(O::kCollectivePermuteStart,
                                          MakeTupleShape({f, f, U32({}), U32({})}), {s.P(f)})
                                   : s.Op(op, f, {s.P(f)});
        SetSourceTargetPairs(start, {{0, 1}, {1, 0}});
        if (op != O::kCollectivePermuteDone) {
          return {"source_target_pairs={{0,1},{1,0}}", 0, 0, 512, 512};
        }
        s.Op(op, f, {start});
        return {"collective-permute-done(", 0, 0, 0, 0};
      };
    case O::kRaggedAllToAll:
      return [=](Sample& s) -> Example {
        Instruction* n = s.P(S32({4}));
        s.Op(op, F32({32, 16}), {s.P(f), s.P(F32({32, 16})), n, n, n, n});
        // The input and 4 x 16 bytes; at most all of the output.
        return {"ragged-all-to-all(", 0, 0, 512 + 64, 2048};
      };
    case O::kPartitionId:
    case O::kReplicaId:
      return [=](Sample& s) -> Example {
        s.Op(op, U32({}), {});
        return {name + "()", 0, 0, 0, 0};
      };
    case O::kParameter:
      return [=](Sample& s) -> Example {
        s.P(f);
        return {"parameter(0)", 0, 0, 0, 0};
      };
    case O::kConstant:
      return [=](Sample& s) -> Example {
        s.module().entry()->set_root(AddConstant(s.module().entry(), PrimitiveType::kF32, 0.5));
        return {"constant(0.5)", 0, 0, 0, 0};
      };
    case O::kTuple:
    case O::kGetTupleElement:
      return [=](Sample& s) -> Example {
        Instruction* tuple = s.Op(O::kTuple, MakeTupleShape({f, i}), {s.P(f), s.P(i)});
        if (op == O::kTuple) return {"tuple(%p, %p.1)", 0, 0, 0, 0};
        s.Op(op, i, {tuple})->mutable_attrs().set_tuple_index(1);
        return {"index=1", 0, 0, 0, 0};
      };
    case O::kCustomCall:
      return [=](Sample& s) -> Example {
        Instruction* call = s.Op(op, f, {s.P(f)});
        call->mutable_attrs().set_custom_call_target("tpu_custom_call");
        call->mutable_attrs().set_backend_config(
            R"({"custom_call_config":{"cost_estimate":{"flops":"900","transcendentals":12,)"
            R"("bytes_accessed":"2000"}}})");
        // Of 2000 bytes the 512 of the result are written.
        return {"custom_call_target=\"tpu_custom_call\"", 900, 12, 2000 - 512, 512};
      };
    default:
      break;
  }
  if (IsElementwise(op)) {
    const int64_t t = IsTranscendental(op) ? 1 : 0;
    if (OpcodeArity(op) == 1) return [=](Sample& s) { return Unary(s, op, f, f, t); };
    return [=](Sample& s) -> Example {
      s.Op(op, f, {s.P(f), s.P(f)});
      return {name + "(%p, %p.1)", 128, t * 128, 1024, 512};
    };
  }
  return nullptr;
}

}  // namespace
}  // namespace tpusim::hlo

#endif  // TPUSIM_TESTS_WORKLOADS_HLO_OPCODE_SAMPLES_H_
