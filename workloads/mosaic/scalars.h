// Tracks what is known of the scalars in a kernel's body.
//
// Scalars decide what a kernel does: which branch it takes, how often a loop runs, how large a
// copy is. Of each is kept what there is of
//
//     exact      its values at the points of the grid that are walked, where nothing of it is
//                data
//     low, high  bounds of all values that it can have: `min(128, n)` is at most 128 whatever n is
//     symbol     what it is made of (conditions.h), so that what is computed twice is known to be
//                the same
#ifndef TPUSIM_WORKLOADS_MOSAIC_SCALARS_H_
#define TPUSIM_WORKLOADS_MOSAIC_SCALARS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "workloads/mosaic/conditions.h"
#include "workloads/mosaic/module.h"

namespace tpusim::mosaic {

// An integer at each of so many points; a column of one entry has it everywhere.
class Column {
 public:
  Column() : values_(1) {}
  explicit Column(int64_t everywhere) : values_(1, everywhere) {}
  // Keeps one, if all are equal.
  explicit Column(std::vector<int64_t> values);

  int64_t operator[](size_t point) const {
    return values_.size() == 1 ? values_[0] : values_[point];
  }
  bool IsUniform() const { return values_.size() == 1; }
  // At some of the points, by their places.
  Column At(const std::vector<int64_t>& rows) const;
  std::pair<int64_t, int64_t> Bounds() const;

 private:
  std::vector<int64_t> values_;
};

struct Scalar {
  std::variant<Linear, Literal> symbol;  // of an integer, of a boolean
  std::shared_ptr<const Column> exact = nullptr;  // null: something of it is data
  double low = -kInfinity, high = kInfinity;
  // The points at which a boolean can be true, and at which it can be false. Null: all of them.
  std::shared_ptr<const std::pair<Column, Column>> possible = nullptr;

  // At some of the points.
  Scalar At(const std::vector<int64_t>& rows) const;
  // At which points a boolean can be true, and at which false.
  std::pair<Column, Column> Outcomes(size_t points) const;
};

// The result of an operation of scalars at all points, from its operands; null: no rule.
std::shared_ptr<const Column> Evaluated(const Operation& operation,
                                        const std::vector<const Column*>& operands, size_t points);
// Whether there is such a rule.
bool CanEvaluate(const Operation& operation);
// Returns the value of an integer "arith.constant"; nullopt: the operation is something else.
std::optional<int64_t> ConstantOf(const Operation& operation);
bool IsBoolean(const Value& value);
bool IsScalar(const Value& value);

// Makes scalars out of others; numbers the atoms of one kernel.
class Scalars {
 public:
  // The loops around the current operation. An atom belongs to the innermost loop that
  // changes it.
  int depth = 0;

  // Returns how many loops are around the innermost one that changes an atom.
  int DepthOf(int atom) const { return depths_[static_cast<size_t>(atom)]; }
  // A scalar that nothing is known of, other than all before.
  Scalar Unknown(bool boolean);
  // An integer between these, another in every pass of the innermost loop.
  Scalar Counted(double low, double high);
  // Returns the same scalar for the same operands; `changes`: another in every pass of a loop.
  Scalar MadeOf(const std::string& what, const std::vector<Scalar>& operands, bool boolean,
                bool changes = false);
  Scalar Constant(int64_t value, bool boolean) const;
  // A scalar whose values are known, made as `symbol` says.
  Scalar Known(Column exact, const Scalar& symbol) const;
  // Returns the literal that says whether a condition holds.
  Literal Condition(const Scalar& scalar);
  // Returns a scalar with the bounds that it has when a literal holds.
  Scalar Refined(const Scalar& scalar, Literal when) const;
  // The result of an operation on scalars, at so many points; an atom without a rule.
  Scalar Apply(const Operation& operation, const std::vector<Scalar>& operands, size_t points);

 private:
  Scalar Symbolic(const Operation& operation, const std::vector<Scalar>& operands, bool boolean);
  Scalar Logic(const Operation& operation, const std::vector<Scalar>& operands);
  Scalar Compared(std::string_view comparison, const Scalar& left, const Scalar& right);
  Linear NumberOf(const Scalar& scalar);
  Scalar Extended(const Scalar& boolean, int64_t if_true);
  Scalar OfAtom(int atom, bool boolean) const;
  int NewAtom(int depth);
  int Atom(const std::string& key, int depth);
  int DepthOf(const std::variant<Linear, Literal>& symbol) const;

  // An atom that says of an integer that it is a number, or at most that.
  struct Statement {
    Form form;
    bool equal = false;
    int64_t number = 0;
  };

  std::map<std::string, int> numbers_;
  std::map<int, Statement> statements_;
  std::map<int, std::pair<Literal, Literal>> conjunctions_;  // what atoms say together
  std::vector<int> depths_ = {0};  // of atoms, the first of which is true
  // The booleans that integers were made of, and the integers where those hold.
  std::map<Form, std::pair<Literal, int64_t>> booleans_;
};

}  // namespace tpusim::mosaic

#endif  // TPUSIM_WORKLOADS_MOSAIC_SCALARS_H_
