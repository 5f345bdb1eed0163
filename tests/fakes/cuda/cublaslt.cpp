// Fake libcublasLt for tests: products on host memory, in the order of their stream, by calls that CUDA's library
// would accept. If CUDA's library would refuse a call, or answer with wrong memory, the fake refuses the call with a
// line on stderr. See fake.h.
#include <cuda.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "tests/fakes/cuda/cublaslt_fake.h"
#include "tests/fakes/cuda/machine.h"

namespace yoke::fake {
namespace {

constexpr size_t kWorkspace = 4096;

}  // namespace

cublasStatus_t refuse(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("fake cuBLASLt: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    return CUBLAS_STATUS_INVALID_VALUE;
}

int major_of_device()
{
    static const auto ask = driver_symbol<decltype(&fake_machine_device)>("fake_machine_device");
    fake_device found{};
    return ask && !ask(current_device(), &found) ? found.major : 0;
}

namespace {

// ---- handles --------------------------------------------------------------------------------------------------------

struct Handle {
    int device;
    bool was_used;
};
std::mutex g_mutex;
std::set<const void *> g_live;
std::map<cublasComputeType_t, int> g_products;
int g_algorithm = -1;                              // number of the last product's algorithm
int g_epilogue = -1, g_reductions = -1;            // of the last product; of the last choice
std::set<std::pair<uint64_t, uint32_t>> g_loaded;  // problems and algorithms

cublasStatus_t check_handle(cublasLtHandle_t handle)
{
    const std::lock_guard<std::mutex> lock(g_mutex);
    if (!g_live.count(handle)) return refuse("a handle that is not live");
    const int device = reinterpret_cast<const Handle *>(handle)->device;
    if (device != current_device())
        return refuse("a handle of device %d while %d is current", device, current_device());
    return CUBLAS_STATUS_SUCCESS;
}

bool is_aligned(const void *pointer, uint64_t bytes)
{
    return reinterpret_cast<uintptr_t>(pointer) % bytes == 0;
}

cublasStatus_t check_algorithm(const Algorithm &algorithm, const Work &work, size_t given)
{
    if (algorithm.magic != kAlgorithm) return refuse("no algorithm");
    if (algorithm.problem != work.problem.hash())
        return refuse("an algorithm that was chosen for another product");
    if (given < algorithm.workspace || (algorithm.workspace && !is_aligned(work.workspace, 256)))
        return refuse("a workspace of %zu bytes at %p", given, work.workspace);
    const void *const pointers[] = {work.a, work.b, work.d, work.d};
    for (int i = 0; i < 4; ++i)
        if (!pointers[i] || !is_aligned(pointers[i], algorithm.alignment[i]))
            return refuse("%c at %p, where an alignment of %u was promised", "ABCD"[i], pointers[i],
                          algorithm.alignment[i]);
    const Description &product = work.problem.product;
    if (((has_bias(product) || has_sums(product)) && !is_aligned(product.bias, 16)) ||
        (has_aux(product) && !is_aligned(product.aux, 16)))
        return refuse("a vector or second output that is not aligned to 16 bytes");
    return CUBLAS_STATUS_SUCCESS;
}

// Does the work of a first use, and returns false if a capture was lost by this work. A handle's first product may
// wait for the device. An algorithm's first product loads code. (CUDA: "Loading kernels might require context
// synchronization".)
bool begin_product(cublasLtHandle_t handle, const Algorithm &algorithm)
{
    const std::lock_guard<std::mutex> lock(g_mutex);
    auto *mine = reinterpret_cast<Handle *>(handle);
    if (!std::exchange(mine->was_used, true) && runtime().wait()) return false;
    return !g_loaded.emplace(algorithm.problem, algorithm.number).second || !runtime().unsafe();
}

int microseconds_of(const Algorithm &algorithm)
{
    const char *list = getenv("FAKE_CUBLASLT_MICROSECONDS");
    for (uint32_t i = 0; list && i < algorithm.number && strchr(list, ','); ++i)
        list = strchr(list, ',') + 1;
    return list ? atoi(list) : 0;
}

}  // namespace
}  // namespace yoke::fake

using namespace yoke::fake;

// ---- the library ----------------------------------------------------------------------------------------------------

extern "C" __attribute__((visibility("default"))) int fake_cublaslt_live_handles()
{
    const std::lock_guard<std::mutex> lock(g_mutex);
    return static_cast<int>(g_live.size());
}

// Number of products so far in this type.
extern "C" __attribute__((visibility("default"))) int fake_cublaslt_products(int compute)
{
    const std::lock_guard<std::mutex> lock(g_mutex);
    const auto found = g_products.find(static_cast<cublasComputeType_t>(compute));
    return found == g_products.end() ? 0 : found->second;
}

// Number of the last product's algorithm, or -1.
extern "C" __attribute__((visibility("default"))) int fake_cublaslt_algorithm()
{
    const std::lock_guard<std::mutex> lock(g_mutex);
    return g_algorithm;
}

// Epilogue of the last product, or -1.
extern "C" __attribute__((visibility("default"))) int fake_cublaslt_epilogue()
{
    const std::lock_guard<std::mutex> lock(g_mutex);
    return g_epilogue;
}

// Mask of the reduction schemes that the last choice of algorithms allowed, or -1.
extern "C" __attribute__((visibility("default"))) int fake_cublaslt_reductions()
{
    const std::lock_guard<std::mutex> lock(g_mutex);
    return g_reductions;
}

size_t cublasLtGetVersion()
{
    const char *text = getenv("FAKE_CUBLASLT_VERSION");
    return text ? static_cast<size_t>(atoi(text)) : CUBLAS_VERSION;
}

const char *cublasLtGetStatusName(cublasStatus_t status)
{
    static thread_local char text[40];
    snprintf(text, sizeof text, "CUBLAS_STATUS_FAKE_%d", static_cast<int>(status));
    return text;
}

const char *cublasLtGetStatusString(cublasStatus_t)
{
    return "a failure that the test asked for";
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle)
{
    FAULT();
    if (current_device() < 0) return CUBLAS_STATUS_NOT_INITIALIZED;
    if (runtime().wait && runtime().wait()) return CUBLAS_STATUS_INTERNAL_ERROR;
    const Handle *made = new Handle{current_device(), false};
    const std::lock_guard<std::mutex> lock(g_mutex);
    g_live.insert(made);
    driver_symbol<decltype(&fake_hold)>("fake_hold")(FAKE_HANDLES, 1);
    *handle = reinterpret_cast<cublasLtHandle_t>(const_cast<Handle *>(made));
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle)
{
    FAULT();
    if (const cublasStatus_t status = check_handle(handle)) return status;
    const std::lock_guard<std::mutex> lock(g_mutex);
    g_live.erase(handle);
    driver_symbol<decltype(&fake_hold)>("fake_hold")(FAKE_HANDLES, -1);
    delete reinterpret_cast<Handle *>(handle);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t product,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t results[], int *count)
{
    FAULT();
    if (const cublasStatus_t status = check_handle(handle)) return status;
    Problem problem;
    if (const cublasStatus_t status = read_problem(problem, product, a, b, c, d)) return status;
    const Preference limits = read<Preference>(preference);
    if (limits.magic != kPreference || wanted <= 0) return refuse("no preference");
    const uint32_t exact = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE |
                           (problem.d.type == CUDA_R_32F ? CUBLASLT_REDUCTION_SCHEME_INPLACE : 0);
    if (limits.reductions & ~exact) return refuse("a split sum with parts in the result's type");
    {
        const std::lock_guard<std::mutex> lock(g_mutex);
        g_reductions = static_cast<int>(limits.reductions);
    }
    // cuBLASLt of CUDA 13.3 asks the context for its limits here, and fails if a capture forbids the question.
    if (runtime().unsafe && runtime().unsafe()) return CUBLAS_STATUS_INTERNAL_ERROR;
    const char *text = getenv("FAKE_CUBLASLT_ALGORITHMS"), *unfit = getenv("FAKE_CUBLASLT_UNFIT");
    const int most = text ? atoi(text) : 10, first_fit = unfit ? atoi(unfit) : 0;
    for (*count = 0; *count < wanted && *count < most; ++*count) {
        const auto number = static_cast<uint32_t>(*count);
        const uint64_t workspace =
            limits.workspace >= kWorkspace && number % 2 == 0 ? kWorkspace : 0;
        Algorithm algorithm{kAlgorithm, number, {}, problem.hash(), workspace};
        memcpy(algorithm.alignment, limits.alignment, sizeof limits.alignment);
        results[*count] = {};
        if (*count < first_fit) {
            results[*count].state = CUBLAS_STATUS_NOT_SUPPORTED;
            continue;
        }
        memcpy(&results[*count].algo, &algorithm, sizeof algorithm);
        results[*count].workspaceSize = workspace;
    }
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t handle, cublasLtMatmulDesc_t product,
                                       cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                       cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                       const cublasLtMatmulAlgo_t *algo,
                                       cublasLtMatmulHeuristicResult_t *result)
{
    FAULT();
    if (const cublasStatus_t status = check_handle(handle)) return status;
    Problem problem;
    if (const cublasStatus_t status = read_problem(problem, product, a, b, c, d)) return status;
    const Algorithm algorithm = read<Algorithm>(algo);
    if (algorithm.magic != kAlgorithm || algorithm.problem != problem.hash())
        return CUBLAS_STATUS_INVALID_VALUE;
    result->workspaceSize = algorithm.workspace;
    result->state = CUBLAS_STATUS_SUCCESS;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t product,
                              const void *alpha, const void *a, cublasLtMatrixLayout_t a_layout,
                              const void *b, cublasLtMatrixLayout_t b_layout, const void *beta,
                              const void *c, cublasLtMatrixLayout_t c_layout, void *d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t *algo,
                              void *workspace, size_t workspace_bytes, cudaStream_t stream)
{
    FAULT();
    if (const cublasStatus_t status = check_handle(handle)) return status;
    Work work{};
    if (const cublasStatus_t status =
            read_problem(work.problem, product, a_layout, b_layout, c_layout, d_layout))
        return status;
    const bool is_double = work.problem.product.scale == CUDA_R_64F;
    const double one = is_double ? *static_cast<const double *>(alpha)
                                 : static_cast<double>(*static_cast<const float *>(alpha)),
                 kept = is_double ? *static_cast<const double *>(beta)
                                  : static_cast<double>(*static_cast<const float *>(beta));
    if (one != 1 || (kept != 0 && kept != 1) || c != d)
        return refuse("scales other than 1, and 0 or 1");
    work.adds = kept == 1;
    work.a = a, work.b = b, work.d = d, work.workspace = workspace;
    const Algorithm algorithm = read<Algorithm>(algo);
    if (const cublasStatus_t status = check_algorithm(algorithm, work, workspace_bytes))
        return status;
    work.workspace_bytes = algorithm.workspace;
    work.microseconds = microseconds_of(algorithm);
    if (!runtime().enqueue) return CUBLAS_STATUS_NOT_INITIALIZED;
    if (!begin_product(handle, algorithm)) return CUBLAS_STATUS_EXECUTION_FAILED;
    {
        const std::lock_guard<std::mutex> lock(g_mutex);
        ++g_products[work.problem.product.compute];
        g_algorithm = static_cast<int>(algorithm.number);
        g_epilogue = static_cast<int>(work.problem.product.epilogue);
    }
    const void *const used[] = {a, b, d, workspace};
    return runtime().enqueue("cublasLt's kernel", stream, do_work, drop_work, new Work(work), used,
                             sizeof used)
               ? CUBLAS_STATUS_EXECUTION_FAILED
               : CUBLAS_STATUS_SUCCESS;
}
