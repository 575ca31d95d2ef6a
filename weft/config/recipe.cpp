#include "weft/config/recipe.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/base/text.h"
#include "weft/config/field.h"

namespace weft::config {
namespace {

using base::text;
namespace fs = std::filesystem;

constexpr std::size_t kLargestRecipe = 256u << 10;

// Turns the nodes of one file into settings, collecting what is malformed.
class Reader {
 public:
  explicit Reader(const fs::path& file) : file_(file.string()) {
    recipe_.name = file.stem().string();
  }

  Recipe read(const YAML::Node& root) {
    if (root.IsMap()) {
      for_each_key(root,
                   [&](const std::string& name, const YAML::Node& key, const YAML::Node& value) {
                     read_top(name, key, value);
                   });
    } else if (!root.IsNull()) {
      complain(root, "a recipe is a map of sections, as in 'model: {num_layers: 4}'");
    }
    if (!complaints_.empty()) throw base::ConfigError(std::move(complaints_));
    return std::move(recipe_);
  }

 private:
  void read_top(const std::string& name, const YAML::Node& key, const YAML::Node& value) {
    static const std::vector<std::string> sections = section_names();
    if (name == "summary") {
      if (!value.IsScalar()) return complain(key, "summary is one line of text");
      recipe_.summary = value.Scalar().substr(0, kLongestText);
    } else if (std::find(sections.begin(), sections.end(), name) == sections.end()) {
      const auto best = name.size() <= 128 ? base::nearest(name, sections) : std::nullopt;
      complain(key,
               text("unknown section '{}': {}",
                    shown(name),
                    best ? text("did you mean '{}'?", *best)
                         : text("there are {}", fmt::join(sections, ", "))));
    } else if (value.IsMap()) {
      for_each_key(value,
                   [&](const std::string& field, const YAML::Node& at, const YAML::Node& written) {
                     read_field(name + "." + field, at, written);
                   });
    } else if (!value.IsNull()) {
      complain(key, text("section '{0}' is a map, as in '{0}: {{key: value}}'", name));
    }
  }

  void read_field(std::string key, const YAML::Node& at, const YAML::Node& value) {
    Setting setting{.key = std::move(key), .value = {}, .where = where(at)};
    if (value.IsScalar()) {
      setting.value = value.Scalar();
    } else if (value.IsSequence()) {
      std::vector<std::string> items;
      for (const YAML::Node& item : value) {
        if (!item.IsScalar()) {
          return complain(at, text("'{}': a list holds single values", shown(setting.key)));
        }
        items.push_back(item.Scalar());
      }
      setting.value = std::move(items);
    } else if (!value.IsNull()) {
      return complain(at, text("'{}' is one value or a list, not a map", shown(setting.key)));
    }
    recipe_.settings.push_back(std::move(setting));
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
  Recipe recipe_;
  std::vector<std::string> complaints_;
};

std::string read_file(const fs::path& file) {
  std::error_code ignored;
  if (!fs::is_regular_file(file, ignored)) {
    throw base::ConfigError(text("recipe '{}' is not a file", shown(file.string())));
  }
  if (fs::file_size(file, ignored) > kLargestRecipe) {
    throw base::ConfigError(text("recipe '{}' is larger than {}: it cannot be a recipe",
                                 shown(file.string()),
                                 base::human_bytes(kLargestRecipe)));
  }
  return base::read_text(file, kLargestRecipe);
}

// Remembers where the last document began and drops everything else.
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

// YAML::Load stops after the first document, and YAML::LoadAll never ends on a stray ']': so ask
// for a second document once.
void refuse_second_document(const fs::path& file, const std::string& content) {
  std::istringstream stream(content);
  YAML::Parser parser(stream);
  DocumentStarts starts;
  if (!parser.HandleNextDocument(starts) || !parser.HandleNextDocument(starts)) return;
  throw base::ConfigError(
      text("{}:{}: the recipe has ended: remove what follows", file.string(), starts.line()));
}

}  // namespace

Recipe load_recipe(const fs::path& file) {
  const std::string content = read_file(file);
  try {
    const YAML::Node root = YAML::Load(content);
    refuse_second_document(file, content);
    return Reader(file).read(root);
  } catch (const YAML::Exception& error) {
    throw base::ConfigError(text("{}:{}:{}: not YAML: {}",
                                 file.string(),
                                 error.mark.line + 1,
                                 error.mark.column + 1,
                                 error.msg));
  }
}

fs::path find_recipe(const fs::path& folder, std::string_view word) {
  const bool is_path = word.find('/') != std::string_view::npos || word.ends_with(".yaml");
  std::error_code ignored;
  const fs::path file = is_path ? fs::path(word) : folder / (std::string(word) + ".yaml");
  if (word.size() <= kLongestText && fs::is_regular_file(file, ignored)) return file;
  if (is_path) {
    throw base::ConfigError(
        text("recipe '{}' is not a file: give the path of one, or a name from '{}' (WEFT_RECIPES "
             "sets that folder)",
             shown(word),
             folder.string()));
  }
  std::vector<std::string> names;
  for (const fs::path& known : recipe_files(folder)) names.push_back(known.stem().string());
  const auto best = word.size() <= 128 ? base::nearest(word, names) : std::nullopt;
  throw base::ConfigError(text("no recipe '{}' in '{}': {}",
                               shown(word),
                               folder.string(),
                               best ? text("did you mean '{}'?", *best)
                                    : "`weft recipes` lists them, WEFT_RECIPES sets the folder, "
                                      "a path ends in .yaml"));
}

std::vector<fs::path> recipe_files(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (it->path().extension() == ".yaml") files.push_back(it->path());
  }
  if (error) {
    throw base::ConfigError(
        text("cannot list the recipes folder '{}': {}", folder.string(), error.message()));
  }
  std::sort(files.begin(), files.end());
  return files;
}

namespace {

// Whether `path` leads to data: a file, a folder, or the two files of an indexed dataset.
bool leads_to_data(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored) || fs::exists(path.string() + ".idx", ignored);
}

// A recipe's relative path means the current folder and, where nothing is there, the folder that
// holds the recipe's own: so a shipped recipe finds the source tree from anywhere.
std::string located(const std::string& path, const fs::path& recipe) {
  if (path.empty() || fs::path(path).is_absolute() || leads_to_data(path)) return path;
  const fs::path beside = fs::absolute(recipe).lexically_normal().parent_path().parent_path();
  return leads_to_data(beside / path) ? (beside / path).string() : path;
}

}  // namespace

Config resolve(const std::optional<fs::path>& recipe, std::span<const std::string> overrides) {
  Config config;
  std::vector<std::string> complaints;
  if (recipe) {
    for (const Setting& setting : load_recipe(*recipe).settings) apply(setting, config, complaints);
    config.dataset.path = located(config.dataset.path, *recipe);
  }
  apply_overrides(overrides, config, complaints);
  if (!complaints.empty()) throw base::ConfigError(std::move(complaints));
  return config;
}

}  // namespace weft::config
