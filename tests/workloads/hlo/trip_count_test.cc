#include "hlo_test_util.h"
#include "workloads/hlo/analysis/loops.h"

namespace tpusim::hlo {
namespace {

// for (i = start; i <direction> limit; i += step) over the carry (i, n), where n
// may hold the limit.
class LoopBuilder {
 public:
  LoopBuilder() {
    const Shape carry = MakeTupleShape({S32({}), S32({})});
    body_ = t_.module().AddComputation("body");
    Instruction* p = TestModule::Param(body_, carry);
    index_ = Element(body_, p, 0);
    n_ = Element(body_, p, 1);
    condition_ = t_.module().AddComputation("condition");
    Instruction* q = TestModule::Param(condition_, carry);
    condition_index_ = Element(condition_, q, 0);
    condition_n_ = Element(condition_, q, 1);
    start_ = Constant(t_.entry(), 0);
    n_start_ = Constant(t_.entry(), 10);
    loop_ = t_.Add(Opcode::kWhile, carry, {t_.Add(Opcode::kTuple, carry, {start_, n_start_})});
    loop_->set_called({body_, condition_});
  }

  static Instruction* Constant(Computation* c, int64_t value) {
    return AddIntConstant(c, PrimitiveType::kS32, value);
  }
  static Instruction* Element(Computation* c, Instruction* tuple, int64_t index) {
    Instruction* i = TestModule::Add(c, Opcode::kGetTupleElement, S32({}), {tuple});
    i->mutable_attrs().set_tuple_index(index);
    return i;
  }
  void Step(Opcode op, std::vector<Instruction*> operands, Instruction* n = nullptr) {
    Instruction* next = TestModule::Add(body_, op, S32({}), std::move(operands));
    TestModule::Add(body_, Opcode::kTuple, MakeTupleShape({S32({}), S32({})}),
                    {next, n == nullptr ? n_ : n});
  }
  void Compare(Instruction* a, Instruction* b, const std::string& direction) {
    Instruction* compare = TestModule::Add(condition_, Opcode::kCompare, Pred(), {a, b});
    compare->mutable_attrs().set_comparison_direction(direction);
  }
  // Checks that the module is well-formed on the way.
  std::optional<int64_t> Count() {
    EXPECT_EQ(Message(Verify(t_.module())), "");
    return TripCount(*loop_);
  }

