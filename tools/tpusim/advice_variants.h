// What could be different: the variants of a run that `tpusim advise` simulates.
//
// A variant is a run with other options, nothing else, so that whatever is claimed of it can be
// seen by `tpusim run` with these options. There are variants
//
//   machine        of the chip, a part twice as fast or a latency half as long: what binds the step
//   device order   layouts of the mesh over the slice that bring groups closer together
//   slice          other shapes with as many chips
//   algorithm      of the kinds of collectives that the program has, the fastest
//   compiler       without a pass that changed the program and buys one thing with another
//   memory         donated arguments, computing more of it again, more HBM or VMEM
#ifndef TPUSIM_TOOLS_TPUSIM_ADVICE_VARIANTS_H_
#define TPUSIM_TOOLS_TPUSIM_ADVICE_VARIANTS_H_

#include <string>
#include <vector>

#include "tools/tpusim/pipeline.h"

namespace tpusim::tools {

struct Variant {
  std::string kind;                  // as above
  std::string name;                  // "links x2"
  std::string why;                   // what is behind it; may be empty
  std::vector<std::string> options;  // of `tpusim run`, beside those of the user
  // What the options say.
  std::string config;
  ProgramFlags program;
};

// Variants of a run with these flags, whose program `base` is. They come in the order in which
// those of equal gain are shown.
std::vector<Variant> VariantsOf(const Prepared& base, const std::string& config,
                                const ProgramFlags& flags);

}  // namespace tpusim::tools

#endif  // TPUSIM_TOOLS_TPUSIM_ADVICE_VARIANTS_H_
