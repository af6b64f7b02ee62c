#include "sim/results/measured/profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "configs/status_macros.h"
#include "sim/results/trace/xplane.pb.h"
#include "tests/temporary_folder.h"

namespace tpusim::results {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
namespace xp = ::tpusim::xplane;

// A time of day in nanoseconds, as profiles of real devices begin.
constexpr int64_t kBase = 1'795'000'000'000'000'000;

// One device with the modules jit_step and jit_other, and what XProf says of two operations.
class ProfileTest : public ::testing::Test {
 protected:
  ProfileTest() {
    plane_ = space_.add_planes();
    plane_->set_name("/device:TPU:0");
    Name(1, "jit_step(17)", "");
    Name(2, "jit_other(3)", "");
    Name(3, "%while.1 = (s32[]) while(%t)", "");
    Name(4, "%fusion.2 = f32[8]{0} fusion(%x)", "fusion.2");
    for (const auto& [id, name] :
         {std::pair{1, "hlo_category"}, {2, "tf_op"}, {3, "source"}, {4, "loop fusion"}}) {
      (*plane_->mutable_stat_metadata())[id].set_id(id);
      (*plane_->mutable_stat_metadata())[id].set_name(name);
    }
    xp::XEventMetadata& fusion = (*plane_->mutable_event_metadata())[4];
    xp::XStat& category = *fusion.add_stats();
    category.set_metadata_id(1);
    category.set_ref_value(4);
    xp::XStat& scope = *fusion.add_stats();
    scope.set_metadata_id(2);
    scope.set_str_value("jit(step)/layer/add:");
    xp::XStat& source = *fusion.add_stats();
    source.set_metadata_id(3);
    source.set_str_value("step.py:7");
    modules_ = plane_->add_lines();
    modules_->set_name("XLA Modules");
    modules_->set_timestamp_ns(kBase);
    ops_ = plane_->add_lines();
    ops_->set_name("XLA Ops");
    // Lines have a beginning each.
    ops_->set_timestamp_ns(kBase + 1000);
  }

  void Name(int64_t id, const std::string& name, const std::string& display) {
    xp::XEventMetadata& metadata = (*plane_->mutable_event_metadata())[id];
    metadata.set_id(id);
    metadata.set_name(name);
    metadata.set_display_name(display);
  }
  static void Add(xp::XLine& line, int64_t id, int64_t start_ns, int64_t ns) {
    xp::XEvent& event = *line.add_events();
    event.set_metadata_id(id);
    event.set_offset_ps(start_ns * 1000);
    event.set_duration_ps(ns * 1000);
  }
  // A loop of 60 ns around two fusions of 20 and 10, and 5 of nothing on both sides.
  void AddStep(int64_t start_ns) {
    Add(*modules_, 1, start_ns, 70);
    Add(*ops_, 3, start_ns + 5 - 1000, 60);
    Add(*ops_, 4, start_ns + 10 - 1000, 20);
    Add(*ops_, 4, start_ns + 40 - 1000, 10);
  }
  std::string Write() {
    std::filesystem::create_directories(folder_ + "/plugins/profile/run");
    std::ofstream(folder_ + "/plugins/profile/run/host.xplane.pb", std::ios::binary)
        << space_.SerializeAsString();
    return folder_;
  }

