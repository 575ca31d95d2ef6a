#include "weft/checkpoint/huggingface/huggingface_rope.h"

#include <cmath>
#include <vector>

#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/config/yarn.h"

namespace weft::checkpoint {
namespace {

using base::text;

constexpr Range kThetas{1, 1e15};

// Content of one of the two objects.
struct Rope {
  std::optional<double> theta, factor, beta_fast, beta_slow, mscale, mscale_all_dim,
      attention_factor;
  std::optional<std::int64_t> original_positions;
  std::optional<bool> yarn;  // nullopt: no type
};

// Position scaling with defaults filled in.
struct Yarn {
  double factor, beta_fast, beta_slow, mscale, mscale_all_dim;
  std::int64_t original_positions;

  bool operator==(const Yarn&) const = default;
};

class RopeReader {
 public:
  RopeReader(const HuggingFaceValues& values, Family family) : values_(values), family_(family) {}

  std::optional<Rope> read(const char* key) {
    const StrictJson* object = values_.find_value(key);
    if (object == nullptr) return std::nullopt;
    if (!object->is_object()) throw_wrong_value(*object, key, values_.file(), "an object or null");
    Rope rope;
    for (const auto& [name, value] : object->items()) {
      if (!value.is_null()) read_member(key, name, value, rope);
    }
    return rope;
  }

 private:
  void read_member(const char* key, const std::string& name, const StrictJson& value, Rope& rope) {
    const std::string full = text("{}.{}", key, name);
    const auto number = [&](Range range) { return as_number(value, full, values_.file(), range); };
    if (name == "rope_theta") {
      rope.theta = number(kThetas);
    } else if (name == "rope_type" || name == "type") {
      const bool yarn = is_yarn(value, full);
      if (rope.yarn && *rope.yarn != yarn) {
        throw base::ConfigError(text("'{}': {}.type and {}.rope_type differ; give one of them",
                                     values_.file(),
                                     key,
                                     key));
      }
      rope.yarn = yarn;
    } else if (name == "partial_rotary_factor" && value == 1) {
    } else if (!stretches()) {
      throw_wrong_value(value, full, values_.file(), "null (this key is not implemented)");
    } else if (name == "factor") {
      rope.factor = number({1, 1e6});
    } else if (name == "beta_fast") {
      rope.beta_fast = number({1e-6, 1e6});
    } else if (name == "beta_slow") {
      rope.beta_slow = number({1e-6, 1e6});
    } else if (name == "mscale") {
      rope.mscale = number({0, 1000});
    } else if (name == "mscale_all_dim") {
      rope.mscale_all_dim = number({0, 1000});
    } else if (name == "attention_factor") {
      rope.attention_factor = number({0, 1000});
    } else if (name == "original_max_position_embeddings") {
      rope.original_positions = as_integer(value, full, values_.file(), 1, 1 << 24);
    } else if (name != "truncate" || value != true) {
      throw_wrong_value(value, full, values_.file(), "null (this key is not implemented)");
    }
  }

  bool stretches() const { return is_deepseek(family_); }

  bool is_yarn(const StrictJson& value, const std::string& full) const {
    if (stretches() && value == "yarn") return true;
    if (value == "default") return false;
    throw_wrong_value(value,
                      full,
                      values_.file(),
                      text("\"default\"{} (no other is implemented for {} model)",
                           stretches() ? " or \"yarn\"" : "",
                           base::with_article(word(family_))));
  }

