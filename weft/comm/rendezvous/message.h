// Messages between ranks and rank 0, as bytes. A stranger may send anything to the port: lengths
// are bounded before use, and an invalid message is an error.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace weft::comm::rendezvous {

struct Message {
  enum class Kind : std::uint8_t {
    Hello,     // rank, number = the expected world, key = its GPU
    Welcome,   // all ranks have arrived
    Refused,   // value = the reason
    Put,       // key, value
    Get,       // key; answered by Value after the Put of that key
    Value,     // key, value
    Failed,    // rank, value = the reason
    Ended,     // this rank is done
    AllEnded,  // all ranks are done
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

// CHECKs the length of the key; truncates a long value.
std::string encoded(const Message& message);

// Removes the first message from `bytes`. nullopt: incomplete. SystemError: invalid bytes, or
// another protocol version.
std::optional<Message> take_message(std::string& bytes);

}  // namespace weft::comm::rendezvous
