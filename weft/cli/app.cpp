#include "weft/cli/app.h"

#include <algorithm>
#include <iostream>

#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/cli/command.h"
#include "weft/cli/output.h"
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
    if (!std::cout) return fail(kFailed, "cannot write to standard output");
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

// What CLI11 found wrong; a word that is no command deserves its nearest one.
std::string explain(const CLI::App& program, const CLI::Error& error, const std::string& first) {
  std::vector<std::string> names;
  for (const CLI::App* command : program.get_subcommands({})) names.push_back(command->get_name());
  const bool known = std::find(names.begin(), names.end(), first) != names.end();
  if (known) return base::text("{} (weft {} --help)", error.what(), first);
  if (first.empty() || first.front() == '-') return base::text("{} (weft --help)", error.what());
  const auto best = first.size() <= 128 ? base::nearest(first, names) : std::nullopt;
  return base::text("no command '{}': {}",
                    first.substr(0, 128),
                    best ? base::text("did you mean 'weft {}'?", *best) : "weft --help lists them");
}

}  // namespace

int run(int argc, char** argv) {
  CLI::App program("Weft trains mixture-of-experts language models.", "weft");
  program.footer("Example: weft grid tiny world=4\nEvery config key: weft config");
  program.set_version_flag("--version", WEFT_VERSION);
  program.require_subcommand(1);
  Action chosen;
  add_commands(program, chosen);
  try {
    program.parse(argc, argv);
  } catch (const CLI::Success& request) {
    return program.exit(request);
  } catch (const CLI::Error& error) {
    return fail(kWrongInput, explain(program, error, argc > 1 ? argv[1] : ""));
  }
  return act(chosen);
}

}  // namespace weft::cli
