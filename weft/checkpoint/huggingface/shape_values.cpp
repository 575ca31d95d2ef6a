#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/checkpoint/huggingface/huggingface_keys.h"
#include "weft/checkpoint/huggingface/shape_families.h"

namespace weft::checkpoint {

using base::text;

const StrictJson* ShapeValues::find(const char* key) {
  note(key);
  return values_.find_value(key);
}

std::int64_t ShapeValues::size(const char* key, std::int64_t most) {
  if (find(key) == nullptr) throw base::ConfigError(text("'{}': {} is missing", file_, key));
  return values_.size(key, 0, most);
}

std::int64_t ShapeValues::size_or(const char* key, std::int64_t absent, std::int64_t most) {
  return find(key) == nullptr ? absent : values_.size(key, absent, most);
}

std::int64_t ShapeValues::count_or(const char* key, std::int64_t absent, std::int64_t most) {
  const StrictJson* value = find(key);
  return value == nullptr ? absent : as_integer(*value, key, file_, 0, most);
}

double ShapeValues::number_or(const char* key, double absent, Range range) {
  return find(key) == nullptr ? absent : values_.number(key, absent, range);
}

bool ShapeValues::flag_or(const char* key, bool absent) {
  return find(key) == nullptr ? absent : values_.flag(key, absent);
}

void ShapeValues::expect_off(const char* key, const char* why) {
  const StrictJson* value = find(key);
  if (value != nullptr && *value != false) throw_wrong_value(*value, key, file_, why);
}

std::vector<std::string> ShapeValues::unasked() const {
  std::vector<std::string> keys;
  for (const auto& [key, value] : config_.items()) {
    if (asked_.contains(key) || is_harmless_key(key) || says_nothing(value)) continue;
    keys.push_back(base::shown(key));
  }
  return keys;
}

void read_shape_heads(ShapeValues& values, config::ModelConfig& model) {
  model.num_attention_heads = values.size("num_attention_heads", kMostHeads);
  model.num_query_groups =
      values.size_or("num_key_value_heads", model.num_attention_heads, kMostHeads);
  if (values.find("head_dim") != nullptr) {
    model.kv_channels = values.size("head_dim", kLargestHead);
    return;
  }
  if (model.hidden_size % model.num_attention_heads != 0) {
    throw base::ConfigError(
        text("'{}': hidden_size {} is not a multiple of num_attention_heads {}; give head_dim",
             values.file(),
             model.hidden_size,
             model.num_attention_heads));
  }
  model.kv_channels = model.hidden_size / model.num_attention_heads;
}

namespace {

constexpr Range kBases{1, 1e15};

void read_stretch(const StrictJson& rope, ShapeValues& values, config::ModelConfig& model) {
  const auto member_of = [&](const char* key) -> const StrictJson* {
    const auto found = rope.find(key);
    return found == rope.end() || found->is_null() ? nullptr : &*found;
  };
  const auto number = [&](const char* key, double absent, Range range) {
    const StrictJson* value = member_of(key);
    return value == nullptr ? absent : as_number(*value, key, values.file(), range);
  };
  model.rotary_base = number("rope_theta", model.rotary_base, kBases);
  model.rotary_percent = number("partial_rotary_factor", model.rotary_percent, {0, 1});
  const StrictJson* type = member_of("rope_type");
  if (type == nullptr) type = member_of("type");
  if (type == nullptr || *type == "default") return;
  if (*type != "yarn") {
    values.remarks.push_back(
        text("positions are stretched by {}, which changes no shape", shown(*type)));
    return;
  }
  model.rope_type = config::RopeType::Yarn;
  model.rotary_scaling_factor = number("factor", 1, {1, 1e6});
  model.beta_fast = number("beta_fast", 32, {1e-6, 1e6});
  model.beta_slow = number("beta_slow", 1, {1e-6, 1e6});
  if (const StrictJson* from = member_of("original_max_position_embeddings")) {
    model.original_max_position_embeddings =
        as_integer(*from, "original_max_position_embeddings", values.file(), 1, 1 << 24);
  }
}

}  // namespace

void read_shape_rope(ShapeValues& values, config::ModelConfig& model) {
  model.rotary_base = values.number_or("rope_theta", model.rotary_base, kBases);
  model.rotary_percent = values.number_or("partial_rotary_factor", model.rotary_percent, {0, 1});
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    const StrictJson* rope = values.find(key);
    if (rope == nullptr) continue;
    if (!rope->is_object()) throw_wrong_value(*rope, key, values.file(), "an object or null");
    read_stretch(*rope, values, model);
  }
}

}  // namespace weft::checkpoint
