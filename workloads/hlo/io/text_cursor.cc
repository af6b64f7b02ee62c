#include "workloads/hlo/io/text_cursor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>

#include "configs/status_macros.h"

namespace tpusim::hlo {
namespace {

bool IsSpace(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }
bool IsWord(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '-' ||
         c == '+';
}
bool EndsName(char c) {
  return IsSpace(c) || std::string_view(",(){}[]=\"").find(c) != std::string_view::npos;
}

// The length of a quotation in an error: enough to recognise the place.
constexpr size_t kQuotedInErrors = 20;

}  // namespace

void TextCursor::SkipSpace() {
  while (at_ < text_.size()) {
    if (IsSpace(text_[at_])) {
      ++at_;
    } else if (text_.substr(at_, 2) == "/*") {
      const size_t end = text_.find("*/", at_ + 2);
      at_ = end == std::string_view::npos ? text_.size() : end + 2;
    } else if (text_.substr(at_, 2) == "//") {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else {
      return;
    }
  }
}

size_t TextCursor::Begin() {
  SkipSpace();
  return at_;
}

bool TextCursor::AtEnd() { return Begin() == text_.size(); }

char TextCursor::Peek() { return AtEnd() ? '\0' : text_[at_]; }

bool TextCursor::Take(std::string_view token) {
  SkipSpace();
  return TakeAttached(token);
}

bool TextCursor::TakeAttached(std::string_view token) {
  if (text_.substr(at_, token.size()) != token) return false;
  at_ += token.size();
  return true;
}

absl::Status TextCursor::Expect(std::string_view token) {
  if (Take(token)) return absl::OkStatus();
  const std::string_view found = text_.substr(at_, kQuotedInErrors);
  return Error(found.empty() ? fmt::format("'{}' is missing at the end", token)
                             : fmt::format("'{}' is expected here, not '{}'", token,
                                           found.substr(0, found.find('\n'))));
}

std::string_view TextCursor::Word(std::string_view more) {
  const size_t begin = Begin();
  while (at_ < text_.size() &&
         (IsWord(text_[at_]) || more.find(text_[at_]) != std::string_view::npos)) {
    ++at_;
  }
  return text_.substr(begin, at_ - begin);
}

absl::StatusOr<std::string> TextCursor::Name() {
  Take("%");
  const size_t begin = at_;
  while (at_ < text_.size() && !EndsName(text_[at_])) ++at_;
  if (at_ == begin) return Error("a name is expected here");
  return std::string(text_.substr(begin, at_ - begin));
}

absl::StatusOr<int64_t> TextCursor::Integer() {
  SkipSpace();
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
  if (error == std::errc::result_out_of_range) return Error("a number of more than 64 bits");
  if (error != std::errc()) return Error("a number is expected here");
  at_ = static_cast<size_t>(end - text_.data());
  return value;
}

absl::StatusOr<double> TextCursor::Real() {
  SkipSpace();
  double value = 0;
  const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
  if (error == std::errc::invalid_argument) return Error("a number is expected here");
  at_ = static_cast<size_t>(end - text_.data());
  return value;
}

absl::StatusOr<bool> TextCursor::Bool() {
  const size_t begin = Begin();
  const std::string_view word = Word();
  if (word == "true" || word == "1") return true;
  if (word == "false" || word == "0") return false;
  return ErrorAt(begin, "true or false is expected here");
}

absl::StatusOr<std::string> TextCursor::Quoted() {
  const size_t begin = Begin();
  RETURN_IF_ERROR(Expect("\""));
  std::string text;
  while (at_ < text_.size() && text_[at_] != '"') {
    char c = text_[at_++];
    if (c != '\\' || at_ >= text_.size()) {
      text += c;
      continue;
    }
    c = text_[at_++];
    if (c == 'n') {
      text += '\n';
    } else if (c == 't') {
      text += '\t';
    } else if (c == 'x' && at_ + 2 <= text_.size()) {
      int code = 0;
      std::from_chars(text_.data() + at_, text_.data() + at_ + 2, code, 16);
      text += static_cast<char>(code);
      at_ += 2;
    } else {
      text += c;
    }
  }
  if (at_ >= text_.size()) return ErrorAt(begin, "a quote that does not end");
  ++at_;
  return text;
}

absl::StatusOr<std::vector<int64_t>> TextCursor::IntList() {
  RETURN_IF_ERROR(Expect("{"));
  return IntsUntil("}");
}

absl::StatusOr<std::vector<int64_t>> TextCursor::IntsUntil(std::string_view end) {
  std::vector<int64_t> values;
  if (Take(end)) return values;
  do {
    ASSIGN_OR_RETURN(const int64_t value, Integer());
    values.push_back(value);
  } while (Take(","));
  RETURN_IF_ERROR(Expect(end));
  return values;
}

absl::StatusOr<std::string_view> TextCursor::Balanced() {
  const size_t begin = Begin();
  std::string closing;
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c == '"') {
      RETURN_IF_ERROR(Quoted().status());
      continue;
    }
    ++at_;
    if (c == '{') closing += '}';
    if (c == '(') closing += ')';
    if (c == '[') closing += ']';
    if (!closing.empty() && c == closing.back()) closing.pop_back();
    if (closing.empty()) return text_.substr(begin, at_ - begin);
  }
  return ErrorAt(begin, "a bracket that is not closed");
}

absl::StatusOr<std::string_view> TextCursor::Value() {
  const size_t begin = Begin();
  const char first = Peek();
  if (first == '{' || first == '(' || first == '[') return Balanced();
  if (first == '"') {
    RETURN_IF_ERROR(Quoted().status());
  } else if (Word().empty()) {
    return Error("a value is expected here");
  }
  return text_.substr(begin, at_ - begin);
}

std::string TextCursor::Position(size_t at) const {
  const std::string_view before = text_.substr(0, at);
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const size_t start = before.rfind('\n');
  return fmt::format("line {}, column {}", line,
                     start == std::string_view::npos ? at + 1 : at - start);
}

absl::Status TextCursor::ErrorAt(size_t at, std::string_view what) const {
  return UserError(fmt::format("{}: {}", Position(at), what));
}

}  // namespace tpusim::hlo
