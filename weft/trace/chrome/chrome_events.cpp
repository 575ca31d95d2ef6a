#include "weft/trace/chrome/chrome_events.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <variant>

#include "weft/base/error.h"
#include "weft/base/json.h"
#include "weft/base/text.h"

namespace weft::trace {
namespace {

using base::text;
using SaxJson = nlohmann::json;

constexpr std::size_t kDeepest = 64;
constexpr std::size_t kLongestText = 4096;   // name; longer ones are cut
constexpr std::size_t kLongestList = 65536;  // elements of an argument
constexpr std::size_t kLongestConfig = 1 << 20;
constexpr double kLatestUs = 4e15;  // a century in microseconds: nanoseconds are still exact

// Scalar JSON value. Integers are doubles.
using Value = std::variant<std::monostate, bool, double, std::string_view>;

void put(std::string& field, const Value& value) {
  if (const auto* words = std::get_if<std::string_view>(&value)) {
    field.assign(words->substr(0, kLongestText));
  }
}

void put(std::int64_t& field, const Value& value) {
  const auto* number = std::get_if<double>(&value);
  if (number != nullptr && std::abs(*number) < 9e15) field = std::llround(*number);
}

// Converts milliseconds to nanoseconds.
void put_ms(std::int64_t& ns, const Value& value) {
  const auto* ms = std::get_if<double>(&value);
  if (ms != nullptr && std::abs(*ms) <= kLatestUs / 1e3) ns = std::llround(*ms * 1e6);
}

void put(std::optional<double>& field, const Value& value) {
  if (const auto* number = std::get_if<double>(&value)) field = *number;
}

void put(bool& field, const Value& value) {
  if (const auto* flag = std::get_if<bool>(&value)) field = *flag;
}

void put_event_field(ChromeEvent& event, std::string_view key, const Value& value) {
  if (key == "name") return put(event.name, value);
  if (key == "cat") return put(event.category, value);
  if (key == "ts") return put(event.begin_us, value);
  if (key == "dur") return put(event.duration_us, value);
  if (key == "pid") return put(event.process, value);
  if (key == "tid") return put(event.thread, value);
  if (key != "ph") return;
  const auto* phase = std::get_if<std::string_view>(&value);
  if (phase != nullptr && phase->size() == 1) event.phase = phase->front();
}

void put_argument(ChromeEvent::Arguments& arguments, std::string_view key, const Value& value) {
  if (key == "node") return put(arguments.node, value);
  if (key == "run") return put(arguments.run, value);
  if (key == "layer") return put(arguments.layer, value);
  if (key == "micro_batch") return put(arguments.micro_batch, value);
  if (key == "bytes") return put(arguments.bytes, value);
  if (key == "rows") return put(arguments.rows, value);
  if (key == "coverable") return put(arguments.coverable, value);
  if (key == "operation") return put(arguments.operation, value);
  if (key == "name") return put(arguments.name, value);
  if (key == "correlation") return put(arguments.correlation, value);
  if (key == "stream") return put(arguments.stream, value);
  if (key == "device") return put(arguments.device, value);
  if (key == "Device Type") return put(arguments.device_type, value);
  if (key == "Collective name") return put(arguments.collective, value);
  if (key == "Process Group Description") return put(arguments.group, value);
  if (key == "Total Allocated") return put(arguments.allocated, value);
  if (key == "Total Reserved") return put(arguments.reserved, value);
}

void put_item(ChromeEvent::Arguments& arguments, std::string_view key, const Value& value) {
  if (key == "after" && arguments.after.size() < kLongestList) {
    put(arguments.after.emplace_back(), value);
  } else if (key == "members" && arguments.members.size() < kLongestList) {
    std::int64_t member = 0;
    put(member, value);
    arguments.members.push_back(static_cast<int>(std::clamp<std::int64_t>(member, 0, 1 << 30)));
  }
}

bool is_time(const std::optional<double>& us) { return us && std::abs(*us) <= kLatestUs; }

// Error in the times of a complete span; empty: none.
std::string time_complaint(const ChromeEvent& event) {
  if (event.phase != 'X') return "";
  if (!is_time(event.begin_us)) return "its ts is no time in microseconds";
  if (!event.duration_us) return "";
  if (*event.duration_us < 0) return text("its dur is negative ({:g})", *event.duration_us);
  return is_time(event.duration_us) ? "" : "its dur is no time in microseconds";
}

class EventReader : public nlohmann::json_sax<SaxJson> {
 public:
  explicit EventReader(const std::function<void(ChromeEvent&)>& take) : take_(take) {}

  bool null() override { return put_value({}); }
  bool boolean(bool flag) override { return put_value(flag); }
  bool number_integer(number_integer_t number) override {
    return put_value(static_cast<double>(number));
  }
  bool number_unsigned(number_unsigned_t number) override {
    return put_value(static_cast<double>(number));
  }
  bool number_float(number_float_t number, const string_t&) override { return put_value(number); }
  bool string(string_t& words) override { return put_value(std::string_view(words)); }
  bool binary(binary_t&) override { return true; }

