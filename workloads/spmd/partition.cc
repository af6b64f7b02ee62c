#include "workloads/spmd/partition.h"
