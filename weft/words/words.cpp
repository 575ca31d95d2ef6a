#include "weft/words/words.h"

#include <algorithm>

#include "weft/base/check.h"
#include "weft/base/text.h"
#include "weft/config/blend_list.h"
#include "weft/config/field.h"
#include "weft/config/list_sum.h"
#include "weft/config/other_names.h"
#include "weft/words/harness/flags.h"
#include "weft/words/megatron/pasted.h"
#include "weft/words/megatron/split_data.h"
#include "weft/words/word_shapes.h"

namespace weft::words {

using namespace config;
namespace {

using base::text;

// Limit that no typed line reaches; rejects an endless script.
constexpr std::size_t kMostWords = 4096;

// Options of weft perf and weft schedule, which are parsed before the words.
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

class WordReader {
 public:
  WordReader(const MeantWords& meant, Audience audience)
      : words_(meant.words), places_(meant.places), audience_(audience), splits_(meant.words) {}

  Words read() {
    while (at_ < words_.size()) read_word();
    if (splits_.is_given()) set_data_of_splits();
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

  // Reads `a.b=c`; + and ++ are equivalent, since the config has every key.
  void read_setting(const std::string& word) {
    const std::size_t equals = word.find('=');
    const std::size_t start = std::min(word.find_first_not_of('+'), std::size_t{2});
    if (start >= equals) {
      return complain(
          text("override '{}': write key=value, as in model.num_layers=4", shown(word)));
    }
    const std::string key = word.substr(start, equals - start);
    if (const MegatronWord* megatron = megatron_key(key)) {
      return mean(*megatron, word, key, plain_value(word.substr(equals + 1)));
    }
    if (start > 0 && find_field(meant_key(key)) == nullptr) {
      return complain(text("'{}': {} adds no key: the config is typed, and has no '{}': {}",
                           shown(word),
                           word.substr(0, start),
                           shown(key),
                           hint(key, key_hint)));
    }
    set(word, key, word.substr(equals + 1));
  }

  // Reads `~a.b`. Hydra also accepts `~a.b=c`, which resets the key only if its value is c.
  void read_default(const std::string& word) {
    const std::string key = word.substr(1, word.find('=') - 1);
    if (word.find('=') != std::string::npos) {
      return complain(
          text("'{}': write ~{} to give the key back its default", shown(word), shown(key)));
    }
    if (megatron_key(key) != nullptr) return;  // the default matches Weft's behaviour
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

  // nullptr for Weft's own keys.
  static const MegatronWord* megatron_key(const std::string& key) {
    return find_field(meant_key(key)) == nullptr ? find_megatron_key(key) : nullptr;
  }

  // Value after a key's sign, without quotes and with YAML's switches.
  static std::string plain_value(std::string_view written) {
    const std::string value(unquoted(base::trim(written)));
    if (value == "True") return "true";
    return value == "False" ? "false" : value;
  }

  // Handles a word of Megatron-LM or Megatron Bridge; `name` is its flag or key.
  void mean(const MegatronWord& word,
            const std::string& typed,
            const std::string& name,
            const std::string& value) {
    if (word.is_same(value)) return;
    const MegatronMeaning& meaning = word.meaning;
    switch (meaning.kind) {
      case MegatronMeaning::Kind::Sets:
        return set_all(word, typed, value);
      case MegatronMeaning::Kind::Acts:
        return act(typed, *meaning.effect, value);
      case MegatronMeaning::Kind::Idle:
        return say_idle(name, std::string(meaning.text));
      case MegatronMeaning::Kind::Noted:
        return warn("H23", text("{} is not modelled: {}", shown(typed), meaning.text));
      case MegatronMeaning::Kind::Refused:
        return complain(text("{}: {}", name, meaning.text));
      case MegatronMeaning::Kind::Unmodelled:
      case MegatronMeaning::Kind::UnmodelledWith:
      case MegatronMeaning::Kind::AsKey:
        act(typed, Effect::Unmodelled, value);
        read_.asked.back().megatron = &word;
        return;
    }
    UNREACHABLE("kind {}", static_cast<int>(meaning.kind));
  }

  void set_all(const MegatronWord& word, const std::string& typed, const std::string& value) {
    const bool is_switch = word.takes == MegatronWord::Takes::Nothing;
    const bool follows = word.meaning.text.find("{}") != std::string_view::npos;
    if (is_switch && !follows && value != "true") {
      return complain(text("{}: it takes no value: leave it out", shown(typed)));
    }
    for (const std::string& pattern : base::split(word.meaning.text, ' ')) {
      const std::size_t equals = pattern.find('=');
      const std::string given = pattern.substr(equals + 1);
      set(typed, pattern.substr(0, equals), given == "{}" ? value : given);
    }
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

  // Handles --data-path with a path, with alternating weights and paths, or with paths.
  void set_data(const std::string& flag, std::vector<std::string> words) {
    set(flag, "dataset.kind", "indexed");
    if (words.size() == 1) return set(text("{} {}", flag, words[0]), "dataset.path", words[0]);
    set(flag, "dataset.blend", "[]");
    read_.asked.back().typed = text("{} {}", flag, fmt::join(words, " "));
    read_.asked.back().value = std::move(words);
  }

  void read_data_of_split(const std::string& name, const std::optional<std::string>& given) {
    std::vector<std::string> words = given ? std::vector{*given} : take_data();
    if (words.empty()) return complain(text("{} needs a value: a path", name));
    splits_.take(name, std::move(words));
  }

  void set_data_of_splits() {
    set(splits_.typed(), "dataset.kind", "indexed");
    set(splits_.typed(), "dataset.blend_per_split", "[]");
    read_.asked.back().value = splits_.blends();
  }

  void read_flag(const std::string& word) {
    const std::size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    std::optional<std::string> given;
    if (equals != std::string::npos) given = word.substr(equals + 1);
    if (splits_.reads(name)) return read_data_of_split(name, given);
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
    std::vector<std::string> values = take_all();
    if (given) values.insert(values.begin(), *given);
    const std::string key = name.substr(std::min(name.find_first_not_of('-'), name.size()));
    if (values.size() == 1 && find_field(meant_key(key)) != nullptr) {
      return complain(
          text("unknown flag '{}': write {}={}", shown(name), shown(key), shown(values[0])));
    }
    complain(text("unknown flag '{}': {}", shown(name), hint(name, flag_hint)));
  }

  // Takes the words up to the next flag or setting as the flag's values.
  std::vector<std::string> take_all() {
    std::vector<std::string> values;
    while (has_value() && !is_override(words_[at_])) values.push_back(words_[at_++]);
    read_.behind_flags.insert(read_.behind_flags.end(), values.begin(), values.end());
    return values;
  }

  void refuse_option(const CommandOption& option, const std::optional<std::string>& given) {
    complain(text("{} is for weft {}: leave it out here", option.name, option.command));
    const bool follows = at_ < words_.size() && !is_flag(words_[at_]);
    if (!given && option.takes != Takes::Nothing && follows) ++at_;
  }

  // True if the next word can only be the flag's value: the recipe is known already, or the word
  // cannot name one.
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
        if (!take_value(flag.name, flag.field ? flag.field->type : "a value", given)) return;
        break;
      case KebabFlag::Takes::Values:
        if (flag.megatron.word != nullptr && flag.field == nullptr) return read_many(flag, given);
        if (!take_value(flag.name, flag.field ? flag.field->type : "a value", given)) return;
        given = take_more(*flag.field, *given, wrote ? 0 : 1);
        break;
    }
    apply_kebab(flag, given);
  }

  // Handles Megatron-LM words with any number of values that are no list in Weft.
  void read_many(const KebabFlag& flag, const std::optional<std::string>& given) {
    const bool is_data = flag.megatron.word->meaning.effect == Effect::MegatronData;
    std::vector<std::string> values;
    if (given) {
      values.push_back(*given);
    } else {
      values = is_data ? take_data() : take_all();
    }
    if (!is_data) {
      const std::string list = text("{}", fmt::join(values, " "));
      return mean(*flag.megatron.word, text("{} {}", flag.name, list), flag.name, list);
    }
    if (values.empty()) return complain(text("{} needs a value: a path", flag.name));
    set_data(flag.name, std::move(values));
  }

  // Takes weights and paths. After a weight both may follow. After a path another word may be the
  // recipe, unless it is a path.
  std::vector<std::string> take_data() {
    std::vector<std::string> words;
    while (has_value()) {
      const std::string& word = words_[at_];
      const bool weighted = !words.empty() && base::parse_number(words[0]).has_value();
      const bool is_path = word.find('/') != std::string::npos;
      if (!words.empty() && !weighted && !is_path && !read_.recipe) break;
      words.push_back(word);
      ++at_;
    }
    return words;
  }

  void apply_kebab(const KebabFlag& flag, const std::optional<std::string>& given) {
    std::string typed = given ? text("{} {}", flag.name, *given) : flag.name;
    if (flag.megatron.word == nullptr) {
      const std::size_t equals = flag.set.find('=');
      const std::string value = flag.set.substr(equals + 1);
      return set(typed, flag.set.substr(0, equals), value == "{}" ? *given : value);
    }
    if (flag.takes != KebabFlag::Takes::Choice) {
      return mean(*flag.megatron.word, typed, flag.name, *given);
    }
    // Without a value it means true; --no-X means false.
    const bool on = *given == "true" || *given == "True";
    if (on) typed = flag.name;
    const bool says = on == flag.megatron.says;
    mean(*flag.megatron.word, typed, flag.name, says ? "true" : "false");
  }

  // Takes a list as one word with commas, or as several words of its type.
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
    given = current_value(flag, *given, words_);
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
        // The value may be a secret: the message names the flag only.
        return say_idle(text("--{}", flag.name), std::string(flag.does.text));
    }
  }

  bool has_value() const {
    return at_ < words_.size() && !is_flag(words_[at_]) && !is_setting(words_[at_]);
  }

  // Takes the word after a flag, unless `--flag=value` gave one.
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
    warn("H14", text("{} changes nothing here: {}", name, why));
  }

  void warn(std::string_view id, std::string message) {
    read_.warnings.push_back({.id = std::string(id),
                              .key = "",
                              .from = nullptr,
                              .to = nullptr,
                              .message = std::move(message),
                              .fix = ""});
  }

  void note_other_name(std::string_view key) {
    if (auto finding = other_name_finding(key)) read_.warnings.push_back(std::move(*finding));
  }

  // Limits the costly search for similar names: after many errors a hint is of no use.
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
  SplitData splits_;
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
