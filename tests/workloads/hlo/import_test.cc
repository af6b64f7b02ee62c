// Containers, and files that are none.
#include "workloads/hlo/io/import.h"

#include <zlib.h>

#include <fstream>

#include "hlo_test_util.h"
#include "tests/temporary_folder.h"
#include "workloads/hlo/io/gzip.h"

namespace tpusim::hlo {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string Gzip(const std::string& bytes) {
  std::string out(compressBound(static_cast<uLong>(bytes.size())) + 64, '\0');
  z_stream stream = {};
  EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(out.size() - stream.avail_out);
  deflateEnd(&stream);
  return out;
}

std::string ModuleBytes() { return ReadBytes(DataFile("nested_loops.pb")); }

pb::HloModuleProto ModuleProto() {
  pb::HloModuleProto module;
  EXPECT_TRUE(module.ParseFromString(ModuleBytes()));
  return module;
}

std::string Container(const std::string& bytes) {
  const auto imported = Import(bytes, "w.pb");
  return imported.ok() ? imported->container : Message(imported.status());
}
std::string Error(const std::string& bytes) {
  const auto imported = Import(bytes, "w.pb");
  return imported.ok() ? "no error" : Message(imported.status());
}

TEST(ImportTest, EveryCommittedExport) {
  const std::vector<std::string> files = CommittedExports();
  EXPECT_GE(files.size(), 17u);
  for (const std::string& file : files) {
    const auto imported = ImportFile(file);
    EXPECT_TRUE(imported.ok()) << Message(imported.status());
  }
}

TEST(ImportTest, BareContainers) {
  EXPECT_EQ(Container(ModuleBytes()), "HloModuleProto");
  pb::HloProto hlo;
  *hlo.mutable_hlo_module() = ModuleProto();
  EXPECT_EQ(Container(hlo.SerializeAsString()), "HloProto");
  pb::HloSnapshot snapshot;
  *snapshot.mutable_hlo() = hlo;
  snapshot.set_execution_platform("tpu");
  EXPECT_EQ(Container(snapshot.SerializeAsString()), "HloSnapshot");
  pb::HloModuleProtoWithConfig with_config;
  *with_config.mutable_hlo_module() = ModuleProto();
  with_config.mutable_config()->set_num_partitions(16);
  const auto imported = Import(with_config.SerializeAsString(), "w.pb");
  ASSERT_TRUE(imported.ok()) << Message(imported.status());
  EXPECT_EQ(imported->container, "HloModuleProtoWithConfig");
  EXPECT_EQ(imported->num_partitions, 16);
}

TEST(ImportTest, HloProtoWithBufferAssignment) {
  pb::HloProto hlo;
  *hlo.mutable_hlo_module() = ModuleProto();
  // buffer_assignment is field 3, which the importer does not know.
  hlo.GetReflection()->MutableUnknownFields(&hlo)->AddLengthDelimited(3, "\x0a\x02hi");
  EXPECT_EQ(Container(hlo.SerializeAsString()), "HloProto");
}

TEST(ImportTest, Workload) {
  tpusim::Workload workload;
  workload.set_format("tpusim.workload/1");
  workload.set_hlo_module(ModuleBytes());
  workload.set_name("nested");
  workload.set_num_partitions(8);
  auto* axis = workload.add_mesh();
  axis->set_name("x");
  axis->set_size(8);
  const auto imported = Import(workload.SerializeAsString(), "w.pb");
  ASSERT_TRUE(imported.ok()) << Message(imported.status());
  EXPECT_EQ(imported->container, "Workload");
  EXPECT_EQ(imported->num_partitions, 8);
  EXPECT_EQ(imported->workload.name(), "nested");
  EXPECT_TRUE(imported->workload.hlo_module().empty());
  EXPECT_EQ(imported->module->name(), "jit_nested_loops");

  axis->set_size(4);
  EXPECT_EQ(Error(workload.SerializeAsString()),
            "w.pb: the mesh has 4 devices but num_partitions is 8");
  axis->set_size(0);
  EXPECT_EQ(Error(workload.SerializeAsString()), "w.pb: mesh axis 'x' has size 0");
  workload.clear_mesh();
  workload.add_coordinates();
  EXPECT_EQ(Error(workload.SerializeAsString()), "w.pb: 1 device coordinates for 8 partitions");
  workload.clear_coordinates();
  auto* trip_count = workload.add_trip_counts();
  trip_count->set_loop("while*");
  trip_count->set_count(-1);
  EXPECT_EQ(Error(workload.SerializeAsString()), "w.pb: trip count of loop 'while*' is -1");
  workload.clear_trip_counts();
  workload.set_hlo_module("");
  EXPECT_EQ(Error(workload.SerializeAsString()), "w.pb: the workload holds no HLO module");
  workload.set_hlo_module(ModuleBytes().substr(0, 3000));
  EXPECT_EQ(Error(workload.SerializeAsString()),
            "w.pb: the workload's HLO module does not parse: the file is cut short");
}

// Field 23 had the price of every kernel, and what was stated of some.
TEST(ImportTest, CostsOfAnEarlierExportAreNamed) {
  tpusim::Workload workload;
  workload.set_format("tpusim.workload/1");
  workload.set_hlo_module(ModuleBytes());
  const auto now = Import(workload.SerializeAsString(), "w.pb");
  ASSERT_TRUE(now.ok()) << Message(now.status());
  EXPECT_EQ(now->workload.assumptions_size(), 0);
  workload.GetReflection()->MutableUnknownFields(&workload)->AddLengthDelimited(23, "priced");
  const auto before = Import(workload.SerializeAsString(), "w.pb");
  ASSERT_TRUE(before.ok()) << Message(before.status());
  ASSERT_EQ(before->workload.assumptions_size(), 1);
  EXPECT_THAT(before->workload.assumptions(0), HasSubstr("earlier tpusim exported are not read"));
}

TEST(ImportTest, Gzip) {
  const std::string zipped = Gzip(ModuleBytes());
  EXPECT_EQ(Container(zipped), "HloModuleProto");
  EXPECT_EQ(Error(zipped.substr(0, zipped.size() / 2)), "w.pb: gzip data is truncated");
  std::string damaged = zipped;
  damaged[20] = static_cast<char>(damaged[20] ^ 0x55);
  damaged[40] = static_cast<char>(damaged[40] ^ 0x55);
  EXPECT_THAT(Error(damaged), StartsWith("w.pb: gzip data is "));
  EXPECT_EQ(Error(Gzip(zipped)), "w.pb: gzip inside gzip; unpack it first");
  // A second member, as `cat a.gz b.gz` makes.
  const std::string bytes = ModuleBytes();
  EXPECT_EQ(Container(Gzip(bytes.substr(0, 100)) + Gzip(bytes.substr(100))), "HloModuleProto");
}

TEST(ImportTest, GzipBombIsStoppedEarly) {
  // 300 MB of zeros in 300 kB: over the limit of 256 MiB.
  const std::string bomb = Gzip(std::string(300'000'000, '\0'));
  EXPECT_LT(bomb.size(), 600'000u);
  EXPECT_THAT(Error(bomb), AllOf(HasSubstr("inflates to more than 268435456 bytes"),
                                 HasSubstr("unpack it (gunzip): files are read up to 2 GiB")));
  // 30 MB of zeros in 30 kB are read: that they compress well is no fault.
  EXPECT_THAT(Error(Gzip(std::string(30'000'000, '\0'))), HasSubstr("no protocol buffer"));
  const auto small = Gunzip(Gzip("hello"), 4);
  EXPECT_FALSE(small.ok());
  EXPECT_EQ(*Gunzip(Gzip("hello"), 5), "hello");
}

TEST(ImportTest, Files) {
  EXPECT_THAT(Message(ImportFile("/no/such/file.pb").status()),
              StartsWith("/no/such/file.pb: No such file"));
  EXPECT_THAT(Message(ImportFile("/").status()),
              StartsWith("/: is a directory without a module of --xla_dump_to"));
}

TEST(ImportTest, FoldersOfDumps) {
  const TemporaryFolder temporary;
  const std::string folder = temporary.path();
  const auto write = [&](const std::string& name, const std::string& module) {
    std::ofstream(folder + "/" + name)
        << "HloModule " << module << "\nENTRY e {\n  ROOT p = f32[8] parameter(0)\n}\n";
  };
  const auto read = [&] { return ImportFile(folder); };
  write("module_0000.jit_f.before_optimizations.txt", "before");
  write("module_0000.jit_f.0001.cse.after_pipeline-start.before_dce.txt", "between");
  write("module_0000.jit_f.cpu_after_optimizations.txt", "of_a_cpu");
  EXPECT_EQ(read()->module->name(), "before");
  write("module_0001.jit_step.before_optimizations.txt", "a_larger_one");
  EXPECT_THAT(Message(read().status()),
              StartsWith(folder + ": has 2 modules, give one of them: " + folder +
                         "/module_0001.jit_step.before_optimizations.txt, "));
  write("module_0000.jit_f.after_optimizations.txt", "of_the_tpu_compiler");
  EXPECT_EQ(read()->module->name(), "of_the_tpu_compiler");
}

TEST(ImportTest, EmptyAndRandom) {
  EXPECT_THAT(Error(""), StartsWith("w.pb: the file is empty; expected a workload"));
  EXPECT_THAT(Error(std::string(100, '\xff')),
              StartsWith("w.pb: these bytes are no protocol buffer; expected"));
  EXPECT_THAT(Error(std::string(100, '\0')),
              StartsWith("w.pb: these bytes are no protocol buffer"));
}

TEST(ImportTest, TruncatedModules) {
  const std::string bytes = ModuleBytes();
  EXPECT_THAT(Error(bytes.substr(0, bytes.size() - 1)), HasSubstr("the file is cut short"));
  EXPECT_THAT(Error(bytes.substr(0, bytes.size() / 2)), HasSubstr("the file is cut short"));
  // Cut between computations: the rest parses, but the entry is missing.
  pb::HloModuleProto module = ModuleProto();
  module.mutable_computations()->RemoveLast();
  EXPECT_THAT(Error(module.SerializeAsString()), HasSubstr("is the file cut short?"));
}

TEST(ImportTest, OtherFormatsAreNamed) {
  const struct {
    std::string bytes;
    const char* what;
  } cases[] = {
      {std::string("ML\xefR\x0dStableHLO_v1.8.0", 21), "this is MLIR bytecode (StableHLO);"},
      {std::string("\x20\0\0\0flatbuffer", 14) + "ML\xefR", "this is a StableHLO artifact"},
      {"HloModule jit_f\n\nENTRY main { }", "line 3, column 7: main is empty"},
      {"// a comment\n/* another */\n  HloModule m",
       "line 3, column 14: a computation is expected here"},
      {"module @jit_f attributes {}",
       "this is MLIR text (StableHLO); `python -m tpusim.export"},
      {"func.func @main() {", "this is MLIR text (StableHLO);"},
      {"{\"schema\": 1}", "this is JSON;"},
      {"\x7f"
       "ELF\x02\x01\x01",
       "this is an ELF program or library;"},
      {"PK\x03\x04stuff", "this is a zip archive;"},
      {"<!DOCTYPE html>", "this is HTML or XML;"},
      {"import jax\n", "this is Python source;"},
      {"version https://git-lfs.github.com/spec/v1\n", "this is a Git LFS pointer"},
      // Perfetto: TracePackets in field 1.
      {std::string("\x0a\x04\x40\x80\x08\x01\x0a\x02\x40\x05", 10), "this looks like a trace"},
      // A proto without computations.
      {std::string("\x0a\x01m\x12\x04main", 9), "this protocol buffer holds no HLO computation;"},
  };
  for (const auto& [bytes, what] : cases) {
    EXPECT_THAT(Error(bytes), StartsWith(std::string("w.pb: ") + what));
  }
}

TEST(ImportTest, DeeplyNestedInputIsRefused) {
  // A tuple in a tuple in a tuple ...: protobuf stops at its recursion limit.
  std::string nested;
  for (int n = 0; n < 100000; ++n) {
    std::string length;
    for (size_t size = nested.size();; size >>= 7) {
      length += static_cast<char>((size & 0x7f) | (size > 0x7f ? 0x80 : 0));
      if (size <= 0x7f) break;
    }
    nested = "\x22" + length + nested;
    if (nested.size() > 20000) break;
  }
  pb::HloModuleProto module = ModuleProto();
  pb::HloInstructionProto& instruction = *module.mutable_computations(0)->mutable_instructions(0);
  instruction.GetReflection()->MutableUnknownFields(&instruction)->AddLengthDelimited(3, nested);
  EXPECT_THAT(Error(module.SerializeAsString()), StartsWith("w.pb: "));
}

// A module in the compiler's layouts that only moves data has no settings of kernels; one with kernels
// and without settings is not the compiler's.
TEST(ImportTest, TiledModulesThatOnlyMoveDataAreCompiled) {
  const std::string head =
      "HloModule m, is_scheduled=true\n\nENTRY %main {\n"
      "  %p = f32[8,128]{1,0:T(8,128)} parameter(0)\n";
  const auto copy = Import(
      head + "  %s = (f32[8,128]{1,0:T(8,128)S(5)}, f32[8,128]{1,0:T(8,128)}, u32[]{:S(2)}) "
             "copy-start(%p)\n  ROOT %d = f32[8,128]{1,0:T(8,128)S(5)} copy-done(%s)\n}\n",
      "m");
  ASSERT_TRUE(copy.ok()) << copy.status();
  EXPECT_TRUE(copy->compiled);
  const auto kernel =
      Import(head + "  ROOT %n = f32[8,128]{1,0:T(8,128)} negate(%p)\n}\n", "m");
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  EXPECT_FALSE(kernel->compiled);
}

}  // namespace
}  // namespace tpusim::hlo
