// Names that differ in numbers only, such as those of unrolled layers.
//
// "layers_3" and "layers_12" have the key "layers_#"; what they have in common is the pattern
// "layers_*". A number that all of them share stays: "conv2d_1" and "conv2d_2" are "conv2d_*".
#ifndef TPUSIM_SIM_RESULTS_REPORT_NAME_PATTERN_H_
#define TPUSIM_SIM_RESULTS_REPORT_NAME_PATTERN_H_

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

namespace tpusim::results {

// Returns the name with every number, and every `*` of a pattern, as '#'.
std::string NumberlessKey(std::string_view name);

// Names, or patterns, of one key.
class NamePattern {
 public:
  void Add(const std::string& name);
  const std::string& text() const { return text_; }
  int64_t members() const { return static_cast<int64_t>(names_.size()); }

 private:
  std::string text_;
  std::set<std::string> names_;
};

}  // namespace tpusim::results

#endif  // TPUSIM_SIM_RESULTS_REPORT_NAME_PATTERN_H_