  TestModule t_;
  Computation *body_, *condition_;
  Instruction *index_, *n_, *condition_index_, *condition_n_, *start_, *n_start_, *loop_;
};

std::optional<int64_t> Counted(int64_t start, int64_t limit, int64_t step,
                               const std::string& direction) {
  LoopBuilder b;
  b.Step(Opcode::kAdd, {b.index_, LoopBuilder::Constant(b.body_, step)});
  b.Compare(b.condition_index_, LoopBuilder::Constant(b.condition_, limit), direction);
  *b.start_->mutable_attrs().mutable_literal() = MakeIntLiteral(PrimitiveType::kS32, start);
  return b.Count();
}

TEST(TripCountTest, Directions) {
  EXPECT_EQ(Counted(0, 8, 1, "LT"), 8);
  EXPECT_EQ(Counted(3, 17, 1, "LT"), 14);
  EXPECT_EQ(Counted(0, 10, 3, "LT"), 4);   // 0 3 6 9
  EXPECT_EQ(Counted(0, 9, 3, "LT"), 3);    // 0 3 6
  EXPECT_EQ(Counted(0, 9, 3, "LE"), 4);    // 0 3 6 9
  EXPECT_EQ(Counted(10, 0, -2, "GT"), 5);  // 10 8 6 4 2
  EXPECT_EQ(Counted(10, 0, -2, "GE"), 6);
  EXPECT_EQ(Counted(0, 12, 4, "NE"), 3);
  EXPECT_EQ(Counted(5, 5, 1, "EQ"), 1);
  EXPECT_EQ(Counted(8, 8, 1, "LT"), 0);
  EXPECT_EQ(Counted(9, 8, 1, "LT"), 0);
}

TEST(TripCountTest, LoopsThatNeverEndHaveNoCount) {
  EXPECT_EQ(Counted(0, 8, -1, "LT"), std::nullopt);
  EXPECT_EQ(Counted(0, 8, 0, "LT"), std::nullopt);
  EXPECT_EQ(Counted(0, 7, 2, "NE"), std::nullopt);  // jumps over 7
}

TEST(TripCountTest, ConstantOnTheLeftAndSubtraction) {
  LoopBuilder b;
  b.Step(Opcode::kSubtract, {b.index_, LoopBuilder::Constant(b.body_, -2)});
  b.Compare(LoopBuilder::Constant(b.condition_, 8), b.condition_index_, "GT");  // 8 > i
  EXPECT_EQ(b.Count(), 4);
  LoopBuilder c;
  c.Step(Opcode::kAdd, {LoopBuilder::Constant(c.body_, 2), c.index_});
  c.Compare(LoopBuilder::Constant(c.condition_, 8), c.condition_index_, "GE");
  EXPECT_EQ(c.Count(), 5);  // 0 2 4 6 8
}

TEST(TripCountTest, LimitCarriedThroughTheLoop) {
  LoopBuilder b;
  b.Step(Opcode::kAdd, {b.index_, LoopBuilder::Constant(b.body_, 1)});
  b.Compare(b.condition_index_, b.condition_n_, "LT");
  EXPECT_EQ(b.Count(), 10);  // the initial value of n
  // Not if the body changes it.
  LoopBuilder c;
  c.Step(Opcode::kAdd, {c.index_, LoopBuilder::Constant(c.body_, 1)}, c.index_);
  c.Compare(c.condition_index_, c.condition_n_, "LT");
  EXPECT_EQ(c.Count(), std::nullopt);
}

TEST(TripCountTest, StepCarriedThroughTheLoop) {
  LoopBuilder b;
  b.Step(Opcode::kAdd, {b.index_, b.n_});  // n is 10 and stays
  b.Compare(b.condition_index_, LoopBuilder::Constant(b.condition_, 25), "LT");
  EXPECT_EQ(b.Count(), 3);  // 0 10 20
}

TEST(TripCountTest, DataDecides) {
  LoopBuilder b;
  b.Step(Opcode::kAdd, {b.index_, LoopBuilder::Constant(b.body_, 1)});
  b.Compare(b.condition_index_, b.condition_n_, "LT");
  Instruction* data = b.t_.entry()->AddParameter(0, S32({}), "data");
  b.loop_->operand(0)->ReplaceOperand(1, data);
  EXPECT_EQ(b.Count(), std::nullopt);
  // The compiler's word is taken, in both notations.
  b.loop_->mutable_attrs().set_backend_config("{\"known_trip_count\":{\"n\":\"6\"}}");
  EXPECT_EQ(b.Count(), 6);
  b.loop_->mutable_attrs().set_backend_config("{\"known_trip_count\":{\"n\":7}}");
  EXPECT_EQ(b.Count(), 7);
  pb::WhileLoopBackendConfig config;
  config.mutable_known_trip_count()->set_n(5);
  b.loop_->mutable_attrs().set_backend_config(config.SerializeAsString());
  EXPECT_EQ(b.Count(), 5);
  for (const char* bad : {"{\"known_trip_count\":{\"n\":\"x\"}}", "{\"known_trip_count\":8}", "{",
                          "[1]", "garbage", "{\"n\":1}"}) {
    b.loop_->mutable_attrs().set_backend_config(bad);
    EXPECT_EQ(b.Count(), std::nullopt) << bad;
  }
}

std::vector<int64_t> CountsOf(const std::string& file) {
  std::vector<int64_t> counts;
  const std::unique_ptr<Module> module = Load(DataFile(file));  // lives as long as its loops
  for (const Instruction* loop : FindAll(*module, Opcode::kWhile)) {
    counts.push_back(TripCount(*loop).value_or(-1));
  }
  std::sort(counts.begin(), counts.end());
  return counts;
}

TEST(TripCountTest, Exports) {
  using ::testing::ElementsAre;
  EXPECT_THAT(CountsOf("nested_loops.pb"), ElementsAre(5, 7));
  EXPECT_THAT(CountsOf("data_loop.pb"), ElementsAre(-1));
  EXPECT_THAT(CountsOf("scan_gradient.pb"), ElementsAre(8, 8));
  EXPECT_THAT(CountsOf("scan_gradient_compiled.pb"), ElementsAre(8, 8));
}

// The compiler's known_trip_count agrees with what the loop's text says.
TEST(TripCountTest, AgreesWithTheCompiler) {
  const auto module = Load(DataFile("scan_gradient_compiled.pb"));
  for (Instruction* loop : FindAll(*module, Opcode::kWhile)) {
    ASSERT_THAT(loop->attrs().backend_config(), ::testing::HasSubstr("known_trip_count"));
    loop->mutable_attrs().clear_backend_config();
    EXPECT_EQ(TripCount(*loop), 8);
  }
}

}  // namespace
}  // namespace tpusim::hlo
