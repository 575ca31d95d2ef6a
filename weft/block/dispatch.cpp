#include "weft/block/dispatch.h"

#include <algorithm>

namespace weft::block {
namespace {

enum class Way { There, Back };

// Numbers that a rank sends to the others per slice.
std::int64_t counts_of(const Dispatch& dispatch) {
  if (dispatch.is_flex()) {
    const std::int64_t passing = dispatch.per_machine() > 1 ? dispatch.ranks : 0;
    return dispatch.machines + passing + dispatch.ranks;
  }
  if (dispatch.is_padded) return 0;
  return dispatch.is_gathered() ? dispatch.ranks : dispatch.experts;
}

// Bytes besides a row: its probability, or all its slots' probabilities and choices if the receiver
// sorts; in the backward, the probabilities' gradients.
std::int64_t beside_a_row(const Dispatch& dispatch, Way way) {
  if (dispatch.dispatcher == config::Dispatcher::AllToAll) return kFp32;
  return dispatch.chosen * (way == Way::Back ? kFp32 : kFp32 + kInt32);
}

// Bytes of a row; with all-gather, of a token that goes to every rank, with sums that return in
// fp32.
Bytes sent_bytes(const Dispatch& dispatch, std::int64_t row, std::int64_t token) {
  if (dispatch.is_gathered()) return {.per_token = dispatch.peers() * token};
  return {.per_row = row};
}

// Row splits that only the device knows.
std::int64_t splits_bytes(const Dispatch& dispatch) {
  if (!dispatch.is_counted_on_device) return 0;
  return (2 * dispatch.machines + 2 * dispatch.per_machine() + 1) * kInt64;
}

// Rows of each token, and token of each row, of the forwarded rows.
Bytes passing_bytes(const Dispatch& dispatch) {
  Bytes bytes{.fixed = splits_bytes(dispatch)};
  if (!dispatch.is_flex() || dispatch.per_machine() == 1) return bytes;
  bytes.per_passing = std::min(dispatch.chosen, dispatch.per_machine()) * kInt32;
  bytes.per_onward = kInt32;
  return bytes;
}

// Bytes of summing every expert's rows over ranks. Each rank sends all but its part, and its part's
// sum to every other rank. For unequal parts: the mean, rounded down.
std::int64_t summed_bytes(std::int64_t rows, std::int64_t ranks) {
  return 2 * (ranks - 1) * rows * kInt64 / ranks;
}

}  // namespace

// Rows of each token, and token of each row; places of the choices' copies.
Bytes routed_bytes(const Dispatch& dispatch) {
  const std::int64_t shared = dispatch.shards > 1 ? kInt32 * dispatch.chosen : 0;
  if (dispatch.is_gathered()) return {.per_token = shared};
  // With padding, equally many rows are sent and received.
  if (!dispatch.is_flex() && dispatch.is_padded) {
    return {.per_token = shared + kInt32 * dispatch.chosen, .per_row = kInt32};
  }
  const std::int64_t copies =
      dispatch.is_flex() ? std::min(dispatch.chosen, dispatch.machines) : dispatch.chosen;
  return {.per_token = shared + 2 * kInt32 * copies};
}

Bytes arranged_bytes(const Dispatch& dispatch) {
  if (dispatch.is_flex()) {
    return {.per_row = kFp32 + kInt32, .per_copy = dispatch.chosen * kInt32};
  }
  if (dispatch.is_gathered()) {
    return {.per_token = dispatch.ranks * dispatch.chosen * kInt32, .per_row = kFp32 + kInt32};
  }
  if (dispatch.reads_as_permuted()) return {.per_token = dispatch.chosen * kFp32};
  return {.per_row = kFp32};
}

Bytes row_bytes(const Stream& stream, const Dispatch& dispatch) {
  const std::int64_t row = stream.hidden * stream.element_bytes;
  if (dispatch.reads_as_permuted()) return {.per_token = dispatch.chosen * row};
  return {.per_row = row};
}

Block row_counts(const Dispatch& dispatch) {
  Block block(Piece::Counts);
  const std::int64_t told = dispatch.peers() * counts_of(dispatch) * kInt64 * dispatch.slices;
  block.sends(Part::None, {.fixed = told}, {});
  return block;
}

Block row_sizes() { return Block(Piece::Sizes); }

Block balance(const RowTally& tally) {
  Block block(Piece::Balance);
  block.sends(Part::None, {.fixed = summed_bytes(tally.experts, tally.replicas)}, {});
  return block;
}

Block tally(const RowTally& tally) {
  Block block(Piece::Tally);
  block.sends(Part::None, {.fixed = summed_bytes(tally.runs * tally.experts, tally.sharers)}, {});
  return block;
}

Block permute() { return Block(Piece::Permute); }

Block dispatch(const Stream& stream, const Dispatch& dispatch) {
  const std::int64_t row = stream.hidden * stream.element_bytes, sums = stream.hidden * kFp32;
  const std::int64_t there = beside_a_row(dispatch, Way::There);
  const std::int64_t back = beside_a_row(dispatch, Way::Back);
  Block block(Piece::Dispatch);
  block.slot(Part::None, Fate::Kept, passing_bytes(dispatch));
  block.sends(Part::None,
              sent_bytes(dispatch, row + there, row + there),
              sent_bytes(dispatch, row + back, sums + back));
  // Resent rows travel without probabilities and choices, as the outputs' gradients do.
  block.sendings.back().again = sent_bytes(dispatch, row, row);
  return block;
}

Block combine(const Stream& stream, const Dispatch& dispatch) {
  const std::int64_t row = stream.hidden * stream.element_bytes, sums = stream.hidden * kFp32;
  Block block(Piece::Combine);
  block.sends(Part::None, sent_bytes(dispatch, row, sums), sent_bytes(dispatch, row, row));
  return block;
}

Block merge(const Stream& stream) {
  Block block(Piece::Merge);
  block.slot(Part::None, Fate::Output, stream_bytes(stream));
  return block;
}

Block send(const Stream& stream) {
  Block block(Piece::Send);
  block.sends(Part::None, stream_bytes(stream), stream_bytes(stream));
  return block;
}

Block receive(const Stream& stream) {
  Block block(Piece::Receive);
  block.slot(Part::None, Fate::Output, stream_bytes(stream));
  return block;
}

}  // namespace weft::block
