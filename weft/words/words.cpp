#include "weft/words/words.h"

#include <algorithm>

#include "weft/base/text.h"
#include "weft/config/field.h"
#include "weft/config/list_sum.h"
#include "weft/config/other_names.h"
#include "weft/words/flags.h"
#include "weft/words/pasted.h"

namespace weft::words {

using namespace config;
namespace {

using base::text;

// Far more than anyone types; a script that goes on forever is refused.
constexpr std::size_t kMostWords = 4096;

// Whether a word sets or gives back a key that exists, so that it is not the value of a flag.
bool is_setting(std::string_view word) {
  const std::size_t start = word.find_first_not_of("+~");
  if (start == std::string_view::npos) return false;
  const std::string_view rest = word.substr(start);
  const std::string_view key = rest.substr(0, rest.find('='));
  const bool sets = key.size() < rest.size() || word.front() == '~';
  return sets && find_field(meant_key(key)) != nullptr;
}

// Options of weft perf and weft schedule, which read them before the words.
struct CommandOption {
  std::string_view name, command;
  Takes takes;
};
constexpr CommandOption kCommandOptions[] = {{"--vary", "perf", Takes::Text},
                                             {"--grid", "perf", Takes::Nothing},
                                             {"--twin", "perf", Takes::Nothing},
                                             {"--against", "perf", Takes::Text},
                                             {"--out", "perf", Takes::Text},
                                             {"--flags", "perf", Takes::Nothing},
                                             {"--svg", "schedule", Takes::Text},
                                             {"--costs", "schedule", Takes::Text},
                                             {"--overwrite", "train", Takes::Nothing}};

// Whether a word is a value whatever stands before it: a number, a switch, a list.
bool is_plain_value(std::string_view word) {
  for (const char* said : {"yes", "no", "on", "off", "none", "None", "null"}) {
    if (word == said) return true;
  }
  return base::parse_number(word).has_value() || WordCodec<bool>::parse(std::string(word)) ||
         word.starts_with('[') || word.starts_with('(');
}

class WordReader {
 public:
  WordReader(const MeantWords& meant, Audience audience)
      : words_(meant.words), places_(meant.places), audience_(audience) {}

  Words read() {
    while (at_ < words_.size()) read_word();
    return std::move(read_);
  }

 private:
  void read_word() {
    place_ = places_[at_];
    const std::string& word = words_[at_++];
    if (is_flag(word)) return read_flag(word);
    if (!word.empty() && word.front() == '~') return read_default(word);
    if (word.find('=') != std::string::npos) return read_setting(word);
    read_recipe(word);
  }

  void read_recipe(const std::string& word) {
    if (read_.recipe) {
      complain(text("two recipes, '{}' and '{}': give one; an override is written a.b=c",
                    shown(*read_.recipe),
                    shown(word)));
    } else if (word.empty()) {
      complain(text("word {} is empty: leave it out", place_));
    } else {
      read_.recipe = word;
    }
  }

  // `a.b=c`; + and ++ say the same, since the config has every key already.
  void read_setting(const std::string& word) {
    const std::size_t equals = word.find('=');
    const std::size_t start = std::min(word.find_first_not_of('+'), std::size_t{2});
    if (start >= equals) {
      return complain(
          text("override '{}': write key=value, as in model.num_layers=4", shown(word)));
    }
    const std::string key = word.substr(start, equals - start);
    if (start > 0 && find_field(meant_key(key)) == nullptr) {
      return complain(text("'{}': {} adds no key: the config is typed, and has no '{}': {}",
                           shown(word),
                           word.substr(0, start),
                           shown(key),
                           hint(key, key_hint)));
    }
    set(word, key, word.substr(equals + 1));
  }

  // `~a.b`; Hydra also takes `~a.b=c`, which gives the key back only where c is its value.
  void read_default(const std::string& word) {
    const std::string key = word.substr(1, word.find('=') - 1);
    if (word.find('=') != std::string::npos) {
      return complain(
          text("'{}': write ~{} to give the key back its default", shown(word), shown(key)));
    }
    const std::string meant = meant_key(key);
    if (find_field(meant) == nullptr) {
      return complain(
          text("'{}': unknown key '{}': {}", shown(word), shown(key), hint(key, key_hint)));
    }
    note_other_name(key);
    read_.asked.push_back({.typed = word,
                           .place = place_,
                           .key = meant,
                           .value = std::nullopt,
                           .effect = std::nullopt,
                           .text = ""});
  }

  void set(const std::string& typed, std::string_view key, std::string_view value) {
    const std::string meant = meant_key(key);
    const Field* field = find_field(meant);
    if (field == nullptr) {
      return complain(text("override '{}': unknown key '{}': {}",
                           shown(typed),
                           shown(key),
                           hint(key, key_hint)));
    }
    note_other_name(key);
    read_.asked.push_back({.typed = typed,
                           .place = place_,
                           .key = meant,
                           .value = meant_value(meant, written_from_word(*field, value)),
                           .effect = std::nullopt,
                           .text = ""});
  }

