// Products as descriptors and algorithms of cuBLASLt: plans, trials and runs.
#include "kernels/cuda/host/cublaslt.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "core/backend/ops.inc"
#include "kernels/common/operand.h"
#include "kernels/cuda/host/cublaslt_library.h"
#include "kernels/cuda/host/cublaslt_request.h"
#include "kernels/cuda/host/cublaslt_tune.h"
#include "kernels/cuda/host/cublaslt_types.h"
#include "kernels/cuda/host/driver.h"
#include "kernels/cuda/host/relaxed.h"

namespace yoke::cuda {

namespace {

constexpr uint64_t kWorkspace = 32 << 20;  // NVIDIA's recommendation for Hopper

// Limits of a batch. cuBLASLt's kernels put a batch along z of their grid, and CUDA allows 65,535 blocks along z.
// Larger batches go in parts; the part length keeps every operand's alignment.
constexpr int64_t kMostBatches = 65535, kPart = 32768;

// Returns whether to fuse an activation: relu and gelu by tanh, if YOKE_CUBLASLT_FUSE_ACTIVATIONS is 1. cuBLASLt
// applies an activation to unrounded sums, approximates gelu's tanh, and does not document relu of NaN. So the user
// must ask for this; it saves a pass over the result.
bool fuses(Activation activation)
{
    static const bool asked = [] {
        const char *setting = g_host->config("YOKE_CUBLASLT_FUSE_ACTIVATIONS");
        return setting && *setting == '1';
    }();
    return asked && (activation == Activation::kRelu || activation == Activation::kGeluTanh);
}

// ---- plans ----------------------------------------------------------------------------------------------------------

// Sequence of cuBLASLt calls. status() is the first failure, and set() makes no call after a failure.
class Steps {
public:
    Steps(const yoke_launch *launch, const CublasLt &lt) : call(*lt.call), launch_(launch) {}

    Steps &check(cublasStatus_t error, const char *what)
    {
        if (!status_) status_ = cublaslt_check(launch_, error, "%s", what);
        return *this;
    }
    template <class T>
    void set(cublasLtMatmulDescOpaque_t &desc, cublasLtMatmulDescAttributes_t name, const T &value)
    {
        if (!status_)
            check(call.cublasLtMatmulDescSetAttribute(&desc, name, &value, sizeof value),
                  "cublasLtMatmulDescSetAttribute");
    }
    template <class T>
    void set(cublasLtMatrixLayoutOpaque_t &layout, cublasLtMatrixLayoutAttribute_t name,
             const T &value)
    {
        if (!status_)
            check(call.cublasLtMatrixLayoutSetAttribute(&layout, name, &value, sizeof value),
                  "cublasLtMatrixLayoutSetAttribute");
    }
    template <class T>
    void set(cublasLtMatmulPreferenceOpaque_t &preference,
             cublasLtMatmulPreferenceAttributes_t name, const T &value)
    {
        if (!status_)
            check(
                call.cublasLtMatmulPreferenceSetAttribute(&preference, name, &value, sizeof value),
                "cublasLtMatmulPreferenceSetAttribute");
    }
    yoke_status status() const { return status_; }

