#!/usr/bin/env bash
# Builds the microbenchmarks, checks them against a float64 reference, measures, and leaves measurements.csv and
# machine.json in a folder. Takes a few minutes on one GPU.
#
#   cuda/run.sh [FOLDER]        default: measurements-DATE beside this script
#   cuda/run.sh --build-only    no GPU needed
#
# NVCC: the compiler (default: nvcc on the path). ARCH: the architecture (default: native; a name such as sm_90 to build
# without a GPU). NVCC_FLAGS: anything more, such as -I and -L of a CUDA that is not where nvcc expects it.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
nvcc=${NVCC:-nvcc}
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT

# shellcheck disable=SC2086  # NVCC_FLAGS holds several words
"$nvcc" -std=c++20 -O3 -arch="${ARCH:-native}" -o "$build/microbench" "$here/microbench.cu" -lcublas ${NVCC_FLAGS:-}
echo "built with $("$nvcc" --version | tail -n 1)"
if [[ ${1:-} == --build-only ]]; then
    exit 0
fi

out=${1:-$here/measurements-$(date -u +%Y-%m-%d)}
mkdir -p "$out"
"$build/microbench" check
"$build/microbench" measure "$out"
{
    echo "date $(date -u +%Y-%m-%dT%H:%M:%SZ)"
    nvidia-smi --query-gpu=name,driver_version,power.limit,clocks.max.sm,clocks.max.mem --format=csv
} > "$out/driver.txt"
echo "wrote $out"
