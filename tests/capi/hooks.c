/* Hooks on gradients, retained gradients, functions with a backward of their own, and the search for NaN. */
#include "check.h"

#include <math.h>

typedef struct Seen {
    int calls, drops;
    float first;       /* first element of the gradient */
    yoke_status fails; /* returned by the call */
    float factor;      /* of the replacement; 0: none */
} Seen;

static void drop(void *user)
{
    ++((Seen *)user)->drops;
}

static const char *problem(void *user)
{
    return ((Seen *)user)->fails ? "it does not want to" : NULL;
}

static float first_of(yoke_tensor *x)
{
    float values[16] = {0};
    OK(yoke_tensor_copy_to_host(x, values, yoke_tensor_nbytes(x)));
    return values[0];
}

static yoke_status see(void *user, yoke_tensor *gradient, yoke_tensor **replacement)
{
    Seen *seen = user;
    const yoke_scalar factor = {YOKE_ARG_FLOAT, 0, {.f = seen->factor}};
    ++seen->calls;
    seen->first = first_of(gradient);
    CHECK(yoke_is_grad_enabled() == 0);
    if (seen->factor != 0) OK(yoke_mul_scalar(gradient, &factor, replacement));
    return seen->fails;
}

static yoke_gradient_hook hook_of(Seen *seen)
{
    const yoke_gradient_hook hook = {sizeof hook, 0, seen, see, problem, drop};
    return hook;
}

static yoke_tensor *leaf(float a, float b)
{
    const float values[2] = {a, b};
    const int64_t shape[1] = {2};
    yoke_tensor *x = floats(values, shape, 1);
    OK(yoke_tensor_set_requires_grad(x, 1));
    return x;
}

static float grad_of(yoke_tensor *x)
{
    yoke_tensor *grad = NULL;
    OK(yoke_tensor_grad(x, &grad));
    const float first = grad ? first_of(grad) : NAN;
    yoke_tensor_release(grad);
    return first;
}

static yoke_tensor *sum_of(yoke_tensor *x)
{
    yoke_tensor *sum = NULL;
    OK(yoke_sum(x, NULL, 0, 0, YOKE_NONE, &sum));
    return sum;
}

static void a_hook_sees_replaces_and_is_dropped_once(void)
{
    Seen seen = {.factor = 3}, left = {0};
    yoke_hook *hook = NULL;
    yoke_tensor *x = leaf(1, 2), *y = NULL, *loss;
    const yoke_gradient_hook one = hook_of(&seen), other = hook_of(&left);
    OK(yoke_tensor_add_hook(x, &one, &hook));
    OK(yoke_tensor_add_hook(x, &other, NULL));
    OK(yoke_exp(x, &y));
    loss = sum_of(y);
    OK(yoke_backward(loss, NULL, 1));
    CHECK(seen.calls == 1 && fabsf(seen.first - 2.7182818f) < 1e-5f);
    CHECK(left.calls == 1 && fabsf(left.first - 8.1548454f) < 1e-4f);
    CHECK(fabsf(grad_of(x) - 8.1548454f) < 1e-4f);
    OK(yoke_hook_remove(hook));
    CHECK(seen.drops == 1);
    OK(yoke_hook_remove(hook));
    yoke_hook_release(hook);
    OK(yoke_backward(loss, NULL, 0));
    CHECK(seen.calls == 1 && seen.drops == 1 && left.calls == 2);
    yoke_tensor_release(loss);
    yoke_tensor_release(y);
    CHECK(left.drops == 0);
    yoke_tensor_release(x);
    CHECK(left.drops == 1);
}

static void a_failed_hook_ends_backward_with_its_status_and_text(void)
{
    Seen seen = {.fails = YOKE_E_CANCELLED};
    yoke_tensor *x = leaf(1, 2), *loss = NULL, *y = NULL;
    const yoke_gradient_hook hook = hook_of(&seen);
    OK(yoke_exp(x, &y));
    loss = sum_of(y);
    OK(yoke_tensor_add_hook(x, &hook, NULL));
    FAILS(yoke_backward(loss, NULL, 1), YOKE_E_CANCELLED, "it does not want to");
    CHECK(isnan(grad_of(x)));
    yoke_tensor_release(loss);
    yoke_tensor_release(y);
    yoke_tensor_release(x);
    CHECK(seen.drops == 1);
}

