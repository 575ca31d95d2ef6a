// Language of the command line: spellings, precedence, and refusals.
#include "weft/words/words.h"

#include <gtest/gtest.h>

#include "tests/base/complaints_support.h"
#include "weft/base/files/file.h"
#include "weft/config/dump.h"
#include "weft/words/harness/flags.h"
#include "weft/words/resolution.h"

namespace weft::words {

using namespace config;
namespace words_test {

namespace fs = std::filesystem;
using Typed = std::vector<std::string>;

const fs::path kRecipes = WEFT_SOURCE_DIR "/recipes";

Resolution resolved(const Typed& words) { return resolve_words(kRecipes, words, Audience::Run); }
Config config_of(const Typed& words) { return resolved(words).config; }
std::vector<std::string> complaints(const Typed& words) {
  return complaints_of([&] { resolved(words); });
}
std::vector<std::string> messages(const std::vector<Finding>& findings, std::string_view id) {
  std::vector<std::string> all;
  for (const Finding& finding : findings) {
    if (finding.id == id) all.push_back(finding.message);
  }
  return all;
}

TEST(Words, EverySpellingOfAKeySetsIt) {
  for (const Typed& words : {Typed{"model.expert_model_parallel_size=8"},
                             Typed{"+model.expert_model_parallel_size=8"},
                             Typed{"++model.expert_model_parallel_size=8"},
                             Typed{"--expert-model-parallel-size", "8"},
                             Typed{"--expert-model-parallel-size=8"},
                             Typed{"--expert_model_parallel_size", "8"},
                             Typed{"-ep", "8"},
                             Typed{"-ep=8"}}) {
    EXPECT_EQ(config_of(words).model.expert_model_parallel_size, 8) << words[0];
  }
}

TEST(Words, SwitchesGoBothWays) {
  const auto overlap = [](const Typed& words) {
    return config_of(words).comm_overlap.overlap_moe_expert_parallel_comm;
  };
  EXPECT_TRUE(overlap({"--overlap-moe-expert-parallel-comm"}));
  EXPECT_TRUE(overlap({"--overlap-moe-expert-parallel-comm", "tiny"}));
  EXPECT_FALSE(overlap({"--overlap-moe-expert-parallel-comm", "false"}));
  EXPECT_FALSE(overlap({"--overlap-moe-expert-parallel-comm=false"}));
  EXPECT_FALSE(
      overlap({"--overlap-moe-expert-parallel-comm", "--no-overlap-moe-expert-parallel-comm"}));
}

TEST(Words, APretendedWorldIsAFlag) {
  const Config config = config_of({"--world-size", "1024", "--fake-init-process-group"});
  EXPECT_EQ(config.runtime.world_size, 1024);
  EXPECT_EQ(config.runtime.backend, CommBackend::Fake);
}

TEST(Words, ANameOfSeveralSectionsMeansTheOneThatDecides) {
  EXPECT_EQ(find_kebab_flag("--overlap-grad-reduce")->field->key,
            "comm_overlap.overlap_grad_reduce");
  EXPECT_EQ(find_kebab_flag("--delay-wgrad-compute")->field->key,
            "comm_overlap.delay_wgrad_compute");
  EXPECT_EQ(find_kebab_flag("--bf16")->field->key, "model.bf16");
  EXPECT_EQ(find_kebab_flag("--seq-length")->field->key, "model.seq_length");
  EXPECT_EQ(find_kebab_flag("--seed")->field->key, "rng.seed");
}

TEST(Words, EveryKebabFlagMeansSomething) {
  for (const std::string& name : kebab_flag_names()) {
    if (name == "--config-file") continue;
    const auto flag = find_kebab_flag(name);
    ASSERT_TRUE(flag) << name;
    if (flag->megatron.word != nullptr) continue;  // in megatron_test.cpp
    EXPECT_NE(find_field(flag->set.substr(0, flag->set.find('='))), nullptr) << name;
  }
}

TEST(Words, MegatronsOwnSpellingsAreKnown) {
  const Config config = config_of({"--num-experts",
                                   "8",
                                   "--fp8-format",
                                   "hybrid",
                                   "--qk-layernorm",
                                   "--use-distributed-optimizer",
                                   "--num-layers",
                                   "8",
                                   "--num-layers-per-virtual-pipeline-stage",
                                   "2",
                                   "--pipeline-model-parallel-size",
                                   "2",
                                   "--recompute-modules",
                                   "core_attn",
                                   "moe_act"});
  EXPECT_EQ(config.model.num_moe_experts, 8);
  EXPECT_EQ(config.model.fp8, Fp8Format::Hybrid);
  EXPECT_EQ(config.model.qk_layernorm, QkNorm::Head);
  EXPECT_TRUE(config.ddp.use_distributed_optimizer && config.optimizer.use_distributed_optimizer);
  EXPECT_EQ(config.model.virtual_pipeline_model_parallel_size, 2);
  EXPECT_EQ(config.model.recompute_modules,
            (std::vector{RecomputeModule::CoreAttn, RecomputeModule::MoeAct}));
  EXPECT_TRUE(resolved({"--swiglu"}).config.model.gated_linear_unit);
  EXPECT_FALSE(resolved({"--squared-relu"}).config.model.gated_linear_unit);
  EXPECT_EQ(resolved({"--normalization", "LayerNorm"}).config.model.normalization,
            Normalization::LayerNorm);
}

TEST(Words, MegatronsCommonFlagsThatHaveNothingToDoHereAreAcceptedAndToldEach) {
  const std::vector<std::string> line{"--data-cache-path",
                                      "cache",
                                      "--ckpt-format",
                                      "torch_dist",
                                      "--num-workers",
                                      "8",
                                      "--wandb-project",
                                      "moe",
                                      "--profile"};
  EXPECT_TRUE(complaints(line).empty());
  EXPECT_EQ(messages(resolved(line).warnings, "H14").size(), 5u);
}

TEST(Words, MegatronsFlagsOfSplitsAndFinetuningAreKeys) {
  const Config config =
      config_of({"--split", "99,1,0", "--no-load-optim", "--no-load-rng", "--finetune"});
  EXPECT_EQ(config.dataset.split, "99,1,0");
  EXPECT_FALSE(config.checkpoint.load_optim || config.checkpoint.load_rng);
  EXPECT_TRUE(config.checkpoint.finetune);
}

TEST(Words, ATimeoutInMinutesIsTheKeyInSeconds) {
  EXPECT_EQ(config_of({"--distributed-timeout-minutes", "5"}).runtime.timeout_seconds, 300);
  EXPECT_TRUE(any_names(complaints({"--distributed-timeout-minutes", "five"}), {"an integer"}));
}

TEST(Words, DataParallelFlagsSetTheWishAndWhatComesOfIt) {
  const Config on =
      config_of({"--overlap-grad-reduce", "--overlap-param-gather", "--use-distributed-optimizer"});
  EXPECT_EQ(on.comm_overlap.overlap_grad_reduce, true);
  EXPECT_TRUE(on.ddp.overlap_grad_reduce);
  EXPECT_EQ(on.comm_overlap.overlap_param_gather, true);
  EXPECT_TRUE(on.ddp.overlap_param_gather && on.optimizer.overlap_param_gather);
  const Config off = config_of({"ddp.use_distributed_optimizer=true",
                                "optimizer.use_distributed_optimizer=true",
                                "--no-use-distributed-optimizer",
                                "--no-overlap-grad-reduce"});
  EXPECT_FALSE(off.ddp.use_distributed_optimizer || off.optimizer.use_distributed_optimizer);
  EXPECT_EQ(off.comm_overlap.overlap_grad_reduce, false);
  EXPECT_FALSE(config_of({"--grad-reduce-in-bf16"}).ddp.grad_reduce_in_fp32);
}

TEST(Words, ListsMayBeSumsAndRepeats) {
  const std::vector<std::int64_t> layers{0, 1, 1, 1};
  for (const char* sum :
       {"([0]*1+[1]*3)", "[0]*1+[1]*3", "[0] + [1] * 3", "[0,1]+2*[1]", "([0]+[1]+[1,1])"}) {
    EXPECT_EQ(config_of({"--moe-layer-freq", sum}).model.moe_layer_freq, layers) << sum;
    EXPECT_EQ(config_of({std::string("model.moe_layer_freq=") + sum}).model.moe_layer_freq, layers);
  }
  for (const char* odd : {"([0]*1+[1]*99999999999)",
                          "([0]*65537)",
                          "[0]*-1",
                          "([])",
                          "()",
                          "[0]*",
                          "[[0]*2]",
                          "([0]*1",
                          "[0]*1*"}) {
    EXPECT_EQ(complaints({"--moe-layer-freq", odd}).size(), 1u) << odd;
  }
  EXPECT_EQ(config_of({"model.recompute_modules=core_attn,moe_act"}).model.recompute_modules,
            (std::vector{RecomputeModule::CoreAttn, RecomputeModule::MoeAct}));
}

TEST(Words, ShortNamesAreKeys) {
  const Config config =
      config_of({"tp=2", "pp=3", "vpp=4", "cp=5", "ep=6", "etp=7", "mbs=8", "gbs=9", "world=10"});
  EXPECT_EQ(config.model.tensor_model_parallel_size, 2);
  EXPECT_EQ(config.model.pipeline_model_parallel_size, 3);
  EXPECT_EQ(config.model.virtual_pipeline_model_parallel_size, 4);
  EXPECT_EQ(config.model.context_parallel_size, 5);
  EXPECT_EQ(config.model.expert_model_parallel_size, 6);
  EXPECT_EQ(config.model.expert_tensor_parallel_size, 7);
  EXPECT_EQ(config.train.micro_batch_size, 8);
  EXPECT_EQ(config.train.global_batch_size, 9);
  EXPECT_EQ(config.runtime.world_size, 10);
}

TEST(Words, NothingIsSuggestedWhereNothingIsNear) {
  for (const Typed& words : {Typed{"foo=1"},
                             Typed{"~model.nope"},
                             Typed{"+model.foo=3"},
                             Typed{"--rank"},
                             Typed{"-tp2"},
                             Typed{"--nsys"},
                             Typed{"mine"}}) {
    const auto all = complaints(words);
    ASSERT_EQ(all.size(), 1u) << words[0];
    EXPECT_EQ(all[0].find("did you mean"), std::string::npos) << all[0];
  }
  EXPECT_TRUE(any_names(complaints({"foo=1"}), {"short names", "tp", "gbs"}));
  EXPECT_TRUE(any_names(complaints({"--model.num_layers", "4"}), {"write model.num_layers=4"}));
}

TEST(Words, TheValueOfAFlagThatIsRefusedIsNoSecondRecipe) {
  for (const Typed& words : {Typed{"tiny", "--hiden-size", "5"},
                             Typed{"--hiden-size", "5", "tiny"},
                             Typed{"tiny", "--hiden-size", "big"},
                             Typed{"tiny", "--bf16", "yes"},
                             Typed{"tiny", "--moe-extended-tp"},
                             Typed{"tiny", "--vary", "train.micro_batch_size=1,2"},
                             Typed{"tiny", "--nosuch-sizes", "2", "2", "100"}}) {
    const auto all = complaints(words);
    ASSERT_EQ(all.size(), 1u) << words[1];
    EXPECT_EQ(all[0].find("two recipes"), std::string::npos) << all[0];
  }
  EXPECT_TRUE(any_names(complaints({"tiny", "--bf16", "yes"}), {"true or false"}));
  EXPECT_TRUE(any_names(complaints({"tiny", "--vary", "a=1"}), {"is for weft perf"}));
  EXPECT_EQ(resolved({"--bf16", "tiny"}).recipe, "tiny");
}

TEST(Words, ValuesOfTheWrongTypeSayWhatIsTaken) {
  EXPECT_TRUE(any_names(complaints({"model.num_layers=99999999999999999999"}), {"out of range"}));
  EXPECT_TRUE(any_names(complaints({"model.bf16=yes"}), {"model.bf16=true or model.bf16=false"}));
  EXPECT_EQ(config_of({"hardware.gpu=H100"}).hardware.gpu, Gpu::H100);
  EXPECT_TRUE(any_names(complaints({"--num-layers-per-virtual-pipeline-stage", "1"}),
                        {"'--num-layers-per-virtual-pipeline-stage 1'", "2 or more"}));
}

TEST(Words, FilesWithLayoutsAreRecipes) {
  const fs::path file = fs::temp_directory_path() / "weft_words_layouts.yaml";
  base::write_whole(file, "layouts: {a: {model: {num_layers: 6}}}\n");
  const auto all = complaints({"tiny", "--config-file", file.string()});
  EXPECT_EQ(config_of({file.string() + ":a"}).model.num_layers, 6);
  fs::remove(file);
  EXPECT_TRUE(any_names(all, {"layouts", ":LAYOUT"}));
  EXPECT_TRUE(any_names(complaints({"--config-file", "/nosuch.yaml"}), {"does not exist"}));
}

TEST(Words, ValuesAreNullsSwitchesNumbersTextsAndLists) {
  const Config config = config_of({"model.kv_channels=null",
                                   "comm_overlap.overlap_p2p_comm=False",
                                   "optimizer.lr=1e-4",
                                   "dataset.kind=text",
                                   "dataset.path='a b'",
                                   "runtime.schedule=null",
                                   "checkpoint.load=\"null\"",
                                   "model.qk_layernorm=true",
                                   "model.recompute_modules=[core_attn,moe_act]"});
  EXPECT_EQ(config.model.kv_channels, std::nullopt);
  EXPECT_EQ(config.comm_overlap.overlap_p2p_comm, false);
  EXPECT_EQ(config.optimizer.lr, 1e-4);
  EXPECT_EQ(config.dataset.path, "a b");
  EXPECT_EQ(config.runtime.schedule, "");
  EXPECT_EQ(config.checkpoint.load, "null");
  EXPECT_EQ(config.model.qk_layernorm, QkNorm::Head);
  EXPECT_EQ(config.model.recompute_modules->size(), 2u);
}

TEST(Words, ATildeGivesTheDefaultBack) {
  const Config defaults;
  EXPECT_NE(config_of({"tiny"}).model.num_moe_experts, defaults.model.num_moe_experts);
  EXPECT_EQ(config_of({"tiny", "~model.num_moe_experts"}).model.num_moe_experts,
            defaults.model.num_moe_experts);
}

TEST(Words, TheLaterWordWinsAndSaysWhatItOverrode) {
  const Resolution twice = resolved({"--num-layers", "4", "tiny", "model.num_layers=6"});
  EXPECT_EQ(twice.config.model.num_layers, 6);
  EXPECT_TRUE(any_names(messages(twice.warnings, "W23"),
                        {"model.num_layers=6 (word 4)", "--num-layers 4 (word 1)"}));
  EXPECT_TRUE(messages(resolved({"tiny", "model.num_layers=6"}).warnings, "W23").empty());
  EXPECT_TRUE(messages(resolved({"world=4", "--world-size", "4"}).warnings, "W23").empty());
  const Resolution effect = resolved({"-tp", "2", "model.sequence_parallel=false"});
  EXPECT_FALSE(effect.config.model.sequence_parallel);
  EXPECT_TRUE(any_names(messages(effect.warnings, "W23"), {"(word 3) overrides -tp 2 (word 1)"}));
  EXPECT_TRUE(messages(effect.automatic, "H3").empty()) << "a later word undid it";
  EXPECT_TRUE(
      resolved({"model.sequence_parallel=false", "-tp", "2"}).config.model.sequence_parallel);
}

TEST(Words, FilesComeAfterTheRecipeAndBeforeEveryWord) {
  const fs::path file = fs::temp_directory_path() / "weft_words_file.yaml";
  base::write_whole(file,
                    "model: {num_layers: 6, hidden_size: 96, delay_wgrad_compute: true, "
                    "qk_layernorm: true}\n");
  const Resolution all = resolved({"model.num_layers=8", "--config-file", file.string(), "tiny"});
  fs::remove(file);
  EXPECT_EQ(all.config.model.num_layers, 8) << "a word before the file";
  EXPECT_EQ(all.config.model.hidden_size, 96);
  EXPECT_EQ(all.config.model.num_moe_experts, config_of({"tiny"}).model.num_moe_experts);
  EXPECT_TRUE(all.config.comm_overlap.delay_wgrad_compute);
  EXPECT_EQ(messages(all.warnings, "C4").size(), 1u);
  EXPECT_TRUE(messages(all.warnings, "W23").empty());
  EXPECT_EQ(all.recipe, "tiny");
}

TEST(Words, TwinsOnTheModelAreTheKeysOfCommOverlap) {
  for (const char* name : {"overlap_p2p_comm",
                           "batch_p2p_comm",
                           "tp_comm_overlap",
                           "overlap_moe_expert_parallel_comm",
                           "delay_wgrad_compute",
                           "defer_embedding_wgrad_compute"}) {
    const Resolution said = resolved({std::string("model.") + name + "=true"});
    EXPECT_EQ(to_json(said.config)["comm_overlap"][name], true) << name;
    EXPECT_EQ(messages(said.warnings, "C4").size(), 1u) << name;
  }
}

TEST(Words, WhatIsWrongIsSaidAllAtOnceWithTheNearestName) {
  const auto all = complaints({"--exprt-model-parallel-size",
                               "model.hiden_size=3",
                               "+model.brand_new=1",
                               "~model.nosuch",
                               "--num-layers",
                               "--sequence_parallel",
                               "train.train_iters=soon",
                               "model.moe_a2a_overlap=true",
                               "--micro-batch-size",
                               "model.num_layers=3"});
  ASSERT_EQ(all.size(), 9u);
  EXPECT_TRUE(any_names(all, {"--exprt", "did you mean '--expert-model-parallel-size'?"}));
  EXPECT_TRUE(any_names(all, {"hiden_size", "did you mean 'model.hidden_size'?"}));
  EXPECT_TRUE(any_names(all, {"+model.brand_new", "typed"}));
  EXPECT_TRUE(any_names(all, {"~model.nosuch", "unknown key"}));
  EXPECT_TRUE(any_names(all, {"--num-layers needs a value", "integer"}));
  EXPECT_TRUE(any_names(all, {"did you mean '--sequence-parallel'?"}));
  EXPECT_TRUE(any_names(all, {"word 7", "soon"}));
  EXPECT_TRUE(any_names(all, {"comm_overlap.overlap_moe_expert_parallel_comm"}));
  EXPECT_TRUE(any_names(all, {"--micro-batch-size needs a value"}));
}

TEST(Words, OddWordsAreRefused) {
  for (const char* word : {"=",
                           "==",
                           "+",
                           "++",
                           "+=1",
                           "~",
                           "~a=1",
                           "--",
                           "-",
                           "-=",
                           "",
                           "nosuchrecipe",
                           "+++a.b=1"}) {
    EXPECT_EQ(complaints({word}).size(), 1u) << word;
  }
  EXPECT_TRUE(any_names(complaints({"tiny", "cpu_small"}), {"two recipes"}));
  EXPECT_TRUE(any_names(complaints(Typed(5000, "world=1")), {"5000 words"}));
  EXPECT_TRUE(any_names(complaints({"--fake-init-process-group=1"}), {"true or false"}));
  EXPECT_TRUE(any_names(complaints({"--config-file", "/nosuch.yaml"}), {"/nosuch.yaml"}));
}

TEST(Words, KeysAreKnownWhateverTheirSpelling) {
  const Resolution said = resolved({"-tp", "2", "model.delay_wgrad_compute=true", "world=2"});
  std::vector<std::string> keys;
  for (const Ledger::SetKey& set : said.set_keys) keys.push_back(set.key);
  EXPECT_EQ(keys,
            (std::vector<std::string>{"model.tensor_model_parallel_size",
                                      "model.sequence_parallel",
                                      "comm_overlap.delay_wgrad_compute",
                                      "runtime.world_size"}));
  EXPECT_EQ(said.set_keys[0].typed, "-tp 2");
}

}  // namespace words_test
}  // namespace weft::words
