// Text from files and users on its way to a terminal.
//
// Names of operations, chips and files come from the input and may hold any bytes: a
// name with an escape sequence would move the cursor, a line break would forge a
// line of ours. Here such bytes become text that shows them: "\x1b[31m".
#ifndef TPUSIM_CONFIGS_PRINTABLE_H_
#define TPUSIM_CONFIGS_PRINTABLE_H_

#include <string>
#include <string_view>

namespace tpusim::configs {

// Control characters of ASCII and of Unicode (U+0080 to U+009F, marks that end a
// line or turn the direction of writing) and bytes that are no UTF-8 are written
// as \x and two hexadecimal digits each; everything else stays as it is.
std::string Printable(std::string_view text);
// Escapes control characters but for line breaks.
std::string PrintableLines(std::string_view text);

}  // namespace tpusim::configs

#endif  // TPUSIM_CONFIGS_PRINTABLE_H_
