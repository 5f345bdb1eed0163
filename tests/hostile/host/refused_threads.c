/*
 * A process that gets no threads, because of limits of users and containers, or too little address space. All work
 * runs in the calling thread, the log says so once, and the library neither ends the process nor prints.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/capi/check.h"

/* From here on clone() fails with `error`, in this thread and its like. */
static int refuse_threads(int error)
{
    struct sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error),
    };
    const struct sock_fprog filter = {sizeof program / sizeof program[0], program};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, 2, &filter, 0, 0);
}

static int g_lines;

static void count_lines(void *unused, int32_t level, const char *text)
{
    (void)unused;
    g_lines += level <= 1 && strstr(text, "cannot create more threads") != NULL;
}

static void multiply(int64_t size, yoke_dtype dtype)
{
    const int64_t shape[] = {size, size};
    yoke_tensor *x = NULL, *y = NULL, *mean = NULL;
    double value = 0;
    OK(yoke_ones(shape, 2, dtype, NULL, &x));
    OK(yoke_matmul(x, x, &y));
    OK(yoke_mean(y, NULL, 0, 0, YOKE_F32, &mean));
    OK(yoke_tensor_item_f64(mean, &value));
    CHECK(fabs(value - (double)size) <= (double)size / 128); /* a bfloat16 has 8 bits */
    yoke_tensor_release(mean);
    yoke_tensor_release(y);
    yoke_tensor_release(x);
}

static void train_a_step(void)
{
    const int64_t shape[] = {600, 600};
    yoke_tensor *w = NULL, *y = NULL, *loss = NULL, *grad = NULL;
    OK(yoke_randn(shape, 2, YOKE_F32, NULL, NULL, &w));
    OK(yoke_tensor_set_requires_grad(w, 1));
    OK(yoke_matmul(w, w, &y));
    OK(yoke_softmax(y, -1, YOKE_NONE, &grad));
    yoke_tensor_release(y);
    OK(yoke_sum(grad, NULL, 0, 0, YOKE_NONE, &loss));
    OK(yoke_backward(loss, NULL, 0));
    yoke_tensor_release(grad);
    yoke_tensor_release(loss);
    yoke_tensor_release(w);
}

static void everything_works_in_the_calling_thread(void)
{
    OK(yoke_log_set_callback(count_lines, NULL, NULL));
    OK(yoke_set_num_threads(4));
    for (int64_t size = 2; size < 900; size = size * 3 / 2 + 1) {
        multiply(size, YOKE_F32);
        multiply(size, YOKE_BF16);
    }
    train_a_step();
    CHECK(g_lines == 1);
    OK(yoke_shutdown(10));
}

static void an_inventory_says_what_is_missing(void)
{
    yoke_inventory *inventory = NULL;
    yoke_report *report = NULL;
    const char *problem = NULL;
    OK(yoke_inventory_take(&inventory));
    OK(yoke_inventory_fact(inventory, "nvml_problem", &problem));
    CHECK(strstr(problem, "cannot start a thread") != NULL);
    yoke_inventory_release(inventory);
    OK(yoke_doctor(0, 20, &report));
    CHECK(yoke_report_count(report) > 0);
    yoke_report_release(report);
}

/* Runs the tests in a child process, and checks the size of the child's standard error. */
static int run_refused(int error, int first_work)
{
    int told[2];
    char text[4096];
    if (pipe(told)) return 1;
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        dup2(told[1], STDERR_FILENO);
        close(told[0]);
        if (first_work) multiply(700, YOKE_F32); /* with a team, which is gone by shutdown */
        if (first_work && yoke_shutdown(10)) _exit(99);
        if (refuse_threads(error)) _exit(77);
        RUN(everything_works_in_the_calling_thread);
        RUN(an_inventory_says_what_is_missing);
        fflush(stdout);
        _exit(report());
    }
    close(told[1]);
    const ssize_t printed = read(told[0], text, sizeof text - 1);
    close(told[0]);
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child);
    if (printed > 0) printf("printed: %.*s\n", (int)printed, text);
    CHECK(printed == 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) return 77;
    if (status)
        printf("error %d, work first %d: status %#x\n", error, first_work, (unsigned)status);
    CHECK(status == 0);
    return 0;
}

static void a_process_without_threads_lives(void)
{
    const int errors[] = {EAGAIN, ENOMEM, EPERM};
    for (int i = 0; i < 3; ++i)
        for (int first_work = 0; first_work < 2; ++first_work)
            if (run_refused(errors[i], first_work) == 77)
                puts("skipped: this kernel filters no calls");
}

int main(void)
{
    a_process_without_threads_lives();
    printf("%d passed, %d failed\n", checks_failed == 0, checks_failed != 0);
    return checks_failed != 0;
}
