#include "weft/words/data_words.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>

#include "weft/base/plain_text.h"
#include "weft/base/text.h"
#include "weft/config/blend_list.h"
#include "weft/config/field.h"

namespace weft::words {

using namespace config;
namespace {

namespace fs = std::filesystem;
using base::text;

constexpr const char* kKind = "dataset.kind";
constexpr std::array<const char*, 3> kNames{"dataset.path",
                                            "dataset.blend",
                                            "dataset.blend_per_split"};

bool is_file(const std::string& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

bool is_indexed(const std::string& path) {
  return is_file(path + ".idx") && is_file(path + ".bin");
}

// Path of an indexed dataset from the name of either file, which shells complete.
std::optional<std::string> without_ending(const std::string& path) {
  if (!path.ends_with(".idx") && !path.ends_with(".bin")) return std::nullopt;
  const std::string prefix = path.substr(0, path.size() - 4);
  return is_indexed(prefix) ? std::optional(prefix) : std::nullopt;
}

// True for files with text in another form, or without text.
bool is_no_plain_text(const std::string& path) {
  constexpr std::array<std::string_view, 11> kEndings{".jsonl",
                                                      ".npy",
                                                      ".npz",
                                                      ".parquet",
                                                      ".arrow",
                                                      ".bin",
                                                      ".idx",
                                                      ".gz",
                                                      ".zst",
                                                      ".zip",
                                                      ".safetensors"};
  if (!is_file(path)) return false;
  const auto is_end = [&](std::string_view ending) { return path.ends_with(ending); };
  return std::ranges::any_of(kEndings, is_end) || !base::begins_as_plain_text(path);
}

// First data set in a list of weights and paths.
std::string first_path(const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (!base::parse_number(word)) return word;
  }
  return "";
}

class Settling {
 public:
  Settling(std::span<const std::string> keys, Config& config)
      : keys_(keys), config_(config), data_(config.dataset) {}

  DataMeant settle() {
    drop_others();
    if (!is_set(kKind)) {
      find_kind();
    } else if (data_.kind == DataKind::Mock) {
      drop_unread();
    }
    return std::move(meant_);
  }

 private:
  bool is_set(std::string_view key) const { return std::ranges::find(keys_, key) != keys_.end(); }
  bool names_data(std::string_view key) const {
    return is_set(key) && !is_default(*find_field(key), config_);
  }
  bool names_any() const {
    return std::ranges::any_of(kNames, [&](const char* key) { return names_data(key); });
  }
  void reset(const char* key) { find_field(key)->copy(Config(), config_); }

  // Resets data keys named earlier if newer ones name data.
  void drop_others() {
    if (!names_any()) return;
    for (const char* key : kNames) {
      if (!is_set(key)) reset(key);
    }
    if (names_data("dataset.blend_per_split") && !is_set("dataset.split")) reset("dataset.split");
  }

  // Warns that mock tokens ignore paths named earlier.
  void drop_unread() {
    for (const char* key : kNames) {
      if (names_data(key)) {
        meant_.warnings.push_back(
            {.id = "D2",
             .key = key,
             .from = nullptr,
             .to = nullptr,
             .message = text("dataset.kind=mock makes up its tokens: {} is not read", key),
             .fix = text("leave out dataset.kind=mock, or {}", key)});
      } else {
        reset(key);
      }
    }
  }

  std::string named_path() const {
    if (!data_.path.empty()) return data_.path;
    if (!data_.blend.empty()) return first_path(data_.blend);
    for (const std::string& blend : data_.blend_per_split) {
      const std::optional<std::vector<std::string>> words = blend_words(blend);
      if (words && !first_path(*words).empty()) return first_path(*words);
    }
    return "";
  }

  void find_kind() {
    if (!names_any()) return;
    const std::string path = named_path();
    std::error_code ignored;
    if (const auto prefix = without_ending(path); prefix && data_.path == path) {
      data_.path = *prefix;
      return take(DataKind::Indexed, *prefix);
    }
    if (is_indexed(path)) return take(DataKind::Indexed, path);
    if (is_no_plain_text(path)) {
      return complain(
          text("'{}' is no plain text: make token ids of it with `weft data import`, or say "
               "dataset.kind=text to train on its bytes",
               shown(path)));
    }
    if (fs::exists(path, ignored)) take(DataKind::Text, path);
  }

  void take(DataKind kind, const std::string& path) {
    if (data_.kind == kind) return;
    const base::Json from = std::string(word(data_.kind)), to = std::string(word(kind));
    meant_.automatic.push_back(
        {.id = "D1",
         .key = kKind,
         .from = from,
         .to = to,
         .message = text("'{}' is {}",
                         shown(path),
                         kind == DataKind::Text ? "text, of which each byte is a token"
                                                : "the path of .bin and .idx"),
         .fix = ""});
    data_.kind = kind;
  }

  void complain(std::string what) {
    meant_.complaints.push_back(
        text("{}: {}", data_.path.empty() ? "dataset.blend" : "dataset.path", std::move(what)));
  }

  std::span<const std::string> keys_;
  Config& config_;
  DatasetConfig& data_;
  DataMeant meant_;
};

}  // namespace

DataMeant settle_data(std::span<const std::string> keys, Config& config) {
  return Settling(keys, config).settle();
}

}  // namespace weft::words
