// The text form of a program.
//
//   program 0: devices 0-7
//     begin fusion.3 [convolution fusion] flops=4294967296 file.py:12
//       kernel grid 4x2(0.5) step mxu 256x1024x512 bf16, valu 128
//         in  %a   262144 B hbm, moves with d0, 2 buffers
//     end fusion.3
//     start collective[0] token 1
//       rdma 'ring x+' 1048576 B hbm -> hbm, arrives at flag 3
//
// Bodies appear where they are used, indented; a loop's body appears once.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "configs/memory.h"
#include "configs/printable.h"
#include "models/isa/program.h"

namespace tpusim::isa {
namespace {

// In the order of the enumerators.
constexpr std::string_view kFormatNames[] = {"bf16", "f32",  "f32-high", "f32-highest",
                                             "int8", "int4", "fp8",      "int32"};
constexpr std::string_view kStreamNames[] = {"tensor_core", "collective", "sparse_core", "copy",
                                             "host"};

std::string_view Name(MemorySpace space) { return configs::MemoryOf(space).name; }
std::string_view Name(NumberFormat format) { return kFormatNames[static_cast<size_t>(format)]; }
std::string_view Name(StreamKind kind) { return kStreamNames[static_cast<size_t>(kind)]; }

// "0-3,8": runs of consecutive numbers.
std::string Ranges(const std::vector<int64_t>& numbers) {
  std::string text;
  for (size_t i = 0; i < numbers.size();) {
    size_t end = i;
    while (end + 1 < numbers.size() && numbers[end + 1] == numbers[end] + 1) ++end;
    text += fmt::format("{}{}", text.empty() ? "" : ",", numbers[i]);
    if (end > i) text += fmt::format("-{}", numbers[end]);
    i = end + 1;
  }
  return text;
}

class Writer {
 public:
  explicit Writer(const PodProgram& program) : program_(program) {}

  std::string Run() {
    if (!program_.info.module_name.empty()) Line("module {}", program_.info.module_name);
    for (const Route& route : program_.routes) WriteRoute(route);
    for (size_t i = 0; i < program_.programs.size(); ++i) {
      std::vector<int64_t> devices;
      for (int64_t d = 0; d < program_.devices(); ++d) {
        if (program_.program_of_device[d] == static_cast<int32_t>(i)) devices.push_back(d);
      }
      Line("program {}: devices {}", i, devices.empty() ? "none" : Ranges(devices));
      Nested(*program_.programs[i]);
    }
    return std::move(text_);
  }

 private:
  template <typename... Args>
  void Line(fmt::format_string<Args...> format, Args&&... args) {
    text_.append(static_cast<size_t>(2 * depth_), ' ');
    text_ += configs::Printable(fmt::format(format, std::forward<Args>(args)...));
    text_ += '\n';
  }

  // One line for all devices from which it crosses as many links.
  void WriteRoute(const Route& route) {
    std::vector<int64_t> senders;
    size_t fewest = SIZE_MAX, most = 0;
    for (size_t d = 0; d < route.from.size(); ++d) {
      if (route.from[d].peer < 0) continue;
      senders.push_back(static_cast<int64_t>(d));
      fewest = std::min(fewest, route.from[d].links.size());
      most = std::max(most, route.from[d].links.size());
    }
    if (senders.empty()) return Line("route '{}': from nowhere", route.name);
    const RouteEnd& first = route.from[senders.front()];
    std::string links;
    for (const configs::Link& link : first.links) {
      links += fmt::format(" {}:{}", link.chip, configs::DirectionName(link.direction));
    }
    if (links.empty()) links = first.dcn ? " the data-centre network" : " nothing";
    Line("route '{}': from devices {}, {} hops; from {} to {} over{}", route.name, Ranges(senders),
         fewest == most ? fmt::format("{}", most) : fmt::format("{}-{}", fewest, most),
         senders.front(), first.peer, links);
  }

  void Nested(const Body& body) {
    ++depth_;
    const int depth = depth_;
    WriteAll(body);
    depth_ = depth - 1;
  }

  void WriteAll(const Body& body) {
    for (const Instruction& instruction : body) {
      std::visit([this](const auto& kind) { Write(kind); }, instruction.kind);
    }
  }

  std::string Slots(const Block& block) const {
    std::string text;
    const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
    if (block.mxu.m > 0) {
      add(fmt::format("mxu {}{}x{}x{} {}",
                      block.mxu.batch == 1 ? "" : fmt::format("{} of ", block.mxu.batch),
                      block.mxu.m, block.mxu.k, block.mxu.n, Name(block.mxu.format)));
    }
    const auto slot = [&](std::string_view name, int64_t count) {
      if (count > 0) add(fmt::format("{} {}", name, count));
    };
    slot("valu", block.valu);
    slot("eup", block.eup);
    slot("xlu", block.xlu);
    slot("load", block.load);
    slot("store", block.store);
    slot("scalar", block.scalar.value());
    slot("latency", block.latency.value());
    if (block.stated > Picoseconds(0)) {
      add(fmt::format("{} for {} ns as stated", block.stated_products ? "mxu" : "vector units",
                      ToNanoseconds(block.stated)));
    }
    return text.empty() ? "nothing" : text;
  }

