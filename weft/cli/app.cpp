#include "weft/cli/app.h"

#include <algorithm>
#include <iostream>

#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/cli/command.h"
#include "weft/cli/output.h"
#include "weft/cli/process.h"
#include "weft/train/launch.h"

namespace weft::cli {
namespace {

void add_commands(CLI::App& program, Action& chosen) {
#define WEFT_COMMAND(name) add_##name(program, chosen);
#include "weft/cli/commands.def"
#undef WEFT_COMMAND
}

int fail(ExitCode code, const std::string& what) {
  std::cout.flush();
  print_error(what);
  return code;
}

int fail_all(const std::vector<std::string>& complaints) {
  constexpr std::size_t kMostLines = 100;
  for (std::size_t i = 0; i < std::min(complaints.size(), kMostLines); ++i) {
    fail(kWrongInput, complaints[i]);
  }
  if (complaints.size() > kMostLines) {
    fail(kWrongInput, base::text("and {} more", complaints.size() - kMostLines));
  }
  return kWrongInput;
}

int act(const Action& chosen) {
  try {
    const int code = chosen();
    std::cout.flush();
    // Who closed the pipe has seen enough; that is no failure.
    if (!std::cout && !reader_has_left()) return fail(kFailed, "cannot write to standard output");
    return code;
  } catch (const base::ConfigError& error) {
    return fail_all(error.complaints());
  } catch (const train::ReportedError& error) {
    return error.cause() == train::ReportedError::Cause::Input ? kWrongInput : kFailed;
  } catch (const base::InternalError& error) {
    return fail(kFailed, std::string("a bug in weft: ") + error.what());
  } catch (const std::exception& error) {
    return fail(kFailed, error.what());
  }
}

std::vector<std::string> command_names(const CLI::App& program) {
  std::vector<std::string> names;
  for (const CLI::App* command : program.get_subcommands({})) names.push_back(command->get_name());
  return names;
}

// Whether the first word is meant as a command, and there is none of that name.
bool is_unknown_command(const CLI::App& program, const std::string& first) {
  const std::vector<std::string> names = command_names(program);
  return !first.empty() && first.front() != '-' &&
         std::find(names.begin(), names.end(), first) == names.end();
}

std::string unknown_command(const CLI::App& program, const std::string& first) {
  const auto best =
      first.size() <= 128 ? base::nearest(first, command_names(program)) : std::nullopt;
  return base::text("no command '{}': {}",
                    first.substr(0, 128),
                    best ? base::text("did you mean 'weft {}'?", *best) : "weft --help lists them");
}

// What CLI11 found wrong, and where help is.
std::string explain(const CLI::Error& error, const std::string& first) {
  if (first.empty() || first.front() == '-') return base::text("{} (weft --help)", error.what());
  return base::text("{} (weft {} --help)", error.what(), first);
}

// Commands that take words leave -h to them, as the first letter of -hf: here it is help.
std::vector<std::string> words_of(int argc, char** argv) {
  std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  for (std::string& word : words) {
    if (word == "-h") word = "--help";
  }
  std::ranges::reverse(words);  // as CLI11 takes them
  return words;
}

}  // namespace

int run(int argc, char** argv) {
  prepare_process();
  CLI::App program("Weft trains mixture-of-experts language models.", "weft");
  program.footer("Example: weft grid tiny world=4\nEvery config key: weft config");
  program.set_version_flag("--version", WEFT_VERSION);
  program.require_subcommand(1);
  Action chosen;
  add_commands(program, chosen);
  const std::string first = argc > 1 ? argv[1] : "";
  // Before parsing: CLI11 would answer `weft nosuch --help` with the help of weft.
  if (is_unknown_command(program, first)) return fail(kWrongInput, unknown_command(program, first));
  try {
    program.parse(words_of(argc, argv));
  } catch (const CLI::Success& request) {
    return program.exit(request);
  } catch (const CLI::Error& error) {
    return fail(kWrongInput, explain(error, first));
  }
  return act(chosen);
}

}  // namespace weft::cli
