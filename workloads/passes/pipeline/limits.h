// Where passes stop looking (configs/limit.h): every limit of effort of every pass.
//
// None of them is a rule of the TPU compiler: with more effort the program would be the same, or a
// little shorter. A record of the pass says so where one was reached.
#ifndef TPUSIM_WORKLOADS_PASSES_PIPELINE_LIMITS_H_
#define TPUSIM_WORKLOADS_PASSES_PIPELINE_LIMITS_H_

#include "configs/limit.h"

namespace tpusim::passes::limits {

inline constexpr Limit kGroupRounds{"pipeline.rounds", 20, "rounds of passes",
                                    "groups of passes that go on changing something end"};

inline constexpr Limit kSimplifyRounds{
    "simplify.rounds", 16, "rounds of rules",
    "every round takes what the one before left over: three or four find all there is"};

inline constexpr Limit kInvariantExpression{
    "hoist-invariants.expression", 256, "expressions",
    "the search for what a value of a loop is made of gives up"};

inline constexpr Limit kUsesOfExchange{"round-before-exchange.uses", 64, "collectives",
                                       "instructions looked at behind one collective"};
inline constexpr Limit kCombinedKinds{"combine.kinds", 32, "kinds of collectives",
                                      "kinds whose order among each other is followed at once"};

inline constexpr Limit kFusedMembers{"fusion.members", 256, "fusions",
                                     "instructions of one kernel: its price is looked up by them"};
inline constexpr Limit kConsumers{
    "fusion.consumers", 64, "values",
    "a value with more users is stored: what one of them saves is little beside the price of "
    "looking at all of them again and again"};
inline constexpr Limit kBetweenJoined{
    "fusion.between", 400, "pairs",
    "kernels farther apart are not joined: their values would be held for long, and not looking "
    "farther keeps the pass linear"};
inline constexpr Limit kSiblings{"fusion.siblings", 16, "arrays",
                                 "users of one array that are tried in pairs"};
inline constexpr Limit kReaders{"fusion.readers", 16, "values",
                                "a value that more kernels compute is left to them"};

inline constexpr Limit kOwnOrders{
    "layout.own_orders", 6, "orders of dimensions",
    "the best of those of a class alone are tried with its neighbours"};
inline constexpr Limit kNeighbourOrders{"layout.neighbour_orders", 8, "neighbours",
                                        "neighbours whose order a class is offered"};
inline constexpr Limit kLayoutRounds{"layout.rounds", 3, "classes still to be decided again",
                                     "how often every class is decided"};

inline constexpr Limit kListLookAhead{
    "schedule.look_ahead", 8, "instructions",
    "ready instructions looked at for one that fits into the time before the next transfer"};
inline constexpr Limit kScheduleRounds{"schedule.rounds", 2, "rounds",
                                       "how often the best order tells how long transfers take"};

inline constexpr Limit kSpaceRounds{
    "memory-space-assignment.rounds", 2, "rounds",
    "how often copies that are waited for too long are left out, all at once"};
inline constexpr Limit kSpaceCopiesLeftOut{
    "memory-space-assignment.singles", 8, "values",
    "values of the best trial that are tried without copies one by one"};

inline constexpr Limit kRematerializeRounds{
    "rematerialize.rounds", 32, "rounds",
    "the plan of the memory is made so often; what is dropped in one round is seen by the next"};

inline constexpr Limit kIndexDepth{"host-copies.index_depth", 8, "scalars",
                                   "operations from which the place of a slot is computed"};

}  // namespace tpusim::passes::limits

#endif  // TPUSIM_WORKLOADS_PASSES_PIPELINE_LIMITS_H_
