#include "weft/events/event_file.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/events/record.h"

namespace weft::events {
namespace {

namespace fs = std::filesystem;
using base::text;

// TensorBoard reads files with "tfevents" in their names, sorted by name.
constexpr std::string_view kPrefix = "events.out.tfevents.", kEnding = ".weft";
constexpr std::int64_t kLastSecond = 9'999'999'999;  // ten digits

bool is_own(const fs::directory_entry& entry) {
  const std::string name = entry.path().filename().string();
  std::error_code ignored;
  return name.starts_with(kPrefix) && name.ends_with(kEnding) &&
         entry.symlink_status(ignored).type() == fs::file_type::regular;
}

std::vector<fs::path> own_files(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (is_own(*it)) files.push_back(it->path());
  }
  if (error) {
    throw base::SystemError(text("cannot list '{}': {}", folder.string(), error.message()));
  }
  std::ranges::sort(files);
  return files;
}

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') return "host";
  std::string host(name.data());
  std::ranges::replace(host, '/', '_');
  return host;
}

// Seconds in the name of a file; 0: none.
std::int64_t second_of(const fs::path& file) {
  const std::string name = file.filename().string().substr(kPrefix.size());
  const auto second = base::parse_integer(name.substr(0, name.find('.')));
  return second && *second > 0 && *second < kLastSecond ? *second : 0;
}

// Sorts after all existing files, even if runs follow one another within a second.
fs::path new_file(const fs::path& folder) {
  auto second = static_cast<std::int64_t>(seconds_now());
  for (const fs::path& file : own_files(folder)) second = std::max(second, second_of(file) + 1);
  return folder / text("{}{:010d}.{}.{}{}", kPrefix, second, host_name(), ::getpid(), kEnding);
}

struct Kept {
  std::uint64_t bytes = 0;
  bool has_steps = false;
};

bool is_after(const Event& event, std::int64_t step) {
  return !event.scalars.empty() && !event.scalars[0].tag.ends_with(kVersusSamples) &&
         event.step > step;
}

// Events up to `step`, before the first unreadable record.
Kept kept_of(const fs::path& file, std::int64_t step) {
  Kept kept;
  RecordReader reader(file);
  while (const std::optional<std::string> record = reader.next()) {
    const std::optional<Event> event = decode(*record);
    if (!event || is_after(*event, step)) break;
    kept.bytes = reader.offset();
    kept.has_steps |= !event->scalars.empty();
  }
  return kept;
}

void cut_after(const fs::path& folder, std::int64_t step) {
  const std::string in_use =
      text("'{}' is in use by another run: wait for its end, or set another logger.tensorboard_dir",
           folder.string());
  for (const fs::path& path : own_files(folder)) {
    base::LineFile file(path, in_use);
    const Kept kept = kept_of(path, step);
    if (kept.has_steps) {
      file.cut(kept.bytes);
    } else {
      fs::remove(path);
    }
  }
}

fs::path prepared(const fs::path& folder, std::int64_t step) {
  require_protobuf();
  fs::path path = new_file(folder);
  cut_after(folder, step);
  return path;
}

}  // namespace

EventFile::EventFile(const fs::path& folder, std::int64_t step)
    : path_(prepared(folder, step)),
      file_(path_, text("'{}' is in use by another run", path_.string())) {
  // All writers use version 2 today; TensorBoard then accepts steps in any order.
  const Event first{.seconds = seconds_now(), .file_version = "brain.Event:2"};
  append(std::span(&first, 1));
}

void EventFile::append(std::span<const Event> events) {
  std::string records;
  for (const Event& event : events) records += framed(encode(event));
  file_.append_bytes(records);
}

}  // namespace weft::events
