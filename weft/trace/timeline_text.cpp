#include "weft/trace/timeline_text.h"

#include "weft/base/check.h"
#include "weft/base/json.h"

namespace weft::trace {
namespace {

using base::Json;

constexpr std::size_t kFields = 15;

// Fields without names, because spans are many.
Json fields_of(const Span& span) {
  return Json::array({span.name,
                      span.node,
                      span.lane,
                      static_cast<int>(span.kind),
                      span.run,
                      span.begin_ns,
                      span.end_ns,
                      span.layer,
                      span.micro_batch,
                      span.bytes,
                      span.rows,
                      span.after,
                      span.coverable,
                      span.operation,
                      span.members});
}

Span span_of(const Json& fields) {
  CHECK(fields.size() == kFields, "a span of {} fields", fields.size());
  Span span;
  std::size_t i = 0;
  const auto take = [&](auto& field) { fields[i++].get_to(field); };
  take(span.name);
  take(span.node);
  take(span.lane);
  span.kind = static_cast<SpanKind>(fields[i++].get<int>());
  take(span.run);
  take(span.begin_ns);
  take(span.end_ns);
  take(span.layer);
  take(span.micro_batch);
  take(span.bytes);
  take(span.rows);
  take(span.after);
  take(span.coverable);
  take(span.operation);
  take(span.members);
  return span;
}

}  // namespace

std::string to_text(const Timeline& timeline) {
  Json spans = Json::array();
  for (const Span& span : timeline.spans) spans.push_back(fields_of(span));
  const Json json{{"rank", timeline.rank}, {"label", timeline.label}, {"spans", std::move(spans)}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Timeline parse_timeline(std::string_view text) {
  try {
    const Json json = base::parse_json(text);
    Timeline timeline{.rank = json.at("rank"), .label = json.at("label"), .spans = {}};
    for (const Json& fields : json.at("spans")) timeline.spans.push_back(span_of(fields));
    return timeline;
  } catch (const Json::exception& error) {
    UNREACHABLE("the text of a timeline: {}", error.what());
  }
}

}  // namespace weft::trace
