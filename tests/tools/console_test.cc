#include "tools/tpusim/output/console.h"

#include <gtest/gtest.h>

namespace tpusim::tools {
namespace {

TEST(OneLineTest, LeavesPlainTextAlone) {
  EXPECT_EQ(OneLine("step.pb: no such file"), "step.pb: no such file");
  EXPECT_EQ(OneLine("Gr\xc3\xb6\xc3\x9f"
                    "e"),
            "Gr\xc3\xb6\xc3\x9f"
            "e");
  EXPECT_EQ(OneLine(""), "");
}

TEST(OneLineTest, JoinsLinesAndDropsTheirIndentation) {
  EXPECT_EQ(OneLine("deadlock:\n  device 0 waits\n  device 1 waits\n"),
            "deadlock: device 0 waits; device 1 waits");
}

TEST(OneLineTest, EscapesWhatATerminalWouldObey) {
  EXPECT_EQ(OneLine("a\x1b[31mb\tc\x7f"), "a\\x1b[31mb\\x09c\\x7f");
}

}  // namespace
}  // namespace tpusim::tools
