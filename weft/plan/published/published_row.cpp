#include "weft/plan/published/published_row.h"

#include <algorithm>
#include <cctype>
#include <optional>

#include "weft/base/text.h"
#include "weft/config/codec.h"
#include "weft/derive/layer_kind.h"
#include "weft/derive/pipeline.h"

namespace weft::plan {
namespace {

using base::text;
using config::Config;
using config::ModelConfig;

constexpr std::int64_t kMostGpus = 1 << 20;

// "DGX-GB300" -> "gb300"
std::string gpu_of(std::string_view system) {
  const std::size_t dash = system.rfind('-');
  return lower_case(dash == std::string_view::npos ? system : system.substr(dash + 1));
}

// "['attn', 'moe_router']" -> attn, moe_router
std::vector<std::string> words_of(const std::string& list) {
  std::vector<std::string> words;
  std::string word;
  for (const char c : list + ",") {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_') {
      word.push_back(c);
    } else if (!word.empty()) {
      words.push_back(std::move(word));
      word.clear();
    }
  }
  return words;
}

template <typename Enum>
std::vector<Enum> enums_of(const std::string& list) {
  std::vector<Enum> values;
  for (const std::string& word : words_of(list)) {
    if (const auto value = config::WordCodec<Enum>::parse(word)) values.push_back(*value);
  }
  return values;
}

// Equal numbers of layers per stage in order; the last stage has the rest and the loss.
std::string even_layout(const ModelConfig& model, std::int64_t stages) {
  const std::int64_t mtp = derive::mtp_layers(model);
  const std::int64_t each = (model.num_layers + stages - 1) / stages;
  std::string layout = "E";
  std::int64_t left = model.num_layers;
  for (std::int64_t s = 0; s < stages; ++s) {
    const std::int64_t here = std::min(each, left);
    layout += std::string(static_cast<std::size_t>(here), 't');
    left -= here;
    if (s + 1 < stages) layout += "|";
  }
  return layout + std::string(static_cast<std::size_t>(mtp), 'm') + "L";
}

// Column names in tables of single runs.
constexpr std::pair<std::string_view, std::string_view> kOtherColumns[] = {
    {"model", "card"},
    {"seq_len", "seq"},
    {"dispatcher_backend", "recipe_flex_backend"},
    {"cuda_graph_impl", "recipe_cuda_graph"},
    {"a2a_overlap", "recipe_a2a_overlap"},
    {"delay_wgrad", "recipe_delay_wgrad"}};

// Reads one row of the table as a run.
class RowReader {
 public:
  RowReader(const CsvTable& table, const CsvRow& row) : table_(table), row_(row) {}

  PublishedRun read(const ModelNamed& model_named) const {
    // Before the run: g++ 12 destroys members twice if an initialiser in braces throws.
    const double tflops = published();
    PublishedRun run{.line = row_.line,
                     .release = cell("release"),
                     .model = cell("model"),
                     .system = cell("system"),
                     .precision = cell("precision"),
                     .note = cell("note"),
                     .gpu = gpu_of(cell("system")),
                     .config = {},
                     .tflops = tflops,
                     .doubt = cell("doubt"),
                     .gflop_per_token = counted()};
    if (run.model.empty()) throw UnusableRow{"no model"};
    run.config = model_named(run.model);
    set_batch(run.config);
    set_ranks(run.config);
    set_number(run.config.model);
    set_experts(run.config.model);
    set_graphs(run.config);
    set_recomputation(run.config.model);
    set_data_parallel(run.config);
    set_pipeline(run.config.model);
    if (run.config.train.global_batch_size %
            (run.config.train.micro_batch_size * data_parallel(run.config)) !=
        0) {
      throw UnusableRow{"gbs is no multiple of mbs times the data-parallel ranks"};
    }
    return run;
  }

 private:
  // Cell of a column under either name; sizes also from "TP2/PP8/VP4/EP64".
  std::string cell(std::string_view column) const {
    const std::string own = table_.cell(row_, column);
    if (!own.empty()) return own;
    for (const auto& [name, other] : kOtherColumns) {
      if (name == column) return table_.cell(row_, other);
    }
    for (const std::string& part : base::split(table_.cell(row_, "parallelism"), '/')) {
      const std::size_t digits = part.find_first_of("0123456789");
      if (digits != std::string::npos && lower_case(part.substr(0, digits)) == column) {
        return part.substr(digits);
      }
    }
    return "";
  }

  std::optional<double> maybe(std::string_view column) const {
    return base::parse_number(cell(column));
  }

  std::int64_t whole(std::string_view column, std::optional<std::int64_t> usual) const {
    const std::string written = cell(column);
    if (written.empty() && usual) return *usual;
    const auto value = base::parse_number(written);
    if (!value || *value < 1 || *value > static_cast<double>(kMostGpus) ||
        *value != static_cast<double>(static_cast<std::int64_t>(*value))) {
      throw UnusableRow{text("{} is '{}'", column, base::shown(written))};
    }
    return static_cast<std::int64_t>(*value);
  }

