// A libcublasLt for tests: products on host memory, in their stream's turn, by calls that CUDA's own would take. What
// it would refuse, or would answer with wrong memory, is refused with a line on stderr. See fake.h.
#pragma GCC visibility push(default)
#include <cublasLt.h>
#pragma GCC visibility pop

#include <cuda.h>
#include <dlfcn.h>

#include <cstdarg>
#include <cstdio>
#include <mutex>
#include <set>
#include <vector>

#include "kernels/common/activation.h"
#include "kernels/common/numeric.h"
#include "tests/fakes/cuda/fake.h"

namespace {

using namespace yoke::kernels;

constexpr uint32_t kDescription = 0xdec0de01, kLayout = 0xdec0de02, kPreference = 0xdec0de03,
                   kAlgorithm = 0xdec0de04;
constexpr size_t kWorkspace = 4096;

// What the opaque structs hold here.
struct Description {
    uint32_t magic;
    cublasComputeType_t compute;
    cudaDataType_t scale;
    cublasOperation_t transposed[2];
    uint32_t epilogue;
    const void *bias;
    void *aux;
    int64_t aux_leading, aux_step;
};
struct Layout {
    uint32_t magic;
    cudaDataType_t type;
    uint64_t rows, columns;
    int64_t leading, step;
    int32_t batch;
};
struct Preference {
    uint32_t magic, alignment[4], reductions;
    uint64_t workspace;
};
struct Algorithm {
    uint32_t magic, number, alignment[4];
    uint64_t problem, workspace;
};
static_assert(sizeof(Description) <= sizeof(cublasLtMatmulDescOpaque_t));
static_assert(sizeof(Layout) <= sizeof(cublasLtMatrixLayoutOpaque_t));
static_assert(sizeof(Preference) <= sizeof(cublasLtMatmulPreferenceOpaque_t));
static_assert(sizeof(Algorithm) <= sizeof(cublasLtMatmulAlgo_t));

__attribute__((format(printf, 1, 2))) cublasStatus_t refuse(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("fake cuBLASLt: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    return CUBLAS_STATUS_INVALID_VALUE;
}

template <class Call>
Call driver_symbol(const char *name)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    return library ? reinterpret_cast<Call>(dlsym(library, name)) : nullptr;
}

// Asks the fake driver, which counts the calls of all fakes.
int fault_of(const char *call)
{
    static const auto ask = driver_symbol<decltype(&fake_fault)>("fake_fault");
    return ask ? ask(call) : 0;
}

#define FAULT()                                                 \
    do {                                                        \
        const int fault_ = fault_of(__func__);                  \
        if (fault_) return static_cast<cublasStatus_t>(fault_); \
    } while (0)

int current_device()
{
    CUdevice device = -1;
    const auto get = driver_symbol<CUresult (*)(CUdevice *)>("cuCtxGetDevice");
    return get && get(&device) == CUDA_SUCCESS ? device : -1;
}

// ---- handles ------------------------------------------------------------------------------------------------------------

struct Handle {
    int device;
};
std::mutex g_mutex;
std::set<const void *> g_live;

cublasStatus_t check_handle(cublasLtHandle_t handle)
{
    const std::lock_guard<std::mutex> lock(g_mutex);
    if (!g_live.count(handle)) return refuse("a handle that is not live");
    const int device = reinterpret_cast<const Handle *>(handle)->device;
    if (device != current_device())
        return refuse("a handle of device %d while %d is current", device, current_device());
    return CUBLAS_STATUS_SUCCESS;
}

// ---- the problem --------------------------------------------------------------------------------------------------------

struct Problem {
    Description product;
    Layout a, b, c, d;
    uint64_t rows, columns, inner;

