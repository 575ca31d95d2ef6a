#include "weft/cli/shell/completion_words.h"

#include <algorithm>

#include "weft/base/text.h"
#include "weft/cli/plan/hardware_folder.h"
#include "weft/cli/shell/completion_scripts.h"
#include "weft/config/field.h"
#include "weft/rules/advice/advice.h"
#include "weft/rules/parallel/tp_presets.h"
#include "weft/rules/rule.h"
#include "weft/words/harness/flags.h"
#include "weft/words/harness/harness_flags.h"

namespace weft::cli {
namespace {

using base::text;

// Values listed in "one of e4m3, hybrid or null" and "true or false".
std::vector<std::string> words_of(const config::Field& field) {
  std::string_view type = field.type;
  std::vector<std::string> words;
  constexpr std::string_view kNull = " or null", kOneOf = "one of ";
  const bool optional = type.ends_with(kNull);
  if (optional) type.remove_suffix(kNull.size());
  const std::size_t list = type.find(kOneOf);
  if (type == "true or false") {
    words = {"true", "false"};
  } else if (type == config::WordCodec<config::AutoSwitch>::one()) {
    words = {"true", "false", "auto"};
  } else if (list != std::string_view::npos) {
    for (const std::string& word : base::split(type.substr(list + kOneOf.size()), ',')) {
      words.emplace_back(base::trim(word));
    }
  }
  if (optional && !words.empty()) words.emplace_back("null");
  return words;
}

// Ids for `weft check --explain`.
std::vector<std::string> rule_ids() {
  std::vector<std::string> ids;
  for (const rules::Rule& rule : rules::rules()) {
    ids.emplace_back(rule.id);
    if (!rule.also.empty()) std::ranges::move(base::split(rule.also, ' '), std::back_inserter(ids));
  }
  for (const rules::Advice& advice : rules::all_advice()) ids.emplace_back(advice.id);
  for (const rules::TpPreset& preset : rules::tp_presets()) ids.emplace_back(preset.name);
  return ids;
}

std::vector<std::string> options_of(const CLI::App& command) {
  std::vector<std::string> all;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) all.push_back("--" + name);
  }
  return all;
}

CommandWords words_of(const CLI::App& command, const std::string& name) {
  return {.name = name,
          .options = options_of(command),
          .first = {},
          .takes_run = command.get_allow_extras()};
}

}  // namespace

Table choices() {
  Table all;
  for (const config::Field& field : config::fields()) all.push_back({field.key, words_of(field)});
  for (const std::string& name : words::kebab_flag_names()) {
    const auto flag = words::find_kebab_flag(name);
    const bool open = !flag || flag->field == nullptr || name.starts_with("--no-");
    if (open) continue;
    // weft plan takes --gpu too, and prices only GPUs with a hardware file.
    const bool is_gpu = name == "--gpu";
    all.push_back(
        {name, is_gpu ? plan::known_hardware(hardware_folder()) : words_of(*flag->field)});
  }
  for (const words::HarnessFlag& flag : words::harness_flags()) {
    std::vector<std::string> words;
    if (!flag.words.empty()) words = base::split(flag.words, ' ');
    if (flag.takes == words::Takes::Switch) words = {"true", "false"};
    if (flag.name == "gpu") words = plan::known_hardware(hardware_folder());
    if (flag.name == "moe_flex_dispatcher_backend") words = {"deepep", "hybridep", "None"};
    all.push_back({text("--{}", flag.name), words});
    if (!flag.brief.empty()) all.push_back({text("-{}", flag.brief), words});
  }
  all.push_back({"--explain", rule_ids()});
  std::erase_if(all, [](const Choice& choice) { return choice.words.empty(); });
  return all;
}

std::vector<std::string> keys() {
  std::vector<std::string> all{"world="};
  for (const config::Field& field : config::fields()) all.push_back(field.key + "=");
  return all;
}

std::vector<std::string> flags() {
  std::vector<std::string> all = words::kebab_flag_names();
  for (const words::HarnessFlag& flag : words::harness_flags()) {
    all.push_back(text("--{}", flag.name));
  }
  return all;
}

std::vector<CommandWords> commands_of(const CLI::App& program) {
  std::vector<CommandWords> all;
  for (const CLI::App* command : program.get_subcommands({})) {
    CommandWords words = words_of(*command, command->get_name());
    std::vector<CommandWords> inner;
    for (const CLI::App* each : command->get_subcommands({})) {
      words.first.push_back(each->get_name());
      inner.push_back(words_of(*each, text("{} {}", words.name, each->get_name())));
    }
    if (words.name == "completion") words.first = {kShells.begin(), kShells.end()};
    all.push_back(std::move(words));
    std::ranges::move(inner, std::back_inserter(all));
  }
  return all;
}

}  // namespace weft::cli
