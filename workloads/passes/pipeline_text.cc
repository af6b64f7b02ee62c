// Pipelines as users write them.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "configs/names.h"
#include "configs/status_macros.h"
#include "workloads/passes/passes.h"
#include "workloads/passes/pipeline/pipeline.h"

namespace tpusim::passes {
namespace {

constexpr std::string_view kGroup = "fixpoint";

class PipelineParser {
 public:
  explicit PipelineParser(std::string_view text) : text_(text) {}

  absl::StatusOr<Pipeline> Parse() {
    ASSIGN_OR_RETURN(Pipeline pipeline, Steps());
    SkipSpace();
    if (at_ < text_.size()) return Error("a comma is missing here");
    return pipeline;
  }

 private:
  absl::Status Error(const std::string& what) const {
    return UserError(fmt::format("character {}: {}", at_ + 1, what));
  }

  void SkipSpace() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool Take(char c) {
    SkipSpace();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  std::string Name() {
    SkipSpace();
    const size_t begin = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) ||
                                  text_[at_] == '-' || text_[at_] == '_' || text_[at_] == '.')) {
      ++at_;
    }
    return std::string(text_.substr(begin, at_ - begin));
  }

  absl::StatusOr<Pipeline> Steps() {
    Pipeline steps;
    do {
      ASSIGN_OR_RETURN(PipelineStep step, Step());
      steps.push_back(std::move(step));
    } while (Take(','));
    return steps;
  }

  absl::StatusOr<PipelineStep> Step() {
    SkipSpace();
    const size_t begin = at_;
    const std::string name = Name();
    PipelineStep step;
    if (name == kGroup && Take('(')) {
      if (inside_group_) return Error("a group inside of a group");
      inside_group_ = true;
      ASSIGN_OR_RETURN(step.group, Steps());
      inside_group_ = false;
      if (!Take(')')) return Error("the group does not end");
      return step;
    }
    step.pass = FindPass(name);
    if (step.pass == nullptr) {
      at_ = begin;
      std::vector<std::string> names;
      for (const Pass& pass : AllPasses()) names.emplace_back(pass.name);
      return Error(fmt::format("there is no pass '{}'; the nearest is {}, the passes are {}", name,
                               configs::Nearest(name, names), fmt::join(names, ", ")));
    }
    for (const PassOption& option : step.pass->options) {
      step.options.emplace(option.name, option.fallback);
    }
    if (Take('{')) RETURN_IF_ERROR(Options(step));
    return step;
  }

  absl::Status Options(PipelineStep& step) {
    do {
      SkipSpace();
      const size_t begin = at_;
      const std::string name = Name();
      const auto& known = step.pass->options;
      const auto option = std::find_if(known.begin(), known.end(),
                                       [&](const PassOption& o) { return o.name == name; });
      if (option == known.end()) {
        at_ = begin;
        std::vector<std::string_view> names;
        for (const PassOption& o : known) names.push_back(o.name);
        return Error(
            fmt::format("{} has no option '{}'{}", step.pass->name, name,
                        names.empty() ? "" : fmt::format("; it has {}", fmt::join(names, ", "))));
      }
      if (!Take('=')) return Error(fmt::format("option {} has no value", name));
      SkipSpace();
      const size_t value_at = at_;
      while (at_ < text_.size() && text_[at_] != ',' && text_[at_] != '}') ++at_;
      std::string value(text_.substr(value_at, at_ - value_at));
      if (!option->values.empty() &&
          std::find(option->values.begin(), option->values.end(), value) == option->values.end()) {
        at_ = value_at;
        return Error(fmt::format("'{}' is no value of option {} of {}: {}", value, name,
                                 step.pass->name, fmt::join(option->values, ", ")));
      }
      step.options.find(name)->second = std::move(value);
    } while (Take(','));
    return Take('}') ? absl::OkStatus() : Error("the options do not end");
  }

  const std::string_view text_;
  size_t at_ = 0;
  bool inside_group_ = false;
};

void CollectPasses(const Pipeline& pipeline, std::vector<const Pass*>& passes) {
  for (const PipelineStep& step : pipeline) {
    if (step.pass != nullptr) {
      passes.push_back(step.pass);
    } else {
      CollectPasses(step.group, passes);
    }
  }
}