  bool start_object(std::size_t) override {
    const Where parent = where();
    if (parent == Where::Events) {
      event_ = ChromeEvent{.number = ++file_.events};
      return enter(Where::Event);
    }
    if (where_.empty()) return enter(Where::Root);
    if (parent == Where::Event && key_ == "args") return enter(Where::Arguments);
    if (parent == Where::Root && key_ == "distributedInfo") return enter(Where::Distributed);
    if (parent == Where::Root && key_ == "weftSimulated") return enter(Where::Simulated);
    return enter(Where::Rest);
  }

  bool start_array(std::size_t) override {
    const Where parent = where();
    const bool is_events = where_.empty() || (parent == Where::Root && key_ == "traceEvents");
    if (is_events) {
      has_events_ = true;
      return enter(Where::Events);
    }
    const bool is_list = parent == Where::Arguments && (key_ == "after" || key_ == "members");
    return enter(is_list ? Where::List : Where::Rest);
  }

  bool key(string_t& word) override {
    if (where() != Where::Rest) key_ = word.substr(0, kLongestText);
    return true;
  }

  bool end_array() override {
    where_.pop_back();
    return true;
  }

  bool end_object() override {
    const Where left = where();
    where_.pop_back();
    if (left != Where::Event) return true;
    if (const std::string complaint = time_complaint(event_); !complaint.empty()) {
      return refuse(text("{}: {}", event_.place(), complaint));
    }
    take_(event_);
    return true;
  }

  bool parse_error(std::size_t position,
                   const std::string&,
                   const SaxJson::exception& error) override {
    return refuse(text("byte {}, after {}: {}",
                       position,
                       base::counted(file_.events, "event"),
                       base::reason_of(error)));
  }

  const std::string& complaint() const { return complaint_; }
  bool has_events() const { return has_events_; }
  ChromeFile file() const { return file_; }

 private:
  enum class Where { Root, Events, Event, Arguments, List, Distributed, Simulated, Rest };

  Where where() const { return where_.empty() ? Where::Rest : where_.back(); }

  bool enter(Where where) {
    if (where_.size() >= kDeepest) {
      return refuse(text("event {} is nested deeper than {} levels", file_.events, kDeepest));
    }
    where_.push_back(where);
    return true;
  }

  bool put_value(const Value& value) {
    switch (where()) {
      case Where::Event:
        put_event_field(event_, key_, value);
        break;
      case Where::Arguments:
        put_argument(event_.arguments, key_, value);
        break;
      case Where::List:
        put_item(event_.arguments, key_, value);
        break;
      case Where::Distributed: {
        std::int64_t rank = ChromeEvent::kAbsent;
        if (key_ == "rank") put(rank, value);
        if (rank >= 0 && rank < (1 << 30)) file_.rank = static_cast<int>(rank);
        break;
      }
      case Where::Simulated:
        return put_simulated(value);
      case Where::Events:
        return refuse(
            text("after {}: something that is no event", base::counted(file_.events, "event")));
      case Where::Root:
      case Where::Rest:
        break;
    }
    return true;
  }

  bool put_simulated(const Value& value) {
    Shortened& shortened = file_.shortened;
    if (key_ == "micro_batches") put(shortened.micro_batches, value);
    if (key_ == "shown_micro_batches") put(shortened.shown, value);
    if (key_ == "repeated") put(shortened.repeated, value);
    if (key_ == "steady_from_ms") put_ms(shortened.steady.begin, value);
    if (key_ == "steady_to_ms") put_ms(shortened.steady.end, value);
    const auto* number = std::get_if<double>(&value);
    if (key_ == "step_ms" && number != nullptr) file_.step_ms = *number;
    return put_config(value);
  }

  bool put_config(const Value& value) {
    const auto* words = std::get_if<std::string_view>(&value);
    if (key_ != "config" || words == nullptr) return true;
    if (words->size() > kLongestConfig) {
      return refuse(text("weftSimulated: a config of {} bytes, of at most {}",
                         words->size(),
                         kLongestConfig));
    }
    file_.simulated_config.emplace(*words);
    return true;
  }

  bool refuse(std::string complaint) {
    complaint_ = std::move(complaint);
    return false;
  }

  const std::function<void(ChromeEvent&)>& take_;
  std::vector<Where> where_;
  std::string key_;
  ChromeEvent event_;
  ChromeFile file_;
  bool has_events_ = false;
  std::string complaint_;
};

}  // namespace

std::string ChromeEvent::place() const {
  return text("event {} ('{}')", number, base::shown(name));
}

ChromeFile parse_chrome_events(std::istream& stream,
                               const std::string& name,
                               const std::function<void(ChromeEvent&)>& take) {
  EventReader reader(take);
  const bool whole = SaxJson::sax_parse(stream, &reader);
  if (whole && reader.has_events()) return reader.file();
  throw base::ConfigError(
      text("{}: {} (a trace is JSON: a list of events, or an object with the list traceEvents)",
           name,
           reader.complaint().empty() ? "no list traceEvents" : reader.complaint()));
}

}  // namespace weft::trace