    const CublasLtCalls &call;

private:
    const yoke_launch *launch_;
    yoke_status status_ = YOKE_OK;
};

void describe_matrix(Steps &steps, const PlanKey &key, int i, int64_t rows, int64_t columns,
                     cublasLtMatrixLayoutOpaque_t &layout)
{
    if (i < 2 && key.transposed[i]) std::swap(rows, columns);
    const Types types = types_of(key);
    steps.check(steps.call.cublasLtMatrixLayoutInit_internal(
                    &layout, sizeof layout, i < 2 ? types.factors : types.result,
                    static_cast<uint64_t>(rows), static_cast<uint64_t>(columns), key.leading[i]),
                "cublasLtMatrixLayoutInit");
    if (key.batch == 1) return;
    steps.set(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, static_cast<int32_t>(key.batch));
    steps.set(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, key.step[i]);
}

void set_pointers(Steps &steps, const Request &request, Plan &plan)
{
    if (request.vector) steps.set(plan.product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, request.vector);
    if (request.before)
        steps.set(plan.product, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, request.before);
}

void describe(Steps &steps, const Request &request, Plan &plan)
{
    const PlanKey &key = plan.key = request.key;
    const Types types = types_of(key);
    steps.check(steps.call.cublasLtMatmulDescInit_internal(&plan.product, sizeof plan.product,
                                                           types.compute, types.scale),
                "cublasLtMatmulDescInit");
    const cublasOperation_t operations[] = {CUBLAS_OP_N, CUBLAS_OP_T};
    steps.set(plan.product, CUBLASLT_MATMUL_DESC_TRANSA, operations[key.transposed[0]]);
    steps.set(plan.product, CUBLASLT_MATMUL_DESC_TRANSB, operations[key.transposed[1]]);
    steps.set(plan.product, CUBLASLT_MATMUL_DESC_EPILOGUE, key.epilogue);
    if (request.before) {
        steps.set(plan.product, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, key.leading[2]);
        steps.set(plan.product, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE, key.step[2]);
    }
    set_pointers(steps, request, plan);
    describe_matrix(steps, key, 0, key.rows, key.inner, plan.a);
    describe_matrix(steps, key, 1, key.inner, key.columns, plan.b);
    describe_matrix(steps, key, 2, key.rows, key.columns, plan.d);
}

using Results = cublasLtMatmulHeuristicResult_t[kTuned];

// Drops failed algorithms from the first `count` results, and returns the number left. cuBLASLt also fills in entries
// of algorithms that failed its checks.
int drop_failed(int count, Results &results)
{
    const auto failed = [](const auto &result) { return result.state != CUBLAS_STATUS_SUCCESS; };
    return static_cast<int>(std::remove_if(results, results + count, failed) - results);
}

// Asks cuBLASLt for its best algorithms, at most `wanted`, and returns their number. Returns 0 if there is no
// algorithm, or if a call failed: `steps` has the failure then.
int ask(Steps &steps, const CublasLt &lt, Plan &plan, int wanted, Results &results)
{
    cublasLtMatmulPreferenceOpaque_t preference;
    steps.check(steps.call.cublasLtMatmulPreferenceInit_internal(&preference, sizeof preference),
                "cublasLtMatmulPreferenceInit");
    steps.set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kWorkspace);
    steps.set(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, reductions_of(plan.key));
    constexpr cublasLtMatmulPreferenceAttributes_t kAlignments[] = {
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
    for (int i = 0; i < 4; ++i)
        steps.set(preference, kAlignments[i], uint32_t(1) << plan.key.alignment[i < 3 ? i : 2]);
    int count = 0;
    if (steps.status()) return 0;
    const cublasStatus_t error = steps.call.cublasLtMatmulAlgoGetHeuristic(
        lt.handle, &plan.product, &plan.a, &plan.b, &plan.d, &plan.d, &preference, wanted, results,
        &count);
    if (error == CUBLAS_STATUS_NOT_SUPPORTED) return 0;
    steps.check(error, "cublasLtMatmulAlgoGetHeuristic");
    return steps.status() ? 0 : drop_failed(count, results);
}

cublasStatus_t multiply(const yoke_launch *launch, const CublasLt &lt, const Request &request,
                        Plan &plan, void *workspace)
{
    const float one = 1, kept = request.adds;  // kept: D's part of the sum
    const double one64 = 1, kept64 = request.adds;
    const bool is_double = plan.key.dtype == YOKE_F64;
    const void *alpha = is_double ? static_cast<const void *>(&one64) : &one,
               *beta = is_double ? static_cast<const void *>(&kept64) : &kept;
    return lt.call->cublasLtMatmul(lt.handle, &plan.product, alpha, request.a, &plan.a, request.b,
                                   &plan.b, beta, request.d, &plan.d, request.d, &plan.d,
                                   &plan.algo, workspace, plan.workspace,
                                   static_cast<cudaStream_t>(launch->stream));
}

void take(Plan &plan, const cublasLtMatmulHeuristicResult_t &result)
{
    plan.algo = result.algo;
    plan.workspace = result.workspaceSize;
}

uint64_t largest_workspace(int count, const Results &results)
{
    uint64_t bytes = 0;
    for (int i = 0; i < count; ++i) bytes = std::max<uint64_t>(bytes, results[i].workspaceSize);
    return bytes;
}

// Reserves a result for trials of a product that is added to its result: each trial would add once more.
yoke_status reserve_result(const PlanKey &key, Scratch &scratch, Request &request)
{
    const int64_t size =
        kernels::dtype_size(static_cast<yoke_dtype>(key.wide ? YOKE_F32 : key.dtype));
    const int64_t elements = (key.batch - 1) * key.step[2] + key.columns * key.leading[2];
    const yoke_status status = scratch.try_reserve(static_cast<uint64_t>(elements * size));
    request.d = scratch.data();
    return status;
}

// Times `count` algorithms and copies the fastest into results[0]; *tuned is true then. If memory for a workspace is
// missing, or no time is known, *tuned is false and the results stay. Returns the loss of the device, and failures of
// memory other than YOKE_E_OOM.
yoke_status try_all(const yoke_launch *launch, const CublasLt &lt, Request request,
                    const Plan &plan, int count, Results &results, bool *tuned)
{
    Scratch scratch(launch), result(launch);
    *tuned = false;
    yoke_status status = scratch.try_reserve(largest_workspace(count, results));
    if (!status && request.adds) status = reserve_result(plan.key, result, request);
    if (status == YOKE_E_OOM) {
        static std::atomic_flag is_told;
        if (!is_told.test_and_set())
            g_host->log(
                YOKE_LOG_WARN,
                "tuning a matrix product: there is no memory for a workspace; products that need more memory use cuBLASLt's first algorithm");
        return YOKE_OK;
    }
    if (status) return status;
    Stopwatch watch(launch, kTunedProduct);
    Plan tried = plan;
    yoke_status lost = YOKE_OK;
    const int fastest = fastest_of(watch, count, [&](int i) {
        if (lost) return false;
        take(tried, results[i]);
        const cublasStatus_t error = multiply(launch, lt, request, tried, scratch.as<void>());
        lost = cublaslt_pass_over(launch, error, "tuning a matrix product: cublasLtMatmul");
        return error == CUBLAS_STATUS_SUCCESS;
    });
    *tuned = !lost && fastest >= 0 && watch.works();
    if (*tuned) results[0] = results[fastest];
    return lost;
}

bool recall(const yoke_launch *launch, const CublasLt &lt, Plan &plan)
{
    cublasLtMatmulHeuristicResult_t result = {};
    if (!recall_winner(launch, lt, plan.key, &result.algo)) return false;
    const cublasStatus_t error = lt.call->cublasLtMatmulAlgoCheck(
        lt.handle, &plan.product, &plan.a, &plan.b, &plan.d, &plan.d, &result.algo, &result);
    cublaslt_log(
        *static_cast<const Device *>(launch->device), error,
        "an algorithm of YOKE_CUBLASLT_AUTOTUNE_FILE is not used: cublasLtMatmulAlgoCheck");
    if (error || result.workspaceSize > kWorkspace) return false;
    take(plan, result);
    plan.exists = true;
    return true;
}

// Looks for the reason that there is no algorithm. Returns YOKE_E_UNSUPPORTED for bfloat16 on a card before 8.0,
// because cuBLASLt has no such products there; else YOKE_OK.
yoke_status check_card(const yoke_launch *launch, const PlanKey &key)
{
    const Device &device = *static_cast<const Device *>(launch->device);
    const auto ask = driver().call.cuDeviceGetAttribute;
    int major = 0, minor = 0;
    if (key.dtype != YOKE_BF16 ||
        ask(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device.number) ||
        ask(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device.number) || major >= 8)
        return YOKE_OK;
    return fail(
        YOKE_E_UNSUPPORTED, 0,
        "%s: cuda:%d has compute capability %d.%d, on which cuBLASLt does not support products of bfloat16; use float16 or float32",
        op_name(launch->op), device.index, major, minor);
}

yoke_status make_plan(const yoke_launch *launch, CublasLt &lt, const Request &request,
                      Tuning tuning, Plan &plan)
{
    Steps steps(launch, lt);
    Results results;
    plan = {};
    describe(steps, request, plan);
    if (steps.status() || (tuning != Tuning::kOff && recall(launch, lt, plan)))
        return steps.status();
    bool tuned = tuning == Tuning::kNow;
    const int count = ask(steps, lt, plan, tuned ? kTuned : 1, results);
    if (steps.status()) return steps.status();
    if (count == 0) return check_card(launch, plan.key);
    if (tuned && count > 1)
        if (const yoke_status status = try_all(launch, lt, request, plan, count, results, &tuned))
            return status;
    plan.exists = true;
    plan.untuned = tuning == Tuning::kLater;
    take(plan, results[0]);
    if (tuned) keep_winner(launch, lt, plan);
    return YOKE_OK;
}

// Runs a product by a plan, with the plan's workspace. Returns the failure of memory or of cuBLASLt.
yoke_status run(const yoke_launch *launch, const CublasLt &lt, const Gemm &gemm,
                const Request &request, Plan &plan)
{
    Scratch scratch(launch);
    if (plan.workspace)
        if (const yoke_status status = scratch.reserve(plan.workspace)) return status;
    const Product &p = gemm.product;
    return cublaslt_check(launch, multiply(launch, lt, request, plan, scratch.as<void>()),
                          "cublasLtMatmul of %lld x (%lld x %lld by %lld x %lld)",
                          static_cast<long long>(p.batch), static_cast<long long>(p.m),
                          static_cast<long long>(p.k), static_cast<long long>(p.k),
                          static_cast<long long>(p.n));
}

// Makes a plan, puts it into the cache, and runs the product; *done is false if cuBLASLt has no algorithm. For
// products without a plan, and for plans that can be tuned now. The thread is relaxed until the product is started: a
// plan's first product loads code. While another library captures in a mode that forbids waits, cuBLASLt of CUDA 13.3
// fails when asked for algorithms.
yoke_status run_first(const yoke_launch *launch, CublasLt &lt, const Gemm &gemm,
                      const Request &request, Tuning tuning, bool *done)
{
    const Relaxed relaxed;
    Plan plan;
    if (const yoke_status status = make_plan(launch, lt, request, tuning, plan)) return status;
    lt.plans.put(plan);
    *done = plan.exists;
    if (!plan.exists) return YOKE_OK;
    const yoke_status status = run(launch, lt, gemm, request, plan);
    if (!status) lt.is_tried = true;
    return status;
}

yoke_status multiply_part(const yoke_launch *launch, const Gemm &gemm, bool *done)
{
    CublasLt *lt = nullptr;
    *done = false;
    if (const yoke_status status = cublaslt_of(launch, &lt)) return status;
    if (gemm.activation != Activation::kNone && !fuses(gemm.activation)) return YOKE_OK;
    const Request request(launch, gemm);
    Plan plan;
    if (!lt->plans.find(request.key, &plan))
        return run_first(launch, *lt, gemm, request, tuning_of(launch), done);
    if (plan.untuned && tuning_of(launch) == Tuning::kNow)
        return run_first(launch, *lt, gemm, request, Tuning::kNow, done);
    *done = plan.exists;
    if (!plan.exists) return YOKE_OK;
    Steps steps(launch, *lt);
    set_pointers(steps, request, plan);
    return steps.status() ? steps.status() : run(launch, *lt, gemm, request, plan);
}

}  // namespace

// Runs a small product, if the device has run none. The product is on the legacy stream, because only this stream's
// scratch is known to the core before the capture begins. The legacy stream and streams without cudaStreamNonBlocking
// wait for each other; Yoke's and PyTorch's streams are non-blocking. While another library captures on a blocking
// stream, CUDA refuses all work for the legacy stream with cudaErrorStreamCaptureImplicit, in every mode of the
// thread. Then a device's first capture fails. A product before this capture avoids the failure.
yoke_status cublaslt_prepare(Device &device)
{
    constexpr int64_t kSide = 16, kBytes = kSide * kSide * sizeof(float);
    yoke_launch launch{};
    launch.op = YOKE_OP_MATMUL;
    launch.device = &device;
    CublasLt *lt = nullptr;
    if (!cublaslt_is_found()) return YOKE_OK;
    if (const yoke_status status = cublaslt_of(&launch, &lt)) return status;
    if (lt->is_tried) return YOKE_OK;
    Scratch room(&launch);  // any numbers will do for the product
    if (const yoke_status status = room.reserve(3 * kBytes)) return status;
    const auto matrix = [&](int i) { return Matrix{room.as<char>() + i * kBytes, 0, kSide, 1}; };
    Gemm gemm;
    gemm.product = {YOKE_F32, 1, kSide, kSide, kSide, matrix(0), matrix(1), matrix(2), nullptr};
    bool done = false;
    return run_first(&launch, *lt, gemm, Request(&launch, gemm), Tuning::kOff, &done);
}

yoke_status cublaslt_multiply(const yoke_launch *launch, const Gemm &gemm, bool *done)
{
    const int64_t batch = gemm.product.batch;
    if (batch <= kMostBatches) [[likely]]
        return multiply_part(launch, gemm, done);
    *done = true;
    for (int64_t first = 0; first < batch && *done; first += kPart) {
        const Gemm part = part_of(gemm, first, std::min(kPart, batch - first));
        if (const yoke_status status = multiply_part(launch, part, done)) return status;
    }
    return YOKE_OK;
}

}  // namespace yoke::cuda
