#include "libfuzzer.h"

TPUSIM_FUZZER(tpusim::fuzz::kKernel)
