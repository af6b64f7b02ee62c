#include "configs/compiler_files.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "configs/embedded_files.h"
#include "configs/number_text.h"
#include "configs/status_macros.h"

namespace tpusim::configs {
namespace {

using Json = nlohmann::json;

// Returns {0, 0, 42, 1} of "0.0.42.1"; nothing: it is no version.
std::vector<int64_t> NumbersOf(std::string_view version) {
  std::string text(version);
  std::ranges::replace(text, '.', ',');
  return NumbersIn(text).value_or(std::vector<int64_t>());
}

std::vector<int64_t> NumbersOfCompiler(std::string_view name) {
  return NumbersOf(name.substr(name.find('-') + 1));
}

// Returns the number of a build, which grows with time: 933746096 of "... cl/933746096".
std::optional<int64_t> BuildOf(std::string_view text) {
  constexpr std::string_view kBuild = "cl/";
  const size_t at = text.find(kBuild);
  if (at == std::string_view::npos) return std::nullopt;
  return NumberIn<int64_t>(text.substr(at + kBuild.size()));
}

const std::map<std::string, Json>& CompilerFiles() {
  static const auto* files = [] {
    auto* all = new std::map<std::string, Json>();
    for (const std::string& name : CompilerNames()) {  // one is like an older one
      const std::vector<EmbeddedFile>& embedded = EmbeddedFiles("compilers");
      const auto file = std::ranges::find(embedded, name, &EmbeddedFile::name);
      const Json own = Json::parse(file->text.begin(), file->text.end());
      Json whole = own.contains("like") ? all->at(own["like"].get<std::string>()) : Json();
      whole.merge_patch(own);
      all->emplace(name, std::move(whole));
    }
    return all;
  }();
  return *files;
}

}  // namespace

std::vector<std::string> CompilerNames() {
  std::vector<std::string> names = EmbeddedNames("compilers");
  std::ranges::sort(names, {}, NumbersOfCompiler);
  return names;
}

std::string CompilerName() { return CompilerNames().back(); }

std::string CompilerOf(std::string_view libtpu) {
  const std::vector<std::string> names = CompilerNames();
  const std::optional<int64_t> build = BuildOf(libtpu);
  const std::vector<int64_t> version = NumbersOf(libtpu);
  if (!build && version.empty()) return names.back();
  const auto newer = std::ranges::find_if(names, [&](const std::string& name) {
    if (!build) return NumbersOfCompiler(name) > version;
    return BuildOf((*CompilerFile(name))["build"].get<std::string>()) > build;
  });
  return newer == names.begin() ? names.front() : *std::prev(newer);
}

const Json* CompilerFile(const std::string& name) {
  const auto found = CompilerFiles().find(name);
  return found == CompilerFiles().end() ? nullptr : &found->second;
}

}  // namespace tpusim::configs
