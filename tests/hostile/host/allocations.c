/*
 * Each allocation of host memory fails once, over opening, selection, doctor, an op, backward, a step and a capture.
 * Each time, the call returns a status, the host program lives, no memory leaks, and the next call works.
 * fail_alloc.c makes the allocations fail.
 *
 * First uses are tried in a process for each allocation. An unnecessary allocation, such as memory kept for the next
 * call, may fail without an error.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/capi/check.h"
#include "tests/hostile/host/budget_steps.h"
#include "tests/hostile/host/fail_alloc.h"

/* ---- work -------------------------------------------------------------------------------------------------------- */

static yoke_status open_device(void)
{
    yoke_status status = YOKE_OK;
    yoke_device *device = NULL, *opened = NULL;
    int32_t count = 0;
    TRY(yoke_device_open("auto", &device));
    TRY(yoke_select("cpu", 1, &opened, 1, &count));
    yoke_device_release(device);
    yoke_device_release(opened);
    return status;
}

static yoke_status explain_choice(void)
{
    yoke_status status = YOKE_OK;
    yoke_explanation *explanation = NULL;
    TRY(yoke_explain("auto:min_free=1MiB", &explanation));
    yoke_explanation_release(explanation);
    return status;
}

static yoke_status take_inventory(void)
{
    yoke_status status = YOKE_OK;
    yoke_inventory *inventory = NULL;
    const char *text = NULL;
    TRY(yoke_inventory_take(&inventory));
    if (!status) TRY(yoke_inventory_fact(inventory, "driver", &text));
    yoke_inventory_release(inventory);
    return status;
}

static yoke_status ask_doctor(void)
{
    yoke_status status = YOKE_OK;
    yoke_report *report = NULL;
    TRY(yoke_doctor(0, 20, &report));
    yoke_report_release(report);
    return status;
}

static yoke_status run_ops(void)
{
    yoke_status status = YOKE_OK;
    yoke_tensor *made[6] = {NULL};
    yoke_tensor *list[2] = {NULL};
    double value = 0;
    TRY(yoke_add(g_x, g_x, &made[0]));
    TRY(yoke_matmul(g_x, g_x, &made[1]));
    TRY(yoke_softmax(g_x, -1, YOKE_NONE, &made[2]));
    list[0] = list[1] = g_x;
    TRY(yoke_cat(list, 2, 0, &made[3]));
    TRY(yoke_tensor_to(g_x, NULL, YOKE_BF16, &made[4]));
    TRY(yoke_mean(g_x, NULL, 0, 0, YOKE_NONE, &made[5]));
    if (!status) TRY(yoke_tensor_item_f64(made[5], &value));
    if (!status && value != 1.0) abort();
    for (int i = 0; i < 6; ++i) yoke_tensor_release(made[i]);
    return status;
}

/* Forward, and both gradients. */
static yoke_status convolve(void)
{
    static const int64_t kPixels[] = {2, 16, 12, 12}, kWindow[] = {16, 16, 3, 3};
    yoke_status status = YOKE_OK;
    yoke_tensor *x = NULL, *w = NULL, *y = NULL, *loss = NULL;
    TRY(yoke_ones(kPixels, 4, YOKE_F32, NULL, &x));
    TRY(yoke_ones(kWindow, 4, YOKE_F32, NULL, &w));
    TRY(yoke_tensor_set_requires_grad(x, 1));
    TRY(yoke_tensor_set_requires_grad(w, 1));
    TRY(yoke_conv2d(x, w, NULL, NULL, 0, NULL, 0, NULL, 0, 1, &y));
    TRY(yoke_sum(y, NULL, 0, 0, YOKE_NONE, &loss));
    TRY(yoke_backward(loss, NULL, 0));
    yoke_tensor_release(loss);
    yoke_tensor_release(y);
    yoke_tensor_release(w);
    yoke_tensor_release(x);
    return status;
}

/* Runs in a fresh thread for each work, as the thread's first call. */
static yoke_status train(int with_step, int with_autocast)
{
    yoke_status status = YOKE_OK;
    yoke_tensor *w = NULL, *y = NULL, *z = NULL, *loss = NULL;
    yoke_optimizer *optimizer = NULL;
    yoke_autocast *region = NULL;
    yoke_adam_options options = {
        .struct_size = sizeof options, .lr = 0.1, .beta1 = 0.9, .beta2 = 0.99, .eps = 1e-8};
    TRY(yoke_ones(kShape, 2, YOKE_F32, NULL, &w));
    TRY(yoke_tensor_set_requires_grad(w, 1));
    if (with_autocast) TRY(yoke_autocast_create(1, YOKE_BF16, 1, &region));
    if (region) yoke_autocast_swap(region);
    TRY(yoke_matmul(g_x, w, &y));
    TRY(yoke_relu(y, &z));
    TRY(yoke_sum(z, NULL, 0, 0, YOKE_NONE, &loss));
    if (region) yoke_autocast_swap(NULL);
    TRY(yoke_backward(loss, NULL, 0));
    if (with_step) {
        TRY(yoke_adam_create(&options, &optimizer));
        TRY(yoke_adam_add_group(optimizer, &w, 1, NULL));
        TRY(yoke_optimizer_step(optimizer));
        TRY(yoke_optimizer_step(optimizer));
    }
    yoke_optimizer_release(optimizer);
    yoke_autocast_release(region);
    yoke_tensor_release(loss);
    yoke_tensor_release(z);
    yoke_tensor_release(y);
    yoke_tensor_release(w);
    return status;
}
static yoke_status run_backward(void)
{
    return train(0, 0);
}
static yoke_status run_autocast(void)
{
    return train(0, 1);
}
static yoke_status take_step(void)
{
    return train(1, 0);
}

