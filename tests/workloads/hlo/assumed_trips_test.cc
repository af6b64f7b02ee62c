#include "workloads/hlo/rules/assumed_trips.h"

#include "fmt/format.h"
#include "hlo_test_util.h"
#include "workloads/hlo/analysis/loops.h"
#include "workloads/hlo/io/text_parser.h"

namespace tpusim::hlo {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Returns what is assumed of the only loop of a program.
std::optional<AssumedTrips> Assumed(const std::string& text) {
  auto parsed = ParseHloText(text);
  EXPECT_TRUE(parsed.ok()) << Message(parsed.status());
  EXPECT_EQ(Message(Verify(*parsed->module)), "");
  SetAssumedTrips(*parsed->module,
                  [](const Instruction& loop) { return TripCount(loop).has_value(); });
  return AssumedTripsOf(*FindAll(*parsed->module, Opcode::kWhile).at(0));
}

// A counter from `start` that runs while it is less than `limit` and a flag is set, both of
// `batch`; {} or {4}.
std::string Halley(int start, int limit, const std::string& scope, const std::string& batch = "") {
  const std::string reduced = R"(
  no = pred[] constant(false)
  ROOT any = pred[] reduce(go, no), dimensions={0}, to_apply=or)";
  const std::string s32 = "s32[" + batch + "]", pred = "pred[" + batch + "]";
  return fmt::format(R"(HloModule m
or {{
  a = pred[] parameter(0)
  b = pred[] parameter(1)
  ROOT o = pred[] or(a, b)
}}
condition {{
  p = ({0}, {1}) parameter(0)
  k = {0} get-tuple-element(p), index=0
  flag = {1} get-tuple-element(p), index=1
  c = s32[] constant({2})
  limit = {0} broadcast(c), dimensions={{}}
  below = {1} compare(k, limit), direction=LT
  {6}go = {1} and(flag, below){5}
}}
body {{
  q = ({0}, {1}) parameter(0)
  i = {0} get-tuple-element(q), index=0
  f = {1} get-tuple-element(q), index=1
  c1 = s32[] constant(1)
  one = {0} broadcast(c1), dimensions={{}}
  next = {0} add(i, one)
  ROOT r = ({0}, {1}) tuple(next, f)
}}
ENTRY main {{
  flags = {1} parameter(0)
  s = s32[] constant({3})
  start = {0} broadcast(s), dimensions={{}}
  init = ({0}, {1}) tuple(start, flags)
  ROOT w = ({0}, {1}) while(init), condition=condition, body=body, metadata={{op_name="{4}"}}
}}
)",
                     s32, pred, limit, start, scope, batch.empty() ? "" : reduced,
                     batch.empty() ? "ROOT " : "");
}

// Eight in all, of which `start` are loops of their own; no more than the loop allows.
TEST(AssumedTripsTest, Qdwh) {
  const std::string scope = "jit(f)/jit(svd)/jit(_svd_tall_and_square_input)/jit(qdwh)/while";
  const auto trips = Assumed(Halley(4, 10, scope));
  ASSERT_TRUE(trips.has_value());
  EXPECT_EQ(trips->count, 4);
  EXPECT_EQ(trips->most, 6);
  EXPECT_THAT(trips->of_branches, IsEmpty());
  EXPECT_EQ(trips->sentence,
            "runs 4 times, as QDWH is assumed to need 8 iterations, 4 of them before");
  EXPECT_EQ(Assumed(Halley(0, 10, scope))->count, 8);
  EXPECT_EQ(Assumed(Halley(9, 10, scope))->count, 0);
  const auto few = Assumed(Halley(4, 5, scope));
  EXPECT_EQ(few->count, 1);
  EXPECT_EQ(few->sentence, "runs once, the most that it can");
  const auto batch = Assumed(Halley(4, 10, "jit(f)/vmap(jit(svd))/vmap(jit(qdwh))/while", "4"));
  ASSERT_TRUE(batch.has_value());
  EXPECT_EQ(batch->count, 4);
  EXPECT_EQ(batch->most, 6);
}

TEST(AssumedTripsTest, OthersHaveNone) {
  for (const char* scope : {"jit(f)/while", "jit(f)/jit(qdwh)/while/body/while", "while", "",
                            "jit(qdwh)/jit(f)/while", "jit(qdwh)/while/body/add",
                            "jit(my_qdwh)/while", "jit(f)/jit(svd)/while"}) {
    EXPECT_FALSE(Assumed(Halley(4, 10, scope)).has_value()) << scope;
  }
}

