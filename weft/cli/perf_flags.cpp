#include "weft/cli/perf_flags.h"

#include <algorithm>

#include "weft/base/text.h"
#include "weft/config/harness_flags.h"

namespace weft::cli {
namespace {

using base::text;
using config::Does;
using config::HarnessFlag;

std::string names_of(const HarnessFlag& flag) {
  return flag.brief.empty() ? text("--{}", flag.name) : text("-{}, --{}", flag.brief, flag.name);
}

std::string does_text(const HarnessFlag& flag) {
  switch (flag.does.kind) {
    case Does::Kind::SetsKey:
      return text("sets {}", flag.does.text);
    case Does::Kind::Acts:
      return "sets several keys (docs/commandline.md)";
    case Does::Kind::Selects:
      return "chooses recipe, window or comparison";
    case Does::Kind::Nothing:
      return text("no effect: {}", flag.does.text);
  }
  return "";
}

}  // namespace

std::string flags_text() {
  std::size_t width = 0;
  for (const HarnessFlag& flag : config::harness_flags()) {
    width = std::max(width, names_of(flag).size());
  }
  std::string all;
  for (const HarnessFlag& flag : config::harness_flags()) {
    all += text("{:<{}}  {} [{}]; {}\n",
                names_of(flag),
                width,
                flag.meaning,
                config::takes_text(flag),
                does_text(flag));
  }
  return all;
}

}  // namespace weft::cli
