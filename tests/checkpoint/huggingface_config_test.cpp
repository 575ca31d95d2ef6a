#include "weft/checkpoint/huggingface/huggingface_config.h"

#include <nlohmann/json.hpp>

#include "tests/checkpoint/golden_support.h"
#include "weft/checkpoint/huggingface/huggingface.h"

namespace weft::checkpoint {
namespace huggingface_config_test {

using Json = nlohmann::json;
using config::QkNorm;

Json qwen() {
  return {{"model_type", "qwen3_moe"},
          {"num_hidden_layers", 4},
          {"hidden_size", 64},
          {"num_attention_heads", 4},
          {"num_key_value_heads", 2},
          {"num_experts", 8},
          {"vocab_size", 512}};
}

HuggingFaceConfig parse(const Json& json) {
  return parse_huggingface_config(json.dump(), "c.json");
}

std::string rejection(Json json, const char* key, const Json& value) {
  json[key] = value;
  return complaint([&] { parse(json); });
}

TEST(HuggingFaceConfig, Qwen3MoeTinyHasItsNumbers) {
  const HuggingFaceConfig config = read_huggingface_config(golden("qwen3_moe_tiny"));
  const config::ModelConfig& model = config.model;
  EXPECT_EQ(config.family, Family::Qwen3Moe);
  EXPECT_EQ(config.model.max_position_embeddings, 128);
  EXPECT_EQ(model.num_layers, 2);
  EXPECT_EQ(model.hidden_size, 64);
  EXPECT_EQ(model.ffn_hidden_size, 96);
  EXPECT_EQ(model.moe_ffn_hidden_size, 48);
  EXPECT_EQ(model.num_attention_heads, 4);
  EXPECT_EQ(model.query_groups(), 2);
  EXPECT_EQ(model.head_dim(), 16);
  EXPECT_EQ(model.qk_layernorm, QkNorm::Head);
  EXPECT_EQ(model.layernorm_epsilon, 1e-6);
  EXPECT_EQ(model.rotary_base, 10000);
  EXPECT_EQ(model.vocab_size, 512);
  EXPECT_FALSE(model.share_embeddings_and_output_weights);
  EXPECT_EQ(model.params_dtype, base::DType::F32);
  EXPECT_EQ(model.num_moe_experts, 8);
  EXPECT_EQ(model.moe_router_topk, 2);
  EXPECT_TRUE(model.moe_router_pre_softmax);
  EXPECT_TRUE(model.moe_router_norm_topk_prob);
  EXPECT_EQ(model.moe_aux_loss_coeff, std::vector<double>{0});
  EXPECT_EQ(model.moe_layer_freq, (std::vector<std::int64_t>{1}));
}

TEST(HuggingFaceConfig, MlpOnlyLayersAreDense) {
  const config::ModelConfig model = read_huggingface_config(golden("qwen3_moe_deep")).model;
  EXPECT_EQ(model.moe_layer_freq, (std::vector<std::int64_t>{0, 1, 1, 1, 1, 0, 1, 1}));
  EXPECT_EQ(model.num_layers, 8);
  EXPECT_EQ(model.head_dim(), 8);
  EXPECT_EQ(model.moe_ffn_hidden_size, 24);
}

TEST(HuggingFaceConfig, MixtralTinyHasItsNumbers) {
  const HuggingFaceConfig config = read_huggingface_config(golden("mixtral_tiny"));
  const config::ModelConfig& model = config.model;
  EXPECT_EQ(config.family, Family::Mixtral);
  EXPECT_EQ(model.qk_layernorm, QkNorm::None);
  EXPECT_EQ(model.moe_ffn_hidden_size, 80);
  EXPECT_EQ(model.num_moe_experts, 4);
  EXPECT_EQ(model.layernorm_epsilon, 1e-5);
  EXPECT_TRUE(model.moe_router_pre_softmax);
  EXPECT_TRUE(model.moe_router_norm_topk_prob);
}

TEST(HuggingFaceConfig, OlmoeNormsTheWholeProjection) {
  const HuggingFaceConfig config = parse({{"model_type", "olmoe"}, {"clip_qkv", nullptr}});
  EXPECT_EQ(config.family, Family::Olmoe);
  EXPECT_EQ(config.model.qk_layernorm, QkNorm::Projection);
  EXPECT_EQ(config.model.hidden_size, 2048);
  EXPECT_EQ(config.model.query_groups(), 16);
  EXPECT_EQ(config.model.head_dim(), 128);
  EXPECT_EQ(config.model.moe_ffn_hidden_size, 2048);
  EXPECT_EQ(config.model.num_moe_experts, 64);
  EXPECT_EQ(config.model.layernorm_epsilon, 1e-5);
  EXPECT_FALSE(config.model.moe_router_norm_topk_prob);
}

TEST(HuggingFaceConfig, AbsentKeysTakeTheFamilysDefaults) {
  EXPECT_EQ(parse({{"model_type", "mixtral"}}).model.rotary_base, 1e6);
  EXPECT_EQ(parse({{"model_type", "mixtral"}}).model.query_groups(), 8);
  EXPECT_EQ(parse({{"model_type", "qwen3_moe"}}).model.rotary_base, 1e4);
  EXPECT_EQ(parse({{"model_type", "qwen3_moe"}}).model.head_dim(), 64);
  EXPECT_FALSE(parse({{"model_type", "qwen3_moe"}}).model.moe_router_norm_topk_prob);
  Json json = qwen();
  json["num_key_value_heads"] = nullptr;
  EXPECT_EQ(parse(json).model.query_groups(), 4);
}

TEST(HuggingFaceConfig, SparseStepCountsFromOne) {
  Json json = qwen();
  json["decoder_sparse_step"] = 2;
  EXPECT_EQ(parse(json).model.moe_layer_freq, (std::vector<std::int64_t>{0, 1, 0, 1}));
  json["mlp_only_layers"] = {3};
  EXPECT_EQ(parse(json).model.moe_layer_freq, (std::vector<std::int64_t>{0, 1, 0, 0}));
  json["decoder_sparse_step"] = 5;
  EXPECT_EQ(parse(json).model.num_moe_experts, std::nullopt);
}

TEST(HuggingFaceConfig, OldAndNewSpellingsAgree) {
  Json old_json = qwen(), new_json = qwen();
  old_json.update({{"rope_theta", 5e5}, {"rope_scaling", nullptr}, {"torch_dtype", "bfloat16"}});
  new_json.erase("num_experts");
  new_json.update({{"rope_parameters", {{"rope_theta", 5e5}, {"rope_type", "default"}}},
                   {"num_local_experts", 8},
                   {"dtype", "bfloat16"}});
  for (const Json& json : {old_json, new_json}) {
    EXPECT_EQ(parse(json).model.rotary_base, 5e5);
    EXPECT_EQ(parse(json).model.num_moe_experts, 8);
    EXPECT_EQ(parse(json).model.params_dtype, base::DType::BF16);
  }
  EXPECT_TRUE(says(rejection(old_json, "rope_parameters", {{"rope_theta", 1e4}}), "rope_theta"));
  EXPECT_TRUE(says(rejection(old_json, "num_local_experts", 4), "num_local_experts"));
  EXPECT_TRUE(says(rejection(old_json, "dtype", "float32"), "differ"));
}

TEST(HuggingFaceConfig, WhatIsNotImplementedIsRejected) {
  const std::vector<std::pair<const char*, Json>> cases{
      {"attention_bias", true},
      {"attention_dropout", 0.1},
      {"clip_qkv", 8.0},
      {"hidden_act", "gelu"},
      {"layer_types", {"full_attention", "sliding_attention"}},
      {"num_nextn_predict_layers", 1},
      {"output_router_logits", true},
      {"partial_rotary_factor", 0.5},
      {"quantization_config", {{"quant_method", "fp8"}}},
      {"router_jitter_noise", 0.01},
      {"use_sliding_window", true},
      {"rope_scaling", {{"rope_type", "yarn"}, {"factor", 4.0}}},
      {"rope_scaling", {{"type", "linear"}}},
      {"rope_parameters", {{"rope_type", "default"}, {"partial_rotary_factor", 0.5}}},
      {"rope_parameters", {{"rope_type", "default"}, {"attention_factor", 2}}},
      {"torch_dtype", "float16"},
      {"shared_expert_intermediate_size", 64},
      {"auto_map", {{"AutoModel", "custom.py"}}}};
  for (const auto& [key, value] : cases) {
    const std::string said = rejection(qwen(), key, value);
    EXPECT_TRUE(says(said, key));
    EXPECT_TRUE(says(said, "c.json"));
  }
}

TEST(HuggingFaceConfig, WindowsMatterWhereTheyAreActive) {
  EXPECT_EQ(rejection(qwen(), "sliding_window", 4096), "");
  const Json mixtral = {{"model_type", "mixtral"}};
  EXPECT_EQ(rejection(mixtral, "sliding_window", nullptr), "");
  EXPECT_TRUE(says(rejection(mixtral, "sliding_window", 4096), "\"sliding_window\" is 4096"));
}

TEST(HuggingFaceConfig, RouterLogitsWithoutAuxiliaryLossAreHarmless) {
  Json json = qwen();
  json["router_aux_loss_coef"] = 0.0;
  EXPECT_EQ(rejection(json, "output_router_logits", true), "");
}

TEST(HuggingFaceConfig, HarmlessAndEmptyKeysAreAccepted) {
  Json json = qwen();
  json.update({{"eos_token_id", {1, 2}},
               {"use_cache", true},
               {"transformers_version", "4.51.0"},
               {"max_window_layers", 48},
               {"some_new_flag", false},
               {"some_new_number", 0},
               {"some_new_list", Json::array()},
               {"some_new_object", Json::object()},
               {"some_new_null", nullptr}});
  EXPECT_NO_THROW(parse(json));
  EXPECT_TRUE(says(rejection(json, "some_new_flag", true), "some_new_flag\" is true"));
}

TEST(HuggingFaceConfig, EveryComplaintIsReportedAtOnce) {
  Json json = qwen();
  json.update({{"attention_bias", true}, {"attention_dropout", 0.5}});
  try {
    parse(json);
    FAIL();
  } catch (const base::ConfigError& error) {
    EXPECT_EQ(error.complaints().size(), 2u);
  }
}

TEST(HuggingFaceConfig, WrongTypesAndSizesNameTheKey) {
  const std::vector<std::pair<const char*, Json>> cases{{"hidden_size", "64"},
                                                        {"hidden_size", 64.0},
                                                        {"hidden_size", -64},
                                                        {"hidden_size", 0},
                                                        {"hidden_size", 1ll << 40},
                                                        {"hidden_size", nullptr},
                                                        {"num_hidden_layers", true},
                                                        {"num_hidden_layers", 1 << 20},
                                                        {"num_experts", -1},
                                                        {"num_experts", 1 << 20},
                                                        {"vocab_size", 1ll << 40},
                                                        {"vocab_size", 18446744073709551615ull},
                                                        {"rms_norm_eps", "small"},
                                                        {"rms_norm_eps", -1},
                                                        {"rope_theta", {1}},
                                                        {"rope_theta", 0},
                                                        {"head_dim", 0},
                                                        {"tie_word_embeddings", 1},
                                                        {"norm_topk_prob", "yes"},
                                                        {"mlp_only_layers", 1},
                                                        {"mlp_only_layers", {"a"}},
                                                        {"mlp_only_layers", {4}},
                                                        {"decoder_sparse_step", 0},
                                                        {"rope_parameters", 7},
                                                        {"dtype", 16},
                                                        {"num_key_value_heads", 0},
                                                        {"router_aux_loss_coef", "x"}};
  for (const auto& [key, value] : cases) EXPECT_TRUE(says(rejection(qwen(), key, value), key));
  EXPECT_TRUE(says(rejection(qwen(), "model_type", "llama"),
                   "qwen3_moe, mixtral, olmoe, deepseek_v3, deepseek_v2 or kimi_k2"));
  EXPECT_TRUE(says(rejection(qwen(), "model_type", 3), "model_type"));
  EXPECT_TRUE(says(complaint([] { parse(Json::object()); }), "model_type is missing"));
  EXPECT_TRUE(says(rejection(qwen(), "num_attention_heads", 5), "head_dim"));
  Json many = qwen();
  many["num_hidden_layers"] = 4096;
  EXPECT_TRUE(says(rejection(many, "num_experts", 65536), "experts in all"));
}

TEST(HuggingFaceConfig, WritingReadsBackTheSame) {
  for (const char* name :
       {"qwen3_moe_tiny", "qwen3_moe_deep", "mixtral_tiny", "deepseek_v3_tiny"}) {
    const HuggingFaceConfig config = read_huggingface_config(golden(name));
    const std::string written = huggingface_config_text(config);
    const HuggingFaceConfig again = parse_huggingface_config(written, name);
    EXPECT_EQ(again.family, config.family);
    EXPECT_EQ(again.model.max_position_embeddings, config.model.max_position_embeddings);
    EXPECT_EQ(again.model.moe_layer_freq, config.model.moe_layer_freq);
    EXPECT_EQ(huggingface_config_text(again), written);
  }
  const HuggingFaceConfig olmoe = parse({{"model_type", "olmoe"}, {"norm_topk_prob", true}});
  EXPECT_TRUE(parse_huggingface_config(huggingface_config_text(olmoe), "o")
                  .model.moe_router_norm_topk_prob);
}

TEST(HuggingFaceConfig, TheCoefficientOfTheBalancingLossIsKept) {
  const auto written = [](const HuggingFaceConfig& config) {
    return Json::parse(huggingface_config_text(config));
  };
  const HuggingFaceConfig tiny = read_huggingface_config(golden("olmoe_tiny"));
  EXPECT_EQ(tiny.model.aux_loss_coeff(config::LoadBalancing::AuxLoss), 0.01);
  EXPECT_EQ(written(tiny)["router_aux_loss_coef"], 0.01);
  EXPECT_EQ(written(parse({{"model_type", "mixtral"}}))["router_aux_loss_coef"], 0.001);
  HuggingFaceConfig deepseek = read_huggingface_config(golden("deepseek_v3_tiny"));
  EXPECT_FALSE(written(deepseek).contains("aux_loss_alpha"));
  for (const auto kind : {config::LoadBalancing::AuxLoss, config::LoadBalancing::SeqAuxLoss}) {
    deepseek.model.moe_router_load_balancing_type = {kind};
    deepseek.model.moe_aux_loss_coeff = {0.25};
    const HuggingFaceConfig again =
        parse_huggingface_config(huggingface_config_text(deepseek), "deepseek");
    EXPECT_EQ(again.model.aux_loss_coeff(kind), 0.25);
  }
}

TEST(HuggingFaceConfig, SoftmaxOverTheSelectedIsWrittenAsRenormalised) {
  HuggingFaceConfig config = read_huggingface_config(golden("qwen3_moe_tiny"));
  config.model.moe_router_pre_softmax = false;
  config.model.moe_router_norm_topk_prob = false;
  EXPECT_TRUE(parse_huggingface_config(huggingface_config_text(config), "q")
                  .model.moe_router_norm_topk_prob);
}

TEST(HuggingFaceConfig, WhatAFamilyCannotSayIsNotWritten) {
  HuggingFaceConfig config = read_huggingface_config(golden("mixtral_tiny"));
  config.model.moe_layer_freq = {0, 1};
  config.model.moe_router_norm_topk_prob = false;
  config.model.qk_layernorm = QkNorm::Head;
  try {
    huggingface_config_text(config);
    FAIL();
  } catch (const base::ConfigError& error) {
    EXPECT_EQ(error.complaints().size(), 3u);
  }
  HuggingFaceConfig olmoe = parse({{"model_type", "olmoe"}});
  olmoe.model.kv_channels = 64;
  EXPECT_TRUE(says(complaint([&] { huggingface_config_text(olmoe); }), "kv_channels"));
}

}  // namespace huggingface_config_test
}  // namespace weft::checkpoint
