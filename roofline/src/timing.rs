//! How long a kernel takes: from the datasheet alone, at constant utilisation, or with fitted efficiencies.

use crate::calibration::Calibration;
use crate::gpu::Gpu;
use crate::kernel::Kernel;
use crate::rates::engine::EngineRates;

/// A way of turning a kernel into seconds.
#[derive(Debug, Clone, Copy)]
pub enum KernelTiming<'a> {
    /// `max(flops / peak, bytes / bandwidth)` with the datasheet's peaks: what no kernel can beat.
    Datasheet,
    /// The course's rule: arithmetic at a constant fraction of the peak (attention not halved for causality);
    /// memory and links, where there is no arithmetic in the tensor units or one query per sequence, at full bandwidth.
    Constant(f64),
    /// Fitted efficiencies.
    Calibrated(&'a Calibration),
}

impl KernelTiming<'_> {
    /// What a serving engine adds, where that was measured.
    pub(crate) fn engine(&self) -> Option<&EngineRates> {
        match self {
            Self::Calibrated(calibration) => calibration.engine.as_ref(),
            Self::Datasheet | Self::Constant(_) => None,
        }
    }

    /// Seconds that `kernel` takes on `gpu`.
    pub fn seconds(&self, gpu: &Gpu, kernel: &Kernel) -> f64 {
        match self {
            Self::Datasheet => datasheet(gpu, kernel),
            Self::Constant(utilisation) => constant(gpu, kernel, *utilisation),
            Self::Calibrated(calibration) => calibration.seconds(gpu, kernel),
        }
    }
}

fn datasheet(gpu: &Gpu, kernel: &Kernel) -> f64 {
    let arithmetic = kernel.flops() / peak(gpu, kernel);
    let traffic = kernel.bytes() / bandwidth(gpu, kernel);
    arithmetic.max(traffic)
}

fn constant(gpu: &Gpu, kernel: &Kernel, utilisation: f64) -> f64 {
    let flops = match kernel {
        Kernel::Prefill(a) => {
            4.0 * a.batch * a.heads * a.head_dim * a.new_tokens * a.total_tokens().min(a.window)
        }
        Kernel::Gemm(_) => kernel.flops(),
        _ => return kernel.bytes() / bandwidth(gpu, kernel),
    };
    flops / (utilisation * peak(gpu, kernel))
}

/// FLOP/s of the units that run the kernel.
fn peak(gpu: &Gpu, kernel: &Kernel) -> f64 {
    match kernel {
        Kernel::Gemm(g) => gpu.gemm_flops(g.weight_bytes),
        Kernel::Stream(_) => gpu.vector_flops,
        _ => gpu.peak_flops,
    }
}

