#include "sim/timeline.h"

namespace tpusim::sim {

OpTotals& OpTotals::operator+=(const OpTotals& other) {
  count += other.count;
  total += other.total;
  exposed += other.exposed;
  hbm_bytes += other.hbm_bytes;
  waited += other.waited;
  behind += other.behind;
  main += other.main;
  main_busy += other.main_busy;
  return *this;
}

OpTotals& OpTotals::operator-=(const OpTotals& other) { return *this += other * -1; }

OpTotals OpTotals::operator*(int64_t times) const {
  OpTotals product;
  product.count = count * times;
  product.total = total * times;
  product.exposed = exposed * times;
  product.hbm_bytes = hbm_bytes * times;
  product.waited = waited * times;
  product.behind = behind * times;
  product.main = main * times;
  product.main_busy = main_busy * times;
  return product;
}

}  // namespace tpusim::sim
