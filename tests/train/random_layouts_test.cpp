// Layouts drawn at random, each held against the one-rank run of the same batches. What may run is
// what the rules say may run: a layout they refuse is drawn again.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>

#include "tests/sanitized.h"
#include "tests/train/train_support.h"
#include "weft/config/field.h"
#include "weft/derive/derived.h"
#include "weft/rules/validate.h"

namespace weft::train {
namespace random_layouts_test {

constexpr unsigned kSeed = 20261116;
constexpr std::int64_t kSteps = 12;
constexpr double kLeastMargin = 1e-4;  // between the last expert chosen and the first that is not

// A run's keys as a user types them.
using Words = std::vector<std::pair<std::string, std::string>>;

class Draw {
 public:
  explicit Draw(unsigned seed) : generator_(seed) {}

  const std::string& any_of(const std::vector<std::string>& values) {
    return values[std::uniform_int_distribution<std::size_t>(0, values.size() - 1)(generator_)];
  }
  std::string size(int most) {
    std::vector<std::string> sizes;
    for (int i = 1; i <= most; i *= 2) sizes.push_back(std::to_string(i));
    return any_of(sizes);
  }
  std::string either() { return any_of({"false", "true"}); }

 private:
  std::mt19937 generator_;
};

Words draw_layout(Draw& draw) {
  const std::string tp = draw.size(4), cp = draw.size(4), pp = draw.size(4);
  Words words{{"runtime.world_size", draw.size(16)},
              {"model.tensor_model_parallel_size", tp},
              {"model.context_parallel_size", cp},
              {"model.pipeline_model_parallel_size", pp},
              {"model.expert_model_parallel_size", draw.size(8)},
              {"model.expert_tensor_parallel_size", draw.any_of({"1", "1", "2"})}};
  if (tp != "1") {
    words.emplace_back("model.sequence_parallel", "true");
    words.emplace_back("comm_overlap.tp_comm_overlap", draw.either());
  }
  if (cp != "1") {
    words.emplace_back("model.cp_comm_type", draw.any_of({"p2p", "all_gather", "a2a", "a2a+p2p"}));
    words.emplace_back("model.hierarchical_context_parallel_sizes", cp == "2" ? "[2,1]" : "[2,2]");
    words.emplace_back("comm_overlap.cp_comm_overlap", draw.either());
  }
  if (pp == "1") return words;
  const std::string schedule =
      draw.any_of({"1f1b", "1f1b", "interleaved", "interleaved", "zb_h1", "zb_h1", "dualpipev"});
  words.emplace_back("runtime.pipeline_schedule", schedule);
  if (schedule == "interleaved" || schedule == "dualpipev") {
    words.emplace_back("model.virtual_pipeline_model_parallel_size", "2");
  }
  return words;
}

void draw_dispatcher(Draw& draw, Words& words) {
  const std::string dispatcher = draw.any_of({"alltoall", "allgather", "flex"});
  words.emplace_back("model.moe_token_dispatcher_type", dispatcher);
  if (dispatcher != "flex") return;
  words.emplace_back("model.moe_flex_dispatcher_backend", draw.any_of({"deepep", "hybridep"}));
  words.emplace_back("runtime.ranks_per_node", draw.size(4));
}

void draw_overlap(Draw& draw, Words& words) {
  const std::string overlap = draw.either();
  words.emplace_back("comm_overlap.overlap_moe_expert_parallel_comm", overlap);
  if (overlap == "true") words.emplace_back("comm_overlap.delay_wgrad_compute", draw.either());
  words.emplace_back("comm_overlap.moe_token_slices", draw.any_of({"1", "1", "2"}));
}

void draw_data_parallel(Draw& draw, Words& words) {
  if (draw.either() == "false") return;
  for (const char* key : {"ddp.use_distributed_optimizer", "optimizer.use_distributed_optimizer"}) {
    words.emplace_back(key, "true");
  }
  words.emplace_back("comm_overlap.overlap_grad_reduce", draw.either());
  words.emplace_back("comm_overlap.overlap_param_gather", draw.either());
  words.emplace_back("ddp.average_in_collective", draw.either());
  words.emplace_back("comm_overlap.bucket_size", draw.any_of({"1000", "4000", "100000"}));
}

config::Config base_config() {
  config::Config config = deep_config();
  config.model.num_moe_experts = 8;
  config.model.moe_shared_expert_intermediate_size = 16;
  config.train.global_batch_size = 8;
  config.model.init_method_std = 0.5;  // logits far apart: few near ties
  config.model.moe_aux_loss_coeff = {0.02};
  config.model.moe_z_loss_coeff = 0.001;
  config.optimizer.lr = 5e-4;
  // Gradients of the size of rounding errors move nothing; at 1e-8 they move as much as others.
  config.optimizer.adam_eps = 1e-4;
  return config;
}

config::Config with_words(config::Config config, const Words& words) {
  for (const auto& [key, value] : words) {
    const config::Field* field = config::find_field(key);
    EXPECT_TRUE(field != nullptr && field->set(config, config::written_from_text(*field, value)))
        << key << "=" << value;
  }
  return config;
}

std::string text_of(const Words& words) {
  std::string all;
  for (const auto& [key, value] : words) all += key + "=" + value + " ";
  return all;
}

// Whether the rules let it run as it is: what they would change is another run. A rule that refuses
// says its name, the numbers that it does not like, and what to do.
bool is_legal(const config::Config& config) {
  const rules::Verdict verdict = rules::judge(config);
  for (const config::Finding& error : verdict.errors) {
    EXPECT_FALSE(error.id.empty() || error.fix.empty()) << config::to_text(error);
    EXPECT_TRUE(error.message.find_first_of("0123456789") != std::string::npos)
        << config::to_text(error);
  }
  return verdict.judged.has_value() &&
         std::ranges::all_of(verdict.automatic, [&](const config::Finding& set) {
           return config::is_default(*config::find_field(set.key), config);
         });
}

double margin_of(std::span<const float> logits, std::int64_t experts, std::int64_t chosen) {
  double least = 1;
  for (std::size_t row = 0; row < logits.size(); row += std::size_t(experts)) {
    std::vector<float> sorted(logits.begin() + std::ptrdiff_t(row),
                              logits.begin() + std::ptrdiff_t(row) + experts);
    std::ranges::sort(sorted, std::greater<>());
    least = std::min(least, double(sorted[std::size_t(chosen - 1)] - sorted[std::size_t(chosen)]));
  }
  return least;
}

// How near the one-rank run comes to another choice of experts: a tie within rounding falls either
// way, and is no fault of a layout.
double least_margin(const config::Config& config) {
  double least = 1;
  on_ranks(config, [&](Engine& engine) {
    const config::ModelConfig& model = engine.config().model;
    for (std::int64_t step = 0; step < kSteps; ++step) {
      const Batch batch = batch_of(engine, step);
      forward_step(engine, batch);
      for (int i = 0; i < int(batch.size()); ++i) {
        for (const model::LayerState& layer : engine.program().state(i).layers) {
          if (!layer.route.logits_TE.defined()) continue;
          const std::vector<float> logits = floats_of(engine, layer.route.logits_TE);
          least = std::min(least, margin_of(logits, model.experts(), model.moe_router_topk));
        }
      }
      train_step(engine,
                 {.batch = batch, .step = step, .learning_rate = config.optimizer.lr},
                 exec::Tracing::Off);
    }
  });
  return least;
}

double largest_of(const std::vector<float>& values) {
  double largest = 0;
  for (const float value : values) largest = std::max(largest, std::abs(double(value)));
  return largest;
}

void expect_alike(const Outcome& many, const Outcome& one, double& worst_loss) {
  ASSERT_EQ(many.losses.size(), one.losses.size());
  for (std::size_t i = 0; i < one.losses.size(); ++i) {
    worst_loss = std::max(worst_loss, std::abs(many.losses[i] / one.losses[i] - 1));
    EXPECT_NEAR(many.losses[i], one.losses[i], 5e-6 * one.losses[i]) << "step " << i;
  }
  for (const auto& [name, values] : one.weights) {
    EXPECT_LT(largest_difference(many.weights.at(name), values), 2e-4 * largest_of(values)) << name;
  }
}

int layouts_wanted() {
  const char* asked = std::getenv("WEFT_RANDOM_LAYOUTS");  // `make soak` asks for more
  return asked == nullptr ? 30 : std::atoi(asked);
}

TEST(RandomLayouts, EachReproducesTheOneRankRun) {
  if (kSanitized) GTEST_SKIP() << "skipped: too long under a sanitizer";
  Draw draw(kSeed);
  int tried = 0, refused = 0, near_ties = 0;
  double worst_loss = 0;
  // The one-rank run is the same for all layouts of a seed.
  std::map<std::int64_t, Outcome> one_rank_runs;
  std::int64_t seed = 1;
  for (; one_rank_runs.size() < 2; ++seed) {
    config::Config one = base_config();
    one.rng.seed = seed;
    if (least_margin(one) < kLeastMargin) {
      ++near_ties;
    } else {
      one_rank_runs[seed] = train_some(one, kSteps);
    }
    ASSERT_LT(near_ties, 50) << "no model without a near tie";
  }
  while (tried < layouts_wanted()) {
    Words words = draw_layout(draw);
    draw_dispatcher(draw, words);
    draw_overlap(draw, words);
    draw_data_parallel(draw, words);
    config::Config config = with_words(base_config(), words);
    if (!is_legal(config)) {
      ASSERT_LT(++refused, 100000) << "the rules refuse nearly every layout";
      continue;
    }
    const auto& [drawn_seed, one] =
        *std::next(one_rank_runs.begin(), tried % std::ssize(one_rank_runs));
    config.rng.seed = drawn_seed;
    SCOPED_TRACE("rng.seed=" + std::to_string(drawn_seed) + " " + text_of(words));
    expect_alike(train_some(config, kSteps), one, worst_loss);
    ++tried;
  }
  std::printf(
      "seed %u: %d layouts, losses within %.1e; %d drawn again because a rule refuses them, "
      "%d models because of a near tie\n",
      kSeed,
      tried,
      worst_loss,
      refused,
      near_ties);
}

}  // namespace random_layouts_test
}  // namespace weft::train
