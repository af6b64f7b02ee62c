// Sizes of a vector register.
#ifndef TPUSIM_CONFIGS_VECTOR_REGISTER_H_
#define TPUSIM_CONFIGS_VECTOR_REGISTER_H_

#include <cstdint>

#include "configs/chip.h"

namespace tpusim::configs {

// Returns the bytes of a vector register, which has a word of 32 bits in each lane of a sublane.
inline int64_t RegisterBytes(const VpuParams& vpu) {
  constexpr int64_t kWordBytes = 4;  // number: bytes of a word
  return vpu.sublanes * vpu.lanes * kWordBytes;
}

}  // namespace tpusim::configs

#endif  // TPUSIM_CONFIGS_VECTOR_REGISTER_H_
