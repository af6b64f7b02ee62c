// Replica groups: four encodings, one meaning.
#include "hlo_test_util.h"

namespace tpusim::hlo {
namespace {

using Groups = std::vector<std::vector<int64_t>>;

class DeviceGroupsTest : public ::testing::Test {
 protected:
  DeviceGroupsTest() {
    op_ = t_.Add(Opcode::kAllReduce, F32({4}), {t_.Param(F32({4}))});
    attrs().set_channel_id(1);
    attrs().set_use_global_device_ids(true);
  }
  pb::HloInstructionProto& attrs() { return op_->mutable_attrs(); }
  Groups Expanded(int64_t partitions) {
    const auto groups = ReplicaGroups(*op_, partitions);
    EXPECT_TRUE(groups.ok()) << Message(groups.status());
    return groups.value_or(Groups{});
  }
  std::string Error(int64_t partitions) {
    const auto groups = ReplicaGroups(*op_, partitions);
    return groups.ok() ? "no error" : Message(groups.status());
  }
  static void FillIota(pb::IotaReplicaGroupListProto* list, int64_t groups, int64_t size,
                       std::vector<int64_t> dims, std::vector<int32_t> perm) {
    list->set_num_replica_groups(groups);
    list->set_num_devices_per_group(size);
    list->mutable_iota_reshape_dims()->Assign(dims.begin(), dims.end());
    list->mutable_iota_transpose_perm()->Assign(perm.begin(), perm.end());
  }
  // mesh['x'=2,'y'=4]
  pb::MeshAxesReplicaGroupListProto* Mesh(std::vector<std::pair<std::string, int64_t>> axes) {
    auto* list = attrs().mutable_mesh_axes_replica_group_list();
    for (const auto& [name, size] : axes) {
      auto* axis = list->mutable_mesh()->add_axes();
      axis->set_name(name);
      axis->set_size(size);
    }
    return list;
  }
  TestModule t_;
  Instruction* op_;
};

TEST_F(DeviceGroupsTest, ExplicitInBothFields) {
  SetReplicaGroups(op_, {{0, 2}, {1, 3}});
  EXPECT_TRUE(attrs().has_collective_device_list());
  EXPECT_EQ(Expanded(4), (Groups{{0, 2}, {1, 3}}));
  attrs().clear_collective_device_list();
  attrs().add_replica_groups()->add_replica_ids(3);
  attrs().mutable_replica_groups(0)->add_replica_ids(1);
  attrs().add_replica_groups()->add_replica_ids(0);
  attrs().mutable_replica_groups(1)->add_replica_ids(2);
  EXPECT_EQ(Expanded(4), (Groups{{3, 1}, {0, 2}}));  // order inside a group is kept
}

TEST_F(DeviceGroupsTest, IotaNewAndOld) {
  // iota(8) as [4,2] transposed: columns 0 2 4 6 and 1 3 5 7.
  FillIota(attrs().mutable_iota_collective_device_list(), 2, 4, {4, 2}, {1, 0});
  EXPECT_EQ(Expanded(8), (Groups{{0, 2, 4, 6}, {1, 3, 5, 7}}));
  FillIota(attrs().mutable_collective_device_list()->mutable_iota_replica_group_list(), 4, 2, {8},
           {0});
  EXPECT_EQ(Expanded(8), (Groups{{0, 1}, {2, 3}, {4, 5}, {6, 7}}));
  // iota(12) as [2,2,3], transposed by (2,0,1): value of (i,j,k) is 6i+3j+k.
  FillIota(attrs().mutable_iota_collective_device_list(), 3, 4, {2, 2, 3}, {2, 0, 1});
  EXPECT_EQ(Expanded(12), (Groups{{0, 3, 6, 9}, {1, 4, 7, 10}, {2, 5, 8, 11}}));
}

TEST_F(DeviceGroupsTest, MeshAxes) {
  auto* list = Mesh({{"x", 2}, {"y", 4}});
  list->add_axes()->set_mesh_axis_index(1);
  EXPECT_EQ(Expanded(8), (Groups{{0, 1, 2, 3}, {4, 5, 6, 7}}));
  list->mutable_axes(0)->set_mesh_axis_index(0);
  EXPECT_EQ(Expanded(8), (Groups{{0, 4}, {1, 5}, {2, 6}, {3, 7}}));
  // Both, y major: the listed order counts.
  list->mutable_axes(0)->set_mesh_axis_index(1);
  list->add_axes()->set_mesh_axis_index(0);
  EXPECT_EQ(Expanded(8), (Groups{{0, 4, 1, 5, 2, 6, 3, 7}}));
}

TEST_F(DeviceGroupsTest, SubAxesSplitAnAxisFromTheMajorSide) {
  auto* list = Mesh({{"a", 8}});
  // a as 2 x 2 x 2, grouped by the middle factor: ids differ by 2.
  auto* sub = list->add_axes()->mutable_sub_axis_info();
  sub->set_pre_size(2);
  sub->set_size(2);
  EXPECT_EQ(Expanded(8), (Groups{{0, 2}, {1, 3}, {4, 6}, {5, 7}}));
  sub->set_pre_size(1);  // the major factor of 2
  EXPECT_EQ(Expanded(8), (Groups{{0, 4}, {1, 5}, {2, 6}, {3, 7}}));
  sub->set_size(3);
  EXPECT_THAT(Error(8), ::testing::HasSubstr("sub-axes do not divide"));
  sub->set_pre_size(4);
  EXPECT_THAT(Error(8), ::testing::HasSubstr("sub-axis (4)3 of an axis of 8"));
}

TEST_F(DeviceGroupsTest, MeshWithItsOwnDeviceOrder) {
  auto* list = Mesh({{"x", 2}, {"y", 2}});
  list->add_axes()->set_mesh_axis_index(1);
  for (int64_t id : {3, 2, 1, 0}) list->mutable_mesh()->add_device_ids(id);
  EXPECT_EQ(Expanded(4), (Groups{{3, 2}, {1, 0}}));
  list->mutable_mesh()->clear_device_ids();
  auto* iota = list->mutable_mesh()->mutable_iota_transform();
  iota->add_reshape_dims(2);
  iota->add_reshape_dims(2);
  iota->add_transpose_perm(1);
  iota->add_transpose_perm(0);
  EXPECT_EQ(Expanded(4), (Groups{{0, 2}, {1, 3}}));
}

TEST_F(DeviceGroupsTest, EmptyIsEverybody) { EXPECT_EQ(Expanded(3), (Groups{{0, 1, 2}})); }

TEST_F(DeviceGroupsTest, ReplicaIdsOfASingleReplica) {
  SetReplicaGroups(op_, {{0}});
  attrs().set_use_global_device_ids(false);
  EXPECT_EQ(Expanded(2), (Groups{{0, 1}}));  // every partition of replica 0
  attrs().set_channel_id(0);
  EXPECT_EQ(Expanded(2), (Groups{{0}, {1}}));  // across replicas: each by itself
  SetReplicaGroups(op_, {{0, 1}});
  EXPECT_EQ(Expanded(2), (Groups{{0, 1}}));  // replicas only: they are the devices
  attrs().set_channel_id(1);
  EXPECT_THAT(Error(2), ::testing::HasSubstr("several replicas are not supported"));
}

TEST_F(DeviceGroupsTest, Errors) {
  SetReplicaGroups(op_, {{0, 4}});
  EXPECT_EQ(Error(4), "replica groups of all-reduce: device 4 of 4");
  SetReplicaGroups(op_, {{0, 1}, {1, 2}});
  EXPECT_EQ(Error(4), "replica groups of all-reduce: device 1 twice");
  SetReplicaGroups(op_, {{0, 1}, {3}});
  EXPECT_EQ(Error(4),
            "replica groups of all-reduce: device 2 of 4 is in no group; every device must be in "
            "exactly one, unless there are no groups (one of all devices)");
  FillIota(attrs().mutable_iota_collective_device_list(), 3, 3, {8}, {});
  EXPECT_EQ(Error(8), "replica groups of all-reduce: 8 devices do not make 3 groups of 3");
  FillIota(attrs().mutable_iota_collective_device_list(), 2, 4, {4, 2}, {1, 1});
  EXPECT_EQ(Error(8), "replica groups of all-reduce: (1,1) is no permutation of 2 dimensions");
  FillIota(attrs().mutable_iota_collective_device_list(), 1, 1, {int64_t{1} << 62, 64}, {});
  EXPECT_THAT(Error(8), ::testing::HasSubstr("device array"));
}

}  // namespace
}  // namespace tpusim::hlo
