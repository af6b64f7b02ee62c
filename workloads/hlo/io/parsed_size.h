// The memory that a message will take, found before it is parsed.
//
// Two bytes of wire format can be an empty instruction, which takes a kilobyte as
// an object; and two bytes a thousand times over compress well. So the wire is
// walked first, without making anything, and what it would become is added up.
#ifndef TPUSIM_WORKLOADS_HLO_IO_PARSED_SIZE_H_
#define TPUSIM_WORKLOADS_HLO_IO_PARSED_SIZE_H_

#include <google/protobuf/descriptor.h>

#include <cstdint>
#include <optional>
#include <string_view>

namespace tpusim::hlo {

// Bytes that `wire`, parsed as a message of `type`, takes as objects: their own
// size, their strings, the elements of their lists. Counting ends above `limit`.
// nullopt: the wire is damaged or cut short, no parser accepts it.
std::optional<int64_t> ParsedSize(std::string_view wire, const google::protobuf::Descriptor& type,
                                  int64_t limit);

}  // namespace tpusim::hlo

#endif  // TPUSIM_WORKLOADS_HLO_IO_PARSED_SIZE_H_
