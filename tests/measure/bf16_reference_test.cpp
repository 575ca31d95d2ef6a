// Golden models in bf16, with the experts that they choose in fp32.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/train/train_support.h"
#include "weft/base/text.h"
#include "weft/checkpoint/huggingface/huggingface_tensors.h"
#include "weft/measure/bench/reference_check.h"
#include "weft/train/weights.h"
#include "weft/words/recipe.h"
#include "weft/words/resolution.h"

namespace weft::measure {

using namespace train;
namespace bf16_reference_test {

namespace fs = std::filesystem;

using Choice = std::vector<std::vector<std::int32_t>>;  // by layer (B, S, k)

config::Config in_bf16() {
  config::Config config;
  config.model.bf16 = true;
  return config;
}

// Reference run with a bf16 comparison beside it.
struct Reference {
  explicit Reference(const fs::path& at)
      : folder(at), model(at), run(at, model.huggingface_config()) {}

  std::vector<Check> checks(const config::Config& wanted) const {
    return check_bf16_reference(judged(reference_config(wanted, model, run)),
                                model,
                                run,
                                checkpoint::Bf16Reference(folder, model, run),
                                {});
  }

  fs::path folder;
  checkpoint::HuggingFaceModel model;
  checkpoint::ReferenceRun run;
};

// Router choices for the first batch in fp32.
Choice choice_of(const Reference& reference) {
  Choice choice(static_cast<std::size_t>(reference.model.config().num_layers));
  on_ranks(reference_config({}, reference.model, reference.run), [&](Engine& engine) {
    load_weights(engine, reference.model);
    const std::int64_t sequence = reference.run.seq_length();
    const auto read = [&](std::int64_t index, std::span<std::int32_t> out) {
      std::copy_n(reference.run.input_ids().begin() + index * sequence, sequence, out.begin());
      out.back() = -1;
    };
    forward_step(engine, read_batch(engine.share(), sequence, read));
    for (int m = 0; m < engine.share().micro_batches; ++m) {
      const model::MicroBatchState& state = engine.program().state(m);
      for (std::size_t layer = 0; layer < choice.size(); ++layer) {
        const tensor::Tensor& chosen = state.layers[layer].route.experts_Tk;
        if (!chosen.defined()) continue;
        const std::vector<std::int32_t> experts = integers_of(engine, chosen);
        choice[layer].insert(choice[layer].end(), experts.begin(), experts.end());
      }
    }
  });
  return choice;
}

template <typename T>
std::string_view bytes_of(std::span<const T> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size_bytes()};
}

// Writes a comparison in which every tensor has one error.
void write_comparison(const Reference& reference, const Choice& choice, double error) {
  using checkpoint::FileDtype;
  std::vector<checkpoint::NewTensor> tensors;
  for (std::size_t layer = 0; layer < choice.size(); ++layer) {
    if (choice[layer].empty()) continue;
    tensors.push_back({base::text("experts.{}", layer),
                       FileDtype::I32,
                       {reference.run.batch_size(),
                        reference.run.seq_length(),
                        reference.model.config().moe_router_topk}});
  }
  const std::size_t choices = tensors.size();
  for (const char* name : {"logits", "loss"}) {
    tensors.push_back({base::text("error.{}", name), FileDtype::F64, {1}});
  }
  for (const checkpoint::HuggingFaceTensor& tensor :
       checkpoint::huggingface_tensors(reference.model.config(),
                                       reference.model.family(),
                                       checkpoint::ExpertNames::Stacked)) {
    if (tensor.trained) tensors.push_back({"error.grad." + tensor.name, FileDtype::F64, {1}});
  }
  Choice of_layers = choice;
  std::erase_if(of_layers, [](const std::vector<std::int32_t>& layer) { return layer.empty(); });
  std::size_t next = 0;
  checkpoint::write_safetensors(
      reference.folder / "bf16.safetensors",
      tensors,
      [&](const checkpoint::NewTensor&, const base::Append& append) {
        const std::size_t i = next++;
        append(i < choices ? bytes_of<std::int32_t>(of_layers[i]) : bytes_of<double>({&error, 1}));
      });
}

// Copy of a golden folder without its bf16 comparison.
class Copy {
 public:
  explicit Copy(const std::string& name)
      : folder_(fs::path(::testing::TempDir()) / base::text("weft_bf16_{}_{}", name, ::getpid())) {
    fs::remove_all(folder_);
    fs::copy(std::string(WEFT_SOURCE_DIR) + "/tests/golden/" + name, folder_);
    fs::remove(folder_ / "bf16.safetensors");
  }
  ~Copy() { fs::remove_all(folder_); }

  const fs::path& folder() const { return folder_; }