  xp::XSpace space_;
  xp::XPlane* plane_;
  xp::XLine *modules_, *ops_;
  const TemporaryFolder temporary_;
  const std::string folder_ = temporary_.path().string();
};

TEST_F(ProfileTest, OperationsHaveTheirOwnTime) {
  AddStep(2000);
  AddStep(2100);
  const absl::StatusOr<Profile> p = ReadProfile(Write(), "jit_step");
  ASSERT_TRUE(p.ok()) << Message(p.status());
  EXPECT_EQ(p->module, "jit_step");
  EXPECT_EQ(p->devices, 1);
  EXPECT_EQ(p->executions, 2);
  EXPECT_EQ(p->step, Nanoseconds(70));
  EXPECT_EQ(p->gap, Nanoseconds(30));
  ASSERT_EQ(p->ops.size(), 2U);
  EXPECT_EQ(p->ops[0].name, "fusion.2");
  EXPECT_EQ(p->ops[0].category, "loop fusion");
  EXPECT_EQ(p->ops[0].scope, "jit(step)/layer/add");
  EXPECT_EQ(p->ops[0].source, "step.py:7");
  EXPECT_EQ(p->ops[0].count, 2);
  EXPECT_EQ(p->ops[0].time, Nanoseconds(30));
  EXPECT_EQ(p->ops[1].name, "while.1");
  EXPECT_EQ(p->ops[1].time, Nanoseconds(30));
  EXPECT_EQ(p->Idle(), Nanoseconds(10));
}

// Two executions without a pause: both means end in half a picosecond, and add up to the step.
TEST_F(ProfileTest, NothingIsLessThanIdle) {
  Name(5, "%fusion.3 = f32[8]{0} fusion(%x)", "fusion.3");
  for (const int64_t start_ns : {2000, 2100}) {
    Add(*modules_, 1, start_ns, 70);
    Add(*ops_, 4, start_ns - 1000, 30);
    Add(*ops_, 5, start_ns + 30 - 1000, 40);
  }
  ops_->mutable_events(2)->set_duration_ps(30'001);
  ops_->mutable_events(3)->set_offset_ps(1'130'001);
  ops_->mutable_events(3)->set_duration_ps(39'999);
  const absl::StatusOr<Profile> p = ReadProfile(Write(), "jit_step");
  ASSERT_TRUE(p.ok()) << Message(p.status());
  EXPECT_EQ(p->executions, 2);
  EXPECT_EQ(p->step, Nanoseconds(70));
  EXPECT_EQ(p->Idle(), Picoseconds(0));
}

// An operation that is recorded to end after its program is cut there.
TEST_F(ProfileTest, AnOperationEndsWithItsProgram) {
  Add(*modules_, 1, 2000, 70);
  Add(*ops_, 4, 2000 - 1000, 75);
  const absl::StatusOr<Profile> p = ReadProfile(Write(), "jit_step");
  ASSERT_TRUE(p.ok()) << Message(p.status());
  EXPECT_EQ(p->ops[0].time, Nanoseconds(70));
  EXPECT_EQ(p->Idle(), Picoseconds(0));
}

TEST_F(ProfileTest, OtherProgramsAndWhatWasCutIsLeftOut) {
  AddStep(2000);
  Add(*modules_, 2, 2200, 20);
  Add(*ops_, 4, 2205 - 1000, 10);
  // Of a third of the step the beginning is missing.
  Add(*modules_, 1, 2300, 30);
  Add(*ops_, 4, 2310 - 1000, 10);
  const absl::StatusOr<Profile> p = ReadProfile(Write(), "");
  ASSERT_TRUE(p.ok()) << Message(p.status());
  EXPECT_EQ(p->module, "jit_step");
  EXPECT_EQ(p->executions, 1);
  EXPECT_EQ(p->step, Nanoseconds(70));
  EXPECT_THAT(p->other_modules, ElementsAre("jit_other"));
}

TEST_F(ProfileTest, SaysWhatIsMissing) {
  EXPECT_THAT(Message(ReadProfile(Write() + "/none", "").status()), HasSubstr("no such file"));
  EXPECT_THAT(Message(ReadProfile(Write(), "").status()), HasSubstr("no line 'XLA Modules'"));
  Add(*modules_, 1, 2000, 70);
  EXPECT_THAT(Message(ReadProfile(Write(), "").status()), HasSubstr("'XLA Ops'"));
  plane_->set_name("/device:GPU:0");
  EXPECT_THAT(Message(ReadProfile(Write(), "").status()), HasSubstr("of no TPU"));
  std::filesystem::remove_all(folder_ + "/plugins");
  EXPECT_THAT(Message(ReadProfile(folder_, "").status()), HasSubstr("jax.profiler.trace"));
  std::ofstream(folder_ + "/text.xplane.pb") << "no protocol buffer";
  EXPECT_THAT(Message(ReadProfile(folder_, "").status()), HasSubstr("not a profile of XProf"));
}

// Times that no profile has neither overflow nor count.
TEST_F(ProfileTest, AbsurdTimes) {
  AddStep(2000);
  modules_->set_timestamp_ns(kBase);
  xp::XEvent& event = *ops_->add_events();
  event.set_metadata_id(4);
  event.set_offset_ps(INT64_MAX);
  event.set_duration_ps(INT64_MAX);
  const absl::StatusOr<Profile> p = ReadProfile(Write(), "jit_step");
  ASSERT_TRUE(p.ok()) << Message(p.status());
  EXPECT_EQ(p->ops[0].time, Nanoseconds(30));
}

}  // namespace
}  // namespace tpusim::results
