#include "workloads/sharding/text/shardy_parser.h"

#include <algorithm>
#include <cctype>
#include <limits>

#include "configs/status_macros.h"
#include "fmt/format.h"
#include "workloads/sharding/text/digits.h"

namespace tpusim::sharding {
namespace {

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  absl::Status Error(std::string_view expected) const {
    return UserError(fmt::format("Shardy text '{}': expected {} at offset {}", text_, expected,
                                 std::min(at_, text_.size())));
  }

  bool Accept(std::string_view token) {
    SkipSpace();
    if (text_.substr(at_, token.size()) != token) return false;
    at_ += token.size();
    return true;
  }

  absl::Status Expect(std::string_view token) {
    return Accept(token) ? absl::OkStatus() : Error(fmt::format("'{}'", token));
  }

  absl::Status ExpectEnd() {
    SkipSpace();
    return at_ == text_.size() ? absl::OkStatus() : Error("the end");
  }

  // A quoted name: MLIR escapes quotes and backslashes.
  absl::StatusOr<std::string> Quoted() {
    RETURN_IF_ERROR(Expect("\""));
    std::string value;
    while (at_ < text_.size() && text_[at_] != '"') {
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) ++at_;
      value += text_[at_++];
    }
    RETURN_IF_ERROR(Expect("\""));
    return value;
  }

  // A symbol name, bare or quoted.
  absl::StatusOr<std::string> Name() {
    SkipSpace();
    if (at_ < text_.size() && text_[at_] == '"') return Quoted();
    std::string value;
    while (at_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[at_])) ||
            std::string_view("_$.-").find(text_[at_]) != std::string_view::npos)) {
      value += text_[at_++];
    }
    if (value.empty()) return Error("a name");
    return value;
  }

  absl::StatusOr<int64_t> Integer() {
    SkipSpace();
    int64_t value = 0;
    const size_t begin = at_;
    while (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_]))) {
      if (value > std::numeric_limits<int64_t>::max() / 10 - 1) return Error("a smaller number");
      value = value * 10 + (text_[at_++] - '0');
    }
    if (at_ == begin) return Error("a number");
    return value;
  }

  // `item` between separators until `close`, which is consumed.
  template <typename Item>
  absl::Status List(std::string_view close, Item item) {
    if (Accept(close)) return absl::OkStatus();
    while (true) {
      RETURN_IF_ERROR(item());
      if (Accept(close)) return absl::OkStatus();
      RETURN_IF_ERROR(Expect(","));
    }
  }

 private:
  void SkipSpace() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }

  std::string_view text_;
  size_t at_ = 0;
};