  double published() const {
    const auto tflops = maybe("tflops_per_gpu");
    if (tflops && *tflops > 0) return *tflops;
    const auto tokens = maybe("tokens_per_s_gpu"), gflop = maybe("gflop_per_token");
    if (tokens && gflop && *tokens > 0 && *gflop > 0) return *tokens * *gflop * 1e-3;
    throw UnusableRow{"no tflops_per_gpu"};
  }

  // FLOPs per token as stated by the table, or from its two rates.
  std::optional<double> counted() const {
    const auto gflop = maybe("gflop_per_token");
    if (gflop && *gflop > 0) return gflop;
    const auto tflops = maybe("tflops_per_gpu"), tokens = maybe("tokens_per_s_gpu");
    if (tflops && tokens && *tflops > 0 && *tokens > 0) return *tflops * 1e3 / *tokens;
    return std::nullopt;
  }

  void set_batch(Config& config) const {
    config.model.seq_length = whole("seq_len", config.model.seq_length);
    config.train.global_batch_size = whole("gbs", std::nullopt);
    config.train.micro_batch_size = whole("mbs", 1);
  }

  void set_ranks(Config& config) const {
    ModelConfig& model = config.model;
    config.runtime.world_size = whole("n_gpus", std::nullopt);
    model.tensor_model_parallel_size = whole("tp", 1);
    model.pipeline_model_parallel_size = whole("pp", 1);
    model.context_parallel_size = whole("cp", 1);
    model.expert_model_parallel_size = model.experts() > 0 ? whole("ep", 1) : 1;
    if (model.experts() > 0) model.expert_tensor_parallel_size = whole("etp", 1);
    model.sequence_parallel = model.tensor_model_parallel_size > 1;
    const std::int64_t ranks = model.tensor_model_parallel_size *
                               model.pipeline_model_parallel_size * model.context_parallel_size;
    const std::int64_t expert_ranks = model.expert_model_parallel_size * model.expert_shards();
    const std::int64_t world = *config.runtime.world_size;
    if (world % ranks != 0) throw UnusableRow{"n_gpus is no multiple of tp * pp * cp"};
    const std::int64_t of_stage = world / model.pipeline_model_parallel_size;
    // A table row has more expert-parallel ranks than its stage: take the whole stage.
    if (expert_ranks > of_stage && expert_ranks % of_stage == 0) {
      model.expert_model_parallel_size = of_stage / model.expert_shards();
    } else if (of_stage % expert_ranks != 0) {
      throw UnusableRow{"n_gpus is no multiple of ep * etp * pp"};
    }
    if (model.experts() % model.expert_model_parallel_size != 0) {
      throw UnusableRow{"ep does not divide the experts"};
    }
    // Dense recipes exchange tensor-parallel data under the products.
    config.comm_overlap.tp_comm_overlap =
        model.experts() == 0 && model.tensor_model_parallel_size > 1;
  }

  static std::int64_t data_parallel(const Config& config) {
    const ModelConfig& model = config.model;
    return *config.runtime.world_size /
           (model.tensor_model_parallel_size * model.pipeline_model_parallel_size *
            model.context_parallel_size);
  }

  void set_number(ModelConfig& model) const {
    const std::string written = letters_of(cell("precision"));
    model.bf16 = true;
    model.params_dtype = base::DType::BF16;
    model.fp8.reset();
    model.fp4.reset();
    if (written.starts_with("bf16")) return;
    if (written.starts_with("nvfp4")) {
      model.fp4 = config::Fp4Format::E2m1;
    } else if (written.starts_with("mxfp8") || written.starts_with("fp8mx")) {
      model.fp8 = config::Fp8Format::E4m3;
      model.fp8_recipe = config::Fp8Recipe::Mxfp8;
    } else if (written.starts_with("fp8")) {
      model.fp8 = config::Fp8Format::Hybrid;
      model.fp8_recipe = written.starts_with("fp8sc") ? config::Fp8Recipe::Blockwise
                                                      : config::Fp8Recipe::Tensorwise;
    } else {
      throw UnusableRow{text("precision is '{}'", base::shown(cell("precision")))};
    }
  }

  bool drops_tokens() const { return letters_of(cell("routing")).find("drop") == 5; }

  void set_experts(ModelConfig& model) const {
    const std::string remarks = letters_of(cell("note") + cell("model"));
    if (remarks.find("womtp") != std::string::npos) model.mtp_num_layers.reset();
    if (model.experts() == 0) return;
    model.moe_router_force_load_balancing = true;
    const std::string backend = lower_case(cell("dispatcher_backend"));
    const auto known = config::WordCodec<config::FlexBackend>::parse(backend);
    // Default for an unknown recipe, after recipes of that time: a plain all-to-all for fixed
    // numbers of rows, otherwise the flex dispatcher.
    const bool unknown = cell("match").empty() && backend.empty() && !drops_tokens();
    if (known || unknown) {
      model.moe_token_dispatcher_type = config::Dispatcher::Flex;
      model.moe_flex_dispatcher_backend = known.value_or(config::FlexBackend::HybridEp);
    } else {
      model.moe_token_dispatcher_type = config::Dispatcher::AllToAll;
    }
    if (drops_tokens()) {
      model.moe_expert_capacity_factor = 1.0;
      model.moe_pad_expert_input_to_capacity = true;
    }
  }

