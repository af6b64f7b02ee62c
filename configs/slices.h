// Slice names: "4x2" is 4 chips in x and 2 in y; "4x4x8_twisted" is the twisted
// torus of that shape, where the chip offers it.
#ifndef TPUSIM_CONFIGS_SLICES_H_
#define TPUSIM_CONFIGS_SLICES_H_

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "configs/chip.h"
#include "configs/topology.h"

namespace tpusim::configs {

// "4x2" or "4x2x1" on a 2D chip is {4, 2, 1}. Only the form is checked here;
// false when the text is not of that form.
bool ParseShape(std::string_view text, std::array<int64_t, kMaxAxes>* shape);

// {4, 2, 1} with 2 axes is "4x2".
std::string ShapeName(const std::array<int64_t, kMaxAxes>& shape, int64_t axes);

// Returns the slice of these rules that is most like the shape, which the rules do not have.
std::string NearestSlice(const SliceRules& rules, const std::array<int64_t, kMaxAxes>& shape);

// Returns the existing slices for a message: all, or the first and the number of all.
std::string SliceList(const SliceRules& rules);

// Returns so many wired slices. Error, with the slices that exist, when this one does not.
absl::StatusOr<Topology> MakeSlices(const ChipParams& chip, std::string_view text, int64_t count);

}  // namespace tpusim::configs

#endif  // TPUSIM_CONFIGS_SLICES_H_
