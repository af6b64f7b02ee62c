// The statements of the program that the axes of a value came from.
//
// Propagation only adds axes. It notes each time that a value takes an axis it has not had, and
// from which op. Followed backwards in time these notes lead from any value that an axis splits to
// one that the program itself gave that axis: an argument, a constraint, the specs of a shard_map.
// So a message about a value can name the place where another sharding has to be written.
#ifndef TPUSIM_WORKLOADS_SHARDING_PROPAGATION_ORIGINS_H_
#define TPUSIM_WORKLOADS_SHARDING_PROPAGATION_ORIGINS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "workloads/sharding/propagation/propagation_graph.h"

namespace tpusim::sharding {

class Origins {
 public:
  // The graph after propagation; it must live as long.
  explicit Origins(const PropagationGraph& graph);

  // The annotated node that mesh axis `axis` of a node came from; -1: that is not known.
  int32_t Of(int32_t node, int32_t axis);

 private:
  // A node took an axis from an op; adoptions are numbered in the order of time.
  int32_t AdoptionOf(int32_t node, int32_t axis) const;
  // The other tensor of that op that had the axis by then, in the same dimension of the op's loops.
  int32_t SourceOf(int32_t adoption) const;

  const PropagationGraph& graph_;
  std::vector<std::pair<int64_t, int32_t>> adoption_of_;  // (node, axis) as a key, sorted
  static constexpr int32_t kUnknown = -2;
  std::vector<int32_t> origin_of_;  // by adoption, remembered
  int64_t axes_ = 1;
};

// Origins of a module's values, in words: "argument params['w']", "constraint at model.py:12". Each
// text once.
class OriginTexts {
 public:
  // After propagation; both must live as long.
  OriginTexts(const NormalisedModule& module, const PropagationGraph& graph);

  // Returns the origins of the axes of a value that is this node and has this sharding.
  std::vector<AxisOrigin> Of(int32_t node, const Sharding& sharding);
  // Returns the texts that the numbers stand for.
  std::vector<std::string> Take() { return std::move(texts_); }

 private:
  std::string TextOf(int32_t node) const;

  const NormalisedModule& module_;
  const PropagationGraph& graph_;
  Origins origins_;
  std::vector<const hlo::Instruction*> value_of_;  // by node: the first of its values
  std::vector<int32_t> text_of_;                   // by node: index into texts_, or -1
  std::vector<std::string> texts_;
};

}  // namespace tpusim::sharding

#endif  // TPUSIM_WORKLOADS_SHARDING_PROPAGATION_ORIGINS_H_
