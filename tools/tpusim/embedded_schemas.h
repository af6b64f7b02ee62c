// The files of tools/schemas as they were at build time.
#ifndef TPUSIM_TOOLS_TPUSIM_EMBEDDED_SCHEMAS_H_
#define TPUSIM_TOOLS_TPUSIM_EMBEDDED_SCHEMAS_H_

#include <string_view>
#include <vector>

namespace tpusim::tools {

struct EmbeddedSchema {
  std::string_view name;  // "report"
  std::string_view json;
};

// In the order of names.
const std::vector<EmbeddedSchema>& EmbeddedSchemas();

}  // namespace tpusim::tools

#endif  // TPUSIM_TOOLS_TPUSIM_EMBEDDED_SCHEMAS_H_
