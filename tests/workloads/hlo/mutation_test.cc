// Damaged files: any answer is right but a crash, a hang or a sanitizer report.
#include <random>

#include "hlo_test_util.h"
#include "workloads/hlo/analysis/loops.h"
#include "workloads/hlo/rules/cost.h"

namespace tpusim::hlo {
namespace {

std::string Mutated(const std::string& bytes, std::mt19937* random) {
  const auto pick = [&](size_t n) { return static_cast<size_t>((*random)() % n); };
  std::string mutated = bytes;
  switch (pick(4)) {
    case 0:
      mutated.resize(pick(mutated.size()));
      break;
    case 1:  // a few bytes
      for (size_t n = pick(8) + 1; n > 0; --n) {
        mutated[pick(mutated.size())] = static_cast<char>((*random)());
      }
      break;
    case 2:  // one bit: likely to stay well-formed
      mutated[pick(mutated.size())] ^= static_cast<char>(1 << pick(8));
      break;
    default: {  // a piece moves over another
      const size_t length = std::min<size_t>(pick(64) + 1, mutated.size());
      const size_t from = pick(mutated.size() - length + 1);
      mutated.replace(pick(mutated.size() - length + 1), length, mutated.substr(from, length));
    }
  }
  return mutated;
}

// Runs everything that reads a verified module: it must survive what is accepted.
void Exercise(const Module& module) {
  EXPECT_FALSE(ToString(module).empty());
  EXPECT_TRUE(FromProto(ToProto(module)).ok());
  for (const Computation* c : module.computations()) {
    for (const Instruction* i : c->instructions()) {
      CostOf(*i).ok();
      TripCount(*i);
      if (IsCollective(i->opcode())) ReplicaGroups(*i, 8).ok();
    }
  }
}

TEST(MutationTest, TwoThousandDamagedExportsReturnAStatus) {
  std::vector<std::string> files;
  for (const std::string& file : CommittedExports()) {
    if (std::filesystem::file_size(file) < 20000) files.push_back(ReadBytes(file));
  }
  ASSERT_FALSE(files.empty());
  std::mt19937 random(20240607);
  int accepted = 0;
  int refused = 0;
  for (int n = 0; n < 2000; ++n) {
    const std::string bytes = Mutated(files[random() % files.size()], &random);
    const auto imported = Import(bytes, "mutated.pb");
    if (imported.ok()) {
      ++accepted;
      Exercise(*imported->module);
    } else {
      ++refused;
      EXPECT_EQ(Message(imported.status()).substr(0, 12), "mutated.pb: ");
    }
  }
  // Both happen: truncation is refused, a bit in a name is not noticed.
  EXPECT_GT(accepted, 100);
  EXPECT_GT(refused, 500);
}

}  // namespace
}  // namespace tpusim::hlo
