// The whole engine on a device whose memory the host cannot touch: what forgets an upload or a
// download dies here, and not on a card.
#include <gtest/gtest.h>

#include "train_support.h"

namespace weft::train {
namespace hidden_device_test {

using config::Dispatcher;
using devices::DeviceKind;

struct HiddenCase {
  std::string name;
  config::Config config;
};

config::Config with_dispatcher(config::Config config, Dispatcher type) {
  config.model.moe_token_dispatcher_type = type;
  return config;
}

config::Config with_hybrid_ep(config::Config config) {
  config = with_dispatcher(std::move(config), Dispatcher::Flex);
  config.model.moe_flex_dispatcher_backend = config::FlexBackend::HybridEp;
  config.runtime.ranks_per_node = 2;
  return config;
}

config::Config with_budget(config::Config config) {
  config = with_hybrid_ep(std::move(config));
  config.model.moe_expert_rank_capacity_factor = 1.01;
  return config;
}

config::Config overlapped(config::Config config) {
  config.comm_overlap.overlap_moe_expert_parallel_comm = true;
  config.comm_overlap.delay_wgrad_compute = true;
  return config;
}

config::Config in_bf16(config::Config config) {
  config.model.params_dtype = config::Precision::Bf16;
  return config;
}

std::vector<HiddenCase> cases() {
  const config::Config one = small_config();
  const config::Config ep4 = with_layout(small_config(), {.world = 4, .ep = 4});
  const config::Config dp = with_layout(small_config(), {.world = 4, .ep = 2});
  const config::Config stages =
      with_layout(deep_config(), {.world = 4, .ep = 2, .pp = 2, .vpp = 2});
  return {{"OneRank", one},
          {"OneRankBf16", in_bf16(one)},
          {"LatentAttention", with_layout(latent_config(), {.world = 2, .ep = 2})},
          {"AllToAll", ep4},
          {"AllGather", with_dispatcher(dp, Dispatcher::AllGather)},
          {"HybridEp", with_hybrid_ep(ep4)},
          {"Budget", with_budget(ep4)},
          {"Overlapped", overlapped(dp)},
          {"Pipeline", stages},
          {"PipelineBf16", in_bf16(stages)}};
}

class HiddenDevice : public testing::TestWithParam<HiddenCase> {};

INSTANTIATE_TEST_SUITE_P(Layouts, HiddenDevice, testing::ValuesIn(cases()), [](const auto& test) {
  return test.param.name;
});

TEST_P(HiddenDevice, TrainsToTheSameBits) {
  const config::Config& config = GetParam().config;
  expect_same_bits(train_some(config, 2, {}, DeviceKind::HiddenCpu), train_some(config, 2));
}

}  // namespace hidden_device_test
}  // namespace weft::train
