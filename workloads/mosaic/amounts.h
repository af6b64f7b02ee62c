// The cost of a call of a kernel, as amounts that add up.
//
// A price has stages (order.h says what waits for what), bytes, and the prices of one pass of each
// loop whose length is data. It is found for many points of a grid and many branches, and compared:
// of branches that data decide, the dearest counts.
#ifndef TPUSIM_WORKLOADS_MOSAIC_AMOUNTS_H_
#define TPUSIM_WORKLOADS_MOSAIC_AMOUNTS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "workloads/kernel_cost.pb.h"

namespace tpusim::mosaic {

// Sums and products of amounts that are not negative; what is too large stays at the largest.
int64_t Plus(int64_t a, int64_t b);
int64_t Times(int64_t a, int64_t b);

// [m,k] x [k,n] in a number format of the arrays, as KernelProduct has it.
struct Product {
  int64_t m = 0, k = 0, n = 0;
  std::string_view format;  // of static storage
  friend auto operator<=>(const Product&, const Product&) = default;
};

// A part of a body whose units run side by side.
struct Stage {
  int64_t flops = 0;
  int64_t transcendentals = 0;
  int64_t spilled_bytes = 0;  // of arrays that registers do not hold
  // Operations of the vector units, on a register each.
  double valu = 0, eup = 0, xlu = 0;
  std::map<Product, int64_t> products = {};

  void Add(const Stage& other, int64_t times = 1);
  friend bool operator==(const Stage&, const Stage&) = default;
};

// A loop on data: its number in the kernel, or else the axis of the grid that it is.
struct Loop {
  bool axis = false;
  int number = 0;
  std::string source = "";
  std::optional<int64_t> at_most = std::nullopt;  // passes, each time that it is reached
};

// Seconds of each amount, by which prices are compared.
struct Weights {
  double product_flop = 0, valu = 0, eup = 0, xlu = 0, byte = 0, remote_byte = 0;
};

struct LoopPrice;

struct Price {
  std::vector<Stage> stages = {};
  int64_t bytes = 0;
  int64_t remote_bytes = 0;
  // FLOPs of the products that begin chains of stages, and these over the number of chains that
  // overlap (order.h).
  double chain_flops = 0, exposed_flops = 0;
  std::vector<LoopPrice> loops;
  // Copies whose size is data, as they were counted: "f32[8,128] at FILE:LINE".
  std::vector<std::string> largest_copies = {};

  bool IsNothing() const;
  void Add(const Price& other, int64_t times = 1);
  Price TimesOf(int64_t count) const;
  // Returns the price of a loop one pass of which costs this.
  Price InLoop(const Loop& loop) const;
  Stage Total() const;
  // Loops count one pass.
  double Size(const Weights& weights) const;
  // Returns the message that a call carries; loops are those of a kernel of that name.
  tpusim::KernelCost Cost(const std::string& kernel) const;
};

struct LoopPrice {
  Loop loop;
  Price once;
};

// Returns Price::Size of a price in the form that a call carries.
double SizeOf(const tpusim::KernelCost& cost, const Weights& weights);

// Appends those of `more` that are not there yet.
void AddDistinct(const std::vector<std::string>& more, std::vector<std::string>* all);

}  // namespace tpusim::mosaic

#endif  // TPUSIM_WORKLOADS_MOSAIC_AMOUNTS_H_
