#include <algorithm>

#include "weft/base/text.h"
#include "weft/trace/exposure/exposure.h"

namespace weft::trace {
namespace {

using base::Json;
using base::text;

Json json_of(const CommunicationKinds& kinds) {
  Json json = Json::object();
  for (const auto& [kind, time] : kinds) json[kind] = to_json(time);
  return json;
}

std::string table_row(const std::string& name, const CommunicationTime& time) {
  return text("{:<8}{:>9.3f}{:>11.1f}%{:>12.1f}%{:>9.3f}{:>12.3f}{:>13.3f}{:>9.3f}{:>9.3f}\n",
              name,
              time.communication_ms,
              100 * time.hidden_any,
              100 * time.hidden_gemm,
              time.exposed_ms,
              time.reasons.no_partner_ms,
              time.reasons.short_cover_ms,
              time.reasons.peer_ms,
              time.reasons.host_ms);
}

}  // namespace

Json to_json(const CommunicationTime& time) {
  return {{"communication_ms", time.communication_ms},
          {"hidden_any", time.hidden_any},
          {"hidden_gemm", time.hidden_gemm},
          {"exposed_ms", time.exposed_ms},
          {"reasons",
           {{"no_partner_ms", time.reasons.no_partner_ms},
            {"short_cover_ms", time.reasons.short_cover_ms},
            {"peer_ms", time.reasons.peer_ms},
            {"host_ms", time.reasons.host_ms}}}};
}

Json to_json(const Exposure& exposure) {
  Json ranks = Json::array();
  for (const RankExposure& rank : exposure.ranks) {
    ranks.push_back({{"rank", rank.rank},
                     {"label", rank.label},
                     {"kinds", json_of(rank.kinds)},
                     {"total", to_json(rank.total)}});
  }
  return {{"step_ms", exposure.step_ms},
          {"total", to_json(exposure.total)},
          {"kinds", json_of(exposure.kinds)},
          {"ranks", std::move(ranks)}};
}

std::string to_table(const Exposure& exposure) {
  std::string table = text("{:<8}{:>9}{:>12}{:>13}{:>9}{:>12}{:>13}{:>9}{:>9}\n",
                           "ms/step",
                           "comm",
                           "hidden_any",
                           "hidden_gemm",
                           "exposed",
                           "no_partner",
                           "short_cover",
                           "peer",
                           "host");
  for (const auto& [kind, time] : exposure.kinds) table += table_row(kind, time);
  table += table_row("total", exposure.total);
  return table + legend() + "total: kinds that run beside each other are counted once.\n";
}

std::string legend(std::string_view indent) {
  constexpr std::string_view kLines[] = {
      "hidden_any: the share of communication during which some compute ran; hidden_gemm: during "
      "which a matrix",
      "product or attention did. exposed: communication while no compute ran, by reason: no "
      "partner "
      "(the order has no",
      "compute beside it), short cover (that compute was over), peer (another rank came late), "
      "host "
      "(compute was ready",
      "but not started yet)."};
  std::string all;
  for (const std::string_view line : kLines) all += text("{}{}\n", indent, line);
  return all;
}

}  // namespace weft::trace
