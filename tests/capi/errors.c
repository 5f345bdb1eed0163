/* Failures: the text of the last error, its thread, and its survival of later successes. */
#define _POSIX_C_SOURCE 200809L
#include "check.h"

#include <pthread.h>

static void a_thread_without_failure_has_an_empty_last_error(void)
{
    const yoke_error *error = yoke_last_error();
    CHECK(error->struct_size == sizeof(yoke_error));
    CHECK(error->status == YOKE_OK);
    CHECK(error->message[0] == '\0' && error->call[0] == '\0' && error->device[0] == '\0');
    CHECK(error->cause == NULL);
}

static void a_null_handle_is_named_with_its_call(void)
{
    yoke_tensor *out = (yoke_tensor *)&out;
    FAILS(yoke_softmax(NULL, -1, YOKE_NONE, &out), YOKE_E_VALUE, "softmax: argument 'x' is NULL");
    CHECK(out == NULL);
    CHECK(strcmp(yoke_last_error()->call, "yoke_softmax") == 0);
    FAILS(yoke_backward(NULL, NULL, 0), YOKE_E_VALUE, "backward: argument 'tensor' is NULL");
    FAILS(yoke_backward_note_refused(NULL, "why"), YOKE_E_VALUE, "argument 'tensor' is NULL");
    FAILS(yoke_device_open("cpu", NULL), YOKE_E_VALUE, "device_open: argument 'out' is NULL");
    FAILS(yoke_read_idx(NULL, &out), YOKE_E_VALUE, "read_idx: argument 'path' is NULL");
}

static void a_null_output_of_an_op_is_named(void)
{
    const int64_t shape[1] = {1};
    const float one[1] = {1.0f};
    yoke_tensor *x = floats(one, shape, 1);
    FAILS(yoke_relu(x, NULL), YOKE_E_VALUE, "relu: argument 'out' is NULL");
    yoke_tensor_release(x);
}

static void lists_are_checked_for_length_and_items(void)
{
    const int64_t shape[1] = {1};
    const float one[1] = {1.0f};
    yoke_tensor *x = floats(one, shape, 1);
    yoke_tensor *const items[2] = {x, NULL};
    yoke_tensor *out = NULL;
    FAILS(yoke_cat(items, 2, 0, &out), YOKE_E_VALUE, "item 1 of argument 'tensors' is NULL");
    FAILS(yoke_cat(items, -3, 0, &out), YOKE_E_VALUE, "argument 'tensors' is -3");
    FAILS(yoke_cat(NULL, 2, 0, &out), YOKE_E_VALUE, "'tensors' is NULL, but its count is 2");
    FAILS(yoke_reshape(x, NULL, 1, &out), YOKE_E_VALUE, "'shape' is NULL, but its count is 1");
    FAILS(yoke_reshape(x, shape, (int64_t)1 << 40, &out), YOKE_E_VALUE, "1099511627776");
    FAILS(yoke_grad(items, 2, NULL, items, 1, 0, &out), YOKE_E_VALUE,
          "item 1 of argument 'outputs'");
    yoke_tensor_release(x);
}

static void a_scalar_of_another_kind_is_refused(void)
{
    const int64_t shape[1] = {1};
    const float one[1] = {1.0f};
    yoke_tensor *x = floats(one, shape, 1), *out = NULL;
    yoke_scalar text = {YOKE_ARG_STRING, 0, {0}};
    FAILS(yoke_add_scalar(x, &text, &out), YOKE_E_TYPE, "argument 'y' has kind 7");
    FAILS(yoke_tensor_scalar(&text, YOKE_NONE, NULL, &out), YOKE_E_TYPE, "'value' has kind 7");
    FAILS(yoke_fill_(x, NULL), YOKE_E_VALUE, "fill_: argument 'value' is NULL");
    yoke_tensor_release(x);
}

static void success_does_not_touch_the_last_error(void)
{
    int32_t count = 0;
    yoke_device *device = NULL;
    FAILS(yoke_device_get("cpu", 7, &device), YOKE_E_INDEX, "7");
    OK(yoke_device_count("cpu", &count));
    CHECK(count == 1);
    CHECK(yoke_last_error()->status == YOKE_E_INDEX);
    CHECK(strstr(yoke_last_error()->message, "7") != NULL);
}

static void *look_at_own_error(void *clean)
{
    yoke_tensor *out = NULL;
    *(int *)clean = yoke_last_error()->status == YOKE_OK;
    yoke_neg(NULL, &out);
    return NULL;
}

