// What ranks say to rank 0 and hear from it, as bytes. Whoever reaches the port may send anything:
// lengths are bounded before they are believed, and what is no message is an error.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace weft::comm::rendezvous {

struct Message {
  enum class Kind : std::uint8_t {
    Hello,     // rank, number = the world it was started for, key = its card
    Welcome,   // all ranks are here
    Refused,   // value = why
    Put,       // key, value
    Get,       // key; answered by Value as soon as somebody has put it
    Value,     // key, value
    Failed,    // rank, value = why
    Ended,     // the rank is done
    AllEnded,  // all are
  };

  Kind kind = Kind::Hello;
  std::int32_t rank = 0;
  std::int32_t number = 0;
  std::string key;
  std::string value;
};

inline constexpr std::size_t kLongestKey = 512;
inline constexpr std::size_t kLongestValue = 4096;
inline constexpr std::size_t kLongestMessage = 20 + kLongestKey + kLongestValue;

// A key that is too long is a bug (CHECK); a value is cut.
std::string encoded(const Message& message);

// Takes the first message off `bytes`; none where it is not whole yet. SystemError for bytes that
// are no message, or one of another version of the protocol.
std::optional<Message> take_message(std::string& bytes);

}  // namespace weft::comm::rendezvous
