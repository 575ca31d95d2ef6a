// Shapes of a model from its config.json alone, compared with publications and with small models'
// weights.
#include <nlohmann/json.hpp>

#include "tests/checkpoint/golden_support.h"
#include "tests/checkpoint/published_configs.h"
#include "tests/checkpoint/small_configs.h"
#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/checkpoint/huggingface/huggingface_config.h"
#include "weft/checkpoint/huggingface/huggingface_shapes.h"
#include "weft/derive/parameters.h"

namespace weft::checkpoint {
namespace model_shapes_test {

using Json = nlohmann::json;

ModelShapes parse(const Json& json) { return parse_model_shapes(json.dump(), "c.json"); }

Json published(std::string_view name) {
  for (const PublishedConfig& config : kPublishedConfigs) {
    if (config.name == name) return Json::parse(config.json);
  }
  return nullptr;
}

bool any_says(const std::vector<std::string>& all, std::string_view part) {
  return std::ranges::any_of(all, [&](const std::string& one) {
    return one.find(part) != std::string::npos;
  });
}

// Router biases: published weights hold them, but they are no parameters.
std::int64_t router_biases(const config::ModelConfig& model) {
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < model.num_layers; ++i) {
    count += derive::layer_parameters(model, i).untrained;
  }
  return count;
}
std::int64_t mtp_router_biases(const config::ModelConfig& model) {
  return model.mtp_num_layers.value_or(0) * derive::mtp_layer_parameters(model).untrained;
}

TEST(ModelShapes, HaveTheParametersThatArePublished) {
  for (const PublishedConfig& config : kPublishedConfigs) {
    const ModelShapes shapes = parse_model_shapes(config.json, config.name);
    const derive::ParameterCount count = derive::parameters_of(shapes.model);
    EXPECT_EQ(count.total - count.mtp + router_biases(shapes.model), config.parameters)
        << config.name;
    EXPECT_EQ(count.mtp + mtp_router_biases(shapes.model), config.mtp) << config.name;
    EXPECT_FALSE(any_says(shapes.remarks, "not known here"))
        << config.name << ": " << fmt::format("{}", fmt::join(shapes.remarks, "; "));
  }
}

TEST(ModelShapes, HaveTheElementsOfTheWeights) {
  for (const SmallConfig& config : kSmallConfigs) {
    const ModelShapes shapes = parse_model_shapes(config.json, config.name);
    const std::int64_t biases = router_biases(shapes.model) + mtp_router_biases(shapes.model);
    EXPECT_EQ(derive::parameters_of(shapes.model).total + biases, config.elements) << config.name;
  }
}

TEST(ModelShapes, TakeTheUsualLengthOrThePositions) {
  EXPECT_EQ(parse(published("Qwen3-8B")).model.seq_length, 4096);
  Json json = published("Qwen3-8B");
  json["max_position_embeddings"] = 2048;
  EXPECT_EQ(parse(json).model.seq_length, 2048);
  EXPECT_EQ(parse(json).model.max_position_embeddings, 2048);
}

TEST(ModelShapes, TheFormatOfWeightsChangesNoShape) {
  const ModelShapes shapes = parse(published("DeepSeek-V3"));
  EXPECT_EQ(shapes.unread, std::vector<std::string>{"quantized weights (fp8)"});
  EXPECT_EQ(shapes.model.params_dtype, base::DType::BF16);
  EXPECT_TRUE(
      says(complaint([] { parse_huggingface_config(published("DeepSeek-V3").dump(), "c.json"); }),
           "quantization_config"))
      << "who reads the weights refuses them";
  Json plain = published("DeepSeek-V3");
  plain.erase("quantization_config");
  EXPECT_TRUE(parse(plain).unread.empty());
  plain["torch_dtype"] = "float16";
  EXPECT_TRUE(any_says(parse(plain).remarks, "float16"));
}

TEST(ModelShapes, SayWhatTheyLeaveOut) {
  Json json = published("Llama-3.1-8B");
  json["some_new_key"] = 7;
  const ModelShapes shapes = parse(json);
  EXPECT_TRUE(any_says(shapes.remarks, "llama3")) << "the stretch of positions";
  EXPECT_TRUE(any_says(shapes.remarks, "some_new_key"));
  EXPECT_EQ(shapes.unread, std::vector<std::string>{"weights of llama"});
}

TEST(ModelShapes, OfAnotherFamilyAreRefusedByName) {
  const std::string told = complaint([] { parse({{"model_type", "mamba9"}}); });
  for (const char* part : {"mamba9", "qwen3_moe", "llama", "gpt_oss", "c.json"}) {
    EXPECT_TRUE(says(told, part)) << told;
  }
  const std::string weights =
      complaint([] { parse_huggingface_config(published("gpt-oss-120b").dump(), "c.json"); });
  EXPECT_TRUE(says(weights, "weights of gpt_oss are not read yet")) << weights;
}

TEST(ModelShapes, WrongValuesNameTheirKeys) {
  const auto refusal = [](std::string_view name, const char* key, const Json& value) {
    Json json = published(name);
    json[key] = value;
    if (value == "gone") json.erase(key);
    return complaint([&] { parse(json); });
  };
  EXPECT_TRUE(says(refusal("Qwen3-8B", "hidden_size", "gone"), "hidden_size is missing"));
  EXPECT_TRUE(says(refusal("Qwen3-8B", "num_hidden_layers", -1), "num_hidden_layers"));
  EXPECT_TRUE(says(refusal("Qwen3-8B", "attention_bias", true), "attention_bias"));
  EXPECT_TRUE(
      says(refusal("gpt-oss-120b", "layer_types", {"full_attention", "chunked"}), "layer_types"));
  EXPECT_TRUE(says(refusal("GLM-4.5", "num_experts_per_tok", "gone"), "num_experts_per_tok"));
}

// Python writes such numbers, although JSON has none.
TEST(ModelShapes, NumbersThatAreNotFiniteHurtOnlyWhereTheyCount) {
  Json json = published("Qwen3-8B");
  std::string text = json.dump();
  text.insert(1, R"("time_step_limit":[0.0,Infinity],"x":NaN,"note":"Infinity \" NaN",)");
  EXPECT_EQ(parse_model_shapes(text, "c.json").model.num_layers, 36);
  text.insert(1, R"("rms_norm_eps":-Infinity,)");
  EXPECT_TRUE(says(complaint([&] { parse_model_shapes(text, "c.json"); }),
                   "rms_norm_eps is \"-Infinity\""));
}

}  // namespace model_shapes_test
}  // namespace weft::checkpoint
