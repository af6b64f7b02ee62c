// Why kernels are what they are: the log of fusion's decisions.
#ifndef TPUSIM_WORKLOADS_PASSES_FUSION_EXPLANATION_H_
#define TPUSIM_WORKLOADS_PASSES_FUSION_EXPLANATION_H_

#include <vector>

#include "configs/record.h"
#include "configs/units.h"
#include "workloads/passes/fusion/plan.h"

namespace tpusim::passes::fusion {

class Explanation {
 public:
  explicit Explanation(const Records& records) : records_(records) {}
  bool wanted() const { return records_.wanted(); }

  void Inlined(const Plan& plan, int producer, const std::vector<int>& consumers, bool stays,
               Picoseconds gain);
  void Kept(const Plan& plan, int producer, int consumer, const char* why);
  void NotWorth(const Plan& plan, int producer, const std::vector<int>& consumers,
                Picoseconds loss);
  void Joined(const Plan& plan, int a, int b, const char* how, Picoseconds gain);
  void Reused(const Plan& plan, int value, const std::vector<int>& readers, Picoseconds gain);

 private:
  const Records records_;
};

}  // namespace tpusim::passes::fusion

#endif  // TPUSIM_WORKLOADS_PASSES_FUSION_EXPLANATION_H_
