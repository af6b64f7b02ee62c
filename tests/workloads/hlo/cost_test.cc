#include "workloads/hlo/rules/cost.h"

#include "hlo_test_util.h"

namespace tpusim::hlo {
namespace {

using ::testing::HasSubstr;

struct Figures {
  int64_t flops, transcendentals, read, written;
  bool operator==(const Figures&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Figures& f) {
  return out << f.flops << " flops, " << f.transcendentals << " transcendentals, " << f.read
             << " read, " << f.written << " written";
}

class CostTest : public ::testing::Test {
 protected:
  static Figures Of(const Instruction* i) {
    const auto cost = CostOf(*i);
    EXPECT_TRUE(cost.ok()) << Message(cost.status());
    if (!cost.ok()) return {};
    return {cost->flops.value(), cost->transcendentals.value(), cost->bytes_read.value(),
            cost->bytes_written.value()};
  }
  Instruction* Param(std::vector<int64_t> dims, PrimitiveType type = PrimitiveType::kF32) {
    return t_.Param(MakeShape(type, std::move(dims)));
  }
  Instruction* Op(Opcode op, Shape own, std::vector<Instruction*> operands) {
    return t_.Add(op, std::move(own), std::move(operands));
  }
  TestModule t_;
};

TEST_F(CostTest, Elementwise) {
  Instruction* a = Param({8, 16});
  EXPECT_EQ(Of(Op(Opcode::kAdd, F32({8, 16}), {a, a})), (Figures{128, 0, 1024, 512}));
  EXPECT_EQ(Of(Op(Opcode::kTanh, F32({8, 16}), {a})), (Figures{128, 128, 512, 512}));
}

TEST_F(CostTest, Dot) {
  Instruction* dot =
      Op(Opcode::kDot, F32({4, 16, 8}),
         {Param({4, 16, 32}, PrimitiveType::kBf16), Param({4, 32, 8}, PrimitiveType::kBf16)});
  SetDotDims(dot, {{2}, {1}, {0}, {0}});
  // 2 * (4*16*8) * 32; 2 bytes * (2048 + 1024); 4 bytes * 512
  EXPECT_EQ(Of(dot), (Figures{32768, 0, 6144, 2048}));
}

TEST_F(CostTest, RaggedDotMeetsOneGroupPerRow) {
  const auto module = Load(DataFile("ragged_dot.pb"));
  const auto found = FindAll(*module, Opcode::kRaggedDot);
  ASSERT_EQ(found.size(), 1u);
  // bf16[128,64] x bf16[4,64,32]: 2 * 128 * 64 * 32, not times 4.
  // Reads 16384 + 16384 bytes and 4 sizes of 4 bytes.
  EXPECT_EQ(Of(found[0]), (Figures{524288, 0, 32784, 8192}));
}

TEST_F(CostTest, Convolution) {
  const auto module = Load(DataFile("convolution.pb"));
  const auto found = FindAll(*module, Opcode::kConvolution);
  ASSERT_EQ(found.size(), 1u);
  // f32[8,16,32,32] * f32[32,8,3,3] in 2 groups -> f32[8,32,16,32].
  // Rows: stride 2, pad 0_1: output o meets input rows 2o, 2o+1, 2o+2; only the
  // last one of output 15 is padding: 16*3 - 1 = 47.
  // Columns: dilation 2, pad 2_2: offsets -2, 0, 2: 30 + 32 + 30 = 92.
  // 2 * 47 * 92 * (8 batches * 32 outputs * 8 inputs of a group)
  EXPECT_EQ(Of(found[0]).flops, 2 * 47 * 92 * (8 * 32 * 8));
}

TEST_F(CostTest, ConvolutionOverADilatedInput) {
  // One dimension of 4 elements, dilated to 7 (3 holes), kernel 3, no padding:
  // 5 outputs at 0..4. Non-holes are the even positions. Output o sees o, o+1,
  // o+2: 2 of them are even for even o (3 outputs), 1 for odd o (2 outputs).
  Instruction* conv =
      Op(Opcode::kConvolution, F32({1, 1, 5}), {Param({1, 1, 4}), Param({1, 1, 3})});
  auto& n = *conv->mutable_attrs().mutable_convolution_dimension_numbers();
  n.set_input_feature_dimension(1);
  n.set_kernel_output_feature_dimension(1);
  n.set_output_feature_dimension(1);
  n.add_input_spatial_dimensions(2);
  n.add_kernel_spatial_dimensions(2);
  n.add_output_spatial_dimensions(2);
  SetWindow(conv, {{3, 1, 0, 0, 1, 2}});
  ASSERT_EQ(Message(Verify(t_.module())), "");
  EXPECT_EQ(Of(conv).flops, 2 * (3 * 2 + 2 * 1));
}

TEST_F(CostTest, Reductions) {
  Computation* add = t_.Reducer(Opcode::kAdd);
  Instruction* a = Param({10, 4});
  Instruction* zero = Param({});
  Instruction* reduce = Op(Opcode::kReduce, F32({4}), {a, zero});
  SetDimensions(reduce, {0});
  reduce->set_called({add});
  EXPECT_EQ(Of(reduce), (Figures{40 - 4, 0, 164, 16}));
  Instruction* window = Op(Opcode::kReduceWindow, F32({5, 4}), {a, zero});
  SetWindow(window, {{2, 2}, {3, 1, 1, 1}});
  window->set_called({add});
  EXPECT_EQ(Of(window), (Figures{20 * (6 - 1), 0, 164, 80}));
}

TEST_F(CostTest, RunningSumsCombineEveryElementOnce) {
  // As JAX writes cumsum: the window is as long as the dimension, and so is what is padded.
  Instruction* a = Param({8, 1000});
  Instruction* sums = Op(Opcode::kReduceWindow, F32({8, 1000}), {a, Param({})});
  SetWindow(sums, {{1, 1}, {1000, 1, 999, 0}});
  sums->set_called({t_.Reducer(Opcode::kAdd)});
  EXPECT_EQ(Of(sums), (Figures{8000, 0, 32004, 32000}));
  SetWindow(sums, {{1, 1}, {1000, 1, 0, 999}});  // from the end
  EXPECT_EQ(Of(sums), (Figures{8000, 0, 32004, 32000}));
}

TEST_F(CostTest, PiecesMoveOnlyThemselves) {
  Instruction* a = Param({1000, 4});
  Instruction* i = Param({}, PrimitiveType::kS32);
  EXPECT_EQ(Of(Op(Opcode::kSlice, F32({10, 4}), {a})), (Figures{0, 0, 160, 160}));
  EXPECT_EQ(Of(Op(Opcode::kDynamicSlice, F32({1, 4}), {a, i, i})), (Figures{0, 0, 16, 16}));
  EXPECT_EQ(Of(Op(Opcode::kDynamicUpdateSlice, F32({1000, 4}), {a, Param({2, 4}), i, i})),
            (Figures{0, 0, 32, 32}));
  // 8 rows of 4 and 8 indices.
  EXPECT_EQ(Of(Op(Opcode::kGather, F32({8, 4}), {a, Param({8}, PrimitiveType::kS32)})),
            (Figures{0, 0, 128 + 32, 128}));
  Instruction* scatter =
      Op(Opcode::kScatter, F32({1000, 4}), {a, Param({8}, PrimitiveType::kS32), Param({8, 4})});
  scatter->set_called({t_.Reducer(Opcode::kAdd)});
  // Reads the updates, the rows that they meet and the indices.
  EXPECT_EQ(Of(scatter), (Figures{32, 0, 128 + 128 + 32, 128}));
}

TEST_F(CostTest, WholeArraysMove) {
  Instruction* a = Param({8, 4});
  EXPECT_EQ(Of(Op(Opcode::kTranspose, F32({4, 8}), {a})), (Figures{0, 0, 128, 128}));
  EXPECT_EQ(Of(Op(Opcode::kBroadcast, F32({2, 8, 4}), {a})), (Figures{0, 0, 128, 256}));
  EXPECT_EQ(Of(Op(Opcode::kIota, S32({8}), {})), (Figures{0, 0, 0, 32}));
  for (Opcode op : {Opcode::kBitcast, Opcode::kOptBarrier, Opcode::kGetTupleElement}) {
    EXPECT_EQ(Of(Op(op, F32({8, 4}), {a})), (Figures{0, 0, 0, 0}));
  }
}

TEST_F(CostTest, SortFftAndSolvers) {
  Instruction* a = Param({4, 8, 8});
  // 256 elements, log2 = 8
  EXPECT_EQ(Of(Op(Opcode::kSort, F32({4, 8, 8}), {a})).flops, 256 * 8);
  Instruction* fft = Op(Opcode::kFft, MakeShape(PrimitiveType::kC64, {4, 64}),
                        {Param({4, 64}, PrimitiveType::kC64)});
  fft->mutable_attrs().add_fft_length(64);
  EXPECT_EQ(Of(fft).flops, 8 * 6 * 256);  // 2 * 4 * log2(64) per element
  EXPECT_EQ(Of(Op(Opcode::kCholesky, F32({4, 8, 8}), {a})).flops, 4 * 8 * 8 * 8 / 3);
  EXPECT_EQ(Of(Op(Opcode::kTriangularSolve, F32({4, 8, 3}), {a, Param({4, 8, 3})})).flops,
            4 * 8 * 8 * 3);
}

TEST_F(CostTest, Collectives) {
  Instruction* a = Param({8, 4});
  EXPECT_EQ(Of(Op(Opcode::kAllReduce, F32({8, 4}), {a})), (Figures{32, 0, 128, 128}));
  EXPECT_EQ(Of(Op(Opcode::kAllGather, F32({32, 4}), {a})), (Figures{0, 0, 128, 512}));
  Instruction* start =
      Op(Opcode::kAllGatherStart, MakeTupleShape({F32({8, 4}), F32({32, 4})}), {a});
  EXPECT_EQ(Of(start), (Figures{0, 0, 128, 512}));
  EXPECT_EQ(Of(Op(Opcode::kAllGatherDone, F32({32, 4}), {start})), (Figures{0, 0, 0, 0}));
}

// parameter 0 is only sliced, parameter 1 read whole; the result is an update in
// place of parameter 2.
TEST_F(CostTest, FusionReadsAndWritesItsBoundary) {
  Computation* body = t_.module().AddComputation("fused");
  Instruction* big = TestModule::Param(body, F32({1000, 4}));
  Instruction* row = TestModule::Param(body, F32({1, 4}));
  Instruction* target = TestModule::Param(body, F32({500, 4}));
  Instruction* i = TestModule::Param(body, S32({}));
  Instruction* slice = TestModule::Add(body, Opcode::kDynamicSlice, F32({1, 4}), {big, i, i});
  Instruction* sum = TestModule::Add(body, Opcode::kAdd, F32({1, 4}), {slice, row});
  TestModule::Add(body, Opcode::kDynamicUpdateSlice, F32({500, 4}), {target, sum, i, i});
  Instruction* fusion =
      Op(Opcode::kFusion, F32({500, 4}),
         {Param({1000, 4}), Param({1, 4}), Param({500, 4}), Param({}, PrimitiveType::kS32)});
  fusion->set_called({body});
  // 4 additions; 16 of the slice, 16 of the row, 0 of the target, 4 of the index.
  EXPECT_EQ(Of(fusion), (Figures{4, 0, 36, 16}));
}

TEST_F(CostTest, LoopsCountOnceAndBranchesTheMost) {
  Computation* small = t_.module().AddComputation("small");
  TestModule::Param(small, F32({4}));
  Computation* large = t_.module().AddComputation("large");
  TestModule::Add(large, Opcode::kTanh, F32({4}), {TestModule::Param(large, F32({4}))});
  Instruction* p = Param({4});
  Instruction* choice = Op(Opcode::kConditional, F32({4}), {Param({}, PrimitiveType::kPred), p, p});
  choice->set_called({small, large});
  EXPECT_EQ(Of(choice), (Figures{4, 4, 16, 16}));
  Instruction* loop = Op(Opcode::kWhile, F32({4}), {p});
  loop->set_called({large, small});
  EXPECT_EQ(Of(loop), (Figures{4, 4, 16, 16}));
}

// Two matrices of 5 x 5, as 6 x 6: eight sweeps of five rounds each. A round gives 36 elements
// three new values of three operations, and has three rotations with four roots and quotients.
TEST_F(CostTest, EigenvectorsTakeSweepsOfRotations) {
  Instruction* eigh = Op(Opcode::kCustomCall, MakeTupleShape({F32({2, 5, 5}), F32({2, 5})}),
                         {Param({2, 5, 5})});
  eigh->mutable_attrs().set_custom_call_target("Eigh");
  EXPECT_EQ(Of(eigh), (Figures{2 * 8 * 5 * (36 * 9 + 12), 2 * 8 * 5 * 12, 200, 200 + 40}));
  SetFrontendAttribute(eigh, "tpusim.assumed_trips", "4");
  EXPECT_EQ(Of(eigh), (Figures{2 * 4 * 5 * (36 * 9 + 12), 2 * 4 * 5 * 12, 200, 200 + 40}));
}

TEST_F(CostTest, NoRule) {
  Instruction* call = Op(Opcode::kCustomCall, F32({4}), {Param({4})});
  call->mutable_attrs().set_custom_call_target("tpu_custom_call");
  call->mutable_attrs().mutable_metadata()->set_source_file("k.py");
  call->mutable_attrs().mutable_metadata()->set_source_line(7);
  const absl::Status status = CostOf(*call).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(Message(status),
            "custom-call (k.py:7): custom call to 'tpu_custom_call' has no cost; give it with "
            "--kernel-cost custom-call=FLOPS,BYTES");
  EXPECT_EQ(Message(CostOf(*Op(Opcode::kScan, F32({4}), {call})).status()),
            "scan: no cost rule for scan");
}

TEST_F(CostTest, EveryExportedInstructionHasARule) {
  for (const std::string& file : CommittedExports()) {
    const auto module = Load(file);
    for (const Computation* c : module->computations()) {
      for (const Instruction* i : c->instructions()) {
        if (i->opcode() == Opcode::kCustomCall || !i->called().empty()) continue;
        EXPECT_TRUE(CostOf(*i).ok()) << file << ": " << Message(CostOf(*i).status());
      }
    }
  }
}

}  // namespace
}  // namespace tpusim::hlo
