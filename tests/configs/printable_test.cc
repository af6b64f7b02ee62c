#include "configs/printable.h"

#include <gtest/gtest.h>

#include <string>

namespace tpusim::configs {
namespace {

TEST(PrintableTest, LeavesTextOfAnyLanguageAlone) {
  for (const std::string text : {"", "fusion.3 (jit(f)/dot, a.py:12)", "Gr\xc3\xb6\xc3\x9f"
                                                                       "e",
                                 "\xe6\x97\xa5\xe6\x9c\xac", "\xf0\x9f\x98\x80"}) {
    EXPECT_EQ(Printable(text), text);
  }
}

TEST(PrintableTest, ShowsControlCharacters) {
  EXPECT_EQ(Printable("a\x1b[31mb\tc\x7f\n"), "a\\x1b[31mb\\x09c\\x7f\\x0a");
  EXPECT_EQ(Printable(std::string("\0", 1)), "\\x00");
  // U+009B is the one-character form of ESC [.
  EXPECT_EQ(Printable("\xc2\x9b"
                      "2J"),
            "\\xc2\\x9b2J");
  // U+202E turns the direction of writing, U+2028 ends a line.
  EXPECT_EQ(Printable("\xe2\x80\xae"), "\\xe2\\x80\\xae");
  EXPECT_EQ(Printable("\xe2\x80\xa8"), "\\xe2\\x80\\xa8");
}

TEST(PrintableTest, ShowsBytesThatAreNoUtf8) {
  EXPECT_EQ(Printable("a\xff"
                      "b"),
            "a\\xffb");
  EXPECT_EQ(Printable("\xc3"), "\\xc3");              // cut short
  EXPECT_EQ(Printable("\xc3("), "\\xc3(");            // goes on with something else
  EXPECT_EQ(Printable("\xc0\xaf"), "\\xc0\\xaf");     // overlong
  EXPECT_EQ(Printable("\xe0\x80\xaf"), "\\xe0\\x80\\xaf");
  EXPECT_EQ(Printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // a surrogate
}

TEST(PrintableTest, KeepsLineBreaksOfSeveralLines) {
  EXPECT_EQ(PrintableLines("a\nb\r\n\x1b"), "a\nb\\x0d\n\\x1b");
}

}  // namespace
}  // namespace tpusim::configs
