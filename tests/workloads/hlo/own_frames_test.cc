#include "workloads/hlo/io/own_frames.h"

#include <gtest/gtest.h>

namespace tpusim::hlo {
namespace {

// Frame 1 in train.py:10 calls frame 2 in flax/linear.py:20, which calls frame 3 in
// flax/dtypes.py:30; frame 4 in flax/linear.py:20 has no caller.
pb::StackFrameIndexProto Index() {
  pb::StackFrameIndexProto index;
  int file = 0;
  for (const char* name : {"train.py", "flax/linear.py", "flax/dtypes.py"}) {
    index.add_file_names(name);
    auto* location = index.add_file_locations();
    location->set_file_name_id(++file);
    location->set_line(10 * file);
  }
  for (const auto& [location, parent] : {std::pair{1, 0}, {2, 1}, {3, 2}, {2, 0}}) {
    auto* frame = index.add_stack_frames();
    frame->set_file_location_id(location);
    frame->set_parent_frame_id(parent);
  }
  return index;
}

std::vector<int> Locations(const pb::StackFrameIndexProto& index) {
  std::vector<int> locations;
  for (const auto& frame : index.stack_frames()) locations.push_back(frame.file_location_id());
  return locations;
}

TEST(OwnFrames, PackagesGiveWayToTheirCaller) {
  pb::StackFrameIndexProto index = Index();
  AttributeToOwnFrames({"flax/linear.py", "flax/dtypes.py"}, index);
  EXPECT_EQ(Locations(index), (std::vector<int>{1, 1, 1, 2}));  // the last one has none
}

TEST(OwnFrames, OnlyThoseThatAreListed) {
  pb::StackFrameIndexProto index = Index();
  AttributeToOwnFrames({"flax/dtypes.py"}, index);
  EXPECT_EQ(Locations(index), (std::vector<int>{1, 2, 2, 2}));
  AttributeToOwnFrames({}, index);
  EXPECT_EQ(Locations(index), (std::vector<int>{1, 2, 2, 2}));
}

TEST(OwnFrames, InstalledFilesAreKnownByTheirPath) {
  pb::StackFrameIndexProto index = Index();
  index.set_file_names(2, "/usr/lib/python3/dist-packages/flax/dtypes.py");
  index.set_file_names(1, "/home/u/venv/lib/python3.12/site-packages/flax/linear.py");
  AttributeToOwnFrames({}, index);
  EXPECT_EQ(Locations(index), (std::vector<int>{1, 1, 1, 2}));
}

TEST(OwnFrames, NumbersOfADamagedFileDoNotMatter) {
  pb::StackFrameIndexProto index = Index();
  index.mutable_stack_frames(2)->set_parent_frame_id(3);   // itself
  index.mutable_stack_frames(1)->set_parent_frame_id(99);  // none
  index.mutable_stack_frames(3)->set_file_location_id(-7);
  AttributeToOwnFrames({"flax/linear.py", "flax/dtypes.py"}, index);
  EXPECT_EQ(Locations(index), (std::vector<int>{1, 2, 3, -7}));
}

}  // namespace
}  // namespace tpusim::hlo
