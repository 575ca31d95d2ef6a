// Compares dispatch times with published ones: hidden 7168, 4096 tokens per rank, 256 experts,
// top-8.
#include "weft/plan/hardware/wire_time.h"

#include <gtest/gtest.h>

namespace weft::plan {
namespace wire_time_test {

const std::filesystem::path kFolder = std::filesystem::path(WEFT_SOURCE_DIR) / "hardware";

config::Config deepseek_dispatch(std::int64_t ep, config::Dispatcher dispatcher) {
  config::Config config;
  config::ModelConfig& model = config.model;
  model.params_dtype = base::DType::BF16;
  model.hidden_size = 7168;
  model.seq_length = 4096;
  model.num_moe_experts = 256;
  model.moe_router_topk = 8;
  model.moe_router_num_groups = 8;
  model.moe_router_group_topk = 4;
  model.expert_model_parallel_size = ep;
  model.moe_token_dispatcher_type = dispatcher;
  model.moe_flex_dispatcher_backend = config::FlexBackend::HybridEp;
  return config;
}

struct Published {
  std::string gpu;
  config::Dispatcher dispatcher;
  std::int64_t ep;
  double us;  // mean of dispatch and combine
};

TEST(WireTime, DispatchTimesArePublishedOnes) {
  using enum config::Dispatcher;
  const std::vector<Published> published = {{"gb200", Flex, 8, 372},
                                            {"gb200", Flex, 16, 553},
                                            {"gb200", Flex, 32, 629},
                                            {"gb200", Flex, 64, 710},
                                            {"gb200", AllToAll, 8, 738},
                                            {"gb200", AllToAll, 16, 754},
                                            {"gb200", AllToAll, 32, 764},
                                            {"gb200", AllToAll, 64, 879},
                                            {"h100", Flex, 8, 643},
                                            {"h100", Flex, 16, 1587},
                                            {"h100", Flex, 32, 3076},
                                            {"h100", Flex, 64, 4512},
                                            {"h100", AllToAll, 8, 1271},
                                            {"h100", AllToAll, 16, 5701},
                                            {"h100", AllToAll, 32, 7937},
                                            {"h100", AllToAll, 64, 8946}};
  for (const Published& one : published) {
    const config::Config config = deepseek_dispatch(one.ep, one.dispatcher);
    const double us =
        dispatch_seconds(config.model, workload_of(config), find_hardware(kFolder, one.gpu)) * 1e6;
    EXPECT_NEAR(us / one.us, 1, 0.16) << one.gpu << " ep " << one.ep << ": " << us;
  }
}

TEST(WireTime, AGroupFillsDomains) {
  const Hardware h100 = find_hardware(kFolder, "h100");
  EXPECT_EQ(group_of(16, 1, h100).domains(), 2);
  EXPECT_EQ(group_of(8, 1, h100).domains(), 1);
  EXPECT_EQ(group_of(4, 4, h100).in_domain, 2);
  EXPECT_EQ(group_of(4, 64, h100).in_domain, 1);
}

TEST(WireTime, NothingTravelsAlone) {
  const config::Config config = deepseek_dispatch(1, config::Dispatcher::AllToAll);
  const Hardware h100 = find_hardware(kFolder, "h100");
  EXPECT_EQ(dispatch_seconds(config.model, workload_of(config), h100), 0);
  EXPECT_EQ(gather_seconds(1e9, {.ranks = 1, .in_domain = 1}, h100), 0);
  // All but the rank's own part of the gathered bytes, at the links' rate.
  const double near = gather_seconds(1e9, {.ranks = 8, .in_domain = 8}, h100);
  EXPECT_NEAR(near, 7.0 / 8 / (450 * h100.exchange_share), 1e-4);
}

}  // namespace wire_time_test
}  // namespace weft::plan
