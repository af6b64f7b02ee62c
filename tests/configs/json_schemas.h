// The texts of configs/chips/schema.json and configs/compilers/schema.json, made from the table of
// parameters.
#ifndef TPUSIM_TESTS_CONFIGS_JSON_SCHEMAS_H_
#define TPUSIM_TESTS_CONFIGS_JSON_SCHEMAS_H_

#include <string>

namespace tpusim::configs {

std::string ChipJsonSchema();
std::string CompilerJsonSchema();

}  // namespace tpusim::configs

#endif  // TPUSIM_TESTS_CONFIGS_JSON_SCHEMAS_H_
