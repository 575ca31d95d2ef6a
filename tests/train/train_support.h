// Small configs, and ranks as threads, for the training tests.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/devices/devices_support.h"
#include "tests/soak.h"
#include "weft/config/config.h"
#include "weft/train/engine.h"
#include "weft/train/step.h"

namespace weft::train {

// Three layers (the middle one dense), eight experts, sixteen tokens per sequence, eight sequences
// per step.
config::Config small_config();

// Small config with latent attention and query compression.
config::Config latent_config();

// Eight layers (two dense) of a narrower model: enough for a pipeline.
config::Config deep_config();

struct LayoutCase {
  int world = 1, ep = 1;
  int tp = 1;  // experts are whole
  int pp = 1, vpp = 1;
  std::string stages = "";  // model.pipeline_model_parallel_layout
  config::PipelineSchedule schedule = config::PipelineSchedule::Auto;
  int etp = 1;
};
config::Config with_layout(config::Config config, const LayoutCase& layout);
// "World4Ep2", with tensor parallelism and pipeline if used.
std::string name_of(const LayoutCase& layout);

// Reduces micro-batches per rank to the needed number. Two: the second adds to the first one's
// gradients. Three: forwards run beside backwards. Twice the stages: a pipeline.
config::Config with_few_micro_batches(config::Config config);

// Judged config, as in `weft train`. Throws ConfigError if refused; the test fails if judging
// changes a value that the test set.
rules::JudgedConfig judged(const config::Config& config);

// Judges the config and runs `body` on every rank, as threads.
void on_ranks(const config::Config& config,
              const std::function<void(Engine&)>& body,
              const schedule::Detail& detail = {},
              devices::DeviceKind device = devices::DeviceKind::Cpu);

// Batch of a step: tokens of the mock dataset.
Batch batch_of(Engine& engine, std::int64_t step);

struct Outcome {
  std::vector<double> losses, gradient_norms;
  // By parameter name: global elements, assembled from all ranks.
  std::map<std::string, std::vector<float>> weights;
};

// Largest difference of two lists of equal length.
double largest_difference(const std::vector<float>& a, const std::vector<float>& b);

void expect_same_bits(const Outcome& a, const Outcome& b);

// Compares a layout's run with the one-rank run: losses and norms by step, weights relative to the
// largest of each.
void expect_equal_to_rounding(const Outcome& many, const Outcome& one);

// Runs a step of a rank; empty: as in `weft train`.
using TakeStep = std::function<StepTotals(Engine&, const StepInput&)>;

// Trains some steps from the config's seed. A sanitizer run takes at most two, which suffice there.
// Memory is planned after the first and the second step, so 3 steps are the fewest beyond that.
Outcome train_some(const config::Config& config,
                   std::int64_t steps,
                   const schedule::Detail& detail = {},
                   devices::DeviceKind device = devices::DeviceKind::Cpu,
                   const TakeStep& take = {});

// Outcome trained once for all tests that compare with it, keyed by all config values.
const Outcome& trained_once(const config::Config& config, std::int64_t steps);

// For use between steps.
std::vector<float> floats_of(Engine& engine, const tensor::Tensor& tensor);
void fill(Engine& engine, const tensor::Tensor& tensor, float value);
void set(Engine& engine, const tensor::Tensor& tensor, std::int64_t element, float value);
std::vector<std::int32_t> integers_of(Engine& engine, const tensor::Tensor& tensor);

}  // namespace weft::train
