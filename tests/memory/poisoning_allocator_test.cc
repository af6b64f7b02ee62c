// The allocator notices what it is there to notice. Everything goes through pointers whose target
// the compiler cannot know, or it would leave the errors out.
#include "tests/memory/poisoning_allocator.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace tpusim::memory {
namespace {

// Memory that was allocated; the compiler cannot see through a volatile pointer.
class Block {
 public:
  explicit Block(std::size_t size) : at_(static_cast<unsigned char*>(::operator new(size))) {}
  unsigned char* at() const { return at_; }
  unsigned char Read(std::size_t n) const {
    const volatile unsigned char* byte = at() + n;
    return *byte;
  }
  void Write(std::size_t n) const {
    volatile unsigned char* byte = at() + n;
    *byte = 0;
  }
  void Free(std::size_t from = 0) const {
    void* volatile memory = at() + from;
    ::operator delete(memory);
  }

 private:
  unsigned char* volatile at_;
};

TEST(PoisoningAllocator, FillsWhatIsNewAndWhatIsFreed) {
  const Block block(100);
  EXPECT_EQ(block.Read(0), kFresh);
  EXPECT_EQ(block.Read(99), kFresh);
  block.Write(0);
  block.Write(99);
  block.Free();
  EXPECT_EQ(block.Read(0), kFreed);
  EXPECT_EQ(block.Read(99), kFreed);
}

// A hundred blocks of a size: none is where the first was.
TEST(PoisoningAllocator, DoesNotGiveOutAgainWhatWasJustFreed) {
  const Block first(64);
  first.Free();
  for (int n = 0; n < 100; ++n) EXPECT_NE(Block(64).at(), first.at());
  EmptyQuarantine();
}

TEST(PoisoningAllocator, GivesWhatIsAsAlignedAsWanted) {
  for (const std::size_t alignment : {1, 8, 16, 64, 4096}) {
    const auto align = std::align_val_t(alignment);
    void* memory = ::operator new(10, align);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % alignment, 0u);
    ::operator delete(memory, align);
  }
}

TEST(PoisoningAllocator, LetsMoreThroughThanTheQuarantineHolds) {
  for (std::size_t n = 0; n < 4; ++n) Block(kQuarantineBytes / 2).Free();
  EmptyQuarantine();
}

TEST(PoisoningAllocatorDeathTest, TellsErrorsApart) {
  const Block block(100);
  EXPECT_DEATH((block.Free(), block.Free()), "memory was freed twice");
  EXPECT_DEATH((block.Write(100), block.Free()), "wrote past the end of memory");
  EXPECT_DEATH((block.Free(), block.Write(50), EmptyQuarantine()),
               "wrote to memory that was freed");
  EXPECT_DEATH(::operator delete(block.at(), std::size_t{99}), "freed with another size");
  EXPECT_DEATH(::operator delete[](block.at()), "do not go together");
  EXPECT_DEATH(block.Free(48), "was not allocated");
}

// A vector that is used after it has grown reads fills, not what was there.
TEST(PoisoningAllocator, StaleIteratorsReadTheFill) {
  std::vector<std::uint32_t> values(16, 7);
  const volatile std::uint32_t* volatile stale = values.data();
  values.resize(1000, 7);
  EXPECT_EQ(stale[3], 0xdbdbdbdbu);
}

}  // namespace
}  // namespace tpusim::memory