// The inside of mesh<...>, after "mesh<".
absl::StatusOr<NamedMesh> MeshBody(Parser& parser) {
  NamedMesh result;
  RETURN_IF_ERROR(parser.Expect("["));
  const auto one_axis = [&]() -> absl::Status {
    MeshAxis axis;
    ASSIGN_OR_RETURN(axis.name, parser.Quoted());
    RETURN_IF_ERROR(parser.Expect("="));
    ASSIGN_OR_RETURN(axis.size, parser.Integer());
    if (axis.size <= 0) return parser.Error("a positive axis size");
    const int64_t limit = (int64_t{1} << 31) / axis.size;
    if (result.mesh.size() > limit) return parser.Error("a mesh of fewer than 2^31 devices");
    result.mesh.axes.push_back(axis);
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(parser.List("]", one_axis));
  if (parser.Accept(",")) {
    RETURN_IF_ERROR(parser.Expect("device_ids"));
    RETURN_IF_ERROR(parser.Expect("="));
    RETURN_IF_ERROR(parser.Expect("["));
    const auto one_id = [&]() -> absl::Status {
      ASSIGN_OR_RETURN(const int64_t id, parser.Integer());
      result.mesh.device_ids.push_back(id);
      return absl::OkStatus();
    };
    RETURN_IF_ERROR(parser.List("]", one_id));
    if (result.mesh.axes.empty()) {
      result.maximal = true;
    } else {
      std::vector<int64_t>& ids = result.mesh.device_ids;
      if (!IsPermutation(ids, result.mesh.size())) {
        return parser.Error("device_ids that are a permutation of the mesh");
      }
      if (std::ranges::is_sorted(ids)) ids.clear();
    }
  }
  RETURN_IF_ERROR(parser.Expect(">"));
  return result;
}

// The mesh that axis names are of, and its axes in the program's mesh.
struct MeshScope {
  Mesh own;
  std::vector<Axes> translated;  // empty: it is the program's mesh
};

absl::StatusOr<Axes> AxisIn(Parser& parser, const MeshScope& scope) {
  const Mesh& mesh = scope.own;
  ASSIGN_OR_RETURN(const std::string name, parser.Quoted());
  const auto it =
      std::ranges::find_if(mesh.axes, [&](const MeshAxis& axis) { return axis.name == name; });
  if (it == mesh.axes.end()) {
    return parser.Error(fmt::format("an axis of {} instead of \"{}\"", ToString(mesh), name));
  }
  AxisRef axis = FullAxis(mesh, static_cast<int32_t>(it - mesh.axes.begin()));
  if (parser.Accept(":")) {
    RETURN_IF_ERROR(parser.Expect("("));
    ASSIGN_OR_RETURN(axis.pre_size, parser.Integer());
    RETURN_IF_ERROR(parser.Expect(")"));
    ASSIGN_OR_RETURN(axis.size, parser.Integer());
    if (axis.pre_size <= 0 || axis.size <= 0 || axis.pre_size > it->size || axis.size > it->size ||
        it->size % (axis.pre_size * axis.size) != 0) {
      return parser.Error(fmt::format("sizes that divide \"{}\"={}", name, it->size));
    }
  }
  return Translated(axis, scope.translated);
}

absl::Status AxisList(Parser& parser, const MeshScope& scope, Axes* axes, bool* open) {
  RETURN_IF_ERROR(parser.Expect("{"));
  const auto one_ref = [&]() -> absl::Status {
    if (open != nullptr && parser.Accept("?")) {
      *open = true;
      return absl::OkStatus();
    }
    ASSIGN_OR_RETURN(const Axes more, AxisIn(parser, scope));
    axes->insert(axes->end(), more.begin(), more.end());
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(parser.List("}", one_ref));
  return absl::OkStatus();
}

absl::StatusOr<MeshScope> ScopeOf(const Mesh& own, const Mesh& program) {
  MeshScope scope;
  scope.own = own;
  if (own.size() == 1) {
    // One device: its axes split nothing.
    scope.translated.assign(own.axes.size(), {});
  } else if (own != program) {
    ASSIGN_OR_RETURN(scope.translated, AxesInMesh(own, program));
  }
  return scope;
}

// The mesh that a sharding names or spells out.
absl::StatusOr<MeshScope> MeshOf(Parser& parser, const Mesh& mesh,
                                 const std::vector<NamedMesh>& table) {
  NamedMesh named;
  if (parser.Accept("@")) {
    ASSIGN_OR_RETURN(const std::string name, parser.Name());
    const auto it =
        std::ranges::find_if(table, [&](const NamedMesh& entry) { return entry.name == name; });
    if (it == table.end()) {
      return parser.Error(fmt::format("a mesh that xla.sdy.meshes has instead of @{}", name));
    }
    named = *it;
  } else {
    parser.Accept("#sdy.");
    RETURN_IF_ERROR(parser.Expect("mesh<"));
    ASSIGN_OR_RETURN(named, MeshBody(parser));
  }
  if (named.maximal) {
    if (mesh.size() == 1) return MeshScope{};
    return NoRule(
        "a value placed on one device only (maximal sharding) has no rule; give it a "
        "NamedSharding over the mesh");
  }
  return ScopeOf(named.mesh, mesh);
}

// The inside of sharding<...>, after "<".
absl::StatusOr<Sharding> ShardingBody(Parser& parser, const Mesh& program_mesh,
                                      const std::vector<NamedMesh>& table) {
  Sharding sharding;
  ASSIGN_OR_RETURN(const MeshScope scope, MeshOf(parser, program_mesh, table));
  RETURN_IF_ERROR(parser.Expect(","));
  RETURN_IF_ERROR(parser.Expect("["));
  const auto one_dim = [&]() -> absl::Status {
    DimSharding dim;
    RETURN_IF_ERROR(AxisList(parser, scope, &dim.axes, &dim.open));
    dim.axes = Joined(dim.axes);
    if (parser.Accept("p")) {
      ASSIGN_OR_RETURN(const int64_t priority, parser.Integer());
      dim.priority = static_cast<int32_t>(std::min<int64_t>(priority, 1 << 20));
    }
    sharding.dims.push_back(std::move(dim));
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(parser.List("]", one_dim));
  while (parser.Accept(",")) {
    if (parser.Accept("replicated")) {
      RETURN_IF_ERROR(parser.Expect("="));
      RETURN_IF_ERROR(AxisList(parser, scope, &sharding.replicated, nullptr));
    } else if (parser.Accept("unreduced")) {
      RETURN_IF_ERROR(parser.Expect("="));
      if (parser.Accept("max")) {
        sharding.reduction = Reduction::kMax;
      } else if (parser.Accept("min")) {
        sharding.reduction = Reduction::kMin;
      } else {
        parser.Accept("sum");
      }
      RETURN_IF_ERROR(AxisList(parser, scope, &sharding.unreduced, nullptr));
    } else {
      return parser.Error("replicated= or unreduced=");
    }
  }
  RETURN_IF_ERROR(parser.Expect(">"));
  Axes seen;
  for (const DimSharding& dim : sharding.dims) {
    for (const AxisRef& axis : dim.axes) {
      if (Overlap(seen, axis)) return parser.Error("every axis at most once");
      seen.push_back(axis);
    }
  }
  for (const Axes* axes : {&sharding.replicated, &sharding.unreduced}) {
    for (const AxisRef& axis : *axes) {
      if (Overlap(seen, axis)) return parser.Error("every axis at most once");
      seen.push_back(axis);
    }
  }
  return sharding;
}

}  // namespace

absl::StatusOr<std::vector<NamedMesh>> ParseMeshes(std::string_view text) {
  Parser parser(text);
  std::vector<NamedMesh> meshes;
  RETURN_IF_ERROR(parser.Expect("{"));
  const auto one_mesh = [&]() -> absl::Status {
    parser.Accept("@");
    ASSIGN_OR_RETURN(const std::string name, parser.Name());
    RETURN_IF_ERROR(parser.Expect("="));
    RETURN_IF_ERROR(parser.Expect("#sdy.mesh<"));
    ASSIGN_OR_RETURN(NamedMesh mesh, MeshBody(parser));
    mesh.name = name;
    meshes.push_back(std::move(mesh));
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(parser.List("}", one_mesh));
  RETURN_IF_ERROR(parser.ExpectEnd());
  return meshes;
}

absl::StatusOr<Sharding> ParseSharding(std::string_view text, const Mesh& mesh,
                                       const std::vector<NamedMesh>& table) {
  Parser parser(text);
  RETURN_IF_ERROR(parser.Expect("#sdy.sharding<"));
  ASSIGN_OR_RETURN(Sharding sharding, ShardingBody(parser, mesh, table));
  RETURN_IF_ERROR(parser.ExpectEnd());
  return sharding;
}

absl::StatusOr<std::vector<Sharding>> ParseShardings(std::string_view text, const Mesh& mesh,
                                                     const std::vector<NamedMesh>& table) {
  Parser parser(text);
  std::vector<Sharding> shardings;
  if (!parser.Accept("#sdy.sharding_per_value<")) {
    ASSIGN_OR_RETURN(Sharding sharding, ParseSharding(text, mesh, table));
    shardings.push_back(std::move(sharding));
    return shardings;
  }
  RETURN_IF_ERROR(parser.Expect("["));
  const auto one_sharding = [&]() -> absl::Status {
    parser.Accept("#sdy.sharding");
    RETURN_IF_ERROR(parser.Expect("<"));
    ASSIGN_OR_RETURN(Sharding sharding, ShardingBody(parser, mesh, table));
    shardings.push_back(std::move(sharding));
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(parser.List("]", one_sharding));
  RETURN_IF_ERROR(parser.Expect(">"));
  RETURN_IF_ERROR(parser.ExpectEnd());
  return shardings;
}

absl::StatusOr<Axes> ParseManualAxes(std::string_view text, const Mesh& mesh,
                                     const std::vector<NamedMesh>& table) {
  // The text does not say which mesh: the program's, else one that has the axes.
  std::vector<const Mesh*> candidates = {&mesh};
  for (const NamedMesh& named : table) {
    if (!named.maximal && named.mesh != mesh) candidates.push_back(&named.mesh);
  }
  absl::StatusOr<Axes> first = Axes();
  for (const Mesh* candidate : candidates) {
    const auto parse = [&]() -> absl::StatusOr<Axes> {
      Parser parser(text);
      Axes axes;
      ASSIGN_OR_RETURN(const MeshScope scope, ScopeOf(*candidate, mesh));
      RETURN_IF_ERROR(parser.Expect("#sdy<"));
      RETURN_IF_ERROR(parser.Expect("manual_axes"));
      RETURN_IF_ERROR(AxisList(parser, scope, &axes, nullptr));
      RETURN_IF_ERROR(parser.Expect(">"));
      RETURN_IF_ERROR(parser.ExpectEnd());
      return axes;
    };
    absl::StatusOr<Axes> axes = parse();
    if (axes.ok() || candidate == candidates.front()) first = std::move(axes);
    if (first.ok()) return first;
  }
  return first;
}

}  // namespace tpusim::sharding
