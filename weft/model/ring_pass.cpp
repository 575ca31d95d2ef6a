#include "weft/model/ring_pass.h"

#include "weft/base/casts.h"

namespace weft::model {

using base::at;

void pass_on(const Context& context,
             comm::Communicator& ring,
             const Tensor& received,
             const Tensor& sent,
             std::int64_t to,
             std::int64_t from) {
  std::vector<std::int64_t> receive_rows(at(ring.size())), send_rows(at(ring.size()));
  receive_rows[at(from)] = received.dim(0);
  send_rows[at(to)] = sent.dim(0);
  ring.all_to_all(context.stream, received, sent, receive_rows, send_rows);
}

}  // namespace weft::model
