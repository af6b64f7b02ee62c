// Meshes and shardings of arguments that are stated beside the program: `--mesh`, `--shard`.
//
// A program that JAX exported says global shapes, and what it says of shardings names axes of a
// mesh. So the same export is the program for another shape of the mesh, and for other shardings of
// its arguments, as if it had been exported with them:
//
//   --mesh data=4,model=8       the axes that the mesh is taken to have; what the program says
//                               goes by the names of axes, those that are gone split nothing
//   --shard "ARGUMENT=P('x')"   how an argument is sharded, instead of what the program says; a
//                               result that was sharded like it and has its shape follows it
//
// Inside of a shard_map shapes are those of one shard: there is no other mesh for it. The number of
// devices may be another one: shapes are global, a batch does not grow with it.
//
// The room answers how options replace what a program says about shardings; `StateArguments` is its
// entry point, stated_constraints.h and stated_donations.h have theirs.
#ifndef TPUSIM_WORKLOADS_SHARDING_STATED_STATED_SHARDINGS_H_
#define TPUSIM_WORKLOADS_SHARDING_STATED_STATED_SHARDINGS_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "workloads/sharding/stated/stated_constraints.h"
#include "workloads/sharding/types/sharding.h"

namespace tpusim::sharding {

struct NormalisedModule;

// Whether `*` in the pattern can stand for what the text has there.
bool NameFits(std::string_view pattern, std::string_view text);

// The name that the program has for an argument (params['w']), or that of its parameter
// instruction.
const std::string& ArgumentName(const hlo::Instruction& argument);
// Returns the sharding that the program states for an array; null: it states none.
const Sharding* SaidOf(const hlo::Instruction* value, const NormalisedModule& module);
// `stated`: all of the option's text.
absl::Status NoArgument(std::string_view option, std::string_view stated,
                        const std::string& pattern, const NormalisedModule& module);

// "data=4,model=8". Errors: another form, an axis twice, a size below 1.
absl::StatusOr<std::vector<MeshAxis>> ParseStatedMesh(std::string_view text);

// Errors: another number of devices where the program has collectives or asks which device it is
// on; a program with shard_map; a part of an axis in what the program says.
absl::Status StateMesh(const std::vector<MeshAxis>& axes, NormalisedModule& module);

// Once all is stated. Error: a dimension of an argument or result that the axes of a new mesh do
// not divide, as JAX would refuse it.
absl::Status CheckStatedMesh(const NormalisedModule& module);

// A StatedConstraint names arguments here, by the name that the program has for them (params['w'])
// or by that of their parameter instruction; a `*` in the name matches any text. Errors: no
// argument of that name; those of StateConstraints; axes that do not divide a dimension of the
// argument.
absl::Status StateArguments(const std::vector<StatedConstraint>& arguments,
                            NormalisedModule& module);

}  // namespace tpusim::sharding

#endif  // TPUSIM_WORKLOADS_SHARDING_STATED_STATED_SHARDINGS_H_
