// A user's own profile beside the simulation of the same program: by category and by operation.
//
// Of both only the main stream counts, so that the rows of either add up to its step: an operation
// with what it took there, a wait with how long it waited. Where the program is what the TPU
// compiler wrote, its instructions are those of the profile, and rows are operations. Any other
// program was compiled by tpusim; then rows are places of the source program, a named scope and a
// line, which both compilers keep (alignment.h has what makes a place).
#ifndef TPUSIM_SIM_RESULTS_MEASURED_PROFILE_COMPARISON_H_
#define TPUSIM_SIM_RESULTS_MEASURED_PROFILE_COMPARISON_H_

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "configs/units.h"
#include "models/isa/program_info.h"
#include "sim/results/measured/profile.h"
#include "sim/timeline.h"

namespace tpusim::results {

// A row of an execution of the program, as measured and as simulated.
struct ProfileRow {
  std::string name;  // of the operation, of the category; "" of a place
  std::string category, scope, source;
  double measured_count = 0, simulated_count = 0;
  Picoseconds measured{0}, simulated{0};
  Picoseconds Difference() const { return simulated - measured; }
};

enum class ProfileRowsAre { kOperations, kPlaces };

struct ProfileComparison {
  Profile profile;  // without its operations
  Picoseconds simulated{0};
  std::vector<ProfileRow> categories;  // longest first; "idle" is what no operation takes
  ProfileRowsAre rows_are = ProfileRowsAre::kPlaces;
  std::vector<ProfileRow> rows;  // the largest difference first
  Picoseconds matched{0};        // of the measured step, in rows that the simulation has, too
};

// Operations that the TPU compiler named line up by name if `by_tpu_compiler` and at least half
// of the measured time is in names that the program has.
ProfileComparison CompareProfile(Profile profile, const isa::ProgramInfo& info,
                                 const sim::Timeline& timeline, bool by_tpu_compiler);

// Tables of the categories and of `top` rows, at most `width` wide.
std::string ProfileComparisonText(const ProfileComparison& comparison, size_t top, size_t width);

// Schema "tpusim.profile_comparison/1", without the fields of the producer.
nlohmann::ordered_json ProfileComparisonJson(const ProfileComparison& comparison);

}  // namespace tpusim::results

#endif  // TPUSIM_SIM_RESULTS_MEASURED_PROFILE_COMPARISON_H_
