// Worker of gpu.py: cost of CUDA itself, called directly: `gpu_floor [FILE OF CUBLASLT]`.
//
// Cases: "copy MIB" gives seconds of a copy within the device's memory, "launch" host seconds of a launch of an empty
// kernel, "gemm DTYPE SIZE" seconds of a square product through cuBLASLt's first heuristic, with the row-major
// layouts of Yoke's matmul. "weights DTYPE ROWS COLUMNS DEPTH" is a product whose first operand lies transposed, as the
// gradient of a weight has it. An answer with "!" in front says why there is no time.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <dlfcn.h>
#if __has_include(<cublasLt.h>)
#include <cublasLt.h>
#define HAS_CUBLASLT 1
#else
#define HAS_CUBLASLT 0
#endif

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

constexpr size_t kRotated = size_t{512}
                            << 20;  // bytes used in turn, so that the L2 cache does not serve
constexpr int kBurst = 256;         // launches that the driver queues without waiting

cudaStream_t g_stream;

void check(cudaError_t error, const char *call)
{
    if (error != cudaSuccess)
        throw std::runtime_error(std::string(call) + ": " + cudaGetErrorString(error));
}
#define CHECK(call) check(call, #call)

double now()
{
    const auto time = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration<double>(time).count();
}

struct Block {
    explicit Block(size_t bytes) { CHECK(cudaMalloc(&data, bytes)); }
    ~Block() { cudaFree(data); }
    Block(Block &&other) noexcept : data(other.data) { other.data = nullptr; }
    Block(const Block &) = delete;
    Block &operator=(const Block &) = delete;
    void *data = nullptr;
};

size_t sets_of(size_t bytes)
{
    return bytes >= kRotated ? 1 : (kRotated + bytes - 1) / bytes;
}

// Returns the device's seconds for one of `count` repetitions.
template <class F>
double timed(long count, const F &once)
{
    for (int i = 0; i < 2; i++) once(i);
    CHECK(cudaStreamSynchronize(g_stream));
    const double start = now();
    for (long i = 0; i < count; i++) once(i);
    CHECK(cudaStreamSynchronize(g_stream));
    return (now() - start) / static_cast<double>(count);
}

// ---- copy and launch ------------------------------------------------------------------------------------------------

double copy(long mib, long count)
{
    static std::map<long, std::vector<Block>> kept;
    const size_t bytes = static_cast<size_t>(mib) << 20;
    std::vector<Block> &blocks = kept[mib];
    if (blocks.empty())
        for (size_t i = 0; i < 2 * sets_of(2 * bytes); i++) {
            blocks.emplace_back(bytes);
            CHECK(cudaMemset(blocks.back().data, 1 + static_cast<int>(i), bytes));
        }
    const size_t pairs = blocks.size() / 2;
    return timed(count, [&](long i) {
        const size_t at = 2 * (static_cast<size_t>(i) % pairs);
        CHECK(cudaMemcpyAsync(blocks[at].data, blocks[at + 1].data, bytes, cudaMemcpyDeviceToDevice,
                              g_stream));
    });
}

__global__ void empty_kernel() {}

// The host's part alone: launches that fit into the driver's queue.
double launch(long count)
{
    empty_kernel<<<1, 32, 0, g_stream>>>();
    double seconds = 0;
    for (long done = 0; done < count; done += kBurst) {
        CHECK(cudaStreamSynchronize(g_stream));
        const long burst = count - done < kBurst ? count - done : kBurst;
        const double start = now();
        for (long i = 0; i < burst; i++) empty_kernel<<<1, 32, 0, g_stream>>>();
        seconds += now() - start;
    }
    CHECK(cudaStreamSynchronize(g_stream));
    CHECK(cudaGetLastError());
    return seconds / static_cast<double>(count);
}

// ---- products -------------------------------------------------------------------------------------------------------

#if HAS_CUBLASLT

// Numbers between -1 and 1, no two neighbours alike: zeros would multiply faster than what is real.
template <class T>
__global__ void fill(T *data, size_t count, unsigned seed)
{
    for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < count;
         i += size_t{gridDim.x} * blockDim.x) {
        unsigned x = static_cast<unsigned>(i) * 2654435761u + seed;
        x ^= x >> 16, x *= 0x85ebca6bu, x ^= x >> 13, x *= 0xc2b2ae35u, x ^= x >> 16;
        data[i] = T(static_cast<float>(x) * 0x1p-31f - 1.0f);
    }
}

void *g_library;

