#include "models/chip/device.h"

#include <fmt/format.h>

namespace tpusim::chip {
namespace {

std::string NameOf(const char* what, const DeviceContext& context) {
  return context.index_on_chip == 0 ? what : fmt::format("{}{}", what, context.index_on_chip);
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
    case isa::StreamKind::kHost:
      kind = "host";
      break;
  }
  return fmt::format("{}[{}]", kind, id.index);
}

Device::Device(const DeviceContext& context)
    : id_(context.device),
      hbm_(NameOf("hbm", context).c_str(), context.fluid, context.params),
      cmem_(NameOf("cmem", context).c_str(), context.fluid, context.params),
      vmem_(NameOf("vmem", context).c_str(), context.params),
      mxu_(NameOf("mxu", context).c_str()),
      vpu_(NameOf("vpu", context).c_str(), context.fluid, context.params),
      xlu_(NameOf("xlu", context).c_str(), context.params),
      dma_(NameOf("dma", context).c_str(), context.fluid, hbm_, cmem_, context.params,
           context.probe),
      tensor_core_(NameOf("tensor_core", context).c_str(), context.params,
                   {mxu_, vpu_, xlu_, vmem_, dma_}, context.every_step, context.probe),
      flags_(context.program.flags),
      tokens_(context.program.tokens) {
  if (context.params.devices > 1) {
    die_link_ = std::make_unique<DieLink>(NameOf("die_link", context).c_str(), context.fluid,
                                          context.params);
  }
  if (context.params.sparse_core.count > 0) {
    sparse_core_ = std::make_unique<SparseCore>(NameOf("sparse_core", context).c_str(),
                                                context.fluid, context.params);
  }
  const DeviceParts parts{
      .device = id_,
      .copies = context.copies,
      .params = context.params,
      .program = context.program,
      .hbm = hbm_,
      .cmem = cmem_,
      .vmem = vmem_,
      .dma = dma_,
      .tensor_core = tensor_core_,
      .host_link = context.host_link,
      .network = context.network,
      .flags = flags_,
      .tokens = tokens_,
      .faults = context.faults,
      .probe = context.probe,
      .streams = streams_,
      .loops = context.loops,
  };
  for (const isa::StreamId& id : context.stream_ids) {
    // Brackets and dots mean something in SystemC's names.
    std::string name = StreamName(id);
    name.pop_back();
    name[name.find('[')] = '_';
    owned_streams_.push_back(std::make_unique<Stream>(
        NameOf(("stream_" + name).c_str(), context).c_str(), parts,
        events::StreamRef{id, static_cast<int32_t>(owned_streams_.size())}));
    streams_.push_back(owned_streams_.back().get());
  }
}

}  // namespace tpusim::chip
