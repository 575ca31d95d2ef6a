// Checkpoints between random layouts: all axes, and every placement of optimizer state.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/sanitized.h"
#include "tests/train/random_runs_support.h"
#include "tests/train/saved_state_support.h"

namespace weft::train {
namespace drawn_checkpoints_test {

namespace fs = std::filesystem;

// Layout with all axes, as a user types it; both layouts of a pair have one precision.
std::pair<config::Config, std::string> drawn_layout(Draw& draw,
                                                    const fs::path& folder,
                                                    base::DType precision) {
  config::Config model = deep_config();
  model.model.num_moe_experts = 8;
  model.model.moe_shared_expert_intermediate_size = 16;
  model.train.global_batch_size = 8;
  model.model.params_dtype = precision;
  model.checkpoint.save = model.checkpoint.load = folder.string();
  while (true) {
    Words words = draw_layout(draw);
    draw_data_parallel(draw, words);
    draw_optimizer_offload(draw, words);
    config::Config config = with_words(model, words);
    if (is_legal(config)) return {std::move(config), text_of(words)};
  }
}

TEST(DrawnCheckpoints, WrittenUnderOneLayoutAreReadUnderAnother) {
  if (kSanitized) GTEST_SKIP() << "skipped: too long under a sanitizer";
  const fs::path folder = fs::path(::testing::TempDir()) / fmt::format("weft_drawn_{}", ::getpid());
  Draw draw(16);
  for (int pair = 0; pair < few_or_many(4, 200); ++pair) {
    const auto precision = pair % 2 == 0 ? base::DType::BF16 : base::DType::F32;
    const auto [from, from_words] = drawn_layout(draw, folder, precision);
    const auto [to, to_words] = drawn_layout(draw, folder, precision);
    SCOPED_TRACE(fmt::format("pair {}: {}\nread under {}", pair, from_words, to_words));
    fs::create_directories(folder);
    const Global state = saved(from, 1);
    EXPECT_EQ(loaded(to), state);
    fs::remove_all(folder);
  }
}

}  // namespace drawn_checkpoints_test
}  // namespace weft::train
