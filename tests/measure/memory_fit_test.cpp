// Savings that make a run fit: the cheapest set that does, within host memory.
#include "weft/measure/memory/memory_fit.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/train/train_support.h"
#include "weft/rules/validate.h"

namespace weft::measure {
namespace memory_fit_test {

using config::Config;
using config::RecomputeModule;
using Names = std::vector<std::string>;

constexpr std::size_t kGb = 1000 * 1000 * 1000;

Config gpu_run() {
  Config config = train::deep_config();
  config.hardware.gpu = config::Gpu::H100;
  config.model.bf16 = config.optimizer.bf16 = true;
  config.model.params_dtype = base::DType::BF16;
  return config;
}

bool recomputes(const Config& config, RecomputeModule module) {
  const auto& model = config.model;
  return model.recompute_granularity == config::RecomputeGranularity::Selective &&
         std::ranges::count(model.recompute_modules.value(), module) > 0;
}

bool recomputes_all(const Config& config) {
  return config.model.recompute_granularity == config::RecomputeGranularity::Full;
}

// Run of 100 GB and one second, with savings of round numbers.
MemoryForecast made_up(const Config& config, Priced) {
  std::size_t gigabytes = 100, on_host = 0;
  double seconds = 1;
  const auto take = [&](bool is_on, std::size_t freed, double cost) {
    if (is_on) gigabytes -= std::min(gigabytes, freed), seconds += cost;
  };
  take(recomputes(config, RecomputeModule::Layernorm), 10, 0.01);
  const bool whole_moe = recomputes(config, RecomputeModule::Moe);  // moe_act is a part of it
  take(recomputes(config, RecomputeModule::MoeAct) && !whole_moe, 20, 0.02);
  take(recomputes(config, RecomputeModule::CoreAttn), 5, 0.04);
  take(whole_moe, 40, 0.2);
  take(recomputes_all(config), 60, 0.3);
  take(config.optimizer.exp_avg_dtype == base::DType::BF16, 15, 0);
  if (config.optimizer.optimizer_cpu_offload) {
    const double fraction = config.optimizer.optimizer_offload_fraction;
    on_host = static_cast<std::size_t>(50 * fraction);
    take(true, on_host, 0.005 * fraction);
  }
  train::PredictedMemory stage;
  stage.peak_total_bytes = gigabytes * kGb;
  stage.peak_bytes[static_cast<std::size_t>(tensor::Tag::Offloaded)] = on_host * kGb;
  return {.stages = {stage}, .step_seconds = seconds, .layout = {.world = 1}};
}

MemoryRoom room_of(std::size_t device, std::size_t host) {
  return {.device = DeviceRoom{.name = "a card", .memory_bytes = device * kGb},
          .host = HostRoom{.name = "a machine", .bytes = host * kGb}};
}

const Tell kSilent = [](const std::string&) {};

struct Answer {
  Names helpful, cheapest;
  std::optional<Fit> fit;
};

Answer ask(std::size_t device,
           std::size_t host,
           const Forecaster& forecast = made_up,
           Config config = gpu_run()) {
  config.runtime.offload_layers_share = 1;
  const MemoryForecast now = forecast(config, Priced::Yes);
  const MemoryRoom room = room_of(device, host);
  const TooLarge run{.asked = config, .now = now, .room = room};
  const Savings savings = find_savings(config, now, kSilent, forecast);
  const std::vector<Saving> helpful = helpful_savings(run, savings);
  Answer answer{.fit = find_fit(run, helpful, kSilent, forecast)};
  for (const Saving& saving : helpful) answer.helpful.push_back(saving.name);
  for (const Saving& saving : apart(config, helpful, 2)) answer.cheapest.push_back(saving.name);
  return answer;
}

bool has(const Names& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

TEST(MemoryFit, OfSavingsThatSufficeAloneTheCheapestIsTaken) {
  const std::optional<Fit> fit = ask(55, 1000).fit;
  ASSERT_TRUE(fit);
  EXPECT_EQ(fit->names, (Names{"optimizer offload"})) << "and not full recomputation";
  EXPECT_EQ(fit->peak_bytes, 55 * kGb) << "nine tenths of it do";
  EXPECT_NEAR(fit->seconds, 0.0045, 1e-9);
}

TEST(MemoryFit, NothingIsProposedThatTheHostHasNoRoomFor) {
  const Answer answer = ask(41, 49);
  EXPECT_FALSE(has(answer.helpful, "optimizer offload"));
  ASSERT_TRUE(answer.fit);
  EXPECT_EQ(answer.fit->names, (Names{"full recomputation"}));
  EXPECT_TRUE(has(ask(41, 50).helpful, "optimizer offload"));
}

TEST(MemoryFit, SeveralCheapOnesComeBeforeADearOneThatSufficesAlone) {
  const std::optional<Fit> fit = ask(71, 0).fit;
  ASSERT_TRUE(fit);
  Names sorted = fit->names;
  std::ranges::sort(sorted);
  EXPECT_EQ(sorted, (Names{"layernorm", "moe_act"})) << "not moe, which costs ten times as much";
  EXPECT_NEAR(fit->seconds, 0.03, 1e-9);
}

TEST(MemoryFit, WhatTurnsOutNeedlessIsLeftOut) {
  // layernorm, moe_act and core_attn, as cheap as any for their bytes, give 35 GB; moe replaces
  // moe_act. 55 GB need moe and layernorm, and no more.
  const std::optional<Fit> fit = ask(50, 0).fit;
  ASSERT_TRUE(fit);
  Names sorted = fit->names;
  std::ranges::sort(sorted);
  EXPECT_EQ(sorted, (Names{"layernorm", "moe"}));
  EXPECT_EQ(ask(80, 0).fit.value().names, (Names{"moe_act"}));
}

TEST(MemoryFit, NoMoreOfTheOptimizerIsOffloadedThanItTakes) {
  const std::optional<Fit> fit = ask(79, 1000).fit;
  ASSERT_TRUE(fit);
  EXPECT_EQ(fit->names, (Names{"optimizer offload"}));
  EXPECT_TRUE(has(fit->words, "optimizer.optimizer_offload_fraction=0.45"));
  EXPECT_EQ(fit->peak_bytes, 78 * kGb);
}

enum class WholeLayers { Free, FreeNothing };

// Numbers of a real run that exceeds its room far: Qwen3-30B-A3B, 48 layers on 8 ranks of H100, 4 x
// 4096 tokens each; 180.1 GB here, and 0.71 s.
Forecaster crowded(WholeLayers layers) {
  return [layers](const Config& config, Priced) {
    double gigabytes = 180.1, seconds = 0.71, on_host = 0;
    const auto take = [&](bool is_on, double freed, double cost) {
      if (is_on) gigabytes -= freed, seconds += cost;
    };
    const bool whole = recomputes_all(config) && layers == WholeLayers::Free;
    const bool moe = recomputes(config, RecomputeModule::Moe);
    const bool core = recomputes(config, RecomputeModule::CoreAttn);
    take(whole, 80.9, 0.146);
    take(moe, 51.4, 0.1225);
    take(recomputes(config, RecomputeModule::Layernorm), 6, 0.0058);
    take(recomputes(config, RecomputeModule::MoeAct) && !moe, 9, 0.0173);
    take(core, 10, 0.0267);
    const auto offloads = [&](config::OffloadModule module) {
      const auto& model = config.model;
      return model.fine_grained_activation_offloading && !whole &&
             std::ranges::count(model.offload_modules, module) > 0;
    };
    take(offloads(config::OffloadModule::CoreAttn), 11, 0);
    take(offloads(config::OffloadModule::AttnProj) && !core, 6.1, 0);
    take(config.runtime.logits_chunk > 0, 4.2, 0);
    const config::OptimizerConfig& optimizer = config.optimizer;
    take(optimizer.use_precision_aware_optimizer, 22.2, -0.035);
    take(optimizer.exp_avg_dtype == base::DType::BF16, 14.2, -0.01);
    take(optimizer.main_grads_dtype == base::DType::BF16, 8.4, 0.006);
    if (optimizer.optimizer_cpu_offload) {
      on_host = 40 * optimizer.optimizer_offload_fraction;
      take(true, on_host, 1.2 * optimizer.optimizer_offload_fraction);
    }
    train::PredictedMemory stage;
    stage.peak_total_bytes = static_cast<std::size_t>(std::max(0.0, gigabytes) * kGb);
    stage.peak_bytes[static_cast<std::size_t>(tensor::Tag::Offloaded)] =
        static_cast<std::size_t>(on_host * kGb);
    return MemoryForecast{.stages = {stage}, .step_seconds = seconds, .layout = {.world = 1}};
  };
}

Names sorted(Names names) {
  std::ranges::sort(names);
  return names;
}

TEST(MemoryFit, WholeLayersComeBeforeWhatRoundsOtherwise) {
  const std::optional<Fit> fit = ask(74, 1000, crowded(WholeLayers::Free)).fit;
  ASSERT_TRUE(fit);
  EXPECT_EQ(sorted(fit->names),
            (Names{"16-bit remainders", "full recomputation", "logits in chunks"}));
  EXPECT_NEAR(fit->seconds, 0.111, 1e-9) << "and not the optimizer's offload, ten times as dear";
}

// Whole layers free more per second than moe, and come first; they free more than is needed.
TEST(MemoryFit, TheCheapestIsTakenWhereverTheSearchBegins) {
  const std::optional<Fit> fit = ask(80, 1000, crowded(WholeLayers::Free)).fit;
  ASSERT_TRUE(fit);
  EXPECT_EQ(sorted(fit->names),
            (Names{"16-bit remainders",
                   "layernorm",
                   "logits in chunks",
                   "moe",
                   "offload core_attn, attn_proj"}));
  EXPECT_NEAR(fit->seconds, 0.0933, 1e-9);
}

TEST(MemoryFit, AWordThatChangesNothingIsLeftOut) {
  const std::optional<Fit> fit = ask(76, 10, crowded(WholeLayers::FreeNothing)).fit;
  ASSERT_TRUE(fit);
  EXPECT_TRUE(has(fit->words, "model.offload_modules=[core_attn]"))
      << "the projection's input is recomputed";
  EXPECT_TRUE(has(fit->words, "model.recompute_modules=[core_attn,layernorm,moe]") ||
              has(fit->words, "model.recompute_modules=[layernorm,core_attn,moe]"));
  EXPECT_TRUE(has(fit->names, "offload core_attn"));
}

// attn_proj reads an output that a recomputed core_attn drops: the pair has an effect, and the
// second module adds none.
TEST(MemoryFit, AModuleThatAddsNothingToItsPairIsLeftOut) {
  Config config = gpu_run();
  config.model.recompute_granularity = config::RecomputeGranularity::Selective;
  config.model.recompute_modules = {RecomputeModule::CoreAttn};
  const std::optional<Fit> fit = ask(133, 10, crowded(WholeLayers::FreeNothing), config).fit;
  ASSERT_TRUE(fit);
  EXPECT_EQ(fit->names.size(), 3u);
  EXPECT_TRUE(has(fit->names, "offload core_attn"));
  EXPECT_TRUE(has(fit->words, "model.offload_modules=[core_attn]"));
}

// Differences below the printed precision.
TEST(MemoryFit, WhatCostsNextToNothingIsFree) {
  std::vector<Saving> savings{{.name = "small", .words = {}, .bytes = 1, .seconds = 0},
                              {.name = "large", .words = {}, .bytes = 5, .seconds = 1e-6},
                              {.name = "dear", .words = {}, .bytes = 1000, .seconds = 0.1}};
  sort_by_cost(savings, 1);
  EXPECT_EQ(savings[0].name, "large");
  EXPECT_EQ(savings[1].name, "small");
}

// This build has no CUDA graphs, but the rules know them.
TEST(MemoryFit, WhatIsProposedIsLegalInTheRunThatIsAskedFor) {
  Config config = gpu_run();
  config.model.cuda_graph_impl = config::CudaGraphImpl::TransformerEngine;
  Config whole = config;
  whole.model.recompute_granularity = config::RecomputeGranularity::Full;
  whole.model.recompute_method = config::RecomputeMethod::Uniform;
  whole.model.recompute_num_layers = 1;
  ASSERT_FALSE(rules::judge(whole).legal());
  const Savings savings = find_savings(config, made_up(config, Priced::Yes), kSilent, made_up);
  const auto full = std::ranges::find(savings.worthwhile, "full recomputation", &Saving::name);
  ASSERT_NE(full, savings.worthwhile.end());
  EXPECT_TRUE(has(full->words, "model.cuda_graph_impl=none"));
  for (const Saving& saving : savings.worthwhile) {
    EXPECT_TRUE(rules::judge(with_saving(config, saving).value()).legal()) << saving.name;
  }
}

TEST(MemoryFit, WhatRoundsOtherwiseComesOnlyWhereNothingElseSuffices) {
  EXPECT_FALSE(has(ask(40, 0).fit.value().names, "bf16 moments")) << "whole layers suffice";
  const std::optional<Fit> fit = ask(29, 0).fit;
  ASSERT_TRUE(fit);
  EXPECT_TRUE(has(fit->names, "bf16 moments"));
  EXPECT_TRUE(has(fit->names, "full recomputation"));
  EXPECT_EQ(fit->peak_bytes, 25 * kGb);
  EXPECT_FALSE(ask(20, 0).fit) << "nothing makes it so small";
}

TEST(MemoryFit, OfTwoThatAreNamedNoneContainsTheOther) {
  const Config config = gpu_run();
  const MemoryForecast now = made_up(config, Priced::Yes);
  Savings savings = find_savings(config, now, kSilent, made_up);
  std::vector<Saving> all = savings.worthwhile;
  all.insert(all.end(), savings.elsewhere.begin(), savings.elsewhere.end());
  const auto named = [&](const std::string& name) {
    return *std::ranges::find(all, name, &Saving::name);
  };
  const auto count = [&](const std::string& one, const std::string& other) {
    const std::size_t here = apart(config, {named(one), named(other)}, 2).size();
    EXPECT_EQ(here, apart(config, {named(other), named(one)}, 2).size()) << one << ", " << other;
    return here;
  };
  EXPECT_EQ(count("moe_act", "moe"), 1u);
  EXPECT_EQ(count("layernorm", "full recomputation"), 1u);
  EXPECT_EQ(count("16-bit remainders", "bf16 moments"), 1u);
  EXPECT_EQ(count("bf16 gradients", "bf16 moments"), 1u);
  EXPECT_EQ(count("layernorm", "moe_act"), 2u);
  EXPECT_EQ(count("layernorm", "bf16 moments"), 2u);
}

}  // namespace memory_fit_test
}  // namespace weft::measure
