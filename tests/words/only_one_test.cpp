// Mutually exclusive keys: a word wins over a recipe.
#include "weft/words/only_one.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "weft/base/files/file.h"
#include "weft/base/text.h"
#include "weft/config/field.h"
#include "weft/rules/validate.h"
#include "weft/words/resolution.h"

namespace weft::words {
namespace only_one_test {

namespace fs = std::filesystem;
using base::text;

class OnlyOne : public ::testing::Test {
 protected:
  OnlyOne() : dir_(fs::path(::testing::TempDir()) / text("weft_only_one_{}", ::getpid())) {
    fs::create_directories(dir_);
  }
  ~OnlyOne() override { fs::remove_all(dir_); }

  std::string file(const std::string& name, const std::string& content) const {
    base::write_whole(dir_ / name, content);
    return (dir_ / name).string();
  }
  Resolution resolved(const std::vector<std::string>& words) const {
    return resolve_words(dir_, words, Audience::Run);
  }
  static std::vector<std::string> said(const Resolution& run) {
    std::vector<std::string> all;
    for (const config::Finding& warning : run.warnings) {
      if (warning.id == "W146") all.push_back(warning.message);
    }
    return all;
  }

  fs::path dir_;
};

TEST_F(OnlyOne, AWordTakesThePlaceOfTheRecipesOther) {
  const std::string recipe = file("a.yaml", "scheduler:\n  lr_warmup_iters: 20\n");
  const Resolution run = resolved({recipe, "--lr-warmup-fraction", "0.1"});
  EXPECT_EQ(run.config.scheduler.lr_warmup_iters, 0);
  EXPECT_EQ(run.config.scheduler.lr_warmup_fraction, 0.1);
  EXPECT_EQ(said(run),
            (std::vector<std::string>{
                "scheduler.lr_warmup_fraction=0.1 takes the place of scheduler.lr_warmup_iters=20, "
                "which was set before the words: only one of the two holds"}));
  EXPECT_TRUE(rules::judge(run.config).legal());
}

TEST_F(OnlyOne, TwoThatAreBothTypedOrBothOfTheRecipeStay) {
  const std::string recipe = file("a.yaml", "scheduler:\n  lr_warmup_iters: 20\n");
  const Resolution typed =
      resolved({recipe, "--lr-warmup-fraction", "0.1", "scheduler.lr_warmup_iters=5"});
  EXPECT_TRUE(said(typed).empty());
  EXPECT_EQ(typed.config.scheduler.lr_warmup_iters, 5);
  EXPECT_EQ(typed.config.scheduler.lr_warmup_fraction, 0.1);
  const std::string both =
      file("b.yaml", "scheduler:\n  lr_warmup_iters: 20\n  lr_warmup_fraction: 0.1\n");
  EXPECT_TRUE(said(resolved({both, "train.train_iters=50"})).empty());
}

TEST_F(OnlyOne, AWordThatIsOffTakesNoPlace) {
  const std::string recipe = file("a.yaml", "scheduler:\n  lr_warmup_fraction: 0.1\n");
  for (const char* word : {"scheduler.lr_warmup_iters=0", "scheduler.lr_warmup_samples=0"}) {
    const Resolution run = resolved({recipe, word});
    EXPECT_TRUE(said(run).empty()) << word;
    EXPECT_EQ(run.config.scheduler.lr_warmup_fraction, 0.1) << word;
  }
}

TEST_F(OnlyOne, AFileOfSettingsTakesThePlaceOfTheRecipesOther) {
  const std::string recipe = file("a.yaml", "train:\n  train_samples: 4096\n");
  const std::string more = file("more.yaml", "train:\n  train_iters: 10\n");
  const Resolution run = resolved({recipe, "--config-file", more});
  EXPECT_EQ(run.config.train.train_samples, std::nullopt);
  EXPECT_EQ(run.config.train.train_iters, 10) << "as it is by default, and said here";
  EXPECT_EQ(said(run).size(), 1u);
}

// Every pair whose rule asks to keep one: a recipe with the first and a word with the second, and
// vice versa.
TEST_F(OnlyOne, EveryPairOfWhichRulesAskToKeepOne) {
  const std::vector<std::pair<std::string, std::string>> pairs{
      {"scheduler.lr_warmup_iters=5", "scheduler.lr_warmup_samples=64"},
      {"scheduler.lr_decay_iters=50", "scheduler.lr_decay_samples=640"},
      {"scheduler.lr_wsd_decay_iters=5", "scheduler.lr_wsd_decay_samples=64"},
      {"train.train_iters=50", "train.train_samples=640"},
      {"model.bf16=true", "model.fp16=true"},
      {"optimizer.bf16=true", "optimizer.fp16=true"},
      {"model.params_dtype=bf16", "model.fp16=true"},
      {"model.params_dtype=fp16", "model.bf16=true"},
      {"model.fp8=hybrid", "model.fp4=e2m1"},
      {"dataset.packed_sequence_size=4096", "dataset.pack_sequences_in_batch=true"},
      {"ddp.num_buckets=4", "ddp.bucket_size=1000"},
      {"ddp.num_buckets=4", "comm_overlap.bucket_size=1000"},
      {"model.moe_deepep_num_sms=20", "model.moe_hybridep_num_sms=16"},
      {"model.moe_deepep_num_sms=20", "model.moe_flex_dispatcher_num_sms=16"},
      {"model.moe_hybridep_num_sms=20", "model.moe_flex_dispatcher_num_sms=16"},
      {"model.pipeline_model_parallel_layout=Et|tL", "model.num_layers_in_first_pipeline_stage=1"},
      {"model.pipeline_model_parallel_layout=Et|tL",
       "model.account_for_loss_in_pipeline_split=true"},
      {"model.fine_grained_activation_offloading=true", "model.cpu_offloading=true"},
      {"model.recompute_granularity=full", "model.cpu_offloading=true"},
      {"model.moe_expert_rank_capacity_factor=1.5", "model.moe_pad_expert_input_to_capacity=true"},
      {"comm_overlap.overlap_p2p_comm=true", "comm_overlap.batch_p2p_comm=true"},
      {"model.overlap_dispatch_backward_with_experts_wgrad=true",
       "comm_overlap.overlap_moe_expert_parallel_comm=true"},
      {"model.overlap_dispatch_backward_with_experts_wgrad=true",
       "comm_overlap.delay_wgrad_compute=true"}};
  const auto key_of = [](const std::string& word) { return word.substr(0, word.find('=')); };
  const auto stays = [](const config::Config& config, const std::string& key) {
    const config::Field& field = *config::find_field(key);
    return !config::is_default(field, config) && config::value_text(field, config) != "false";
  };
  const auto expect_taken = [&](const std::string& before, const std::string& word) {
    SCOPED_TRACE(before + ", then " + word);
    const std::size_t dot = before.find('.'), equals = before.find('=');
    const std::string recipe = file("a.yaml",
                                    text("{}:\n  {}: {}\n",
                                         before.substr(0, dot),
                                         before.substr(dot + 1, equals - dot - 1),
                                         before.substr(equals + 1)));
    ASSERT_TRUE(stays(resolved({recipe}).config, key_of(before)));
    const Resolution both = resolved({recipe, word});
    EXPECT_FALSE(stays(both.config, key_of(before)));
    EXPECT_TRUE(stays(both.config, key_of(word)));
    EXPECT_EQ(said(both).size(), 1u);
    const Resolution typed = resolved({before, word});
    EXPECT_TRUE(stays(typed.config, key_of(before)) && stays(typed.config, key_of(word)));
  };
  for (const auto& [one, other] : pairs) {
    expect_taken(one, other);
    expect_taken(other, one);
  }
}

}  // namespace only_one_test
}  // namespace weft::words
