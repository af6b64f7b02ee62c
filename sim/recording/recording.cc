#include "sim/recording/recording.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "configs/status_macros.h"

namespace tpusim::sim {

namespace {

constexpr int64_t kNanosecond = 1000;
constexpr int64_t kAlways = std::numeric_limits<int64_t>::min();
constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

int32_t Narrow(int64_t value) {
  TPUSIM_CHECK(value == static_cast<int32_t>(value), "a grid step that has no 32 bits");
  return static_cast<int32_t>(value);
}

}  // namespace

Recording::Place Recording::SeriesRows::Find(const SeriesRow& row) {
  const auto [it, is_new] = found_.emplace(row, static_cast<Place>(rows_.size()));
  if (is_new) rows_.push_back(row);
  return it->second;
}

Recording::Place Recording::PlaceOf(const std::vector<int32_t>& devices, Track track,
                                    int32_t lane) {
  return tracks_.Find({devices, static_cast<int32_t>(track), lane});
}

Recording::Place Recording::PlaceOf(const std::vector<int32_t>& devices, Counter counter,
                                    int32_t lane) {
  return counters_.Find({devices, static_cast<int32_t>(counter), lane});
}

void Recording::Add(Place place, const Span& span) {
  int64_t extra = 0;
  if (span.flow_out != 0) extra = static_cast<int64_t>(span.flow_out);
  if (span.flow_in != 0) extra = -static_cast<int64_t>(span.flow_in);
  if (span.merged > 0) extra = span.busy.value();
  TPUSIM_CHECK((span.flow_out != 0) + (span.flow_in != 0) + (span.merged > 0) <= 1,
               "a span with two arrows, or merged ones");
  spans_.Add({.start = span.start.value(),
              .duration = (span.end - span.start).value(),
              .bytes = span.bytes.value(),
              .extra = extra,
              .op = span.op,
              .merged = Narrow(span.merged),
              .step = Narrow(span.order > 0 ? -1 - span.order : span.step),
              .place = place});
}

void Recording::Add(Place place, Picoseconds time, double value) {
  samples_.Add({time.value(), value, place});
}

void Recording::Add(const Span& span) { Add(PlaceOf({span.device}, span.track, span.lane), span); }

void Recording::Add(const CounterSample& sample) {
  Add(PlaceOf({sample.device}, sample.counter, sample.lane), sample.time, sample.value);
}

void Recording::Repeat(const Mark& mark, Picoseconds period, int64_t times, uint64_t arrows) {
  spans_.Repeat(mark.spans, period.value(), times, arrows);
  samples_.Repeat(mark.samples, period.value(), times, arrows);
}

void Recording::Unpack(const PackedSpan& packed, const ReplayShift& shift,
                       std::vector<Span>& spans) const {
  const SeriesRow& row = tracks_[packed.place];
  Span span;
  span.track = static_cast<Track>(row.kind);
  span.lane = row.lane;
  span.op = packed.op;
  span.step = std::max(packed.step, -1);
  span.order = -1 - std::min(packed.step, -1);
  span.start = Picoseconds(packed.start + shift.time);
  span.end = span.start + Picoseconds(packed.duration);
  span.bytes = Bytes(packed.bytes);
  span.merged = packed.merged;
  if (packed.merged > 0) {
    span.busy = Picoseconds(packed.extra);
  } else if (packed.extra > 0) {
    span.flow_out = static_cast<uint64_t>(packed.extra) + shift.arrows;
  } else if (packed.extra < 0) {
    span.flow_in = static_cast<uint64_t>(-packed.extra) + shift.arrows;
  }
  for (const int32_t device : row.devices) {
    span.device = device;
    spans.push_back(span);
  }
}

void Recording::Unpack(const PackedSample& packed, const ReplayShift& shift,
                       std::vector<CounterSample>& samples) const {
  const SeriesRow& row = counters_[packed.place];
  for (const int32_t device : row.devices) {
    samples.push_back({device, static_cast<Counter>(row.kind), row.lane,
                       Picoseconds(packed.time + shift.time), packed.value});
  }
}

std::vector<Span> Recording::Spans() const {
  std::vector<Span> all;
  const auto unpack = [&](const auto& packed, auto shift) {
    Unpack(packed, shift, all);
    return true;
  };
  ReplayLog<PackedSpan>::LogReader(spans_).Read(kAlways, kNever, unpack);
  std::ranges::stable_sort(all, {}, &Span::end);
  return all;
}

std::vector<CounterSample> Recording::Samples() const {
  std::vector<CounterSample> all;
  const auto unpack = [&](const auto& packed, auto shift) {
    Unpack(packed, shift, all);
    return true;
  };
  ReplayLog<PackedSample>::LogReader(samples_).Read(kAlways, kNever, unpack);
  return all;
}

RecordingReader::RecordingReader(const Recording& recording, int64_t entries)
    : recording_(recording),
      entries_(entries),
      spans_(recording.spans_),
      samples_(recording.samples_),
      left_(recording.spans_.size() + recording.samples_.size()) {}

bool RecordingReader::Read(int64_t until, int64_t limit, std::vector<Span>& spans,
                           std::vector<CounterSample>& samples) {
  spans.clear();
  samples.clear();
  int64_t found = 0;
  const auto fits = [&] { return static_cast<int64_t>(spans.size() + samples.size()) <= limit; };
  spans_.Read(from_, until, [&](const Recording::PackedSpan& packed, const ReplayShift& shift) {
    recording_.Unpack(packed, shift, spans);
    ++found;
    return fits();
  });
  if (!fits()) return false;
  samples_.Read(from_, until, [&](const Recording::PackedSample& packed, const ReplayShift& shift) {
    recording_.Unpack(packed, shift, samples);
    ++found;
    return fits();
  });
  if (!fits()) return false;
  left_ -= found;
  return true;
}

bool RecordingReader::Next(std::vector<Span>& spans, std::vector<CounterSample>& samples) {
  if (left_ == 0) return false;
  // The width of windows follows how much is in them.
  const int64_t from = std::max<int64_t>(from_, 0);
  while (true) {
    const int64_t until = from + width_ * kNanosecond;
    if (Read(until, width_ == 1 ? kNever : 2 * entries_, spans, samples)) {
      from_ = until;
      break;
    }
    width_ /= 2;
  }
  if (static_cast<int64_t>(spans.size() + samples.size()) < entries_ / 2) width_ *= 2;
  until_ = left_ == 0 ? kNever : from_;
  return true;
}

}  // namespace tpusim::sim
