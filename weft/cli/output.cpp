#include "weft/cli/output.h"

#include <algorithm>
#include <iostream>

#include "weft/base/text.h"
#include "weft/base/visible.h"
#include "weft/cli/run/launcher.h"

namespace weft::cli {

// Text may contain foreign names: files, recipes, tensors, words of a trace.
void print_text(std::string_view text) { std::cout << base::without_controls(text); }

// File names need not be UTF-8; JSON must be.
void print_json(const base::Json& json) {
  const std::string text = json.dump(-1, ' ', false, base::Json::error_handler_t::replace);
  std::cout << base::visible(text, base::Escapes::JsonText) << '\n';
}

namespace {

// Prints with one write, so that the lines of ranks do not mix. Messages quote foreign files and
// words: control characters are removed.
void print_line(std::string_view kind, const std::string& what) {
  std::cerr << base::text("{}: {}\n", kind, base::without_controls(what));
}

}  // namespace

void print_error(const std::string& what) { print_line("error", what); }

void print_warning(const std::string& what) { print_line("warning", what); }

void print_failure(const std::vector<std::string>& complaints, Format format) {
  constexpr std::size_t kMostLines = 100;
  const int rank = launcher_rank();
  for (std::size_t i = 0; i < std::min(complaints.size(), kMostLines); ++i) {
    print_error(rank == 0 ? complaints[i] : base::text("rank {}: {}", rank, complaints[i]));
  }
  if (complaints.size() > kMostLines) {
    print_error(base::text("and {} more", complaints.size() - kMostLines));
  }
  if (format == Format::Json && rank == 0) {
    print_json({{"error", complaints.front()}, {"errors", complaints}});
    std::cout.flush();
  }
}

std::function<void(const std::string& error)> failure_printer(Format format) {
  return [format](const std::string& error) { print_failure({error}, format); };
}

void print_findings(const words::Resolution& resolution) {
  if (launcher_rank() != 0) return;
  for (const config::Finding& warning : resolution.warnings) {
    print_warning(config::to_text(warning));
  }
  for (const config::Finding& set : resolution.automatic) {
    std::cerr << base::without_controls(set_line(set) + "\n");
  }
}

std::string set_line(const config::Finding& set) {
  return base::text("set: {} = {} ({}: {})", set.key, set.to.dump(), set.id, set.message);
}

void print_findings(const rules::Verdict& verdict) {
  if (launcher_rank() != 0) return;
  for (const config::Finding& warning : verdict.warnings) print_warning(config::to_text(warning));
  for (const rules::Missing& part : verdict.missing) print_warning(part.message);
}

}  // namespace weft::cli
