#include "weft/words/megatron/pasted.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string_view>

#include "weft/base/text.h"
#include "weft/config/codec.h"
#include "weft/config/field.h"
#include "weft/config/other_names.h"
#include "weft/words/harness/flags.h"
#include "weft/words/megatron/launch.h"
#include "weft/words/megatron/shell_words.h"

namespace weft::words {

using namespace config;
namespace {

constexpr std::string_view kRoot = "cfg.";

// CUDA_DEVICE_MAX_CONNECTIONS=1 before a program is an environment variable.
bool is_variable(std::string_view word) {
  const std::string_view name = word.substr(0, word.find('='));
  const auto fits = [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  return name.size() < word.size() && !name.empty() && std::ranges::all_of(name, fits);
}

// True if `next` is the value of the flag before it. For a flag outside of the harness's table it
// is, unless it starts a program.
bool is_value_of(std::string_view flag, std::string_view next) {
  if (flag.find('=') != std::string_view::npos || is_flag(next) || is_variable(next)) return false;
  const HarnessFlag* known = find_harness_flag(flag);
  return known != nullptr ? known->takes != Takes::Nothing : !is_program(next);
}

// Key without override marks and without `cfg.`.
std::string_view bare_key(std::string_view key) {
  key = base::trim(key.substr(std::min(key.find_first_not_of("+~"), key.size())));
  return key.starts_with(kRoot) ? key.substr(kRoot.size()) : key;
}

const Field* field_of(std::string_view key) { return find_field(meant_key(bare_key(key))); }

// True for `a.b=c` with an existing key.
bool sets_key(std::string_view word) {
  const std::size_t equals = word.find('=');
  return equals != std::string_view::npos && field_of(word.substr(0, equals)) != nullptr;
}

// Launch part of a pasted line.
struct Start {
  std::vector<std::size_t> kept;  // words before it: settings, and flags for Weft with their values
  std::string program;            // script or module
  Launch launch;
  std::size_t rest = 0;  // first word after it
};

// Word after the script, or after the module of `-m`; nullopt: the line names neither.
std::optional<std::size_t> end_of_start(std::span<const std::string> typed, std::size_t at) {
  std::string_view program;
  for (; at < typed.size(); ++at) {
    const std::string& word = typed[at];
    if (is_script(word)) return at + 1;
    if (is_program(word)) program = word;
    const bool names_module = word == "-m" && takes_module(program) && at + 1 < typed.size();
    if (!names_module) continue;
    if (!is_launcher_module(typed[++at])) return at + 1;
    program = "torchrun";
  }
  return std::nullopt;
}

Start start_of_another_program(std::span<const std::string> typed) {
  Start start;
  std::size_t at = 0;
  for (; at < typed.size(); ++at) {
    if (is_variable(typed[at])) continue;
    if (!is_flag(typed[at]) && !sets_key(typed[at])) break;
    start.kept.push_back(at);
    if (sets_key(typed[at])) continue;
    if (at + 1 < typed.size() && is_value_of(typed[at], typed[at + 1])) start.kept.push_back(++at);
  }
  if (at == typed.size() || !is_program(typed[at])) return {};
  const std::optional<std::size_t> end = end_of_start(typed, at);
  if (!end) return {};
  start.rest = *end;
  start.program = typed[*end - 1];
  start.launch = launch_of(typed.subspan(at, *end - 1 - at));
  start.launch.place += static_cast<int>(at);
  return start;
}

// True if a word is a whole quoted line: it begins with a program, a variable or a flag, and
// continues.
bool is_quoted_line(std::string_view word) {
  const std::size_t space = word.find_first_of(" \t\n");
  if (space == std::string_view::npos) return false;
  const std::string_view first = word.substr(0, space);
  if (is_variable(first)) return true;
  if (is_program(first)) return true;
  if (first == "cd" || first == "export" || first == "set") return true;
  return is_flag(first) && first.find('=') == std::string_view::npos;
}

// Words as typed, with a quoted line split in place.
struct TypedWords {
  std::vector<std::string> words;
  std::vector<int> places;
};
TypedWords without_quotes(std::span<const std::string> typed) {
  TypedWords all;
  for (std::size_t at = 0; at < typed.size(); ++at) {
    std::vector<std::string> words =
        is_quoted_line(typed[at]) ? shell_words(typed[at]) : std::vector{typed[at]};
    all.places.insert(all.places.end(), words.size(), static_cast<int>(at) + 1);
    std::ranges::move(words, std::back_inserter(all.words));
  }
  return all;
}

// True if a value must follow. Texts may be empty: `dataset.path= tiny` clears the path and names a
// recipe.
bool wants_a_value(std::string_view word) {
  if (!word.ends_with('=')) return false;
  const Field* field = field_of(word.substr(0, word.size() - 1));
  return field != nullptr && field->type != WordCodec<std::string>::one();
}

bool is_value(std::string_view word) {
  return !word.starts_with("--") && word.find('=') == std::string_view::npos;
}

// Joins the words of one request from `typed`; returns their number.
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

// `cfg.a.b = c` as `a.b=c`; other words stay.
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

MeantWords meant_words(std::span<const std::string> as_typed) {
  const auto [typed, places] = without_quotes(as_typed);
  MeantWords meant;
  Start start = start_of_another_program(typed);
  meant.program = std::move(start.program);
  meant.launch = start.launch;
  for (const std::size_t kept : start.kept) {
    meant.places.push_back(places[kept]);
    meant.words.push_back(plain(typed[kept]));
  }
  if (start.launch.processes) {
    meant.launch.place = places[static_cast<std::size_t>(start.launch.place) - 1];
    meant.places.push_back(meant.launch.place);
    meant.words.push_back(base::text("world={}", *start.launch.processes));
  }
  std::size_t at = start.rest;
  while (at < typed.size()) {
    std::string joined;
    meant.places.push_back(places[at]);
    at += join_one(std::span(typed).subspan(at), joined);
    meant.words.push_back(plain(joined));
  }
  return meant;
}

}  // namespace weft::words
