/* libyoke under dlopen: the table, twice, from a thread, after a fork, and a process that just ends. */
#define _POSIX_C_SOURCE 200809L
#include "check.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

typedef const yoke_api *(*get_api_fn)(uint32_t, uint32_t);

/* Returns the table of the library that dlopen finds. POSIX gives a function as a void *. */
static const yoke_api *load(void **library)
{
    get_api_fn get_api = NULL;
    *library = dlopen("libyoke.so.0", RTLD_NOW | RTLD_LOCAL);
    CHECK(*library != NULL);
    if (*library) *(void **)&get_api = dlsym(*library, "yoke_get_api");
    CHECK(get_api != NULL);
    return get_api ? get_api(YOKE_VERSION_MAJOR, YOKE_VERSION_MINOR) : NULL;
}

static void the_table_holds_every_function(void)
{
    const yoke_api *api = yoke_get_api(YOKE_VERSION_MAJOR, YOKE_VERSION_MINOR);
    const char *bytes = (const char *)api;
    size_t at;
    CHECK(api != NULL && api->struct_size == sizeof(yoke_api));
    CHECK(api->major == YOKE_VERSION_MAJOR && api->minor >= YOKE_VERSION_MINOR && !api->reserved);
    for (at = 4 * sizeof(uint32_t); at < api->struct_size; at += sizeof(void (*)(void))) {
        void (*function)(void) = NULL;
        memcpy(&function, bytes + at, sizeof function);
        CHECK(function != NULL);
    }
    CHECK(api->version == yoke_version && api->softmax == yoke_softmax);
    CHECK(api->tensor_release == yoke_tensor_release && api->add_scalar_ == yoke_add_scalar_);
}

static void another_version_is_refused_with_both_numbers(void)
{
    CHECK(yoke_get_api(YOKE_VERSION_MAJOR + 1, 0) == NULL);
    CHECK(yoke_last_error()->status == YOKE_E_UNSUPPORTED);
    CHECK(yoke_get_api(YOKE_VERSION_MAJOR, YOKE_VERSION_MINOR + 1) == NULL);
    CHECK(strstr(yoke_last_error()->message, "newer") != NULL);
    CHECK(yoke_get_api(YOKE_VERSION_MAJOR, 0) ==
          yoke_get_api(YOKE_VERSION_MAJOR, YOKE_VERSION_MINOR));
}

static void a_second_dlopen_gives_the_same_library(void)
{
    void *first = NULL, *second = NULL;
    const yoke_api *api = load(&first), *again = load(&second);
    CHECK(api != NULL && api == again);
    dlclose(first);
    dlclose(second);
    CHECK(strcmp(api->version(), yoke_version()) == 0); /* still there */
}

static void *work(void *result)
{
    const int64_t shape[1] = {4};
    void *library = NULL;
    const yoke_api *api = load(&library);
    yoke_device *cpu = NULL;
    yoke_tensor *x = NULL, *y = NULL;
    double value = 0;
    if (!api || api->device_open("cpu", &cpu) || api->ones(shape, 1, YOKE_F64, cpu, &x) ||
        api->sum(x, NULL, 0, 0, YOKE_NONE, &y) || api->tensor_item_f64(y, &value))
        value = -1;
    *(double *)result = value;
    if (api) {
        api->tensor_release(x);
        api->tensor_release(y);
        api->device_release(cpu);
    }
    dlclose(library);
    return NULL;
}

static void a_thread_may_load_use_and_leave_it(void)
{
    int round;
    for (round = 0; round < 3; ++round) {
        pthread_t thread;
        double value = 0;
        CHECK(pthread_create(&thread, NULL, work, &value) == 0);
        pthread_join(thread, NULL);
        CHECK(value == 4);
    }
}

/* Runs `body` in a child made by fork; its result is the child's exit status. */
static int in_child(int (*body)(void))
{
    int status = -1;
    pid_t child;
    fflush(stdout);
    child = fork();
    if (child == 0) _exit(body());
    CHECK(child > 0);
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int32_t threads_of_parent;

static int sum_in_child(void)
{
    double value = 0;
    work(&value);
    return value == 4 && yoke_get_num_threads() == threads_of_parent ? 0 : 1;
}

static void cpu_work_goes_on_in_a_forked_child(void)
{
    double value = 0;
    work(&value); /* the parent has used the library, with all its threads */
    CHECK(value == 4);
    threads_of_parent = yoke_get_num_threads();
    CHECK(in_child(sum_in_child) == 0);
    work(&value);
    CHECK(value == 4);
}

static int leave_tensors_alive(void)
{
    const int64_t shape[2] = {64, 64};
    yoke_tensor *x = NULL, *y = NULL;
    if (yoke_randn(shape, 2, YOKE_F32, NULL, NULL, &x)) return 1;
    if (yoke_tensor_set_requires_grad(x, 1) || yoke_exp(x, &y)) return 1;
    exit(0); /* through atexit and static destructors, unlike _exit */
}

static void a_process_may_end_with_live_tensors(void)
{
    CHECK(in_child(leave_tensors_alive) == 0);
}

static void shutdown_may_be_followed_by_more_work(void)
{
    double value = 0;
    OK(yoke_shutdown(5.0));
    FAILS(yoke_shutdown(-1.0), YOKE_E_VALUE, "'timeout_s' is -1");
    work(&value);
    CHECK(value == 4);
    OK(yoke_shutdown(0.5));
}

int main(void)
{
    RUN(the_table_holds_every_function);
    RUN(another_version_is_refused_with_both_numbers);
    RUN(a_second_dlopen_gives_the_same_library);
    RUN(a_thread_may_load_use_and_leave_it);
    RUN(cpu_work_goes_on_in_a_forked_child);
    RUN(a_process_may_end_with_live_tensors);
    RUN(shutdown_may_be_followed_by_more_work);
    return report();
}
