// A place in a text that is being read: words, numbers, quotes and brackets.
//
// Everything skips spaces and comments (/* ... */ and // ...) first. Errors name line
// and column, both from 1.
#ifndef TPUSIM_WORKLOADS_HLO_IO_TEXT_CURSOR_H_
#define TPUSIM_WORKLOADS_HLO_IO_TEXT_CURSOR_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tpusim::hlo {

class TextCursor {
 public:
  explicit TextCursor(std::string_view text) : text_(text) {}

  bool AtEnd();
  // The next character, or 0 at the end.
  char Peek();
  // Whether `token` came next; then it has been read.
  bool Take(std::string_view token);
  // Takes the token if no space is before it.
  bool TakeAttached(std::string_view token);
  absl::Status Expect(std::string_view token);

  // Letters, digits, _ . - + and those of `more`; may be empty.
  std::string_view Word(std::string_view more = "");
  // A name, up to a space, a quote or one of , ( ) { } [ ] =; with or without % before it.
  absl::StatusOr<std::string> Name();
  absl::StatusOr<int64_t> Integer();
  absl::StatusOr<double> Real();
  absl::StatusOr<bool> Bool();
  // "text", without escapes.
  absl::StatusOr<std::string> Quoted();
  // {1,2,3} or {}
  absl::StatusOr<std::vector<int64_t>> IntList();
  // Integers with commas between, up to `end`, which is read too.
  absl::StatusOr<std::vector<int64_t>> IntsUntil(std::string_view end);
  // From an opening bracket to the one that closes it, both included; brackets in quotes
  // do not count.
  absl::StatusOr<std::string_view> Balanced();
  // A value whose meaning does not matter: quoted, in brackets or a word.
  absl::StatusOr<std::string_view> Value();

  size_t at() const { return at_; }
  void set_at(size_t at) { at_ = at; }
  // Returns the offset at which the next token begins.
  size_t Begin();
  absl::Status Error(std::string_view what) { return ErrorAt(Begin(), what); }
  absl::Status ErrorAt(size_t at, std::string_view what) const;
  // "line 3, column 7"
  std::string Position(size_t at) const;

 private:
  void SkipSpace();

  const std::string_view text_;
  size_t at_ = 0;
};

}  // namespace tpusim::hlo

#endif  // TPUSIM_WORKLOADS_HLO_IO_TEXT_CURSOR_H_
