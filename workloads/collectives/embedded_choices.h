// The rows of choices of configs/compilers as they were at build time.
#ifndef TPUSIM_WORKLOADS_COLLECTIVES_EMBEDDED_CHOICES_H_
#define TPUSIM_WORKLOADS_COLLECTIVES_EMBEDDED_CHOICES_H_

#include <string_view>
#include <vector>

namespace tpusim::collectives {

struct EmbeddedChoiceTable {
  std::string_view name;
  std::string_view json;
};

const std::vector<EmbeddedChoiceTable>& EmbeddedChoiceTables();

}  // namespace tpusim::collectives

#endif  // TPUSIM_WORKLOADS_COLLECTIVES_EMBEDDED_CHOICES_H_
