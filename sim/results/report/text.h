// Figures and tables for people: short, aligned, the same on every machine.
// Everything exact is in the report; here four digits are enough.
#ifndef TPUSIM_SIM_RESULTS_REPORT_TEXT_H_
#define TPUSIM_SIM_RESULTS_REPORT_TEXT_H_

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "configs/units.h"

namespace tpusim::results {

std::string TimeText(Picoseconds t);        // "850 ns", "311.2 us", "1.250 ms"
std::string SignedTimeText(Picoseconds t);  // "+311.2 us", "-80.00 us"
std::string BytesText(Bytes b);             // "65.04 MiB": powers of 1024, as JAX prints them
std::string FlopsText(Flops f);             // "34.36 GFLOP"
std::string PercentText(double share);      // 0.123 -> "12.3%"

// Parts of a whole as "12.3%", which add up to 100 %; of an empty one, all "0.0%".
std::vector<std::string> SharesText(const std::vector<Picoseconds>& parts);

// Returns the label of a column: A, B, ..., Z, A1, B1, ...
std::string LetterOf(size_t i);

// Cuts a text to `width` bytes; a cut text ends in "...", and no character is cut in two.
std::string Clip(std::string_view text, size_t width);

// A left-aligned last column that does not fit: what is behind the edge is cut off, or all of it
// goes below its row, because it is meant to be read or copied as a whole.
enum class LastColumn { kCut, kBelow };

// Rows of equally many cells, two spaces between columns. The first column is left-aligned and so
// are the columns that the header marks with a leading '<'; others are right-aligned and never cut:
// a number without its end is another one. Columns get the width they need; what does not fit into
// `width` is cut from a left-aligned last column first, down to 16 characters, then from the first
// column and from other left-aligned ones; then a last column that may be cut is left out. A table
// that is still too wide goes on below itself, with the first column again. Cells are one line
// each: control characters are shown escaped (configs/printable.h).
std::vector<std::string> TableLines(const std::vector<std::vector<std::string>>& rows, size_t width,
                                    LastColumn last = LastColumn::kCut);
// Returns TableLines as text, each line with its end.
std::string TableText(const std::vector<std::vector<std::string>>& rows, size_t width,
                      LastColumn last = LastColumn::kCut);

// An output for programs, indented, with a newline. Names come from the workload and may hold any
// bytes: what is no UTF-8 is replaced.
std::string JsonText(const nlohmann::ordered_json& json);

// Words in lines of at most `width`, but for words that are longer; all lines but
// the first begin with `indent` blanks.
std::vector<std::string> WrappedLines(std::string_view text, size_t indent, size_t width);
// Returns WrappedLines as text, each line with its end.
std::string WrappedText(std::string_view text, size_t indent, size_t width);

}  // namespace tpusim::results

#endif  // TPUSIM_SIM_RESULTS_REPORT_TEXT_H_
