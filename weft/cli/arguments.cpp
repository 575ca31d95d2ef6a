#include "weft/cli/arguments.h"

#include <algorithm>
#include <cstdlib>

#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/cli/help.h"
#include "weft/config/field.h"

namespace weft::cli {

void add_format(CLI::App& command, Format& format) {
  command.add_flag_callback(
      "--json",
      [&format] { format = Format::Json; },
      "print one JSON object and nothing else on standard output");
}

void add_overwrite(CLI::App& command, base::Overwrite& overwrite, const std::string& meaning) {
  command.add_flag_callback(
      "--overwrite",
      [&overwrite] { overwrite = base::Overwrite::Yes; },
      meaning);
}

// Passes arguments unknown to CLI11 to the words, in order.
void add_run_arguments(CLI::App& command, RunArguments& arguments, const std::string& example) {
  command.allow_extras();
  command.parse_complete_callback(
      [&command, &arguments] { arguments.words = command.remaining(); });
  command.formatter(std::make_shared<HelpFormat>("[RECIPE] [a.b=c ...]"));
  add_format(command, arguments.format);
  command.footer(base::text(
      "Words: [RECIPE] [a.b=c ...] [--flag value ...]; of two for one key the later wins.\n"
      "  A recipe is a name or a path; without one {}.\n"
      "  ~a.b gives a key back its default. --config-file FILE is YAML between the recipe and the\n"
      "  words. Flags are named after keys, as in --num-layers 4.\n"
      "Example: {}\nEvery key, its default and meaning: weft config\nRecipes: weft recipes",
      arguments.default_recipe.empty() ? "the defaults of `weft config` hold"
                                       : base::text("{} is taken", arguments.default_recipe),
      example));
}

namespace {

// ConfigError with invalid words and rule errors.
words::Resolution require_readable(words::Resolution run) {
  if (run.complaints.empty()) return run;
  std::vector<std::string> complaints = run.complaints;
  for (const config::Finding& error : errors_beside_complaints(run)) {
    complaints.push_back(config::to_text(error));
  }
  throw base::ConfigError(std::move(complaints));
}

}  // namespace

std::vector<config::Finding> errors_beside_complaints(const words::Resolution& run) {
  // Its model is not read yet.
  if (!run.config.checkpoint.pretrained_checkpoint.empty()) return {};
  std::vector<config::Finding> errors = rules::judge(run.config).errors;
  std::erase_if(errors, [&](const config::Finding& error) {
    return std::ranges::find(run.refused_keys, error.key) != run.refused_keys.end();
  });
  return errors;
}

words::Resolution resolve(const RunArguments& arguments) {
  return require_readable(words::resolve_what_reads(recipes_folder(),
                                                    arguments.words,
                                                    words::Audience::Run,
                                                    arguments.default_recipe));
}

words::Resolution resolve_for_check(const RunArguments& arguments) {
  return words::resolve_what_reads(recipes_folder(), arguments.words, words::Audience::Run);
}

words::Resolution resolve_for_perf(const RunArguments& arguments) {
  return require_readable(
      words::resolve_what_reads(recipes_folder(), arguments.words, words::Audience::Perf));
}

void require_trainable(const words::Resolution& run) {
  std::vector<std::string> complaints;
  if (run.unknown_vocabulary) {
    complaints.push_back(
        "model.vocab_size is not known: Megatron-LM takes it from its tokenizer; write "
        "--vocab-size N");
  }
  if (run.harness.dryrun) {
    complaints.push_back("--dryrun runs nothing: use weft check, or leave it out");
  }
  if (!complaints.empty()) throw base::ConfigError(std::move(complaints));
}

namespace {

// Warning if a rule changed a key that a word sets, unless the rule warns itself.
std::optional<config::Finding> changed_word(const words::Resolution& run,
                                            const rules::Verdict& verdict,
                                            const config::Finding& set) {
  // The later of two words wins.
  const auto words = std::views::reverse(run.set_keys);
  const auto word = std::ranges::find(words, set.key, &words::Ledger::SetKey::key);
  const bool said = std::ranges::any_of(verdict.warnings, [&](const config::Finding& warning) {
    return warning.id == set.id && warning.key == set.key;
  });
  // A null requests the automatic value.
  if (word == words.end() || said || set.from.is_null()) return std::nullopt;
  config::Finding warning = set;
  warning.message = base::text("{} was asked for, and {} makes it {}: {}",
                               word->typed,
                               set.id,
                               set.to.dump(),
                               set.message);
  const std::string name = set.key.substr(set.key.find('.') + 1);
  if (set.key.starts_with("ddp.") && config::find_field("comm_overlap." + name) != nullptr) {
    warning.fix = base::text("say it with comm_overlap.{}", name);
  }
  return warning;
}

}  // namespace

rules::Verdict judged(const words::Resolution& run) {
  return with_findings(run, rules::judge(run.config));
}

rules::Verdict with_findings(const words::Resolution& run, rules::Verdict verdict) {
  std::vector<config::Finding> warnings = run.warnings;
  for (const config::Finding& set : verdict.automatic) {
    if (auto warning = changed_word(run, verdict, set)) warnings.push_back(std::move(*warning));
  }
  // A default of Megatron-LM's parser chooses nothing: H16 names it.
  std::erase_if(verdict.warnings, [&](const config::Finding& warning) {
    return run.is_megatron_line && warning.id == "W22" && !run.is_chosen(warning.key);
  });
  verdict.warnings.insert(verdict.warnings.begin(), warnings.begin(), warnings.end());
  verdict.automatic.insert(verdict.automatic.begin(), run.automatic.begin(), run.automatic.end());
  return verdict;
}

namespace {

template <typename Refuses>
void refuse_if(const words::Resolution& resolution,
               const std::string& reason,
               const Refuses& refuses) {
  std::vector<std::string> complaints;
  for (const auto& [key, typed] : resolution.set_keys) {
    if (!refuses(key)) continue;
    const std::string what = typed.starts_with(key) ? typed : base::text("{} ({})", typed, key);
    complaints.push_back(base::text("{}: {}: leave it out", what, reason));
  }
  if (!complaints.empty()) throw base::ConfigError(std::move(complaints));
}

bool is_among(std::span<const std::string_view> keys, std::string_view key) {
  return std::ranges::find(keys, key) != keys.end();
}

}  // namespace

void allow_only(const words::Resolution& resolution,
                std::span<const std::string_view> allowed,
                const std::string& reason) {
  refuse_if(resolution, reason, [&](const std::string& key) { return !is_among(allowed, key); });
}

void refuse_keys(const words::Resolution& resolution,
                 std::span<const std::string_view> refused,
                 const std::string& reason) {
  refuse_if(resolution, reason, [&](const std::string& key) { return is_among(refused, key); });
}

std::filesystem::path recipes_folder() {
  namespace fs = std::filesystem;
  const char* chosen = std::getenv("WEFT_RECIPES");
  if (chosen != nullptr && *chosen != '\0') return chosen;
  std::error_code ignored;
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored);
  const fs::path installed = program.parent_path().parent_path() / "share/weft/recipes";
  return fs::is_directory(installed, ignored) ? installed : fs::path(WEFT_RECIPES_FOLDER);
}

}  // namespace weft::cli
