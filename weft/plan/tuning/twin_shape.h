// Shrinking of a twin, in order: ranks, layers, widths, batch. See twin.h for what stays.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "weft/config/config.h"

namespace weft::plan {

// Twin under construction: the config so far, and the reason for each changed key.
struct TwinDraft {
  config::Config config;
  std::map<std::string, std::string> why;
  std::vector<std::string> given_up = {};  // see Twin

  template <typename T>
  void set(const char* key, T& field, T value, const std::string& reason) {
    if (field == value) return;
    field = std::move(value);
    why[key] = reason;
  }
};

// `model`: the config behind the twin.
void shrink_ranks(const config::Config& model, TwinDraft& draft);
void shrink_layers(const config::Config& model, TwinDraft& draft);
void shrink_widths(const config::Config& model, TwinDraft& draft);
void shrink_batch(const config::Config& model, TwinDraft& draft);

}  // namespace weft::plan