/* Nests scopes, with held tensors, writes in place, and casts for autocast inside. */
static yoke_status recompute(void)
{
    yoke_status status = YOKE_OK;
    const yoke_checkpoint_options matmul = {.struct_size = sizeof matmul, .policy = "matmul"};
    yoke_tensor *w = NULL, *y = NULL, *z = NULL, *u = NULL, *loss = NULL, *grad = NULL, *sum = NULL;
    yoke_checkpoint *outer = NULL, *inner = NULL;
    yoke_autocast *region = NULL;
    double value = 0;
    TRY(yoke_ones(kShape, 2, YOKE_F32, NULL, &w));
    TRY(yoke_tensor_set_requires_grad(w, 1));
    TRY(yoke_autocast_create(1, YOKE_BF16, 1, &region));
    if (region) yoke_autocast_swap(region);
    TRY(yoke_checkpoint_begin(NULL, &outer));
    TRY(yoke_matmul(g_x, w, &y));
    TRY(yoke_checkpoint_begin(&matmul, &inner));
    TRY(yoke_mul_(y, y));
    TRY(yoke_relu(y, &z));
    TRY(yoke_matmul(z, w, &u));
    if (inner) TRY(yoke_checkpoint_end(inner));
    TRY(yoke_sum(u, NULL, 0, 0, YOKE_F32, &loss));
    if (outer && !status) TRY(yoke_checkpoint_end(outer));
    yoke_checkpoint_release(inner);
    yoke_checkpoint_release(outer);
    if (yoke_checkpoint_current()) abort();
    yoke_autocast_swap(NULL);
    yoke_tensor_release(y);
    yoke_tensor_release(z);
    yoke_tensor_release(u);
    TRY(yoke_backward(loss, NULL, 0));
    TRY(yoke_tensor_grad(w, &grad));
    TRY(yoke_sum(grad, NULL, 0, 0, YOKE_NONE, &sum));
    if (!status) TRY(yoke_tensor_item_f64(sum, &value));
    /* With y = 48: through z, 48 * y^2 a weight, and through y twice as much; there are 48^2 weights. */
    if (!status && value != 3.0 * 48 * 48 * 48 * 48 * 48) abort();
    yoke_tensor_release(sum);
    yoke_tensor_release(grad);
    yoke_tensor_release(loss);
    yoke_tensor_release(w);
    yoke_autocast_release(region);
    return status;
}

static yoke_status capture(void)
{
    yoke_status status = YOKE_OK;
    yoke_graph *graph = NULL;
    yoke_tensor *y = NULL, *z = NULL;
    TRY(yoke_graph_create(NULL, &graph));
    TRY(yoke_graph_begin(graph));
    for (int i = 0; i < 3 && !status; ++i) {
        TRY(yoke_matmul(g_x, g_weight, &y));
        TRY(yoke_sin(y, &z));
        yoke_tensor_release(y);
        yoke_tensor_release(z);
        y = z = NULL;
    }
    TRY(yoke_graph_end(graph));
    TRY(yoke_graph_replay(graph));
    yoke_tensor_release(y);
    yoke_graph_abort(graph);
    yoke_graph_release(graph);
    return status;
}

/* Works, by name. The last works make thousands of allocations, of which only some are refused. */
static const struct {
    const char *name;
    yoke_status (*run)(void);
    long step, soak_step;
} kWorks[] = {
    {"open_device", open_device, 1, 1},
    {"run_ops", run_ops, 1, 1},
    {"convolve", convolve, 1, 1},
    {"run_backward", run_backward, 1, 1},
    {"run_autocast", run_autocast, 1, 1},
    {"take_step", take_step, 1, 1},
    {"capture", capture, 1, 1},
    {"recompute", recompute, 1, 1},
    {"explain_choice", explain_choice, 1, 1},
    {"take_inventory", take_inventory, 1, 1},
    {"budget_steps", budget_steps, 37, 1},
    {"ask_doctor", ask_doctor, 307, 7},
};
enum { kWorkCount = sizeof kWorks / sizeof kWorks[0] };

/* ---- with the n-th allocation refused ---------------------------------------------------------------------------- */

static int is_right(yoke_status status, int failed)
{
    const yoke_error *error = yoke_last_error();
    if (status == YOKE_OK) return 1;
    return failed && status == YOKE_E_OOM && error->status == status &&
           strstr(error->message, "memory");
}

