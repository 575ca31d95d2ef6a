// Config while words are applied in order, with the word that set each key and the values that
// later words overrode.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "weft/config/config.h"
#include "weft/config/finding.h"
#include "weft/words/words.h"

namespace weft::words {

class Ledger {
 public:
  explicit Ledger(const config::Config& start) : config_(start) {}

  // Current state.
  const config::Config& config() const { return config_; }

  // Sets the word's key, or restores its default.
  void apply(const Asked& asked);
  // Sets the flag's own key, which needs no finding.
  void set(const Asked& asked, std::string_view key, std::string_view value);
  // Sets another key for a flag: an automatic finding of rule `id` if the value changes.
  void imply(const Asked& asked,
             std::string_view id,
             std::string_view key,
             std::string_view value,
             const std::string& why);
  // Variant with a warning: the user asked for another value.
  void mend(const Asked& asked,
            std::string_view id,
            std::string_view key,
            std::string_view value,
            const std::string& why,
            const std::string& fix);

  // Sets a key without a word: neither a claim nor a finding. False if the value does not match the
  // key's type.
  bool assume(std::string_view key, std::string_view value);

  void warn(std::string_view id, std::string_view key, std::string message, std::string fix);
  // Records a word that Weft does not know: rule H21, and no training.
  void leave_out(const Asked& asked, std::string_view why);
  void complain(std::string what) { complaints_.push_back(std::move(what)); }

  // True if a word set the key; is_set_after: a word after `asked`.
  bool has_claim(std::string_view key) const { return claims_.contains(key); }
  bool is_set_after(const Asked& asked, std::string_view key) const;

  // Every key set by words, with its word.
  struct SetKey {
    std::string key;
    std::string typed;
  };
  const std::vector<SetKey>& set_keys() const { return set_keys_; }

  std::vector<config::Finding> take_warnings() { return std::move(warnings_); }
  // Excludes findings that a later word undid.
  std::vector<config::Finding> take_automatic();
  std::vector<std::string> take_complaints() { return std::move(complaints_); }
  // Keys with an unreadable value, which keep their previous value.
  std::vector<std::string> take_refused_keys() { return std::move(refused_keys_); }

 private:
  struct Claim {
    std::string typed;
    int place = 0;
    base::Json value;
  };
  struct Change {
    base::Json from, to;
  };
  Change change(const Asked& asked, std::string_view key, std::string_view value);
  // Reports an override of an earlier word, and records the key.
  void claim(const Asked& asked, const std::string& key, const base::Json& value);

  config::Config config_;
  std::map<std::string, Claim, std::less<>> claims_;
  std::vector<SetKey> set_keys_;
  std::vector<config::Finding> warnings_, automatic_;
  std::vector<std::string> complaints_, refused_keys_;
};

}  // namespace weft::words
