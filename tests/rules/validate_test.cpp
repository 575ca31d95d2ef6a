#include "weft/rules/validate.h"

#include <gtest/gtest.h>

#include <limits>
#include <type_traits>
#include <variant>

#include "tests/base/complaints_support.h"
#include "weft/config/field.h"
#include "weft/config/other_names.h"
#include "weft/config/ranges.h"
#include "weft/words/recipe.h"
#include "weft/words/resolution.h"

namespace weft::rules {

using namespace config;
namespace validate_test {

std::vector<std::string> complaints(std::vector<std::string> overrides) {
  return complaints_of([&] { validate(words::with_words({}, overrides)); });
}

TEST(Validate, DefaultsAreLegal) { EXPECT_EQ(complaints({}), std::vector<std::string>{}); }

// Only judge() makes the engine's input.
static_assert(!std::is_default_constructible_v<JudgedConfig>);
static_assert(!std::is_constructible_v<JudgedConfig, Config>);
static_assert(!std::is_convertible_v<Config, JudgedConfig>);

TEST(Validate, WhatRunsIsJudgedWithWhatTheRulesSet) {
  const Verdict verdict =
      validate(words::with_words({}, std::vector<std::string>{"model.bf16=true"}));
  ASSERT_TRUE(verdict.judged);
  EXPECT_EQ((*verdict.judged)->model.params_dtype, base::DType::BF16);
  for (const Field& field : fields()) {
    EXPECT_EQ(field.get(*verdict.judged), field.get(verdict.config)) << field.key;
  }
}

// The recipe has a list for its own layers. Reading the list before judgement used to throw a
// library exception.
TEST(Validate, AListOfOtherLayersIsRefusedByItsNumbers) {
  const std::string recipes = WEFT_SOURCE_DIR "/recipes";
  for (const char* layers : {"model.num_layers=40", "model.num_layers=4000"}) {
    const std::vector<std::string> words{"deepseek_v2_lite", layers};
    const Config config = words::resolve_words(recipes, words, words::Audience::Run).config;
    EXPECT_FALSE(judge(config).legal()) << layers;
    EXPECT_TRUE(any_names(complaints_of([&] { validate(config); }),
                          {"model.moe_layer_freq has 27 entries", layers + 17}))
        << layers;
  }
  EXPECT_FALSE(complaints({"model.num_moe_experts=4", "model.moe_layer_freq=[]"}).empty());
}

TEST(Validate, WhatIsRefusedMissingOrOnlyLookedAtIsNotJudged) {
  const auto config = [](const std::string& word) {
    return words::with_words({}, std::vector<std::string>{word});
  };
  EXPECT_FALSE(judge(config("model.num_attention_heads=7")).judged) << "refused";
  const Config split = config("model.tensor_model_parallel_size=2");
  EXPECT_TRUE(judge(split).legal());
  EXPECT_FALSE(judge(split).judged) << "legal, and not built";
  EXPECT_FALSE(validate_schedule({}).judged) << "only looked at";
}

TEST(Validate, EveryNumberIsHeldToBothEndsOfItsRange) {
  for (const Range& range : ranges()) {
    const std::string key(range.key);
    const bool list = find_field(key)->shape == Shape::List;
    const bool whole = find_field(key)->type.find("integer") != std::string::npos;
    const std::string above =
        whole ? (key.ends_with(".seed") ? "" : base::text("{:.0f}", range.high + 1))
              : base::text("{}", range.high * 2 + 1);
    for (const std::string& value : {base::text("{:.0f}", range.low - 1), above}) {
      if (value.empty()) continue;
      const bool is_off = std::holds_alternative<std::monostate>(config::meant_value(key, value));
      if (is_off) continue;
      const std::string typed = key + "=" + (list ? "[" + value + "]" : value);
      EXPECT_TRUE(any_names(complaints({typed}), {key, value, "use a number"})) << typed;
    }
  }
}

TEST(Validate, OpenEndsAreOutside) {
  EXPECT_TRUE(any_names(complaints({"optimizer.adam_beta1=1"}), {"below 1"}));
  EXPECT_TRUE(any_names(complaints({"optimizer.adam_eps=0"}), {"above 0"}));
  EXPECT_TRUE(any_names(complaints({"dataset.eval_fraction=1"}), {"below 1"}));
  EXPECT_TRUE(any_names(complaints({"runtime.timeout_seconds=0"}), {"above 0 and up to 10000000"}));
  EXPECT_TRUE(complaints({"optimizer.adam_beta1=0", "runtime.timeout_seconds=86400"}).empty());
}

TEST(Validate, NumbersThatAreNotFiniteAreErrors) {
  Config config;
  config.optimizer.lr = std::numeric_limits<double>::quiet_NaN();
  config.model.rotary_base = std::numeric_limits<double>::infinity();
  const auto all = complaints_of([&] { validate(config); });
  EXPECT_TRUE(any_names(all, {"optimizer.lr", "not finite"}));
  EXPECT_TRUE(any_names(all, {"model.rotary_base", "not finite"}));
}

TEST(Validate, AllRulesSpeakAtOnce) {
  const auto all = complaints({"model.num_attention_heads=6",
                               "model.num_query_groups=4",
                               "model.kv_channels=7",
                               "model.num_moe_experts=4",
                               "model.moe_router_topk=5",
                               "optimizer.lr=-1",
                               "train.global_batch_size=3",
                               "train.micro_batch_size=2",
                               "dataset.kind=text"});
  EXPECT_EQ(all.size(), 6u);
  EXPECT_TRUE(any_names(all, {"num_attention_heads = 6", "num_query_groups = 4"}));
  EXPECT_TRUE(any_names(all, {"7", "even", "kv_channels"}));
  EXPECT_TRUE(any_names(all, {"moe_router_topk = 5", "num_moe_experts = 4", "at most 4"}));
  EXPECT_TRUE(any_names(all, {"optimizer.lr = -1"}));
  EXPECT_TRUE(any_names(all, {"global_batch_size = 3", "2*1 = 2"}));
  EXPECT_TRUE(any_names(all, {"dataset.path"}));
}

TEST(Validate, HeadsMustDivideTheWidthUnlessTheirsIsGiven) {
  EXPECT_TRUE(any_names(complaints({"model.num_attention_heads=3"}), {"hidden_size = 64", "3"}));
  EXPECT_TRUE(complaints({"model.num_attention_heads=3", "model.kv_channels=32"}).empty());
  EXPECT_TRUE(any_names(complaints({"model.num_attention_heads=128", "model.hidden_size=128"}),
                        {"width of one head is 1"}));
}

TEST(Validate, OneExpertPerTokenNeedsPreSoftmax) {
  const std::vector<std::string> one{"model.num_moe_experts=4", "model.moe_router_topk=1"};
  EXPECT_TRUE(any_names(complaints(one), {"moe_router_pre_softmax=true"}));
  auto pre = one;
  pre.push_back("model.moe_router_pre_softmax=true");
  EXPECT_TRUE(complaints(pre).empty());
  pre.push_back("model.moe_router_norm_topk_prob=true");
  EXPECT_TRUE(complaints(pre).empty());  // Transformers computes it too: every weight is 1
}

TEST(Validate, LayerListMatchesTheLayers) {
  EXPECT_TRUE(complaints({"model.num_layers=3", "model.moe_layer_freq=[0,1,1]"}).empty());
  EXPECT_TRUE(complaints({"model.num_layers=1", "model.moe_layer_freq=[0]"}).empty());
  EXPECT_TRUE(any_names(complaints({"model.moe_layer_freq=[0,1,1]"}), {"3 entries", "= 2"}));
  EXPECT_TRUE(any_names(complaints({"model.moe_layer_freq=[0,2]"}), {"lists 2 for layer 1"}));
  EXPECT_TRUE(any_names(complaints({"model.moe_layer_freq=0"}), {"1 entries (0)"}));
  EXPECT_TRUE(any_names(complaints({"model.moe_layer_freq=[]"}), {"0 entries"}));
}

TEST(Validate, ExpertRanksShareTheExperts) {
  EXPECT_TRUE(
      any_names(complaints({"model.num_moe_experts=6", "model.expert_model_parallel_size=4"}),
                {"6 experts", "ep = 4"}));
  EXPECT_TRUE(any_names(complaints({"model.expert_model_parallel_size=2"}), {"without experts"}));
  EXPECT_TRUE(any_names(
      complaints({"model.num_moe_experts=8", "model.expert_model_parallel_size=4", "world=6"}),
      {"world = 6", "multiple of 4"}));
}

TEST(Validate, GlobalBatchIsSharedByDataParallelRanks) {
  EXPECT_TRUE(any_names(complaints({"world=4", "train.global_batch_size=6"}),
                        {"global_batch_size = 6", "1*4 = 4"}));
  EXPECT_TRUE(complaints({"world=4", "train.global_batch_size=8"}).empty());
}

TEST(Validate, AbsurdProductsAreErrors) {
  EXPECT_TRUE(any_names(complaints({"model.num_layers=10000",
                                    "model.hidden_size=1048576",
                                    "model.ffn_hidden_size=16777216",
                                    "model.num_moe_experts=65536",
                                    "model.moe_ffn_hidden_size=16777216"}),
                        {"parameters"}));
  EXPECT_TRUE(any_names(complaints({"model.seq_length=16777216", "train.micro_batch_size=1048576"}),
                        {"tokens"}));
  EXPECT_TRUE(any_names(complaints({"model.num_attention_heads=65536", "model.kv_channels=65536"}),
                        {"channels"}));
  EXPECT_FALSE(complaints({"model.tensor_model_parallel_size=1048576",
                           "model.pipeline_model_parallel_size=1048576"})
                   .empty());
}

TEST(Validate, RanksAsThreadsAreBounded) {
  EXPECT_TRUE(complaints({"world=1024", "train.global_batch_size=1024"}).empty());
  const std::vector<std::string> many{"world=2048", "train.global_batch_size=2048"};
  EXPECT_TRUE(any_names(complaints(many), {"2048 ranks", "at most 1024", "runtime.backend=mpi"}));
  auto apart = many;
  apart.push_back("runtime.backend=mpi");
  EXPECT_TRUE(complaints(apart).empty());
}

TEST(Validate, SchedulesOfAbsurdLengthAreErrors) {
  EXPECT_TRUE(complaints({"train.global_batch_size=80000"}).empty());
  EXPECT_TRUE(any_names(complaints({"train.global_batch_size=80001"}),
                        {"80001 micro-batches", "num_layers = 2", "train.micro_batch_size"}));
}

TEST(Validate, StateThatNoMachineHoldsIsAnError) {
  const std::vector<std::string> large{"model.hidden_size=65536",
                                       "model.num_moe_experts=128",
                                       "model.moe_ffn_hidden_size=4096"};
  EXPECT_TRUE(any_names(complaints(large), {"parameters a rank on 1 rank ", "TiB"}));
  auto shared = large;
  shared.insert(
      shared.end(),
      {"model.expert_model_parallel_size=32", "train.global_batch_size=32", "runtime.backend=mpi"});
  EXPECT_EQ(complaints(shared), std::vector<std::string>{});
}

TEST(Validate, LogitsThatNoMachineHoldsAreAnError) {
  EXPECT_TRUE(any_names(complaints({"model.seq_length=1048576", "model.vocab_size=1048576"}),
                        {"logits", "seq_length = 1048576", "lower train.micro_batch_size"}));
  // Only the last stage of a pipeline has logits.
  const std::vector<std::string> two{"world=2",
                                     "model.seq_length=524288",
                                     "model.vocab_size=393216",
                                     "train.global_batch_size=2"};
  EXPECT_TRUE(any_names(complaints(two), {"logits", "on 2 ranks"}));
  auto stages = two;
  stages.push_back("model.pipeline_model_parallel_size=2");
  EXPECT_EQ(complaints(stages), std::vector<std::string>{});
}

TEST(Validate, PartsNotBuiltAreNamedTogether) {
  const auto all =
      complaints({"model.tensor_model_parallel_size=2", "model.variable_seq_lengths=true"});
  EXPECT_EQ(all.size(), 2u);
  EXPECT_TRUE(
      any_names(all, {"not built yet: tensor parallelism", "use model.sequence_parallel=true"}));
  EXPECT_TRUE(any_names(all, {"not built yet: sequences of different lengths"}));
}

TEST(Validate, LearningRateScheduleFitsTheRun) {
  EXPECT_TRUE(any_names(complaints({"optimizer.min_lr=1"}), {"min_lr = 1", "lr = 0.001"}));
  EXPECT_TRUE(complaints({"scheduler.lr_warmup_iters=11", "train.train_iters=4"}).empty());
  const std::vector<std::string> long_warmup{"scheduler.lr_warmup_iters=6",
                                             "scheduler.lr_decay_iters=5"};
  EXPECT_EQ(validate(words::with_words({}, long_warmup)).config.scheduler.lr_warmup_iters, 4);
}

TEST(Validate, TextNeedsAByteOfVocabulary) {
  EXPECT_TRUE(
      any_names(complaints({"dataset.kind=text", "dataset.path=docs", "model.vocab_size=100"}),
                {"vocab_size = 100", "at least 256"}));
  EXPECT_TRUE(any_names(complaints({"dataset.kind=indexed",
                                    "dataset.path=x",
                                    "train.eval_interval=5",
                                    "dataset.eval_fraction=0"}),
                        {"eval_fraction"}));
}

TEST(Validate, SetsToEvaluateOnHavePathsAndPlainNamesOfTheirOwn) {
  const auto complain = [](const std::string& sets, const std::string& kind = "text") {
    return complaints({"dataset.kind=" + kind,
                       "dataset.path=docs",
                       "train.eval_interval=5",
                       "dataset.eval_fraction=0",
                       "dataset.valid_data_path=" + sets});
  };
  EXPECT_TRUE(complain("[a/books,web=b/books]").empty());
  EXPECT_TRUE(any_names(complain("[a/books,b/books]"), {"two sets are called 'books'"}));
  EXPECT_TRUE(any_names(complain("[a/my books]"), {"'my books' cannot be the name"}));
  EXPECT_TRUE(any_names(complain("[books=]"), {"'books' has no path"}));
  EXPECT_TRUE(any_names(complain("[books]", "mock"), {"dataset.kind = mock"}));
  std::string many = "[s0=x";
  for (int i = 1; i < 65; ++i) many += base::text(",s{}=x", i);
  EXPECT_TRUE(any_names(complain(many + "]"), {"has 65 sets", "at most 64"}));
}

}  // namespace validate_test
}  // namespace weft::rules
