/* The checking mode: an invalid handle is an error with the name of the call that released the handle. */
#include "check.h"

#include <stdlib.h>

static char logged[4096];

static void keep_log(void *user, int32_t level, const char *message)
{
    (void)user;
    if (level == YOKE_LOG_ERROR) snprintf(logged, sizeof logged, "%s", message);
}

static yoke_tensor *pair(void)
{
    const float values[2] = {1, 2};
    const int64_t shape[1] = {2};
    return floats(values, shape, 1);
}

static void a_released_tensor_is_told_with_the_call_that_released_it(void)
{
    yoke_tensor *x = pair(), *y = pair(), *out = x;
    yoke_tensor_release(x);
    logged[0] = '\0';
    FAILS(yoke_add(y, x, &out), YOKE_E_CLOSED, "add: argument 'y' (0x");
    CHECK(strstr(yoke_last_error()->message, "the tensor [2] float32 on cpu"));
    CHECK(strstr(yoke_last_error()->message, "yoke_tensor_release released its last reference"));
    CHECK(strcmp(logged, yoke_last_error()->message) == 0);
    CHECK(out == NULL);
    CHECK(yoke_tensor_ndim(x) == -1);
    FAILS(yoke_last_error()->status, YOKE_E_CLOSED, "tensor_ndim: argument 'tensor'");
    yoke_tensor_release(y);
}

static void a_second_release_takes_nobodys_reference(void)
{
    yoke_tensor *x = pair(), *view = NULL;
    const int64_t shape[2] = {1, 2};
    OK(yoke_view(x, shape, 2, &view));
    CHECK(yoke_tensor_retain(x) == x);
    yoke_tensor_release(x);
    yoke_tensor_release(x);
    logged[0] = '\0';
    yoke_tensor_release(x);
    CHECK(strstr(logged, "tensor_release: argument 'tensor' (0x"));
    CHECK(yoke_tensor_retain(x) == NULL);
    CHECK(yoke_tensor_ndim(view) == 2);
    yoke_tensor_release(view);
}

/* Memory serves again at once: what stands at the address by then is another generation. */
static void an_address_that_serves_again_does_not_revive_a_handle(void)
{
    yoke_tensor *old = pair(), *next = NULL, *out = NULL;
    const uint64_t address = (uint64_t)(uintptr_t)old << 16;
    int again = 0;
    yoke_tensor_release(old);
    for (int i = 0; i < 100 && !again; ++i) {
        next = pair();
        again = (uint64_t)(uintptr_t)next << 16 == address;
        if (again) FAILS(yoke_neg(old, &out), YOKE_E_CLOSED, "was the tensor [2] float32");
        if (again) OK(yoke_neg(next, &out));
        yoke_tensor_release(next);
    }
#if !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__) /* sanitizers do not reuse freed memory */
    CHECK(again);
#endif
    yoke_tensor_release(out);
}

static void other_kinds_and_foreign_addresses_are_none(void)
{
    yoke_tensor *x = pair(), *out = NULL;
    yoke_event *event = NULL;
    int64_t foreign[64] = {0};
    OK(yoke_event_create(0, &event));
    FAILS(yoke_neg((yoke_tensor *)event, &out), YOKE_E_TYPE, "kind 'event'");
    FAILS(yoke_event_synchronize((yoke_event *)x), YOKE_E_TYPE, "kind 'tensor'");
    FAILS(yoke_neg((yoke_tensor *)foreign, &out), YOKE_E_VALUE, "not a valid tensor handle");
    FAILS(yoke_neg((yoke_tensor *)16, &out), YOKE_E_VALUE, "not a valid tensor handle");
    FAILS(yoke_set_device((yoke_device *)foreign), YOKE_E_VALUE, "not a valid device handle");
    FAILS(yoke_zeros(NULL, 0, YOKE_F32, (yoke_device *)x, &out), YOKE_E_VALUE,
          "not a valid device handle");
    yoke_event_release(event);
    yoke_tensor_release(x);
}