  void set_graphs(Config& config) const {
    ModelConfig& model = config.model;
    const auto impl =
        config::WordCodec<config::CudaGraphImpl>::parse(lower_case(cell("cuda_graph_impl")));
    model.cuda_graph_impl = impl.value_or(config::CudaGraphImpl::None);
    model.cuda_graph_modules = enums_of<config::CudaGraphScope>(cell("cuda_graph_scope"));
    model.cuda_graph_scope.clear();
    // Whole layers with varying numbers of rows cannot be captured: a table without scopes means
    // the usual ones.
    const bool by_layer = model.cuda_graph_impl == config::CudaGraphImpl::TransformerEngine;
    if (by_layer && model.experts() > 0 && !drops_tokens() && model.cuda_graph_modules.empty()) {
      model.cuda_graph_modules = {config::CudaGraphScope::MoeRouter,
                                  config::CudaGraphScope::MoePreprocess};
    }
    const bool whole_step = model.cuda_graph_impl == config::CudaGraphImpl::FullIteration;
    // Capturing a whole iteration with varying numbers of rows requires these.
    const bool fused = whole_step && model.experts() > 0 && !drops_tokens();
    model.use_transformer_engine_op_fuser = fused;
    model.moe_paged_stash = fused;
    if (fused) model.moe_expert_rank_capacity_factor = 1.5;
    const bool merged = lower_case(cell("a2a_overlap")) == "true" && model.experts() > 0;
    config.comm_overlap.overlap_moe_expert_parallel_comm = merged;
    const std::string delayed = lower_case(cell("delay_wgrad"));
    config.comm_overlap.delay_wgrad_compute =
        merged && (delayed.empty() ? whole_step : delayed == "true");
  }

  void set_recomputation(ModelConfig& model) const {
    model.recompute_granularity.reset();
    model.recompute_modules.reset();
    const auto modules = enums_of<config::RecomputeModule>(cell("recompute_modules"));
    if (!cell("recompute_num_layers").empty()) {
      model.recompute_granularity = config::RecomputeGranularity::Full;
      model.recompute_method = config::RecomputeMethod::Block;
      model.recompute_num_layers = whole("recompute_num_layers", std::nullopt);
    } else if (!modules.empty()) {
      model.recompute_granularity = config::RecomputeGranularity::Selective;
      model.recompute_modules = modules;
    }
  }

  void set_data_parallel(Config& config) const {
    config.ddp.use_distributed_optimizer = true;
    config.optimizer.use_distributed_optimizer = true;
    config.ddp.grad_reduce_in_fp32 = false;
    const auto shards = maybe("fsdp");
    config.ddp.use_megatron_fsdp = shards && *shards > 1;
    if (config.ddp.use_megatron_fsdp) {
      config.ddp.data_parallel_sharding_strategy = config::ShardingStrategy::OptimGradsParams;
    }
  }

  void set_pipeline(ModelConfig& model) const {
    const std::int64_t vpp = whole("vp", 1);
    model.virtual_pipeline_model_parallel_size.reset();
    if (vpp > 1) model.virtual_pipeline_model_parallel_size = vpp;
    const std::int64_t stages = model.pipeline_model_parallel_size * vpp;
    if (stages > 4096) throw UnusableRow{"pp * vp is out of range"};
    model.pipeline_model_parallel_layout = cell("pp_layout");
    if (derive::mtp_layers(model) == 0) std::erase(model.pipeline_model_parallel_layout, 'm');
    if (!model.pipeline_model_parallel_layout.empty()) {
      const auto named = derive::stages_in_layout(model);
      if (named == stages && derive::stages_of(model).complaints.empty()) return;
    }
    model.pipeline_model_parallel_layout = stages > 1 ? even_layout(model, stages) : "";
    const derive::Stages dealt = derive::stages_of(model);
    if (!dealt.complaints.empty()) throw UnusableRow{dealt.complaints.front()};
  }

  const CsvTable& table_;
  const CsvRow& row_;
};

}  // namespace

std::string lower_case(std::string_view word) {
  std::string result;
  for (const char c : word) {
    result.push_back(static_cast<char>(std::tolower(static_cast<unsigned char>(c))));
  }
  return result;
}

std::string letters_of(std::string_view name) {
  std::string result = lower_case(name);
  std::erase_if(result, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; });
  return result;
}

PublishedRun read_row(const CsvTable& table, const CsvRow& row, const ModelNamed& model_named) {
  return RowReader(table, row).read(model_named);
}

}  // namespace weft::plan