static void wrong_hooks_are_refused_and_not_dropped(void)
{
    Seen seen = {0};
    yoke_gradient_hook hook = hook_of(&seen);
    yoke_hook *out = (yoke_hook *)&seen;
    yoke_tensor *x = leaf(1, 2), *plain = NULL;
    OK(yoke_tensor_detach(x, &plain));
    FAILS(yoke_tensor_add_hook(plain, &hook, &out), YOKE_E_STATE, "does not require grad");
    CHECK(out == NULL);
    FAILS(yoke_tensor_retain_grad(plain), YOKE_E_STATE, "does not require grad");
    hook.run = NULL;
    FAILS(yoke_tensor_add_hook(x, &hook, NULL), YOKE_E_VALUE, "run");
    hook.struct_size = 3;
    FAILS(yoke_tensor_add_hook(x, &hook, NULL), YOKE_E_VALUE, "struct_size");
    CHECK(seen.drops == 0);
    yoke_tensor_release(plain);
    yoke_tensor_release(x);
}

/* ---- Functions ------------------------------------------------------------------------------------------------ */

/* The gradient of x * y by the saved tensors, which stand the other way round. */
static yoke_status product_backward(void *user, yoke_tensor *const *saved, int64_t saved_count,
                                    yoke_tensor *const *gradients, int64_t gradient_count,
                                    yoke_tensor **input_gradients, int64_t input_count)
{
    Seen *seen = user;
    ++seen->calls;
    CHECK(saved_count == 2 && gradient_count == 1 && input_count == 3);
    for (int i = 0; i < 2; ++i) OK(yoke_mul(gradients[0], saved[i], &input_gradients[i]));
    return seen->fails;
}

static yoke_tensor *product(Seen *seen, yoke_tensor *x, yoke_tensor *y)
{
    yoke_tensor *const inputs[3] = {x, y, NULL}, *const saved[2] = {y, x};
    const yoke_function function = {sizeof function, 0,    "product", seen, product_backward,
                                    problem,         drop, saved,     2};
    yoke_tensor *raw = NULL, *recorded = NULL;
    const int32_t before = yoke_set_grad_enabled(0);
    OK(yoke_mul(x, y, &raw));
    yoke_set_grad_enabled(before);
    OK(yoke_function_record(&function, inputs, 3, &raw, 1, NULL, &recorded));
    yoke_tensor_release(raw);
    return recorded;
}

static void a_function_of_the_program_has_its_own_backward(void)
{
    Seen seen = {0};
    yoke_tensor *x = leaf(3, 1), *y = leaf(5, 1), *z = product(&seen, x, y), *loss;
    yoke_saved saved = {.struct_size = sizeof saved};
    CHECK(yoke_tensor_requires_grad(z) == 1 && yoke_tensor_is_leaf(z) == 0);
    CHECK(yoke_tensor_saved_count(z) == 2);
    OK(yoke_tensor_saved(z, 1, &saved));
    CHECK(strcmp(saved.op, "product") == 0);
    loss = sum_of(z);
    OK(yoke_backward(loss, NULL, 0));
    CHECK(grad_of(x) == 5 && grad_of(y) == 3 && seen.calls == 1);
    FAILS(yoke_backward(loss, NULL, 0), YOKE_E_STATE, "freed");
    yoke_tensor_release(loss);
    yoke_tensor_release(z);
    CHECK(seen.drops == 1);
    const int32_t before = yoke_set_grad_enabled(0);
    z = product(&seen, x, y);
    CHECK(seen.drops == 2 && yoke_tensor_requires_grad(z) == 0);
    yoke_set_grad_enabled(before);
    yoke_tensor_release(z);
    yoke_tensor_release(x);
    yoke_tensor_release(y);
}

static void changed_saved_tensors_and_failures_are_errors(void)
{
    Seen seen = {.fails = YOKE_E_VALUE};
    yoke_tensor *x = leaf(3, 1), *y = leaf(5, 1), *z = product(&seen, x, y), *loss = sum_of(z);
    FAILS(yoke_backward(loss, NULL, 1), YOKE_E_VALUE, "product failed: it does not want to");
    const int32_t before = yoke_set_grad_enabled(0);
    OK(yoke_neg_(x));
    yoke_set_grad_enabled(before);
    FAILS(yoke_backward(loss, NULL, 1), YOKE_E_STATE, "saved tensor 1");
    yoke_tensor_release(loss);
    yoke_tensor_release(z);
    yoke_tensor_release(x);
    yoke_tensor_release(y);
}