static void a_failure_belongs_to_its_thread(void)
{
    pthread_t thread;
    int clean = 0;
    yoke_device *device = (yoke_device *)&clean;
    FAILS(yoke_device_open("abacus", &device), YOKE_E_VALUE, "abacus");
    CHECK(device == NULL); /* never an older handle */
    CHECK(pthread_create(&thread, NULL, look_at_own_error, &clean) == 0);
    pthread_join(thread, NULL);
    CHECK(clean);
    CHECK(strstr(yoke_last_error()->message, "abacus") != NULL);
}

static void getters_of_null_say_so_and_set_the_error(void)
{
    CHECK(yoke_tensor_ndim(NULL) == -1);
    CHECK(strcmp(yoke_last_error()->call, "yoke_tensor_ndim") == 0);
    CHECK(yoke_tensor_numel(NULL) == -1 && yoke_tensor_nbytes(NULL) == -1);
    CHECK(yoke_tensor_itemsize(NULL) == -1 && yoke_tensor_storage_nbytes(NULL) == -1);
    CHECK(yoke_tensor_shape(NULL) == NULL && yoke_tensor_strides(NULL) == NULL);
    CHECK(yoke_tensor_dtype(NULL) == YOKE_NONE && yoke_tensor_device(NULL) == NULL);
    CHECK(yoke_tensor_data(NULL) == NULL && yoke_tensor_storage_id(NULL) == 0);
    CHECK(yoke_tensor_is_contiguous(NULL) == -1 && yoke_shares_memory(NULL, NULL) == -1);
    CHECK(yoke_tensor_requires_grad(NULL) == -1 && yoke_tensor_is_leaf(NULL) == -1);
    CHECK(yoke_device_kind(NULL) == NULL && yoke_device_name(NULL) == NULL);
    CHECK(yoke_device_spec(NULL) == NULL && yoke_device_index(NULL) == -1);
    CHECK(yoke_optimizer_group_count(NULL) == -1);
    CHECK(yoke_last_error()->status == YOKE_E_VALUE);
    CHECK(strcmp(yoke_last_error()->call, "yoke_optimizer_group_count") == 0);
}

static void release_and_retain_take_null(void)
{
    yoke_tensor_release(NULL);
    yoke_device_release(NULL);
    yoke_optimizer_release(NULL);
    CHECK(yoke_tensor_retain(NULL) == NULL && yoke_device_retain(NULL) == NULL);
    CHECK(yoke_optimizer_retain(NULL) == NULL);
    OK(yoke_free(NULL));
}

/* After a failure a handle is NULL, even beside a missing output; a number is unchanged. */
static void outputs_of_a_failed_call_are_null_or_as_they_were(void)
{
    const float values[] = {2, 1};
    const int64_t shape[] = {2};
    yoke_device *cpu = NULL;
    yoke_tensor *x = floats(values, shape, 1), *left = x;
    int32_t number = 7;
    FAILS(yoke_sort(x, 0, 0, NULL, &left), YOKE_E_VALUE, "'out0' is NULL");
    CHECK(left == NULL);
    left = x;
    FAILS(yoke_topk(x, 1, 0, 1, 1, &left, NULL), YOKE_E_VALUE, "'out1' is NULL");
    CHECK(left == NULL);
    OK(yoke_device_open("cpu", &cpu));
    FAILS(yoke_device_supports(cpu, YOKE_F32, "speed", &number), YOKE_E_VALUE, "'speed'");
    FAILS(yoke_lease_holder(NULL, &number), YOKE_E_VALUE, "'uuid'");
    FAILS(yoke_select("cpu", -1, NULL, 0, &number), YOKE_E_VALUE, "'n' is -1");
    CHECK(number == 7);
    yoke_device_release(cpu);
    yoke_tensor_release(x);
}

static void every_status_has_a_short_name(void)
{
    CHECK(strcmp(yoke_status_name(YOKE_OK), "ok") == 0);
    CHECK(strcmp(yoke_status_name(YOKE_E_VALUE), "value") == 0);
    CHECK(strcmp(yoke_status_name(YOKE_E_DEVICE_LOST), "device_lost") == 0);
    CHECK(strcmp(yoke_status_name(YOKE_E_INTERNAL), "internal") == 0);
    CHECK(strcmp(yoke_status_name(-1), "unknown") == 0);
    CHECK(strcmp(yoke_status_name(YOKE_E_INTERNAL + 1), "unknown") == 0);
}

