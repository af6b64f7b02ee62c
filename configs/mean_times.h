// Means of times, in whole picoseconds, that add up as the times do.
//
// Parts of a step are shown beside what is left of it. Rounded one by one their means may come to
// more than the mean step, and the rest is a negative time. So the sum of the parts so far is what is
// rounded, and a mean is the difference of two such sums: off by less than a picosecond, as before.
#ifndef TPUSIM_CONFIGS_MEAN_TIMES_H_
#define TPUSIM_CONFIGS_MEAN_TIMES_H_

#include <cmath>

#include "configs/units.h"

namespace tpusim {

class MeanTimes {
 public:
  explicit MeanTimes(double count) : count_(count) {}

  // The mean of the next part, whose times add up to `sum` picoseconds: of many devices and hours
  // more than 64 bits hold.
  Picoseconds Next(double sum) {
    sum_ += sum;
    const Picoseconds before = mean_;
    mean_ = Picoseconds(std::llround(sum_ / count_));
    return mean_ - before;
  }

 private:
  double count_, sum_ = 0;
  Picoseconds mean_{0};
};

}  // namespace tpusim

#endif  // TPUSIM_CONFIGS_MEAN_TIMES_H_
