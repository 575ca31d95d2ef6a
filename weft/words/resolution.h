// WHAT RUN DO THE WORDS ASK FOR? One precedence, for every command: defaults, then the recipe, then
// the files of --config-file, then the words, among which the later wins.
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
  std::string recipe;     // its name; empty: none was given
  config::Config config;  // not validated
  // What the words did beyond what they say.
  std::vector<config::Finding> warnings, automatic;
  HarnessSelection harness;
  std::vector<Ledger::SetKey> set_keys;  // by words, whatever their spelling
  std::vector<std::string> file_keys;    // set by the recipe and the files of --config-file
  // Whether the vocabulary is a guess: a line of Megatron-LM that names no tokenizer (H17).
  bool unknown_vocabulary = false;
  // What is wrong with the words; the rest of them is applied. Of keys whose value could not be
  // read nothing more is to be said.
  std::vector<std::string> complaints, refused_keys;

  // Whether somebody chose the value of the key, so that it is no mere default.
  bool is_chosen(std::string_view key) const;
};

// ConfigError with everything that is wrong with the words, the recipe and the files. Where no word
// names a recipe, `default_recipe` is it, unless that is empty.
Resolution resolve_words(const std::filesystem::path& recipes_folder,
                         std::span<const std::string> words,
                         Audience audience,
                         std::string_view default_recipe = "");

// The same, with what is wrong with the words in `complaints`, so that the rest can be judged
// beside it. ConfigError where the recipe or a file cannot be read.
Resolution resolve_what_reads(const std::filesystem::path& recipes_folder,
                              std::span<const std::string> words,
                              Audience audience,
                              std::string_view default_recipe = "");

// `start` as the words of a run change it, recipes and files aside. ConfigError with everything
// that is wrong with them.
config::Config with_words(const config::Config& start, std::span<const std::string> words);

}  // namespace weft::words
