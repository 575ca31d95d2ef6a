#include "weft/words/megatron/megatron_settings.h"

#include <algorithm>

#include "weft/base/text.h"
#include "weft/config/field.h"
#include "weft/words/harness/harness_effects.h"
#include "weft/words/ledger.h"
#include "weft/words/megatron/megatron.h"

namespace weft::words {

using namespace config;
namespace {

using base::text;

// As a command line has it.
std::string text_of(const Written& written) {
  if (std::holds_alternative<std::monostate>(written)) return "null";
  if (const auto* word = std::get_if<std::string>(&written)) {
    if (*word == "True") return "true";
    return *word == "False" ? "false" : *word;
  }
  return text("[{}]", fmt::join(std::get<std::vector<std::string>>(written), ","));
}

class SettingReader {
 public:
  MeantSettings read(const std::vector<Setting>& settings) {
    for (const Setting& setting : settings) {
      const bool is_own = find_field(meant_key(setting.key)) != nullptr;
      const MegatronWord* word = is_own ? nullptr : find_megatron_key(setting.key);
      word == nullptr ? meant_.settings.push_back(setting) : mean(*word, setting);
    }
    return std::move(meant_);
  }

 private:
  void mean(const MegatronWord& word, const Setting& setting) {
    const std::string value = text_of(setting.value);
    const std::string typed = text("{}: {}={}", setting.where, setting.key, value);
    if (word.is_same(value)) return;
    const MegatronMeaning& meaning = word.meaning;
    switch (meaning.kind) {
      case MegatronMeaning::Kind::Sets:
        return set_all(word, setting);
      case MegatronMeaning::Kind::Idle:
        return warn(
            "H14",
            text("{}: {} changes nothing here: {}", setting.where, setting.key, meaning.text));
      case MegatronMeaning::Kind::Noted:
        return warn("H23", text("{} is not modelled: {}", shown(typed), meaning.text));
      case MegatronMeaning::Kind::Refused:
        return meant_.complaints.push_back(text("{}: {}", typed, meaning.text));
      case MegatronMeaning::Kind::Acts:
        return ask(typed, *meaning.effect, value, nullptr);
      case MegatronMeaning::Kind::Unmodelled:
      case MegatronMeaning::Kind::UnmodelledWith:
      case MegatronMeaning::Kind::AsKey:
        return ask(typed, Effect::Unmodelled, value, &word);
    }
  }

  void set_all(const MegatronWord& word, const Setting& setting) {
    for (const std::string& pattern : base::split(word.meaning.text, ' ')) {
      const std::size_t equals = pattern.find('=');
      const std::string key = pattern.substr(0, equals), given = pattern.substr(equals + 1);
      const Written written =
          given == "{}" ? setting.value : written_from_text(*find_field(key), given);
      meant_.settings.push_back({.key = key, .value = written, .where = setting.where});
    }
  }

  void ask(const std::string& typed,
           Effect effect,
           const std::string& value,
           const MegatronWord* word) {
    meant_.asked.push_back({.typed = typed,
                            .place = 0,
                            .key = "",
                            .value = std::nullopt,
                            .effect = effect,
                            .text = value,
                            .megatron = word});
  }

  void warn(std::string_view id, std::string message) {
    meant_.warnings.push_back({.id = std::string(id),
                               .key = "",
                               .from = nullptr,
                               .to = nullptr,
                               .message = std::move(message),
                               .fix = ""});
  }

  MeantSettings meant_;
};

}  // namespace

std::vector<std::string> megatron_sections() {
  std::vector<std::string> all;
  for (const MegatronWord& word : megatron_words()) {
    const std::string section = word.key.substr(0, word.key.find('.'));
    const bool is_section = word.key.find('.') != std::string::npos;
    if (is_section && std::ranges::find(all, section) == all.end()) all.push_back(section);
  }
  return all;
}

MeantSettings meant_settings(const std::vector<Setting>& settings) {
  return SettingReader().read(settings);
}

void apply_meant(const MeantSettings& meant,
                 Config& config,
                 std::vector<Finding>& warnings,
                 std::vector<std::string>& complaints) {
  for (const Setting& setting : meant.settings) apply(setting, config, complaints);
  warnings.insert(warnings.end(), meant.warnings.begin(), meant.warnings.end());
  complaints.insert(complaints.end(), meant.complaints.begin(), meant.complaints.end());
  if (meant.asked.empty()) return;
  Ledger ledger(config);
  for (const Asked& one : meant.asked) apply_effect(one, config, ledger);
  finish_effects(meant.asked, ledger);
  config = ledger.config();
  for (Finding& warning : ledger.take_warnings()) warnings.push_back(std::move(warning));
  for (std::string& complaint : ledger.take_complaints()) {
    complaints.push_back(std::move(complaint));
  }
}

}  // namespace weft::words