template <class F>
F *function(F *, const char *name)
{
    void *found = g_library ? dlsym(g_library, name) : nullptr;
    if (!found)
        throw std::runtime_error(std::string("cannot call ") + name + ": cuBLASLt was not found");
    return reinterpret_cast<F *>(found);
}
#define LT(name) function(&name, #name)

void check_lt(cublasStatus_t status, const char *call)
{
    if (status != CUBLAS_STATUS_SUCCESS)
        throw std::runtime_error(std::string(call) + ": status " + std::to_string(status));
}
#define CHECK_LT(call) check_lt(call, #call)

struct Kind {
    const char *name;
    cudaDataType_t type;
    size_t size;
    cublasComputeType_t compute;
};
constexpr Kind kKinds[] = {{"f32", CUDA_R_32F, 4, CUBLAS_COMPUTE_32F},
                           {"tf32", CUDA_R_32F, 4, CUBLAS_COMPUTE_32F_FAST_TF32},
                           {"f16", CUDA_R_16F, 2, CUBLAS_COMPUTE_32F},
                           {"bf16", CUDA_R_16BF, 2, CUBLAS_COMPUTE_32F}};
constexpr size_t kWorkspace = size_t{32} << 20;

struct Shape {
    uint64_t rows, columns, depth;
    bool lies_transposed;  // the first operand is stored [depth, rows]
};

// Product, planned once. A row-major product is the column-major product of the operands in reverse order.
struct Plan {
    Plan(const Kind &kind, const Shape &shape);
    void plan(const Kind &kind, const Shape &shape);
    void run(long i);

    std::vector<Block> blocks;  // the workspace; a, b, c of each set
    cublasLtHandle_t handle;
    cublasLtMatmulDesc_t product;
    cublasLtMatrixLayout_t a, b, c;
    cublasLtMatmulHeuristicResult_t best;
    decltype(&cublasLtMatmul) matmul;
};

void fill_block(const Kind &kind, const Block &block, size_t count, unsigned seed)
{
    if (kind.type == CUDA_R_32F)
        fill<<<1024, 256>>>(static_cast<float *>(block.data), count, seed);
    else if (kind.type == CUDA_R_16F)
        fill<<<1024, 256>>>(static_cast<__half *>(block.data), count, seed);
    else
        fill<<<1024, 256>>>(static_cast<__nv_bfloat16 *>(block.data), count, seed);
}

Plan::Plan(const Kind &kind, const Shape &shape)
{
    blocks.emplace_back(kWorkspace);
    const uint64_t counts[] = {shape.rows * shape.depth, shape.depth * shape.columns,
                               shape.rows * shape.columns};
    const size_t bytes = (counts[0] + counts[1] + counts[2]) * kind.size;
    for (size_t i = 0; i < 3 * sets_of(bytes); i++) {
        blocks.emplace_back(counts[i % 3] * kind.size);
        fill_block(kind, blocks.back(), counts[i % 3], static_cast<unsigned>(i + 1) * 7919u);
    }
    CHECK(cudaDeviceSynchronize());
    plan(kind, shape);
}

void Plan::plan(const Kind &kind, const Shape &shape)
{
    const auto layout = [&](cublasLtMatrixLayout_t *made, uint64_t row_length, uint64_t rows) {
        CHECK_LT(LT(cublasLtMatrixLayoutCreate)(made, kind.type, row_length, rows,
                                                static_cast<int64_t>(row_length)));
    };
    const size_t workspace = kWorkspace;
    const cublasOperation_t transposed = shape.lies_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasLtMatmulPreference_t preference;
    CHECK_LT(LT(cublasLtCreate)(&handle));
    CHECK_LT(LT(cublasLtMatmulDescCreate)(&product, kind.compute, CUDA_R_32F));
    CHECK_LT(LT(cublasLtMatmulDescSetAttribute)(product, CUBLASLT_MATMUL_DESC_TRANSB, &transposed,
                                                sizeof transposed));
    if (shape.lies_transposed)
        layout(&a, shape.rows, shape.depth);
    else
        layout(&a, shape.depth, shape.rows);
    layout(&b, shape.columns, shape.depth);
    layout(&c, shape.columns, shape.rows);
    CHECK_LT(LT(cublasLtMatmulPreferenceCreate)(&preference));
    CHECK_LT(LT(cublasLtMatmulPreferenceSetAttribute)(
        preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof workspace));
    int found = 0;
    CHECK_LT(LT(cublasLtMatmulAlgoGetHeuristic)(handle, product, b, a, c, c, preference, 1, &best,
                                                &found));
    if (!found) throw std::runtime_error("cuBLASLt has no algorithm for this product");
    CHECK_LT(LT(cublasLtMatmulPreferenceDestroy)(preference));
    matmul = LT(cublasLtMatmul);
}

