#include "weft/cli/bench/predict_cases.h"

#include "weft/base/check.h"
#include "weft/base/text.h"

namespace weft::cli {
namespace {

using base::text;
using Line = std::vector<std::string>;

Line words_in(std::string_view line) {
  Line words;
  for (const std::string& word : base::split(line, ' ')) {
    if (!word.empty()) words.push_back(word);
  }
  return words;
}

struct NamedWords {
  const char* name;
  const char* words;
};

// Even routing: the router's imbalance is unpredictable.
constexpr const char* kEven = "model.moe_router_force_load_balancing=true ";
constexpr const char* kOverlap =
    " comm_overlap.overlap_moe_expert_parallel_comm=true comm_overlap.delay_wgrad_compute=";

constexpr NamedWords kCalibrating{"EP2", "world=2 ep=2"};

constexpr NamedWords kLayouts[] = {
    {"1 rank", "world=1 ep=1"},
    {"EP2", "world=2 ep=2"},
    {"EP4", "world=4 ep=4"},
    {"PP2", "world=2 ep=1 pp=2"},
    {"PP2 x EP2", "world=4 ep=2 pp=2"},
    {"DP2", "world=2 ep=1"},
    {"DP2 x EP2", "world=4 ep=2"},
    {"TP2", "world=2 ep=1 tp=2 model.sequence_parallel=true"},
    {"CP2", "world=2 ep=1 cp=2"},
};

// Orders of ranks that share experts.
constexpr NamedWords kOrders[] = {
    {"EP2, overlap", "world=2 ep=2 false"},
    {"EP2, overlap, delayed wgrad", "world=2 ep=2 true"},
    {"EP4, overlap, delayed wgrad", "world=4 ep=4 true"},
};

// Cases over emulated links.
constexpr NamedWords kLinked[] = {
    {"EP2", "world=2 ep=2"},
    {"EP4", "world=4 ep=4"},
    {"PP2 x EP2", "world=4 ep=2 pp=2"},
    {"DP2", "world=2 ep=1"},
};

constexpr NamedWords kLinks[] = {
    {"0.5 GB/s", "fabric.intra_node_gb_per_second=0.5 fabric.intra_node_latency_us=20"},
    {"0.1 GB/s", "fabric.intra_node_gb_per_second=0.1 fabric.intra_node_latency_us=20"},
};

class Layouts {
 public:
  explicit Layouts(const RunArguments& arguments) : run_(resolve(arguments)) {
    print_findings(run_);
    runs_.calibrating = with(kCalibrating.words);
    for (const NamedWords& layout : kLayouts) add(layout, "free links", "");
    for (const NamedWords& order : kOrders) add_order(order, "free links", "");
    for (const NamedWords& links : kLinks) {
      for (const NamedWords& layout : kLinked) add(layout, links.name, links.words);
      for (const NamedWords& order : kOrders) add_order(order, links.name, links.words);
    }
  }

  PredictRuns take() { return std::move(runs_); }

 private:
  config::Config with(const std::string& line) const {
    return words::with_words(run_.config, words_in(kEven + line));
  }

  void add(const NamedWords& layout, const std::string& group, const std::string& links) {
    runs_.cases.push_back({.name = text("{}, {}", layout.name, group),
                           .group = group,
                           .config = with(text("{} {}", layout.words, links))});
  }

  // The last word tells whether weight gradients are delayed.
  void add_order(const NamedWords& order, const std::string& group, const std::string& links) {
    Line words = words_in(order.words);
    const std::string delayed = words.back();
    words.pop_back();
    runs_.cases.push_back(
        {.name = text("{}, {}", order.name, group),
         .group = group,
         .config = with(text("{}{}{} {}", fmt::join(words, " "), kOverlap, delayed, links))});
  }

  const words::Resolution run_;
  PredictRuns runs_;
};

// Rank 0 of eight that share their experts, over the host's link, in eight micro-batches.
constexpr const char* kAlone =
    "runtime.device=cuda runtime.backend=loopback world=8 ep=8 hardware.gpu=null "
    "model.moe_permute_fusion=true model.cross_entropy_loss_fusion=true "
    "model.recompute_granularity=null model.moe_shared_expert_overlap=false "
    "optimizer.use_distributed_optimizer=true ddp.use_distributed_optimizer=true ";

struct ModelShape {
  const char* name;
  const char* recipe;
  const char* words;
};
constexpr ModelShape kModels[] = {
    {"Qwen3-30B-A3B, 8 layers", "overlap_bench_gpu", "model.num_layers=8"},
    {"OLMoE, 8 layers", "olmoe_7b_gpu", "model.num_layers=8"},
    {"DeepSeek-V2-Lite, 8 layers",
     "deepseek_v2_lite",
     "model.num_layers=8 model.moe_layer_freq=[0,1,1,1,1,1,1,1] "
     "model.recompute_method=null model.recompute_num_layers=null"},
};

struct TokenCount {
  std::int64_t sequence, micro_batch;
};
constexpr TokenCount kTokens[] = {{2048, 1}, {4096, 1}, {4096, 2}};
constexpr TokenCount kCalibratingTokens = kTokens[1];
constexpr std::int64_t kWorld = 8, kMicroBatches = 8;

class Models {
 public:
  explicit Models(const RunArguments& arguments) : typed_(arguments.words) {
    runs_.calibrating = resolved(kModels[0], kCalibratingTokens, "");
    for (const ModelShape& model : kModels) {
      for (const TokenCount& tokens : kTokens) {
        const std::string group =
            text("{}, {} tokens", model.name, tokens.sequence * tokens.micro_batch);
        add(model, tokens, group, "plain", "");
        add(model, tokens, group, "overlapped", text("{}true", kOverlap));
      }
    }
  }

  PredictRuns take() { return std::move(runs_); }

 private:
  config::Config resolved(const ModelShape& model,
                          const TokenCount& tokens,
                          const std::string& order) const {
    Line words{model.recipe};
    const std::string line =
        text("{}{}{} model.seq_length={} train.micro_batch_size={} train.global_batch_size={}{}",
             kAlone,
             kEven,
             model.words,
             tokens.sequence,
             tokens.micro_batch,
             kWorld * kMicroBatches * tokens.micro_batch,
             order);
    for (const std::string& word : words_in(line)) words.push_back(word);
    for (const std::string& word : typed_) words.push_back(word);
    return words::resolve_words(recipes_folder(), words, words::Audience::Run).config;
  }

  void add(const ModelShape& model,
           const TokenCount& tokens,
           const std::string& group,
           const char* name,
           const std::string& order) {
    runs_.cases.push_back({.name = text("{}, {}", group, name),
                           .group = group,
                           .config = resolved(model, tokens, order)});
  }

  const Line typed_;
  PredictRuns runs_;
};

}  // namespace

std::string_view word(PredictSet set) { return set == PredictSet::Layouts ? "layouts" : "models"; }

PredictRuns predict_runs(const RunArguments& arguments, PredictSet set) {
  switch (set) {
    case PredictSet::Layouts:
      return Layouts(arguments).take();
    case PredictSet::Models:
      return Models(arguments).take();
  }
  UNREACHABLE("set {}", static_cast<int>(set));
}

}  // namespace weft::cli
