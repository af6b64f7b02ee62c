// Decides which collectives the chip runs beside compute.
//
// A collective-permute always; what the SparseCores take, by kind and size; an all-gather where
// the chip's compiler has asynchronous ones. All others stop the main stream.
#ifndef TPUSIM_WORKLOADS_TARGET_ASYNC_FORM_H_
#define TPUSIM_WORKLOADS_TARGET_ASYNC_FORM_H_

#include <string>

#include "workloads/hlo/ir/ir.h"
#include "workloads/target/target.h"

namespace tpusim::target {

enum class AsyncForm { kNone, kPermute, kOffLoaded, kGather };

// The kinds of collectives that are examined.
struct AsyncOptions {
  bool permutes = true;
  bool all_gathers = true;  // that are not off-loaded
  bool offload = true;
};
AsyncForm AsyncFormOf(const hlo::Instruction& i, const Target& target, const AsyncOptions& options);

// Whether permutes of a slice of this size may be asynchronous.
bool HasAsyncPermutes(const Target& target);

// Whether it is asynchronous, or could be as part of a larger one.
bool MayBecomeAsync(const hlo::Instruction& collective, const Target& target);

// Why a collective that the main stream waits for is not asynchronous, as half a sentence.
std::string WhySynchronous(const hlo::Instruction& collective, const Target& target);

}  // namespace tpusim::target

#endif  // TPUSIM_WORKLOADS_TARGET_ASYNC_FORM_H_
