// SetCheckHandler redirects reports of broken invariants (TPUSIM_CHECK).
#ifndef TPUSIM_CONFIGS_CHECK_HANDLER_H_
#define TPUSIM_CONFIGS_CHECK_HANDLER_H_

#include <string>

namespace tpusim {

// Makes `handler`, which must not return, receive what was broken and where; nothing is printed
// then. A process that works for another one sends it there.
void SetCheckHandler(void (*handler)(const std::string& what));

// `advice` is called once, when an invariant is broken, in front of the handler: what it returns is
// appended to what is said. Null: nothing is.
void SetCheckAdvice(std::string (*advice)());

}  // namespace tpusim

#endif  // TPUSIM_CONFIGS_CHECK_HANDLER_H_
