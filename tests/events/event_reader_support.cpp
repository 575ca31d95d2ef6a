#include "tests/events/event_reader_support.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string_view>

#include "weft/base/files/file.h"
#include "weft/base/text.h"

namespace weft::events {
namespace {

using base::text;

void require(bool holds, const char* what) {
  if (!holds) throw std::runtime_error(what);
}

std::uint32_t castagnoli(std::string_view bytes) {
  std::uint32_t crc = 0xffffffffu;
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78u : 0);
  }
  return ~crc;
}

// Takes bytes from the front of a text.
class Cursor {
 public:
  explicit Cursor(std::string_view bytes) : left_(bytes) {}

  bool is_over() const { return left_.empty(); }

  std::string_view take(std::size_t count) {
    require(count <= left_.size(), "it ends too early");
    const std::string_view taken = left_.substr(0, count);
    left_.remove_prefix(count);
    return taken;
  }

  template <typename Number>
  Number fixed() {
    Number number{};
    std::memcpy(&number, take(sizeof(Number)).data(), sizeof(Number));
    return number;
  }

  std::uint64_t variable() {
    std::uint64_t number = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<unsigned char>(take(1)[0]);
      number |= std::uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return number;
    }
    throw std::runtime_error("a number of more than 64 bits");
  }

  std::string_view block() { return take(variable()); }

  void checksum_of(std::string_view bytes) {
    const auto masked = fixed<std::uint32_t>();
    const std::uint32_t turned = masked - 0xa282ead8u;
    require(((turned >> 17) | (turned << 15)) == castagnoli(bytes), "a checksum is wrong");
  }

 private:
  std::string_view left_;
};

// Key before a field: its number and wire type.
constexpr std::uint64_t key(int field, int written) {
  return static_cast<std::uint64_t>(field << 3 | written);
}
constexpr int kVariable = 0, kEight = 1, kBlock = 2, kFour = 5;

SeenScalar scalar_of(std::string_view bytes) {
  SeenScalar scalar;
  bool has_value = false;
  for (Cursor at(bytes); !at.is_over();) {
    const std::uint64_t field = at.variable();
    if (field == key(1, kBlock)) {
      scalar.tag = at.block();
    } else {
      require(field == key(2, kFour), "an unknown field of a value");
      scalar.value = at.fixed<float>();
      has_value = true;
    }
  }
  require(has_value && !scalar.tag.empty(), "a value without a tag or a number");
  return scalar;
}

SeenEvent event_of(std::string_view bytes) {
  SeenEvent event;
  for (Cursor at(bytes); !at.is_over();) {
    const std::uint64_t field = at.variable();
    if (field == key(1, kEight)) {
      event.seconds = at.fixed<double>();
    } else if (field == key(2, kVariable)) {
      event.step = static_cast<std::int64_t>(at.variable());
    } else if (field == key(3, kBlock)) {
      event.file_version = at.block();
    } else {
      require(field == key(5, kBlock), "an unknown field of an event");
      for (Cursor summary(at.block()); !summary.is_over();) {
        require(summary.variable() == key(1, kBlock), "an unknown field of a summary");
        event.scalars.push_back(scalar_of(summary.block()));
      }
    }
  }
  return event;
}

}  // namespace

std::vector<SeenEvent> see_events(const std::string& bytes) {
  std::vector<SeenEvent> events;
  for (Cursor at(bytes); !at.is_over();) {
    const std::string_view header = at.take(sizeof(std::uint64_t));
    at.checksum_of(header);
    const std::string_view record = at.take(Cursor(header).fixed<std::uint64_t>());
    at.checksum_of(record);
    events.push_back(event_of(record));
  }
  return events;
}

std::vector<std::filesystem::path> event_files(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().filename().string().find("tfevents") != std::string::npos) {
      files.push_back(entry.path());
    }
  }
  std::ranges::sort(files);
  return files;
}

Curves see_curves(const std::filesystem::path& folder) {
  Curves curves;
  for (const std::filesystem::path& file : event_files(folder)) {
    const std::vector<SeenEvent> events = see_events(base::read_text(file));
    require(!events.empty() && events[0].file_version == "brain.Event:2", "no version");
    for (const SeenEvent& event : events) {
      require(event.seconds > 1e9, "no time");
      for (const SeenScalar& scalar : event.scalars) {
        if (curves[scalar.tag].emplace(event.step, scalar.value).second) continue;
        throw std::runtime_error(text("'{}' has step {} twice", scalar.tag, event.step));
      }
    }
  }
  return curves;
}

}  // namespace weft::events
