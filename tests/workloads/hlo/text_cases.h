// Modules in a file, each behind the line `// EXPECT: ` that says what a test expects of it.
#ifndef TPUSIM_TESTS_WORKLOADS_HLO_TEXT_CASES_H_
#define TPUSIM_TESTS_WORKLOADS_HLO_TEXT_CASES_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tests/workloads/hlo/hlo_test_util.h"
#include "workloads/hlo/io/text_parser.h"

namespace tpusim::hlo {

struct TextCase {
  std::string at;  // FILE:LINE
  std::string expected, text;
};

// Reads the cases of a file of the tree.
inline std::vector<TextCase> TextCases(const std::string& file) {
  constexpr std::string_view kMark = "// EXPECT: ";
  const std::string all = ReadBytes(std::string(TPUSIM_SOURCE_DIR) + "/tests/workloads/" + file);
  std::vector<TextCase> cases;
  for (size_t at = all.find(kMark); at != std::string::npos;) {
    const size_t line_end = all.find('\n', at), next = all.find(kMark, line_end);
    const auto line = 1 + std::count(all.begin(), all.begin() + static_cast<int64_t>(at), '\n');
    const size_t words = at + kMark.size();
    cases.push_back({file + ":" + std::to_string(line), all.substr(words, line_end - words),
                     "HloModule m\n" + all.substr(line_end, next - line_end)});
    at = next;
  }
  EXPECT_FALSE(cases.empty()) << file;
  return cases;
}

// Parses and verifies the text of a case.
inline std::unique_ptr<Module> ParsedCase(const TextCase& one) {
  absl::StatusOr<ParsedText> parsed = ParseHloText(one.text);
  EXPECT_TRUE(parsed.ok()) << one.at << ": " << parsed.status();
  return parsed.ok() ? std::move(parsed->module) : nullptr;
}

// Expects of every case the error of which it has a part, or none if it has "ok".
inline void ExpectErrors(const std::string& file) {
  for (const TextCase& one : TextCases(file)) {
    const std::string error = Message(ParseHloText(one.text).status());
    if (one.expected == "ok") {
      EXPECT_EQ(error, "") << one.at;
    } else {
      EXPECT_THAT(error, ::testing::HasSubstr(one.expected)) << one.at;
    }
  }
}

}  // namespace tpusim::hlo

#endif  // TPUSIM_TESTS_WORKLOADS_HLO_TEXT_CASES_H_
