#include "workloads/hlo/io/text_parser.h"

#include "hlo_test_util.h"
#include "workloads/hlo/io/literal_text.h"

namespace tpusim::hlo {
namespace {

using ::testing::HasSubstr;

std::string ErrorOf(std::string_view text) { return Message(ParseHloText(text).status()); }

// One instruction in a module of its own.
std::string Entry(const std::string& lines) {
  return "HloModule m\n\nENTRY %main {\n" + lines + "}\n";
}

// Files: everything committed, and what JAX and XLA printed of their own.
class TextRoundTripTest : public ::testing::TestWithParam<std::string> {};

TEST_P(TextRoundTripTest, ReadsWhatThePrinterPrints) {
  const auto imported = ImportFile(GetParam());
  ASSERT_TRUE(imported.ok()) << imported.status();
  const std::string text = ToString(*imported->module);
  const auto parsed = ParseHloText(text);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(ToString(*parsed->module), text);
}

std::vector<std::string> AllFiles() {
  std::vector<std::string> files = CommittedExports();
  for (const auto& entry : std::filesystem::directory_iterator(DataFile("text"))) {
    if (entry.path().extension() == ".hlo") files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

INSTANTIATE_TEST_SUITE_P(Files, TextRoundTripTest, ::testing::ValuesIn(AllFiles()),
                         [](const auto& info) {
                           std::string name = std::filesystem::path(info.param).filename();
                           for (char& c : name) {
                             if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
                           }
                           return name;
                         });

TEST(TextParserTest, AttributesGoWhereTheAccessorsLook) {
  const auto parsed = ParseHloText(R"(HloModule m, is_scheduled=true, num_partitions=4

%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %sum = f32[] add(%a, %b)
}

ENTRY %main (p: bf16[8,16]) -> (f32[8], bf16[8,4]) {
  %p = bf16[8,16]{1,0:T(8,128)(2,1)S(1)} parameter(0), sharding={devices=[4,1,2]<=[8] last_tile_dim_replicate}
  %w = bf16[16,4]{0,1} parameter(1)
  %dot = bf16[8,4]{1,0} dot(bf16[8,16] %p, %w), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="f" source_file="f.py" source_line=7}
  %wide = f32[8,4] convert(%dot)
  %zero = f32[] constant(-0.5)
  %reduce = f32[8]{0} reduce(%wide, /*index=1*/%zero), dimensions={1}, to_apply=%add
  %all = f32[8]{0} all-reduce(%reduce), channel_id=3, replica_groups=[2,2]<=[4], use_global_device_ids=true, to_apply=%add, backend_config={"a":{"b":"}"}}
  ROOT %out = (f32[8]{0}, bf16[8,4]{1,0}) tuple(%all, %dot)
}
)");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->num_partitions, 4);
  const Module& module = *parsed->module;
  const std::vector<Instruction*>& order = module.entry()->schedule();
  ASSERT_EQ(order.size(), 8u);
  const Shape& p = order[0]->shape();
  EXPECT_EQ(p.layout.memory_space, kVmemSpace);
  EXPECT_EQ(p.layout.tiles, (std::vector<std::vector<int64_t>>{{8, 128}, {2, 1}}));
  EXPECT_TRUE(order[0]->attrs().sharding().replicate_on_last_tile_dim());
  EXPECT_EQ(order[1]->shape().layout.minor_to_major, (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(GetDotDims(*order[2]).lhs_contracting, (std::vector<int64_t>{1}));
  EXPECT_EQ(order[2]->SourceLocation(), "f.py:7");
  EXPECT_EQ(ScalarConstant(*order[4]), -0.5);
  EXPECT_EQ(order[5]->called()[0]->name(), "add");
  EXPECT_EQ(ReplicaGroups(*order[6], 4).value(),
            (std::vector<std::vector<int64_t>>{{0, 1}, {2, 3}}));
  EXPECT_EQ(order[6]->attrs().backend_config(), R"({"a":{"b":"}"}})");
  EXPECT_EQ(module.entry()->root(), order[7]);
  // Reducers have no order of their own.
  EXPECT_TRUE(order[5]->called()[0]->schedule().empty());
}

TEST(TextParserTest, ConstantsOfEveryKind) {
  const auto values = [](const std::string& shape, const std::string& text) {
    const auto parsed = ParseHloText(Entry("ROOT c = " + shape + " constant(" + text + ")\n"));
    EXPECT_TRUE(parsed.ok()) << shape << parsed.status();
    return RealElements(parsed->module->entry()->root()->attrs().literal());
  };
  EXPECT_EQ(values("f32[2,2]", "{ { 1, 2.5 }, /*i0=1*/{ -3, 4e3 } }"),
            (std::vector<double>{1, 2.5, -3, 4000}));
  EXPECT_EQ(values("pred[3]", "{1, false, true}"), (std::vector<double>{1, 0, 1}));
  EXPECT_EQ(values("s8[2]", "{-128, 127}"), (std::vector<double>{-128, 127}));
  EXPECT_EQ(values("u64[]", "18446744073709551615"), (std::vector<double>{-1}));
  EXPECT_EQ(values("bf16[]", "0.1"), (std::vector<double>{0.10009765625}));
  EXPECT_EQ(values("f16[]", "-inf"), (std::vector<double>{-INFINITY}));
  EXPECT_EQ(values("f8e4m3fn[2]", "{448, -0.0625}"), (std::vector<double>{448, -0.0625}));
  EXPECT_EQ(values("f32[0]", "{}"), (std::vector<double>{}));
  EXPECT_TRUE(std::isnan(values("f32[]", "nan")->front()));
  EXPECT_EQ(values("f32[100]", "{...}"), std::nullopt);
}

TEST(TextParserTest, NumbersAreTheSameAfterPrinting) {
  for (const double value : {0.1, 1.0 / 3, 1e-30, 16777217.0, 3.0}) {
    TestModule t;
    t.entry()->set_root(AddConstant(t.entry(), PrimitiveType::kF32, value));
    const auto parsed = ParseHloText(ToString(t.module()));
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(ScalarConstant(*parsed->module->entry()->root()), static_cast<float>(value));
  }
}

TEST(TextParserTest, AsynchronousFormsOfOperationsAreUnfolded) {
  const auto parsed = ParseHloText(Entry(R"(
  %p = f32[8]{0} parameter(0)
  %slice-start = ((f32[8]{0}), f32[4]{0:S(1)}, s32[]) slice-start(%p), slice={[0:4]}
  ROOT %slice-done = f32[4]{0:S(1)} slice-done(%slice-start)
)"));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  const Instruction* done = parsed->module->entry()->root();
  EXPECT_EQ(done->opcode(), Opcode::kAsyncDone);
  const Instruction& wrapped = WrappedBy(*done->operand(0));
  EXPECT_EQ(wrapped.opcode(), Opcode::kSlice);
  EXPECT_EQ(GetSlice(wrapped)[0].limit, 4);
}

// XLA prints tuple elements so since JAX 0.12.
TEST(TextParserTest, ElementsOfTuplesAreNamedWhereTheyAreUsed) {
  const auto parsed = ParseHloText(Entry(R"(
  %p = (f32[8], (s32[4], f32[2])) parameter(0)
  %a = f32[8] negate(%p#0)
  %b = f32[8] add(%p#0, %a)
  %c = f32[2] negate(%p#1#1)
  ROOT %t = (f32[8], f32[2], s32[4]) tuple(%b, %c, s32[4] %p#1#0)
)"));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  const Instruction& root = *parsed->module->entry()->root();
  const Instruction& sum = *root.operands()[0];
  const Instruction& first = *sum.operands()[0];
  EXPECT_EQ(first.opcode(), Opcode::kGetTupleElement);
  EXPECT_EQ(first.attrs().tuple_index(), 0);
  EXPECT_EQ(sum.operands()[1]->operands()[0], &first);
  const Instruction& inner = *root.operands()[2];
  EXPECT_EQ(inner.attrs().tuple_index(), 0);
  EXPECT_EQ(inner.operands()[0]->attrs().tuple_index(), 1);
  EXPECT_EQ(parsed->module->entry()->size(), 9U);
  const std::string text = ToString(*parsed->module);
  const auto again = ParseHloText(text);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(ToString(*again->module), text);

  const auto with = [](const std::string& operand) {
    return ErrorOf(Entry("  %p = (f32[8]) parameter(0)\n  %n = f32[8] negate(" + operand + ")\n"));
  };
  EXPECT_THAT(with("%p#1"), HasSubstr("p has no element '1'"));
  EXPECT_THAT(with("%p#0#0"), HasSubstr("p#0 has no element '0'"));
  EXPECT_THAT(with("%p#x"), HasSubstr("p has no element 'x'"));
  EXPECT_THAT(with("%q#0"), HasSubstr("q is no instruction that comes before"));
}

// Forms that XLA's parser takes and its printer never writes: people and tests do.
TEST(TextParserTest, HeadersEntriesAndNamesMayBeMissing) {
  for (const std::string_view text :
       {"add {\n  a = f32[] parameter(0)\n  ROOT n = f32[] negate(a)\n}\n",
        "// A comment first.\nENTRY %add { a = f32[] parameter(0) ROOT n = f32[] negate(a) }",
        "%add (a: f32[]) -> f32[] {\n  a = f32[] parameter(0)\n  n = f32[] negate(a)\n}\n"}) {
    EXPECT_TRUE(LooksLikeHloText(text)) << text;
    const auto parsed = ParseHloText(text);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(parsed->module->name(), "add");
    EXPECT_EQ(parsed->module->entry()->root()->opcode(), Opcode::kNegate);
  }
  for (const std::string_view text : {"module {\n}\n", "{\"a\": 1}", "\x0a\x03 add {", ""}) {
    EXPECT_FALSE(LooksLikeHloText(text)) << text;
  }
  // The last computation is the entry.
  const auto parsed = ParseHloText("HloModule m\nf { ROOT p = f32[] parameter(0) }\ng { ROOT q = "
                                   "s32[] parameter(0) }\n");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->module->entry()->name(), "g");
}

TEST(TextParserTest, OperandsMayBeOperationsAndShapesMayBeImplied) {
  const auto right = ParseHloText(Entry(R"(
  c = f32[2,3] parameter(0)
  p = compare(c, f32[2,3] broadcast(f32[] constant(4)), dimensions={}), direction=LT
  d = dot(c, transpose(c), dimensions={1,0}), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT t = tuple(pad(c, f32[] constant(0)), padding=0_1x0_0, p, d)
)"));
  ASSERT_TRUE(right.ok()) << right.status();
  EXPECT_EQ(right->module->entry()->root()->shape().ToString(),
            "(f32[3,3], pred[2,3], f32[2,2])");
  EXPECT_THAT(ErrorOf(Entry("  p = f32[2] parameter(0)\n  r = reshape(p)\n")),
              HasSubstr("line 5, column 3: the shape of reshape must be written"));
  EXPECT_THAT(ErrorOf(Entry("  p = f32[2] parameter(0)\n  r = add(p)\n")),
              HasSubstr("line 5, column 3: add: 1 operands, not 2"));
  std::string deep = "parameter(0)";
  for (int i = 0; i < 200; ++i) deep = "negate(f32[] " + deep + ")";
  EXPECT_THAT(ErrorOf(Entry("  n = f32[] " + deep + "\n")), HasSubstr("nested too deep"));
}

TEST(TextParserTest, ComputationsMayStandWhereTheyAreCalled) {
  const auto parsed = ParseHloText(Entry(R"(
  x = f32[8] parameter(0)
  zero = f32[] constant(0)
  ROOT sum = f32[] reduce(x, zero), dimensions={0}, to_apply={
    x = f32[] parameter(0)
    y = f32[] parameter(1)
    ROOT sum = f32[] add(x, y)
  }, metadata={op_name="s"}
)"));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  const Instruction& sum = *parsed->module->entry()->root();
  EXPECT_EQ(sum.called()[0]->root()->opcode(), Opcode::kAdd);
  EXPECT_EQ(sum.op_name(), "s");
  const auto again = ParseHloText(ToString(*parsed->module));
  ASSERT_TRUE(again.ok()) << again.status();
}

TEST(TextParserTest, OneValueFillsAConstant) {
  const auto parsed = ParseHloText(Entry("  c = f32[8,128] constant(3)\n"));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  const Instruction& root = *parsed->module->entry()->root();
  EXPECT_EQ(root.opcode(), Opcode::kBroadcast);
  EXPECT_EQ(ScalarConstant(*root.operand(0)), 3);
  EXPECT_THAT(ErrorOf(Entry("  c = f32[8,128] constant({3})\n")),
              HasSubstr("1 elements for f32[8,128]"));
}

TEST(TextParserTest, ShardingsSayWhoStatedThemAndWhatIsAlike) {
  const auto parsed = ParseHloText(
      "HloModule m, num_partitions=4\nENTRY e {\n"
      "  p = f32[8,4] parameter(0), sharding={devices=[4,1]0,1,2,3 metadata={op_name=\"a\"}}\n"
      "  q = f32[8] parameter(1), sharding={replicated shard_as 2}\n"
      "  ROOT t = (f32[8,4], f32[8]) tuple(p, q), sharding={{mesh['x'=4] replicated}, {devices=[4]"
      "<=[4] shard_like 7}}\n}\n");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  const std::string text = ToString(*parsed->module);
  EXPECT_THAT(text, HasSubstr("sharding={devices=[4,1]0,1,2,3}"));
  EXPECT_THAT(text, HasSubstr("sharding={replicated shard_as 2}"));
  EXPECT_THAT(text, HasSubstr("{devices=[4]<=[4] shard_like 7}"));
  const auto again = ParseHloText(text);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(ToString(*again->module), text);
}

TEST(TextParserTest, KeysOfFrontendAttributesThatAreNoWordsAreQuoted) {
  // The order of what is printed is that of the bytes: 'x' 0xec comes after 'x' 'b'.
  const std::string bytes =
      "HloModule m, frontend_attributes={x\xec"
      "a=1, xb=2, \"a,b={\\\"}\"=\"3\"}\n\nENTRY %e {\n  ROOT %p = f32[] parameter(0)\n}\n";
  const auto parsed = ParseHloText(bytes);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  const auto& map = parsed->module->fields().frontend_attributes().map();
  EXPECT_EQ(map.at("x\xec"
                   "a"),
            "1");
  EXPECT_EQ(map.at("a,b={\"}"), "3");
  const std::string text = ToString(*parsed->module);
  EXPECT_THAT(text, HasSubstr(R"({"a,b={\"}"="3",xb="2","x\xeca"="1"})"));
  const auto again = ParseHloText(text);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->module->fields().frontend_attributes().map().at("x\xec"
                                                                   "a"),
            "1");
  EXPECT_EQ(ToString(*again->module), text);
}

TEST(TextParserTest, ErrorsSayWhere) {
  EXPECT_THAT(ErrorOf("HloModule m\n\nENTRY %main {\n  %p = f33[2] parameter(0)\n}\n"),
              HasSubstr("line 4, column 8: there is no element type 'f33'"));
  EXPECT_THAT(ErrorOf(Entry("  %n = f32[] negate(%x)\n")),
              HasSubstr("line 4, column 21: x is no instruction that comes before"));
  EXPECT_THAT(ErrorOf(Entry("  %n = f32[] frobnicate()\n")),
              HasSubstr("line 4, column 14: unknown opcode 'frobnicate'"));
  EXPECT_THAT(ErrorOf(Entry("  %n = f32[] constant(1), colour=red\n")),
              HasSubstr("line 4, column 27: there is no attribute 'colour'"));
  EXPECT_THAT(ErrorOf(Entry("  %n = f32[2] constant({1})\n")),
              HasSubstr("line 4, column 24: 1 elements for f32[2]"));
  EXPECT_THAT(ErrorOf(Entry("  %n = f32[] call(), to_apply=%f\n")),
              HasSubstr("line 4, column 31: f is no computation that comes before"));
  EXPECT_THAT(ErrorOf(Entry("  %p = f32[2 parameter(0)\n")), HasSubstr("']' is expected here"));
  EXPECT_THAT(ErrorOf("HloModule m\n"), HasSubstr("a computation is expected here"));
  EXPECT_THAT(ErrorOf(Entry("  %p = f32[] parameter(0)\n  %p = f32[] parameter(1)\n")),
              HasSubstr("a second instruction is called p"));
  EXPECT_THAT(ErrorOf(Entry("  %p = f32[<=8] parameter(0)\n")), HasSubstr("dynamic dimension"));
  EXPECT_THAT(ErrorOf("HloModule m\nENTRY %main {\n"), HasSubstr("main does not end"));
  // The verifier looks at it as at any module.
  EXPECT_THAT(ErrorOf(Entry("  %p = f32[2] parameter(0)\n  %n = f32[3] negate(%p)\n")),
              HasSubstr("its shape is f32[3]"));
}

TEST(TextParserTest, NamesEndBeforeBracketsAndQuotes) {
  // Else the parameter's name would open a bracket in the line of the computation that is printed.
  EXPECT_THAT(ErrorOf(Entry("  %p[ = f32[] parameter(0)\n")),
              HasSubstr("line 4, column 5: '=' is expected here, not '[ = f32[]"));
  EXPECT_THAT(ErrorOf(Entry("  %p\" = f32[] parameter(0)\n")), HasSubstr("line 4, column 5"));
}

TEST(TextParserTest, DeepNestingIsAnError) {
  EXPECT_THAT(ErrorOf(Entry("%p = " + std::string(100000, '(') + " parameter(0)\n")),
              HasSubstr("nested too deep"));
  EXPECT_THAT(ErrorOf(Entry("%p = f32[] parameter(0), sharding=" + std::string(100000, '{'))),
              HasSubstr("nested too deep"));
}

// Cut anywhere, a text is an error or a module, never a crash.
TEST(TextParserTest, EveryPrefixIsHandled) {
  const std::string text = ReadBytes(DataFile("text/collectives.hlo"));
  for (size_t n = 0; n < text.size(); ++n) (void)ParseHloText(text.substr(0, n));
}

// Bytes of texts changed, dropped and doubled: errors or modules, never a crash.
TEST(TextParserTest, MutationsAreHandled) {
  uint32_t state = 1;
  const auto random = [&](size_t below) {
    state = state * 1664525 + 1013904223;
    return static_cast<size_t>(state >> 8) % below;
  };
  constexpr std::string_view kBytes = "{}()[]=,%\"-0193:x<fsT \n";
  for (const char* file : {"text/operations.hlo", "text/collectives_compiled.hlo"}) {
    const std::string text = ReadBytes(DataFile(file));
    int modules = 0;
    for (int n = 0; n < 400; ++n) {
      std::string mutated = text;
      for (size_t times = 1 + random(3); times > 0; --times) {
        const size_t at = random(mutated.size() - 8), length = random(8);
        switch (random(3)) {
          case 0:
            mutated[at] = kBytes[random(kBytes.size())];
            break;
          case 1:
            mutated.erase(at, length);
            break;
          default:
            mutated.insert(at, mutated.substr(random(mutated.size() - 8), length));
        }
      }
      const auto parsed = ParseHloText(mutated);
      if (!parsed.ok()) continue;
      ++modules;
      const std::string printed = ToString(*parsed->module);
      const auto again = ParseHloText(printed);
      ASSERT_TRUE(again.ok()) << again.status();
      EXPECT_EQ(ToString(*again->module), printed);
    }
    EXPECT_GT(modules, 10);
  }
}

TEST(TextParser, LargeConstantsSurviveWhereTheyAreWritten) {
  std::string numbers;
  for (int n = 0; n < 20; ++n) numbers += (n > 0 ? ", " : "") + std::to_string(n * n);
  const std::string text = "HloModule m\nENTRY e {\n  a = s32[4,5]{0,1} constant({" + numbers +
                           "})\n  b = c64[2]{0} constant({(1, -2), (0.5, 3)})\n"
                           "  ROOT t = (s32[4,5]{0,1}, c64[2]{0}) tuple(a, b)\n}\n";
  const ParsedText parsed = ParseHloText(text).value();
  EXPECT_TRUE(CheckConstantsHaveValues(*parsed.module).ok());
  const std::string whole = ToString(*parsed.module, {.large_constants = true});
  EXPECT_THAT(whole, ::testing::HasSubstr("constant({" + numbers + "})"));
  EXPECT_THAT(whole, ::testing::HasSubstr("constant({(1, -2), (0.5, 3)})"));
  EXPECT_EQ(ToString(*ParseHloText(whole).value().module, {.large_constants = true}), whole);
  // Modules do not know for how many partitions they are; their text may say it.
  EXPECT_EQ(ParseHloText(whole).value().num_partitions, 0);
  const std::string said = ToString(*parsed.module, {.num_partitions = 4});
  EXPECT_EQ(ParseHloText(said).value().num_partitions, 4);

  const std::string elided = ToString(*parsed.module);
  EXPECT_THAT(elided, ::testing::HasSubstr("constant({...})"));
  EXPECT_THAT(Message(CheckConstantsHaveValues(*ParseHloText(elided).value().module)),
              ::testing::AllOf(::testing::HasSubstr("a has no value"),
                               ::testing::HasSubstr("--print-large-constants")));
}

}  // namespace
}  // namespace tpusim::hlo