// A loop whose body takes one of `buckets.size()` branches.
std::string Blocks(const std::vector<int>& buckets) {
  std::string branches, names, operands;
  for (size_t b = 0; b < buckets.size(); ++b) {
    branches += fmt::format(R"(b{0} {{
  x{0} = s32[] parameter(0)
  ROOT c{0} = s32[] copy(x{0})
}}
)",
                            b);
    names += fmt::format("{}b{}", b == 0 ? "" : ",", b);
    operands += ", n";
  }
  return fmt::format(R"(HloModule m
{0}condition {{
  p = (s32[], s32[]) parameter(0)
  left = s32[] get-tuple-element(p), index=0
  none = s32[] constant(0)
  ROOT go = pred[] compare(left, none), direction=NE
}}
body {{
  q = (s32[], s32[]) parameter(0)
  n = s32[] get-tuple-element(q), index=0
  size = s32[] get-tuple-element(q), index=1
  sizes = s32[{4}] constant({{{3}}})
  of = s32[1] dynamic-slice(sizes, n), dynamic_slice_sizes={{1}}
  which = s32[] reshape(of)
  after = s32[] conditional(which{2}), branch_computations={{{1}}}
  ROOT r = (s32[], s32[]) tuple(after, size)
}}
ENTRY main {{
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  init = (s32[], s32[]) tuple(a, b)
  ROOT w = (s32[], s32[]) while(init), condition=condition, body=body,
    metadata={{op_name="jit(f)/jit(_eigh_work)/while"}}
}}
)",
                     branches, names, operands, fmt::join(buckets, ", "), buckets.size());
}

TEST(AssumedTripsTest, BlocksHalve) {
  // 1 of 1024 rows, 2 of 512 in the bucket of 544, 4 of 256 by Jacobi's method.
  const auto trips = Assumed(Blocks({256, 1024, 544, 288}));
  ASSERT_TRUE(trips.has_value());
  EXPECT_EQ(trips->count, 7);
  EXPECT_EQ(trips->most, std::nullopt);
  EXPECT_THAT(trips->of_branches, ElementsAre(4, 1, 2, 0));
  EXPECT_THAT(trips->sentence, HasSubstr("runs 7 times, as every split is assumed to halve"));
  // 300, then twice 150.
  EXPECT_THAT(Assumed(Blocks({256, 300}))->of_branches, ElementsAre(2, 1));
  // 600, twice 300 in the bucket of 320, four times 150.
  EXPECT_THAT(Assumed(Blocks({256, 600, 320}))->of_branches, ElementsAre(4, 1, 2));
  // Not of this form: as many as elsewhere.
  EXPECT_EQ(Assumed(Blocks({512, 256}))->count, 8);
}

TEST(AssumedTripsTest, SubspacesTurnOnce) {
  const auto trips = Assumed(
      Halley(1, 2, "jit(f)/jit(_eigh_work)/while/body/cond/branch_1_fun/cond/branch_0_fun/while"));
  ASSERT_TRUE(trips.has_value());
  EXPECT_EQ(trips->count, 1);
  EXPECT_EQ(trips->most, 1);
}

// The flag that the body clears; a function of the user's may be called svd as well.
TEST(AssumedTripsTest, RepairsHappenOnce) {
  const auto of = [](const std::string& scope, const std::string& condition) {
    return Assumed(fmt::format(R"(HloModule m
condition {{
  p = (pred[], f32[8]) parameter(0)
  x = f32[8] get-tuple-element(p), index=1
  fine = pred[] get-tuple-element(p), index=0
  ROOT go = pred[] {1}
}}
body {{
  q = (pred[], f32[8]) parameter(0)
  y = f32[8] get-tuple-element(q), index=1
  yes = pred[] constant(true)
  ROOT r = (pred[], f32[8]) tuple(yes, y)
}}
ENTRY main {{
  a = pred[] parameter(0)
  b = f32[8] parameter(1)
  init = (pred[], f32[8]) tuple(a, b)
  ROOT w = (pred[], f32[8]) while(init), condition=condition, body=body,
    metadata={{op_name="{0}"}}
}}
)",
                               scope, condition));
  };
  EXPECT_EQ(of("jit(f)/jit(svd)/jit(svd)/while", "not(fine)")->count, 1);
  EXPECT_EQ(of("jit(svd)/jit(_svd_tall_and_square_input)/while", "copy(fine)")->most, 1);
  EXPECT_FALSE(of("jit(f)/jit(svd)/while", "xor(fine, fine)").has_value());
  EXPECT_FALSE(of("jit(f)/while", "not(fine)").has_value());
}

bool NoLoop(const Instruction&) { return false; }

TEST(AssumedTripsTest, SweepsOfEigh) {
  TestModule m;
  Instruction* x = m.Param(F32({64, 64}));
  Instruction* eigh = m.Add(Opcode::kCustomCall, MakeTupleShape({F32({64, 64}), F32({64})}), {x});
  eigh->mutable_attrs().set_custom_call_target("Eigh");
  EXPECT_EQ(SweepsOf(*eigh), 8);
  SetAssumedTrips(m.module(), NoLoop);
  EXPECT_EQ(AssumedTripsOf(*eigh)->most, 100);
  SetSweeps(eigh, 6);
  EXPECT_EQ(SweepsOf(*eigh), 6);
  // What a file says stays.
  SetAssumedTrips(m.module(), NoLoop);
  EXPECT_EQ(SweepsOf(*eigh), 6);
  // Unless it says nothing.
  SetFrontendAttribute(eigh, "tpusim.assumed_trips", "6,x");
  EXPECT_EQ(SweepsOf(*eigh), 8);
}

}  // namespace
}  // namespace tpusim::hlo
