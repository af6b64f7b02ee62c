// The text of stated meshes; texts/stated_*.hlo have what they do.
#include "workloads/sharding/stated/stated_shardings.h"

#include "sharding_testing.h"

namespace tpusim::sharding {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(StatedMeshText, NamesWithSizes) {
  const auto axes = ParseStatedMesh("data=4,model=8");
  ASSERT_TRUE(axes.ok());
  EXPECT_THAT(*axes, ElementsAre(MeshAxis{"data", 4}, MeshAxis{"model", 8}));
}

TEST(StatedMeshText, OtherFormsAreRefused) {
  for (const char* text : {"", "data", "data=", "=4", "data=0", "data=-2", "data=4,data=2",
                           "data=4,,model=2", "data=x", "data=4;model=2"}) {
    EXPECT_THAT(Message(ParseStatedMesh(text).status()), HasSubstr("is no mesh, such as")) << text;
  }
}

}  // namespace
}  // namespace tpusim::sharding
