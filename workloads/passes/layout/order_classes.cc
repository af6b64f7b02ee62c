#include "workloads/passes/layout/order_classes.h"

#include <numeric>

#include "configs/status_macros.h"

namespace tpusim::passes {

Dims Identity(int64_t rank) {
  Dims identity(static_cast<size_t>(rank));
  std::iota(identity.begin(), identity.end(), 0);
  return identity;
}

Dims Compose(const Dims& first, const Dims& second) {
  Dims composed(first.size());
  for (size_t d = 0; d < first.size(); ++d) composed[d] = second[static_cast<size_t>(first[d])];
  return composed;
}

Dims Inverse(const Dims& permutation) {
  Dims inverse(permutation.size());
  for (size_t d = 0; d < permutation.size(); ++d) {
    inverse[static_cast<size_t>(permutation[d])] = static_cast<int64_t>(d);
  }
  return inverse;
}

int32_t OrderClasses::Add(int64_t rank) {
  const int32_t value = size();
  parents_.push_back(value);
  to_parent_.push_back(Identity(rank));
  sizes_.push_back(1);
  return value;
}

int32_t OrderClasses::Find(int32_t value) const {
  std::vector<int32_t> path;
  int32_t root = value;
  for (; parents_[root] != root; root = parents_[root]) path.push_back(root);
  // From the root down, every value on the way gets a link to the root.
  for (size_t n = path.size(); n-- > 0;) {
    const int32_t at = path[n], parent = parents_[at];
    if (parent == root) continue;
    to_parent_[at] = Compose(to_parent_[at], to_parent_[parent]);
    parents_[at] = root;
  }
  return root;
}

const Dims& OrderClasses::ToClass(int32_t value) const {
  Find(value);
  return to_parent_[value];
}

bool OrderClasses::Unite(int32_t a, int32_t b, const Dims& map) {
  TPUSIM_CHECK(rank(a) == rank(b), "values of one class have one rank");
  const int32_t root_a = Find(a), root_b = Find(b);
  // Dimension d of root a is this one of root b.
  const Dims roots = Compose(Inverse(ToClass(a)), Compose(map, ToClass(b)));
  if (root_a == root_b) return roots == Identity(rank(a));
  if (sizes_[root_a] > sizes_[root_b]) {
    to_parent_[root_b] = Inverse(roots);
    parents_[root_b] = root_a;
    sizes_[root_a] += sizes_[root_b];
  } else {
    to_parent_[root_a] = roots;
    parents_[root_a] = root_b;
    sizes_[root_b] += sizes_[root_a];
  }
  return true;
}

bool OrderClasses::UniteEqual(int32_t a, int32_t b) { return Unite(a, b, Identity(rank(a))); }

Dims OrderClasses::OfValue(int32_t value, const Dims& class_order) const {
  return Compose(class_order, Inverse(ToClass(value)));
}

Dims OrderClasses::OfClass(int32_t value, const Dims& value_order) const {
  return Compose(value_order, ToClass(value));
}

}  // namespace tpusim::passes
