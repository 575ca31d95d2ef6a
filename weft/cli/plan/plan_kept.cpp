#include "weft/cli/plan/plan_kept.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "weft/base/crc32c.h"
#include "weft/base/error.h"
#include "weft/base/files/file.h"
#include "weft/base/text.h"
#include "weft/cli/output.h"

namespace weft::cli {
namespace {

namespace fs = std::filesystem;
using base::Json;

constexpr const char* kKeptFormat = "weft plan search 2";
constexpr std::size_t kMostKept = 16, kLargestKept = 64u << 20;

std::optional<fs::path> cache_folder() {
  const auto absolute = [](const char* name) -> std::optional<fs::path> {
    const char* value = std::getenv(name);
    if (value == nullptr || *value != '/') return std::nullopt;
    return fs::path(value);
  };
  if (const auto cache = absolute("XDG_CACHE_HOME")) return *cache / "weft" / "plan";
  if (const auto home = absolute("HOME")) return *home / ".cache" / "weft" / "plan";
  return std::nullopt;
}

// Identity of the program: another build may price differently at the same version.
std::string program_text() {
  struct stat at {};
  if (::stat("/proc/self/exe", &at) != 0) return "";
  return base::text("program {} {}.{:09} {}\n",
                    at.st_size,
                    at.st_mtim.tv_sec,
                    at.st_mtim.tv_nsec,
                    at.st_ino);
}

std::string search_sum(const Json& search) {
  return base::text("{:08x}", base::crc32c(std::string_view(search.dump())));
}

// Removes all but the few newest files of the folder.
void remove_oldest(const fs::path& folder) {
  std::vector<std::pair<fs::file_time_type, fs::path>> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".json" && entry.is_regular_file()) {
      files.emplace_back(entry.last_write_time(), entry.path());
    }
  }
  std::ranges::sort(files, std::greater<>());
  for (std::size_t i = kMostKept; i < files.size(); ++i) fs::remove(files[i].second);
}

}  // namespace

KeptSearches::KeptSearches(std::string question) {
  const std::string program = program_text();
  const std::optional<fs::path> folder = cache_folder();
  question_ = program + question;
  if (program.empty() || !folder) return;
  file_ = *folder / base::text("{:08x}.json", base::crc32c(std::string_view(question_)));
}

std::optional<plan::KeptSearch> KeptSearches::find(std::size_t top,
                                                   const plan::LayoutSpace* space) const {
  if (!file_) return std::nullopt;
  std::string content;
  try {
    content = base::read_text(*file_, kLargestKept);
  } catch (const base::MissingInput&) {
    return std::nullopt;
  } catch (const base::SystemError&) {
    return damaged();
  }
  const Json json = base::try_parse_json(content);
  if (!json.is_object()) return damaged();
  const auto text_at = [&](const char* key) {
    const auto found = json.find(key);
    return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  if (text_at("format") != kKeptFormat || text_at("question") != question_) return std::nullopt;
  const auto search = json.find("search");
  if (search == json.end() || text_at("sum") != search_sum(*search)) return damaged();
  std::optional<plan::KeptSearch> kept = plan::kept_search(*search);
  if (!kept || (space != nullptr && !plan::is_part_of(*space, *kept))) return damaged();
  if (kept->top < top) return std::nullopt;
  std::vector<plan::PricedLayout>& ranked = kept->search.ranked;
  ranked.resize(std::min(ranked.size(), top));
  return kept;
}

std::nullopt_t KeptSearches::damaged() const {
  print_warning(
      base::text("'{}' is no search that was kept here, and is left aside: the search is "
                 "made again",
                 base::shown(file_->string())));
  return std::nullopt;
}

void KeptSearches::keep(const plan::KeptSearch& kept) const {
  if (!file_) return;
  try {
    fs::create_directories(file_->parent_path());
    const Json search = to_json(kept);
    const Json json{{"format", kKeptFormat},
                    {"question", question_},
                    {"sum", search_sum(search)},
                    {"search", search}};
    base::write_whole(*file_, json.dump());
    remove_oldest(file_->parent_path());
  } catch (const std::exception&) {  // no space or no permission: the next command searches again
  }
}

}  // namespace weft::cli