fn bandwidth(gpu: &Gpu, kernel: &Kernel) -> f64 {
    match kernel {
        Kernel::AllReduce(_) => gpu.peer_bandwidth(),
        Kernel::HostCopy(_) => gpu.host_bandwidth,
        _ => gpu.memory_bandwidth,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{AllReduce, DecodeAttention, Gemm, PrefillAttention, Stream};
    use proptest::prelude::*;

    fn calibrations() -> Vec<(Gpu, Calibration)> {
        let of = |gpu: Gpu| Calibration::named(&gpu.calibration).map(|c| (gpu, c));
        Gpu::presets()
            .unwrap()
            .into_iter()
            .map(|gpu| of(gpu).unwrap())
            .collect()
    }

    /// Seconds of `small` and of `large` under every way of pricing on every GPU.
    fn both(small: &Kernel, large: &Kernel) -> Vec<[f64; 2]> {
        let mut times = Vec::new();
        for (gpu, calibration) in &calibrations() {
            let ways = [
                KernelTiming::Datasheet,
                KernelTiming::Constant(0.5),
                KernelTiming::Calibrated(calibration),
            ];
            times.extend(ways.map(|way| [way.seconds(gpu, small), way.seconds(gpu, large)]));
        }
        times
    }

    /// The powers and logarithms are good to the last bit but one.
    fn not_faster(small: &Kernel, large: &Kernel) -> Result<(), TestCaseError> {
        for [a, b] in both(small, large) {
            prop_assert!(a.is_finite() && a >= 0.0, "{small:?}: {a}");
            prop_assert!(b >= a * (1.0 - 1e-12), "{large:?}: {b} is less than {a}");
        }
        Ok(())
    }

    fn attention([batch, new, cached, heads, window]: [u32; 5]) -> PrefillAttention {
        PrefillAttention {
            batch: f64::from(batch),
            new_tokens: f64::from(new),
            cached_tokens: f64::from(cached),
            heads: f64::from(4 * heads),
            kv_heads: f64::from(heads),
            head_dim: 128.0,
            window: if window == 0 {
                f64::INFINITY
            } else {
                f64::from(window)
            },
            kv_bytes: 2.0,
        }
    }

    proptest! {
        #[test]
        fn a_larger_product_is_not_faster(
            [rows, columns, inner] in [1u32..10_000, 1u32..20_000, 1u32..20_000],
            [more_rows, more_columns, more_inner] in [0u32..300, 0u32..300, 0u32..300],
        ) {
            let product = |m, n, k| Kernel::Gemm(Gemm::fp16(f64::from(m), f64::from(n), f64::from(k)));
            let large = product(rows + more_rows, columns + more_columns, inner + more_inner);
            not_faster(&product(rows, columns, inner), &large)?;
        }

        #[test]
        fn more_new_or_cached_tokens_are_not_faster(
            [batch, new, cached, heads] in [1u32..9, 1u32..5000, 0u32..50_000, 1u32..9],
            window in prop_oneof![Just(0u32), 1u32..6000],
            [more_new, more_cached] in [0u32..300, 0u32..300],
        ) {
            let small = attention([batch, new, cached, heads, window]);
            let large = attention([batch, new + more_new, cached + more_cached, heads, window]);
            not_faster(&Kernel::Prefill(small), &Kernel::Prefill(large))?;
        }

        #[test]
        fn caching_more_of_the_same_prompt_is_not_slower(
            [batch, total, heads] in [1u32..9, 2u32..50_000, 1u32..9],
            window in prop_oneof![Just(0u32), 1u32..6000],
            [first, second] in [0.0..1.0f64, 0.0..1.0f64],
        ) {
            let cached = |part: f64| (f64::from(total - 1) * part) as u32;
            let of = |cached: u32| attention([batch, total - cached, cached, heads, window]);
            let [more, less] = [cached(first.max(second)), cached(first.min(second))];
            not_faster(&Kernel::Prefill(of(more)), &Kernel::Prefill(of(less)))?;
        }

        #[test]
        fn a_longer_context_is_not_faster_to_decode(
            [batch, context, heads] in [1u32..300, 1u32..100_000, 1u32..9],
            [more_batch, more_context] in [0u32..9, 0u32..3000],
        ) {
            let decode = |batch, context| Kernel::Decode(DecodeAttention {
                batch: f64::from(batch),
                context_tokens: f64::from(context),
                heads: f64::from(4 * heads),
                kv_heads: f64::from(heads),
                pair_width: 256.0,
                elements_per_token: 256.0 * f64::from(heads),
                kv_bytes: 2.0,
            });
            not_faster(&decode(batch, context), &decode(batch + more_batch, context + more_context))?;
        }

        #[test]
        fn a_slower_gpu_is_not_faster(
            [rows, columns, inner] in [1u32..10_000, 1u32..20_000, 1u32..20_000], share in 0.1..1.0f64,
        ) {
            let gemm = Kernel::Gemm(Gemm::fp16(f64::from(rows), f64::from(columns), f64::from(inner)));
            let prefill = Kernel::Prefill(attention([1, rows, columns, 8, 0]));
            for (gpu, calibration) in calibrations() {
                let mut slow = gpu.clone();
                slow.peak_flops *= share;
                for way in [KernelTiming::Datasheet, KernelTiming::Constant(0.5), KernelTiming::Calibrated(&calibration)] {
                    for kernel in [&gemm, &prefill] {
                        let (slow, fast) = (way.seconds(&slow, kernel), way.seconds(&gpu, kernel));
                        prop_assert!(slow >= fast * (1.0 - 1e-12), "{kernel:?}: {slow} under {fast}");
                    }
                }
            }
        }
    }

    #[test]
    fn no_calibrated_kernel_beats_the_datasheet_by_much() {
        // A fit may overshoot a little where the clock boosts; more than that would be a wrong form.
        for (gpu, calibration) in calibrations() {
            for rows in [1.0, 64.0, 777.0, 8192.0] {
                let gemm = Kernel::Gemm(Gemm::fp16(rows, 4096.0, 4096.0));
                let prefill = Kernel::Prefill(attention([1, rows as u32, 4096, 8, 0]));
                for kernel in [gemm, prefill] {
                    let calibrated = calibration.seconds(&gpu, &kernel);
                    let limit = KernelTiming::Datasheet.seconds(&gpu, &kernel);
                    assert!(calibrated > 0.95 * limit, "{} {kernel:?}", gpu.name);
                }
            }
        }
    }

    #[test]
    fn nothing_to_do_takes_no_time() {
        let gpu = Gpu::named("h100").unwrap();
        let calibration = Calibration::named("h100-vllm").unwrap();
        let nothing = [
            Kernel::Gemm(Gemm::fp16(0.0, 8.0, 8.0)),
            Kernel::Prefill(attention([1, 0, 9, 1, 0])),
            Kernel::Stream(Stream {
                bytes: 0.0,
                flops: 0.0,
            }),
            Kernel::AllReduce(AllReduce {
                bytes: 100.0,
                gpus: 1.0,
            }),
        ];
        for kernel in nothing {
            assert_eq!(calibration.seconds(&gpu, &kernel), 0.0, "{kernel:?}");
        }
    }
}
