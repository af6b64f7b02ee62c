// The compiler and the machine share the instruction set and the timing
// functions, never the simulation kernel: whoever embeds the compiler must not
// get SystemC with it. This executable links tpusim_workloads only, so what the
// loader mapped into it is what the compiler needs.
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <utility>

#include "workloads/compiler/session.h"
#include "workloads/hlo/io/import.h"

namespace {

bool IsMapped(const std::string& library) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find("/" + library) != std::string::npos) return true;
  }
  return false;
}

TEST(CompilerTest, DoesNotLoadSystemC) {
  // The whole pipeline is linked in, not only its header.
  auto imported = tpusim::hlo::Import(
      "HloModule m\n\nENTRY e {\n  ROOT a = f32[8]{0} parameter(0)\n}\n", "m.hlo");
  ASSERT_TRUE(imported.ok());
  tpusim::compiler::CompileOptions options;
  options.passes = "no such pass";
  EXPECT_FALSE(tpusim::compiler::Compile(*std::move(imported), {}, options).ok());
  // The compiler reads protos: the list does name libraries.
  ASSERT_TRUE(IsMapped("libprotobuf"));
  EXPECT_FALSE(IsMapped("libsystemc"));
}

}  // namespace
