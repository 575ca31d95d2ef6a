#include "weft/words/pasted.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "weft/base/text.h"
#include "weft/config/codec.h"
#include "weft/config/field.h"
#include "weft/config/other_names.h"

namespace weft::words {

using namespace config;
namespace {

constexpr std::array<std::string_view, 5> kLaunchers{"uv", "python", "python3", "torchrun", "srun"};
constexpr std::string_view kRoot = "cfg.";

// CUDA_DEVICE_MAX_CONNECTIONS=1 before a program is for its environment.
bool is_variable(std::string_view word) {
  const std::string_view name = word.substr(0, word.find('='));
  const auto fits = [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  return name.size() < word.size() && !name.empty() && std::ranges::all_of(name, fits);
}

bool is_script(std::string_view word) { return word.ends_with(".py"); }

// How many of the first words start the program that the line was made for.
std::size_t start_of_another_program(std::span<const std::string> typed) {
  const auto first = std::ranges::find_if_not(typed, is_variable);
  if (first == typed.end()) return 0;
  const std::string_view program = std::string_view(*first).substr(first->rfind('/') + 1);
  if (std::ranges::find(kLaunchers, program) == kLaunchers.end() && !is_script(program)) return 0;
  const auto script = std::find_if(first, typed.end(), is_script);
  return script == typed.end() ? 0 : static_cast<std::size_t>(script - typed.begin()) + 1;
}

// Without the marks of an override and without `cfg.`.
std::string_view bare_key(std::string_view key) {
  key = base::trim(key.substr(std::min(key.find_first_not_of("+~"), key.size())));
  return key.starts_with(kRoot) ? key.substr(kRoot.size()) : key;
}

const Field* field_of(std::string_view key) { return find_field(meant_key(bare_key(key))); }

// Texts may be empty, so that `dataset.path= tiny` is a path that is cleared, and a recipe.
bool wants_a_value(std::string_view word) {
  if (!word.ends_with('=')) return false;
  const Field* field = field_of(word.substr(0, word.size() - 1));
  return field != nullptr && field->type != WordCodec<std::string>::one();
}

bool is_value(std::string_view word) {
  return !word.starts_with("--") && word.find('=') == std::string_view::npos;
}

// Takes the words of one request from `typed`, and says how many they are.
std::size_t join_one(std::span<const std::string> typed, std::string& joined) {
  joined = typed[0];
  std::size_t used = 1;
  const bool is_key = joined.find('=') == std::string::npos && field_of(joined) != nullptr;
  if (is_key && typed.size() > 1 && typed[1].starts_with('=')) {
    joined += typed[1];
    used = 2;
    if (typed[1] == "=" && typed.size() > 2 && is_value(typed[2])) joined += typed[used++];
  } else if (typed.size() > 1 && wants_a_value(joined) && is_value(typed[1])) {
    joined += typed[used++];
  }
  return used;
}

// `cfg.a.b = c` as `a.b=c`; anything but a setting is left as it is.
std::string plain(const std::string& word) {
  const std::size_t equals = word.find('=');
  const bool is_setting = equals != std::string::npos || word.starts_with('~');
  if (word.starts_with('-') || !is_setting) return word;
  const std::string key = word.substr(0, equals);
  const std::string marks = key.substr(0, std::min(key.find_first_not_of("+~"), key.size()));
  const std::string bare(bare_key(key));
  if (equals == std::string::npos) return marks + bare;
  const std::string_view value = std::string_view(word).substr(equals + 1);
  const bool spaced = key.ends_with(' ');
  return base::text("{}{}={}", marks, bare, spaced ? base::trim(value) : value);
}

}  // namespace

MeantWords meant_words(std::span<const std::string> typed) {
  MeantWords meant;
  std::size_t at = start_of_another_program(typed);
  while (at < typed.size()) {
    std::string joined;
    meant.places.push_back(static_cast<int>(at) + 1);
    at += join_one(typed.subspan(at), joined);
    meant.words.push_back(plain(joined));
  }
  return meant;
}

}  // namespace weft::words
