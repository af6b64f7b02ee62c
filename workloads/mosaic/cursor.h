// Reads bytes in order, for formats that may be damaged.
//
// The first thing that is wrong is kept, with its place; from then on everything reads as zero and
// nothing. So a reader checks ok() where it would go on, at the latest at its end.
#ifndef TPUSIM_WORKLOADS_MOSAIC_CURSOR_H_
#define TPUSIM_WORKLOADS_MOSAIC_CURSOR_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace tpusim::mosaic {

// The first fault of bytes that several cursors read.
struct Damage {
  std::string what;  // empty: nothing
  void Set(std::string_view problem) {
    if (what.empty()) what = problem;
  }
};

class Cursor {
 public:
  Cursor(std::string_view bytes, Damage* damage) : bytes_(bytes), damage_(damage) {}

  bool ok() const { return damage_->what.empty(); }
  bool AtEnd() const { return !ok() || at_ == bytes_.size(); }
  size_t left() const { return ok() ? bytes_.size() - at_ : 0; }
  void Fail(std::string_view problem) { damage_->Set(problem); }

  uint8_t Byte();
  // MLIR's: the zeros below the lowest one of the first byte count the bytes that follow.
  uint64_t VarInt();
  int64_t SignedVarInt();
  // A number of things that take at least a byte each.
  size_t Count();
  std::string_view Bytes(uint64_t size);
  // Up to a zero, which is left out.
  std::string_view CString();
  // Past what is no multiple of `alignment` since the start.
  void Align(uint64_t alignment);

 private:
  std::string_view bytes_;
  Damage* damage_;
  size_t at_ = 0;
};

}  // namespace tpusim::mosaic

#endif  // TPUSIM_WORKLOADS_MOSAIC_CURSOR_H_
