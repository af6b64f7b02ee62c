#include "sim/results/report/producer.h"

#include <nlohmann/json.hpp>

namespace tpusim::results {

nlohmann::ordered_json HeadOf(std::string_view schema, const Producer& producer) {
  return {{"schema", std::string(schema)},
          {"tpusim_version", producer.version},
          {"command_line", producer.command_line}};
}

}  // namespace tpusim::results
