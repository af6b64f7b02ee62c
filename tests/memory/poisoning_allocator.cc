#include "tests/memory/poisoning_allocator.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>

namespace tpusim::memory {
namespace {

enum class Form : std::uint32_t { kOne, kArray };
// The state of a block; also what its end mark is made of.
constexpr std::uint32_t kLive = 0x4c495645, kDead = 0x44454144;
constexpr std::uint64_t kEnd = 0x5a5a5a5a454e4421;
constexpr std::size_t kUnknown = ~std::size_t{0};

// In front of what the program sees; the end mark is behind it.
struct Header {
  void* begin;  // of what malloc gave
  std::size_t size;
  Header* next;  // in the quarantine
  Form form;
  std::uint32_t state;
};
static_assert(sizeof(Header) % alignof(std::max_align_t) == 0);

unsigned char* BytesOf(Header* header) { return reinterpret_cast<unsigned char*>(header + 1); }

[[noreturn]] void Fail(const char* what) {
  // Nothing here may allocate.
  for (const char* part : {"memory error: ", what, "\n"}) {
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, part, std::strlen(part));
  }
  std::abort();
}

class Quarantine {
 public:
  void Add(Header* header) {
    const std::lock_guard lock(mutex_);
    header->next = nullptr;
    (last_ == nullptr ? first_ : last_->next) = header;
    last_ = header;
    bytes_ += header->size + sizeof(Header);
    while (bytes_ > kQuarantineBytes) Release();
  }
  void Empty() {
    const std::lock_guard lock(mutex_);
    while (first_ != nullptr) Release();
  }

 private:
  void Release() {
    Header* header = first_;
    const unsigned char* bytes = BytesOf(header);
    if (!std::all_of(bytes, bytes + header->size, [](unsigned char b) { return b == kFreed; })) {
      Fail("something wrote to memory that was freed");
    }
    first_ = header->next;
    if (first_ == nullptr) last_ = nullptr;
    bytes_ -= header->size + sizeof(Header);
    std::free(header->begin);
  }

  std::mutex mutex_;
  Header* first_ = nullptr;
  Header* last_ = nullptr;
  std::size_t bytes_ = 0;
};

// Never destroyed: objects of static storage are freed after everything else.
Quarantine& TheQuarantine() {
  alignas(Quarantine) static unsigned char memory[sizeof(Quarantine)];
  static auto* const quarantine = new (memory) Quarantine;
  return *quarantine;
}

void* Allocate(std::size_t size, Form form, std::size_t alignment) noexcept {
  alignment = std::max(alignment, alignof(Header));
  const std::size_t before = sizeof(Header) + alignment;
  if (size > SIZE_MAX - before - sizeof(kEnd)) return nullptr;
  void* begin = std::malloc(before + size + sizeof(kEnd));
  if (begin == nullptr) return nullptr;
  const auto address = reinterpret_cast<std::uintptr_t>(begin) + before;
  auto* bytes = reinterpret_cast<unsigned char*>(address - address % alignment);
  Header* header = reinterpret_cast<Header*>(bytes) - 1;
  *header = {begin, size, nullptr, form, kLive};
  std::memset(bytes, kFresh, size);
  std::memcpy(bytes + size, &kEnd, sizeof(kEnd));
  return bytes;
}

void Free(void* memory, Form form, std::size_t size) noexcept {
  if (memory == nullptr) return;
  Header* header = static_cast<Header*>(memory) - 1;
  if (header->state == kDead) Fail("memory was freed twice");
  if (header->state != kLive) Fail("what was freed was not allocated, or its front is overwritten");
  if (header->form != form) Fail("new[] and delete, or new and delete[], do not go together");
  if (size != kUnknown && size != header->size) Fail("memory was freed with another size");
  unsigned char* bytes = BytesOf(header);
  if (std::memcmp(bytes + header->size, &kEnd, sizeof(kEnd)) != 0) {
    Fail("something wrote past the end of memory");
  }
  header->state = kDead;
  std::memset(bytes, kFreed, header->size);
  TheQuarantine().Add(header);
}

void* AllocateOrThrow(std::size_t size, Form form, std::size_t alignment) {
  if (void* memory = Allocate(size, form, alignment)) return memory;
  throw std::bad_alloc();
}

constexpr std::size_t kAlignment = alignof(std::max_align_t);
const int at_exit = std::atexit(EmptyQuarantine);

}  // namespace

void EmptyQuarantine() { TheQuarantine().Empty(); }

}  // namespace tpusim::memory

// Every form of both operators, single and array.
using tpusim::memory::Allocate;
using tpusim::memory::AllocateOrThrow;
using tpusim::memory::Form;
using tpusim::memory::Free;
using tpusim::memory::kAlignment;
using tpusim::memory::kUnknown;
using Size = std::size_t;
using Align = std::align_val_t;
using NoThrow = std::nothrow_t;

#define TPUSIM_OPERATORS(brackets, form)                                                          \
  void* operator new brackets(Size n) { return AllocateOrThrow(n, form, kAlignment); }            \
  void* operator new brackets(Size n, Align a) { return AllocateOrThrow(n, form, Size(a)); }      \
  void* operator new brackets(Size n, const NoThrow&) noexcept {                                  \
    return Allocate(n, form, kAlignment);                                                         \
  }                                                                                               \
  void* operator new brackets(Size n, Align a, const NoThrow&) noexcept {                         \
    return Allocate(n, form, Size(a));                                                            \
  }                                                                                               \
  void operator delete brackets(void* p) noexcept { Free(p, form, kUnknown); }                    \
  void operator delete brackets(void* p, Size n) noexcept { Free(p, form, n); }                   \
  void operator delete brackets(void* p, Align) noexcept { Free(p, form, kUnknown); }             \
  void operator delete brackets(void* p, Size n, Align) noexcept { Free(p, form, n); }            \
  void operator delete brackets(void* p, const NoThrow&) noexcept { Free(p, form, kUnknown); }    \
  void operator delete brackets(void* p, Align, const NoThrow&) noexcept {                        \
    Free(p, form, kUnknown);                                                                      \
  }

TPUSIM_OPERATORS(, Form::kOne)
TPUSIM_OPERATORS([], Form::kArray)
