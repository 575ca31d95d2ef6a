// Words of a run on the command line: `[RECIPE] [a.b=c ...] [--flag value ...] [--json]`.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/files/overwrite.h"
#include "weft/cli/output.h"
#include "weft/rules/validate.h"
#include "weft/words/resolution.h"

namespace weft::cli {

// --json
void add_format(CLI::App& command, Format& format);

// Adds --overwrite; without it no command replaces a file that it did not write itself.
void add_overwrite(CLI::App& command,
                   base::Overwrite& overwrite,
                   const std::string& meaning = "replace a file that is there already");

struct RunArguments {
  // Arguments that are not options of the command, in the order typed; parsed by words/words.h.
  std::vector<std::string> words;
  Format format = Format::Text;
  // Recipe of a bench if none is given; empty: the defaults of `weft config`.
  std::string default_recipe = {};
};

// Lets the command take words; adds --json and a help text that ends in `example`.
void add_run_arguments(CLI::App& command, RunArguments& arguments, const std::string& example);

// Config of the words, not validated. ConfigError for invalid words.
words::Resolution resolve(const RunArguments& arguments);
// Variant for `weft check`, which accepts the command line of any command. Invalid words go to
// `complaints`; ConfigError for an unreadable recipe or file.
words::Resolution resolve_for_check(const RunArguments& arguments);
// Rule errors that are not consequences of invalid words.
std::vector<config::Finding> errors_beside_complaints(const words::Resolution& run);
// Variant for `weft perf`, whose words may choose the recipe by flags of the harness.
words::Resolution resolve_for_perf(const RunArguments& arguments);

// ConfigError if the words suit judging only: an unknown vocabulary, or --dryrun.
void require_trainable(const words::Resolution& run);

// Verdict on a run, including the findings from parsing its words.
rules::Verdict judged(const words::Resolution& run);
rules::Verdict with_findings(const words::Resolution& run, rules::Verdict verdict);

// ConfigError for each key set by a word, in any spelling, that is not in `allowed` or is in
// `refused`. `reason` says what else decides the key: a word is never ignored.
void allow_only(const words::Resolution& resolution,
                std::span<const std::string_view> allowed,
                const std::string& reason);
void refuse_keys(const words::Resolution& resolution,
                 std::span<const std::string_view> refused,
                 const std::string& reason);

// Folder of recipes: WEFT_RECIPES if set; otherwise ../share/weft/recipes of an installed program;
// otherwise the recipes of the source tree.
std::filesystem::path recipes_folder();

}  // namespace weft::cli