  const HuggingFaceValues& values_;
  Family family_;
};

// mscale equivalent to an explicit attention_factor.
double mscale_of(const Rope& rope, double all, const std::string& file) {
  const double wanted = *rope.attention_factor * config::yarn_magnitude(*rope.factor, all);
  if (*rope.factor == 1 && wanted == 1) return 1;
  const double mscale = (wanted - 1) / (0.1 * std::log(*rope.factor));
  // Beside a positive mscale_all_dim, an mscale of 0 would count as absent.
  if (*rope.factor > 1 && (all > 0 ? mscale > 0 : mscale >= 0)) return mscale;
  throw base::ConfigError(text(
      "'{}': attention_factor = {} with factor = {} and mscale_all_dim = {} is not implemented: "
      "it shrinks what it multiplies, or multiplies where nothing is stretched",
      file,
      *rope.attention_factor,
      *rope.factor,
      all));
}

Yarn yarn_of(const Rope& rope, const std::string& file, std::int64_t max_position_embeddings) {
  if (!rope.factor) {
    throw base::ConfigError(text("'{}': yarn needs a factor beside its rope_type", file));
  }
  // Transformers uses the two mscale values together or not at all; without them, mscale is 1.
  const double mscale = rope.mscale.value_or(0), all = rope.mscale_all_dim.value_or(0);
  const bool named = rope.attention_factor.has_value();
  if (all > 0 && mscale == 0 && !named) {
    throw base::ConfigError(
        text("'{}': mscale_all_dim is {} without mscale; give both or neither", file, all));
  }
  return {.factor = *rope.factor,
          .beta_fast = rope.beta_fast.value_or(32),
          .beta_slow = rope.beta_slow.value_or(1),
          .mscale = named     ? mscale_of(rope, all, file)
                    : all > 0 ? mscale
                              : 1,
          .mscale_all_dim = all,
          .original_positions = rope.original_positions.value_or(max_position_embeddings)};
}

void set_yarn(const Yarn& yarn, config::ModelConfig& model) {
  model.rope_type = config::RopeType::Yarn;
  model.rotary_scaling_factor = yarn.factor;
  model.original_max_position_embeddings = yarn.original_positions;
  model.beta_fast = yarn.beta_fast;
  model.beta_slow = yarn.beta_slow;
  model.mscale = yarn.mscale;
  model.mscale_all_dim = yarn.mscale_all_dim;
}

}  // namespace

void read_rope(const HuggingFaceValues& values,
               Family family,
               double default_theta,
               std::int64_t max_position_embeddings,
               config::ModelConfig& model) {
  std::optional<double> theta;
  const auto take = [&](std::optional<double> found) {
    if (found && theta && *found != *theta) {
      throw base::ConfigError(
          text("'{}': rope_theta is given as {} and as {}", values.file(), *theta, *found));
    }
    if (found) theta = found;
  };
  if (const StrictJson* top = values.find_value("rope_theta")) {
    take(as_number(*top, "rope_theta", values.file(), kThetas));
  }
  RopeReader reader(values, family);
  std::vector<std::optional<Yarn>> stretches;  // one per object with a type; nullopt: no scaling
  for (const char* key : {"rope_parameters", "rope_scaling"}) {
    const std::optional<Rope> rope = reader.read(key);
    if (!rope) continue;
    take(rope->theta);
    if (!rope->yarn) continue;
    auto& stretch = stretches.emplace_back();
    if (*rope->yarn) stretch = yarn_of(*rope, values.file(), max_position_embeddings);
    if (stretch != stretches.front()) {
      throw base::ConfigError(
          text("'{}': rope_parameters and rope_scaling differ in how positions are stretched; give "
               "one of them",
               values.file()));
    }
  }
  if (!stretches.empty() && stretches.front()) set_yarn(*stretches.front(), model);
  model.rotary_base = theta.value_or(default_theta);
}

std::optional<std::int64_t> stretched_positions(const config::ModelConfig& model) {
  if (model.rope_type == config::RopeType::Rope) return std::nullopt;
  return std::llround(model.rotary_scaling_factor *
                      static_cast<double>(model.original_max_position_embeddings));
}

bool is_whole_stretch(const config::ModelConfig& model) {
  const double positions =
      model.rotary_scaling_factor * static_cast<double>(model.original_max_position_embeddings);
  return model.rotary_scaling_factor >= 1 && positions <= double{kLongestSequence} &&
         positions == std::round(positions);
}

void write_rope(const config::ModelConfig& model, base::Json& json) {
  json["rope_theta"] = model.rotary_base;
  json["rope_scaling"] = nullptr;
  if (model.rope_type == config::RopeType::Rope) return;
  base::Json& rope = json["rope_scaling"];
  rope = {{"type", "yarn"},
          {"rope_type", "yarn"},
          {"factor", model.rotary_scaling_factor},
          {"original_max_position_embeddings", model.original_max_position_embeddings},
          {"beta_fast", model.beta_fast},
          {"beta_slow", model.beta_slow}};
  if (model.mscale_all_dim == 0) {
    if (model.mscale == 1) return;
    // Written with fewer digits than a double has, so that reading and writing again gives equal
    // text.
    const double factor = config::yarn_magnitude(model.rotary_scaling_factor, model.mscale);
    rope["attention_factor"] = std::stod(text("{:.12g}", factor));
    return;
  }
  rope["mscale"] = model.mscale;
  rope["mscale_all_dim"] = model.mscale_all_dim;
}

}  // namespace weft::checkpoint
