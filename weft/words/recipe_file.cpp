#include "weft/words/recipe_file.h"

#include <yaml-cpp/depthguard.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "weft/base/error.h"
#include "weft/base/files/file.h"
#include "weft/base/files/pipe.h"
#include "weft/base/text.h"
#include "weft/config/blend_list.h"
#include "weft/config/field.h"
#include "weft/words/megatron/megatron.h"
#include "weft/words/megatron/megatron_settings.h"

namespace weft::words {

using namespace config;
namespace {

using base::text;
namespace fs = std::filesystem;

constexpr std::size_t kLargestRecipe = 256u << 10;
constexpr std::size_t kLongestName = 128;

bool is_layout_name(std::string_view name) {
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  };
  return !name.empty() && name.size() <= kLongestName && std::ranges::all_of(name, fits);
}

// Turns the nodes of one file into settings, and collects malformed parts.
class YamlReader {
 public:
  explicit YamlReader(const fs::path& file) : file_(file.string()) {
    recipe().name = file.stem().string();
  }

  RecipeFile read(const YAML::Node& root) {
    if (root.IsMap()) {
      for_each_key(root,
                   [&](const std::string& name, const YAML::Node& key, const YAML::Node& value) {
                     read_top(name, key, value);
                   });
    } else if (!root.IsNull()) {
      complain(root, "a recipe is a map of sections, as in 'model: {num_layers: 4}'");
    }
    check_layout();
    order_names(recipe().settings);
    for (RecipeLayout& layout : recipe().layouts) order_names(layout.settings);
    if (!complaints_.empty()) throw base::ConfigError(std::move(complaints_));
    return std::move(result_);
  }

 private:
  Recipe& recipe() { return result_.recipe; }

  void read_top(const std::string& name, const YAML::Node& key, const YAML::Node& value) {
    if (name == "summary") {
      if (!value.IsScalar()) return complain(key, "summary is one line of text");
      recipe().summary = value.Scalar().substr(0, kLongestText);
    } else if (name == "extends") {
      read_word(name, key, value, result_.extends);
      result_.where = where(key);
    } else if (name == "layout") {
      read_word(name, key, value, recipe().layout);
      layout_at_ = where(key);
    } else if (name == "layouts") {
      read_layouts(key, value);
    } else {
      read_section(name, key, value, recipe().settings);
    }
  }

  void read_word(const std::string& name,
                 const YAML::Node& key,
                 const YAML::Node& value,
                 std::string& word) {
    if (!value.IsScalar() || value.Scalar().empty() || value.Scalar().size() > kLongestText) {
      return complain(key, text("{} is one name", name));
    }
    word = value.Scalar();
  }

  void read_layouts(const YAML::Node& key, const YAML::Node& value) {
    if (value.IsNull()) return;
    if (!value.IsMap()) {
      return complain(key, "layouts is a map, as in 'layouts: {two_ranks: {model: {...}}}'");
    }
    for_each_key(value,
                 [&](const std::string& name, const YAML::Node& at, const YAML::Node& sections) {
                   read_layout(name, at, sections);
                 });
  }

  void read_layout(const std::string& name, const YAML::Node& key, const YAML::Node& value) {
    if (!is_layout_name(name)) {
      return complain(key,
                      text("layout '{}': a name has lower-case letters, digits and '_', and at "
                           "most {} of them",
                           shown(name),
                           kLongestName));
    }
    RecipeLayout layout{.name = name, .settings = {}};
    if (value.IsMap()) {
      for_each_key(value,
                   [&](const std::string& section, const YAML::Node& at, const YAML::Node& fields) {
                     read_section(section, at, fields, layout.settings);
                   });
    } else if (!value.IsNull()) {
      return complain(key, text("layout '{}' is a map of sections, as a recipe is", name));
    }
    recipe().layouts.push_back(std::move(layout));
  }

  void read_section(const std::string& name,
                    const YAML::Node& key,
                    const YAML::Node& value,
                    std::vector<Setting>& settings) {
    static const std::vector<std::string> sections = section_names();
    static const std::vector<std::string> others = megatron_sections();
    const bool is_other = std::ranges::find(others, name) != others.end();
    if (value.IsScalar() && find_megatron_key(name) != nullptr) {
      settings.push_back({.key = name, .value = value.Scalar(), .where = where(key)});
    } else if (!is_other && std::ranges::find(sections, name) == sections.end()) {
      const auto best = name.size() <= kLongestName ? base::nearest(name, sections) : std::nullopt;
      complain(key,
               text("unknown section '{}': {}",
                    shown(name),
                    best ? text("did you mean '{}'?", *best)
                         : text("there are {}", fmt::join(sections, ", "))));
    } else if (value.IsMap()) {
      for_each_key(value,
                   [&](const std::string& field, const YAML::Node& at, const YAML::Node& written) {
                     read_field(name + "." + field, at, written, settings);
                   });
    } else if (!value.IsNull()) {
      complain(key, text("section '{0}' is a map, as in '{0}: {{key: value}}'", name));
    }
  }

  // Value of a list. In a list of texts a nested list becomes its text.
  static std::optional<std::string> word_of(const YAML::Node& item, const std::string& key) {
    if (item.IsScalar()) return item.Scalar();
    const Field* field = find_field(key);
    const bool texts =
        key == "model.pipeline_model_parallel_layout" ||
        (field != nullptr && field->type.find(WordCodec<std::string>::many()) != std::string::npos);
    if (!item.IsSequence() || !texts) return std::nullopt;
    std::vector<std::string> words;
    for (const YAML::Node& word : item) {
      if (!word.IsScalar()) return std::nullopt;
      words.push_back(word.Scalar());
    }
    return blend_text(words);
  }

