#include "weft/checkpoint/huggingface/huggingface.h"

#include <cstring>
#include <map>

#include "tests/checkpoint/golden_support.h"
#include "weft/base/random.h"

namespace weft::checkpoint {
namespace huggingface_test {

using Values = std::vector<float>;

Values read_all(const HuggingFaceModel& model, const Parameter& parameter) {
  Values values(static_cast<std::size_t>(parameter.elements()));
  model.read(parameter.name, 0, values);
  return values;
}

Values tensor_values(const SafetensorsFile& file, const std::string& name) {
  const TensorView tensor = file.get(name);
  Values values(static_cast<std::size_t>(tensor.elements()));
  read_elements(tensor, 0, std::span<float>(values));
  return values;
}

// Value per element, different for each parameter.
Fetch made_up_values() {
  return [](const std::string& parameter, std::int64_t begin, std::span<float> out) {
    const std::uint64_t key = base::hash(parameter);
    for (std::size_t i = 0; i < out.size(); ++i) {
      out[i] = static_cast<float>(base::uniform(key, static_cast<std::uint64_t>(begin) + i));
    }
  };
}

HuggingFaceConfig small(Family family) {
  HuggingFaceConfig config{.family = family, .model = {}};
  config.model.max_position_embeddings = 32;
  config.model.num_layers = 2;
  config.model.hidden_size = 8;
  config.model.num_attention_heads = 2;
  config.model.num_query_groups = 1;
  config.model.vocab_size = 16;
  config.model.ffn_hidden_size = 12;
  config.model.moe_ffn_hidden_size = 6;
  config.model.num_moe_experts = 3;
  config.model.qk_layernorm = family == Family::Qwen3Moe ? config::QkNorm::Head
                              : family == Family::Olmoe  ? config::QkNorm::Projection
                                                         : config::QkNorm::None;
  return config;
}

class HuggingFace : public CheckpointFolder {
 protected:
  // Writes `rows`, each filled with its made-up values, and the config of `config`.
  void put(const HuggingFaceConfig& config, const std::vector<HuggingFaceTensor>& rows) {
    std::map<std::string, HuggingFaceTensor> by_name;
    std::vector<NewTensor> tensors;
    for (const HuggingFaceTensor& row : rows) {
      if (by_name.emplace(row.name, row).second) {
        tensors.push_back({row.name, FileDtype::F32, row.shape});
      }
    }
    write_safetensors(
        dir_ / "model.safetensors",
        tensors,
        [&](const NewTensor& tensor, const auto& append) {
          const HuggingFaceTensor& row = by_name.at(tensor.name);
          Values values(static_cast<std::size_t>(row.elements()));
          made_up_values()(row.parameter, row.begin, values);
          append({reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)});
        });
    base::write_whole(dir_ / "config.json", huggingface_config_text(config));
  }
  std::string rejection() {
    return complaint([&] { HuggingFaceModel{dir_}; });
  }
  void expect_made_up_values() {
    const HuggingFaceModel model(dir_);
    for (const Parameter& parameter : model.parameters()) {
      Values expected(static_cast<std::size_t>(parameter.elements()));
      made_up_values()(parameter.name, 0, expected);
      EXPECT_EQ(read_all(model, parameter), expected) << parameter.name;
    }
  }
};

TEST_F(HuggingFace, EveryParameterOfTheGoldenModelsReads) {
  for (const char* name :
       {"qwen3_moe_tiny", "qwen3_moe_deep", "mixtral_tiny", "deepseek_v3_tiny"}) {
    const HuggingFaceModel model(golden(name));
    std::size_t elements = 0;
    for (const Parameter& parameter : model.parameters()) {
      const Values values = read_all(model, parameter);
      elements += values.size();
      EXPECT_TRUE(std::any_of(values.begin(), values.end(), [](float x) { return x != 0; }))
          << parameter.name;
    }
    const SafetensorsFile file(golden(name) / "model.safetensors");
    std::size_t stored = 0;
    for (const auto& [tensor, row] : file.tensors()) stored += (row.end - row.begin) / 4;
    EXPECT_EQ(elements, stored) << name;
  }
}

TEST_F(HuggingFace, ParametersHaveTheirGlobalShapes) {
  std::map<std::string, Shape> shapes;
  const HuggingFaceModel model(golden("qwen3_moe_deep"));
  for (const Parameter& parameter : model.parameters()) {
    shapes[parameter.name] = parameter.shape;
  }
  EXPECT_EQ(shapes.at("embedding.weight"), (Shape{256, 32}));
  EXPECT_EQ(shapes.at("layers.0.attention.qkv.weight"), (Shape{64, 32}));
  EXPECT_EQ(shapes.at("layers.0.attention.q_norm.weight"), (Shape{8}));
  EXPECT_EQ(shapes.at("layers.0.mlp.fc1.weight"), (Shape{128, 32}));
  EXPECT_EQ(shapes.at("layers.5.mlp.fc2.weight"), (Shape{32, 64}));
  EXPECT_EQ(shapes.at("layers.1.route.router.weight"), (Shape{8, 32}));
  EXPECT_EQ(shapes.at("layers.1.experts.fc1.weight"), (Shape{8, 48, 32}));
  EXPECT_EQ(shapes.at("layers.1.experts.fc2.weight"), (Shape{8, 32, 24}));
  EXPECT_EQ(shapes.at("head.weight"), (Shape{256, 32}));
  EXPECT_EQ(shapes.count("layers.0.route.router.weight"), 0u);
}

TEST_F(HuggingFace, FusedParametersKeepTheOrderOfTheirParts) {
  const HuggingFaceModel model(golden("mixtral_tiny"));
  const SafetensorsFile file(golden("mixtral_tiny") / "model.safetensors");
  const std::string layer = "model.layers.1.";
  Values value(32 * 64);
  model.read("layers.1.attention.qkv.weight", (64 + 32) * 64, value);
  EXPECT_EQ(value, tensor_values(file, layer + "self_attn.v_proj.weight"));
  Values up(80 * 64);
  model.read("layers.1.experts.fc1.weight", (3 * 160 + 80) * 64, up);
  EXPECT_EQ(up, tensor_values(file, layer + "block_sparse_moe.experts.3.w3.weight"));
  Values down(64 * 80);
  model.read("layers.1.experts.fc2.weight", 2 * 64 * 80, down);
  EXPECT_EQ(down, tensor_values(file, layer + "block_sparse_moe.experts.2.w2.weight"));
}

TEST_F(HuggingFace, AnyRangeEqualsThatPartOfTheWhole) {
  const HuggingFaceModel model(golden("qwen3_moe_tiny"));
  const Parameter fc1{"layers.0.experts.fc1.weight", {8, 96, 64}};
  const Values all = read_all(model, fc1);
  for (const std::size_t begin : {0u, 1u, 3071u, 3072u, 6143u, 20000u}) {
    for (const std::size_t count : {0u, 1u, 3072u, 7001u}) {
      Values part(count);
      model.read(fc1.name, static_cast<std::int64_t>(begin), part);
      EXPECT_TRUE(std::equal(part.begin(), part.end(), all.begin() + static_cast<long>(begin)));
    }
  }
  Values beyond(2);
  EXPECT_THROW(model.read(fc1.name, fc1.elements() - 1, beyond), base::InternalError);
  EXPECT_THROW(model.read("layers.0.nothing", 0, beyond), base::InternalError);
}

TEST_F(HuggingFace, WritingAGoldenModelGivesItsTensorsBack) {
  for (const char* name :
       {"qwen3_moe_tiny", "qwen3_moe_deep", "mixtral_tiny", "deepseek_v3_tiny"}) {
    const HuggingFaceModel model(golden(name));
    write_huggingface(dir_ / name / "deeper",
                      model.huggingface_config(),
                      [&](const std::string& parameter, std::int64_t begin, std::span<float> out) {
                        model.read(parameter, begin, out);
                      });
    const SafetensorsFile before(golden(name) / "model.safetensors");
    const SafetensorsFile after(dir_ / name / "deeper/model.safetensors");
    ASSERT_EQ(before.tensors().size(), after.tensors().size());
    for (const auto& [tensor, row] : before.tensors()) {
      ASSERT_EQ(before.get(tensor).shape, after.get(tensor).shape);
      EXPECT_EQ(bytes_in(before.get(tensor)), bytes_in(after.get(tensor))) << tensor;
    }
    EXPECT_EQ(HuggingFaceModel(dir_ / name / "deeper").config().moe_layer_freq,
              model.config().moe_layer_freq);
  }
}

TEST_F(HuggingFace, EveryFamilyAndSpellingReadsTheSame) {
  for (const Family family : {Family::Qwen3Moe, Family::Mixtral, Family::Olmoe}) {
    for (const ExpertNames names : {ExpertNames::Separate, ExpertNames::Stacked}) {
      put(small(family), huggingface_tensors(small(family).model, family, names));
      expect_made_up_values();
    }
  }
}

TEST_F(HuggingFace, SpellingsMayBeMixed) {
  const HuggingFaceConfig config = small(Family::Mixtral);
  std::vector<HuggingFaceTensor> rows;
  const auto take = [&](Family family, ExpertNames names, bool (*wanted)(const std::string&)) {
    for (const HuggingFaceTensor& row : huggingface_tensors(config.model, family, names)) {
      if (wanted(row.name)) rows.push_back(row);
    }
  };
  const auto contains = [](const std::string& name, const char* part) {
    return name.find(part) != std::string::npos;
  };
  static const auto in = contains;
  take(Family::Mixtral, ExpertNames::Stacked, [](const std::string& name) {
    return !in(name, "layers.1.mlp");
  });
  take(Family::Qwen3Moe, ExpertNames::Separate, [](const std::string& name) {
    return in(name, "layers.1.mlp.gate.") || in(name, "layers.1.mlp.experts.0.");
  });
  take(Family::Mixtral, ExpertNames::Separate, [](const std::string& name) {
    return in(name, "layers.1.block_sparse_moe.experts.1.") ||
           in(name, "layers.1.block_sparse_moe.experts.2.");
  });
  put(config, rows);
  expect_made_up_values();
}

TEST_F(HuggingFace, TiedHeadsHaveNoHeadWeight) {
  HuggingFaceConfig config = small(Family::Qwen3Moe);
  config.model.share_embeddings_and_output_weights = true;
  auto rows = huggingface_tensors(config.model, config.family, ExpertNames::Separate);
  put(config, rows);
  EXPECT_EQ(HuggingFaceModel(dir_).parameters().back().name, "head.norm.weight");
  rows.push_back({"lm_head.weight", {16, 8}, "embedding.weight", 0});
  rows.push_back({"model.layers.0.self_attn.rotary_emb.inv_freq", {2}, "embedding.weight", 0});
  put(config, rows);
  EXPECT_EQ(rejection(), "") << "a copy of the tied head and rotary tables are harmless";
}

TEST_F(HuggingFace, ParametersInBf16AreWrittenInBf16) {
  HuggingFaceConfig config = small(Family::Olmoe);
  config.model.params_dtype = base::DType::BF16;
  write_huggingface(dir_, config, made_up_values());
  EXPECT_EQ(SafetensorsFile(dir_ / "model.safetensors").get("lm_head.weight").dtype,
            FileDtype::BF16);
  const HuggingFaceModel model(dir_);
  EXPECT_EQ(model.config().params_dtype, base::DType::BF16);
  Values expected(128), got(128);
  made_up_values()("head.weight", 0, expected);
  model.read("head.weight", 0, got);
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 0x1p-8f);
}

