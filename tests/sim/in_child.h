// Several simulations in one test.
//
// SystemC runs one simulation per process, so each runs in a child that writes
// its results into a pipe.
#ifndef TPUSIM_TESTS_SIM_IN_CHILD_H_
#define TPUSIM_TESTS_SIM_IN_CHILD_H_

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <vector>

#include "configs/status_macros.h"
#include "sim/simulate.h"

namespace tpusim::testing {

using sim::DeviceTotals;
using sim::SimulationOptions;
using sim::Timeline;

// Times, then bytes; empty if the run failed.
struct Figures {
  std::vector<int64_t> times, bytes;
  std::vector<int64_t> ops;    // times too, of operations on the critical device
  std::vector<int64_t> rest;   // all else of those operations, what hid collectives, peaks
  std::vector<int64_t> spans;  // of recorded devices: track, step, bytes, start, end
  int64_t events = 0;
  int64_t peak = 0;  // bytes live in HBM of device 0
  int64_t critical_device = -1;
  int64_t stored = 0;  // spans and samples that take memory
  int64_t error_bound = 0;
  int64_t device_classes = 0;
};

inline Figures FiguresOf(const Timeline& timeline) {
  Figures figures;
  figures.times.push_back(timeline.step_time.value());
  for (const DeviceTotals& d : timeline.devices) {
    for (const Picoseconds t : {d.finish, d.compute_busy, d.mxu_busy, d.vpu_busy}) {
      figures.times.push_back(t.value());
    }
    figures.bytes.push_back(d.moved.hbm().value());
    figures.bytes.push_back(d.moved.In(isa::MemorySpace::kCmem).value());
    for (int l = 0; l < configs::kDirections; ++l) {
      figures.bytes.push_back(d.sent[l].value());
      figures.bytes.push_back(d.received[l].value());
    }
  }
  for (const sim::Span& s : timeline.recording.Spans()) {
    for (const int64_t value :
         {static_cast<int64_t>(s.track), s.step, s.bytes.value(), s.start.value(), s.end.value()}) {
      figures.spans.push_back(value);
    }
  }
  for (const sim::OpTotals& op : timeline.ops) {
    figures.ops.push_back(op.total.value());
    for (const int64_t value :
         {op.count, op.exposed.value(), op.hbm_bytes.value(), op.waited.value(), op.behind.value(),
          op.main.value(), op.main_busy.value()}) {
      figures.rest.push_back(value);
    }
  }
  for (const sim::Cover& cover : timeline.covers) {
    figures.rest.insert(figures.rest.end(), {cover.collective, cover.by, cover.time.value()});
  }
  for (const sim::CollectiveKindTotals& kind : timeline.kinds) {
    figures.rest.insert(figures.rest.end(), {kind.in_flight.value(), kind.hidden.value()});
  }
  for (const DeviceTotals& d : timeline.devices) {
    figures.rest.push_back(d.peak_live.hbm().value());
    figures.rest.push_back(d.peak_live_hbm_at.value());
  }
  return figures;
}

inline void WriteAll(int file, const std::vector<int64_t>& values) {
  const auto n = static_cast<int64_t>(values.size());
  const auto put = [file](const void* data, size_t size) {
    const char* at = static_cast<const char*>(data);
    while (size > 0) {
      const ssize_t written = write(file, at, size);
      if (written <= 0) _exit(1);
      at += written;
      size -= static_cast<size_t>(written);
    }
  };
  put(&n, sizeof n);
  put(values.data(), values.size() * sizeof(int64_t));
}

inline std::vector<int64_t> ReadAll(int file) {
  const auto get = [file](void* data, size_t size) {
    char* at = static_cast<char*>(data);
    while (size > 0) {
      const ssize_t got = read(file, at, size);
      if (got <= 0) return false;
      at += got;
      size -= static_cast<size_t>(got);
    }
    return true;
  };
  int64_t n = 0;
  if (!get(&n, sizeof n)) return {};
  std::vector<int64_t> values(static_cast<size_t>(n));
  return get(values.data(), values.size() * sizeof(int64_t)) ? values : std::vector<int64_t>();
}

inline Figures InChild(const configs::Config& config, const isa::PodProgram& program,
                       const SimulationOptions& options) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    const absl::StatusOr<Timeline> timeline = sim::Simulate(config, program, options);
    if (!timeline.ok()) {
      fmt::print(stderr, "{}\n", Message(timeline.status()));
      _exit(1);
    }
    const Figures figures = FiguresOf(*timeline);
    WriteAll(ends[1], figures.times);
    WriteAll(ends[1], figures.bytes);
    WriteAll(ends[1], figures.ops);
    WriteAll(ends[1], figures.rest);
    WriteAll(ends[1], figures.spans);
    WriteAll(ends[1], {timeline->events, timeline->critical_device,
                       timeline->devices[0].peak_live.hbm().value(),
                       timeline->recording.stored_spans() + timeline->recording.stored_samples(),
                       timeline->folding.error_bound.value(),
                       timeline->folding.device_classes});
    _exit(0);
  }
  close(ends[1]);
  Figures figures;
  figures.times = ReadAll(ends[0]);
  figures.bytes = ReadAll(ends[0]);
  figures.ops = ReadAll(ends[0]);
  figures.rest = ReadAll(ends[0]);
  figures.spans = ReadAll(ends[0]);
  const std::vector<int64_t> others = ReadAll(ends[0]);
  if (others.size() == 6) {
    figures.events = others[0];
    figures.critical_device = others[1];
    figures.peak = others[2];
    figures.stored = others[3];
    figures.error_bound = others[4];
    figures.device_classes = others[5];
  }
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  return figures;
}

}  // namespace tpusim::testing

#endif  // TPUSIM_TESTS_SIM_IN_CHILD_H_
