#include "workloads/search/program_key.h"

#include <fmt/format.h>

#include <map>
#include <unordered_map>

#include "absl/hash/hash.h"

namespace tpusim::search {
namespace {

// Two hashes of 64 bits with seeds of their own: of millions of programs no two have both alike.
class Digest {
 public:
  template <typename T>
  void Add(const T& value) {
    first_ = absl::HashOf(first_, value);
    second_ = absl::HashOf(value, second_, kSecond);
  }
  std::string Text() const { return fmt::format("{:x}:{:x}", first_, second_); }

 private:
  static constexpr uint64_t kSecond = 0x9e3779b97f4a7c15;
  uint64_t first_ = 0, second_ = kSecond;
};

}  // namespace

std::string ProgramKey(const hlo::Module& module, const std::vector<int64_t>& device_of_partition) {
  Digest digest;
  digest.Add(device_of_partition);
  std::unordered_map<const hlo::Computation*, int64_t> computations;
  std::unordered_map<const hlo::Instruction*, int64_t> values;
  for (const hlo::Computation* computation : module.PostOrder()) {
    computations.emplace(computation, std::ssize(computations));
    for (const hlo::Instruction* i : computation->PostOrder()) {
      values.emplace(i, std::ssize(values));
      digest.Add(static_cast<int>(i->opcode()));
      digest.Add(i->shape().ToString());
      digest.Add(i->AttributeBytes());
      const auto& attributes = i->attrs().frontend_attributes().map();
      for (const auto& [name, value] :
           std::map<std::string, std::string>(attributes.begin(), attributes.end())) {
        digest.Add(name);
        digest.Add(value);
      }
      for (const hlo::Instruction* operand : i->operands()) digest.Add(values.at(operand));
      for (const hlo::Computation* called : i->called()) digest.Add(computations.at(called));
    }
    digest.Add(values.at(computation->root()));
  }
  return digest.Text();
}

}  // namespace tpusim::search
