// How a twin gets smaller: ranks, layers, widths, batch, in this order. See twin.h for what stays.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "weft/config/config.h"

namespace weft::config {

// A twin in the making: the config so far, and why each changed key changed.
struct TwinDraft {
  Config config;
  std::map<std::string, std::string> why;

  template <typename T>
  void set(const char* key, T& field, T value, const std::string& reason) {
    if (field == value) return;
    field = std::move(value);
    why[key] = reason;
  }
};

// `model` is the config the twin is of.
void shrink_ranks(const Config& model, TwinDraft& draft);
void shrink_layers(const Config& model, TwinDraft& draft);
void shrink_widths(const Config& model, TwinDraft& draft);
void shrink_batch(const Config& model, TwinDraft& draft);

}  // namespace weft::config
