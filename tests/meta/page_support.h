// Claims of a documentation page: paths, make targets and weft commands.
#pragma once

#include <functional>
#include <set>

#include "tests/meta/repository_support.h"

namespace weft::meta {

struct Fence {
  std::string kind;  // behind the opening ```: "sh", "text", "cpp weft/train/step.cpp", ...
  std::string text;
};

// Parsed page. `prose`: text outside fences; `spans`: its `code` words; `links`: targets of
// [links](target).
struct Page {
  std::string path;
  std::vector<Fence> fences;
  std::vector<std::string> spans;
  std::vector<std::string> links;

  // Command lines of every sh fence (continued lines joined, comments removed) and every span.
  std::vector<std::string> commands() const;
};

Page parse_page(const TextFile& file);

// Words after `weft` (or .../bin/weft) in a command line; empty: it does not run weft.
std::vector<std::string> weft_words(const std::string& command);

// True for a word that the reader replaces: RECIPE, [RECIPE], ...
bool leaves_open(const std::string& word);

// The README and every page below docs/, parsed once.
const std::vector<Page>& documents();

// Missing files and folders that a page names. A path is relative to the root, to weft/ or to the
// page's folder. Outputs of builds and runs are not checked.
using Exists = std::function<bool(std::string_view path)>;
Complaints path_complaints(const Page& page, const Exists& exists);

// Quotes of code: fences "cpp FILE". Their lines are lines of that file, one behind the other; a
// line `...` leaves some out. Blanks before a line and empty lines do not count. A quote that names
// no file is an error.
using ReadSource = std::function<std::string(std::string_view path)>;  // empty: no such file
Complaints quote_complaints(const Page& page, const ReadSource& read);
std::size_t count_quotes(const Page& page);

std::set<std::string> make_targets(std::string_view makefile);
Complaints make_complaints(const Page& page, const std::set<std::string>& targets);

// Commands listed by `weft --help`.
std::set<std::string> listed_commands(std::string_view help);

// Error in the recipe and the overrides of a command; empty: none.
using JudgeRun =
    std::function<std::string(const std::string& command, const std::vector<std::string>& words)>;
Complaints weft_complaints(const Page& page,
                           const std::set<std::string>& commands,
                           const JudgeRun& judge);

}  // namespace weft::meta
