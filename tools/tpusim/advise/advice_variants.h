// The variants of a run that `tpusim advise` simulates.
//
// A variant is a run with other options, nothing else, so that whatever is claimed of it can be
// seen by `tpusim run` with these options. There are variants
//
//   mesh           other shapes of the mesh, with the same axes
//   device order   layouts of the mesh over the slice that bring groups closer together
//   slice          other shapes with as many chips
//   algorithm      of the kinds of collectives that the program has, the fastest
//   compiler       without a pass that changed the program and buys one thing with another, such
//                  as rematerialization
//   donation       arguments that are not needed after the step
//   sharding       constraints where values are moved between shardings unasked
//   chip           a part twice as fast or as large, a latency half as long: what binds the step
//
// The room answers what would make a step shorter; `ProgramVariants` is its entry point. A process
// per variant that reads and compiles the program anew was tried and rejected: variants share what
// was read, normalised and searched for (find/variant_judge.h).
#ifndef TPUSIM_TOOLS_TPUSIM_ADVISE_ADVICE_VARIANTS_H_
#define TPUSIM_TOOLS_TPUSIM_ADVISE_ADVICE_VARIANTS_H_

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "sim/results/report/reshard_sites.h"
#include "tools/tpusim/find/verdicts.h"
#include "tools/tpusim/pipeline/pipeline.h"

namespace tpusim::tools {

// The kind of what a user cannot change.
inline constexpr std::string_view kOfTheChip = "chip";

struct Variant {
  std::string kind;                  // as above
  std::string name;                  // "links x2"
  std::string why;                   // what is behind it; may be empty
  std::vector<std::string> options;  // of `tpusim run`, beside those of the user
  // The slice and the flags that the options state.
  std::string config;
  ProgramFlags program;
};

// Why it helps or, where that says nothing, how to have it; both where the options can be read.
std::string WhyOf(const Variant& variant);

// Results of the variants that ran, and why the others are not possible.
struct Trials {
  std::vector<std::pair<const Variant*, search::Verdict>> ran;
  std::vector<std::pair<const Variant*, std::string>> failed;

  std::string FailedText() const;  // a line each
  nlohmann::ordered_json FailedJson() const;
};
std::vector<Question> QuestionsOf(const std::vector<Variant>& variants);
// Error: a bug of ours, which says nothing about the variant.
absl::StatusOr<Trials> TrialsOf(const std::vector<Variant>& variants,
                                const std::vector<VerdictOr>& verdicts);

// Returns the flags of a variant: it prints nothing, and omits checks that the run itself makes.
ProgramFlags QuietFlags(ProgramFlags flags);

// The chip's, of a run with these flags on a slice that `machine` is.
std::vector<Variant> ChipVariants(const configs::Config& machine, const std::string& config,
                                  const ProgramFlags& flags);
// Constraints at the places of a run's report that matter most.
std::vector<Variant> ShardingVariants(const std::vector<results::ReshardSiteReport>& sites,
                                      const std::string& config, const ProgramFlags& flags);
// Returns all other variants; `base` is the program of the run.
std::vector<Variant> ProgramVariants(const Prepared& base, const std::string& config,
                                     const ProgramFlags& flags);

}  // namespace tpusim::tools

#endif  // TPUSIM_TOOLS_TPUSIM_ADVISE_ADVICE_VARIANTS_H_
