#include "tools/tpusim/shard/paste.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "tools/tpusim/output/shell_word.h"
#include "workloads/search/statements.h"
#include "workloads/sharding/stated/stated_shardings.h"

namespace tpusim::tools {
namespace {

using search::Candidate;

// A PartitionSpec, and the arguments that have it: one by name, or several by a name with *.
struct Spec {
  std::string arguments, text;
};

std::vector<Spec> SpecsOf(const search::Statements& statements) {
  std::map<std::string, std::set<std::string>> of_pattern;
  for (const sharding::StatedConstraint& stated : statements.arguments) {
    of_pattern[sharding::WithoutNumbers(stated.values[0])].insert(search::SpecText(stated.dims));
  }
  std::vector<Spec> specs;
  std::set<std::string> done;
  for (const sharding::StatedConstraint& stated : statements.arguments) {
    const std::string& name = stated.values[0];
    const std::string pattern = sharding::WithoutNumbers(name);
    // Whatever the pattern fits has to be of it.
    const bool alike =
        of_pattern[pattern].size() == 1 &&
        std::ranges::all_of(statements.arguments, [&](const sharding::StatedConstraint& other) {
          return !sharding::NameFits(pattern, other.values[0]) ||
                 sharding::WithoutNumbers(other.values[0]) == pattern;
        });
    if (alike && !done.insert(pattern).second) continue;
    specs.push_back({alike ? pattern : name, search::SpecText(stated.dims)});
  }
  return specs;
}

// A constraint, and the values that have it.
std::vector<std::pair<std::string, std::vector<std::string>>> ConstraintsOf(
    const search::Statements& statements) {
  std::vector<std::pair<std::string, std::vector<std::string>>> groups;
  for (const sharding::StatedConstraint& stated : statements.constraints) {
    const std::string text = search::SpecText(stated.dims);
    auto group = std::ranges::find(groups, text, [](const auto& g) { return g.first; });
    if (group == groups.end()) group = groups.insert(group, {text, {}});
    group->second.push_back(stated.values[0]);
  }
  return groups;
}

// The lines that make values for which a constraint is stated, each once. A value that is made
// going backward follows the constraint of what it is the gradient of.
struct Site {
  std::string source, spec, scope;
};
std::vector<Site> SitesOf(const search::Statements& statements) {
  std::vector<Site> sites;
  for (size_t i = 0; i < statements.constraints.size(); ++i) {
    const sharding::ConstraintPlace& place = statements.places[i];
    if (place.is_result || place.scope.find("transpose(") != std::string::npos) continue;
    Site site{place.source.empty() ? place.value : place.source,
              search::SpecText(statements.constraints[i].dims), place.scope};
    const bool known = std::ranges::any_of(sites, [&](const Site& other) {
      return other.source == site.source && other.spec == site.spec;
    });
    if (!known) sites.push_back(std::move(site));
  }
  return sites;
}

std::string Quoted(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "\"";
}

// "state" of "state.weights['up']".
std::string RootOf(const std::string& argument) {
  return argument.substr(0, argument.find_first_of(".["));
}

// Looks up the specs of an argument. A leaf without a spec, or a spec without a leaf, says that the
// argument is another tree than that of the program.
constexpr std::string_view kShardings = R"(def shardings(name, argument):
    """Returns the shardings of one argument of the step, one for each of its leaves."""
    names = [n for n in specs if re.fullmatch(re.escape(name) + r"([.\[].*)?", n)]
    left, leaves = set(names), []

    def of(path, _):
        full = name + jax.tree_util.keystr(path)
        leaves.append(full)
        known = full if full in specs else re.sub(r"\d+", "*", full)
        if known not in specs:
            raise ValueError(
                f"{full} has no spec: add one to specs, P() if the step does not use it; "
                f"specs of {name} are {', '.join(names) or 'none'}"
            )
        left.discard(known)
        return NamedSharding(mesh, specs[known])