void Plan::run(long i)
{
    const float one = 1, zero = 0;
    const size_t at = 1 + 3 * (static_cast<size_t>(i) % (blocks.size() / 3));
    void *x = blocks[at].data, *y = blocks[at + 1].data, *out = blocks[at + 2].data;
    CHECK_LT(matmul(handle, product, &one, y, b, x, a, &zero, out, c, out, c, &best.algo,
                    blocks[0].data, kWorkspace, g_stream));
}

double gemm(const std::string &dtype, const Shape &shape, long count)
{
    static std::map<std::string, Plan> plans;
    std::string key = dtype + (shape.lies_transposed ? " transposed" : "");
    for (const uint64_t size : {shape.rows, shape.columns, shape.depth})
        key += " " + std::to_string(size);
    if (!plans.count(key)) {
        plans.clear();  // memory holds a single product at a time
        for (const Kind &kind : kKinds)
            if (dtype == kind.name) plans.emplace(key, Plan(kind, shape));
    }
    if (plans.empty()) throw std::runtime_error("unknown dtype " + dtype);
    Plan &plan = plans.at(key);
    return timed(count, [&](long i) { plan.run(i); });
}

std::string open_cublaslt(const char *file)
{
    const char *names[] = {file, "libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"};
    for (const char *name : names)
        if (name && *name && !g_library) g_library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!g_library) return "no cuBLASLt";
    const size_t version = LT(cublasLtGetVersion)();
    return "cuBLASLt " + std::to_string(version / 10000) + "." +
           std::to_string(version / 100 % 100) + "." + std::to_string(version % 100);
}

#else

struct Shape {
    uint64_t rows, columns, depth;
    bool lies_transposed;
};

double gemm(const std::string &, const Shape &, long)
{
    throw std::runtime_error("built without cublasLt.h");
}

std::string open_cublaslt(const char *)
{
    return "built without cublasLt.h";
}

#endif

double measure(const std::string &line)
{
    char what[32] = "", dtype[32] = "";
    long size = 0, columns = 0, depth = 0, count = 0;
    if (sscanf(line.c_str(), "copy %ld %ld", &size, &count) == 2) return copy(size, count);
    if (sscanf(line.c_str(), "launch %ld", &count) == 1) return launch(count);
    if (sscanf(line.c_str(), "%31s %31s %ld %ld", what, dtype, &size, &count) == 4 &&
        std::string(what) == "gemm")
        return gemm(dtype, {uint64_t(size), uint64_t(size), uint64_t(size), false}, count);
    if (sscanf(line.c_str(), "weights %31s %ld %ld %ld %ld", dtype, &size, &columns, &depth,
               &count) == 5)
        return gemm(dtype, {uint64_t(size), uint64_t(columns), uint64_t(depth), true}, count);
    throw std::runtime_error("unknown case " + line);
}

void serve(const char *file)
{
    int runtime = 0, driver = 0;
    cudaDeviceProp device;
    CHECK(cudaRuntimeGetVersion(&runtime));
    CHECK(cudaDriverGetVersion(&driver));
    CHECK(cudaGetDeviceProperties(&device, 0));
    CHECK(cudaStreamCreateWithFlags(&g_stream, cudaStreamNonBlocking));
    const std::string cublaslt = open_cublaslt(file);
    printf("%s, CUDA runtime %d.%d, driver's CUDA %d.%d, %s\n", device.name, runtime / 1000,
           runtime % 1000 / 10, driver / 1000, driver % 1000 / 10, cublaslt.c_str());
    char text[256];
    while (fgets(text, sizeof text, stdin)) {
        std::string line = text;
        line.erase(line.find_last_not_of("\n") + 1);
        try {
            printf("%.17g\n", measure(line));
        } catch (const std::exception &error) {
            printf("! %s\n", error.what());
        }
    }
}

}  // namespace

int main(int count, char **arguments)
{
    setvbuf(stdout, nullptr, _IOLBF, 0);
    try {
        serve(count > 1 ? arguments[1] : nullptr);
    } catch (const std::exception &error) {
        fprintf(stderr, "gpu_floor: %s\n", error.what());
        return 1;
    }
    return 0;
}
