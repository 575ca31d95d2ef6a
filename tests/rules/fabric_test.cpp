#include <gtest/gtest.h>

#include "tests/base/complaints_support.h"
#include "weft/derive/derived.h"
#include "weft/rules/validate.h"
#include "weft/words/recipe.h"
#include "weft/words/resolution.h"

namespace weft::rules {

using namespace config;
namespace fabric_test {

std::vector<std::string> complaints(std::vector<std::string> overrides) {
  return complaints_of([&] { validate(words::with_words({}, overrides)); });
}

TEST(FabricConfig, IsFreeByDefault) { EXPECT_TRUE(derive::fabric_of(Config()).is_free()); }

TEST(FabricConfig, UnitsBecomeBytesAndSeconds) {
  const grid::Fabric fabric = derive::fabric_of(
      words::with_words({},
                        std::vector<std::string>{"runtime.ranks_per_node=4",
                                                 "fabric.intra_node_gb_per_second=300",
                                                 "fabric.inter_node_gb_per_second=0.5",
                                                 "fabric.intra_node_latency_us=2",
                                                 "fabric.inter_node_latency_us=12.5",
                                                 "fabric.jitter_us=3",
                                                 "fabric.seed=7"}));
  EXPECT_EQ(fabric.ranks_per_node, 4);
  EXPECT_DOUBLE_EQ(fabric.intra.bytes_per_second, 300e9);
  EXPECT_DOUBLE_EQ(fabric.inter.bytes_per_second, 500e6);
  EXPECT_DOUBLE_EQ(fabric.intra.latency_seconds, 2e-6);
  EXPECT_DOUBLE_EQ(fabric.inter.latency_seconds, 12.5e-6);
  EXPECT_DOUBLE_EQ(fabric.jitter_seconds, 3e-6);
  EXPECT_EQ(fabric.seed, 7u);
}

TEST(FabricConfig, LinksAreEmulatedInsideOneProcessOnly) {
  for (const char* key : {"fabric.intra_node_gb_per_second=1",
                          "fabric.intra_node_latency_us=1",
                          "fabric.jitter_us=1"}) {
    EXPECT_TRUE(complaints({key}).empty()) << key;
    for (const char* backend : {"mpi", "nccl", "fake"}) {
      EXPECT_TRUE(any_names(complaints({key, base::text("runtime.backend={}", backend)}),
                            {"fabric.*", backend, "runtime.backend=threads", "MPI"}))
          << key;
    }
    EXPECT_TRUE(complaints({key, "runtime.backend=loopback"}).empty()) << key;
  }
  EXPECT_TRUE(complaints({"runtime.backend=fake"}).empty());
}

TEST(FabricConfig, LinksBetweenMachinesNeedMachines) {
  EXPECT_TRUE(any_names(complaints({"fabric.inter_node_latency_us=1"}),
                        {"fabric.inter_node_*", "runtime.ranks_per_node"}));
  EXPECT_TRUE(complaints({"fabric.inter_node_latency_us=1", "runtime.ranks_per_node=1"}).empty());
}

TEST(FabricConfig, MachinesDivideTheWorld) {
  const auto with = [](const char* ranks) {
    return complaints({"runtime.world_size=6",
                       "train.global_batch_size=6",
                       base::text("runtime.ranks_per_node={}", ranks)});
  };
  EXPECT_TRUE(with("3").empty());
  EXPECT_TRUE(with("null").empty());
  EXPECT_TRUE(any_names(with("4"), {"runtime.ranks_per_node = 4", "6 ranks"}));
  EXPECT_TRUE(any_names(with("12"), {"runtime.ranks_per_node = 12", "6 ranks"}));
}

TEST(FabricConfig, ALinkThatWouldSeemToHangIsAnError) {
  EXPECT_TRUE(any_names(complaints({"fabric.intra_node_gb_per_second=1e-9"}),
                        {"fabric.intra_node_gb_per_second", "at least 1e-06"}));
}

}  // namespace fabric_test
}  // namespace weft::rules
