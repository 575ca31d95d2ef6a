#include "weft/words/harness/flags.h"

#include <algorithm>
#include <array>
#include <map>

#include "weft/base/check.h"
#include "weft/base/text.h"
#include "weft/config/opposite.h"

namespace weft::words {

using namespace config;
namespace {

using base::text;
using FlagTakes = KebabFlag::Takes;

// Order of sections in the lookup of a bare name; the others follow in their own order.
int preference(const Field& field) {
  constexpr std::array<std::string_view, 5> kFirst{"comm_overlap",
                                                   "model",
                                                   "train",
                                                   "optimizer",
                                                   "ddp"};
  const auto at = std::ranges::find(kFirst, field.section);
  return static_cast<int>(at - kFirst.begin());
}

std::string kebab(std::string_view name) {
  std::string all = "--" + std::string(name);
  std::ranges::replace(all, '_', '-');
  return all;
}

// Field of each derived name.
const std::map<std::string, const Field*, std::less<>>& derived_names() {
  static const std::map<std::string, const Field*, std::less<>> all = [] {
    std::map<std::string, const Field*, std::less<>> made;
    for (const Field& field : fields()) {
      const auto [at, fresh] = made.emplace(kebab(field.name), &field);
      if (!fresh && preference(field) < preference(*at->second)) at->second = &field;
    }
    return made;
  }();
  return all;
}

bool is_switch(const Field& field) { return field.type.starts_with(WordCodec<bool>::one()); }

bool takes_list(const Field& field) {
  return field.shape == Shape::List || field.shape == Shape::OptionalList;
}

KebabFlag flag_of(const std::string& name, const Field& field, FlagTakes takes, std::string value) {
  return {.name = name,
          .takes = takes,
          .set = text("{}={}", field.key, value),
          .field = &field,
          .megatron = {}};
}

FlagTakes takes_of(const MegatronWord& word) {
  switch (word.takes) {
    case MegatronWord::Takes::Nothing:
      return FlagTakes::Choice;
    case MegatronWord::Takes::Value:
      return FlagTakes::Value;
    case MegatronWord::Takes::Values:
      return FlagTakes::Values;
  }
  UNREACHABLE("takes {}", static_cast<int>(word.takes));
}

// True for words with an effect in Weft.
bool is_offered(const MegatronWord& word) {
  const bool does = word.meaning.kind == MegatronMeaning::Kind::Sets ||
                    word.meaning.kind == MegatronMeaning::Kind::Acts;
  return does && !word.flag.empty();
}

std::optional<KebabFlag> derived_flag(std::string_view name) {
  const auto& names = derived_names();
  if (const auto at = names.find(name); at != names.end()) {
    const Field& field = *at->second;
    const FlagTakes takes = is_switch(field)    ? FlagTakes::Choice
                            : takes_list(field) ? FlagTakes::Values
                                                : FlagTakes::Value;
    return flag_of(at->first, field, takes, "{}");
  }
  constexpr std::string_view kNo = "--no-";
  if (!name.starts_with(kNo)) return std::nullopt;
  const auto at = names.find("--" + std::string(name.substr(kNo.size())));
  if (at == names.end() || !is_switch(*at->second)) return std::nullopt;
  return flag_of(std::string(name), *at->second, FlagTakes::Nothing, "false");
}

// Most similar flag; leading dashes do not count. Excludes flags of the opposite meaning.
std::optional<std::string> nearest_flag(std::string_view letters) {
  std::vector<std::string> names;
  const auto add = [&](std::string name) {
    if (!is_opposite(letters, name)) names.push_back(std::move(name));
  };
  for (const std::string& name : kebab_flag_names()) add(name.substr(2));
  for (const MegatronWord& word : megatron_words()) {
    if (word.flag.empty()) continue;
    if (!is_offered(word)) add(word.flag.substr(2));
    if (word.has_opposite() && word.says) add("no-" + word.flag.substr(2));
  }
  for (const HarnessFlag& flag : harness_flags()) add(std::string(flag.name));
  return base::nearest(letters, names);
}

}  // namespace

bool is_flag(std::string_view word) {
  return word.size() >= 2 && word.front() == '-' && !base::parse_number(word);
}

std::optional<KebabFlag> find_kebab_flag(std::string_view name) {
  const MegatronFlag megatron = find_megatron_flag(name);
  if (megatron.word == nullptr) return derived_flag(name);
  const auto at = derived_names().find(name);
  return KebabFlag{.name = std::string(name),
                   .takes = takes_of(*megatron.word),
                   .set = "",
                   .field = at == derived_names().end() ? nullptr : at->second,
                   .megatron = megatron};
}

std::vector<std::string> kebab_flag_names() {
  std::vector<std::string> names{"--config-file"};
  for (const MegatronWord& word : megatron_words()) {
    if (is_offered(word)) names.push_back(word.flag);
  }
  for (const auto& [name, field] : derived_names()) {
    names.push_back(name);
    if (is_switch(*field)) names.push_back("--no-" + name.substr(2));
  }
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

std::string flag_hint(std::string_view name) {
  const std::string_view letters = name.substr(std::min(name.find_first_not_of('-'), name.size()));
  if (find_field(letters) != nullptr) return text("write {}=VALUE, without dashes", letters);
  // snake_case belongs to the harness; a key's own flag is in kebab-case.
  std::string wanted(name);
  std::ranges::replace(wanted, '_', '-');
  if (find_kebab_flag(wanted)) return text("did you mean '{}'?", wanted);
  if (const auto near = name.size() <= 128 ? nearest_flag(letters) : std::nullopt) {
    return text("did you mean '--{}'?", *near);
  }
  return "flags are named after keys, as in --num-layers for model.num_layers; `weft config` lists "
         "every key";
}

}  // namespace weft::words
