#include "weft/checkpoint/reference_run.h"

#include <nlohmann/json.hpp>

#include "tests/checkpoint/golden_support.h"
#include "weft/checkpoint/huggingface/huggingface.h"

namespace weft::checkpoint {
namespace reference_run_test {

ReferenceRun open(const std::string& name) {
  return ReferenceRun(golden(name), read_huggingface_config(golden(name)));
}

TEST(ReferenceRun, GoldenRunsHaveTheirShapes) {
  const ReferenceRun run = open("mixtral_tiny");
  EXPECT_EQ(run.batch_size(), 8);
  EXPECT_EQ(run.seq_length(), 24);
  EXPECT_EQ(run.train_steps(), 12);
  EXPECT_EQ(run.input_ids().size(), 8u * 24);
  EXPECT_EQ(run.train_batch(11).size(), 8u * 24);
  EXPECT_EQ(open("qwen3_moe_tiny").seq_length(), 32);
  EXPECT_EQ(open("qwen3_moe_deep").batch_size(), 16);
}

TEST(ReferenceRun, OptimizerIsRead) {
  const ReferenceRun run = open("qwen3_moe_tiny");
  EXPECT_EQ(run.optimizer().lr, 1e-3);
  EXPECT_EQ(run.optimizer().beta1, 0.9);
  EXPECT_EQ(run.optimizer().beta2, 0.95);
  EXPECT_EQ(run.optimizer().eps, 1e-8);
  EXPECT_EQ(run.optimizer().weight_decay, 0.1);
  EXPECT_FALSE(run.optimizer().grad_clip.has_value());
  EXPECT_EQ(run.optimizer().weight_decay_scope, config::DecayScope::All);
}

// Mean cross entropy of the next token, from the logits.
TEST(ReferenceRun, LossFollowsFromLogitsAndTokens) {
  for (const char* name : {"qwen3_moe_tiny", "qwen3_moe_deep", "mixtral_tiny"}) {
    const ReferenceRun run = open(name);
    const auto vocab =
        static_cast<std::size_t>(read_huggingface_config(golden(name)).model.vocab_size);
    std::vector<float> logits(vocab);
    double loss = 0;
    for (std::int64_t b = 0; b < run.batch_size(); ++b) {
      for (std::int64_t s = 0; s + 1 < run.seq_length(); ++s) {
        const std::int64_t position = b * run.seq_length() + s;
        run.read_logits(position * static_cast<std::int64_t>(vocab), logits);
        double sum = 0;
        for (const float x : logits) sum += std::exp(static_cast<double>(x));
        const auto next = run.input_ids()[static_cast<std::size_t>(position) + 1];
        loss += std::log(sum) - static_cast<double>(logits[static_cast<std::size_t>(next)]);
      }
    }
    loss /= static_cast<double>(run.batch_size() * (run.seq_length() - 1));
    EXPECT_NEAR(loss, run.loss(), 1e-5) << name;
    EXPECT_NEAR(run.train_losses().front(), std::log(static_cast<double>(vocab)), 0.5) << name;
  }
}

TEST(ReferenceRun, EveryGradientReads) {
  const HuggingFaceModel model(golden("qwen3_moe_deep"));
  const ReferenceRun run = open("qwen3_moe_deep");
  for (const Parameter& parameter : model.parameters()) {
    std::vector<float> gradient(static_cast<std::size_t>(parameter.elements()));
    run.read_gradient(parameter.name, 0, gradient);
    EXPECT_TRUE(std::any_of(gradient.begin(), gradient.end(), [](float x) { return x != 0; }))
        << parameter.name;
  }
}

TEST(ReferenceRun, TokensOutsideTheVocabularyAreRejected) {
  HuggingFaceConfig config = read_huggingface_config(golden("mixtral_tiny"));
  config.model.vocab_size = 100;
  EXPECT_NE(complaint([&] { ReferenceRun(golden("mixtral_tiny"), config); }), "");
}

class DamagedRun : public CheckpointFolder {};

TEST_F(DamagedRun, LossesThatAreNotFiniteAreRejected) {
  const HuggingFaceConfig config = read_huggingface_config(golden("mixtral_tiny"));
  std::filesystem::copy_file(golden("mixtral_tiny") / "about.json", dir_ / "about.json");
  const SafetensorsFile whole(golden("mixtral_tiny") / "expected.safetensors");
  for (const char* tensor : {"loss", "train.losses"}) {
    std::string bytes = base::read_text(golden("mixtral_tiny") / "expected.safetensors");
    const StoredTensor& stored = whole.tensors().find(tensor)->second;
    bytes.replace(stored.begin, stored.end - stored.begin, stored.end - stored.begin, '\xff');
    base::write_whole(dir_ / "expected.safetensors", bytes);
    const std::string what = complaint([&] { ReferenceRun(dir_, config); });
    EXPECT_TRUE(says(what, std::string("tensor '") + tensor + "'"));
    EXPECT_TRUE(says(what, "nan"));
  }
}

TEST(ReferenceRun, OptimizersThatAreNotImplementedAreRejected) {
  using Json = nlohmann::json;
  const Json good = {{"name", "AdamW"},
                     {"lr", 0.001},
                     {"betas", {0.9, 0.95}},
                     {"eps", 1e-8},
                     {"weight_decay", 0.1},
                     {"applied_to", "every parameter"},
                     {"grad_clip", 1.0}};
  const auto rejection = [&](const char* key, const Json& value) {
    Json changed = good;
    changed[key] = value;
    return complaint([&] {
      parse_reference_optimizer(Json{{"optimizer", changed}}.dump(), "about.json");
    });
  };
  EXPECT_EQ(rejection("lr", 0.1), "");
  EXPECT_TRUE(says(rejection("amsgrad", true), "\"amsgrad\" is not known"));
  EXPECT_TRUE(says(rejection("name", "SGD"), "\"AdamW\" expected"));
  EXPECT_TRUE(says(rejection("lr", "fast"), "optimizer.lr"));
  EXPECT_TRUE(says(rejection("lr", -1), "optimizer.lr"));
  EXPECT_TRUE(says(rejection("betas", {0.9}), "two numbers"));
  EXPECT_TRUE(says(rejection("betas", {0.9, 2}), "betas[1]"));
  EXPECT_TRUE(says(rejection("applied_to", "norms"), "every parameter"));
  EXPECT_TRUE(says(rejection("grad_clip", "none"), "grad_clip"));
  EXPECT_TRUE(says(complaint([] { parse_reference_optimizer("{}", "about.json"); }),
                   "optimizer is missing"));
}

}  // namespace reference_run_test
}  // namespace weft::checkpoint
