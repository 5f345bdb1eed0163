/*
 * check.h: macros for the C tests. A test is a void function with a sentence as its name; main() lists the tests with
 * RUN() and returns report(). A failed check prints its place and goes on.
 */
#ifndef YOKE_TESTS_CHECK_H
#define YOKE_TESTS_CHECK_H

#include <stdio.h>
#include <string.h>
#include <yoke/yoke.h>

static int checks_failed; /* in the test that runs */
static int tests_passed;
static int tests_failed;

#define CHECK(condition)                                                     \
    do {                                                                     \
        if (!(condition)) {                                                  \
            ++checks_failed;                                                 \
            printf("%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
        }                                                                    \
    } while (0)

/* The call succeeds. */
#define OK(call)                                                                              \
    do {                                                                                      \
        if ((call) != YOKE_OK) {                                                              \
            ++checks_failed;                                                                  \
            printf("%s:%d: %s: %s\n", __FILE__, __LINE__, #call, yoke_last_error()->message); \
        }                                                                                     \
    } while (0)

/* The call fails with this status, and its message holds this text. */
#define FAILS(call, status, text) check_failure((call), (status), (text), #call, __FILE__, __LINE__)

static inline void check_failure(yoke_status got, yoke_status wanted, const char *text,
                                 const char *call, const char *file, int line)
{
    const yoke_error *error = yoke_last_error();
    if (got != wanted || error->status != wanted || !strstr(error->message, text)) {
        ++checks_failed;
        printf("%s:%d: %s gave %s \"%s\", not %s with \"%s\"\n", file, line, call,
               yoke_status_name(got), got ? error->message : "", yoke_status_name(wanted), text);
    }
}

/* A test leaves no tensor behind. */
#define RUN(test)                                             \
    do {                                                      \
        const int64_t live_before = yoke_live_tensor_count(); \
        checks_failed = 0;                                    \
        test();                                               \
        CHECK(yoke_live_tensor_count() == live_before);       \
        if (checks_failed) printf("FAILED %s\n", #test);      \
        ++*(checks_failed ? &tests_failed : &tests_passed);   \
    } while (0)

static inline int report(void)
{
    printf("%d passed, %d failed\n", tests_passed, tests_failed);
    return tests_failed ? 1 : 0;
}

/* Returns a float32 tensor on the CPU with a copy of `values`. */
static inline yoke_tensor *floats(const float *values, const int64_t *shape, int64_t ndim)
{
    yoke_device *cpu = NULL;
    yoke_tensor *made = NULL;
    int64_t count = 1;
    for (int64_t i = 0; i < ndim; ++i) count *= shape[i];
    OK(yoke_device_open("cpu", &cpu));
    OK(yoke_tensor_from_data(values, count * 4, shape, ndim, YOKE_F32, cpu, &made));
    yoke_device_release(cpu);
    return made;
}

/* The tensor's values are these, row-major. */
static inline void check_floats(yoke_tensor *tensor, const float *wanted, int64_t count)
{
    float got[64];
    CHECK(yoke_tensor_numel(tensor) == count && count <= 64);
    OK(yoke_tensor_copy_to_host(tensor, got, count * 4));
    for (int64_t i = 0; i < count; ++i)
        if (got[i] != wanted[i]) {
            ++checks_failed;
            printf("element %lld is %g, not %g\n", (long long)i, (double)got[i], (double)wanted[i]);
        }
}

#endif /* YOKE_TESTS_CHECK_H */