Pipeline Without(const Pipeline& pipeline, const std::set<std::string_view>& names) {
  Pipeline kept;
  for (const PipelineStep& step : pipeline) {
    if (step.pass != nullptr && names.contains(step.pass->name)) continue;
    kept.push_back(step);
    kept.back().group = Without(step.group, names);
    if (step.pass == nullptr && kept.back().group.empty()) kept.pop_back();
  }
  return kept;
}

// "-fusion,-layout": the default pipeline without these.
absl::StatusOr<Pipeline> ParseWithout(std::string_view text) {
  std::set<std::string_view> names;
  size_t at = 0;
  while (at <= text.size()) {
    const size_t comma = std::min(text.find(',', at), text.size());
    const std::string_view item = text.substr(at, comma - at);
    if (!item.starts_with('-')) {
      return UserError(
          fmt::format("character {}: '{}' is not to be left out, and others "
                      "are: write -{}, or all passes that are to run",
                      at + 1, item, item));
    }
    const Pass* pass = FindPass(item.substr(1));
    if (pass == nullptr) {
      return UserError(fmt::format("character {}: there is no pass '{}'", at + 2, item.substr(1)));
    }
    if (pass->phase == Phase::kAnnotate) {
      return UserError(fmt::format(
          "character {}: {} writes what other options state: leave those out", at + 2, pass->name));
    }
    names.insert(pass->name);
    at = comma + 1;
  }
  ASSIGN_OR_RETURN(const Pipeline all, ParsePipeline(""));
  return Without(all, names);
}

}  // namespace

absl::StatusOr<Pipeline> ParsePipeline(std::string_view text) {
  if (text.starts_with('-')) return ParseWithout(text);
  if (text.empty()) return ParsePipeline(DefaultPipeline());
  ASSIGN_OR_RETURN(Pipeline pipeline, PipelineParser(text).Parse());
  std::vector<const Pass*> passes;
  CollectPasses(pipeline, passes);
  const Pass* ordered_by = nullptr;
  for (const Pass* pass : passes) {
    if (pass->phase == Phase::kSchedule) {
      ordered_by = pass;
    } else if (ordered_by != nullptr) {
      return UserError(
          fmt::format("{} cannot come after {}: the order of instructions "
                      "would no longer be theirs",
                      pass->name, ordered_by->name));
    }
  }
  return pipeline;
}

Pipeline WithAnnotations(Pipeline pipeline) {
  const std::vector<std::string> named = NamesOf(pipeline);
  Pipeline all;
  for (const Pass& pass : AllPasses()) {
    if (pass.phase != Phase::kAnnotate || std::ranges::find(named, pass.name) != named.end()) {
      continue;
    }
    all.push_back({&pass, {}, {}});
  }
  std::ranges::move(pipeline, std::back_inserter(all));
  return all;
}

Pipeline StepsOf(const Pipeline& pipeline, Phase phase) {
  Pipeline steps;
  for (const PipelineStep& step : pipeline) {
    std::vector<const Pass*> passes;
    CollectPasses({step}, passes);
    // Of a group that has both, the last pass decides.
    if (passes.back()->phase == phase) steps.push_back(step);
  }
  return steps;
}

size_t StepsBeforeKernels(const Pipeline& pipeline) {
  const auto begins_kernels = [](const PipelineStep& step) {
    std::vector<const Pass*> passes;
    CollectPasses({step}, passes);
    return std::ranges::any_of(passes, &Pass::begins_kernels);
  };
  return static_cast<size_t>(std::ranges::find_if(pipeline, begins_kernels) - pipeline.begin());
}

absl::Status CheckNamed(std::string_view option, const std::vector<std::string>& named,
                        const Pipeline& pipeline) {
  const std::vector<std::string> run = NamesOf(pipeline);
  for (const std::string& name : named) {
    if (std::ranges::find(run, name) != run.end()) continue;
    return UserError(fmt::format("{}: no pass '{}' runs; the passes are {}", option, name,
                                 fmt::join(run, ", ")));
  }
  return absl::OkStatus();
}

std::vector<std::string> NamesOf(const Pipeline& pipeline) {
  std::vector<const Pass*> passes;
  CollectPasses(pipeline, passes);
  std::vector<std::string> names;
  for (const Pass* pass : passes) {
    if (std::find(names.begin(), names.end(), pass->name) == names.end()) {
      names.emplace_back(pass->name);
    }
  }
  return names;
}

}  // namespace tpusim::passes
