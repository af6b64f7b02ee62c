#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>
#include <utility>
#include <vector>

#include "mutate.h"
#include "workloads/hlo/ir/opcode.h"

namespace tpusim::fuzz {
namespace {

// A word, a number, a blank or a sign.
std::vector<std::string_view> Tokens(std::string_view text) {
  const auto is_word = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '-';
  };
  std::vector<std::string_view> tokens;
  while (!text.empty()) {
    size_t length = 1;
    while (is_word(text[0]) && length < text.size() && is_word(text[length])) ++length;
    tokens.push_back(text.substr(0, length));
    text.remove_prefix(length);
  }
  return tokens;
}

std::vector<std::string_view> Lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return lines;
}

std::string Join(const std::vector<std::string_view>& pieces) {
  std::string text;
  for (const std::string_view piece : pieces) text += piece;
  return text;
}

// Words that numbers, types and attributes are made of.
constexpr std::array<std::string_view, 40> kWords = {
    "0",    "1",    "-1",    "2",      "7",     "128",   "65536",  "2147483648", "nan",    "-inf",
    "1e30", "true", "false", "?",      "{",     "}",     "(",      ")",          "[",      "]",
    "{}",   "()",   "[]",    ",",      "=",     "->",    "<=",     "T(",         "S(1)",   "pred",
    "bf16", "s4",   "token", "u32[2]", "f32[]", "ROOT ", "async-", "maximal",    "manual", "/*c*/"};

}  // namespace

std::string MutateText(const std::string& bytes, Random* random) {
  const auto pick = [&](size_t n) { return static_cast<size_t>((*random)() % n); };
  if (bytes.empty()) return MutateBytes(bytes, random);
  std::string mutated = bytes;
  for (size_t count = 1 + pick(4); count > 0 && !mutated.empty(); --count) {
    const bool lines = pick(4) == 0;
    std::vector<std::string_view> pieces = lines ? Lines(mutated) : Tokens(mutated);
    const size_t at = pick(pieces.size());
    const size_t other = pick(pieces.size());
    switch (pick(5)) {
      case 0:
        pieces.erase(pieces.begin() + static_cast<ptrdiff_t>(at));
        break;
      case 1:
        pieces.insert(pieces.begin() + static_cast<ptrdiff_t>(at), pieces[other]);
        break;
      case 2:
        std::swap(pieces[at], pieces[other]);
        break;
      case 3:
        pieces[at] = pieces[other];
        break;
      default:
        pieces[at] = pick(2) == 0
                         ? kWords[pick(kWords.size())]
                         : hlo::OpcodeName(static_cast<hlo::Opcode>(pick(hlo::kNumOpcodes)));
    }
    mutated = Join(pieces);
  }
  return mutated;
}

std::string MutateBytes(const std::string& bytes, Random* random) {
  const auto pick = [&](size_t n) { return static_cast<size_t>((*random)() % n); };
  std::string mutated = bytes;
  if (mutated.empty()) return std::string(1 + pick(3), static_cast<char>('a' + pick(26)));
  switch (pick(4)) {
    case 0:
      mutated.resize(pick(mutated.size()));
      break;
    case 1:
      for (size_t n = pick(8) + 1; n > 0; --n) {
        mutated[pick(mutated.size())] = static_cast<char>((*random)());
      }
      break;
    case 2:
      mutated[pick(mutated.size())] ^= static_cast<char>(1 << pick(8));
      break;
    default: {  // a piece moves over another
      const size_t length = std::min<size_t>(pick(64) + 1, mutated.size());
      const size_t from = pick(mutated.size() - length + 1);
      mutated.replace(pick(mutated.size() - length + 1), length, mutated.substr(from, length));
    }
  }
  return mutated;
}

}  // namespace tpusim::fuzz
