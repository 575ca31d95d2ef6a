// Operations between ranks: finds the spans of different ranks that belong to one operation.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "weft/trace/exposure/exposure.h"
#include "weft/trace/span.h"

namespace weft::trace {

class Operations {
 public:
  Operations(std::span<const Timeline> timelines, Clocks clocks);

  // End of a communication node's wait for its peers; its begin if it did not wait.
  std::int64_t waited_until(const Span& node) const;

 private:
  // By run, name and members.
  using Key = std::tuple<int, std::string, std::vector<int>>;
  struct Seen {
    std::int64_t last_begin = 0;
    std::int64_t shortest = 0;
  };

  static Key key_of(const Span& node) { return {node.run, node.operation, node.members}; }

  Clocks clocks_;
  std::map<Key, Seen> seen_;
};

}  // namespace weft::trace
