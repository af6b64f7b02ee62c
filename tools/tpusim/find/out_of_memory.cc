#include "tools/tpusim/find/out_of_memory.h"

#include <cerrno>
#include <new>

// Belongs to mimalloc, where that is linked: as a shared library it does not see the handler for
// new and aborts without a word, but tells of its errors before.
extern "C" __attribute__((weak)) void mi_register_error(void (*told)(int code, void* argument),
                                                        void* argument);

namespace tpusim::tools {
namespace {

void (*out_of_memory)() = nullptr;

extern "C" void OnAllocatorError(int code, void*) {
  if (code == ENOMEM && out_of_memory != nullptr) out_of_memory();
}

}  // namespace

void SetOutOfMemoryHandler(void (*handler)()) {
  out_of_memory = handler;
  std::set_new_handler(handler);
  if (mi_register_error != nullptr) mi_register_error(OnAllocatorError, nullptr);
}

}  // namespace tpusim::tools