static void say(const char *work, long n, const char *what)
{
    ++checks_failed;
    printf("%s, allocation %ld: %s\n", work, n, what);
}

static int open_files(void)
{
    int count = 0;
    for (int file = 0; file < 200; ++file) count += fcntl(file, F_GETFD) >= 0;
    return count;
}

/* False when there is no n-th any more. */
static int fail_one(int work, long n)
{
    const char *name = kWorks[work].name;
    int64_t bytes_before = 0, bytes = 0;
    long had = 0, last = 0;
    int failed = 0;
    const int files = open_files();
    /* Memory left by a first failure for the next use is no leak; memory left by each failure is a leak. */
    for (int turn = 0; turn < 3; ++turn) {
        const int64_t live = yoke_live_tensor_count();
        OK(yoke_memory_allocated(NULL, &bytes_before));
        had = fail_alloc_blocks();
        last = fail_alloc_number();
        fail_alloc_arm(n);
        const yoke_status status = kWorks[work].run();
        failed = fail_alloc_disarm();
        if (!is_right(status, failed)) {
            say(name, n, yoke_status_name(status));
            printf("  %s\n", yoke_last_error()->message);
        }
        OK(yoke_memory_allocated(NULL, &bytes));
        if (yoke_live_tensor_count() != live) say(name, n, "a tensor stays");
        if (bytes != bytes_before) say(name, n, "memory of the device stays");
        fail_alloc_arm(0);
        if (kWorks[work].run()) say(name, n, yoke_last_error()->message);
        fail_alloc_disarm();
    }
    if (open_files() != files) say(name, n, "a file stays open");
    if (fail_alloc_blocks() > had) {
        say(name, n, "memory of the host stays");
        fflush(stdout);
        fail_alloc_tell(last);
    }
    return failed;
}

static void fail_each(int work)
{
    fail_alloc_arm(0);
    if (kWorks[work].run()) say(kWorks[work].name, 0, yoke_last_error()->message);
    fail_alloc_disarm();
    const long step = getenv("YOKE_SOAK") ? kWorks[work].soak_step : kWorks[work].step;
    long n = 1;
    while (fail_one(work, n)) n += step;
    printf("%s: %ld allocations\n", kWorks[work].name, n - 1);
}

/* ---- in a process that uses the library for the first time ------------------------------------------------------- */

static void make_inputs(void)
{
    OK(yoke_ones(kShape, 2, YOKE_F32, NULL, &g_x));
    OK(yoke_ones(kShape, 2, YOKE_F32, NULL, &g_weight));
}

static void drop_inputs(void)
{
    yoke_tensor_release(g_x);
    yoke_tensor_release(g_weight);
}

enum { kNoMore = 42 };

static void begin_short_of_memory(int work, long n)
{
    checks_failed = 0;
    alarm(60);
    fail_alloc_arm(n);
    yoke_status status = YOKE_OK;
    TRY(yoke_ones(kShape, 2, YOKE_F32, NULL, &g_x));
    TRY(yoke_ones(kShape, 2, YOKE_F32, NULL, &g_weight));
    if (!status) status = kWorks[work].run();
    const int failed = fail_alloc_disarm();
    if (!is_right(status, failed)) {
        say(kWorks[work].name, n, yoke_status_name(status));
        printf("  at first: %s\n", yoke_last_error()->message);
    }
    drop_inputs();
    make_inputs();
    OK(kWorks[work].run());
    OK(run_ops());
    drop_inputs();
    fflush(stdout);
    _exit(checks_failed ? 1 : failed ? 0 : kNoMore);
}

static void fail_each_at_first(int work)
{
    int status = 0;
    long n = 0;
    do {
        ++n;
        fflush(stdout);
        const pid_t child = fork();
        if (child == 0) begin_short_of_memory(work, n);
        if (child < 0 || waitpid(child, &status, 0) != child) abort();
        if (WIFSIGNALED(status) || (WEXITSTATUS(status) && WEXITSTATUS(status) != kNoMore)) {
            say(kWorks[work].name, n, "at a first use");
            printf("  status %#x\n", (unsigned)status);
        }
    } while (!(WIFEXITED(status) && WEXITSTATUS(status) == kNoMore) && n < 20000);
    printf("%s at first: %ld allocations\n", kWorks[work].name, n - 1);
}

int main(void)
{
    const char *only = getenv("YOKE_TEST_WORK");
    const char *first = getenv("YOKE_TEST_FIRST"); /* a single run, for a debugger */
    for (int work = 0; work < kWorkCount; ++work)
        if (first && only && strcmp(only, kWorks[work].name) == 0)
            begin_short_of_memory(work, atol(first));
    for (int work = 0; work < 3; ++work)
        if (!only || strcmp(only, kWorks[work].name) == 0) fail_each_at_first(work);
    make_inputs();
    for (int work = 0; work < kWorkCount; ++work)
        if (!only || strcmp(only, kWorks[work].name) == 0) fail_each(work);
    drop_inputs();
    printf("%d passed, %d failed\n", checks_failed == 0, checks_failed != 0);
    return checks_failed != 0;
}
