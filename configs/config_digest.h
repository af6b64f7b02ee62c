// The digest of a slice: of everything in it that can change what a program does there.
//
// A figure that --set changes, a base that a chip file names, an order of devices in a file of
// one's own: two slices may have one name and differ. Members are taken apart by their number, so
// that one that is added to a struct does not compile until it is taken in here.
#ifndef TPUSIM_CONFIGS_CONFIG_DIGEST_H_
#define TPUSIM_CONFIGS_CONFIG_DIGEST_H_

#include "configs/config.h"
#include "configs/digest.h"

namespace tpusim::configs {

void AddTo(Digest& digest, const Config& config);

}  // namespace tpusim::configs

#endif  // TPUSIM_CONFIGS_CONFIG_DIGEST_H_
