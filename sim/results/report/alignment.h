// One program beside itself: as tpusim compiled an export of it, and as the TPU compiler wrote it.
//
// What both executed is lined up by place of the source program, a named scope and a line; layers
// that differ in numbers only are one place. Two kernels are the same if they cover the same
// places, and then they count at one place, whatever their compilers call them. All others are
// fused otherwise: at every place, those of either program that are made there, or, where one
// program makes none, that cover it from elsewhere. The time of a program is that of its main
// stream, so the places of each add up to its step.
#ifndef TPUSIM_SIM_RESULTS_REPORT_ALIGNMENT_H_
#define TPUSIM_SIM_RESULTS_REPORT_ALIGNMENT_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/results/report/placed_ops.h"
#include "sim/results/report/report.h"

namespace tpusim::results {

template <typename T>
using Both = std::array<T, 2>;  // of the first program, of the second

// Time on the main stream at one place, or of a program.
struct PartTimes {
  std::array<Picoseconds, kOpParts.size()> of{};
  int64_t kernels = 0;  // executed
  Picoseconds In(OpPart part) const { return of[static_cast<size_t>(part)]; }
  Picoseconds Sum() const;
};

// Kernels that cover the same places and are made at the same one.
struct AlignedKernel {
  std::string name;  // "fusion.*" of several
  int64_t members = 0, count = 0;
  Picoseconds time{0};
  isa::SourcePlace made;
  std::vector<isa::SourcePlace> covered;  // with where it is made
};

// Collectives of one place that run in one way; of one kind, how often in either way.
struct AlignedCollective {
  PlacedCollective how;
  int64_t count = 0;
  Picoseconds waited{0};  // of the main stream
};
struct KindTotals {
  int64_t count = 0, asynchronous = 0;
  Bytes bytes{0};  // of all executions
  Picoseconds waited{0};
};

struct AlignedPlace {
  isa::SourcePlace place;
  Both<PartTimes> times;
  // Kernels that only one of the programs has.
  Both<std::vector<AlignedKernel>> kernels;  // longest first
  // Collectives of both; empty if both run the same.
  Both<std::vector<AlignedCollective>> collectives;
  Picoseconds Change() const { return times[1].Sum() - times[0].Sum(); }
};

// Arrays that are in HBM when a program needs most of it.
struct AlignedMemory {
  std::string owner;  // "arguments", "saved activations", ...
  isa::SourcePlace place;
  Both<Bytes> bytes{};
  Bytes Change() const { return bytes[1] - bytes[0]; }
};

struct Alignment {
  Both<std::string> labels;
  size_t compiled = 1;  // which of the two the TPU compiler wrote
  Both<Picoseconds> step{};
  Both<PartTimes> totals;
  Both<Bytes> peak{};  // HBM
  std::vector<std::pair<std::string, Both<KindTotals>>> kinds;
  std::vector<AlignedPlace> places;   // the largest difference first
  std::vector<AlignedMemory> memory;  // likewise
};

// A program on a slice: its report, or why there is none (it does not fit).
struct Compared {
  std::string workload, config;
  std::optional<Report> report;
  std::string problem;
};

// The key of a place. If the time is asked for by scope alone, lines of it are one place.
enum class AlignBy { kScopeAndSource, kScope, kSource };

Alignment Align(const Both<const Report*>& reports, const Both<std::string>& labels,
                AlignBy by = AlignBy::kScopeAndSource);

// Returns every program of the TPU compiler beside the first export of the same program (of the
// same name) on the same slice; the one that was given first comes first. Empty: there are no such
// pairs.
std::vector<Alignment> Alignments(const std::vector<Compared>& compared,
                                  AlignBy by = AlignBy::kScopeAndSource);

}  // namespace tpusim::results

#endif  // TPUSIM_SIM_RESULTS_REPORT_ALIGNMENT_H_
