// The process groups by name: what each is made of, and in which view of the ranks.
#pragma once

#include <array>
#include <optional>
#include <string_view>

namespace weft::grid {

enum class GroupKind {
  Tp,
  Cp,
  Dp,
  DpCp,  // over which dense gradients are summed
  Pp,
  Mp,                 // tp x pp: one copy of the dense model
  Embedding,          // first and last stage of each pipeline
  PositionEmbedding,  // first stage of each pipeline
  TpDpCp,
  TpDp,
  TpCp,  // ranks that share the tokens of one micro-batch
  Ep,    // over which tokens travel to their experts
  ExpertTp,
  TpEp,
  TpEpPp,
  ExpertDp,  // over which expert gradients are summed
  World,
};

inline constexpr std::array kGroupKinds{
    GroupKind::Tp,
    GroupKind::Cp,
    GroupKind::Dp,
    GroupKind::DpCp,
    GroupKind::Pp,
    GroupKind::Mp,
    GroupKind::Embedding,
    GroupKind::PositionEmbedding,
    GroupKind::TpDpCp,
    GroupKind::TpDp,
    GroupKind::TpCp,
    GroupKind::Ep,
    GroupKind::ExpertTp,
    GroupKind::TpEp,
    GroupKind::TpEpPp,
    GroupKind::ExpertDp,
    GroupKind::World,
};

// The name a user reads: "dp_cp".
std::string_view word(GroupKind kind);
std::optional<GroupKind> group_kind(std::string_view word);

}  // namespace weft::grid
