#!/usr/bin/env bash
# Exports the decoder train steps of this folder anew: 32 layers as a scan, width 5,120, 2,048
# tokens, 8 sequences per device. Needs JAX (tools/python/requirements-test.txt).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

write() {
  local name=$1
  shift
  "${PYTHON:-python3}" ../decoder_train.py --layers 32 --hidden 5120 --seq 2048 \
    --batch-per-device 8 --remat --query-block 512 "$@" -o "decoder_$name.pb.gz"
}

write fsdp_256 --fsdp 256 --config v5e-16x16
write fsdp_1024 --fsdp 1024 --config v5p-8x8x16
write fsdp_tp_64 --fsdp 16 --tp 4 --config v5p-4x4x4
write fsdp_tp_256 --fsdp 32 --tp 8 --config v5e-16x16
write fsdp_tp_4096 --fsdp 512 --tp 8 --config v5p-16x16x16
write fsdp_tp_9216 --data 576 --fsdp 16 --tp 2 --config v7x-16x24x24
