// How commands take the words of a run: `[RECIPE] [a.b=c ...] [--flag value ...] [--json]`.
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

// What the pictures of Weft have near their begin, and others do not.
inline constexpr const char* kPictureMark = "<rect class=\"paper\"";

// --overwrite, without which no command replaces what it did not write itself.
void add_overwrite(CLI::App& command,
                   base::Overwrite& overwrite,
                   const std::string& meaning = "replace a file that is there already");

struct RunArguments {
  // Everything that is not an option of the command itself, in the order typed; words/words.h
  // reads it.
  std::vector<std::string> words;
  Format format = Format::Text;
  // What a bench takes where none is named; empty: the defaults of `weft config` hold.
  std::string default_recipe = {};
};

// Lets the command take words, adds --json, and a help text that ends in `example`.
void add_run_arguments(CLI::App& command, RunArguments& arguments, const std::string& example);

// The config the words ask for, not validated. ConfigError when they are wrong.
words::Resolution resolve(const RunArguments& arguments);
// The same for `weft check`, which takes the lines of every command. What is wrong with the words
// is in `complaints`; ConfigError where recipe or file cannot be read.
words::Resolution resolve_for_check(const RunArguments& arguments);
// What the rules refuse where the words have faults too: all but what follows from those.
std::vector<config::Finding> errors_beside_complaints(const words::Resolution& run);
// The same for `weft perf`, whose words may also choose the recipe by the harness's flags.
words::Resolution resolve_for_perf(const RunArguments& arguments);

// ConfigError where the words are for judging and not for training: a vocabulary that nothing says,
// or --dryrun.
void require_trainable(const words::Resolution& run);

// The verdict on a run with what was found while its words were read.
rules::Verdict judged(const words::Resolution& run);
rules::Verdict with_findings(const words::Resolution& run, rules::Verdict verdict);

// ConfigError for every key that a word sets and that is not among `allowed`, or is among
// `refused`, however it was spelled: something else decides it, as `reason` says, and nothing the
// user types is ignored.
void allow_only(const words::Resolution& resolution,
                std::span<const std::string_view> allowed,
                const std::string& reason);
void refuse_keys(const words::Resolution& resolution,
                 std::span<const std::string_view> refused,
                 const std::string& reason);

// WEFT_RECIPES where set; else where an installed program has them, ../share/weft/recipes; else the
// folder of the source tree the program was built from.
std::filesystem::path recipes_folder();

}  // namespace weft::cli
