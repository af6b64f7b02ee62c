#include "sim/results/page.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "configs/status_macros.h"

namespace tpusim::results {
namespace {

using PageJson = nlohmann::ordered_json;

constexpr std::string_view kPageSchema = "tpusim.page/1";

std::string HtmlText(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

// JSON inside of a page: "</script" must not occur. All `<` are in strings.
std::string ScriptJson(const std::string& json) {
  std::string out;
  out.reserve(json.size());
  for (const char c : json) {
    if (c == '<') {
      out += "\\u003c";
    } else {
      out += c;
    }
  }
  return out;
}

// The skeleton with what belongs in place of {{NAME}}.
std::string Assemble(const std::string& title, const std::string& data) {
  const PageAssets assets = EmbeddedPageAssets();
  const std::pair<std::string_view, std::string> parts[] = {
      {"{{TITLE}}", HtmlText(title)},
      {"{{STYLE}}", std::string(assets.style)},
      {"{{DATA}}", ScriptJson(data)},
      {"{{LIBRARY}}", std::string(assets.library)},
      {"{{SCRIPT}}", std::string(assets.script)},
  };
  std::string page;
  std::string_view rest = assets.skeleton;
  for (const auto& [name, text] : parts) {
    const size_t at = rest.find(name);
    TPUSIM_CHECK(at != std::string_view::npos, "the skeleton of pages lacks a part");
    page.append(rest.substr(0, at)).append(text);
    rest.remove_prefix(at + name.size());
  }
  return page.append(rest);
}

}  // namespace

std::string PageOfRuns(const std::string& title, const std::vector<PageRun>& runs) {
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
  return Assemble(title, data + "]}");
}

absl::StatusOr<std::string> PageOfData(const std::string& json) {
  const PageJson data = PageJson::parse(json, nullptr, /*allow_exceptions=*/false);
  const bool fits = data.is_object() && data.value("schema", PageJson()) == kPageSchema &&
                    data.value("title", PageJson()).is_string();
  if (!fits) return UserError(fmt::format("not the data of a page, of schema {}", kPageSchema));
  return Assemble(data["title"].get<std::string>(), json);
}

}  // namespace tpusim::results
