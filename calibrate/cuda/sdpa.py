"""A second opinion on attention with a cached prefix: PyTorch's fused scaled-dot-product attention.

Writes rows in the format of microbench.cu to standard output: python sdpa.py > measurements-sdpa.csv
The mask of a suffix on a prefix is causal from the lower right corner, as in torch.nn.attention.bias.
"""

import statistics

import torch
from torch.nn.attention.bias import causal_lower_right
from torch.nn.functional import scaled_dot_product_attention

HEADER = (
    "device,operator,rows,columns,inner,batch,new_tokens,cached_tokens,heads,kv_heads,head_dim,bytes,direction,"
    "repeats,seconds_median,seconds_min,seconds_p90"
)
HEAD_DIM = 128
REPEATS = 20


def seconds(launch, launches=10):
    """Per launch, of REPEATS batches of launches timed with events."""
    start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    times = []
    for _ in range(REPEATS + 3):
        start.record()
        for _ in range(launches):
            launch()
        stop.record()
        stop.synchronize()
        times.append(start.elapsed_time(stop) / launches * 1e-3)
    return sorted(times[3:])


def main():
    device = torch.cuda.get_device_name()
    print(HEADER)
    for heads, kv_heads in [(32, 32), (32, 8), (8, 1), (64, 8)]:
        for cached in [0, 128, 512, 1024, 2048, 4096, 8192, 16384, 32768]:
            for new in [16, 64, 128, 256, 512, 1024, 2048, 4096]:
                q = torch.randn(1, heads, new, HEAD_DIM, device="cuda", dtype=torch.float16)
                k, v = (
                    torch.randn(1, kv_heads, cached + new, HEAD_DIM, device="cuda", dtype=torch.float16)
                    for _ in range(2)
                )
                mask = causal_lower_right(new, cached + new)
                times = seconds(
                    lambda: scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=True)
                )
                print(
                    f"{device},prefill-attention,,,,1,{new},{cached},{heads},{kv_heads},{HEAD_DIM},,,{REPEATS},"
                    f"{statistics.median(times):.9g},{times[0]:.9g},{times[len(times) * 9 // 10]:.9g}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
