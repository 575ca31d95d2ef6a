#include "weft/schedule/blocks.h"

#include <utility>

#include "weft/block/ends.h"
#include "weft/derive/blocks.h"
#include "weft/derive/context_sharing.h"

namespace weft::schedule {

using block::Block;

namespace {

// With deepep in one hop, every rank counts as a machine.
block::Dispatch dispatch_of(const config::ModelConfig& model, const TokenFlow& flow) {
  const config::ExpertGrid grid = model.expert_grid();
  const bool is_passed_on =
      config::dispatches_by(model, config::FlexBackend::HybridEp) ||
      (config::dispatches_by(model, config::FlexBackend::DeepEp) && flow.machines > 1);
  return {.dispatcher = model.moe_token_dispatcher_type,
          .ranks = grid.ranks,
          .machines = is_passed_on ? flow.machines : grid.ranks,
          .experts = grid.experts,
          .chosen = grid.per_token,
          .shards = grid.shards,
          .slices = flow.slices,
          .is_padded = model.moe_pad_expert_input_to_capacity,
          .is_counted_on_device = row_counts_of(model, flow.budget) == RowCounts::Device};
}

}  // namespace

// Counts over the ranks that share a micro-batch: the whole for aux_loss, each sequence for
// seq_aux_loss.
block::RowTally row_tally(const config::ModelConfig& model, const TokenFlow& flow) {
  const bool batch = model.aux_loss_coeff(config::LoadBalancing::AuxLoss) != 0;
  const bool sequence = model.aux_loss_coeff(config::LoadBalancing::SeqAuxLoss) != 0;
  const std::int64_t runs = (batch ? 1 : 0) + (sequence ? flow.sequences : 0);
  return {.experts = model.experts(),
          .replicas = flow.replicas,
          .sharers = flow.sharers(),
          .runs = flow.sharers() == 1 ? 0 : runs,
          .is_global = model.aux_loss_coeff(config::LoadBalancing::GlobalAuxLoss) != 0};
}

std::vector<Block> blocks_of_layer(const config::ModelConfig& model,
                                   const TokenFlow& flow,
                                   int layer) {
  const block::AttentionSharing sharing = derive::attention_sharing(model, layer);
  if (!model.is_moe_layer(layer)) return derive::layer_blocks(model, layer, sharing);
  const block::Stream stream = derive::stream_of(model);
  const block::Routing routing{.dispatch = dispatch_of(model, flow),
                               .tally = row_tally(model, flow),
                               .drops_slots = model.moe_expert_capacity_factor.has_value()};
  std::vector<Block> blocks = derive::layer_blocks(model, layer, sharing, routing);
  for (Block& block : std::vector{block::row_counts(routing.dispatch),
                                  block::row_sizes(),
                                  block::balance(routing.tally),
                                  block::tally(routing.tally),
                                  block::permute(),
                                  block::dispatch(stream, routing.dispatch),
                                  block::combine(stream, routing.dispatch),
                                  block::merge(stream)}) {
    blocks.push_back(std::move(block));
  }
  return blocks;
}

Block head_block(const config::ModelConfig& model, const TokenFlow& flow) {
  const block::Stream stream = derive::stream_of(model);
  const bool is_whole = flow.logits == derive::LogitsKept::Whole;
  return block::head(stream,
                     derive::vocabulary_of(model),
                     is_whole ? block::kFp32 : stream.element_bytes);
}

void declare_bytes(const Block& block, PieceAnatomy& piece) {
  const auto is_own = [&](Part part) { return piece.part == Part::None || piece.part == part; };
  for (const block::Slot& slot : block.slots) {
    if (!is_own(slot.part)) continue;
    const bool is_output = slot.fate == block::Fate::Output || slot.fate == block::Fate::Shown;
    const bool is_remade = slot.fate == block::Fate::Remade || slot.fate == block::Fate::Shown;
    piece.kept += slot.bytes;
    if (is_output) piece.output += slot.bytes;
    if (is_remade) piece.remade += slot.bytes;
    if (piece.part == slot.part && slot.travels) piece.travels = slot.travels;
  }
  for (const block::Sending& sending : block.sendings) {
    if (!is_own(sending.part)) continue;
    piece.sent_forward += sending.forward;
    if (piece.has_input_gradient()) piece.sent_backward += sending.backward;
    if (piece.part == sending.part && sending.again) piece.sent_again = sending.again;
  }
}

}  // namespace weft::schedule
