// Transfers that add what arrives to what is there.
//
// The receiver splits the message into windows of `ici.reduce_window` bytes. A window lands in
// VMEM; meanwhile the window of the partial sum at the same place is fetched from HBM (its address
// was known all along); the VPU adds the two; the sum is written back. Windows are pipelined, so
// that while window i arrives, window i-1 is being added and window i-2 written.
//
// Per byte that arrives, the steady state therefore reads one byte of HBM and
// writes one (kReduceHbmWeight; the arriving byte itself never goes through HBM), and
// takes VregOpsPerByte operations of the VPU. Those are weights of the flow: a
// receiver whose HBM or VPU cannot keep up slows the transfer down.
//
// After the last byte only the last window is left to do: add it, write it back.
// Its fetch is over (windows are equally long, and HBM that keeps up with twice
// the arriving rate has fetched it while it arrived); its write needs no new
// start latency, because the engine is streaming. That is the tail:
//
//   w = min(message, reduce_window)
//   tail = w * VregOpsPerByte / VregOpsPerSecond  +  w / HBM rate
//
// Where the SparseCores run the collective, their lanes add instead: AddsPerByte /
// AddsPerSecond, and the VPU is left alone.
//
// Left out: competition for the VALU slots between the additions and a kernel,
// and the window's read being late behind other traffic in HBM.
#ifndef TPUSIM_MODELS_TIMING_REDUCE_TIMING_H_
#define TPUSIM_MODELS_TIMING_REDUCE_TIMING_H_

#include "configs/chip.h"
#include "configs/units.h"
#include "models/isa/program.h"

namespace tpusim::timing {

// HBM bytes that move at the receiver per byte that arrives: partial sum read, sum written.
inline constexpr double kReduceHbmWeight = 2;

// Whole-register VALU operations that a device can do per second.
double VregOpsPerSecond(const configs::ChipParams& chip);

// Operations per byte that arrives. A register holds sublanes x lanes elements
// of 32 bit; narrower ones are unpacked to that, wider ones take several.
double VregOpsPerByte(const configs::ChipParams& chip, const isa::ReduceAdd& reduce);

// Additions of 32 bit that a device's SparseCores do per second: a lane of every tile
// one per cycle, at the clock of the chip (theirs is not published).
double AddsPerSecond(const configs::ChipParams& chip);
// Additions per byte that arrives: narrow elements take a lane each, wide ones several.
double AddsPerByte(const isa::ReduceAdd& reduce);

// Returns the time from the arrival of the last byte to the complete sum. `to_hbm` false: the
// result stays in VMEM and nothing is written back.
Picoseconds ReduceTail(const configs::ChipParams& chip, const isa::ReduceAdd& reduce, Bytes message,
                       bool to_hbm = true);

}  // namespace tpusim::timing

#endif  // TPUSIM_MODELS_TIMING_REDUCE_TIMING_H_
