#include "tests/meta/source_support.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <regex>

#include "weft/base/text.h"

namespace weft::meta {
namespace {

using base::text;

enum class Literals { Blanked, Kept };

// Scans C++ text and blanks everything but code. Recognises raw strings by their delimiter.
class Blanker {
 public:
  Blanker(std::string_view source, Literals literals)
      : source_(source), code_(source), literals_(literals) {}

  std::string run() {
    while (at_ < source_.size()) {
      if (starts("//")) {
        blank_until("\n", Closing::Kept);
      } else if (starts("/*")) {
        blank_until("*/", Closing::Blanked);
      } else if (starts("R\"") && !after_word()) {
        const std::size_t open = source_.find('(', at_);
        if (open == std::string_view::npos) break;
        const std::string end = text("){}\"", source_.substr(at_ + 2, open - at_ - 2));
        pass_literal([&] { blank_until(end, Closing::Blanked); });
      } else if (source_[at_] == '"' || (source_[at_] == '\'' && !after_word())) {
        pass_literal([&] { blank_literal(source_[at_]); });
      } else {
        ++at_;
      }
    }
    return code_;
  }

 private:
  enum class Closing { Kept, Blanked };

  bool starts(std::string_view what) const { return source_.substr(at_).starts_with(what); }

  // 1'000 is no character literal, fooR"..." no raw string.
  bool after_word() const {
    return at_ > 0 && (std::isalnum(static_cast<unsigned char>(source_[at_ - 1])) != 0 ||
                       source_[at_ - 1] == '_');
  }

  void blank_until(std::string_view end, Closing closing) {
    std::size_t stop = source_.find(end, at_ + 2);
    if (stop == std::string_view::npos)
      stop = source_.size();
    else if (closing == Closing::Blanked)
      stop += end.size();
    blank_to(stop);
  }

  // Skips a literal that `blank` would blank.
  template <typename Blank>
  void pass_literal(const Blank& blank) {
    const std::size_t begin = at_;
    blank();
    if (literals_ == Literals::Kept) {
      code_.replace(begin, at_ - begin, source_.substr(begin, at_ - begin));
    }
  }

  void blank_literal(char quote) {
    std::size_t stop = at_ + 1;
    while (stop < source_.size() && source_[stop] != quote && source_[stop] != '\n') {
      stop += source_[stop] == '\\' ? 2 : 1;
    }
    blank_to(std::min(stop + 1, source_.size()));
  }

  void blank_to(std::size_t stop) {
    for (; at_ < stop; ++at_) {
      if (source_[at_] != '\n') code_[at_] = ' ';
    }
  }

  std::string_view source_;
  std::string code_;
  Literals literals_;
  std::size_t at_ = 0;
};

}  // namespace

std::string code_of(std::string_view source) { return Blanker(source, Literals::Blanked).run(); }

std::string uncommented(std::string_view source) { return Blanker(source, Literals::Kept).run(); }

namespace {

// Searching for words is a hundred times faster than matching a pattern with them.
bool has_any(std::string_view line, const std::vector<std::string>& words) {
  return std::ranges::any_of(words, [&](const std::string& word) {
    return line.find(word) != std::string_view::npos;
  });
}

}  // namespace

Complaints library_complaints(const TextFile& file) {
  static const std::vector<std::string> words{"cout",
                                              "cerr",
                                              "clog",
                                              "getenv",
                                              "printf",
                                              "put",
                                              "exit",
                                              "Exit",
                                              "abort",
                                              "terminate"};
  static const std::regex forbidden(
      R"((^|[^\w.>])((?:std::|::)?(?:cout|cerr|clog)\b|(?:std::|::)?)"
      R"((?:(?:secure_)?getenv|v?f?printf|f?puts|putchar|_?_?exit|_Exit|quick_exit|abort|terminate)\s*\())");
  Complaints complaints;
  int number = 0;
  for (const std::string& line : lines_of(code_of(file.text))) {
    ++number;
    std::smatch found;
    if (has_any(line, words) && std::regex_search(line, found, forbidden)) {
      complaints.push_back(
          text("{}:{}: {} is for cli/: throw, or return a value", file.path, number, found.str(2)));
    }
  }
  return complaints;
}

Complaints length_complaints(const TextFile& file, const Reasons& reasons) {
  const std::size_t lines = lines_of(file.text).size();
  const bool excused = reasons.contains(file.path);
  if (lines > kMostLines && !excused) {
    return {text("{} has {} lines: split it by concept, or list a reason", file.path, lines)};
  }
  if (lines <= kMostLines && excused) {
    return {text("{} has {} lines and needs no reason any more", file.path, lines)};
  }
  return {};
}

Complaints name_complaints(std::string_view path) {
  static constexpr std::array<std::string_view, 8>
      vague{"util", "utils", "common", "misc", "ops", "helper", "helpers", "stuff"};
  const std::filesystem::path parts(path);
  for (std::filesystem::path part : parts) {
    const std::string stem = part.stem().string();
    for (const std::string& word : base::split(stem, '_')) {
      if (std::ranges::find(vague, word) != vague.end()) {
        return {text("{}: '{}' does not say what is inside", path, word)};
      }
    }
  }
  return {};
}

Complaints unfinished_complaints(const TextFile& file) {
  // Split, so that this file contains none of them.
  static const std::vector<std::string> words{std::string("TO") + "DO",
                                              std::string("FIX") + "ME",
                                              std::string("place") + "holder"};
  static const std::regex unfinished(base::text(R"(\b({})\b)", fmt::join(words, "|")));
  Complaints complaints;
  int number = 0;
  for (const std::string& line : lines_of(file.text)) {
    ++number;
    std::smatch found;
    if (has_any(line, words) && std::regex_search(line, found, unfinished)) {
      complaints.push_back(text("{}:{}: {}", file.path, number, found.str(1)));
    }
  }
  return complaints;
}

}  // namespace weft::meta
