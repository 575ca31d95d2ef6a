#include "weft/schedule/meeting.h"

namespace weft::schedule {

Node meeting_of(const Node& node) {
  if (node.piece != Piece::Receive) return node;
  Node send = node;
  send.piece = Piece::Send;
  send.chunk += node.direction == Direction::F ? -1 : 1;
  return send;
}

bool is_meeting(const Entry& entry) {
  return entry.lane != Lane::Compute && !is_copy(entry.lane) && entry.lane != Lane::Host;
}

}  // namespace weft::schedule
