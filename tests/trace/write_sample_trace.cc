// write_sample_trace TRACE TOTALS: the step of tests/sim/results/sample.h as a
// trace, and what must be found in it. TRACE.broken-NAME are the same trace with
// one deliberate defect each.
#include <cstdio>
#include <string>

#include "configs/status_macros.h"
#include "sim/results/report/atomic_file.h"
#include "sim/results/trace/perfetto.h"
#include "sim/results/trace/perfetto_trace.pb.h"
#include "tests/sim/results/sample.h"

namespace tpusim::results {
namespace {

namespace pb = ::tpusim::perfetto;

// The trace with one change: `damage` returns true for the packet to drop, and
// may alter packets. It must find something.
template <typename Damage>
std::string Broken(const std::string& trace, Damage damage) {
  pb::Trace whole;
  TPUSIM_CHECK(whole.ParseFromString(trace), "own trace does not parse");
  for (int i = 0; i < whole.packet_size(); ++i) {
    if (!damage(*whole.mutable_packet(i))) continue;
    whole.mutable_packet()->DeleteSubrange(i, 1);
    break;
  }
  std::string bytes = whole.SerializeAsString();
  TPUSIM_CHECK(bytes != trace, "nothing to break");
  return bytes;
}

absl::Status WriteAll(const std::string& path, const std::string& totals_path) {
  const Sample s = MakeSample();
  ASSIGN_OR_RETURN(const TraceTotals totals,
                   WritePerfettoTrace(path, s.config, s.info, s.timeline));
  RETURN_IF_ERROR(WriteFileAtomically(totals_path, ToJson(totals, {})));

  const std::string bytes = PerfettoBytes(s);
  const std::string broken = path + ".broken-";
  RETURN_IF_ERROR(WriteFileAtomically(broken + "cut", bytes.substr(0, bytes.size() / 2)));
  RETURN_IF_ERROR(WriteFileAtomically(broken + "end", Broken(bytes, [](pb::TracePacket& p) {
                                        return p.track_event().type() ==
                                               pb::TrackEvent::TYPE_SLICE_END;
                                      })));
  bool damaged = false;
  RETURN_IF_ERROR(WriteFileAtomically(broken + "flow", Broken(bytes, [&](pb::TracePacket& p) {
                                        if (!damaged &&
                                            p.track_event().terminating_flow_ids_size() > 0) {
                                          p.mutable_track_event()->clear_terminating_flow_ids();
                                          damaged = true;
                                        }
                                        return false;
                                      })));
  RETURN_IF_ERROR(WriteFileAtomically(broken + "counter", Broken(bytes, [](pb::TracePacket& p) {
                                        return p.track_event().type() ==
                                               pb::TrackEvent::TYPE_COUNTER;
                                      })));
  RETURN_IF_ERROR(WriteFileAtomically(
      broken + "state", Broken(bytes, [](pb::TracePacket& p) { return p.sequence_flags() == 3; })));
  return WriteFileAtomically(broken + "track", Broken(bytes, [](pb::TracePacket& p) {
                               return p.track_descriptor().name() == "MXU";
                             }));
}

}  // namespace
}  // namespace tpusim::results

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: write_sample_trace TRACE TOTALS\n");
    return 2;
  }
  const absl::Status status = tpusim::results::WriteAll(argv[1], argv[2]);
  if (!status.ok()) std::fprintf(stderr, "%s\n", tpusim::Message(status).c_str());
  return status.ok() ? 0 : 1;
}
