// Bodies of kernels for tests, which are the fuzzers' seeds (tests/fuzz/make_seeds.py has their
// programs) or made by hand, and a chip.
#ifndef TPUSIM_TESTS_WORKLOADS_MOSAIC_MOSAIC_TEST_UTIL_H_
#define TPUSIM_TESTS_WORKLOADS_MOSAIC_MOSAIC_TEST_UTIL_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "configs/chip_file.h"
#include "configs/instructions.h"
#include "workloads/mosaic/module.h"

namespace tpusim::mosaic {

inline std::string BodyBytes(const std::string& name) {
  const std::string path = std::string(TPUSIM_SOURCE_DIR) + "/tests/fuzz/seeds/" + name + ".mosaic";
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

inline const configs::ChipParams& V5e() {
  static const configs::ChipFile* const file =
      new configs::ChipFile(configs::LoadChip("v5e", "").value());
  return file->chip;
}

// Operations that are made by hand, in one block.
class HandMade : public ::testing::Test {
 protected:
  const Type* Scalar(const std::string& name) {
    const bool integer = name.starts_with("i");
    return &m_.types.emplace_back(
        Type{integer ? Type::Kind::kInteger : Type::Kind::kFloat, name});
  }
  const Type* Vector(std::vector<int64_t> shape, const std::string& element = "f32") {
    Type type{Type::Kind::kVector, "", Scalar(element)};
    type.shape = std::move(shape);
    return &m_.types.emplace_back(std::move(type));
  }
  const Value* Argument(const Type* type) {
    block_.arguments.push_back(&m_.values.emplace_back(Value{type}));
    return block_.arguments.back();
  }
  const Attribute* Integers(std::vector<int64_t> integers) {
    Attribute attribute{Attribute::Kind::kIntegers};
    attribute.integers = std::move(integers);
    return &m_.attributes.emplace_back(std::move(attribute));
  }
  const Attribute* Integer(int64_t integer) {
    Attribute attribute{Attribute::Kind::kInteger};
    attribute.integer = integer;
    return &m_.attributes.emplace_back(std::move(attribute));
  }
  const Operation& Add(const std::string& name, std::vector<const Value*> operands,
                       const Type* result,
                       std::vector<std::pair<std::string, const Attribute*>> attributes = {}) {
    Operation& operation = m_.operations.emplace_back();
    operation.name = name;
    operation.operands = std::move(operands);
    Attribute dictionary{Attribute::Kind::kDictionary};
    dictionary.entries = std::move(attributes);
    operation.attributes = &m_.attributes.emplace_back(std::move(dictionary));
    operation.results = {&m_.values.emplace_back(Value{result, &operation})};
    block_.operations.push_back(&operation);
    return operation;
  }

  Module m_;
  Block block_;
};

}  // namespace tpusim::mosaic

#endif  // TPUSIM_TESTS_WORKLOADS_MOSAIC_MOSAIC_TEST_UTIL_H_