    found = jax.tree_util.tree_map_with_path(of, argument)
    if left:
        raise ValueError(
            f"{', '.join(sorted(left))}: {name} has no such leaf: pass what the step is called "
            f"with; its leaves are {', '.join(leaves) or 'none'}"
        )
    return found


)";

// Returns the policy of jax.checkpoint, as Python has it.
std::string PolicyOf(const search::Variant& variant) {
  std::vector<std::string> saved, offloaded;
  for (const remat::StatedPolicy& policy : variant.remat) {
    (policy.policy == remat::Policy::kOffloaded ? offloaded : saved).push_back(Quoted(policy.name));
  }
  const std::string start = "# jax.checkpoint(..., policy=jax.checkpoint_policies.";
  if (!offloaded.empty()) {
    return fmt::format(
        "{}save_and_offload_only_these_names(names_which_can_be_saved=[{}], "
        "names_which_can_be_offloaded=[{}], offload_src=\"device\", "
        "offload_dst=\"pinned_host\"))\n",
        start, fmt::join(saved, ", "), fmt::join(offloaded, ", "));
  }
  if (saved.empty()) return "";
  return fmt::format("{}save_only_these_names({}))\n", start, fmt::join(saved, ", "));
}

}  // namespace

std::vector<std::string> Options::Words() const {
  std::vector<std::string> words = {"--mesh", mesh};
  for (const std::string& argument : arguments) words.insert(words.end(), {"--shard", argument});
  for (const std::string& text : constraints) words.insert(words.end(), {"--constrain", text});
  words.insert(words.end(), of_variant.begin(), of_variant.end());
  return words;
}

Options OptionsOf(const FindProblem& problem, const Candidate& candidate) {
  const search::Statements statements =
      search::StatementsOf(SpaceOf(problem, candidate), candidate);
  Options options;
  options.of_variant = search::OptionsOf(VariantOf(problem, candidate));
  options.mesh = search::ToString(statements.mesh);
  for (const Spec& spec : SpecsOf(statements)) {
    options.arguments.push_back(fmt::format("{}={}", spec.arguments, spec.text));
  }
  for (const auto& [spec, values] : ConstraintsOf(statements)) {
    options.constraints.push_back(fmt::format("{}={}", fmt::join(values, ","), spec));
  }
  return options;
}

std::string PythonOf(const FindProblem& problem, const Candidate& candidate) {
  const search::Statements statements =
      search::StatementsOf(SpaceOf(problem, candidate), candidate);
  std::vector<std::string> sizes, names;
  for (const sharding::MeshAxis& axis : statements.mesh) {
    sizes.push_back(fmt::format("{}", axis.size));
    names.push_back(Quoted(axis.name));
  }
  const std::string comma = sizes.size() == 1 ? "," : "";
  std::string text =
      "import re\n\nimport jax\nfrom jax.sharding import AxisType, NamedSharding\n"
      "from jax.sharding import PartitionSpec as P\n\n";
  // Axes of which constraints may speak.
  text += fmt::format(
      "mesh = jax.make_mesh(\n    ({}{}), ({}{}), axis_types=(AxisType.Auto,) * {}\n)\n",
      fmt::join(sizes, ", "), comma, fmt::join(names, ", "), comma, sizes.size());
  text += "\n# By name and path of the arguments; * stands for any number.\nspecs = {\n";
  std::vector<std::string> roots;
  for (const Spec& spec : SpecsOf(statements)) {
    text += fmt::format("    {}: {},\n", Quoted(spec.arguments), spec.text);
    const std::string root = RootOf(spec.arguments);
    if (std::ranges::find(roots, root) == roots.end()) roots.push_back(root);
  }
  text +=
      "}\n\n\n";
  text += kShardings;
  std::vector<std::string> calls;
  for (const std::string& root : roots) {
    calls.push_back(fmt::format("shardings({}, {})", Quoted(root), root));
  }
  text += fmt::format("# jax.jit(step, in_shardings=({}{}))\n", fmt::join(calls, ", "),
                      calls.size() == 1 ? "," : "");
  text += PolicyOf(VariantOf(problem, candidate));
  if (VariantOf(problem, candidate).donated) {
    text += "# donate_argnums: every argument that has the type and the sharding of a result\n";
  }
  for (const Site& site : SitesOf(statements)) {
    text +=
        fmt::format("# {}: jax.lax.with_sharding_constraint(..., NamedSharding(mesh, {}))  # {}\n",
                    site.source, site.spec, site.scope);
  }
  return text;
}

}  // namespace tpusim::tools
