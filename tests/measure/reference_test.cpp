// Golden models, computed by Transformers, under every layout.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "tests/soak.h"
#include "tests/train/train_support.h"
#include "weft/base/files/file.h"
#include "weft/base/text.h"
#include "weft/measure/bench/reference_check.h"
#include "weft/words/recipe.h"
#include "weft/words/resolution.h"

namespace weft::measure {

using namespace train;
namespace reference_test {

struct ReferenceCase {
  std::string model;
  LayoutCase layout;
  int micro_batch = 1;
};

std::vector<Check> checks_of(const ReferenceCase& reference_case) {
  const std::string folder = std::string(WEFT_SOURCE_DIR) + "/tests/golden/" + reference_case.model;
  const checkpoint::HuggingFaceModel model(folder);
  const checkpoint::ReferenceRun reference(folder, model.huggingface_config());
  config::Config wanted = with_layout(config::Config(), reference_case.layout);
  wanted.train.micro_batch_size = reference_case.micro_batch;
  return check_reference(judged(reference_config(wanted, model, reference)), model, reference, {});
}

class Reference : public ::testing::TestWithParam<ReferenceCase> {};

TEST_P(Reference, LogitsLossGradientsAndTrainingAgree) {
  const std::vector<Check> checks = checks_of(GetParam());
  EXPECT_GT(checks.size(), 20u);
  for (const Check& check : checks) {
    EXPECT_TRUE(check.pass()) << check.name << ": " << check.error << " > " << check.tolerance;
  }
}

std::vector<ReferenceCase> all_cases() {
  std::vector<ReferenceCase> all;
  std::size_t first = 0;
  for (const char* model :
       {"qwen3_moe_tiny", "qwen3_moe_deep", "mixtral_tiny", "olmoe_tiny", "deepseek_v3_tiny"}) {
    const std::vector<ReferenceCase> cases{{model, {.world = 1, .ep = 1}, 1},
                                           {model, {.world = 1, .ep = 1}, 8},
                                           {model, {.world = 2, .ep = 2}, 2},
                                           {model, {.world = 4, .ep = 4}, 1},
                                           {model, {.world = 4, .ep = 2}, 2},
                                           {model, {.world = 2, .ep = 1}, 1}};
    for (const ReferenceCase& each : third_or_all(cases, first++ % 3)) all.push_back(each);
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Golden,
                         Reference,
                         ::testing::ValuesIn(all_cases()),
                         [](const auto& param_info) {
                           return fmt::format("{}World{}Ep{}Micro{}",
                                              param_info.param.model,
                                              param_info.param.layout.world,
                                              param_info.param.layout.ep,
                                              param_info.param.micro_batch);
                         });

void expect_agreement(const std::string& name, const char* words, std::size_t least_checks) {
  const std::string folder = std::string(WEFT_SOURCE_DIR) + "/tests/golden/" + name;
  const checkpoint::HuggingFaceModel model(folder);
  const checkpoint::ReferenceRun reference(folder, model.huggingface_config());
  config::Config config = words::with_words({}, base::split(words, ' '));
  config = reference_config(config, model, reference);
  const std::vector<Check> checks = check_reference(judged(config), model, reference, {});
  EXPECT_GT(checks.size(), least_checks);
  for (const Check& check : checks) {
    EXPECT_TRUE(check.pass()) << check.name << ": " << check.error << " > " << check.tolerance;
  }
}

class PipelineReference : public ::testing::TestWithParam<const char*> {};

TEST_P(PipelineReference, LogitsLossGradientsAndTrainingAgree) {
  expect_agreement("qwen3_moe_deep", GetParam(), 80);
}

#define PP "model.pipeline_model_parallel_size="
#define VPP "model.virtual_pipeline_model_parallel_size="
#define EP "model.expert_model_parallel_size="
#define STAGES "model.pipeline_model_parallel_layout="
#define OVERLAP "comm_overlap.overlap_moe_expert_parallel_comm=true"
#define DELAY "comm_overlap.delay_wgrad_compute=true"
#define SHARDS                                                                   \
  "ddp.use_distributed_optimizer=true optimizer.use_distributed_optimizer=true " \
  "comm_overlap.bucket_size=3000"

INSTANTIATE_TEST_SUITE_P(Golden,
                         PipelineReference,
                         ::testing::ValuesIn(third_or_all<const char*>(
                             {"world=2 " PP "2",
                              "world=4 " PP "2 " EP "2 train.micro_batch_size=2",
                              "world=4 " PP "4",
                              "world=8 " PP "4 " EP "2",
                              "world=4 " PP "2 " VPP "2 " EP "2",
                              "world=4 " PP "4 " VPP "2",
                              "world=8 " PP "2 " VPP "2 " EP "2",
                              "world=8 " PP "4 " VPP "2 " EP "2 " OVERLAP " " DELAY,
                              "world=8 " PP "2 " VPP "1 " EP "4 " OVERLAP,
                              "world=4 " PP "4 " STAGES "Ettt|tt||tttL",
                              "world=4 " PP "2 " VPP "2 " EP "2 " STAGES "E|ttt|ttttt|L " OVERLAP,
                              "world=4 " SHARDS,
                              "world=4 " PP "2 " SHARDS},
                             1)));

class DeepseekReference : public ::testing::TestWithParam<const char*> {};

TEST_P(DeepseekReference, LogitsLossGradientsAndTrainingAgree) {
  expect_agreement("deepseek_v3_tiny", GetParam(), 50);
}

INSTANTIATE_TEST_SUITE_P(Golden,
                         DeepseekReference,
                         ::testing::Values("world=2 " EP "2 " OVERLAP " " DELAY,
                                           "world=2 " PP "2 " STAGES "Et|ttL",
                                           "world=2 " EP "2 model.moe_shared_expert_overlap=true"));

// Axes that cut a micro-batch or an expert, each on two models.
using ModelAndWords = std::pair<const char*, const char*>;
class AxesReference : public ::testing::TestWithParam<ModelAndWords> {};

TEST_P(AxesReference, LogitsLossGradientsAndTrainingAgree) {
  expect_agreement(GetParam().first, GetParam().second, 20);
}

#define TP "model.sequence_parallel=true model.tensor_model_parallel_size="
#define CP "model.context_parallel_size="
#define ETP "model.expert_tensor_parallel_size="

INSTANTIATE_TEST_SUITE_P(
    Golden,
    AxesReference,
    ::testing::ValuesIn(third_or_all<ModelAndWords>(
        {ModelAndWords{"qwen3_moe_tiny", "world=8 " TP "2 " CP "2 " PP "2"},
         ModelAndWords{"deepseek_v3_tiny", "world=8 " TP "2 " CP "2 " PP "2 " STAGES "Et|ttL"},
         ModelAndWords{"mixtral_tiny", "world=8 " EP "4"},
         ModelAndWords{"deepseek_v3_tiny", "world=8 " EP "4"},
         ModelAndWords{"qwen3_moe_tiny", "world=4 " TP "4 comm_overlap.tp_comm_overlap=true"},
         ModelAndWords{"olmoe_tiny", "world=4 " TP "4"},  // norms over all heads
         ModelAndWords{"mixtral_tiny", "world=4 " CP "4"},
         ModelAndWords{"olmoe_tiny", "world=4 " CP "4 model.cp_comm_type=[a2a]"},
         ModelAndWords{"qwen3_moe_tiny", "world=4 " EP "2 " ETP "2"},
         ModelAndWords{"deepseek_v3_tiny", "world=4 " EP "2 " ETP "2"},
         ModelAndWords{"mixtral_tiny", "world=4 " SHARDS},
         ModelAndWords{"olmoe_tiny", "world=4 ddp.average_in_collective=true " SHARDS}},
        1)));

TEST(ReferenceTolerance, AWrongEpsilonOrForgottenDecayFails) {
  const std::string folder = std::string(WEFT_SOURCE_DIR) + "/tests/golden/qwen3_moe_tiny";
  const checkpoint::HuggingFaceModel model(folder);
  const checkpoint::ReferenceRun reference(folder, model.huggingface_config());
  const auto fails = [&](const std::function<void(config::Config&)>& spoil) {
    config::Config config = reference_config(config::Config(), model, reference);
    spoil(config);
    return !std::ranges::all_of(check_reference(judged(config), model, reference, {}),
                                &Check::pass);
  };
  EXPECT_TRUE(fails([](config::Config& config) { config.optimizer.weight_decay = 0; }));
  EXPECT_TRUE(fails([](config::Config& config) { config.optimizer.adam_beta2 = 0.999; }));
  EXPECT_TRUE(fails([](config::Config& config) { config.model.layernorm_epsilon = 1e-5; }));
  EXPECT_TRUE(fails([](config::Config& config) {
    config.optimizer.weight_decay_scope = config::DecayScope::Matrices;
  }));
  EXPECT_FALSE(fails([](config::Config&) {}));
}

// Copy of a golden folder with `value` as the first element of a reference tensor.
class SpoiledReference {
 public:
  SpoiledReference(const std::string& tensor, float value)
      : folder_(std::filesystem::path(::testing::TempDir()) / "weft_spoiled") {
    std::filesystem::remove_all(folder_);
    std::filesystem::copy(std::string(WEFT_SOURCE_DIR) + "/tests/golden/mixtral_tiny", folder_);
    std::string bytes = base::read_text(folder_ / "expected.safetensors");
    std::uint64_t header = 0;
    std::memcpy(&header, bytes.data(), 8);
    const auto json = nlohmann::json::parse(bytes.substr(8, header));
    const auto at = 8 + header + json.at(tensor).at("data_offsets").at(0).get<std::uint64_t>();
    std::memcpy(bytes.data() + at, &value, 4);
    base::write_whole(folder_ / "expected.safetensors", bytes);
  }
  ~SpoiledReference() { std::filesystem::remove_all(folder_); }

  std::vector<std::string> failed() const {
    const checkpoint::HuggingFaceModel model(folder_);
    const checkpoint::ReferenceRun reference(folder_, model.huggingface_config());
    std::vector<std::string> names;
    for (const Check& check :
         check_reference(judged(reference_config(config::Config(), model, reference)),
                         model,
                         reference,
                         {})) {
      if (!check.pass()) names.push_back(check.name);
    }
    return names;
  }

 private:
  std::filesystem::path folder_;
};

TEST(ReferenceTolerance, OneWrongElementFailsItsOwnCheckAlone) {
  for (const char* tensor :
       {"logits", "grad.model.layers.1.self_attn.q_proj.weight", "grad.model.norm.weight"}) {
    for (const float value : {std::nanf(""), 1e3f}) {
      EXPECT_EQ(SpoiledReference(tensor, value).failed(), std::vector<std::string>{tensor})
          << value;
    }
  }
}

}  // namespace reference_test
}  // namespace weft::measure

#undef PP
#undef VPP
#undef EP
#undef STAGES
#undef OVERLAP
#undef DELAY
#undef SHARDS
#undef TP
#undef CP
#undef ETP
