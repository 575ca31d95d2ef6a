// Small configs and ranks as threads for the training tests.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/devices/devices_support.h"
#include "weft/config/config.h"
#include "weft/train/engine.h"
#include "weft/train/step.h"

namespace weft::train {

// Three layers (the middle one dense), eight experts, sixteen tokens a sequence, eight sequences a
// step.
config::Config small_config();

// The small config with latent attention, queries compressed too.
config::Config latent_config();

// Eight layers (two of them dense) of a narrower model: enough for a pipeline.
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
// "World4Ep2", with tensor parallelism and the pipeline where there are such.
std::string name_of(const LayoutCase& layout);

// As many micro-batches a rank as a fact needs: two, of which the second adds to the gradients of
// the first; three where forwards run beside backwards; in a pipeline, twice its stages. Not more
// than there are.
config::Config with_few_micro_batches(config::Config config);

// What the judge makes of a config, as in `weft train`. ConfigError where it is refused; the test
// fails where the judge changes what the test has set.
rules::JudgedConfig judged(const config::Config& config);

// Judges the config and runs `body` on every rank, as threads.
void on_ranks(const config::Config& config,
              const std::function<void(Engine&)>& body,
              const schedule::Detail& detail = {},
              devices::DeviceKind device = devices::DeviceKind::Cpu);

// The batch of a step: tokens of the mock dataset.
Batch batch_of(Engine& engine, std::int64_t step);

struct Outcome {
  std::vector<double> losses, gradient_norms;
  // By parameter name, global elements: assembled from all ranks.
  std::map<std::string, std::vector<float>> weights;
};

// Largest difference of two equally long lists.
double largest_difference(const std::vector<float>& a, const std::vector<float>& b);

void expect_same_bits(const Outcome& a, const Outcome& b);

// A layout's run against the one-rank run: losses and norms by step, weights by the largest of
// each.
void expect_equal_to_rounding(const Outcome& many, const Outcome& one);

// How a rank takes a step; none: as in `weft train`.
using TakeStep = std::function<StepTotals(Engine&, const StepInput&)>;

// Trains some steps from the config's seed: at most two under a sanitizer, which finds there what
// it would find in more.
Outcome train_some(const config::Config& config,
                   std::int64_t steps,
                   const schedule::Detail& detail = {},
                   devices::DeviceKind device = devices::DeviceKind::Cpu,
                   const TakeStep& take = {});

// Steps or cases of a test whose runs are held against each other: `few`, or `many`, where
// WEFT_MANY_STEPS is set, as in `make soak`. Memory is planned anew after the first step and after
// the second: of steps, 3 are the fewest that go beyond.
std::int64_t few_or_many(std::int64_t few, std::int64_t many);

// The same, trained once for all tests that hold another run against it. By the values of all keys.
const Outcome& trained_once(const config::Config& config, std::int64_t steps);

// While no step is under way.
std::vector<float> floats_of(Engine& engine, const tensor::Tensor& tensor);
void fill(Engine& engine, const tensor::Tensor& tensor, float value);
void set(Engine& engine, const tensor::Tensor& tensor, std::int64_t element, float value);
std::vector<std::int32_t> integers_of(Engine& engine, const tensor::Tensor& tensor);

}  // namespace weft::train
