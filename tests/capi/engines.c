/* Settings of cuDNN from C: settings of the process with reasons for refusals, and the reason for a missing cuDNN. Also
 * deterministic algorithms. */
#include "check.h"

static int64_t get(int32_t setting)
{
    int64_t value = -1;
    OK(yoke_cudnn_get(setting, &value));
    return value;
}

static void each_has_a_first_value_and_keeps_what_it_is_given(void)
{
    static const int64_t first[YOKE_CUDNN_SETTING_COUNT] = {1, 0, 10, 0, 256 << 20},
                         given[YOKE_CUDNN_SETTING_COUNT] = {-5, 7, 2147483647, 3, INT64_MAX},
                         kept[YOKE_CUDNN_SETTING_COUNT] = {1, 1, 2147483647, 1, INT64_MAX};
    for (int32_t i = 0; i < YOKE_CUDNN_SETTING_COUNT; ++i) CHECK(get(i) == first[i]);
    for (int32_t i = 0; i < YOKE_CUDNN_SETTING_COUNT; ++i) OK(yoke_cudnn_set(i, given[i]));
    for (int32_t i = 0; i < YOKE_CUDNN_SETTING_COUNT; ++i) CHECK(get(i) == kept[i]);
    for (int32_t i = 0; i < YOKE_CUDNN_SETTING_COUNT; ++i) OK(yoke_cudnn_set(i, first[i]));
}

static void what_is_none_is_refused(void)
{
    int64_t value = 3;
    FAILS(yoke_cudnn_set(YOKE_CUDNN_SETTING_COUNT, 1), YOKE_E_VALUE, "'setting' is 5");
    FAILS(yoke_cudnn_set(-1, 1), YOKE_E_VALUE, "'setting' is -1");
    FAILS(yoke_cudnn_get(5, &value), YOKE_E_VALUE, "'setting' is 5");
    FAILS(yoke_cudnn_get(0, NULL), YOKE_E_VALUE, "'value'");
    FAILS(yoke_cudnn_set(YOKE_CUDNN_WORKSPACE_LIMIT, -1), YOKE_E_VALUE, "workspace_limit is -1");
    FAILS(yoke_cudnn_set(YOKE_CUDNN_BENCHMARK_LIMIT, 2147483648), YOKE_E_VALUE,
          "benchmark_limit is 2147483648");
    CHECK(value == 3);
}

/* This case concerns machines without a CUDA module beside the library, or without a device. */
static void where_it_is_not_there_it_says_why(void)
{
    if (yoke_is_available("cuda") == 1) return;
    CHECK(yoke_cudnn_version() == 0);
    CHECK(strcmp(yoke_cudnn_why_unavailable(), yoke_why_unavailable("cuda")) == 0);
    OK(yoke_cudnn_set(YOKE_CUDNN_ENABLED, 0));
    CHECK(yoke_cudnn_version() == 0);
    CHECK(strstr(yoke_cudnn_why_unavailable(), "switched off") != NULL);
    OK(yoke_cudnn_set(YOKE_CUDNN_ENABLED, 1));
}

static void deterministic_algorithms_are_asked_for_and_the_settings_of_cudnn_stay(void)
{
    CHECK(yoke_are_deterministic_algorithms_enabled() == 0);
    OK(yoke_use_deterministic_algorithms(-5));
    CHECK(yoke_are_deterministic_algorithms_enabled() == 1);
    CHECK(get(YOKE_CUDNN_DETERMINISTIC) == 0);
    OK(yoke_use_deterministic_algorithms(0));
    CHECK(yoke_are_deterministic_algorithms_enabled() == 0);
}

static int32_t dtype_of_sum(yoke_dtype alone, yoke_dtype several)
{
    const int64_t two[] = {2};
    yoke_tensor *x, *y, *sum;
    OK(yoke_ones(NULL, 0, alone, NULL, &x));
    OK(yoke_ones(two, 1, several, NULL, &y));
    OK(yoke_add(x, y, &sum));
    const int32_t dtype = yoke_tensor_dtype(sum);
    yoke_tensor_release(x), yoke_tensor_release(y), yoke_tensor_release(sum);
    return dtype;
}

static void a_tensor_without_axes_is_weak_if_asked_for(void)
{
    CHECK(dtype_of_sum(YOKE_F32, YOKE_F16) == YOKE_F32);
    OK(yoke_set_weak_zero_dim(1));
    CHECK(dtype_of_sum(YOKE_F32, YOKE_F16) == YOKE_F16);
    CHECK(dtype_of_sum(YOKE_I64, YOKE_U8) == YOKE_U8);
    CHECK(dtype_of_sum(YOKE_F64, YOKE_I32) == YOKE_F64);
    CHECK(dtype_of_sum(YOKE_U8, YOKE_BOOL) == YOKE_U8);
    OK(yoke_set_weak_zero_dim(0));
    CHECK(dtype_of_sum(YOKE_F32, YOKE_F16) == YOKE_F32);
}

static void the_default_dtype_is_that_of_floats_without_a_dtype(void)
{
    const int64_t two[] = {2};
    yoke_tensor *x;
    CHECK(yoke_get_default_dtype() == YOKE_F32);
    FAILS(yoke_set_default_dtype(YOKE_I64), YOKE_E_TYPE, "'dtype' is int64");
    FAILS(yoke_set_default_dtype(999), YOKE_E_TYPE, "no dtype");
    OK(yoke_set_default_dtype(YOKE_F64));
    CHECK(yoke_get_default_dtype() == YOKE_F64);
    OK(yoke_zeros(two, 1, YOKE_NONE, NULL, &x));
    CHECK(yoke_tensor_dtype(x) == YOKE_F64);
    yoke_tensor_release(x);
    OK(yoke_set_default_dtype(YOKE_F32));
}

int main(void)
{
    RUN(each_has_a_first_value_and_keeps_what_it_is_given);
    RUN(what_is_none_is_refused);
    RUN(where_it_is_not_there_it_says_why);
    RUN(deterministic_algorithms_are_asked_for_and_the_settings_of_cudnn_stay);
    RUN(a_tensor_without_axes_is_weak_if_asked_for);
    RUN(the_default_dtype_is_that_of_floats_without_a_dtype);
    return report();
}