static void handles_in_lists_and_structs_are_looked_at_too(void)
{
    yoke_tensor *x = pair(), *gone = pair(), *out = NULL;
    yoke_tensor *const both[2] = {x, gone};
    const yoke_index key = {YOKE_INDEX_TENSOR, 0, 0, 0, 0, gone};
    const yoke_arg args[2] = {{YOKE_ARG_TENSOR, 0, {.tensor = x}},
                              {YOKE_ARG_TENSOR, 0, {.tensor = gone}}};
    int32_t add = -1;
    yoke_tensor_release(gone);
    OK(yoke_op_find("add", &add));
    FAILS(yoke_cat(both, 2, 0, &out), YOKE_E_CLOSED, "argument 'tensors'");
    FAILS(yoke_grad(both, 2, NULL, both, 1, 0, &out), YOKE_E_CLOSED, "argument 'outputs'");
    FAILS(yoke_tensor_index(x, &key, 1, &out), YOKE_E_CLOSED, "argument 'items'");
    FAILS(yoke_op_invoke(add, args, 2, &out, 1), YOKE_E_CLOSED, "argument 'y'");
    FAILS(yoke_backward(x, gone, 0), YOKE_E_CLOSED, "argument 'gradient'");
    yoke_tensor_release(x);
}

static void the_same_object_has_one_handle_while_it_is_held(void)
{
    const yoke_sgd_options options = {sizeof options, 0, 0.1, 0, 0, 0, 0};
    yoke_optimizer *sgd = NULL;
    yoke_tensor *x = pair(), *again = NULL;
    OK(yoke_tensor_set_requires_grad(x, 1));
    OK(yoke_sgd_create(&options, &sgd));
    OK(yoke_sgd_add_group(sgd, &x, 1, NULL));
    OK(yoke_optimizer_param(sgd, 0, 0, &again));
    CHECK(again == x);
    yoke_tensor_release(x);
    CHECK(yoke_tensor_ndim(x) == 1); /* `again` is held */
    yoke_tensor_release(again);
    CHECK(yoke_tensor_ndim(x) == -1); /* though the optimizer holds the tensor */
    OK(yoke_optimizer_param(sgd, 0, 0, &again));
    CHECK(again != x && yoke_tensor_ndim(again) == 1);
    yoke_tensor_release(again);
    yoke_optimizer_release(sgd);
    FAILS(yoke_optimizer_step(sgd), YOKE_E_CLOSED, "was the optimizer until");
}

static void what_is_lent_may_be_used_but_not_released(void)
{
    yoke_explanation *why = NULL;
    OK(yoke_explain("cpu", &why));
    yoke_inventory *inventory = yoke_explanation_inventory(why);
    CHECK(yoke_inventory_count(inventory) >= 0);
    logged[0] = '\0';
    yoke_inventory_release(inventory);
    CHECK(strstr(logged, "inventory_release: argument 'inventory'"));
    CHECK(strstr(logged, "the caller must not release it"));
    CHECK(yoke_inventory_count(inventory) >= 0);
    yoke_explanation_release(why);
    logged[0] = '\0';
    yoke_explanation_release(why);
    CHECK(strstr(logged, "was the explanation until yoke_explanation_release"));
}

int main(void)
{
    OK(yoke_config_set("YOKE_CHECKS", "1"));
    OK(yoke_log_set_callback(keep_log, NULL, NULL));
    RUN(a_released_tensor_is_told_with_the_call_that_released_it);
    RUN(a_second_release_takes_nobodys_reference);
    RUN(an_address_that_serves_again_does_not_revive_a_handle);
    RUN(other_kinds_and_foreign_addresses_are_none);
    RUN(handles_in_lists_and_structs_are_looked_at_too);
    RUN(the_same_object_has_one_handle_while_it_is_held);
    RUN(what_is_lent_may_be_used_but_not_released);
    return report();
}