TEST_F(HuggingFace, MissingExtraDoubledAndMisshapenTensorsAreNamed) {
  const HuggingFaceConfig config = small(Family::Qwen3Moe);
  const auto rows = huggingface_tensors(config.model, config.family, ExpertNames::Separate);
  auto changed = rows;
  changed.erase(std::find_if(changed.begin(), changed.end(), [](const HuggingFaceTensor& row) {
    return row.name == "model.layers.1.mlp.experts.2.up_proj.weight";
  }));
  put(config, changed);
  EXPECT_TRUE(says(rejection(), "'model.layers.1.mlp.experts.2.up_proj.weight' of shape [6, 8]"));

  changed = rows;
  changed.push_back({"model.layers.2.extra", {1}, "head.norm.weight", 0});
  put(config, changed);
  EXPECT_TRUE(says(rejection(), "'model.layers.2.extra' is not part of"));

  changed = rows;
  changed.push_back({"model.layers.0.mlp.experts.down_proj", {3, 8, 6}, "embedding.weight", 0});
  changed.back().parameter = "layers.0.experts.fc2.weight";
  put(config, changed);
  EXPECT_TRUE(says(rejection(), "hold the same weights"));

  changed = rows;
  changed[0].shape = {8, 16};
  put(config, changed);
  EXPECT_TRUE(says(rejection(), "'model.embed_tokens.weight' has shape [8, 16]; [16, 8] expected"));
}

