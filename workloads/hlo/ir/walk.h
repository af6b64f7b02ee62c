// Walks over what is being changed.
//
// A pass that rewrites what it goes over removes instructions that are still ahead of it and
// adds others. A Walk takes the order as it is when it begins, skips what has been removed by
// the time it gets there, and does not visit what is added meanwhile:
//
//   for (Instruction* i : Walk(computation->PostOrder())) Rewrite(i);
//   for (Instruction* user : Walk(i->users())) user->ReplaceOperand(0, other);
//
// The same for computations: Walk(module.computations()). Every loop whose body may remove,
// inline, or change the list that it goes over is one. Lists of something else that were made
// before a change (matches, groups) ask removed() of the instructions in them.
#ifndef TPUSIM_WORKLOADS_HLO_IR_WALK_H_
#define TPUSIM_WORKLOADS_HLO_IR_WALK_H_

#include <cstddef>
#include <iterator>
#include <utility>
#include <vector>

namespace tpusim::hlo {

template <typename Node>
class Walk {
 public:
  class Iterator {
   public:
    using difference_type = std::ptrdiff_t;
    using value_type = Node*;
    Iterator() = default;
    Iterator(Node* const* at, Node* const* end) : at_(at), end_(end) { Skip(); }
    Node* operator*() const { return *at_; }
    Iterator& operator++() {
      ++at_;
      Skip();
      return *this;
    }
    Iterator operator++(int) {
      Iterator before = *this;
      ++*this;
      return before;
    }
    bool operator==(const Iterator& other) const { return at_ == other.at_; }

   private:
    void Skip() {
      while (at_ != end_ && (*at_)->removed()) ++at_;
    }
    Node* const* at_ = nullptr;
    Node* const* end_ = nullptr;
  };

  explicit Walk(std::vector<Node*> order) : order_(std::move(order)) {}
  Iterator begin() const { return {order_.data(), order_.data() + order_.size()}; }
  Iterator end() const {
    Node* const* end = order_.data() + order_.size();
    return {end, end};
  }

 private:
  const std::vector<Node*> order_;
};

}  // namespace tpusim::hlo

#endif  // TPUSIM_WORKLOADS_HLO_IR_WALK_H_
