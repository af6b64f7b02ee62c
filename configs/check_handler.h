// Who hears of broken invariants (TPUSIM_CHECK).
#ifndef TPUSIM_CONFIGS_CHECK_HANDLER_H_
#define TPUSIM_CONFIGS_CHECK_HANDLER_H_

#include <string>

namespace tpusim {

// In a process that answers to another one, which tells it, nothing is printed: `handler` hears
// what was broken where. It must not return.
void SetCheckHandler(void (*handler)(const std::string& what));

// `advice` is called once, when an invariant is broken, in front of the handler: what it returns is
// appended to what is said. Null: nothing is.
void SetCheckAdvice(std::string (*advice)());

}  // namespace tpusim

#endif  // TPUSIM_CONFIGS_CHECK_HANDLER_H_
