#include "weft/checkpoint/huggingface/huggingface_shapes.h"

#include <algorithm>

#include "weft/base/error.h"
#include "weft/base/files/file.h"
#include "weft/base/text.h"
#include "weft/checkpoint/huggingface/huggingface_config.h"
#include "weft/checkpoint/huggingface/huggingface_keys.h"
#include "weft/checkpoint/huggingface/shape_families.h"

namespace weft::checkpoint {
namespace {

namespace fs = std::filesystem;
using base::text;

constexpr std::size_t kLargestShapeConfig = 1u << 20;
constexpr std::size_t kMostKeysTold = 12;

const ShapeFamily* find_shape_family(std::string_view model_type) {
  const auto families = shape_families();
  const auto found = std::ranges::find(families, model_type, &ShapeFamily::model_type);
  return found == families.end() ? nullptr : &*found;
}

std::string keys_remark(const std::vector<std::string>& keys, const std::string& model_type) {
  const std::size_t told = std::min(keys.size(), kMostKeysTold);
  return text("keys of {} that are not known here and are taken to change no shape: {}{}",
              base::with_article(base::shown(model_type)) + " model",
              fmt::join(keys.begin(), keys.begin() + static_cast<std::ptrdiff_t>(told), ", "),
              told < keys.size() ? text(" and {} more", keys.size() - told) : "");
}

// Format name ("fp8", "mxfp4") from the producer's key.
std::string format_of(const StrictJson& quantization) {
  for (const char* key : {"quant_method", "quant_algo"}) {
    if (!quantization.is_object() || !quantization.contains(key)) continue;
    if (quantization[key].is_string()) return base::shown(quantization[key].get<std::string>());
  }
  return "an unnamed format";
}

// Removes the key and adds a remark.
void pass_over_quantization(StrictJson& config, ModelShapes& shapes) {
  const auto found = config.find("quantization_config");
  if (found == config.end()) return;
  if (!found->is_null() && !(found->is_object() && found->empty())) {
    shapes.unread.push_back(text("quantized weights ({})", format_of(*found)));
  }
  config.erase(found);
}

// Removes a dtype that the engine lacks: products and memory count as bf16.
void pass_over_dtype(StrictJson& config, ModelShapes& shapes) {
  for (const char* key : {"dtype", "torch_dtype"}) {
    const auto found = config.find(key);
    if (found == config.end() || found->is_null()) continue;
    if (*found == "float32" || *found == "bfloat16") continue;
    shapes.remarks.push_back(text("{} is {}: it counts as bfloat16", key, shown(*found)));
    shapes.unread.push_back(text("weights in {}", shown(*found)));
    *found = "bfloat16";
  }
}

void read_what_all_have(ShapeValues& values, config::ModelConfig& model) {
  values.note("model_type");
  model.num_layers = values.size("num_hidden_layers", kMostLayers);
  model.hidden_size = values.size("hidden_size", kLargestWidth);
  model.vocab_size = values.size("vocab_size", kLargestVocabulary);
  model.layernorm_epsilon = values.number_or("rms_norm_eps", 1e-6, {0, 1});
  model.share_embeddings_and_output_weights = values.flag_or("tie_word_embeddings", false);
  model.init_method_std = values.number_or("initializer_range", 0.02, {0, 100});
  model.max_position_embeddings = values.size("max_position_embeddings", kLongestSequence);
  const StrictJson* dtype = values.find("dtype");
  if (dtype == nullptr) dtype = values.find("torch_dtype");
  values.note("torch_dtype");
  if (dtype != nullptr && *dtype == "bfloat16") model.params_dtype = base::DType::BF16;
  if (const StrictJson* width = values.find("intermediate_size")) {
    model.ffn_hidden_size =
        as_integer(*width, "intermediate_size", values.file(), 1, kLargestWidth);
  }
  // Training losses and noise have no shape.
  for (const char* key : {"router_aux_loss_coef",
                          "output_router_logits",
                          "router_jitter_noise",
                          "attention_dropout",
                          "pad_token_id",
                          "auto_map"}) {
    values.note(key);
  }
  const StrictJson* activation = values.find("hidden_act");
  if (activation != nullptr && *activation != "silu") {
    values.remarks.push_back(text("hidden_act is {}: it counts as silu", shown(*activation)));
  }
}

void require_dense_width(const ShapeValues& values, const config::ModelConfig& model) {
  if (model.ffn_hidden_size || model.moe_layers() == model.num_layers) return;
  throw base::ConfigError(text("'{}': intermediate_size is missing", values.file()));
}

void read_shape_family(const ShapeFamily& family,
                       const StrictJson& config,
                       const std::string& file,
                       ModelShapes& shapes) {
  ShapeValues values(config, file);
  read_what_all_have(values, shapes.model);
  family.read(values, shapes.model);
  require_dense_width(values, shapes.model);
  const std::vector<std::string> unasked = values.unasked();
  if (!unasked.empty()) shapes.remarks.push_back(keys_remark(unasked, shapes.model_type));
  std::ranges::move(values.remarks, std::back_inserter(shapes.remarks));
  shapes.unread.push_back(text("weights of {}", shapes.model_type));
}

void read_built_family(Family family,
                       StrictJson& config,
                       const std::string& file,
                       ModelShapes& shapes) {
  std::vector<std::string> unknown;
  for (const auto& [key, value] : config.items()) {
    if (!is_known_key(key, family) && !says_nothing(value)) unknown.push_back(key);
  }
  if (!unknown.empty()) {
    shapes.unread.push_back(text("a folder whose config.json has {} that are not known ({})",
                                 base::plural(std::ssize(unknown), "key"),
                                 base::shown(text("{}", fmt::join(unknown, ", ")))));
    std::vector<std::string> told;
    for (const std::string& key : unknown) {
      told.push_back(base::shown(key));
      config.erase(key);
    }
    shapes.remarks.push_back(keys_remark(told, shapes.model_type));
  }
  const HuggingFaceConfig read = read_huggingface(config, file);
  shapes.model = read.model;
  if (read.layers_ahead > 0) shapes.model.mtp_num_layers = read.layers_ahead;
}

std::string model_type_of(const StrictJson& config, const std::string& file) {
  return as_word(member(config, "model_type", file), "model_type", file);
}

// Text tower of a multimodal model; its keys are in an object of their own.
StrictJson text_tower(StrictJson config, const std::string& file, ModelShapes& shapes) {
  const auto tower = config.find("text_config");
  if (tower == config.end() || !tower->is_object()) return config;
  if (find_shape_family(model_type_of(config, file)) == nullptr) return config;
  shapes.remarks.emplace_back("only the text tower of the model: no others are counted");
  StrictJson inner = *tower;
  inner["model_type"] = config["model_type"];
  for (const char* key : {"quantization_config", "tie_word_embeddings"}) {
    if (config.contains(key) && !inner.contains(key)) inner[key] = config[key];
  }
  return inner;
}

}  // namespace

ModelShapes parse_model_shapes(std::string_view content, const std::string& file) {
  ModelShapes shapes;
  StrictJson config = text_tower(parse_python_object(content, file), file, shapes);
  shapes.model_type = model_type_of(config, file);
  pass_over_quantization(config, shapes);
  pass_over_dtype(config, shapes);
  if (const auto family = family_of(shapes.model_type)) {
    read_built_family(*family, config, file, shapes);
  } else if (const ShapeFamily* known = find_shape_family(shapes.model_type)) {
    read_shape_family(*known, config, file, shapes);
  } else {
    throw_wrong_value(
        config["model_type"],
        "model_type",
        file,
        text("{}; or, for what needs shapes alone, {}", family_words(), shape_family_words()));
  }
  const std::int64_t positions = shapes.model.max_position_embeddings.value_or(kUsualLength);
  shapes.model.seq_length = std::min(kUsualLength, positions);
  return shapes;
}

ModelShapes read_model_shapes(const fs::path& folder_or_file) {
  const fs::path file =
      folder_or_file.extension() == ".json" ? folder_or_file : folder_or_file / "config.json";
  return parse_model_shapes(base::read_text(file, kLargestShapeConfig), file.string());
}

std::string shape_family_words() {
  std::vector<std::string_view> words;
  for (const ShapeFamily& family : shape_families()) words.push_back(family.model_type);
  const std::string_view last = words.back();
  words.pop_back();
  return text("{} or {}", fmt::join(words, ", "), last);
}

bool is_shape_family(std::string_view model_type) {
  return find_shape_family(model_type) != nullptr;
}

}  // namespace weft::checkpoint
