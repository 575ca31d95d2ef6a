#include "weft/cli/run/peer_program.h"

#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/cli/arguments.h"
#include "weft/cli/run/child.h"

namespace weft::cli {
namespace {

namespace fs = std::filesystem;
using base::text;

// Python in PATH, as in tools/setup.sh peers.
constexpr const char* kPython = "python3";
constexpr double kImportSeconds = 60;

}  // namespace

void require_module(const std::string& module, const std::atomic<bool>& stop) {
  const ChildResult result = run_child({kPython, "-c", text("import {}", module)},
                                       {.limit_seconds = kImportSeconds, .stop = &stop});
  if (!result.failure || stop.load()) return;
  const std::string name = module == "torch" ? "PyTorch" : "Transformers";
  if (result.was_ended) {
    throw base::SystemError(text("--peer needs {}, and `{} -c 'import {}'` did not end: {}",
                                 name,
                                 kPython,
                                 module,
                                 *result.failure));
  }
  throw base::SystemError(
      text("--peer needs {}, and the {} that PATH finds has no module '{}': install it "
           "(tools/setup.sh peers, or python3-torch of Debian), or leave --peer out",
           name,
           kPython,
           module));
}

std::vector<std::string> peer_command(const std::string& script,
                                      const std::vector<std::string>& arguments) {
  const fs::path file = recipes_folder().parent_path() / "bench" / "peers" / script;
  std::vector<std::string> command{kPython, file.string()};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return command;
}

}  // namespace weft::cli
