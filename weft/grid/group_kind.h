// Process groups by name: the axes of each, and the view that they belong to.
#pragma once

#include <array>
#include <optional>
#include <string_view>

namespace weft::grid {

enum class GroupKind {
  Tp,
  Cp,
  Dp,
  DpCp,  // dense gradients are summed over it
  Pp,
  Mp,                 // tp x pp: holds one copy of the dense model
  Embedding,          // first and last stage of each pipeline
  PositionEmbedding,  // first stage of each pipeline
  TpDpCp,
  TpDp,
  TpCp,  // ranks that share the tokens of one micro-batch
  Ep,    // tokens travel to their experts within it
  ExpertTp,
  TpEp,
  TpEpPp,
  ExpertDp,  // expert gradients are summed over it
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

// User-visible name: "dp_cp".
std::string_view word(GroupKind kind);
std::optional<GroupKind> group_kind(std::string_view word);

}  // namespace weft::grid
