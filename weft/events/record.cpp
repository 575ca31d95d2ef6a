#include "weft/events/record.h"

#include <array>
#include <cstring>

#include "weft/base/crc32c.h"

namespace weft::events {
namespace {

constexpr std::size_t kHeader = 12, kFooter = 4;
constexpr std::uint64_t kLongestRecord = 16u << 20;

std::uint32_t masked_crc(std::string_view bytes) {
  const std::uint32_t crc = base::crc32c(bytes);
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

template <typename Number>
std::string bytes_of(Number number) {
  std::string bytes(sizeof(Number), '\0');
  std::memcpy(bytes.data(), &number, sizeof(Number));
  return bytes;
}

template <typename Number>
Number number_of(std::string_view bytes) {
  Number number{};
  std::memcpy(&number, bytes.data(), sizeof(Number));
  return number;
}

// True if the checksum after the bytes matches.
bool is_sealed(std::string_view sealed) {
  const std::string_view bytes = sealed.substr(0, sealed.size() - sizeof(std::uint32_t));
  return number_of<std::uint32_t>(sealed.substr(bytes.size())) == masked_crc(bytes);
}

}  // namespace

std::string framed(std::string_view bytes) {
  const std::string length = bytes_of(std::uint64_t{bytes.size()});
  std::string record = length + bytes_of(masked_crc(length));
  record += bytes;
  return record + bytes_of(masked_crc(bytes));
}

std::optional<std::string> RecordReader::next() {
  const std::uint64_t left = file_.size() - offset_;
  if (left < kHeader + kFooter) return std::nullopt;
  std::string header(kHeader, '\0');
  file_.read(offset_, std::as_writable_bytes(std::span(header)));
  const auto length = number_of<std::uint64_t>(header);
  if (!is_sealed(header) || length > kLongestRecord || length > left - kHeader - kFooter) {
    return std::nullopt;
  }
  std::string body(length + kFooter, '\0');
  file_.read(offset_ + kHeader, std::as_writable_bytes(std::span(body)));
  if (!is_sealed(body)) return std::nullopt;
  offset_ += kHeader + body.size();
  body.resize(length);
  return body;
}

}  // namespace weft::events
