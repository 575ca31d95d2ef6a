#include "weft/comm/rendezvous/message.h"

#include <algorithm>
#include <string_view>

#include "weft/base/check.h"

namespace weft::comm::rendezvous {
namespace {

constexpr std::string_view kMagic = "WEFT";
constexpr std::uint16_t kVersion = 1;
constexpr std::size_t kHeaderBytes = 20;
constexpr auto kLastKind = static_cast<std::uint32_t>(Message::Kind::AllEnded);

// Header: magic (4), version (2), kind (2), rank (4), number (4), key length (2), value length (2);
// lowest byte first.
void put(std::string& bytes, std::uint32_t value, int width) {
  for (int i = 0; i < width; ++i) bytes.push_back(static_cast<char>(value >> (8 * i)));
}

std::uint32_t number_at(const std::string& bytes, std::size_t offset, int width) {
  std::uint32_t value = 0;
  for (int i = 0; i < width; ++i) {
    const auto byte = static_cast<unsigned char>(bytes[offset + static_cast<std::size_t>(i)]);
    value |= static_cast<std::uint32_t>(byte) << (8 * i);
  }
  return value;
}

}  // namespace

std::string encoded(const Message& message) {
  CHECK(message.key.size() <= kLongestKey, "a key of {} bytes", message.key.size());
  const std::string value = message.value.substr(0, kLongestValue);
  std::string bytes(kMagic);
  put(bytes, kVersion, 2);
  put(bytes, static_cast<std::uint32_t>(message.kind), 2);
  put(bytes, static_cast<std::uint32_t>(message.rank), 4);
  put(bytes, static_cast<std::uint32_t>(message.number), 4);
  put(bytes, static_cast<std::uint32_t>(message.key.size()), 2);
  put(bytes, static_cast<std::uint32_t>(value.size()), 2);
  return bytes + message.key + value;
}

std::optional<Message> take_message(std::string& bytes) {
  const std::size_t known = std::min(bytes.size(), kMagic.size());
  if (std::string_view(bytes).substr(0, known) != kMagic.substr(0, known)) {
    throw base::SystemError("what came is no message of a weft run");
  }
  if (bytes.size() < kHeaderBytes) return std::nullopt;
  if (const std::uint32_t version = number_at(bytes, 4, 2); version != kVersion) {
    throw base::SystemError(
        base::text("version {} of the protocol where this is version {}: run the same build of "
                   "weft on all machines",
                   version,
                   kVersion));
  }
  const std::uint32_t kind = number_at(bytes, 6, 2);
  const std::size_t key = number_at(bytes, 16, 2), value = number_at(bytes, 18, 2);
  if (kind > kLastKind || key > kLongestKey || value > kLongestValue) {
    throw base::SystemError(
        base::text("a message of kind {} with {} and {} bytes, which none has", kind, key, value));
  }
  if (bytes.size() < kHeaderBytes + key + value) return std::nullopt;
  Message message{.kind = static_cast<Message::Kind>(kind),
                  .rank = static_cast<std::int32_t>(number_at(bytes, 8, 4)),
                  .number = static_cast<std::int32_t>(number_at(bytes, 12, 4)),
                  .key = bytes.substr(kHeaderBytes, key),
                  .value = bytes.substr(kHeaderBytes + key, value)};
  bytes.erase(0, kHeaderBytes + key + value);
  return message;
}

}  // namespace weft::comm::rendezvous
