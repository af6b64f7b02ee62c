#include "sim/simulate.h"

#include <fmt/format.h>

#include <systemc>
#include <utility>

#include "configs/status_macros.h"
#include "models/isa/verify.h"
#include "sim/deadlock.h"
#include "sim/pod.h"
#include "sim/recorder.h"

namespace tpusim::sim {

absl::StatusOr<Timeline> Simulate(const configs::Config& config, const isa::PodProgram& program,
                                  const SimulationOptions& options) {
  static bool simulated = false;
  TPUSIM_CHECK(!std::exchange(simulated, true), "SystemC runs one simulation per process");
  RETURN_IF_ERROR(isa::Verify(program, config.topology));
  for (const int32_t device : options.record_devices) {
    if (device < 0 || device >= program.devices()) {
      return UserError(fmt::format("device {} cannot be recorded: the slice has devices 0 to {}",
                                   device, program.devices() - 1));
    }
  }
  // SystemC talks to stdout about itself, which belongs to our results.
  sc_core::sc_report_handler::set_actions(sc_core::SC_INFO, sc_core::SC_DO_NOTHING);
  TPUSIM_CHECK(sc_core::sc_get_time_resolution() == sc_core::sc_time(1, sc_core::SC_PS),
               "SystemC does not count picoseconds");

  RETURN_IF_ERROR(CheckRoutes(program, options.impairments));
  const Classes classes =
      options.fold ? FindClasses(config, program, options.impairments) : Unfolded(config);
  Recorder recorder(config, program, classes, options.record_devices);
  Pod pod("pod", config, program, options.impairments, classes, options.every_step, recorder);
  sc_core::sc_start();  // until nothing is left to happen, or a fault
  RETURN_IF_ERROR(pod.fault());
  RETURN_IF_ERROR(CheckFinished(pod, program));

  Timeline timeline = recorder.Finish();
  timeline.events = pod.events();
  timeline.chip_classes = classes.chips.classes();
  pod.AddBytes(timeline);
  pod.CheckInvariants(timeline);
  return timeline;
}

std::vector<int32_t> Representatives(const isa::PodProgram& program) {
  std::vector<int32_t> first(program.programs.size(), -1);
  std::vector<int32_t> devices;
  for (int32_t d = 0; d < program.devices(); ++d) {
    int32_t& seen = first[program.program_of_device[d]];
    if (seen >= 0) continue;
    seen = d;
    devices.push_back(d);
  }
  return devices;
}

}  // namespace tpusim::sim
