#include "weft/plan/tuning/perf_vary.h"

#include <algorithm>

#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/config/field.h"
#include "weft/config/other_names.h"

namespace weft::plan {
namespace {

using base::text;

constexpr std::size_t kMostRuns = 64;

void check_values(const std::string& word, const Knob& knob) {
  for (std::size_t i = 0; i < knob.values.size(); ++i) {
    if (knob.values[i].empty()) {
      throw base::ConfigError(
          text("--vary {}: a value is empty: write --vary {}=x,y", config::shown(word), knob.key));
    }
    if (std::find(knob.values.begin(),
                  knob.values.begin() + static_cast<std::ptrdiff_t>(i),
                  knob.values[i]) != knob.values.begin() + static_cast<std::ptrdiff_t>(i)) {
      throw base::ConfigError(text("--vary {}: the value {} is there twice: leave one out",
                                   config::shown(word),
                                   config::shown(knob.values[i])));
    }
  }
}

void check_knobs(const std::vector<Knob>& knobs, Sweep sweep) {
  if (knobs.size() > 1 && sweep == Sweep::OneKnob) {
    std::vector<std::string> keys;
    for (const Knob& knob : knobs) keys.push_back(knob.key);
    throw base::ConfigError(
        text("--vary {}: {} knobs at once, and what they gain cannot be told apart: vary one and "
             "freeze the others, or say --grid for every combination",
             fmt::join(keys, ", "),
             knobs.size()));
  }
  for (std::size_t i = 0; i < knobs.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (knobs[i].key != knobs[j].key) continue;
      throw base::ConfigError(
          text("--vary {} is there twice: write all its values in one", knobs[i].key));
    }
  }
}

}  // namespace

std::vector<std::string> split_values(std::string_view values) {
  std::vector<std::string> all(1);
  int depth = 0;
  char quote = '\0';
  for (const char c : values) {
    if (quote != '\0') {
      if (c == quote) quote = '\0';
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '[') {
      ++depth;
    } else if (c == ']') {
      --depth;
    }
    if (c == ',' && depth <= 0 && quote == '\0') {
      all.emplace_back();
    } else {
      all.back() += c;
    }
  }
  for (std::string& value : all) value = base::trim(value);
  return all;
}

Knob parse_knob(const std::string& word) {
  const std::size_t equals = word.find('=');
  if (equals == std::string::npos) {
    throw base::ConfigError(text("--vary {}: a key and its values are wanted: write --vary a.b=x,y",
                                 config::shown(word)));
  }
  Knob knob{.key = config::meant_key(base::trim(word.substr(0, equals))),
            .values = split_values(word.substr(equals + 1))};
  if (config::find_field(knob.key) == nullptr) {
    throw base::ConfigError(text("--vary {}: no key '{}': {}",
                                 config::shown(word),
                                 config::shown(knob.key),
                                 config::key_hint(knob.key)));
  }
  check_values(word, knob);
  return knob;
}

std::vector<Variant> variants_of(const std::vector<Knob>& knobs, Sweep sweep) {
  check_knobs(knobs, sweep);
  if (knobs.empty()) return {{.value = kAsConfigured, .overrides = {}}};
  std::vector<Variant> all{{}};
  for (const Knob& knob : knobs) {
    if (all.size() * knob.values.size() > kMostRuns) {
      throw base::ConfigError(
          text("--vary asks for more than {} runs: give fewer values", kMostRuns));
    }
    std::vector<Variant> longer;
    for (const Variant& variant : all) {
      for (const std::string& value : knob.values) {
        Variant next = variant;
        next.overrides.push_back(text("{}={}", knob.key, value));
        next.value = knobs.size() == 1 ? value : text("{}", fmt::join(next.overrides, " "));
        longer.push_back(std::move(next));
      }
    }
    all = std::move(longer);
  }
  return all;
}

}  // namespace weft::plan
