#include "workloads/mosaic/cursor.h"

#include <bit>

namespace tpusim::mosaic {

uint8_t Cursor::Byte() {
  if (left() == 0) {
    Fail("it ends too early");
    return 0;
  }
  return static_cast<uint8_t>(bytes_[at_++]);
}

uint64_t Cursor::VarInt() {
  const uint8_t first = Byte();
  const int more = first == 0 ? 8 : std::countr_zero(first);  // number: a varint of MLIR bytecode
  uint64_t value = more >= 7 ? 0 : first >> (more + 1);  // number: a varint of MLIR bytecode
  const int bits = more >= 7 ? 0 : 7 - more;  // number: bits of a type
  // number: bits of a type
  for (int n = 0; n < more && ok(); ++n) value |= uint64_t{Byte()} << (bits + 8 * n);
  return ok() ? value : 0;
}

int64_t Cursor::SignedVarInt() {
  const uint64_t zigzag = VarInt();
  return static_cast<int64_t>((zigzag >> 1) ^ (~(zigzag & 1) + 1));
}

size_t Cursor::Count() {
  const uint64_t count = VarInt();
  if (count <= left()) return static_cast<size_t>(count);
  Fail("it counts more than it holds");
  return 0;
}

std::string_view Cursor::Bytes(uint64_t size) {
  if (size > left()) {
    Fail("it ends too early");
    return {};
  }
  const std::string_view found = bytes_.substr(at_, size);
  at_ += size;
  return found;
}

std::string_view Cursor::CString() {
  const size_t end = ok() ? bytes_.find('\0', at_) : std::string_view::npos;
  if (end == std::string_view::npos) {
    Fail("a text in it does not end");
    return {};
  }
  const std::string_view found = bytes_.substr(at_, end - at_);
  at_ = end + 1;
  return found;
}

void Cursor::Align(uint64_t alignment) {
  if (!std::has_single_bit(alignment)) return Fail("an alignment in it is no power of two");
  const uint64_t past = at_ & (alignment - 1);
  if (past != 0) Bytes(alignment - past);
}

}  // namespace tpusim::mosaic