  void act(const std::string& typed, Effect effect, std::string_view value) {
    read_.asked.push_back({.typed = typed,
                           .place = place_,
                           .key = "",
                           .value = std::nullopt,
                           .effect = effect,
                           .text = std::string(value)});
  }

  void read_flag(const std::string& word) {
    const std::size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    std::optional<std::string> given;
    if (equals != std::string::npos) given = word.substr(equals + 1);
    if (name == "--config-file") return read_file(name, given);
    if (const HarnessFlag* flag = find_harness_flag(name)) return read_harness(*flag, name, given);
    if (const auto flag = find_kebab_flag(name)) return read_kebab(*flag, given);
    if (const HarnessFlag* flag = find_harness_prefix(name)) {
      return read_harness(*flag, name, given);
    }
    refuse_flag(name, given);
  }

  void refuse_flag(const std::string& name, std::optional<std::string> given) {
    for (const CommandOption& option : kCommandOptions) {
      if (option.name == name) return refuse_option(option, given);
    }
    if (!given && is_value_next()) given = words_[at_++];
    const std::string key = name.substr(std::min(name.find_first_not_of('-'), name.size()));
    if (given && find_field(meant_key(key)) != nullptr) {
      return complain(
          text("unknown flag '{}': write {}={}", shown(name), shown(key), shown(*given)));
    }
    complain(text("unknown flag '{}': {}", shown(name), hint(name, flag_hint)));
    // What follows may be more values of it: none is told to be a second recipe.
    while (given && is_value_next()) ++at_;
  }

  void refuse_option(const CommandOption& option, const std::optional<std::string>& given) {
    complain(text("{} is for weft {}: leave it out here", option.name, option.command));
    const bool follows = at_ < words_.size() && !is_flag(words_[at_]);
    if (!given && option.takes != Takes::Nothing && follows) ++at_;
  }

  // Whether the next word can only be the value of the flag before it: the recipe is known already,
  // or no recipe is called so.
  bool is_value_next() const {
    if (!has_value() || words_[at_].starts_with('~')) return false;
    if (words_[at_].find('=') != std::string::npos) return false;
    return read_.recipe.has_value() || is_plain_value(words_[at_]);
  }

  void read_file(const std::string& name, std::optional<std::string> given) {
    if (take_value(name, "a YAML file of the shape of a recipe", given)) {
      read_.files.emplace_back(*given);
    }
  }

  static bool is_left_to_run(const KebabFlag& flag, const std::string& given) {
    return given == "auto" && flag.field != nullptr &&
           flag.field->type == WordCodec<config::AutoSwitch>::one();
  }

  void read_kebab(const KebabFlag& flag, std::optional<std::string> given) {
    const bool wrote = given.has_value();
    switch (flag.takes) {
      case KebabFlag::Takes::Nothing:
        if (!wrote && at_ < words_.size() && is_plain_value(words_[at_])) given = words_[at_++];
        if (given)
          return complain(text("{} takes no value: leave '{}' out", flag.name, shown(*given)));
        break;
      case KebabFlag::Takes::Choice:
        if (!wrote && is_value_next()) given = words_[at_++];
        if (!given) given = "true";
        if (!WordCodec<bool>::parse(*given) && *given != "null" && !is_left_to_run(flag, *given)) {
          return complain(text("{} {}: it takes true or false, or nothing, which is true",
                               flag.name,
                               shown(*given)));
        }
        break;
      case KebabFlag::Takes::Value:
      case KebabFlag::Takes::Values:
        if (!take_value(flag.name, flag.field ? flag.field->type : "a value", given)) return;
        break;
    }
    if (flag.takes == KebabFlag::Takes::Values)
      given = take_more(*flag.field, *given, wrote ? 0 : 1);
    apply_kebab(flag, given);
  }

  void apply_kebab(const KebabFlag& flag, const std::optional<std::string>& given) {
    const std::string typed = given ? text("{} {}", flag.name, *given) : flag.name;
    if (!flag.refusal.empty()) return complain(text("{}: {}", flag.name, flag.refusal));
    if (flag.effect) return act(typed, *flag.effect, given.value_or(""));
    if (!flag.only.empty() && *given != flag.only) {
      return complain(text("{} {}: {}: leave it out, or write {}",
                           flag.name,
                           shown(*given),
                           flag.note,
                           flag.only));
    }
    if (flag.sets.empty()) return say_idle(flag.name, flag.note);
    for (const std::string& pattern : flag.sets) {
      const std::size_t equals = pattern.find('=');
      const std::string value = pattern.substr(equals + 1);
      set(typed, pattern.substr(0, equals), value == "{}" ? *given : value);
    }
  }

