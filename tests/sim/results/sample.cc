#include "tests/sim/results/sample.h"

#include <fmt/format.h>

#include <fstream>
#include <sstream>
#include <utility>
#include <vector>

#include "configs/compiler_files.h"
#include "configs/status_macros.h"
#include "sim/results/report/build_report.h"
#include "sim/results/trace/perfetto.h"
#include "sim/results/trace/trace_source.h"
#include "tests/temporary_folder.h"

namespace tpusim::results {
namespace {

using configs::Direction;
using sim::Track;

configs::Config MakeConfig() {
  configs::Config c;
  c.name = "toy-2x1";
  c.chip.compiler.compiler = configs::CompilerName();
  c.chip.name = "toy";
  c.chip.tensor_cores = 1;
  c.chip.devices = 1;
  c.chip.clock = Hertz(1e9);
  c.chip.peak_bf16 = FlopsPerSecond(1e14);
  // 2 * 100 * 100 * 5 * 1e9 = 1e14.
  c.chip.mxu.count = 5;
  c.chip.mxu.rows = 100;
  c.chip.mxu.columns = 100;
  c.chip.hbm.bytes = Bytes(16'000'000'000);
  c.chip.hbm.bytes_per_second = BytesPerSecond(1e12);
  c.chip.hbm.efficiency = 0.8;
  c.chip.host.chips_x = 2;
  c.chip.host.chips_y = 1;
  c.chip.ici.link_bytes_per_second = BytesPerSecond(1e11);
  c.topology = configs::Topology({2, 1, 1}, {false, false, false}, 1);
  return c;
}

isa::ProgramInfo MakeInfo() {
  isa::ProgramInfo p;
  p.module_name = "jit_f";
  p.partitions = 2;
  p.collectives = {
      {.kind = "all-gather",
       .algorithm = "line over x",
       .axes = "x",
       .group_size = 2,
       .bytes = Bytes(2'000'000),
       .expected = Microseconds(19),
       .bound = Microseconds(10),
       .reason = isa::WaitReason::kSynchronous,
       .reason_text = "toy has no asynchronous all-gathers"},
      {.kind = "collective-permute",
       .algorithm = "one hop",
       .axes = "x",
       .group_size = 2,
       .bytes = Bytes(2'000'000),
       .expected = Microseconds(25),
       .bound = Microseconds(20),
       .reason_text = "fusion.3 needs it"},
  };
  p.ops.resize(5);
  p.ops[kAllGather] = {.name = "all-gather.1",
                       .category = "all-gather",
                       .scope = "jit(f)/layer/all_gather",
                       .source = "f.py:10",
                       .shape = "bf16[1000,1000]",
                       .hbm_bytes = Bytes(0),
                       .collective = 0};
  p.ops[kWhile] = {.name = "while.2",
                   .category = "while",
                   .scope = "jit(f)/layer/while",
                   .source = "f.py:11",
                   .shape = "(s32[], bf16[1000,1000])"};
  p.ops[kMatmul] = {.name = "fusion.3",
                    .category = "convolution fusion",
                    .scope = "jit(f)/layer/while/body/dot_general",
                    .source = "f.py:12",
                    .shape = "bf16[1000,1500]",
                    .flops = Flops(3'000'000'000),
                    .model_flops = Flops(3'000'000'000),
                    .hbm_bytes = Bytes(10'000'000)};
  p.ops[kPermute] = {.name = "collective-permute-start.4",
                     .category = "collective-permute",
                     .scope = "jit(f)/layer/while/body/ppermute",
                     .source = "f.py:13",
                     .shape = "bf16[1000,1000]",
                     .collective = 1,
                     .is_async = true};
  p.ops[kLoopFusion] = {.name = "loop_fusion.5",
                        .category = "loop fusion",
                        .scope = "jit(f)/loss/add",
                        .source = "f.py:14",
                        .shape = "f32[1000,1000]",
                        .flops = Flops(1'000'000),
                        .model_flops = Flops(0),
                        .hbm_bytes = Bytes(10'000'000)};
  p.peak.hbm() = Bytes(4'000'000'000);
  p.usable.hbm() = Bytes(16'000'000'000);
  p.model_flops = Flops(6'000'000'000);
  p.hardware_flops = Flops(6'001'000'000);
  p.mxu_flops = Flops(6'000'000'000);
  p.hbm_bytes = Bytes(30'000'000);
  p.device_order = "partition i on device i";
  static constexpr Reason kRuns{"trip-counts.stated", Action::kAssumed,
                                "loop {subject} runs {count} times"};
  static constexpr Reason kGathered{"partition.gathered", Action::kWarned,
                                    "{subject}: involuntary all-gather"};
  p.records = {{"trip-counts", &kRuns, "while.2", {{"count", 2}}},
               {"partition", &kGathered, "f.py:10", {}}};
  return p;
}

// The two halves of the loop, by start in microseconds.
constexpr int64_t kIterations[] = {20, 56};

class SpanMaker {
 public:
  SpanMaker(int32_t device, std::vector<sim::Span>& spans) : device_(device), spans_(spans) {}

  sim::Span& Add(Track track, int32_t lane, int32_t op, Picoseconds start, Picoseconds end) {
    sim::Span s;
    s.device = device_;
    s.track = track;
    s.lane = lane;
    s.op = op;
    s.start = start;
    s.end = end;
    spans_.push_back(s);
    return spans_.back();
  }

 private:
  int32_t device_;
  std::vector<sim::Span>& spans_;
};

// Arrows 10 * step + sender: from the transfer to the write that it ends as.
uint64_t FlowId(int64_t step, int32_t sender) { return static_cast<uint64_t>(10 * step + sender); }

void AddTransfer(SpanMaker& m, int32_t device, int32_t op, int64_t step, Picoseconds start,
                 Picoseconds end, Bytes bytes) {
  const int32_t lane = static_cast<int32_t>(device == 0 ? Direction::kXPlus : Direction::kXMinus);
  sim::Span& out = m.Add(Track::kIci, lane, op, start, end);
  out.bytes = bytes;
  out.flow_out = FlowId(step, device);
  // What the peer sends arrives a hop later and is written meanwhile.
  sim::Span& in = m.Add(Track::kHbmDma, 0, op, start + Microseconds(1), end + Microseconds(1));
  in.bytes = bytes;
  in.flow_in = FlowId(step, 1 - device);
}

void AddSpans(int32_t device, std::vector<sim::Span>& spans) {
  SpanMaker m(device, spans);
  m.Add(Track::kTensorCore, 0, kAllGather, Microseconds(0), Microseconds(20));
  m.Add(Track::kCollective, 0, kAllGather, Microseconds(0), Microseconds(20));
  AddTransfer(m, device, kAllGather, 1, Microseconds(1), Microseconds(11), Bytes(1'000'000));
  m.Add(Track::kTensorCore, 0, kWhile, Microseconds(20), Microseconds(92));
  for (int64_t i = 0; i < 2; ++i) {
    const Picoseconds at = Microseconds(kIterations[i]);
    m.Add(Track::kTensorCore, 0, kMatmul, at, at + Microseconds(35)).order = i == 0 ? 1 : 0;
    m.Add(Track::kCollective, 1, kPermute, at, at + Microseconds(30));
    AddTransfer(m, device, kPermute, 2 + i, at + Microseconds(1), at + Microseconds(21),
                Bytes(2'000'000));
    // Three grid steps that meet between nanoseconds.
    Picoseconds start = at;
    for (int64_t step = 0; step < 3; ++step) {
      const Picoseconds end = step == 2 ? at + Microseconds(35) : start + Picoseconds(11'666'667);
      m.Add(Track::kMxu, 0, kMatmul, start, end).step = step;
      sim::Span& window = m.Add(Track::kHbmDma, 1, kMatmul, start, start + Microseconds(4));
      window.step = step;
      window.bytes = Bytes(3'333'333);
      start = end;
    }
  }
  m.Add(Track::kTensorCore, 0, kLoopFusion, Microseconds(92), Microseconds(100));
  m.Add(Track::kVpu, 0, kLoopFusion, Microseconds(92), Microseconds(100));
}

void AddCounters(int32_t device, std::vector<sim::CounterSample>& counters) {
  using sim::Counter;
  const int32_t lane = device == 0 ? 0 : 1;
  counters.push_back({device, Counter::kBandwidth, 0, Microseconds(0), 0});
  counters.push_back({device, Counter::kBandwidth, 0, Microseconds(20), 8e11});
  // Twice within a nanosecond: the later one counts.
  counters.push_back({device, Counter::kBandwidth, 0, Picoseconds(55'000'100), 4e11});
  counters.push_back({device, Counter::kBandwidth, 0, Picoseconds(55'000'900), 2e11});
  counters.push_back({device, Counter::kLinkBandwidth, lane, Microseconds(1), 5e10});
  counters.push_back({device, Counter::kLinkBandwidth, lane, Microseconds(2), 5e10});  // no change
  counters.push_back({device, Counter::kLinkBandwidth, lane, Microseconds(11), 0});
  counters.push_back({device, Counter::kLive, 0, Microseconds(0), 3e9});
  counters.push_back({device, Counter::kLive, 0, Microseconds(20), 4e9});
}

sim::Timeline MakeTimeline() {
  sim::Timeline t;
  std::vector<sim::Span> spans;
  std::vector<sim::CounterSample> samples;
  t.step_time = Microseconds(100);
  t.events = 1234;
  t.critical_device = 0;
  t.recorded_devices = {0, 1};
  t.devices.resize(2);
  for (int32_t device = 0; device < 2; ++device) {
    sim::DeviceTotals& d = t.devices[device];
    d.finish = Microseconds(100);
    d.mxu_busy = Microseconds(70);
    d.vpu_busy = Microseconds(8);
    d.compute_busy = Microseconds(78);
    d.collective = Microseconds(80);
    d.exposed = Microseconds(20);
    d.moved.hbm() = Bytes(30'000'000);
    d.peak_live.hbm() = Bytes(4'000'000'000);
    const auto leaving = static_cast<int>(device == 0 ? Direction::kXPlus : Direction::kXMinus);
    d.sent[leaving] = Bytes(5'000'000);
    d.received[1 - leaving] = Bytes(5'000'000);
    AddSpans(device, spans);
    AddCounters(device, samples);
  }
  t.recording = Recorded(spans, samples);
  t.ops.resize(5);
  t.ops[kAllGather] = {1, Microseconds(20), Microseconds(20)};
  t.ops[kAllGather].waited = Microseconds(20);
  t.ops[kWhile] = {1, Microseconds(72), Picoseconds(0)};
  t.ops[kMatmul] = {2, Microseconds(70), Picoseconds(0), Bytes(20'000'000)};
  t.ops[kPermute] = {2, Microseconds(60), Picoseconds(0)};
  t.covers = {{kPermute, kMatmul, Microseconds(60)}};
  t.ops[kLoopFusion] = {1, Microseconds(8), Picoseconds(0), Bytes(10'000'000)};
  // The loop itself has the microsecond behind each of its two passes.
  t.ops[kAllGather].main = Microseconds(20);
  t.ops[kWhile].main = Microseconds(2);
  t.ops[kMatmul].main = t.ops[kMatmul].main_busy = Microseconds(70);
  t.ops[kLoopFusion].main = t.ops[kLoopFusion].main_busy = Microseconds(8);
  // Two of the all-gather's microseconds are its launch; those of the loop are control.
  t.critical_path = {{-1, events::Spent::kLatency, Microseconds(2)},
                     {kAllGather, events::Spent::kIci, Microseconds(18)},
                     {kAllGather, events::Spent::kLatency, Microseconds(2)},
                     {kMatmul, events::Spent::kMxu, Microseconds(70)},
                     {kLoopFusion, events::Spent::kVpu, Microseconds(8)}};
  t.kinds = {{"all-gather", Microseconds(20), Microseconds(0)},
             {"collective-permute", Microseconds(60), Microseconds(60)}};
  return t;
}

}  // namespace

sim::Recording Recorded(const std::vector<sim::Span>& spans,
                        const std::vector<sim::CounterSample>& samples) {
  sim::Recording recording;
  for (const sim::Span& span : spans) recording.Add(span);
  for (const sim::CounterSample& sample : samples) recording.Add(sample);
  return recording;
}

Sample MakeSample() { return {MakeConfig(), MakeInfo(), MakeTimeline()}; }

Report SampleReport() {
  const Sample s = MakeSample();
  return BuildReport(s.config, s.info, s.timeline, "f").value();
}

absl::StatusOr<TraceModel> WholeTrace(const Sample& s) {
  TraceSource source(s.config, s.info, s.timeline);
  RETURN_IF_ERROR(source.Open());
  TraceModel whole = source.model();
  while (source.Next()) {
    const TraceModel& window = source.model();
    for (size_t i = 0; i < window.tracks.size(); ++i) {
      const TraceTrack& from = window.tracks[i];
      TraceTrack& to = whole.tracks[i];
      to.slices.insert(to.slices.end(), from.slices.begin(), from.slices.end());
      to.samples.insert(to.samples.end(), from.samples.begin(), from.samples.end());
    }
  }
  whole.names = source.model().names;
  return whole;
}

TraceTotals TotalsOf(const TraceModel& whole) {
  TraceCounter counter;
  counter.Add(whole);
  return counter.Totals();
}

std::string PerfettoBytes(const Sample& s) {
  const TemporaryFolder folder;
  const std::string path = folder / "sample.pftrace";
  const auto written = WritePerfettoTrace(path, s.config, s.info, s.timeline);
  TPUSIM_CHECK(written.ok(), Message(written.status()));
  std::stringstream bytes;
  bytes << std::ifstream(path, std::ios::binary).rdbuf();
  return bytes.str();
}

}  // namespace tpusim::results
