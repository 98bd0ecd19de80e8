// Microbenchmarks of what the roofline model is made of: matrix products at the models' shapes, attention of a new
// suffix on a cached prefix, device memory, the host link, and the launch of a kernel.
//
//   microbench check          compares results with a float64 reference on the host; exit code 1 if one is off
//   microbench measure DIR    writes DIR/measurements.csv and DIR/machine.json
//
// Every operand is taken from a pool larger than the L2 cache, a fresh piece each launch, because in a forward pass
// weights and KV come from memory. A measurement is the median of many batches of launches, timed with events.

#include <cublas_v2.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <vector>

#define CUDA(call)                                                                                            \
    do {                                                                                                      \
        cudaError_t status = (call);                                                                          \
        if (status != cudaSuccess) {                                                                          \
            std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(status));   \
            std::exit(1);                                                                                     \
        }                                                                                                     \
    } while (0)

#define CUBLAS(call)                                                                                          \
    do {                                                                                                      \
        cublasStatus_t status = (call);                                                                       \
        if (status != CUBLAS_STATUS_SUCCESS) {                                                                \
            std::fprintf(stderr, "%s:%d: %s: cuBLAS status %d\n", __FILE__, __LINE__, #call, int(status));    \
            std::exit(1);                                                                                     \
        }                                                                                                     \
    } while (0)

// ---------------------------------------------------------------------------------------------------------- memory

__global__ void fill_normal(half* values, size_t count, uint64_t seed) {
    size_t stride = size_t(gridDim.x) * blockDim.x;
    for (size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride) {
        // splitmix64; the sum of four uniform numbers is normal enough, and power draw depends on the bits.
        uint64_t x = (i + 1) * 0x9e3779b97f4a7c15ull + seed;
        x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
        x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
        x ^= x >> 31;
        float sum = 0.0f;
        for (int part = 0; part < 4; ++part) {
            sum += float((x >> (16 * part)) & 0xffff) / 65535.0f - 0.5f;
        }
        values[i] = __float2half(sum * 1.7f);
    }
}

// Random fp16 values on the device, handed out in pieces that go round.
class Pool {
  public:
    explicit Pool(size_t bytes, uint64_t seed) : bytes_(bytes) {
        CUDA(cudaMalloc(&base_, bytes));
        fill_normal<<<1024, 256>>>(static_cast<half*>(base_), bytes / sizeof(half), seed);
        CUDA(cudaDeviceSynchronize());
    }
    ~Pool() { cudaFree(base_); }
    Pool(const Pool&) = delete;
    Pool& operator=(const Pool&) = delete;

    half* take(size_t elements) {
        size_t size = (elements * sizeof(half) + 255) / 256 * 256;
        if (size > bytes_) {
            std::fprintf(stderr, "a pool of %zu bytes cannot give %zu\n", bytes_, size);
            std::exit(1);
        }
        if (next_ + size > bytes_) next_ = 0;
        half* piece = reinterpret_cast<half*>(static_cast<char*>(base_) + next_);
        next_ += size;
        return piece;
    }

  private:
    void* base_ = nullptr;
    size_t bytes_;
    size_t next_ = 0;
};

__global__ void copy_kernel(const float4* from, float4* to, size_t count) {
    size_t stride = size_t(gridDim.x) * blockDim.x;
    for (size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride) to[i] = from[i];
}

__global__ void touch_kernel(float* to) { *to = 1.0f; }

// --------------------------------------------------------------------------------------------------------- attention

// Causal attention of `new_tokens` queries that follow `cached` tokens, after FlashAttention-2 (arXiv 2307.08691):
// 64 queries a block, 16 a warp; 64 keys a step; online softmax; scores and outputs stay in registers.
// q, o: [new_tokens, heads, 128]; k, v: [cached + new_tokens, kv_heads, 128].
constexpr int HEAD_DIM = 128;
constexpr int TILE = 64;
constexpr int WARPS = 4;
// Eight more halves a row: consecutive rows start four banks apart.
constexpr int PITCH = HEAD_DIM + 8;

// D += A B for a 16x16 A and a 16x8 B. With g = lane / 4 and t = lane % 4, a thread holds of A the pairs of columns
// 2t (a[0], a[1]) and 2t + 8 (a[2], a[3]) in rows g (a[0], a[2]) and g + 8 (a[1], a[3]); of B the pairs of rows 2t
// (b[0]) and 2t + 8 (b[1]) in column g; of D the columns 2t, 2t + 1 in row g (d[0], d[1]) and g + 8 (d[2], d[3]).
__device__ inline void mma_16x8x16(float d[4], const uint32_t a[4], const uint32_t b[2]) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

__device__ inline uint32_t pair_at(const half* p) { return *reinterpret_cast<const uint32_t*>(p); }

__device__ inline uint32_t pack(float low, float high) {
    half2 both = __floats2half2_rn(low, high);
    return *reinterpret_cast<uint32_t*>(&both);
}

__device__ inline uint32_t pack(half low, half high) {
    half2 both = __halves2half2(low, high);
    return *reinterpret_cast<uint32_t*>(&both);
}

// Rows [first, first + TILE) of one head to shared memory; rows past the end become zeros.
__device__ inline void load_tile(half (*tile)[PITCH], const half* head, int first, int end, size_t row_stride) {
    constexpr int CHUNKS = HEAD_DIM / 8;
    for (int i = threadIdx.x; i < TILE * CHUNKS; i += WARPS * 32) {
        int row = i / CHUNKS, column = i % CHUNKS * 8;
        uint4 value = make_uint4(0, 0, 0, 0);
        if (first + row < end) {
            value = *reinterpret_cast<const uint4*>(head + size_t(first + row) * row_stride + column);
        }
        *reinterpret_cast<uint4*>(&tile[row][column]) = value;
    }
}

// A value of one row is spread over the four threads of a group.
__device__ inline float group_max(float x) {
    x = fmaxf(x, __shfl_xor_sync(~0u, x, 1));
    return fmaxf(x, __shfl_xor_sync(~0u, x, 2));
}
__device__ inline float group_sum(float x) {
    x += __shfl_xor_sync(~0u, x, 1);
    return x + __shfl_xor_sync(~0u, x, 2);
}

__global__ void __launch_bounds__(WARPS * 32)
    attention_kernel(const half* q, const half* k, const half* v, half* o, int new_tokens, int cached, int heads,
                     int kv_heads) {
    __shared__ half keys[TILE][PITCH];
    __shared__ half values[TILE][PITCH];
    // The last tiles have the most keys: they start first.
    int first_query = (int(gridDim.x) - 1 - int(blockIdx.x)) * TILE;
    int head = blockIdx.y, kv_head = head / (heads / kv_heads);
    int warp = threadIdx.x / 32, group = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    int rows[2] = {first_query + warp * 16 + group, first_query + warp * 16 + group + 8};
    int total = cached + new_tokens;
    size_t q_stride = size_t(heads) * HEAD_DIM, kv_stride = size_t(kv_heads) * HEAD_DIM;
    const half* q_head = q + head * HEAD_DIM;

    uint32_t queries[HEAD_DIM / 16][4];
    for (int step = 0; step < HEAD_DIM / 16; ++step) {
        for (int part = 0; part < 4; ++part) {
            int row = rows[part % 2], column = step * 16 + part / 2 * 8 + t * 2;
            queries[step][part] = row < new_tokens ? pair_at(q_head + row * q_stride + column) : 0u;
        }
    }

    float out[HEAD_DIM / 8][4] = {};
    float row_max[2] = {-INFINITY, -INFINITY}, row_sum[2] = {0.0f, 0.0f};
    // exp(x / sqrt(d)) as a power of two.
    const float scale = 1.4426950408889634f * rsqrtf(float(HEAD_DIM));
    int end_key = min(total, cached + first_query + TILE);
    for (int first_key = 0; first_key < end_key; first_key += TILE) {
        __syncthreads();
        load_tile(keys, k + kv_head * HEAD_DIM, first_key, total, kv_stride);
        load_tile(values, v + kv_head * HEAD_DIM, first_key, total, kv_stride);
        __syncthreads();

        float scores[TILE / 8][4] = {};
        for (int step = 0; step < HEAD_DIM / 16; ++step) {
#pragma unroll
            for (int n = 0; n < TILE / 8; ++n) {
                const half* row = &keys[n * 8 + group][step * 16 + t * 2];
                uint32_t b[2] = {pair_at(row), pair_at(row + 8)};
                mma_16x8x16(scores[n], queries[step], b);
            }
        }

        float tile_max[2] = {-INFINITY, -INFINITY};
        for (int n = 0; n < TILE / 8; ++n) {
            for (int i = 0; i < 4; ++i) {
                int key = first_key + n * 8 + t * 2 + i % 2;
                bool visible = key < total && key <= cached + rows[i / 2];
                scores[n][i] = visible ? scores[n][i] * scale : -INFINITY;
                tile_max[i / 2] = fmaxf(tile_max[i / 2], scores[n][i]);
            }
        }
        float shrink[2];
        for (int r = 0; r < 2; ++r) {
            // Every query sees key 0, which is in the first tile, so the maximum is finite from then on.
            float now = fmaxf(row_max[r], group_max(tile_max[r]));
            shrink[r] = exp2f(row_max[r] - now);
            row_max[r] = now;
            row_sum[r] *= shrink[r];
        }
        for (int n = 0; n < TILE / 8; ++n) {
            for (int i = 0; i < 4; ++i) {
                scores[n][i] = exp2f(scores[n][i] - row_max[i / 2]);
                row_sum[i / 2] += scores[n][i];
            }
        }
#pragma unroll
        for (int n = 0; n < HEAD_DIM / 8; ++n) {
            for (int i = 0; i < 4; ++i) out[n][i] *= shrink[i / 2];
        }
        for (int step = 0; step < TILE / 16; ++step) {
            // Two neighbouring blocks of scores are, thread for thread, one block of the left operand.
            uint32_t a[4] = {pack(scores[2 * step][0], scores[2 * step][1]),
                             pack(scores[2 * step][2], scores[2 * step][3]),
                             pack(scores[2 * step + 1][0], scores[2 * step + 1][1]),
                             pack(scores[2 * step + 1][2], scores[2 * step + 1][3])};
#pragma unroll
            for (int n = 0; n < HEAD_DIM / 8; ++n) {
                int row = step * 16 + t * 2, column = n * 8 + group;
                uint32_t b[2] = {pack(values[row][column], values[row + 1][column]),
                                 pack(values[row + 8][column], values[row + 9][column])};
                mma_16x8x16(out[n], a, b);
            }
        }
    }

    for (int r = 0; r < 2; ++r) {
        float inverse = 1.0f / group_sum(row_sum[r]);
        if (rows[r] >= new_tokens) continue;
        half* to = o + rows[r] * q_stride + head * HEAD_DIM + t * 2;
        for (int n = 0; n < HEAD_DIM / 8; ++n) {
            *reinterpret_cast<half2*>(to + n * 8) =
                __floats2half2_rn(out[n][r * 2] * inverse, out[n][r * 2 + 1] * inverse);
        }
    }
}

void attention(const half* q, const half* k, const half* v, half* o, int new_tokens, int cached, int heads,
               int kv_heads) {
    dim3 grid((new_tokens + TILE - 1) / TILE, heads);
    attention_kernel<<<grid, WARPS * 32>>>(q, k, v, o, new_tokens, cached, heads, kv_heads);
}

// ------------------------------------------------------------------------------------------------------------- gemm

// c = a b with row-major a [m, k], b [n, k] transposed (as weights are stored), c [m, n].
void gemm(cublasHandle_t blas, const half* a, const half* b, half* c, int m, int n, int k) {
    float one = 1.0f, zero = 0.0f;
    CUBLAS(cublasGemmEx(blas, CUBLAS_OP_T, CUBLAS_OP_N, n, m, k, &one, b, CUDA_R_16F, k, a, CUDA_R_16F, k, &zero, c,
                        CUDA_R_16F, n, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
}

// ------------------------------------------------------------------------------------------------------------ checks

std::vector<double> to_host(const half* device, size_t count) {
    std::vector<half> raw(count);
    CUDA(cudaMemcpy(raw.data(), device, count * sizeof(half), cudaMemcpyDeviceToHost));
    std::vector<double> values(count);
    std::transform(raw.begin(), raw.end(), values.begin(), [](half h) { return double(__half2float(h)); });
    return values;
}

// Largest difference, as a fraction of the largest value.
bool close_to(const char* what, const std::vector<double>& found, const std::vector<double>& expected) {
    double worst = 0.0, largest = 0.0;
    bool finite = true;
    for (size_t i = 0; i < found.size(); ++i) {
        finite = finite && std::isfinite(found[i]);
        worst = std::max(worst, std::fabs(found[i] - expected[i]));
        largest = std::max(largest, std::fabs(expected[i]));
    }
    bool ok = finite && worst <= 4e-3 * largest;
    std::printf("%-32s %s: off by %.2e of the largest value\n", what, ok ? "ok" : "WRONG", worst / largest);
    return ok;
}

bool check_gemm(cublasHandle_t blas, Pool& pool, int m, int n, int k) {
    half *a = pool.take(size_t(m) * k), *b = pool.take(size_t(n) * k), *c = pool.take(size_t(m) * n);
    gemm(blas, a, b, c, m, n, k);
    CUDA(cudaDeviceSynchronize());
    auto ha = to_host(a, size_t(m) * k), hb = to_host(b, size_t(n) * k);
    std::vector<double> expected(size_t(m) * n);
    for (int i = 0; i < m; ++i) {
        for (int j = 0; j < n; ++j) {
            double sum = 0.0;
            for (int l = 0; l < k; ++l) sum += ha[size_t(i) * k + l] * hb[size_t(j) * k + l];
            expected[size_t(i) * n + j] = sum;
        }
    }
    std::string what = "gemm " + std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k);
    return close_to(what.c_str(), to_host(c, size_t(m) * n), expected);
}

std::vector<double> attention_reference(const std::vector<double>& q, const std::vector<double>& k,
                                        const std::vector<double>& v, int new_tokens, int cached, int heads,
                                        int kv_heads) {
    std::vector<double> out(q.size());
    for (int h = 0; h < heads; ++h) {
        int kv = h / (heads / kv_heads);
        for (int i = 0; i < new_tokens; ++i) {
            const double* query = &q[(size_t(i) * heads + h) * HEAD_DIM];
            std::vector<double> weight(cached + i + 1);
            double largest = -INFINITY, sum = 0.0;
            for (size_t j = 0; j < weight.size(); ++j) {
                double dot = 0.0;
                for (int d = 0; d < HEAD_DIM; ++d) dot += query[d] * k[(j * kv_heads + kv) * HEAD_DIM + d];
                weight[j] = dot / std::sqrt(double(HEAD_DIM));
                largest = std::max(largest, weight[j]);
            }
            for (double& w : weight) sum += w = std::exp(w - largest);
            for (int d = 0; d < HEAD_DIM; ++d) {
                double value = 0.0;
                for (size_t j = 0; j < weight.size(); ++j) {
                    value += weight[j] * v[(j * kv_heads + kv) * HEAD_DIM + d];
                }
                out[(size_t(i) * heads + h) * HEAD_DIM + d] = value / sum;
            }
        }
    }
    return out;
}

bool check_attention(Pool& pool, int new_tokens, int cached, int heads, int kv_heads) {
    size_t queries = size_t(new_tokens) * heads * HEAD_DIM;
    size_t keys = size_t(cached + new_tokens) * kv_heads * HEAD_DIM;
    half *q = pool.take(queries), *k = pool.take(keys), *v = pool.take(keys), *o = pool.take(queries);
    attention(q, k, v, o, new_tokens, cached, heads, kv_heads);
    CUDA(cudaGetLastError());
    CUDA(cudaDeviceSynchronize());
    auto expected = attention_reference(to_host(q, queries), to_host(k, keys), to_host(v, keys), new_tokens, cached,
                                        heads, kv_heads);
    std::string what = "attention " + std::to_string(new_tokens) + " on " + std::to_string(cached) + ", " +
                       std::to_string(heads) + "/" + std::to_string(kv_heads);
    return close_to(what.c_str(), to_host(o, queries), expected);
}

bool check_copy(Pool& pool) {
    size_t count = 1 << 20;
    half *from = pool.take(count), *to = pool.take(count);
    copy_kernel<<<256, 256>>>(reinterpret_cast<float4*>(from), reinterpret_cast<float4*>(to), count / 8);
    CUDA(cudaDeviceSynchronize());
    return close_to("copy", to_host(to, count), to_host(from, count));
}

bool check(cublasHandle_t blas) {
    Pool pool(size_t(64) << 20, 1);
    bool ok = check_copy(pool);
    for (auto [m, n, k] : {std::array<int, 3>{1, 64, 96}, {17, 40, 128}, {130, 200, 256}}) {
        ok &= check_gemm(blas, pool, m, n, k);
    }
    for (auto [fresh, cached, heads, kv] :
         {std::array<int, 4>{1, 0, 1, 1}, {64, 0, 2, 2}, {65, 0, 2, 1}, {1, 200, 4, 2}, {16, 64, 4, 1}, {100, 37, 2, 2},
          {130, 300, 4, 2}}) {
        ok &= check_attention(pool, fresh, cached, heads, kv);
    }
    return ok;
}

// ------------------------------------------------------------------------------------------------------- measurement

struct Timing {
    double median_s, min_s, p90_s;
    int repeats;
};

// Times batches of launches long enough for the events' resolution, until enough of them or two seconds are over.
Timing time_it(const std::function<void()>& launch) {
    cudaEvent_t start, stop;
    CUDA(cudaEventCreate(&start));
    CUDA(cudaEventCreate(&stop));
    auto batch_ms = [&](int launches) {
        CUDA(cudaEventRecord(start));
        for (int i = 0; i < launches; ++i) launch();
        CUDA(cudaEventRecord(stop));
        CUDA(cudaEventSynchronize(stop));
        float ms;
        CUDA(cudaEventElapsedTime(&ms, start, stop));
        return double(ms);
    };
    batch_ms(3);
    double one_ms = std::max(batch_ms(3) / 3, 1e-4);
    int launches = int(std::clamp(1.0 / one_ms, 1.0, 200.0));
    int repeats = int(std::clamp(500.0 / (launches * one_ms), 5.0, 30.0));
    std::vector<double> seconds;
    for (int i = 0; i < repeats; ++i) seconds.push_back(batch_ms(launches) / launches * 1e-3);
    CUDA(cudaGetLastError());
    CUDA(cudaEventDestroy(start));
    CUDA(cudaEventDestroy(stop));
    std::sort(seconds.begin(), seconds.end());
    return {seconds[seconds.size() / 2], seconds.front(), seconds[seconds.size() * 9 / 10], repeats};
}

const char* HEADER =
    "device,operator,rows,columns,inner,batch,new_tokens,cached_tokens,heads,kv_heads,head_dim,bytes,direction,"
    "repeats,seconds_median,seconds_min,seconds_p90";

class Csv {
  public:
    Csv(const std::string& path, std::string device) : file_(std::fopen(path.c_str(), "w")), device_(std::move(device)) {
        if (!file_) {
            std::perror(path.c_str());
            std::exit(1);
        }
        std::fprintf(file_, "%s\n", HEADER);
    }
    ~Csv() { std::fclose(file_); }

    // `shape` holds the ten columns from rows to bytes, `direction` the eleventh.
    void row(const char* op, const std::string& shape, const char* direction, const Timing& t) {
        std::fprintf(file_, "%s,%s,%s,%s,%d,%.9g,%.9g,%.9g\n", device_.c_str(), op, shape.c_str(), direction, t.repeats,
                     t.median_s, t.min_s, t.p90_s);
        std::fflush(file_);
    }

  private:
    std::FILE* file_;
    std::string device_;
};

void measure_gemms(cublasHandle_t blas, Pool& pool, Csv& csv) {
    // Fused QKV, output, gate and up, down: Llama-2-7B, Llama-3-8B, and Llama-3-70B cut over 8 GPUs.
    const int weights[][2] = {{12288, 4096}, {4096, 4096}, {22016, 4096}, {4096, 11008}, {6144, 4096},
                              {28672, 4096}, {4096, 14336}, {1280, 8192}, {8192, 1024}, {7168, 8192}, {8192, 3584}};
    for (auto [n, k] : weights) {
        for (int m : {1, 16, 64, 128, 192, 256, 384, 512, 768, 1024, 2048, 4096, 8192}) {
            Timing t = time_it([&] {
                half *a = pool.take(size_t(m) * k), *b = pool.take(size_t(n) * k), *c = pool.take(size_t(m) * n);
                gemm(blas, a, b, c, m, n, k);
            });
            char shape[128];
            std::snprintf(shape, sizeof shape, "%d,%d,%d,,,,,,,", m, n, k);
            csv.row("gemm", shape, "", t);
        }
    }
}

void measure_attention(Pool& pool, Csv& csv) {
    const int head_shapes[][2] = {{32, 32}, {32, 8}, {8, 1}, {64, 8}};
    for (auto [heads, kv_heads] : head_shapes) {
        for (int cached : {0, 128, 512, 1024, 2048, 4096, 8192, 16384, 32768}) {
            for (int fresh : {1, 16, 64, 128, 256, 512, 1024, 2048, 4096}) {
                size_t queries = size_t(fresh) * heads * HEAD_DIM;
                size_t keys = size_t(cached + fresh) * kv_heads * HEAD_DIM;
                Timing t = time_it([&] {
                    half *q = pool.take(queries), *k = pool.take(keys), *v = pool.take(keys), *o = pool.take(queries);
                    attention(q, k, v, o, fresh, cached, heads, kv_heads);
                });
                char shape[128];
                std::snprintf(shape, sizeof shape, ",,,1,%d,%d,%d,%d,%d,", fresh, cached, heads, kv_heads, HEAD_DIM);
                csv.row("prefill-attention", shape, "", t);
            }
        }
    }
}

void measure_memory(Pool& pool, Csv& csv, size_t pool_bytes) {
    char shape[128];
    Timing launch = time_it([&] { touch_kernel<<<1, 1>>>(reinterpret_cast<float*>(pool.take(128))); });
    csv.row("elementwise", ",,,,,,,,,4", "", launch);
    for (size_t bytes = 1 << 16; bytes * 2 <= pool_bytes / 4; bytes *= 4) {
        Timing t = time_it([&] {
            auto* from = reinterpret_cast<float4*>(pool.take(bytes / 2));
            auto* to = reinterpret_cast<float4*>(pool.take(bytes / 2));
            copy_kernel<<<2048, 256>>>(from, to, bytes / 16);
        });
        std::snprintf(shape, sizeof shape, ",,,,,,,,,%zu", 2 * bytes);
        csv.row("elementwise", shape, "", t);
    }
    void* host;
    size_t largest = size_t(256) << 20;
    CUDA(cudaMallocHost(&host, largest));
    for (size_t bytes = 1 << 12; bytes <= largest; bytes *= 4) {
        std::snprintf(shape, sizeof shape, ",,,,,,,,,%zu", bytes);
        csv.row("host-copy", shape, "to device", time_it([&] {
            CUDA(cudaMemcpyAsync(pool.take(bytes / 2), host, bytes, cudaMemcpyHostToDevice));
        }));
        csv.row("host-copy", shape, "to host", time_it([&] {
            CUDA(cudaMemcpyAsync(host, pool.take(bytes / 2), bytes, cudaMemcpyDeviceToHost));
        }));
    }
    CUDA(cudaFreeHost(host));
}

void write_machine(const std::string& path, const cudaDeviceProp& device, size_t pool_bytes) {
    int driver, runtime, core_khz, memory_khz, ecc;
    CUDA(cudaDriverGetVersion(&driver));
    CUDA(cudaRuntimeGetVersion(&runtime));
    CUDA(cudaDeviceGetAttribute(&core_khz, cudaDevAttrClockRate, 0));
    CUDA(cudaDeviceGetAttribute(&memory_khz, cudaDevAttrMemoryClockRate, 0));
    CUDA(cudaDeviceGetAttribute(&ecc, cudaDevAttrEccEnabled, 0));
    std::FILE* file = std::fopen(path.c_str(), "w");
    if (!file) {
        std::perror(path.c_str());
        std::exit(1);
    }
    std::fprintf(file,
                 "{\"device\": \"%s\", \"compute_capability\": \"%d.%d\", \"processors\": %d, \"memory_bytes\": %zu,\n"
                 " \"l2_bytes\": %d, \"core_khz\": %d, \"memory_khz\": %d, \"ecc\": %s, \"cuda_driver\": %d,\n"
                 " \"cuda_runtime\": %d, \"cublas\": %zu, \"pool_bytes\": %zu}\n",
                 device.name, device.major, device.minor, device.multiProcessorCount, device.totalGlobalMem,
                 device.l2CacheSize, core_khz, memory_khz, ecc ? "true" : "false", driver, runtime,
                 cublasGetCudartVersion(), pool_bytes);
    std::fclose(file);
}

void measure(cublasHandle_t blas, const std::string& folder) {
    cudaDeviceProp device;
    CUDA(cudaGetDeviceProperties(&device, 0));
    // The largest product needs 0.6 GB, the longest attention 1.2 GB; and every pool outweighs any L2.
    size_t pool_bytes = std::min(size_t(6) << 30, device.totalGlobalMem / 2);
    Pool pool(pool_bytes, 7);
    Csv csv(folder + "/measurements.csv", device.name);
    // Cached prefix first: it is what this project is about.
    measure_attention(pool, csv);
    measure_gemms(blas, pool, csv);
    measure_memory(pool, csv, pool_bytes);
    write_machine(folder + "/machine.json", device, pool_bytes);
}

int main(int count, char** arguments) {
    std::string what = count > 1 ? arguments[1] : "";
    cublasHandle_t blas;
    if (what == "check" && count == 2) {
        CUBLAS(cublasCreate(&blas));
        return check(blas) ? 0 : 1;
    }
    if (what == "measure" && count == 3) {
        CUBLAS(cublasCreate(&blas));
        measure(blas, arguments[2]);
        return 0;
    }
    std::fprintf(stderr, "usage: %s check | measure FOLDER\n", arguments[0]);
    return 2;
}