static void wrong_functions_are_refused_and_not_dropped(void)
{
    Seen seen = {0};
    yoke_tensor *x = leaf(3, 1), *out = NULL;
    yoke_function function = {
        sizeof function, 0, NULL, &seen, product_backward, NULL, drop, NULL, 0};
    const int32_t kinds[1] = {7}, written[1] = {YOKE_OUTPUT_WRITTEN};
    FAILS(yoke_function_record(&function, &x, 1, &x, 1, NULL, &out), YOKE_E_VALUE, "name");
    function.name = "mine";
    FAILS(yoke_function_record(&function, &x, 1, &x, 1, kinds, &out), YOKE_E_VALUE, "'kinds' is 7");
    FAILS(yoke_function_record(&function, &x, 1, &x, 1, written, &out), YOKE_E_STATE,
          "a leaf that requires grad");
    function.run = NULL;
    FAILS(yoke_function_record(&function, &x, 1, &x, 1, NULL, &out), YOKE_E_VALUE, "run");
    CHECK(seen.drops == 0 && out == NULL);
    yoke_tensor_release(x);
}

/* ---- Anomalies, and further arguments ------------------------------------------------------------------------- */

static int32_t tell(void *user, const char **file, int32_t *line, const char **function)
{
    (void)user;
    *file = "script.c";
    *line = 7;
    *function = "step";
    return 1;
}

static void the_first_nan_is_told_with_its_line(void)
{
    yoke_tensor *x = leaf(0, 1), *zero = NULL, *root = NULL, *loss;
    OK(yoke_set_stack_provider(tell, NULL, NULL));
    CHECK(yoke_get_detect_anomaly() == YOKE_ANOMALY_OFF);
    CHECK(yoke_set_detect_anomaly(YOKE_ANOMALY_CHECK) == YOKE_ANOMALY_OFF);
    OK(yoke_mul(x, x, &zero));
    OK(yoke_sqrt(zero, &root));
    loss = sum_of(root);
    FAILS(yoke_backward(loss, NULL, 1), YOKE_E_STATE,
          "backward of mul returned NaN for argument 0 ('x')");
    CHECK(strstr(yoke_last_error()->message, "script.c:7 (step)"));
    CHECK(yoke_set_detect_anomaly(YOKE_ANOMALY_OFF) == YOKE_ANOMALY_CHECK);
    OK(yoke_backward(loss, NULL, 1));
    CHECK(yoke_set_detect_anomaly(3) == -1);
    OK(yoke_set_stack_provider(NULL, NULL, NULL));
    yoke_tensor_release(loss);
    yoke_tensor_release(root);
    yoke_tensor_release(zero);
    yoke_tensor_release(x);
}

static void some_inputs_and_unused_inputs(void)
{
    yoke_tensor *x = leaf(3, 1), *y = leaf(5, 1), *z = NULL, *loss;
    OK(yoke_mul(x, x, &z));
    loss = sum_of(z);
    yoke_tensor *const inputs[2] = {x, z}, *const both[2] = {x, y};
    OK(yoke_backward_v2(&loss, 1, NULL, inputs, 2, 1));
    CHECK(grad_of(x) == 6 && grad_of(z) == 1 && yoke_tensor_retains_grad(z) == 1);
    yoke_tensor *grads[2] = {NULL, x};
    OK(yoke_grad_v2(&loss, 1, NULL, both, 2, 1, 1, grads));
    CHECK(first_of(grads[0]) == 6 && grads[1] == NULL);
    yoke_tensor_release(grads[0]);
    FAILS(yoke_grad_v2(&loss, 1, NULL, both, 2, 1, 0, grads), YOKE_E_VALUE, "allow_unused");
    FAILS(yoke_backward_v2(NULL, 0, NULL, NULL, 0, 0), YOKE_E_VALUE, "outputs");
    yoke_tensor_release(loss);
    yoke_tensor_release(z);
    yoke_tensor_release(y);
    yoke_tensor_release(x);
}

int main(void)
{
    RUN(a_hook_sees_replaces_and_is_dropped_once);
    RUN(a_failed_hook_ends_backward_with_its_status_and_text);
    RUN(wrong_hooks_are_refused_and_not_dropped);
    RUN(a_function_of_the_program_has_its_own_backward);
    RUN(changed_saved_tensors_and_failures_are_errors);
    RUN(wrong_functions_are_refused_and_not_dropped);
    RUN(the_first_nan_is_told_with_its_line);
    RUN(some_inputs_and_unused_inputs);
    return report();
}
