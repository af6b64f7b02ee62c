#include "models/chip/device.h"

#include <fmt/format.h>

#include <string_view>

#include "configs/memory.h"

namespace tpusim::chip {
namespace {

std::string NameOf(std::string_view what, const DeviceContext& context) {
  return context.index_on_chip == 0 ? std::string(what)
                                    : fmt::format("{}{}", what, context.index_on_chip);
}

std::vector<std::unique_ptr<Memory>> MemoriesOf(const DeviceContext& context) {
  std::vector<std::unique_ptr<Memory>> memories;
  for (const configs::Memory& row : configs::kMemories) {
    if (row.capacity == nullptr) continue;
    memories.push_back(std::make_unique<Memory>(NameOf(row.name, context).c_str(), row,
                                                context.fluid, context.params));
  }
  return memories;
}

}  // namespace

std::string StreamName(const isa::StreamId& id) {
  const char* kind = "host";
  switch (id.kind) {
    case isa::StreamKind::kTensorCore:
      kind = "tensor_core";
      break;
    case isa::StreamKind::kCollective:
      kind = "collective";
      break;
    case isa::StreamKind::kSparseCore:
      kind = "sparse_core";
      break;
    case isa::StreamKind::kCopy:
      kind = "copy";
      break;
    case isa::StreamKind::kHost:
      kind = "host";
      break;
  }
  return fmt::format("{}[{}]", kind, id.index);
}

Device::Device(const DeviceContext& context)
    : id_(context.device),
      memories_(MemoriesOf(context)),
      mxu_(NameOf("mxu", context).c_str()),
      vpu_(NameOf("vpu", context).c_str(), context.fluid, context.params),
      xlu_(NameOf("xlu", context).c_str()),
      dma_(NameOf("dma", context).c_str(), context.fluid, context.params, context.stream_ids.size(),
           context.probe),
      tensor_core_(NameOf("tensor_core", context).c_str(), context.params, context.every_step,
                   context.probe),
      flags_(NameOf("flags", context).c_str(), context.program.flags),
      fork_join_(NameOf("fork_join", context).c_str()) {
  if (context.params.devices > 1) {
    die_link_ = std::make_unique<Server>(NameOf("die_link", context).c_str(), context.fluid,
                                         context.params.ici.die_to_die_bytes_per_second.value());
  }
  if (context.params.sparse_core.count > 0) {
    sparse_core_ = std::make_unique<Server>(NameOf("sparse_core", context).c_str(), context.fluid,
                                            timing::AddsPerSecond(context.params), ".adds");
  }
  AddStreams(context);
  Bind(context);
}

void Device::AddStreams(const DeviceContext& context) {
  const StreamContext stream{
      .device = id_,
      .multiplicity = context.multiplicity,
      .params = context.params,
      .program = context.program,
      .faults = context.faults,
      .probe = context.probe,
      .ready = context.ready,
      .loops = context.loops,
      .causes = context.causes,
  };
  for (const isa::StreamId& id : context.stream_ids) {
    // Brackets and dots mean something in SystemC's names.
    std::string name = StreamName(id);
    name.pop_back();
    name[name.find('[')] = '_';
    streams_.push_back(
        std::make_unique<Stream>(NameOf("stream_" + name, context).c_str(), stream,
                                 events::StreamRef{id, static_cast<int32_t>(streams_.size())}));
  }
}

void Device::Bind(const DeviceContext& context) {
  tensor_core_.mxu(mxu_);
  tensor_core_.vpu(vpu_);
  tensor_core_.xlu(xlu_);
  tensor_core_.vmem(memory(isa::MemorySpace::kVmem));
  tensor_core_.dma(dma_);
  for (const auto& memory : memories_) dma_.memories(*memory);
  for (const auto& stream : streams_) {
    for (const auto& memory : memories_) stream->memories(*memory);
    stream->dma(dma_);
    stream->tensor_core(tensor_core_);
    stream->host_link(context.host_link);
    stream->network(context.network);
    stream->flags(flags_);
    stream->fork_join(fork_join_);
    fork_join_.streams(*stream);
  }
}

}  // namespace tpusim::chip