 private:
  fs::path folder_;
};

double error_of(const std::vector<Check>& checks, std::string_view name) {
  const auto found = std::ranges::find(checks, name, &Check::name);
  EXPECT_NE(found, checks.end()) << name;
  return found == checks.end() ? NAN : found->error;
}

struct LayoutOfModel {
  std::string model, words;
  double error = 0.03;  // more layers round more often
};
void PrintTo(const LayoutOfModel& at, std::ostream* out) { *out << at.model << " " << at.words; }

class Bf16Layouts : public ::testing::TestWithParam<LayoutOfModel> {};

// A choice at the wrong token, layer or rank would deviate far.
TEST_P(Bf16Layouts, TakeTheReferencesChoice) {
  const Copy copy(GetParam().model);
  const Reference reference(copy.folder());
  write_comparison(reference, choice_of(reference), GetParam().error);
  const std::vector<Check> checks =
      reference.checks(words::with_words(in_bf16(), base::split(GetParam().words, ' ')));
  EXPECT_GT(checks.size(), 20u);
  for (const Check& check : checks) {
    EXPECT_EQ(check.tolerance, 1.5 * GetParam().error);
    EXPECT_TRUE(check.pass()) << check.name << ": " << check.error;
    EXPECT_FALSE(check.name.starts_with("loss of training")) << check.name;
  }
}

#define EP "model.expert_model_parallel_size="
#define PP "model.pipeline_model_parallel_size="

INSTANTIATE_TEST_SUITE_P(
    Golden,
    Bf16Layouts,
    ::testing::Values(LayoutOfModel{"qwen3_moe_tiny", "world=1"},
                      LayoutOfModel{"qwen3_moe_tiny", "world=4 " EP "2 train.micro_batch_size=2"},
                      LayoutOfModel{"mixtral_tiny", "world=2 " EP "2"},
                      LayoutOfModel{"olmoe_tiny", "world=1 train.micro_batch_size=8"},
                      LayoutOfModel{"deepseek_v3_tiny", "world=2 " EP "2"},
                      LayoutOfModel{"qwen3_moe_deep", "world=4 " PP "2 " EP "2", 0.1}));

TEST(Bf16Reference, AnotherChoiceIsFarAway) {
  const Copy copy("qwen3_moe_tiny");
  const Reference reference(copy.folder());
  Choice choice = choice_of(reference);
  write_comparison(reference, choice, 0.03);
  const double right = error_of(reference.checks(in_bf16()), "logits");
  std::ranges::rotate(choice[1], choice[1].begin() + 2);  // each token gets its neighbour's
  write_comparison(reference, choice, 0.03);
  EXPECT_GT(error_of(reference.checks(in_bf16()), "logits"), 5 * right);
}

TEST(Bf16Reference, AnErrorThatHappensToBeNoneLeavesRoomForOneRounding) {
  const Copy copy("mixtral_tiny");
  const Reference reference(copy.folder());
  write_comparison(reference, choice_of(reference), 0);
  const std::vector<Check> checks = reference.checks(in_bf16());
  for (const Check& check : checks) {
    // the loss is the mean of this number of terms
    const double terms = check.name == "loss" ? 8 * 23 : 1;
    EXPECT_DOUBLE_EQ(check.tolerance, 1.5 * 0x1p-9 / std::sqrt(terms)) << check.name;
  }
  EXPECT_FALSE(std::ranges::all_of(checks, &Check::pass)) << "bf16 is not that exact";
}

// Compares with files beside the golden models that Transformers computed on a GPU.
class Bf16Golden : public ::testing::TestWithParam<const char*> {
 protected:
  const Reference reference_{fs::path(WEFT_SOURCE_DIR) / "tests/golden" / GetParam()};
};

// With fused operations, where plain ones round in between.
TEST_P(Bf16Golden, IsAsNearToTheReferenceAsTransformers) {
  config::Config config = in_bf16();
  config.model.apply_rope_fusion = reference_.model.config().qk_layernorm == config::QkNorm::Head;
  config.model.moe_permute_fusion = true;
  for (const Check& check : reference_.checks(config)) {
    EXPECT_LE(check.error, check.tolerance) << check.name;
  }
}

// One of qwen3_moe_deep's 93 tensors, the sixteen numbers of a key norm, deviates 1.55 times as far
// as Transformers. All others, and all of the other models, are as near.
TEST_P(Bf16Golden, PlainOperationsAreAsNearButForOneTensor) {
  constexpr double kAllowed = 1.5, kFarthest = 1.6;
  const bool deep = std::string(GetParam()) == "qwen3_moe_deep";
  for (const Check& check : reference_.checks(in_bf16())) {
    const bool far = deep && check.name == "grad.model.layers.2.self_attn.k_norm.weight";
    EXPECT_LE(check.error, (far ? kFarthest / kAllowed : 1) * check.tolerance) << check.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Models,
                         Bf16Golden,
                         ::testing::Values("qwen3_moe_tiny",
                                           "qwen3_moe_deep",
                                           "mixtral_tiny",
                                           "olmoe_tiny",
                                           "deepseek_v3_tiny"));

}  // namespace bf16_reference_test
}  // namespace weft::measure
