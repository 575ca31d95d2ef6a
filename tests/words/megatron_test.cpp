// Words of Megatron-LM and Megatron Bridge: their effects here, by tests/words/megatron_words.txt.
#include "weft/words/megatron/megatron.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/base/complaints_support.h"
#include "weft/base/files/file.h"
#include "weft/config/field.h"
#include "weft/config/other_names.h"
#include "weft/words/harness/flags.h"
#include "weft/words/resolution.h"

namespace weft::words {

using namespace config;
namespace megatron_test {

using Kind = MegatronMeaning::Kind;
using Typed = std::vector<std::string>;

const std::filesystem::path kRecipes = WEFT_SOURCE_DIR "/recipes";

Resolution read(const Typed& words) { return resolve_what_reads(kRecipes, words, Audience::Run); }

Typed words_of(std::string_view line) {
  Typed words;
  for (const std::string& word : base::split(line, ' ')) {
    if (!word.empty()) words.push_back(word);
  }
  return words;
}

bool warns(const Resolution& run, std::string_view id) {
  return std::ranges::find(run.warnings, id, &Finding::id) != run.warnings.end();
}

std::string class_of(const Resolution& run) {
  if (!run.complaints.empty()) return "refused: " + run.complaints[0];
  if (warns(run, "H21")) return "unmodelled";
  if (warns(run, "H23")) return "noted";
  if (warns(run, "H14")) return "idle";
  return run.set_keys.empty() ? "silent" : "taken";
}

TEST(Megatron, WordsOfRealLinesDoWhatTheirTableSays) {
  const std::string table = base::read_text(WEFT_SOURCE_DIR "/tests/words/megatron_words.txt");
  std::size_t count = 0;
  for (const std::string& line : base::split(table, '\n')) {
    if (line.empty() || line.starts_with('#')) continue;
    const Typed words = words_of(line);
    EXPECT_EQ(class_of(read({words.begin() + 1, words.end()})), words[0]) << line;
    ++count;
  }
  EXPECT_GT(count, 150u);
}

TEST(Megatron, WhatIsNotModelledIsInTheConfigAndNothingElseIs) {
  const auto unmodelled = [](const Typed& words) { return read(words).config.runtime.unmodelled; };
  EXPECT_EQ(unmodelled({"--openai-gelu", "--qk-l2-norm"}).size(), 2u);
  EXPECT_EQ(unmodelled({"dataset.eod_mask_loss=true"}),
            Typed{"dataset.eod_mask_loss=true: every token counts in the loss"});
  EXPECT_TRUE(unmodelled({"--use-sharp", "--num-workers", "2", "--swiglu"}).empty());
}

TEST(Megatron, EveryWordIsWellFormed) {
  std::set<std::string> keys, flags;
  for (const MegatronWord& word : megatron_words()) {
    EXPECT_FALSE(word.key.empty() && word.flag.empty());
    EXPECT_FALSE(word.meaning.text.empty() && word.meaning.kind != Kind::Acts) << word.flag;
    if (!word.key.empty()) {
      EXPECT_TRUE(keys.insert(word.key).second) << word.key;
      EXPECT_EQ(find_field(meant_key(word.key)), nullptr) << word.key;
    }
    if (!word.flag.empty()) {
      EXPECT_TRUE(flags.insert(word.flag).second) << word.flag;
    }
    if (!word.meaning.key.empty()) {
      EXPECT_NE(find_field(word.meaning.key), nullptr) << word.meaning.key;
    }
    if (word.meaning.kind != Kind::Sets) continue;
    for (const std::string& set : base::split(word.meaning.text, ' ')) {
      EXPECT_NE(find_field(set.substr(0, set.find('='))), nullptr) << set;
    }
  }
}

TEST(Megatron, NoWordTakesTheNameOfAKeysFlagButToSetKeys) {
  std::set<std::string> names;
  for (const Field& field : fields()) {
    std::string name = "--" + field.name;
    std::ranges::replace(name, '_', '-');
    names.insert(name);
  }
  for (const MegatronWord& word : megatron_words()) {
    if (!names.contains(word.flag)) continue;
    const bool sets = word.meaning.kind == Kind::Sets || word.meaning.kind == Kind::Acts;
    const bool pads = word.flag == "--make-vocab-size-divisible-by";  // the key asks for padding
    EXPECT_TRUE((sets || pads) && word.key.empty()) << word.flag << " " << word.key;
  }
}

TEST(Megatron, TakenWordsSetWhatTheyMean) {
  const auto config_of = [](std::string_view line) { return read(words_of(line)).config; };
  EXPECT_EQ(config_of("--train-samples 1000 --lr-warmup-samples 30").train.train_samples, 1000);
  EXPECT_EQ(config_of("--lr-warmup-fraction 0.1").scheduler.lr_warmup_fraction, 0.1);
  EXPECT_EQ(config_of("--window-size 127,0").model.window_size, 128);
  EXPECT_EQ(config_of("--window-size (127,0)").model.window_size, 128);
  EXPECT_EQ(config_of("model.window_size=[127,0]").model.window_size, 128);
  EXPECT_EQ(config_of("--window-size -1,0").model.window_size, std::nullopt);
  EXPECT_EQ(config_of("--window-size 64").model.window_size, 64);
  EXPECT_EQ(config_of("--padded-vocab-size 151936").model.vocab_size, 151936);
  EXPECT_EQ(config_of("validation.eval_iters=null").train.eval_iters, 0);
  EXPECT_EQ(config_of("--distributed-timeout-minutes 6000").runtime.timeout_seconds, 360000);
  EXPECT_EQ(config_of("dist.distributed_timeout_minutes=5").runtime.timeout_seconds, 300);
  EXPECT_EQ(config_of("--optimizer muon").optimizer.optimizer, OptimizerKind::Muon);
  EXPECT_EQ(config_of("--tokenizer-type TikTokenizer").tokenizer.tokenizer_type,
            TokenizerType::TikToken);
  EXPECT_EQ(config_of("--lr-decay-style WSD").scheduler.lr_decay_style, LrDecay::WarmupStableDecay);
  EXPECT_EQ(config_of("--position-embedding-type yarn").model.rope_type, RopeType::Yarn);
  EXPECT_EQ(config_of("--start-weight-decay 0.2 --end-weight-decay 0.2").optimizer.weight_decay,
            0.2);
  const Config fp8 = config_of("mixed_precision=bf16_with_mxfp8_mixed");
  EXPECT_EQ(fp8.model.fp8_recipe, Fp8Recipe::Mxfp8);
  EXPECT_TRUE(fp8.model.bf16);
  EXPECT_FALSE(config_of("--grad-reduce-in-bf16").ddp.grad_reduce_in_fp32);
  EXPECT_FALSE(config_of("--no-rope-fusion").model.apply_rope_fusion);
  EXPECT_EQ(config_of("--moe-layer-freq ([0]*1+[1]*2)*2").model.moe_layer_freq,
            (std::vector<std::int64_t>{0, 1, 1, 0, 1, 1}));
}

TEST(Megatron, DataOfALineIsAPathOrABlend) {
  const Config one = read({"--data-path", "/data/a", "--split", "99,1,0"}).config;
  EXPECT_EQ(one.dataset.path, "/data/a");
  EXPECT_EQ(one.dataset.kind, DataKind::Indexed);
  const Config blend = read({"--data-path", "0.7", "a", "0.3", "b", "--bf16"}).config;
  EXPECT_EQ(blend.dataset.blend, (Typed{"0.7", "a", "0.3", "b"}));
  EXPECT_TRUE(blend.dataset.path.empty());
  EXPECT_EQ(read({"--data-path", "/data/a", "/data/b"}).config.dataset.blend,
            (Typed{"/data/a", "/data/b"}));
  EXPECT_EQ(read({"--data-path", "own", "tiny"}).recipe, "tiny");
}

// One error per flag, including the words behind it.
TEST(Megatron, AnUnknownFlagIsOneErrorAndItsWordsBelongToIt) {
  const Resolution run =
      read({"--no-such-flag", "log_all", "4", "x", "--nor-this", "b", "--num-layers", "6"});
  ASSERT_EQ(run.complaints.size(), 2u) << run.complaints[0];
  EXPECT_NE(run.complaints[0].find("--no-such-flag"), std::string::npos);
  EXPECT_NE(run.complaints[1].find("--nor-this"), std::string::npos);
  EXPECT_EQ(run.config.model.num_layers, 6);
  EXPECT_TRUE(run.recipe.empty());
  // A recipe behind it is still judged.
  EXPECT_EQ(read({"--no-such-flag", "tiny"}).recipe, "tiny");
}

TEST(Megatron, AnUnknownKeyLeavesTheOthersAsTheyAre) {
  const Resolution run = read({"model.nosuch=4", "model.num_layers=6", "model.hidden_size=x"});
  EXPECT_EQ(run.complaints.size(), 2u);
  EXPECT_EQ(run.config.model.num_layers, 6);
  EXPECT_EQ(run.refused_keys, Typed{"model.hidden_size"});
}

TEST(Megatron, FlagsOfForksAreErrors) {
  for (const char* flag : {"--use-fp8-flow",
                           "--swap-attention",
                           "--reuse-fp32-param",
                           "--moe-tp-extend-ep",
                           "--train-mode"}) {
    EXPECT_EQ(read({flag}).complaints.size(), 1u) << flag;
  }
}

TEST(Megatron, SuggestionsNeverSayTheOpposite) {
  EXPECT_EQ(flag_hint("--no-save-optimm"), "did you mean '--no-save-optim'?");
  EXPECT_EQ(flag_hint("--load-optimm").find("save"), std::string::npos);
  EXPECT_EQ(flag_hint("--save-optimizer").find("load"), std::string::npos);
  EXPECT_EQ(flag_hint("--inference-rng-trackerr"), "did you mean '--inference-rng-tracker'?");
  EXPECT_EQ(flag_hint("--max-position-embedding"), "did you mean '--max-position-embeddings'?");
  EXPECT_EQ(flag_hint("--rope-fusionn").find("--no-"), std::string::npos);
  EXPECT_EQ(key_hint("checkpoint.save_optimm").find("load"), std::string::npos);
  EXPECT_EQ(flag_hint("--tests-data-path").find("--train"), std::string::npos);
  EXPECT_EQ(flag_hint("--disable-tp-comm-bulk-wgradd").find("dgrad"), std::string::npos);
}

// The bar for flags of public launch lines. A flag that changes nothing stops no line.
TEST(Megatron, FlagsOfPublicLinesAreTaken) {
  const std::string file = base::read_text(WEFT_SOURCE_DIR "/tests/words/megatron_flags.txt");
  std::size_t count = 0, taken = 0;
  for (const std::string& flag : base::split(file, '\n')) {
    if (!flag.starts_with("--")) continue;
    ++count;
    const std::optional<KebabFlag> found = find_kebab_flag(flag);
    taken += found ? 1 : 0;
    EXPECT_TRUE(found) << flag;
    const MegatronWord* word = found ? found->megatron.word : nullptr;
    if (word == nullptr || word->meaning.kind != Kind::Idle) continue;
    const bool is_switch = word->takes == MegatronWord::Takes::Nothing;
    const Resolution run = read(is_switch ? Typed{flag} : Typed{flag, "1"});
    EXPECT_TRUE(run.complaints.empty()) << flag;
    EXPECT_TRUE(run.config.runtime.unmodelled.empty()) << flag;
  }
  EXPECT_GT(count, 70u);
  EXPECT_GE(static_cast<double>(taken), 0.95 * static_cast<double>(count));
}

TEST(Megatron, DataOfEachSplitIsABlendPerSplit) {
  const Config apart = read({"--train-data-path",
                             "0.7",
                             "a",
                             "0.3",
                             "b",
                             "--valid-data-path",
                             "c",
                             "--test-data-path=d",
                             "--bf16"})
                           .config;
  EXPECT_EQ(apart.dataset.kind, DataKind::Indexed);
  EXPECT_EQ(apart.dataset.blend_per_split, (Typed{"[0.7,a,0.3,b]", "[c]", "[d]"}));
  EXPECT_TRUE(apart.dataset.valid_data_path.empty());
  const Config without_test = read({"--train-data-path", "a", "--valid-data-path", "c"}).config;
  EXPECT_EQ(without_test.dataset.blend_per_split, (Typed{"[a]", "[c]", "[]"}));
  // Alone it is Weft's own key.
  EXPECT_EQ(read({"--valid-data-path", "c"}).config.dataset.valid_data_path, Typed{"c"});
}

TEST(Megatron, WhatScriptsSwitchOffByZeroIsOff) {
  EXPECT_EQ(read({"--save-interval", "0"}).config.checkpoint.save_interval, std::nullopt);
  EXPECT_EQ(read({"--exit-interval", "0"}).config.train.exit_interval, std::nullopt);
}

TEST(Megatron, StagesAsListsOfNamesAreALayout) {
  const std::string lists = "[[embedding,decoder,decoder],[decoder,mtp,loss]]";
  const char* key = "model.pipeline_model_parallel_layout";
  EXPECT_EQ(meant_value(key, lists), Written(std::string("Ett|tmL")));
  EXPECT_EQ(meant_value(key, std::string("Ett|tL")), Written(std::string("Ett|tL")));
  const Written unknown = std::string("[[embedding,encoder]]");
  EXPECT_EQ(meant_value(key, unknown), unknown);
}

TEST(Megatron, SwitchesOfBothFormsGoBothWays) {
  EXPECT_FALSE(read({"--no-check-for-nan-in-loss-and-grad"})
                   .config.rerun_state_machine.check_for_nan_in_loss);
  EXPECT_TRUE(read({"--use-distributed-optimizer"}).config.ddp.use_distributed_optimizer);
  EXPECT_FALSE(read({"--use-distributed-optimizer", "false"}).config.ddp.use_distributed_optimizer);
  EXPECT_EQ(class_of(read({"--no-swiglu"})).find("refused"), 0u);
}

}  // namespace megatron_test
}  // namespace weft::words
