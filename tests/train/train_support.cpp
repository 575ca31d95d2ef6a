#include "tests/train/train_support.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <mutex>

#include "tests/sanitized.h"
#include "weft/config/field.h"
#include "weft/data/dataset.h"
#include "weft/derive/derived.h"
#include "weft/rules/validate.h"
#include "weft/tensor/transfer.h"
#include "weft/train/launch.h"

namespace weft::train {

config::Config small_config() {
  config::Config config;
  config.model.num_layers = 3;
  config.model.moe_layer_freq = {1, 0, 1};
  config.model.hidden_size = 32;
  config.model.ffn_hidden_size = 48;
  config.model.num_attention_heads = 4;
  config.model.num_query_groups = 2;
  config.model.qk_layernorm = config::QkNorm::Head;
  config.model.seq_length = 16;
  config.model.vocab_size = 64;
  config.model.num_moe_experts = 8;
  config.model.moe_ffn_hidden_size = 24;
  config.model.moe_router_topk = 2;
  config.model.init_method_std = 0.1;
  config.train.micro_batch_size = 1;
  config.train.global_batch_size = 8;
  config.optimizer.lr = 1e-2;
  config.runtime.timeout_seconds = 20;
  return config;
}

config::Config latent_config() {
  config::Config config = small_config();
  config.model.qk_layernorm = config::QkNorm::None;
  config.model.num_query_groups = std::nullopt;
  config.model.multi_latent_attention = true;
  config.model.q_lora_rank = 12;
  config.model.kv_lora_rank = 10;
  config.model.qk_head_dim = 6;
  config.model.qk_pos_emb_head_dim = 4;
  config.model.v_head_dim = 5;
  return config;
}

config::Config deep_config() {
  config::Config config = small_config();
  config.model.num_layers = 8;
  config.model.moe_layer_freq = {1, 0, 1, 1, 1, 0, 1, 1};
  config.model.hidden_size = 16;
  config.model.ffn_hidden_size = 24;
  config.model.seq_length = 8;
  config.model.num_moe_experts = 4;
  config.model.moe_ffn_hidden_size = 12;
  return config;
}

config::Config with_layout(config::Config config, const LayoutCase& layout) {
  config.runtime.world_size = layout.world;
  config.model.expert_model_parallel_size = layout.ep;
  if (layout.tp > 1) {
    config.model.tensor_model_parallel_size = layout.tp;
    config.model.sequence_parallel = true;
    config.model.expert_tensor_parallel_size = 1;
  }
  if (layout.etp > 1) config.model.expert_tensor_parallel_size = layout.etp;
  config.model.pipeline_model_parallel_size = layout.pp;
  if (layout.pp > 1) config.model.virtual_pipeline_model_parallel_size = layout.vpp;
  config.model.pipeline_model_parallel_layout = layout.stages;
  config.runtime.pipeline_schedule = layout.schedule;
  return config;
}

config::Config with_few_micro_batches(config::Config config) {
  const std::int64_t pp = config.model.pipeline_model_parallel_size;
  const bool beside = config.comm_overlap.overlap_moe_expert_parallel_comm;
  const std::int64_t few = pp > 1 ? 2 * pp : beside ? 3 : 2;
  const std::int64_t together =
      grid::Grid(derive::layout_of(config)).dp() * config.train.micro_batch_size;
  config.train.global_batch_size = std::min(config.train.global_batch_size, few * together);
  return config;
}

std::string name_of(const LayoutCase& layout) {
  std::string name = fmt::format("World{}Ep{}", layout.world, layout.ep);
  if (layout.tp > 1) name += fmt::format("Tp{}", layout.tp);
  if (layout.etp > 1) name += fmt::format("Etp{}", layout.etp);
  if (layout.pp > 1) name += fmt::format("Pp{}Vpp{}", layout.pp, layout.vpp);
  if (layout.schedule != config::PipelineSchedule::Auto) name += config::word(layout.schedule);
  if (layout.stages.empty()) return name;
  name += "Stages";
  for (const char symbol : layout.stages) name += symbol == '|' ? '_' : symbol;
  return name;
}

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, std::abs(double(a[i]) - double(b[i])));
  }
  return largest;
}

void expect_same_bits(const Outcome& a, const Outcome& b) {
  EXPECT_EQ(a.losses, b.losses);
  EXPECT_EQ(a.gradient_norms, b.gradient_norms);
  EXPECT_EQ(a.weights, b.weights);
}

