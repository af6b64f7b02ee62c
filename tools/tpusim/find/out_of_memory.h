// The end of a process that has no more memory.
#ifndef TPUSIM_TOOLS_TPUSIM_FIND_OUT_OF_MEMORY_H_
#define TPUSIM_TOOLS_TPUSIM_FIND_OUT_OF_MEMORY_H_

namespace tpusim::tools {

// Calls `handler`, which must not return, when memory cannot be had, in place of the handler
// before it. It can count on no more memory.
void SetOutOfMemoryHandler(void (*handler)());

}  // namespace tpusim::tools

#endif  // TPUSIM_TOOLS_TPUSIM_FIND_OUT_OF_MEMORY_H_
