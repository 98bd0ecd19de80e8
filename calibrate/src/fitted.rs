//! What a fit needs of a form: its parameters with bounds, where they stand in a calibration, and which measurements
//! they are fitted to.

use roofline::{
    AllReduce, AllReduceRates, Calibration, DecodeAttention, DecodeRates, Deployment, EnginePasses,
    EngineRates, Gemm, GemmRates, Gpu, HostCopy, HostRates, Kernel, KernelTiming, Model,
    PrefillAttention, PrefillRates, RooflineError, Stream, StreamRates,
};

use crate::measurement::{Measurement, TimedWork, WHOLE_PREFILL};

/// Where a parameter may lie, both ends included.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    pub(crate) low: f64,
    pub(crate) high: f64,
}

/// A form that is fitted to measurements.
pub(crate) trait Fitted: Clone {
    /// What it prices.
    type Shape: Copy;
    /// Name of what it is fitted to, as in tables.
    const OPERATOR: &'static str;
    /// Bounds of each parameter.
    const BOUNDS: &'static [Bounds];
    /// With every parameter where its fit starts.
    fn start() -> Self;
    fn values(&self) -> Vec<f64>;
    fn set(&mut self, values: &[f64]);
    fn seconds(&self, gpu: &Gpu, shape: &Self::Shape) -> f64;
    /// What a fit starts from: more than one where a constant that is not a parameter must be chosen.
    fn candidates(&self) -> Vec<Self> {
        vec![self.clone()]
    }
    /// The shape that was measured, if it was one of this form.
    fn shape(
        of: &Measurement,
        gpu: &Gpu,
        base: &Calibration,
    ) -> Result<Option<Self::Shape>, RooflineError>;
    /// The form's place in a calibration.
    fn place(calibration: &mut Calibration) -> &mut Self;
}

/// `field: [low, start, high]` for each parameter, so that bounds and field agree; then constants that are none.
macro_rules! parameters {
    ($($field:ident: [$low:expr, $start:expr, $high:expr]),+ $(; $($constant:ident: $value:expr),+)?) => {
        const BOUNDS: &'static [Bounds] =
            &[$(Bounds { low: $low, high: $high }),+];
        fn start() -> Self {
            Self { $($field: $start,)+ $($($constant: $value),+)? }
        }
        fn values(&self) -> Vec<f64> {
            vec![$(self.$field),+]
        }
        fn set(&mut self, values: &[f64]) {
            let mut values = values.iter().copied();
            $(if let Some(value) = values.next() { self.$field = value; })+
        }
    };
}

/// The rest for a form that prices one kind of kernel.
macro_rules! of_kernel {
    ($operator:literal, $variant:ident($shape:ty), $field:ident) => {
        type Shape = $shape;
        const OPERATOR: &'static str = $operator;
        fn seconds(&self, gpu: &Gpu, shape: &$shape) -> f64 {
            Self::seconds(self, gpu, shape)
        }
        fn shape(
            of: &Measurement,
            _gpu: &Gpu,
            _base: &Calibration,
        ) -> Result<Option<$shape>, RooflineError> {
            Ok(match of.work {
                TimedWork::Kernel(Kernel::$variant(shape)) => Some(shape),
                _ => None,
            })
        }
        fn place(calibration: &mut Calibration) -> &mut Self {
            &mut calibration.$field
        }
    };
}

impl Fitted for GemmRates {
    of_kernel!("gemm", Gemm(Gemm), gemm);
    parameters! {
        overhead_us: [0.1, 3.0, 100.0],
        efficiency: [0.05, 0.8, 1.5],
        tile_penalty: [1e-2, 10.0, 300.0],
        inner_overhead: [1e-2, 64.0, 2000.0],
        bandwidth_efficiency: [0.05, 0.9, 1.0],
        split_traffic: [1e-2, 0.5, 300.0],
        overlap: [1.0, 3.0, 20.0]
    }
}

impl Fitted for PrefillRates {
    of_kernel!(
        "prefill-attention",
        Prefill(PrefillAttention),
        prefill_attention
    );
    parameters! {
        overhead_us: [0.1, 8.0, 100.0],
        efficiency: [0.05, 0.7, 1.3],
        softmax_flops: [1.0, 100.0, 1000.0],
        key_overhead: [0.1, 64.0, 2000.0],
        bandwidth_efficiency: [0.05, 0.6, 1.0],
        wave_quantisation: [1e-3, 0.5, 1.0];
        query_tile: 128.0
    }

    fn candidates(&self) -> Vec<Self> {
        let tiled = |query_tile| Self {
            query_tile,
            ..self.clone()
        };
        vec![tiled(64.0), tiled(128.0)]
    }
}

impl Fitted for DecodeRates {
    of_kernel!(
        "decode-attention",
        Decode(DecodeAttention),
        decode_attention
    );
    parameters! {
        overhead_us: [0.1, 10.0, 100.0],
        bandwidth_efficiency: [0.05, 0.8, 1.0],
        head_us: [1e-05, 0.01, 1.0],
        merge_us: [0.001, 0.5, 100.0]
    }
}

impl Fitted for StreamRates {
    of_kernel!("elementwise", Stream(Stream), elementwise);
    parameters! {
        overhead_us: [0.1, 3.0, 100.0],
        bandwidth_efficiency: [0.02, 0.7, 1.5]
    }
}

impl Fitted for AllReduceRates {
    of_kernel!("all-reduce", AllReduce(AllReduce), all_reduce);
    parameters! {
        overhead_us: [0.1, 5.0, 100.0],
        per_gpu_us: [0.01, 1.0, 100.0],
        bandwidth_efficiency: [0.02, 0.7, 1.5]
    }
}

impl Fitted for HostRates {
    of_kernel!("host-copy", HostCopy(HostCopy), host_copy);
    parameters! {
        overhead_us: [0.1, 10.0, 1000.0],
        bandwidth_efficiency: [0.02, 0.8, 1.5]
    }
}

impl Fitted for EngineRates {
    type Shape = EnginePasses;
    const OPERATOR: &'static str = WHOLE_PREFILL;
    parameters! {
        floor_us: [100.0, 50_000.0, 1e6],
        slowdown: [0.5, 1.2, 5.0],
        long_us: [1e-3, 30.0, 1000.0],
        batched_us: [1e-3, 10.0, 1000.0];
        engine: String::new(), version: String::new()
    }

    fn seconds(&self, _gpu: &Gpu, prefill: &EnginePasses) -> f64 {
        Self::seconds(self, prefill)
    }

    fn shape(
        of: &Measurement,
        gpu: &Gpu,
        base: &Calibration,
    ) -> Result<Option<EnginePasses>, RooflineError> {
        let TimedWork::Prefill {
            gpus,
            batch,
            prompt_tokens,
        } = of.work
        else {
            return Ok(None);
        };
        let kernels = Calibration {
            engine: None,
            ..base.clone()
        };
        let deployment = Deployment {
            model: &Model::named(&of.model)?,
            gpu,
            gpus,
            timing: KernelTiming::Calibrated(&kernels),
        };
        let pass = deployment.prefill_time(u64::from(batch), 0, u64::from(prompt_tokens));
        Ok(Some(EnginePasses::one(
            f64::from(batch) * f64::from(prompt_tokens),
            f64::from(batch),
            gpus,
            pass.total.seconds,
        )))
    }

    fn place(calibration: &mut Calibration) -> &mut Self {
        calibration.engine.get_or_insert_with(Self::start)
    }
}