  void read_field(std::string key,
                  const YAML::Node& at,
                  const YAML::Node& value,
                  std::vector<Setting>& settings) {
    Setting setting{.key = std::move(key), .value = {}, .where = where(at)};
    if (value.IsScalar()) {
      setting.value = value.Scalar();
    } else if (value.IsSequence()) {
      std::vector<std::string> items;
      for (const YAML::Node& item : value) {
        const std::optional<std::string> word = word_of(item, setting.key);
        if (!word)
          return complain(at, text("'{}': a list holds single values", shown(setting.key)));
        items.push_back(*word);
      }
      setting.value = std::move(items);
    } else if (!value.IsNull()) {
      return complain(at, text("'{}' is one value or a list, not a map", shown(setting.key)));
    }
    settings.push_back(std::move(setting));
  }

  void check_layout() {
    const std::vector<RecipeLayout>& all = recipe().layouts;
    const std::string& name = recipe().layout;
    if (name.empty() || std::ranges::find(all, name, &RecipeLayout::name) != all.end()) return;
    complaints_.push_back(
        text("{}: layout '{}' is none of this file: add it under 'layouts', or name one of those",
             layout_at_,
             shown(name)));
  }

  template <typename Visit>
  void for_each_key(const YAML::Node& map, const Visit& visit) {
    std::set<std::string> seen;
    for (const auto& entry : map) {
      const YAML::Node& key = entry.first;
      if (!key.IsScalar()) {
        complain(key, "a key is one word");
      } else if (!seen.insert(key.Scalar()).second) {
        complain(key, text("key '{}' is given twice: keep one", shown(key.Scalar())));
      } else {
        visit(key.Scalar(), key, entry.second);
      }
    }
  }

  std::string where(const YAML::Node& node) const {
    return text("{}:{}", file_, node.Mark().line + 1);
  }
  void complain(const YAML::Node& node, const std::string& what) {
    complaints_.push_back(text("{}: {}", where(node), what));
  }

  std::string file_;
  RecipeFile result_;
  std::string layout_at_;
  std::vector<std::string> complaints_;
};

std::string read_file(const fs::path& file) {
  std::error_code ignored;
  if (base::is_pipe(file)) {
    std::string content = base::read_pipe(file, kLargestRecipe);
    if (!content.empty()) return content;
    throw base::ConfigError(text("recipe '{}' is a pipe that gives nothing: nobody writes into it",
                                 shown(file.string())));
  }
  if (!fs::is_regular_file(file, ignored)) {
    throw base::ConfigError(text("recipe '{}' {}: give the path of a YAML file",
                                 shown(file.string()),
                                 fs::exists(file, ignored) ? "is not a file" : "does not exist"));
  }
  if (fs::file_size(file, ignored) > kLargestRecipe) {
    throw base::ConfigError(text("recipe '{}' is larger than {}: it cannot be a recipe",
                                 shown(file.string()),
                                 base::human_bytes(kLargestRecipe)));
  }
  return base::read_text(file, kLargestRecipe);
}

// Remembers the first line of the last document and drops everything else.
class DocumentStarts : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark& mark) override { line_ = mark.line + 1; }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&,
                const std::string&,
                YAML::anchor_t,
                const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&,
                       const std::string&,
                       YAML::anchor_t,
                       YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&,
                  const std::string&,
                  YAML::anchor_t,
                  YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}
  int line() const { return line_; }

 private:
  int line_ = 0;
};

// Rejects a second document. YAML::Load stops after the first one, and YAML::LoadAll never ends on
// a stray ']': this parses once more.
void refuse_second_document(const fs::path& file, const std::string& content) {
  std::istringstream stream(content);
  YAML::Parser parser(stream);
  DocumentStarts starts;
  if (!parser.HandleNextDocument(starts) || !parser.HandleNextDocument(starts)) return;
  throw base::ConfigError(
      text("{}:{}: the recipe has ended: remove what follows", file.string(), starts.line()));
}

// First line with a tab as indentation, from 1; 0: none. The parser reports it, or a later line, as
// a misplaced map.
int line_with_tab(const std::string& content) {
  int line = 0;
  for (const std::string& words : base::split(content, '\n')) {
    ++line;
    const std::size_t first = words.find_first_not_of(" \t");
    if (first != std::string::npos && words.find('\t') < first) return line;
  }
  return 0;
}

}  // namespace

RecipeFile read_recipe_file(const fs::path& file) {
  return parse_recipe_file(read_file(file), file);
}

RecipeFile parse_recipe_file(const std::string& content, const fs::path& file) {
  try {
    const YAML::Node root = YAML::Load(content);
    refuse_second_document(file, content);
    return YamlReader(file).read(root);
  } catch (const YAML::DeepRecursion& error) {
    throw base::ConfigError(
        text("{}:{}:{}: nested too deeply: a recipe is sections of keys, and a value one word or a "
             "list of words",
             file.string(),
             error.mark.line + 1,
             error.mark.column + 1));
  } catch (const YAML::Exception& error) {
    if (const int line = line_with_tab(content); line > 0 && line <= error.mark.line + 1) {
      throw base::ConfigError(
          text("{}:{}: not YAML: the line begins with a tab: indent it with spaces",
               file.string(),
               line));
    }
    throw base::ConfigError(text("{}:{}:{}: not YAML: {}",
                                 file.string(),
                                 error.mark.line + 1,
                                 error.mark.column + 1,
                                 error.msg));
  }
}

}  // namespace weft::words
