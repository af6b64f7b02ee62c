// Lists of devices as mixed-radix numbers.
//
// A list like 0,4,1,5,2,6,3,7 counts through two digits: one of 4 steps of 1
// device and, faster, one of 2 steps of 4 devices. A digit is a run along one
// piece of a mesh axis, so lists in the file become axes, and a second mesh
// becomes another view of the first one.
#ifndef TPUSIM_WORKLOADS_SHARDING_TEXT_DIGITS_H_
#define TPUSIM_WORKLOADS_SHARDING_TEXT_DIGITS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "workloads/sharding/types/axes.h"
#include "workloads/sharding/types/sharding.h"

namespace tpusim::sharding {

// A run in a list of devices: `size` steps of `stride` devices.
struct Digit {
  int64_t size = 1;
  int64_t stride = 1;
  bool operator==(const Digit&) const = default;
};

// Joins neighbours that continue each other and drops digits of one step.
std::vector<Digit> JoinedDigits(const std::vector<Digit>& digits);
// A list that starts with 0 as digits, major to minor; an error if it is none.
absl::StatusOr<std::vector<Digit>> DigitsOfList(std::vector<int64_t> list);
// The list that digits count.
std::vector<int64_t> ListOf(const std::vector<Digit>& digits);
// Whether the list holds each of 0 to size - 1 once.
bool IsPermutation(std::vector<int64_t> list, int64_t size);
// Takes digits worth `size` steps from the front.
absl::StatusOr<std::vector<Digit>> TakeDigits(std::vector<Digit>* digits, int64_t size);
// The pieces of the mesh's axes (positions, not partitions) that digits run along.
absl::StatusOr<Axes> AxesOfDigits(const std::vector<Digit>& digits, const Mesh& mesh);
// The mesh axis_0, axis_1, ... of `devices` devices whose axes are the
// coarsest that all digits are made of.
absl::StatusOr<Mesh> FactorMesh(const std::vector<std::vector<std::vector<Digit>>>& assignments,
                                int64_t devices);
// Every axis of `other`, a view of the same devices, as axes of `mesh`.
absl::StatusOr<std::vector<Axes>> AxesInMesh(const Mesh& other, const Mesh& mesh);
// A reference into a mesh with these axes; the reference itself if there are none.
absl::StatusOr<Axes> Translated(const AxisRef& axis, const std::vector<Axes>& axes_in_mesh);

}  // namespace tpusim::sharding

#endif  // TPUSIM_WORKLOADS_SHARDING_TEXT_DIGITS_H_
