#include "tests/meta/page_support.h"

#include <algorithm>
#include <filesystem>
#include <regex>

#include "weft/base/files/file.h"
#include "weft/base/text.h"

namespace weft::meta {
namespace {

using base::text;

void take_spans_and_links(const std::string& prose, Page& page) {
  static const std::regex span("`([^`]+)`");
  static const std::regex link(R"(\]\(([^)\s]+)\))");
  const std::sregex_iterator end;
  for (std::sregex_iterator at(prose.begin(), prose.end(), span); at != end; ++at) {
    page.spans.push_back((*at)[1]);
  }
  for (std::sregex_iterator at(prose.begin(), prose.end(), link); at != end; ++at) {
    page.links.push_back((*at)[1]);
  }
}

std::vector<std::string> command_lines(const std::string& script) {
  std::vector<std::string> commands;
  std::string open;
  for (std::string line : lines_of(script)) {
    const std::size_t comment = line.find("  #");
    if (comment != std::string::npos) line.resize(comment);
    if (line.starts_with('#')) continue;
    const bool continues = line.ends_with('\\');
    if (continues) line.pop_back();
    open += line;
    if (continues) continue;
    commands.push_back(open);
    open.clear();
  }
  return commands;
}

bool looks_like_path(const std::string& word) {
  static const std::regex path(R"([A-Za-z0-9_.][A-Za-z0-9_.+-]*(/[A-Za-z0-9_.+-]+)*/?)");
  if (!std::regex_match(word, path)) return false;
  static const std::regex source(R"(.*[A-Za-z_]\.(h|cpp|def|md|sh|cmake))");
  return word.find('/') != std::string::npos || std::regex_match(word, source);
}

bool is_made(const std::string& path) {
  return path.starts_with("build/") || path.starts_with("runs/");
}

bool is_found(const Page& page, const std::string& path, const Exists& exists) {
  const auto beside = std::filesystem::path(page.path).parent_path() / path;
  return exists(path) || exists("weft/" + path) ||
         exists(beside.lexically_normal().generic_string());
}

// Lines without the blanks around them and without empty lines.
std::vector<std::string> bare_lines(std::string_view code) {
  std::vector<std::string> bare;
  for (const std::string& line : lines_of(code)) {
    const std::size_t begin = line.find_first_not_of(' ');
    if (begin != std::string::npos) bare.push_back(line.substr(begin));
  }
  return bare;
}

bool is_quote(const Fence& fence) { return words_of(fence.kind + " -").front() == "cpp"; }

// First line of the quote that is not where the line before it leads; empty: none.
std::string stray_line(const std::vector<std::string>& quote,
                       const std::vector<std::string>& file) {
  auto from = file.begin();
  for (auto line = quote.begin(); line != quote.end();) {
    if (*line == "...") {
      ++line;
      continue;
    }
    const auto end = std::find(line, quote.end(), "...");
    const auto found = std::search(from, file.end(), line, end);
    if (found == file.end()) {
      auto last = line + 1;
      while (std::search(from, file.end(), line, last) != file.end()) ++last;
      return *(last - 1);
    }
    from = found + (end - line);
    line = end;
  }
  return {};
}

bool is_option(const std::string& word) { return word.starts_with('-'); }

}  // namespace

std::vector<std::string> weft_words(const std::string& command) {
  const std::vector<std::string> words = words_of(command);
  const auto weft = std::ranges::find_if(words, [](const std::string& word) {
    return word == "weft" || word.ends_with("/bin/weft");
  });
  return weft == words.end() ? std::vector<std::string>() : std::vector(weft + 1, words.end());
}

bool leaves_open(const std::string& word) {
  if (word.find("=[") != std::string::npos) return false;  // a list is a value
  return word.find_first_of("[]<>") != std::string::npos || word == "..." ||
         std::ranges::all_of(word, [](char c) { return c >= 'A' && c <= 'Z'; });
}

Page parse_page(const TextFile& file) {
  Page page{.path = file.path};
  std::string prose;
  bool inside = false;
  for (const std::string& line : lines_of(file.text)) {
    if (line.starts_with("```")) {
      inside = !inside;
      if (inside) page.fences.push_back({.kind = line.substr(3), .text = ""});
    } else if (inside) {
      page.fences.back().text += line + '\n';
    } else {
      prose += line + '\n';
    }
  }
  take_spans_and_links(prose, page);
  return page;
}

const std::vector<Page>& documents() {
  static const std::vector<Page> pages = [] {
    std::vector<Page> all;
    for (const TextFile& file : files_below("docs", {".md"})) all.push_back(parse_page(file));
    all.push_back(
        parse_page({.path = "README.md", .text = base::read_text(WEFT_SOURCE_DIR "/README.md")}));
    return all;
  }();
  return pages;
}

std::vector<std::string> Page::commands() const {
  std::vector<std::string> all = spans;
  for (const Fence& fence : fences) {
    if (fence.kind != "sh") continue;
    for (std::string& line : command_lines(fence.text)) all.push_back(std::move(line));
  }
  return all;
}

Complaints path_complaints(const Page& page, const Exists& exists) {
  Complaints complaints;
  const auto look = [&](const std::string& path) {
    if (!is_made(path) && !is_found(page, path, exists)) {
      complaints.push_back(text("{} names '{}', which is not there", page.path, path));
    }
  };
  for (const std::string& command : page.commands()) {
    for (const std::string& word : words_of(command)) {
      if (looks_like_path(word)) look(word);
    }
  }
  for (const std::string& link : page.links) {
    if (link.find("://") == std::string::npos && !link.starts_with('#')) {
      look(link.substr(0, link.find('#')));
    }
  }
  return complaints;
}

Complaints quote_complaints(const Page& page, const ReadSource& read) {
  Complaints complaints;
  for (const Fence& fence : page.fences) {
    if (!is_quote(fence)) continue;
    const std::vector<std::string> kind = words_of(fence.kind), quote = bare_lines(fence.text);
    const std::vector<std::string> file = bare_lines(kind.size() == 2 ? read(kind[1]) : "");
    if (file.empty() || quote.empty()) {
      complaints.push_back(text("{}: the quote '{}' names no file of code", page.path, fence.kind));
      continue;
    }
    const std::string stray = stray_line(quote, file);
    if (!stray.empty()) {
      complaints.push_back(text("{}: {} has no such line there: {}", page.path, kind[1], stray));
    }
  }
  return complaints;
}

std::size_t count_quotes(const Page& page) {
  return static_cast<std::size_t>(std::ranges::count_if(page.fences, is_quote));
}

std::set<std::string> make_targets(std::string_view makefile) {
  static const std::regex rule(R"(^([A-Za-z][A-Za-z0-9_ -]*):($|[^=]))");
  std::set<std::string> targets;
  for (const std::string& line : lines_of(makefile)) {
    std::smatch found;
    if (!std::regex_search(line, found, rule)) continue;
    for (std::string& target : words_of(found.str(1))) targets.insert(std::move(target));
  }
  return targets;
}

Complaints make_complaints(const Page& page, const std::set<std::string>& targets) {
  Complaints complaints;
  for (const std::string& command : page.commands()) {
    const std::vector<std::string> words = words_of(command);
    if (words.empty() || words[0] != "make") continue;
    for (std::size_t i = 1; i < words.size(); ++i) {
      if (is_option(words[i]) || leaves_open(words[i]) || targets.contains(words[i])) continue;
      complaints.push_back(
          text("{}: 'make {}': the Makefile has no such target", page.path, words[i]));
    }
  }
  return complaints;
}

std::set<std::string> listed_commands(std::string_view help) {
  std::set<std::string> commands;
  bool inside = false;
  for (const std::string& line : lines_of(help)) {
    std::string lower = line;
    std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
    if (lower.starts_with("commands:")) {
      inside = true;
    } else if (inside && line.starts_with("  ") && line[2] != ' ') {
      commands.insert(words_of(line).front());
    } else if (!line.starts_with("  ")) {
      inside = false;
    }
  }
  return commands;
}

Complaints weft_complaints(const Page& page,
                           const std::set<std::string>& commands,
                           const JudgeRun& judge) {
  static const std::set<std::string> take_runs{"train", "grid", "bench"};
  Complaints complaints;
  for (const std::string& command : page.commands()) {
    std::vector<std::string> words = weft_words(command);
    if (words.empty() || is_option(words[0]) || leaves_open(words[0])) continue;
    const std::string name = words[0];
    if (!commands.contains(name)) {
      complaints.push_back(text("{}: 'weft {}' is no command", page.path, name));
      continue;
    }
    std::erase_if(words, is_option);
    words.erase(words.begin(), words.begin() + (name == "bench" && words.size() > 1 ? 2 : 1));
    std::erase_if(words, leaves_open);
    if (!take_runs.contains(name) && name != "verify") continue;
    // The first word of verify is a folder, which is checked as a path.
    if (name == "verify" && !words.empty()) words.erase(words.begin());
    const std::string wrong = judge(name, words);
    if (!wrong.empty()) complaints.push_back(text("{}: '{}': {}", page.path, command, wrong));
  }
  return complaints;
}

}  // namespace weft::meta
