#include "weft/config/setting.h"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "weft/base/text.h"
#include "weft/config/field.h"

namespace weft::config {
namespace {

using base::text;

std::string text_of(const Written& written) {
  if (std::holds_alternative<std::monostate>(written)) return "null";
  if (const auto* word = std::get_if<std::string>(&written)) return config::shown(*word);
  const auto& words = std::get<std::vector<std::string>>(written);
  return config::shown(text("[{}]", fmt::join(words, ",")));
}

// Example for an error: the default, or another value of the type if the default is not
// instructive.
std::string example(const Field& field) {
  if (field.initial == "true" || field.initial == "false") {
    return text("{0}=true or {0}=false", field.key);
  }
  const bool telling = field.initial != "null" && field.initial != "\"\"" && field.initial != "[]";
  return text("{}={}", field.key, telling ? field.initial : field.example);
}

// True for digits that exceed a 64-bit integer.
bool is_huge_integer(const Field& field, const Written& written) {
  const auto* word = std::get_if<std::string>(&written);
  if (word == nullptr || !field.type.starts_with(WordCodec<std::int64_t>::one())) return false;
  const std::string_view digits = std::string_view(*word).substr(word->starts_with('-') ? 1 : 0);
  return !digits.empty() && digits.find_first_not_of("0123456789") == std::string_view::npos;
}

}  // namespace

void order_names(std::vector<Setting>& settings) {
  for (Setting& setting : settings) {
    if (!is_other_name(setting.key)) continue;
    const std::string meant = meant_key(setting.key);
    const bool twice = std::ranges::find(settings, meant, &Setting::key) != settings.end();
    if (twice) setting.standing = NameStanding::Overruled;
  }
  std::stable_partition(settings.begin(), settings.end(), [](const Setting& setting) {
    return setting.standing == NameStanding::Overruled;
  });
}

std::vector<Finding> other_name_findings(const std::vector<Setting>& settings) {
  std::vector<Finding> all;
  for (const Setting& setting : settings) {
    auto finding = other_name_finding(setting.key, setting.standing);
    if (!finding) continue;
    finding->message = text("{}: {}", setting.where, finding->message);
    all.push_back(std::move(*finding));
  }
  return all;
}

std::string type_complaint(const Field& field, const Written& written) {
  if (is_huge_integer(field, written)) {
    return text("{} = {} is out of range: an integer has 64 bits, at most {}",
                field.key,
                text_of(written),
                std::numeric_limits<std::int64_t>::max());
  }
  const bool names_values = field.type.starts_with("one of ") || field.type.starts_with("true ");
  return text("{} = '{}' is not {}; write for example {}",
              field.key,
              text_of(written),
              names_values ? field.type : base::with_article(field.type),
              example(field));
}

void apply(const Setting& setting, Config& config, std::vector<std::string>& complaints) {
  const std::string key = meant_key(setting.key);
  const Field* field = find_field(key);
  if (field == nullptr) {
    complaints.push_back(text("{}: unknown key '{}': {}",
                              setting.where,
                              config::shown(setting.key),
                              key_hint(setting.key)));
  } else if (!field->set(config, meant_value(key, setting.value))) {
    complaints.push_back(
        text("{}: {}", setting.where, type_complaint(*field, meant_value(key, setting.value))));
  }
}

}  // namespace weft::config
