#include "workloads/hlo/io/own_frames.h"

#include <string_view>
#include <unordered_set>

namespace tpusim::hlo {
namespace {

bool IsInstalled(std::string_view path) {
  return path.find("/site-packages/") != std::string_view::npos ||
         path.find("/dist-packages/") != std::string_view::npos;
}

}  // namespace

void AttributeToOwnFrames(const std::vector<std::string>& library_files,
                          pb::StackFrameIndexProto& index) {
  const std::unordered_set<std::string_view> listed(library_files.begin(), library_files.end());
  std::vector<char> is_own(index.file_names_size() + 1, 0);  // ids are 1-based; 0 is no file
  bool all_own = true;
  for (int i = 0; i < index.file_names_size(); ++i) {
    const std::string& name = index.file_names(i);
    is_own[i + 1] = !name.empty() && !listed.contains(name) && !IsInstalled(name) ? 1 : 0;
    all_own = all_own && is_own[i + 1] != 0;
  }
  if (all_own) return;
  // Ids of a file may be any numbers.
  const auto location_is_own = [&](int location) {
    if (location <= 0 || location > index.file_locations_size()) return false;
    const int file = index.file_locations(location - 1).file_name_id();
    return file > 0 && file < static_cast<int>(is_own.size()) && is_own[file] != 0;
  };
  const int frames = index.stack_frames_size();
  std::vector<int> location_of(frames);
  for (int i = 0; i < frames; ++i) {
    location_of[i] = index.stack_frames(i).file_location_id();
    int frame = i + 1;
    for (int steps = 0; frame > 0 && frame <= frames && steps < frames; ++steps) {
      const auto& at = index.stack_frames(frame - 1);
      if (location_is_own(at.file_location_id())) {
        location_of[i] = at.file_location_id();
        break;
      }
      frame = at.parent_frame_id();
    }
  }
  for (int i = 0; i < frames; ++i) {
    index.mutable_stack_frames(i)->set_file_location_id(location_of[i]);
  }
}

}  // namespace tpusim::hlo
