#include "weft/cli/app.h"

#include <algorithm>
#include <chrono>
#include <iostream>
#include <thread>

#include "weft/base/error.h"
#include "weft/base/error_context.h"
#include "weft/base/text.h"
#include "weft/cli/command.h"
#include "weft/cli/help.h"
#include "weft/cli/output.h"
#include "weft/cli/process.h"
#include "weft/cli/run/launcher.h"
#include "weft/train/launch.h"

namespace weft::cli {
namespace {

void add_commands(CLI::App& program, Action& chosen) {
#define WEFT_COMMAND(name) add_##name(program, chosen);
#include "weft/cli/commands.def"
#undef WEFT_COMMAND
}

// Groups subcommands as "Commands" in the help, at every level.
void name_group(CLI::App& app) {
  for (CLI::App* command : app.get_subcommands({})) {
    command->group("Commands");
    name_group(*command);
  }
}

// Waits on ranks other than 0: under a launcher all ranks find the same errors in the words, and
// rank 0 reports them. When rank 0 ends, the launcher ends the others. A rank that outlives the
// wait has an error of its own.
void let_first_rank_speak() {
  constexpr std::chrono::seconds kPatience{3};
  if (launcher_rank() != 0) std::this_thread::sleep_for(kPatience);
}

int fail(ExitCode code, const std::vector<std::string>& complaints, Format format) {
  std::cout.flush();
  if (code == kWrongInput) let_first_rank_speak();
  print_failure(complaints, format);
  return code;
}

int act(const Action& chosen, Format format) {
  try {
    const int code = chosen();
    std::cout.flush();
    // A closed pipe is no failure: its reader has seen enough.
    if (!std::cout && !reader_has_left()) {
      return fail(kFailed, {"cannot write to standard output"}, Format::Text);
    }
    return code;
  } catch (const base::ConfigError& error) {
    return fail(kWrongInput, error.complaints(), format);
  } catch (const base::MissingInput& error) {
    return fail(kWrongInput, {error.what()}, format);
  } catch (const train::ReportedError& error) {
    return error.cause() == train::ReportedError::Cause::Input ? kWrongInput : kFailed;
  } catch (...) {
    return fail(kFailed, {base::told(std::current_exception())}, format);
  }
}

std::vector<std::string> command_names(const CLI::App& program) {
  std::vector<std::string> names;
  for (const CLI::App* command : program.get_subcommands({})) names.push_back(command->get_name());
  return names;
}

// Error for an unknown subcommand of `app`. CLI11 would only say that one is required, and would
// answer `weft nosuch --help` with the help of weft.
std::optional<std::string> misnamed(const CLI::App& app, std::span<const std::string> words) {
  const std::vector<std::string> names = command_names(app);
  if (names.empty()) return std::nullopt;
  const std::string path = app.get_parent() == nullptr ? "weft" : "weft " + app.get_name();
  if (words.empty()) return base::text("a command is missing ({} --help lists them)", path);
  const std::string& word = words.front();
  if (std::ranges::find(names, word) != names.end()) {
    return misnamed(*app.get_subcommand(word), words.subspan(1));
  }
  if (word.starts_with('-')) {
    if (word == "-h" || app.get_option_no_throw(word) != nullptr) return std::nullopt;
    return base::text("no option '{}' ({} --help lists them)", base::shown(word), path);
  }
  const auto best = word.size() <= 128 ? base::nearest(word, names) : std::nullopt;
  return base::text("no command '{}{}': {}",
                    app.get_parent() == nullptr ? "" : app.get_name() + " ",
                    base::shown(word),
                    best ? base::text("did you mean '{} {}'?", path, *best)
                         : base::text("{} --help lists them", path));
}

// CLI11's error, with a pointer to the help.
std::string explain(const CLI::Error& error,
                    const CLI::App& program,
                    std::span<const std::string> words) {
  std::string path = "weft";
  const CLI::App* app = &program;
  for (const std::string& word : words) {
    const std::vector<std::string> names = command_names(*app);
    if (std::ranges::find(names, word) == names.end()) break;
    app = app->get_subcommand(word);
    path += " " + word;
  }
  return base::text("{} ({} --help)", error.what(), path);
}

// Output format, read before the words are parsed: errors in them use it.
Format format_of(std::span<const std::string> words) {
  return std::ranges::find(words, "--json") == words.end() ? Format::Text : Format::Json;
}

// Maps `weft help`, `weft help COMMAND` and `weft version` to options.
std::vector<std::string> as_options(std::vector<std::string> words) {
  if (words.empty()) return words;
  if (words.front() == "help") {
    words.erase(words.begin());
    words.emplace_back("--help");
  } else if (words.front() == "version" && words.size() == 1) {
    words.front() = "--version";
  }
  return words;
}

// Maps -h to --help: commands that take words leave -h to them, as the first letter of -hf.
std::vector<std::string> for_parser(std::vector<std::string> words) {
  for (std::string& word : words) {
    if (word == "-h") word = "--help";
  }
  std::ranges::reverse(words);  // order that CLI11 expects
  return words;
}

}  // namespace

int run(int argc, char** argv) {
  prepare_process();
  CLI::App program("Weft trains mixture-of-experts language models.", "weft");
  program.formatter(std::make_shared<HelpFormat>());  // for subcommands too
  program.footer("Example: weft grid tiny world=4\nEvery config key: weft config");
  // For subcommands too. Without -h, as -hf is a flag of the harness: see for_parser.
  program.set_help_flag("--help", "print this and leave");
  program.set_version_flag("--version", WEFT_VERSION, "print the version and leave");
  program.require_subcommand(1);
  Action chosen;
  add_commands(program, chosen);
  name_group(program);
  const std::vector<std::string> words =
      as_options(std::vector<std::string>(argv + std::min(argc, 1), argv + argc));
  const Format format = format_of(words);
  if (const auto complaint = misnamed(program, words)) {
    return fail(kWrongInput, {*complaint}, format);
  }
  try {
    program.parse(for_parser(words));
  } catch (const CLI::Success& request) {
    return program.exit(request);
  } catch (const CLI::Error& error) {
    return fail(kWrongInput, {explain(error, program, words)}, format);
  }
  return act(chosen, format);
}

}  // namespace weft::cli
