// DeepSeek's families: compares their published config.json files with the recipes.
#include <nlohmann/json.hpp>

#include "tests/checkpoint/golden_support.h"
#include "weft/checkpoint/huggingface/huggingface.h"
#include "weft/config/field.h"
#include "weft/words/recipe.h"

namespace weft::checkpoint {
namespace huggingface_deepseek_test {

using Json = nlohmann::json;

// Common part of the families' published files.
Json common(const char* model_type) {
  return {{"model_type", model_type},
          {"architectures", {"DeepseekForCausalLM"}},
          {"auto_map", {{"AutoConfig", "configuration_deepseek.DeepseekV3Config"}}},
          {"attention_bias", false},
          {"attention_dropout", 0.0},
          {"aux_loss_alpha", 0.001},
          {"ep_size", 1},
          {"hidden_act", "silu"},
          {"initializer_range", 0.02},
          {"kv_lora_rank", 512},
          {"moe_layer_freq", 1},
          {"pretraining_tp", 1},
          {"qk_nope_head_dim", 128},
          {"qk_rope_head_dim", 64},
          {"rms_norm_eps", 1e-6},
          {"seq_aux", true},
          {"tie_word_embeddings", false},
          {"torch_dtype", "bfloat16"},
          {"v_head_dim", 128}};
}

Json yarn(double factor, double beta_fast, double mscale) {
  return {{"type", "yarn"},
          {"factor", factor},
          {"beta_fast", beta_fast},
          {"beta_slow", 1},
          {"mscale", mscale},
          {"mscale_all_dim", mscale},
          {"original_max_position_embeddings", 4096}};
}

Json deepseek_v3() {
  Json json = common("deepseek_v3");
  json.update({{"first_k_dense_replace", 3},    {"hidden_size", 7168},
               {"intermediate_size", 18432},    {"max_position_embeddings", 163840},
               {"moe_intermediate_size", 2048}, {"n_group", 8},
               {"n_routed_experts", 256},       {"n_shared_experts", 1},
               {"norm_topk_prob", true},        {"num_attention_heads", 128},
               {"num_experts_per_tok", 8},      {"num_hidden_layers", 61},
               {"num_key_value_heads", 128},    {"num_nextn_predict_layers", 1},
               {"q_lora_rank", 1536},           {"rope_scaling", yarn(40, 32, 1)},
               {"rope_theta", 10000},           {"routed_scaling_factor", 2.5},
               {"scoring_func", "sigmoid"},     {"topk_group", 4},
               {"topk_method", "noaux_tc"},     {"vocab_size", 129280}});
  return json;
}

Json kimi_k2() {
  Json json = deepseek_v3();
  json.update({{"model_type", "kimi_k2"},
               {"first_k_dense_replace", 1},
               {"max_position_embeddings", 131072},
               {"n_group", 1},
               {"n_routed_experts", 384},
               {"num_attention_heads", 64},
               {"num_key_value_heads", 64},
               {"num_nextn_predict_layers", 0},
               {"rope_scaling", yarn(32, 1, 1)},
               {"rope_theta", 50000.0},
               {"routed_scaling_factor", 2.827},
               {"topk_group", 1},
               {"vocab_size", 163840}});
  return json;
}

Json moonlight() {
  Json json = kimi_k2();
  json.update({{"model_type", "deepseek_v3"},
               {"hidden_size", 2048},
               {"intermediate_size", 11264},
               {"max_position_embeddings", 8192},
               {"moe_intermediate_size", 1408},
               {"n_routed_experts", 64},
               {"n_shared_experts", 2},
               {"num_attention_heads", 16},
               {"num_experts_per_tok", 6},
               {"num_hidden_layers", 27},
               {"num_key_value_heads", 16},
               {"q_lora_rank", nullptr},
               {"rms_norm_eps", 1e-5},
               {"rope_scaling", nullptr},
               {"routed_scaling_factor", 2.446}});
  return json;
}

Json deepseek_v2_lite() {
  Json json = common("deepseek_v2");
  json.update({{"first_k_dense_replace", 1},
               {"hidden_size", 2048},
               {"intermediate_size", 10944},
               {"max_position_embeddings", 163840},
               {"moe_intermediate_size", 1408},
               {"n_group", 1},
               {"n_routed_experts", 64},
               {"n_shared_experts", 2},
               {"norm_topk_prob", false},
               {"num_attention_heads", 16},
               {"num_experts_per_tok", 6},
               {"num_hidden_layers", 27},
               {"num_key_value_heads", 16},
               {"q_lora_rank", nullptr},
               {"rope_scaling", yarn(40, 32, 0.707)},
               {"rope_theta", 10000},
               {"routed_scaling_factor", 1.0},
               {"scoring_func", "softmax"},
               {"topk_group", 1},
               {"topk_method", "greedy"},
               {"vocab_size", 102400}});
  return json;
}

HuggingFaceConfig parse(const Json& json) {
  return parse_huggingface_config(json.dump(), "c.json");
}

std::string rejection(Json json, const char* key, const Json& value) {
  json[key] = value;
  return complaint([&] { parse(json); });
}

TEST(HuggingFaceDeepseek, PublishedConfigsAreTheRecipes) {
  const std::vector<std::pair<std::string, Json>> published{
      {"deepseek_v3", deepseek_v3()},
      {"kimi_k2", kimi_k2()},
      {"moonlight_16b", moonlight()},
      {"deepseek_v2_lite", deepseek_v2_lite()}};
  for (const auto& [name, json] : published) {
    const std::filesystem::path folder = std::filesystem::path(WEFT_SOURCE_DIR) / "recipes";
    const config::Config recipe = config_of(words::load_recipe(folder / (name + ".yaml")), {});
    config::Config read;
    read.model = parse(json).model;
    for (const char* key : {"num_layers",
                            "hidden_size",
                            "ffn_hidden_size",
                            "num_attention_heads",
                            "multi_latent_attention",
                            "q_lora_rank",
                            "kv_lora_rank",
                            "qk_head_dim",
                            "qk_pos_emb_head_dim",
                            "v_head_dim",
                            "rotary_base",
                            "rope_type",
                            "rotary_scaling_factor",
                            "original_max_position_embeddings",
                            "mscale",
                            "mscale_all_dim",
                            "beta_fast",
                            "beta_slow",
                            "layernorm_epsilon",
                            "latent_layernorm_epsilon",
                            "vocab_size",
                            "num_moe_experts",
                            "moe_ffn_hidden_size",
                            "moe_layer_freq",
                            "moe_router_topk",
                            "moe_router_score_function",
                            "moe_router_enable_expert_bias",
                            "moe_router_pre_softmax",
                            "moe_shared_expert_intermediate_size"}) {
      const config::Field& field = *config::find_field(std::string("model.") + key);
      EXPECT_EQ(field.get(read), field.get(recipe)) << name << " " << key;
    }
    EXPECT_EQ(read.model.moe_router_topk_scaling_factor.value_or(1),
              recipe.model.moe_router_topk_scaling_factor.value_or(1));
    EXPECT_EQ(read.model.moe_router_num_groups.value_or(1),
              recipe.model.moe_router_num_groups.value_or(1));
    EXPECT_EQ(read.model.moe_router_group_topk.value_or(1),
              recipe.model.moe_router_group_topk.value_or(1));
  }
}

TEST(HuggingFaceDeepseek, TinyHasItsNumbers) {
  const HuggingFaceConfig config = read_huggingface_config(golden("deepseek_v3_tiny"));
  const config::ModelConfig& model = config.model;
  EXPECT_EQ(config.family, Family::DeepseekV3);
  EXPECT_EQ(config.layers_ahead, 1);
  EXPECT_EQ(model.q_lora_rank, 24);
  EXPECT_EQ(model.kv_lora_rank, 16);
  EXPECT_EQ(model.latent_head_dim(), 24);
  EXPECT_EQ(model.v_head_dim, 16);
  EXPECT_EQ(model.moe_layer_freq, (std::vector<std::int64_t>{0, 1, 1}));
  EXPECT_EQ(model.moe_router_num_groups, 4);
  EXPECT_EQ(model.moe_router_group_topk, 2);
  EXPECT_EQ(model.moe_shared_expert_intermediate_size, 32);
  EXPECT_EQ(model.rope_type, config::RopeType::Rope);
}

TEST(HuggingFaceDeepseek, NewAndOldSpellingsOfYarnAgree) {
  Json renewed = deepseek_v3();
  renewed["rope_parameters"] = renewed["rope_scaling"];
  renewed["rope_parameters"].update({{"rope_type", "yarn"}, {"rope_theta", 10000.0}});
  renewed.erase("rope_scaling");
  renewed.erase("rope_theta");
  EXPECT_EQ(huggingface_config_text(parse(renewed)), huggingface_config_text(parse(deepseek_v3())));
  Json bare = deepseek_v3();
  bare["rope_scaling"] = {{"rope_type", "yarn"}, {"factor", 4}};
  const config::ModelConfig model = parse(bare).model;
  EXPECT_EQ(model.original_max_position_embeddings, 163840);
  EXPECT_EQ(model.mscale, 1);
  EXPECT_EQ(model.mscale_all_dim, 0);
}

TEST(HuggingFaceDeepseek, SpellingsOfYarnThatDisagreeAreRejected) {
  const auto both = [](const char* key, const Json& value) {
    Json json = deepseek_v3();
    json["rope_parameters"] = json["rope_scaling"];
    json["rope_parameters"][key] = value;
    return complaint([&] { parse(json); });
  };
  EXPECT_EQ(both("rope_type", "yarn"), "");
  EXPECT_EQ(both("beta_fast", nullptr), "") << "32 where it is not said";
  EXPECT_TRUE(says(both("factor", 32), "rope_parameters and rope_scaling"));
  EXPECT_TRUE(says(both("type", "default"), "rope_parameters and rope_scaling"));
  Json types = deepseek_v3();
  types["rope_scaling"]["rope_type"] = "default";
  EXPECT_TRUE(
      says(complaint([&] { parse(types); }), "rope_scaling.type and rope_scaling.rope_type"));
}

// The factor is in the angle table; mscale_all_dim scales the scores separately.
TEST(HuggingFaceDeepseek, AnAttentionFactorOfItsOwnDecidesTheMagnitude) {
  const auto magnitude = [](double factor, double mscale) {
    return 1 + 0.1 * mscale * std::log(factor);
  };
  for (const double all : {0.0, 0.707}) {
    Json json = deepseek_v3();
    json["rope_scaling"]["mscale_all_dim"] = all;
    json["rope_scaling"]["attention_factor"] = 1.25;
    const HuggingFaceConfig config = parse(json);
    EXPECT_NEAR(magnitude(40, config.model.mscale) / magnitude(40, all), 1.25, 1e-12);
    EXPECT_EQ(config.model.mscale_all_dim, all);
    const std::string written = huggingface_config_text(config);
    EXPECT_EQ(huggingface_config_text(parse(Json::parse(written))), written);
    EXPECT_EQ(Json::parse(written).at("rope_scaling").contains("attention_factor"), all == 0);
  }
  Json less = deepseek_v3();
  less["rope_scaling"]["attention_factor"] = 0.5;
  EXPECT_TRUE(says(complaint([&] { parse(less); }), "attention_factor"));
}

// Transformers 4 uses max_position_embeddings / original_max_position_embeddings as the factor.
TEST(HuggingFaceDeepseek, StretchedPositionsAreWrittenWhateverTheSequence) {
  HuggingFaceConfig config = parse(deepseek_v3());
  config.model.seq_length = 128;
  for (const std::optional<std::int64_t> positions : {std::optional<std::int64_t>(), {4096}}) {
    config.model.max_position_embeddings = positions;
    const Json written = Json::parse(huggingface_config_text(config));
    EXPECT_EQ(written.at("max_position_embeddings"), 163840);
    EXPECT_EQ(written.at("rope_scaling").at("original_max_position_embeddings"), 4096);
    EXPECT_EQ(written.at("rope_scaling").at("factor"), 40);
  }
  for (const double factor : {1e6, 1.3, 0.5}) {
    config.model.rotary_scaling_factor = factor;
    EXPECT_TRUE(says(complaint([&] { huggingface_config_text(config); }), "rotary_scaling_factor"))
        << factor;
  }
  config = parse(moonlight());
  EXPECT_EQ(Json::parse(huggingface_config_text(config)).at("max_position_embeddings"), 8192);
}

TEST(HuggingFaceDeepseek, GroupsThatDoNotLimitAreWrittenAsOne) {
  for (const Json& json : {deepseek_v3(), deepseek_v2_lite()}) {
    HuggingFaceConfig config = parse(json);
    const bool v3 = config.family == Family::DeepseekV3;
    for (const std::optional<std::int64_t> chosen : {std::optional<std::int64_t>(), {4}}) {
      config.model.moe_router_num_groups = 4;
      config.model.moe_router_group_topk = chosen;
      const Json written = Json::parse(huggingface_config_text(config));
      EXPECT_EQ(written.at("n_group"), 1);
      EXPECT_EQ(written.at("topk_group"), 1);
      EXPECT_EQ(written.at("topk_method"), v3 ? "noaux_tc" : "greedy");
    }
    config.model.moe_router_group_topk = 2;
    config.model.moe_router_group_score_topk = v3 ? 2 : 1;
    const Json written = Json::parse(huggingface_config_text(config));
    EXPECT_EQ(written.at("n_group"), 4);
    EXPECT_EQ(written.at("topk_group"), 2);
    EXPECT_EQ(written.at("topk_method"), v3 ? "noaux_tc" : "group_limited_greedy");
  }
}

// Transformers renormalises unless the file says otherwise.
TEST(HuggingFaceDeepseek, OneExpertATokenMustBeSaidNotToBeRenormalised) {
  Json json = deepseek_v3();
  json["num_experts_per_tok"] = 1;
  EXPECT_TRUE(says(rejection(json, "norm_topk_prob", true), "norm_topk_prob"));
  EXPECT_EQ(rejection(json, "norm_topk_prob", false), "");
  json.erase("norm_topk_prob");
  EXPECT_TRUE(says(complaint([&] { parse(json); }), "norm_topk_prob is missing"));
  json["num_experts_per_tok"] = 8;
  EXPECT_EQ(complaint([&] { parse(json); }), "");
  Json v2 = deepseek_v2_lite();
  v2["num_experts_per_tok"] = 1;
  v2.erase("norm_topk_prob");
  EXPECT_EQ(complaint([&] { parse(v2); }), "") << "never there";
}

TEST(HuggingFaceDeepseek, NeighboursTurnTogetherInEveryV2) {
  EXPECT_EQ(rejection(deepseek_v3(), "rope_interleave", false), "");
  EXPECT_EQ(rejection(deepseek_v2_lite(), "rope_interleave", true), "");
  EXPECT_TRUE(says(rejection(deepseek_v2_lite(), "rope_interleave", false), "rope_interleave"));
}

// Transformers calls them unconditionally.
TEST(HuggingFaceDeepseek, SharedExpertsAreNeededToWrite) {
  for (const Json& json : {deepseek_v3(), deepseek_v2_lite()}) {
    HuggingFaceConfig config = parse(json);
    config.model.moe_shared_expert_intermediate_size = std::nullopt;
    EXPECT_TRUE(says(complaint([&] { huggingface_config_text(config); }), "shared experts"));
  }
}

TEST(HuggingFaceDeepseek, GroupsAreScoredAsTheFamilyDoes) {
  EXPECT_EQ(parse(deepseek_v3()).model.moe_router_group_score_topk, std::nullopt) << "8 / 4";
  Json narrow = deepseek_v3();
  narrow["topk_group"] = 2;
  EXPECT_EQ(parse(narrow).model.moe_router_group_score_topk, 2);
  Json v2 = deepseek_v2_lite();  // like DeepSeek-V2
  v2.update({{"topk_method", "group_limited_greedy"}, {"n_group", 8}, {"topk_group", 3}});
  EXPECT_EQ(parse(v2).model.moe_router_num_groups, 8);
  EXPECT_EQ(parse(v2).model.moe_router_group_topk, 3);
  EXPECT_EQ(parse(v2).model.moe_router_group_score_topk, 1);
  for (const Json& json : {narrow, v2}) {
    const HuggingFaceConfig config = parse(json);
    const std::string written = huggingface_config_text(config);
    EXPECT_EQ(parse_huggingface_config(written, "again").model.moe_router_group_score_topk,
              config.model.moe_router_group_score_topk);
  }
}

TEST(HuggingFaceDeepseek, CompressedNormsKeepTheirEpsilon) {
  EXPECT_EQ(parse(moonlight()).model.layernorm_epsilon, 1e-5);
  EXPECT_EQ(parse(moonlight()).model.latent_epsilon(), 1e-6);
  HuggingFaceConfig config = parse(moonlight());
  config.model.latent_layernorm_epsilon = std::nullopt;
  EXPECT_TRUE(
      says(complaint([&] { huggingface_config_text(config); }), "latent_layernorm_epsilon"));
}

TEST(HuggingFaceDeepseek, WritingReadsBackTheSame) {
  for (const Json& json : {deepseek_v3(), kimi_k2(), moonlight(), deepseek_v2_lite()}) {
    const HuggingFaceConfig config = parse(json);
    const std::string written = huggingface_config_text(config);
    const HuggingFaceConfig again = parse_huggingface_config(written, "again");
    EXPECT_EQ(again.family, config.family);
    EXPECT_EQ(huggingface_config_text(again), written);
    config::Config before, after;
    before.model = config.model;
    after.model = again.model;
    for (const config::Field& field : config::fields()) {
      EXPECT_EQ(field.get(before), field.get(after)) << field.key;
    }
  }
}

TEST(HuggingFaceDeepseek, WhatIsNotImplementedIsRejected) {
  const Json rope = deepseek_v3()["rope_scaling"];
  const auto with = [&](const char* key, const Json& value) {
    Json changed = rope;
    changed[key] = value;
    return changed;
  };
  const std::vector<std::pair<const char*, Json>> cases{
      {"auto_map", {{"AutoModel", "custom.py"}}},
      {"norm_topk_prob", false},
      {"scoring_func", "softmax"},
      {"topk_method", "greedy"},
      {"moe_layer_freq", 2},
      {"num_key_value_heads", 8},
      {"head_dim", 128},
      {"qk_head_dim", 128},
      {"first_k_dense_replace", 62},
      {"n_shared_experts", -1},
      {"q_lora_rank", 0},
      {"kv_lora_rank", nullptr},
      {"routed_scaling_factor", 0},
      {"num_nextn_predict_layers", -1},
      {"quantization_config", {{"quant_method", "fp8"}}},
      {"rope_scaling", with("type", "linear")},
      {"rope_scaling", with("factor", nullptr)},
      {"rope_scaling", with("mscale", nullptr)},
      {"rope_scaling", with("attention_factor", 0)},
      {"rope_scaling", with("truncate", false)},
      {"qk_nope_dim", 4}};
  for (const auto& [key, value] : cases) {
    EXPECT_FALSE(rejection(deepseek_v3(), key, value).empty()) << key << " " << value;
    EXPECT_TRUE(says(rejection(deepseek_v3(), key, value), "c.json"));
  }
  EXPECT_TRUE(says(rejection(deepseek_v2_lite(), "norm_topk_prob", true), "norm_topk_prob"));
  Json without = deepseek_v2_lite();
  without.erase("num_experts_per_tok");
  EXPECT_TRUE(says(complaint([&] { parse(without); }), "num_experts_per_tok is missing"));
}

TEST(HuggingFaceDeepseek, OtherFamiliesCannotSayIt) {
  HuggingFaceConfig config = parse(deepseek_v3());
  for (const Family family : {Family::Qwen3Moe, Family::DeepseekV2}) {
    config.family = family;
    const std::string said = complaint([&] { huggingface_config_text(config); });
    EXPECT_TRUE(says(said, "moe_router_score_function=sigmoid"));
    EXPECT_TRUE(says(said, "moe_router_enable_expert_bias=true"));
  }
}

class HuggingFaceDeepseekFiles : public CheckpointFolder {
 protected:
  // Files of the tiny model with one more tensor.
  void put_with(const std::string& name) {
    const HuggingFaceModel model(golden("deepseek_v3_tiny"));
    std::vector<NewTensor> tensors;
    const SafetensorsFile file(golden("deepseek_v3_tiny") / "model.safetensors");
    for (const auto& [tensor, row] : file.tensors()) {
      tensors.push_back({tensor, FileDtype::F32, file.get(tensor).shape});
    }
    tensors.push_back({name, FileDtype::F32, {1}});
    write_safetensors(dir_ / "model.safetensors",
                      tensors,
                      [&](const NewTensor& tensor, const auto& append) {
                        std::int64_t elements = 1;
                        for (const std::int64_t dim : tensor.shape) elements *= dim;
                        append(std::string(static_cast<std::size_t>(4 * elements), '\0'));
                      });
    std::filesystem::copy_file(golden("deepseek_v3_tiny") / "config.json", dir_ / "config.json");
  }
};

TEST_F(HuggingFaceDeepseekFiles, LayersThatPredictFurtherAheadAreLeftOutAndSaid) {
  put_with("model.layers.3.eh_proj.weight");
  EXPECT_TRUE(says(HuggingFaceModel(dir_).remark(), "1 tensor of the layer"));
  EXPECT_EQ(HuggingFaceModel(golden("deepseek_v3_tiny")).remark(), "");
}

TEST_F(HuggingFaceDeepseekFiles, LayersBeyondThoseAreNot) {
  put_with("model.layers.4.eh_proj.weight");
  EXPECT_TRUE(says(complaint([&] { HuggingFaceModel{dir_}; }), "model.layers.4.eh_proj.weight"));
}

}  // namespace huggingface_deepseek_test
}  // namespace weft::checkpoint