TEST_F(HuggingFace, ATensorsNameDoesNotSteerATerminal) {
  const HuggingFaceConfig config = small(Family::Qwen3Moe);
  auto rows = huggingface_tensors(config.model, config.family, ExpertNames::Separate);
  rows.push_back({"\x1b[31mred\x07\n", {1}, "head.norm.weight", 0});
  put(config, rows);
  EXPECT_TRUE(says(rejection(), R"('\x1b[31mred\x07\n' is not part of)"));
}

TEST_F(HuggingFace, LongComplaintsAreCut) {
  const HuggingFaceConfig config = small(Family::Qwen3Moe);
  put(config, {});
  try {
    HuggingFaceModel{dir_};
    FAIL();
  } catch (const base::ConfigError& error) {
    EXPECT_EQ(error.complaints().size(), 21u);
  }
}

TEST_F(HuggingFace, WholeNumberWeightsAreRejected) {
  const HuggingFaceConfig config = small(Family::Qwen3Moe);
  write_huggingface(dir_, config, made_up_values());
  std::string bytes = base::read_text(dir_ / "model.safetensors");
  const std::size_t at = bytes.find("F32");
  bytes.replace(at, 3, "I32");
  base::write_whole(dir_ / "model.safetensors", bytes);
  EXPECT_TRUE(says(rejection(), "has dtype I32"));
}

}  // namespace huggingface_test
}  // namespace weft::checkpoint