    // Tells problems apart, so that no algorithm is used for another than it was chosen for.
    uint64_t hash() const
    {
        uint64_t h = product.epilogue;
        for (const Layout *x : {&a, &b, &d})
            for (const uint64_t word : {x->rows, x->columns, (uint64_t)x->leading,
                                        (uint64_t)x->step, (uint64_t)x->batch, (uint64_t)x->type})
                h = (h ^ word) * 0x9e3779b97f4a7c15u;
        return h;
    }
};

bool has_bias(const Description &product)
{
    return product.epilogue & CUBLASLT_EPILOGUE_BIAS;
}

bool has_aux(const Description &product)
{
    return product.epilogue & 128;
}

cublasStatus_t check_layout(const Layout &x, const char *name)
{
    if (x.magic != kLayout) return refuse("%s has no layout", name);
    if (x.rows == 0 || x.columns == 0) return refuse("%s is empty", name);
    if (x.leading < static_cast<int64_t>(x.rows))
        return refuse("%s has %llu rows and a leading dimension of %lld", name,
                      (unsigned long long)x.rows, (long long)x.leading);
    if (x.batch < 1 || x.step < 0) return refuse("%s has a batch of %d", name, x.batch);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t check_types(const Problem &p)
{
    const cudaDataType_t type = p.d.type;
    const bool is_double = type == CUDA_R_64F;
    const bool computes = is_double ? p.product.compute == CUBLAS_COMPUTE_64F
                          : p.product.compute == CUBLAS_COMPUTE_32F_FAST_TF32
                              ? type == CUDA_R_32F
                              : p.product.compute == CUBLAS_COMPUTE_32F;
    if (!computes || p.product.scale != (is_double ? CUDA_R_64F : CUDA_R_32F))
        return refuse("a computing type that does not go with the data");
    if (p.a.type != type || p.b.type != type || p.c.type != type)
        return refuse("matrices of several types");
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t check_epilogue(const Problem &p)
{
    const Description &product = p.product;
    if (has_bias(product) && !product.bias) return refuse("an epilogue without its bias");
    if (has_aux(product) && (!product.aux || product.aux_leading < static_cast<int64_t>(p.rows)))
        return refuse("an epilogue without its second output");
    switch (product.epilogue) {
        case CUBLASLT_EPILOGUE_DEFAULT:
            return CUBLAS_STATUS_SUCCESS;
        case CUBLASLT_EPILOGUE_RELU:
        case CUBLASLT_EPILOGUE_BIAS:
        case CUBLASLT_EPILOGUE_RELU_BIAS:
        case CUBLASLT_EPILOGUE_GELU:
        case CUBLASLT_EPILOGUE_GELU_BIAS:
            break;
        case CUBLASLT_EPILOGUE_GELU_AUX:
        case CUBLASLT_EPILOGUE_GELU_AUX_BIAS:
            if (product.aux_leading % 8) return refuse("a second output in odd rows");
            break;
        default:
            return refuse("an epilogue that this fake has not");
    }
    return p.d.type == CUDA_R_64F ? CUBLAS_STATUS_NOT_SUPPORTED : CUBLAS_STATUS_SUCCESS;
}

template <class Mine, class Theirs>
Mine read(const Theirs *opaque)
{
    Mine mine{};
    if (opaque) memcpy(&mine, opaque, sizeof mine);
    return mine;
}

cublasStatus_t read_problem(Problem &p, cublasLtMatmulDesc_t product, cublasLtMatrixLayout_t a,
                            cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,
                            cublasLtMatrixLayout_t d)
{
    p.product = read<Description>(product);
    p.a = read<Layout>(a), p.b = read<Layout>(b), p.c = read<Layout>(c), p.d = read<Layout>(d);
    if (p.product.magic != kDescription) return refuse("no description of the product");
    const char *const names[] = {"A", "B", "C", "D"};
    const Layout *const layouts[] = {&p.a, &p.b, &p.c, &p.d};
    for (int i = 0; i < 4; ++i) {
        if (const cublasStatus_t status = check_layout(*layouts[i], names[i])) return status;
        if (layouts[i]->batch != p.d.batch) return refuse("batches of several lengths");
    }
    const bool ta = p.product.transposed[0] == CUBLAS_OP_T,
               tb = p.product.transposed[1] == CUBLAS_OP_T;
    p.rows = ta ? p.a.columns : p.a.rows;
    p.inner = ta ? p.a.rows : p.a.columns;
    p.columns = tb ? p.b.rows : p.b.columns;
    if ((tb ? p.b.columns : p.b.rows) != p.inner || p.d.rows != p.rows ||
        p.d.columns != p.columns || p.c.rows != p.rows || p.c.columns != p.columns)
        return refuse("matrices whose sizes do not agree");
    if (p.d.batch > 1 && p.d.step < p.d.leading * static_cast<int64_t>(p.columns - 1) + 1)
        return refuse("results of a batch that overlap");
    if (const cublasStatus_t status = check_types(p)) return status;
    return check_epilogue(p);
}

// ---- the product --------------------------------------------------------------------------------------------------------

struct Work {
    Problem problem;
    const void *a, *b;
    void *d, *workspace;
    uint64_t workspace_bytes;
};

float to_tf32(float x)
{
    const uint32_t bits = bit_cast<uint32_t>(x);
    return bit_cast<float>((bits + 0xfffu + ((bits >> 13) & 1u)) & ~0x1fffu);
}

// One matrix as op(X), row after row.
template <class T, class C>
std::vector<C> unpack(const Layout &layout, const void *data, int64_t batch, bool transposed,
                      bool tf32)
{
    const T *from = static_cast<const T *>(data) + batch * layout.step;
    const uint64_t rows = transposed ? layout.columns : layout.rows,
                   columns = transposed ? layout.rows : layout.columns;
    std::vector<C> to(rows * columns);
    for (uint64_t i = 0; i < rows; ++i)
        for (uint64_t j = 0; j < columns; ++j) {
            const uint64_t at =
                transposed ? i * (uint64_t)layout.leading + j : j * (uint64_t)layout.leading + i;
            C value = load<T>(from[at]);
            if constexpr (std::is_same_v<C, float>)
                if (tf32) value = to_tf32(value);
            to[i * columns + j] = value;
        }
    return to;
}

template <class T, class C>
void write_one(const Work &work, int64_t batch, uint64_t row, uint64_t column, C value)
{
    const Problem &p = work.problem;
    const Description &product = p.product;
    const int activation = static_cast<int>(product.epilogue) & ~(128 | CUBLASLT_EPILOGUE_BIAS);
    if (has_bias(product)) value += load<T>(static_cast<const T *>(product.bias)[row]);
    if (has_aux(product))
        static_cast<T *>(product.aux)[batch * product.aux_step +
                                      static_cast<int64_t>(column) * product.aux_leading +
                                      static_cast<int64_t>(row)] = store<T>(value);
    if (activation == CUBLASLT_EPILOGUE_RELU) value = Relu()(value);
    if (activation == CUBLASLT_EPILOGUE_GELU) value = GeluTanh()(value);
    static_cast<T *>(work.d)[batch * p.d.step + static_cast<int64_t>(column) * p.d.leading +
                             static_cast<int64_t>(row)] = store<T>(value);
}

template <class T>
void multiply(const Work &work)
{
    using C = compute_type<T>;
    const Problem &p = work.problem;
    const bool tf32 = p.product.compute == CUBLAS_COMPUTE_32F_FAST_TF32;
    for (int64_t batch = 0; batch < p.d.batch; ++batch) {
        const auto a = unpack<T, C>(p.a, work.a, batch, p.product.transposed[0], tf32);
        const auto b = unpack<T, C>(p.b, work.b, batch, !p.product.transposed[1], tf32);
        for (uint64_t column = 0; column < p.columns; ++column)
            for (uint64_t row = 0; row < p.rows; ++row) {
                const C *x = &a[row * p.inner], *y = &b[column * p.inner];
                C sum = 0;
                for (uint64_t k = 0; k < p.inner; ++k) sum += x[k] * y[k];
                write_one<T>(work, batch, row, column, sum);
            }
    }
}

int do_work(void *context)
{
    const Work &work = *static_cast<const Work *>(context);
    if (work.workspace_bytes) memset(work.workspace, 0xab, work.workspace_bytes);
    switch (work.problem.d.type) {
        case CUDA_R_64F:
            multiply<double>(work);
            break;
        case CUDA_R_16F:
            multiply<f16>(work);
            break;
        case CUDA_R_16BF:
            multiply<bf16>(work);
            break;
        default:
            multiply<float>(work);
    }
    return cudaSuccess;
}

void drop_work(void *context)
{
    delete static_cast<Work *>(context);
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
    if ((has_bias(product) && !is_aligned(product.bias, 16)) ||
        (has_aux(product) && !is_aligned(product.aux, 16)))
        return refuse("a vector or second output that is not aligned to 16 bytes");
    return CUBLAS_STATUS_SUCCESS;
}

template <class T>
cublasStatus_t set(T &field, const void *value, size_t size)
{
    if (!value || size != sizeof field) return refuse("an attribute of %zu bytes", size);
    memcpy(&field, value, size);
    return CUBLAS_STATUS_SUCCESS;
}

}  // namespace

// ---- the library ----------------------------------------------------------------------------------------------------------

extern "C" __attribute__((visibility("default"))) int fake_cublaslt_live_handles()
{
    const std::lock_guard<std::mutex> lock(g_mutex);
    return static_cast<int>(g_live.size());
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
    const Handle *made = new Handle{current_device()};
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

cublasStatus_t cublasLtMatrixLayoutInit_internal(cublasLtMatrixLayout_t layout, size_t size,
                                                 cudaDataType type, uint64_t rows, uint64_t cols,
                                                 int64_t ld)
{
    FAULT();
    if (size != sizeof *layout) return CUBLAS_STATUS_ALLOC_FAILED;
    const Layout made{kLayout, type, rows, cols, ld, 0, 1};
    memcpy(layout, &made, sizeof made);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute,
                                                const void *value, size_t size)
{
    FAULT();
    Layout &mine = *reinterpret_cast<Layout *>(layout);
    if (mine.magic != kLayout) return refuse("an attribute of what is no layout");
    if (attribute == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT) return set(mine.batch, value, size);
    if (attribute == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET)
        return set(mine.step, value, size);
    return refuse("an attribute of a layout that this fake has not");
}

cublasStatus_t cublasLtMatmulDescInit_internal(cublasLtMatmulDesc_t product, size_t size,
                                               cublasComputeType_t compute, cudaDataType_t scale)
{
    FAULT();
    if (size != sizeof *product) return CUBLAS_STATUS_ALLOC_FAILED;
    Description made{};
    made.magic = kDescription;
    made.compute = compute;
    made.scale = scale;
    made.transposed[0] = made.transposed[1] = CUBLAS_OP_N;
    made.epilogue = CUBLASLT_EPILOGUE_DEFAULT;
    memcpy(product, &made, sizeof made);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t product,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void *value, size_t size)
{
    FAULT();
    Description &mine = *reinterpret_cast<Description *>(product);
    if (mine.magic != kDescription) return refuse("an attribute of what is no description");
    switch (attribute) {
        case CUBLASLT_MATMUL_DESC_TRANSA:
            return set(mine.transposed[0], value, size);
        case CUBLASLT_MATMUL_DESC_TRANSB:
            return set(mine.transposed[1], value, size);
        case CUBLASLT_MATMUL_DESC_EPILOGUE:
            return set(mine.epilogue, value, size);
        case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
            return set(mine.bias, value, size);
        case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER:
            return set(mine.aux, value, size);
        case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD:
            return set(mine.aux_leading, value, size);
        case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE:
            return set(mine.aux_step, value, size);
        default:
            return refuse("an attribute of a description that this fake has not");
    }
}

cublasStatus_t cublasLtMatmulPreferenceInit_internal(cublasLtMatmulPreference_t preference,
                                                     size_t size)
{
    FAULT();
    if (size != sizeof *preference) return CUBLAS_STATUS_ALLOC_FAILED;
    const Preference made{kPreference, {256, 256, 256, 256}, 7, 0};
    memcpy(preference, &made, sizeof made);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void *value, size_t size)
{
    FAULT();
    Preference &mine = *reinterpret_cast<Preference *>(preference);
    if (mine.magic != kPreference) return refuse("an attribute of what is no preference");
    if (attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES)
        return set(mine.workspace, value, size);
    if (attribute == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK)
        return set(mine.reductions, value, size);
    const int which = attribute - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES;
    if (which >= 0 && which < 4) return set(mine.alignment[which], value, size);
    return refuse("an attribute of a preference that this fake has not");
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
    const Preference wish = read<Preference>(preference);
    if (wish.magic != kPreference || wanted <= 0) return refuse("no preference");
    for (*count = 0; *count < wanted && *count < 10; ++*count) {
        const auto number = static_cast<uint32_t>(*count);
        const uint64_t workspace = wish.workspace >= kWorkspace && number % 2 == 0 ? kWorkspace : 0;
        Algorithm algorithm{kAlgorithm, number, {}, problem.hash(), workspace};
        memcpy(algorithm.alignment, wish.alignment, sizeof wish.alignment);
        results[*count] = {};
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
                 zero = is_double ? *static_cast<const double *>(beta)
                                  : static_cast<double>(*static_cast<const float *>(beta));
    if (one != 1 || zero != 0 || c != d) return refuse("scales other than 1 and 0");
    work.a = a, work.b = b, work.d = d, work.workspace = workspace;
    const Algorithm algorithm = read<Algorithm>(algo);
    if (const cublasStatus_t status = check_algorithm(algorithm, work, workspace_bytes))
        return status;
    work.workspace_bytes = algorithm.workspace;
    const auto enqueue = driver_symbol<fake_enqueue_fn *>("fake_runtime_enqueue");
    if (!enqueue || !*enqueue) return CUBLAS_STATUS_NOT_INITIALIZED;
    const void *const used[] = {a, b, d, workspace};
    return (*enqueue)("cublasLt's kernel", stream, do_work, drop_work, new Work(work), used,
                      sizeof used)
               ? CUBLAS_STATUS_EXECUTION_FAILED
               : CUBLAS_STATUS_SUCCESS;
}
