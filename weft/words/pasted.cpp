#include "weft/words/pasted.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "weft/base/text.h"
#include "weft/config/codec.h"
#include "weft/config/field.h"
#include "weft/config/other_names.h"
#include "weft/words/flags.h"

namespace weft::words {

using namespace config;
namespace {

constexpr std::array<std::string_view, 7>
    kLaunchers{"uv", "python", "python3", "torchrun", "srun", "mpirun", "mpiexec"};
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

std::string_view file_name(std::string_view word) { return word.substr(word.rfind('/') + 1); }

bool is_program(std::string_view word) {
  const std::string_view name = file_name(word);
  return std::ranges::find(kLaunchers, name) != kLaunchers.end() || is_script(name);
}

// How many processes a start asks for, and where it says so, from 1.
struct Processes {
  std::int64_t count = 1;
  int place = 1;
};

// The numbers of torchrun, srun and mpirun that say it.
class LaunchedProcesses {
 public:
  explicit LaunchedProcesses(std::span<const std::string> start) : start_(start) {
    for (std::size_t at = 0; at < start_.size(); ++at) read(at);
  }

  // Nothing where the start does not say it, or not as a number.
  std::optional<Processes> asked() const {
    if (all_) return Processes{*all_, place_};
    if (!on_each_) return std::nullopt;
    return Processes{*on_each_ * machines_.value_or(1), place_};
  }

 private:
  static constexpr double kMost = 1 << 20;

  void read(std::size_t at) {
    if (is_program(start_[at])) by_slurm_ = file_name(start_[at]) == "srun";
    const std::string& word = start_[at];
    const std::size_t equals = word.find('=');
    std::string name = word.substr(0, equals);
    std::ranges::replace(name, '_', '-');
    const bool apart = equals == std::string::npos;
    if (apart && at + 1 == start_.size()) return;
    const std::optional<double> number =
        base::parse_number(apart ? start_[at + 1] : word.substr(equals + 1));
    if (!number || !(*number >= 1 && *number <= kMost)) return;
    const auto count = static_cast<std::int64_t>(*number);
    if (static_cast<double>(count) != *number) return;
    const bool is_all = name == "-n" || name == "-np" || name == "--np" || name == "--ntasks";
    const bool is_each = name == "--nproc-per-node" || name == "--ntasks-per-node";
    const bool is_machines = name == "--nnodes" || name == "--nodes" || (name == "-N" && by_slurm_);
    if (is_all) all_ = count;
    if (is_each) on_each_ = count;
    if (is_machines) machines_ = count;
    if (is_all || is_each) place_ = static_cast<int>(at) + 1;
  }

  std::span<const std::string> start_;
  bool by_slurm_ = false;
  std::optional<std::int64_t> all_, on_each_, machines_;
  int place_ = 1;
};

// Whether `next` is the value of the flag before it. Of a flag that is not in the harness's table
// it is one unless it starts a program.
bool is_value_of(std::string_view flag, std::string_view next) {
  if (flag.find('=') != std::string_view::npos || is_flag(next) || is_variable(next)) return false;
  const HarnessFlag* known = find_harness_flag(flag);
  return known != nullptr ? known->takes != Takes::Nothing : !is_program(next);
}

// The part of a line that starts the program it was made for.
struct Start {
  std::vector<std::size_t> kept;  // words before it, which are flags for Weft and their values
  std::optional<Processes> processes;
  std::size_t rest = 0;  // the first word after it
};

Start start_of_another_program(std::span<const std::string> typed) {
  Start start;
  std::size_t at = 0;
  for (; at < typed.size(); ++at) {
    if (is_variable(typed[at])) continue;
    if (!is_flag(typed[at])) break;
    start.kept.push_back(at);
    if (at + 1 < typed.size() && is_value_of(typed[at], typed[at + 1])) start.kept.push_back(++at);
  }
  if (at == typed.size() || !is_program(typed[at])) return {};
  const auto begin = typed.begin() + static_cast<std::ptrdiff_t>(at);
  const auto script = std::find_if(begin, typed.end(), is_script);
  if (script == typed.end()) return {};
  start.rest = static_cast<std::size_t>(script - typed.begin()) + 1;
  start.processes = LaunchedProcesses(typed.subspan(at, start.rest - 1 - at)).asked();
  if (start.processes) start.processes->place += static_cast<int>(at);
  return start;
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
  const Start start = start_of_another_program(typed);
  for (const std::size_t kept : start.kept) {
    meant.places.push_back(static_cast<int>(kept) + 1);
    meant.words.push_back(plain(typed[kept]));
  }
  if (start.processes) {
    meant.places.push_back(start.processes->place);
    meant.words.push_back(base::text("world={}", start.processes->count));
  }
  std::size_t at = start.rest;
  while (at < typed.size()) {
    std::string joined;
    meant.places.push_back(static_cast<int>(at) + 1);
    at += join_one(typed.subspan(at), joined);
    meant.words.push_back(plain(joined));
  }
  return meant;
}

}  // namespace weft::words
