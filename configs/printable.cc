#include "configs/printable.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <iterator>

namespace tpusim::configs {
namespace {

// The character that `text` starts with, and its length in bytes; length 0 if the
// bytes are no UTF-8 (cut short, overlong, a surrogate).
struct Character {
  uint32_t code = 0;
  size_t length = 0;
};
Character FirstOf(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const size_t length = lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : lead < 0xf5 ? 4 : 0;
  if (length == 0 || length > text.size()) return {};
  uint32_t code = lead & (0x7fu >> length);
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3fu);
  }
  constexpr uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  if (code < kSmallest[length] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return {};
  return {code, length};
}

bool Obeyed(uint32_t code) {
  return code < 0x20 || (code >= 0x7f && code < 0xa0) ||  // controls
         code == 0x200e || code == 0x200f ||              // marks of direction
         (code >= 0x2028 && code <= 0x202e) ||            // separators, embeddings, overrides
         (code >= 0x2066 && code <= 0x2069);              // isolates
}

std::string Escaped(std::string_view text, bool keep_line_breaks) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Character c = FirstOf(text);
    const size_t length = c.length == 0 ? 1 : c.length;
    const bool keep = c.length > 0 && (!Obeyed(c.code) || (keep_line_breaks && c.code == '\n'));
    for (const char byte : text.substr(0, length)) {
      if (keep) {
        out += byte;
      } else {
        fmt::format_to(std::back_inserter(out), "\\x{:02x}", static_cast<unsigned char>(byte));
      }
    }
    text.remove_prefix(length);
  }
  return out;
}

}  // namespace

std::string Printable(std::string_view text) { return Escaped(text, false); }

std::string PrintableLines(std::string_view text) { return Escaped(text, true); }

}  // namespace tpusim::configs
