#include "configs/name_value.h"

#include <gtest/gtest.h>

#include <string_view>

namespace tpusim::configs {
namespace {

std::string_view NamePart(std::string_view text) {
  const auto parts = ParseNameAndValue(text);
  return parts ? parts->name : "none";
}

TEST(NameValueTest, TheLastSignSplits) {
  const auto parts = ParseNameAndValue("params['w=1']=P=");
  ASSERT_TRUE(parts.has_value());
  EXPECT_EQ(parts->name, "params['w=1']=P");
  EXPECT_EQ(parts->value, "");
  EXPECT_EQ(NamePart("a=b"), "a");
  EXPECT_EQ(NamePart("a=b=c"), "a=b");
  EXPECT_EQ(NamePart("==1"), "=");
  for (const char* text : {"", "a", "=", "=b"}) EXPECT_EQ(NamePart(text), "none") << text;
}

TEST(NameValueTest, WhatCanBeNoValueIsOfTheName) {
  const auto is_number = [](std::string_view value) { return value == "1" || value == "2=1"; };
  EXPECT_EQ(ParseNameAndValue("a=2=1", is_number)->name, "a=2");
  EXPECT_EQ(ParseNameAndValue("a=1", is_number)->name, "a");
  EXPECT_FALSE(ParseNameAndValue("a=1=", is_number).has_value());
  const auto is_long = [](std::string_view value) { return value.size() > 2; };
  EXPECT_EQ(ParseNameAndValue("a=2=1", is_long)->value, "2=1");
}

}  // namespace
}  // namespace tpusim::configs