  void Write(const Block& block) { Line("block {}", Slots(block)); }
  void Write(const Kernel& kernel) {
    std::string grid;
    for (const GridDim& dim : kernel.grid) {
      grid += fmt::format("{}{}", grid.empty() ? "" : "x", dim.count);
      if (dim.last_fraction != 1) grid += fmt::format("({:.3g})", dim.last_fraction);
    }
    Line("kernel grid {} step {}{}", grid.empty() ? "1" : grid, Slots(kernel.block),
         kernel.polls ? ", polls" : "");
    ++depth_;
    for (const Window& window : kernel.windows) {
      std::string dims;
      for (size_t d = 0; d < kernel.grid.size(); ++d) {
        if ((window.moves_with >> d & 1U) != 0) dims += fmt::format(" d{}", d);
      }
      Line("{:3} {} {} B {}, {}, {} buffer{}", window.kind == WindowKind::kInput ? "in" : "out",
           window.operand.empty() ? "-" : window.operand, window.bytes.value(), Name(window.space),
           dims.empty() ? "stays" : "moves with" + dims, window.buffers,
           window.buffers == 1 ? "" : "s");
    }
    --depth_;
  }
  void Write(const Dma& dma) {
    Line("dma {} B {} -> {}", dma.bytes.value(), Name(dma.from), Name(dma.to));
  }
  void Write(const HostDma& dma) {
    Line("hdma {} B {}", dma.bytes.value(), dma.to_host ? "hbm -> host" : "host -> hbm");
  }
  std::string RouteName(int32_t route) const { return program_.routes[route].name; }
  void Write(const Rdma& rdma) {
    std::string flags;
    if (rdma.arrival_flag >= 0) flags += fmt::format(", arrives at flag {}", rdma.arrival_flag);
    if (rdma.sent_flag >= 0) flags += fmt::format(", sent at flag {}", rdma.sent_flag);
    Line("rdma '{}' {} B {} -> {}{}{}", RouteName(rdma.route), rdma.bytes.value(), Name(rdma.from),
         Name(rdma.to),
         rdma.reduce ? fmt::format(", adds elements of {} B{}", rdma.reduce->element_bytes,
                                   rdma.reduce->sparse_core ? " on the SparseCores" : "")
                     : "",
         flags);
  }
  void Write(const Signal& signal) {
    Line("signal '{}' flag {}", RouteName(signal.route), signal.flag);
  }
  void Write(const Poll&) { Line("poll"); }
  void Write(const Wait& wait) { Line("wait flag {} count {}", wait.flag, wait.count); }
  void Write(const Loop& loop) {
    Line("loop {} times{}", loop.count,
         loop.iterations == nullptr ? "" : ", names as in the first iteration");
    Nested(*loop.body);
  }
  void Write(const Call& call) { WriteAll(*call.body); }
  void Write(const Branch& branch) {
    Line("branch {} of {} taken", branch.taken, branch.bodies.size());
    Nested(*branch.bodies[branch.taken]);
  }
  void Write(const Label& label) {
    const OpInfo& op = program_.info.ops[label.op];
    if (!label.begin) {
      --depth_;
      return Line("end {}", op.name);
    }
    std::string extra;
    if (op.flops > Flops(0)) extra += fmt::format(" flops={}", op.flops.value());
    if (!op.source.empty()) extra += " " + op.source;
    Line("begin {} [{}]{}", op.name, op.category, extra);
    ++depth_;
  }
  std::string Buffer(int32_t buffer) const {
    const BufferInfo& info = program_.info.buffers[buffer];
    return fmt::format("{} {} B", info.name, info.bytes.value());
  }
  void Write(const Alloc& alloc) { Line("alloc {} {}", Name(alloc.space), Buffer(alloc.buffer)); }
  void Write(const Free& free) { Line("free {} {}", Name(free.space), Buffer(free.buffer)); }
  void Write(const Start& start) {
    Line("start {}[{}] token {}", Name(start.stream.kind), start.stream.index, start.token);
    Nested(*start.body);
  }
  void Write(const Done& done) { Line("done token {}", done.token); }

  const PodProgram& program_;
  std::string text_;
  int depth_ = 0;
};

}  // namespace

std::string Disassemble(const PodProgram& program) { return Writer(program).Run(); }

}  // namespace tpusim::isa
