// Memory savings in attention shared by context-parallel ranks, for every way of sharing.
#include <gtest/gtest.h>

#include "tests/sanitized.h"
#include "tests/train/random_savings_support.h"

namespace weft::train {
namespace context_savings_test {

using devices::DeviceKind;

const std::vector<std::string> kKinds{"p2p", "all_gather", "a2a", "a2a+p2p"};

// Four ranks share every sequence.
config::Config shared_config(const std::string& attention, const std::string& kinds) {
  config::Config config = savings_config(attention);
  config.model.num_query_groups = std::nullopt;
  return with_words(config,
                    {{"runtime.world_size", "4"},
                     {"model.context_parallel_size", "4"},
                     {"model.cp_comm_type", kinds},
                     {"model.hierarchical_context_parallel_sizes", "[2,2]"}});
}

struct Saving {
  std::string name;
  Words words;
};

Saving recomputing(const std::string& modules) {
  return {"recomputed " + modules,
          {{"model.recompute_granularity", "selective"},
           {"model.recompute_modules", "[" + modules + "]"}}};
}

Saving offloading(const std::string& modules) {
  return {"offloaded " + modules,
          {{"model.fine_grained_activation_offloading", "true"},
           {"model.offload_modules", "[" + modules + "]"}}};
}

std::vector<Saving> savings_of(const config::Config& config) {
  std::vector<Saving> all{recomputing("core_attn"),
                          offloading("core_attn"),
                          offloading("core_attn,attn_proj"),
                          {"layers",
                           {{"model.recompute_granularity", "full"},
                            {"model.recompute_method", "uniform"},
                            {"model.recompute_num_layers", "1"}}}};
  if (config.model.multi_latent_attention) all.push_back(recomputing("mla_up_proj"));
  return all;
}

// Consecutive layers share sequences differently; the last layer offloads no tensor.
TEST(ContextSavings, ChangeNoBitAndTakeWhatIsPredicted) {
  if (kSanitized) GTEST_SKIP() << "skipped: too long under a sanitizer";
  const std::string kinds = "[p2p,all_gather,a2a,a2a+p2p,p2p]";
  std::size_t first = 0;  // of the savings that a model meets in make test
  for (const DeviceKind device : devices::all_devices()) {
    if (device == DeviceKind::HiddenCpu) continue;
    for (const std::string attention : {"", "latent", "whole queries"}) {
      for (const std::string norm : {"none", "head"}) {
        if (!attention.empty() && norm == "head") continue;
        config::Config plain = shared_config(attention, kinds);
        plain.model.num_layers = 5;
        plain.model.moe_layer_freq = {1, 0, 1, 1, 0};
        plain.train.global_batch_size = 2;
        plain = with_words(plain, {{"model.qk_layernorm", norm}});
        if (norm == "none") plain.model.params_dtype = base::DType::BF16;
        for (const Saving& saving : third_or_all(savings_of(plain), first++ % 3)) {
          const DrawnSavings run{plain,
                                 with_words(plain, saving.words),
                                 attention + " " + norm + " " + saving.name};
          expect_saved(run, device);
        }
      }
    }
  }
}

TEST(ContextSavings, FreeMemoryInEveryWayOfSharing) {
  for (const std::string attention : {"", "latent"}) {
    for (const std::string& kind : kKinds) {
      const config::Config plain = with_few_micro_batches(shared_config(attention, kind));
      const std::size_t before = dry_peaks(plain, 0, DeviceKind::Cpu).total;
      for (const Saving& saving : savings_of(plain)) {
        SCOPED_TRACE(attention + " " + kind + " " + saving.name);
        const config::Config config = with_words(plain, saving.words);
        EXPECT_LT(dry_peaks(config, 0, DeviceKind::Cpu).total, before);
      }
    }
  }
}

}  // namespace context_savings_test
}  // namespace weft::train
