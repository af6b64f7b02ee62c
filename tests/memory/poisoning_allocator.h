// The C++ heap of `tpusim_poisoned`, which turns memory errors that go unnoticed into errors that
// do not: operator new and delete of a program that links poisoning_allocator.cc.
//
//   * New memory is filled with kFresh: what is read before it is written is never zero by chance.
//   * Freed memory is filled with kFreed at once and reused only after kQuarantineBytes more were
//     freed: who reads it gets the fill, which is no address and no plausible number, instead of
//     what was there or, worse, of something new of the same type.
//   * A freed block whose fill has changed when it leaves the quarantine was written to; so was
//     one whose end mark has changed past its end. A block that is freed twice, with the wrong
//     size, or by the wrong form of delete is told by its header. These end the program with one
//     line on stderr and abort().
//
// It costs about as much time as the program takes itself, a tenth of AddressSanitizer's build and
// run, and needs no build of its own: the same libraries are linked to another main program. Reads
// inside of what is allocated, the stack, and malloc are not watched.
#ifndef TPUSIM_TESTS_MEMORY_POISONING_ALLOCATOR_H_
#define TPUSIM_TESTS_MEMORY_POISONING_ALLOCATOR_H_

#include <cstddef>

namespace tpusim::memory {

inline constexpr unsigned char kFresh = 0xa5;
inline constexpr unsigned char kFreed = 0xdb;
inline constexpr std::size_t kQuarantineBytes = std::size_t{128} << 20;

// Checks all memory in the quarantine and frees it. Also done when the program ends.
void EmptyQuarantine();

}  // namespace tpusim::memory

#endif  // TPUSIM_TESTS_MEMORY_POISONING_ALLOCATOR_H_