static void hear(void *user, int32_t level, const char *text)
{
    (void)user, (void)level, (void)text;
}

static void drop(void *user)
{
    ++*(int *)user;
}

static void callbacks_of_several_hosts_are_dropped_once_each(void)
{
    int own = 0, first = 0, second = 0;
    int64_t a = 0, b = 0;
    CHECK(yoke_log_set_callback(hear, &own, drop) == YOKE_OK);
    CHECK(yoke_log_add_callback(hear, &first, drop, &a) == YOKE_OK && a > 0);
    CHECK(yoke_log_add_callback(hear, &second, drop, &b) == YOKE_OK && b > a);
    FAILS(yoke_log_add_callback(NULL, &first, drop, &a), YOKE_E_VALUE, "argument 'fn' is NULL");
    CHECK(a < b && first == 0); /* a failure leaves a number as it was */
    FAILS(yoke_log_add_callback(hear, &first, drop, NULL), YOKE_E_VALUE, "argument 'id' is NULL");
    FAILS(yoke_log_remove_callback(0), YOKE_E_VALUE, "argument 'id' is 0");
    FAILS(yoke_log_remove_callback(INT64_MIN), YOKE_E_VALUE, "argument 'id' is");
    CHECK(yoke_shutdown(10) == YOKE_OK);
    CHECK(own == 1 && first == 0 && second == 0); /* the host program's own goes with a shutdown */
    CHECK(yoke_log_remove_callback(b - 1) == YOKE_OK && first == 1);
    CHECK(yoke_log_remove_callback(b) == YOKE_OK && second == 1 && own == 1);
    FAILS(yoke_log_remove_callback(b), YOKE_E_VALUE, "argument 'id' is");
}

static void a_wrong_word_finds_the_one_that_was_meant(void)
{
    const char *const words[] = {"x", "axis", "keepdim", "dtype"};
    CHECK(!strcmp(yoke_meant_word("dim", words, 4), "axis"));
    CHECK(!strcmp(yoke_meant_word("keepdims", words, 4), "keepdim"));
    CHECK(!strcmp(yoke_meant_word("dtpe", words, 4), "dtype"));
    CHECK(yoke_meant_word("colour", words, 4) == NULL && yoke_meant_word("dim", words, 1) == NULL);
    const char *layer[] = {"in_features", "out_features", "bias"};
    CHECK(!strcmp(yoke_meant_word("out", layer, 3), "out_features"));
    CHECK(!strcmp(yoke_meant_word("bia", layer, 3), "bias") &&
          yoke_meant_word("ou", layer, 3) == NULL);
    CHECK(yoke_meant_word("dim", NULL, 0) == NULL && yoke_meant_word(NULL, words, 4) == NULL);
    CHECK(!strncmp(yoke_word_advice("weights_only"), "leave it out; ", 14));
    CHECK(yoke_word_advice("dim") == NULL && yoke_word_advice(NULL) == NULL);
}

static void a_bare_index_is_never_the_cpu(void)
{
    yoke_device *device = NULL;
    if (yoke_is_available(NULL)) {
        OK(yoke_accelerator_get(0, &device));
        CHECK(strcmp(yoke_device_kind(device), "cpu"));
        yoke_device_release(device);
        FAILS(yoke_accelerator_get(1000, &device), YOKE_E_INDEX, "1000");
    } else {
        FAILS(yoke_accelerator_get(0, &device), YOKE_E_UNAVAILABLE, "no accelerator");
    }
    CHECK(device == NULL);
}

int main(void)
{
    RUN(a_thread_without_failure_has_an_empty_last_error);
    RUN(a_null_handle_is_named_with_its_call);
    RUN(a_null_output_of_an_op_is_named);
    RUN(lists_are_checked_for_length_and_items);
    RUN(a_scalar_of_another_kind_is_refused);
    RUN(success_does_not_touch_the_last_error);
    RUN(a_failure_belongs_to_its_thread);
    RUN(getters_of_null_say_so_and_set_the_error);
    RUN(release_and_retain_take_null);
    RUN(outputs_of_a_failed_call_are_null_or_as_they_were);
    RUN(every_status_has_a_short_name);
    RUN(callbacks_of_several_hosts_are_dropped_once_each);
    RUN(a_wrong_word_finds_the_one_that_was_meant);
    RUN(a_bare_index_is_never_the_cpu);
    return report();
}
