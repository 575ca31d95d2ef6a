// Run of the words. Precedence for every command: defaults, the recipe, the files of --config-file,
// the words; a later word wins.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/config/config.h"
#include "weft/config/finding.h"
#include "weft/words/harness/harness_flags.h"
#include "weft/words/ledger.h"
#include "weft/words/words.h"

namespace weft::words {

struct Resolution {
  std::string recipe;     // name of the recipe; empty: none
  config::Config config;  // not validated
  // Side effects of the words.
  std::vector<config::Finding> warnings, automatic;
  HarnessSelection harness;
  std::vector<Ledger::SetKey> set_keys;  // keys set by words, in any spelling
  std::vector<std::string> file_keys;    // keys set by the recipe and the files of --config-file
  // True for a line of Megatron-LM's flags, which names no recipe.
  bool is_megatron_line = false;
  // True if the vocabulary is a guess: a Megatron-LM line without a tokenizer (H17).
  bool unknown_vocabulary = false;
  // Errors in the words; the rest is applied. Keys with an unreadable value need no further error.
  std::vector<std::string> complaints, refused_keys;

  // True if a word, recipe or file set the key.
  bool is_chosen(std::string_view key) const;
};

// ConfigError with every error in words, recipe and files. `default_recipe` is used if no word
// names a recipe; empty: none.
Resolution resolve_words(const std::filesystem::path& recipes_folder,
                         std::span<const std::string> words,
                         Audience audience,
                         std::string_view default_recipe = "");

// Variant that puts errors in the words into `complaints`, so that the rest can be judged too.
// ConfigError if the recipe or a file is unreadable.
Resolution resolve_what_reads(const std::filesystem::path& recipes_folder,
                              std::span<const std::string> words,
                              Audience audience,
                              std::string_view default_recipe = "");

// `start` changed by words, without recipes and files. ConfigError with every error in the words.
config::Config with_words(const config::Config& start, std::span<const std::string> words);

}  // namespace weft::words
