// Scope paths in op_name metadata: "jit(f)/layer/dot_general" is the primitive
// dot_general in the scopes jit(f) and, inside it, layer. A slash inside
// parentheses does not separate ("transpose(jvp(a/b))" is one component).
#ifndef TPUSIM_SIM_RESULTS_REPORT_SCOPE_H_
#define TPUSIM_SIM_RESULTS_REPORT_SCOPE_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace tpusim::results {

// Scopes nested deeper are cut off: every scope has a row in tables, named with those around it.
inline constexpr size_t kMostScopes = 64;

// Returns the components without the last one, outermost first; at most kMostScopes.
inline std::vector<std::string> ScopesOf(std::string_view op_name) {
  std::vector<std::string> parts;
  std::string part;
  int depth = 0;
  for (const char c : op_name) {
    if (c == '(') ++depth;
    if (c == ')') --depth;
    if (c == '/' && depth <= 0) {
      if (!part.empty()) parts.push_back(part);
      part.clear();
      if (parts.size() == kMostScopes) break;
    } else {
      part += c;
    }
  }
  return parts;
}

// "a/b" of {"a", "b"}.
inline std::string ScopeText(const std::vector<std::string>& scopes) {
  std::string text;
  for (const std::string& scope : scopes) text += (text.empty() ? "" : "/") + scope;
  return text;
}

}  // namespace tpusim::results

#endif  // TPUSIM_SIM_RESULTS_REPORT_SCOPE_H_
