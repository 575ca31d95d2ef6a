// What a page of documentation claims: paths, make targets and weft commands.
#pragma once

#include <functional>
#include <set>

#include "tests/meta/repository_support.h"

namespace weft::meta {

struct Fence {
  std::string kind;  // what stands after the opening ```: "sh", "text", ...
  std::string text;
};

// A page taken apart. `prose` is what lies outside fences; `spans` are its `code` words and
// `links` the targets of its [links](target).
struct Page {
  std::string path;
  std::vector<Fence> fences;
  std::vector<std::string> spans;
  std::vector<std::string> links;

  // The command lines: of every sh fence (continued lines joined, comments left out) and every
  // span.
  std::vector<std::string> commands() const;
};

Page parse_page(const TextFile& file);

// The words after `weft` (or .../bin/weft) in a command line; empty where it does not run it.
std::vector<std::string> weft_words(const std::string& command);

// True for a word that a reader fills in: RECIPE, [RECIPE], ...
bool leaves_open(const std::string& word);

// The README and every page below docs/.
std::vector<Page> documents();

// Files and folders a page names that do not exist. A path is taken from the root, from weft/ or
// from the page's own folder. What a build or a run makes is not looked for.
using Exists = std::function<bool(std::string_view path)>;
Complaints path_complaints(const Page& page, const Exists& exists);

std::set<std::string> make_targets(std::string_view makefile);
Complaints make_complaints(const Page& page, const std::set<std::string>& targets);

// The commands that `weft --help` lists.
std::set<std::string> listed_commands(std::string_view help);

// What is wrong with the recipe and the overrides of a command; empty: nothing.
using JudgeRun =
    std::function<std::string(const std::string& command, const std::vector<std::string>& words)>;
Complaints weft_complaints(const Page& page,
                           const std::set<std::string>& commands,
                           const JudgeRun& judge);

}  // namespace weft::meta
