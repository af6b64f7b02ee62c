#include "sim/results/page/page.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "absl/strings/str_replace.h"
#include "configs/status_macros.h"

namespace tpusim::results {
namespace {

using PageJson = nlohmann::ordered_json;

constexpr std::string_view kPageSchema = "tpusim.page/1";

// The skeleton with what belongs in place of {{NAME}}.
std::string Assemble(const std::string& title, const std::string& data) {
  const PageAssets assets = EmbeddedPageAssets();
  return absl::StrReplaceAll(
      std::string(assets.skeleton),
      {{"{{TITLE}}", absl::StrReplaceAll(title, {{"<", "&lt;"}, {">", "&gt;"}, {"&", "&amp;"}})},
       {"{{STYLE}}", std::string(assets.style)},
       // JSON inside of a page: "</script" must not occur. All `<` are in strings.
       {"{{DATA}}", absl::StrReplaceAll(data, {{"<", "\\u003c"}})},
       {"{{LIBRARY}}", std::string(assets.library)},
       {"{{SCRIPT}}", std::string(assets.script)}});
}

}  // namespace

std::string PageOfRuns(const std::string& title, const std::vector<PageRun>& runs,
                       const std::string& tabs) {
  const auto quoted = [](const std::string& text) {
    return PageJson(text).dump(-1, ' ', false, PageJson::error_handler_t::replace);
  };
  // Reports are texts already, and large.
  std::string data =
      fmt::format("{{\"schema\": \"{}\", \"title\": {}, \"runs\": [", kPageSchema, quoted(title));
  for (const PageRun& run : runs) {
    if (data.back() != '[') data += ",\n";
    data += fmt::format("{{\"name\": {}, \"report\": {}", quoted(run.name), run.report);
    if (!run.timeline.empty()) data += ", \"timeline\": " + run.timeline;
    if (!run.difference.empty()) data += ", \"difference\": " + quoted(run.difference);
    data += "}";
  }
  data += "]";
  if (!tabs.empty()) data += ", \"tabs\": " + tabs;
  return Assemble(title, data + "}");
}

absl::StatusOr<std::string> PageOfData(const std::string& json) {
  const PageJson data = PageJson::parse(json, nullptr, /*allow_exceptions=*/false);
  const bool fits = data.is_object() && data.value("schema", PageJson()) == kPageSchema &&
                    data.value("title", PageJson()).is_string();
  if (!fits) return UserError(fmt::format("not the data of a page, of schema {}", kPageSchema));
  return Assemble(data["title"].get<std::string>(), json);
}

}  // namespace tpusim::results