void expect_equal_to_rounding(const Outcome& many, const Outcome& one) {
  ASSERT_EQ(many.losses.size(), one.losses.size());
  for (std::size_t i = 0; i < one.losses.size(); ++i) {
    EXPECT_NEAR(many.losses[i], one.losses[i], 5e-6 * one.losses[i]) << "step " << i;
    EXPECT_NEAR(many.gradient_norms[i], one.gradient_norms[i], 2e-5 * one.gradient_norms[i])
        << "step " << i;
  }
  for (const auto& [name, values] : one.weights) {
    float largest = 0;
    for (const float value : values) largest = std::max(largest, std::abs(value));
    EXPECT_LT(largest_difference(many.weights.at(name), values), 2e-4 * largest) << name;
  }
}

rules::JudgedConfig judged(const config::Config& config) {
  rules::Verdict verdict = rules::validate(config);
  for (const config::Finding& set : verdict.automatic) {
    EXPECT_TRUE(config::is_default(*config::find_field(set.key), config))
        << "the test sets " << set.key << ", which does not run: " << config::to_text(set);
  }
  return std::move(*verdict.judged);
}

void on_ranks(const config::Config& config,
              const std::function<void(Engine&)>& body,
              const schedule::Detail& detail,
              devices::DeviceKind device) {
  const rules::JudgedConfig run = judged(config);
  const auto threads = static_cast<int>(run->runtime.threads_per_rank);
  SharedPlans plans(run, detail);
  launch(run, {}, [&](comm::Endpoint& endpoint) {
    Engine engine(run, endpoint, devices::make_device(device, threads), {.plans = &plans});
    comm::poison_on_error(endpoint, [&] { body(engine); });
  });
}

Batch batch_of(Engine& engine, std::int64_t step) {
  const config::Config& config = engine.config();
  const auto dataset = data::open_dataset(config.dataset,
                                          config.model.seq_length,
                                          config.model.vocab_size,
                                          static_cast<std::uint64_t>(config.rng.seed));
  return read_batch(engine.share(),
                    config.model.seq_length,
                    [&](std::int64_t sequence, std::span<std::int32_t> tokens) {
                      const std::int64_t sample = step * config.train.global_batch_size + sequence;
                      dataset->read(data::Split::Train, static_cast<std::uint64_t>(sample), tokens);
                    });
}

std::vector<float> floats_of(Engine& engine, const tensor::Tensor& tensor) {
  return tensor::read_floats(engine.lanes()[schedule::Lane::Compute], tensor);
}

void fill(Engine& engine, const tensor::Tensor& tensor, float value) {
  const std::vector<float> values(static_cast<std::size_t>(tensor.elements()), value);
  tensor::write_floats(engine.lanes()[schedule::Lane::Compute], tensor, values);
}

void set(Engine& engine, const tensor::Tensor& tensor, std::int64_t element, float value) {
  fill(engine, tensor.range(element, {1}), value);
}

std::vector<std::int32_t> integers_of(Engine& engine, const tensor::Tensor& tensor) {
  return tensor::read<std::int32_t>(engine.lanes()[schedule::Lane::Compute], tensor);
}

Outcome train_some(const config::Config& config,
                   std::int64_t steps,
                   const schedule::Detail& detail,
                   devices::DeviceKind device,
                   const TakeStep& take) {
  Outcome outcome;
  std::mutex mutex;
  const std::int64_t enough = kSanitized ? std::min<std::int64_t>(steps, 2) : steps;
  on_ranks(
      config,
      [&](Engine& engine) {
        std::vector<double> losses, norms;
        for (std::int64_t step = 0; step < enough; ++step) {
          const Batch batch = batch_of(engine, step);
          const StepInput input{.batch = batch, .step = step, .learning_rate = config.optimizer.lr};
          const StepTotals totals =
              take ? take(engine, input) : train_step(engine, input, exec::Tracing::Off);
          losses.push_back(totals.loss);
          norms.push_back(totals.gradient_norm);
        }
        engine.program().gather_weights();
        const std::lock_guard lock(mutex);
        if (engine.rank() == 0) {
          outcome.losses = losses;
          outcome.gradient_norms = norms;
        }
        for (const model::Parameter& parameter : engine.parameters().all()) {
          std::vector<float>& whole = outcome.weights[parameter.spec.name];
          whole.resize(static_cast<std::size_t>(parameter.spec.global_shape.elements()));
          const std::vector<float> part = floats_of(engine, parameter.weight);
          for (const tensor::Run& run : tensor::runs_of(parameter.spec.slice)) {
            std::copy_n(part.begin() + run.local, run.count, whole.begin() + run.global);
          }
        }
      },
      detail,
      device);
  return outcome;
}

const Outcome& trained_once(const config::Config& config, std::int64_t steps) {
  static std::map<std::string, Outcome> all;
  std::string key = std::to_string(steps);
  for (const config::Field& field : config::fields()) {
    key += ' ' + config::value_text(field, config);
  }
  const auto found = all.find(key);
  if (found != all.end()) return found->second;
  return all.emplace(std::move(key), train_some(config, steps)).first->second;
}

}  // namespace weft::train