  // A list as one word with commas, or as several words: those that follow and are of its type.
  std::string take_more(const Field& field, std::string list, std::size_t words_follow) {
    if (expand_list_sum(list)) return list;
    if (!list.starts_with('[')) list = text("[{}]", list);
    const bool texts = field.type.find(WordCodec<std::string>::many()) != std::string::npos;
    Config scratch;
    while (words_follow > 0 && !texts && at_ < words_.size() && !is_flag(words_[at_]) &&
           list != "[]" && field.set(scratch, Written(words_[at_]))) {
      list.insert(list.size() - 1, "," + words_[at_++]);
    }
    return list;
  }

  void read_harness(const HarnessFlag& flag,
                    const std::string& name,
                    std::optional<std::string> given) {
    if (flag.takes == Takes::Nothing) {
      if (given) return complain(text("{} takes no value: leave '={}' out", name, shown(*given)));
      return apply_harness(flag, name, "true");
    }
    if (flag.takes == Takes::MaybeInteger && !given &&
        !(at_ < words_.size() && accepted_value(flag, words_[at_]))) {
      return;
    }
    if (!take_value(name, takes_text(flag), given)) return;
    const std::optional<std::string> accepted = accepted_value(flag, *given);
    if (!accepted) {
      return complain(text("{} {}: it takes {}", name, shown(*given), takes_text(flag)));
    }
    apply_harness(flag, text("{} {}", name, *given), *accepted);
  }

  void apply_harness(const HarnessFlag& flag, const std::string& typed, const std::string& value) {
    select(flag, value, read_.harness);
    switch (flag.does.kind) {
      case Does::Kind::SetsKey:
        return set(typed, flag.does.text, value);
      case Does::Kind::Acts:
        return act(typed, flag.does.effect, value);
      case Does::Kind::Selects:
        if (audience_ == Audience::Run && !chooses_recipe(flag)) {
          say_idle(text("--{}", flag.name), "it is for the measurement of weft perf");
        }
        return;
      case Does::Kind::Nothing:
        // The value may be a secret: only the flag is named.
        return say_idle(text("--{}", flag.name), std::string(flag.does.text));
    }
  }

  bool has_value() const {
    return at_ < words_.size() && !is_flag(words_[at_]) && !is_setting(words_[at_]);
  }

  // The word after a flag, unless `--flag=value` gave one.
  bool take_value(const std::string& name,
                  std::string_view wanted,
                  std::optional<std::string>& given) {
    if (given) return true;
    if (!has_value()) {
      complain(text("{} needs a value: {}", name, wanted));
      return false;
    }
    given = words_[at_++];
    return true;
  }

  void say_idle(const std::string& name, const std::string& why) {
    read_.warnings.push_back({.id = "H14",
                              .key = "",
                              .from = nullptr,
                              .to = nullptr,
                              .message = text("{} changes nothing here: {}", name, why),
                              .fix = ""});
  }

  void note_other_name(std::string_view key) {
    if (auto finding = other_name_finding(key)) read_.warnings.push_back(std::move(*finding));
  }

  // Looking for the nearest name costs; after this many mistakes nobody reads it.
  std::string hint(std::string_view name, std::string (*nearest)(std::string_view)) const {
    constexpr std::size_t kMostHints = 20;
    return read_.complaints.size() < kMostHints ? nearest(name) : "`weft config` lists every key";
  }

  void complain(std::string what) { read_.complaints.push_back(std::move(what)); }

  std::span<const std::string> words_;
  std::span<const int> places_;
  Audience audience_;
  std::size_t at_ = 0;
  int place_ = 0;
  Words read_;
};

}  // namespace

Words read_words(std::span<const std::string> words, Audience audience) {
  if (words.size() > kMostWords) {
    Words refused;
    refused.complaints.push_back(
        text("{} words on the command line: use at most {}, and --config-file for the rest",
             words.size(),
             kMostWords));
    return refused;
  }
  MeantWords meant = meant_words(words);
  Words read = WordReader(meant, audience).read();
  read.meant = std::move(meant.words);
  read.program = std::move(meant.program);
  read.launch = meant.launch;
  HarnessSelection& harness = read.harness;
  if (harness.recipe.empty() && !harness.size.empty()) {
    harness.recipe = harness.family.empty() ? harness.size : harness.family + "_" + harness.size;
  }
  return read;
}

std::string place_text(const Asked& asked) {
  return text("word {} '{}'", asked.place, shown(asked.typed));
}

Written written_from_word(const Field& field, std::string_view typed) {
  const std::string_view word = base::trim(typed);
  const bool is_text = field.type == WordCodec<std::string>::one();
  if (is_text && word == "null") return std::string();
  const bool quoted = word.size() >= 2 && word.front() == word.back() &&
                      (word.front() == '"' || word.front() == '\'');
  if (quoted) return std::string(word.substr(1, word.size() - 2));
  return written_from_text(field, typed);
}

}  // namespace weft::words
