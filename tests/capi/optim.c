/* Adam, loss scaling, clipping, averages and schedules from C. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "check.h"

static const int64_t two[1] = {2};

static yoke_tensor *leaf(void)
{
    const float values[2] = {1.0f, 2.0f};
    yoke_tensor *x = floats(values, two, 1);
    OK(yoke_tensor_set_requires_grad(x, 1));
    return x;
}

static void set_grad(yoke_tensor *x, float a, float b)
{
    const float values[2] = {a, b};
    yoke_tensor *grad = floats(values, two, 1);
    OK(yoke_tensor_set_grad(x, grad));
    yoke_tensor_release(grad);
}

/* scale(sum(x · factor)), backward. */
static void scaled_backward(yoke_grad_scaler *scaler, yoke_tensor *x, double factor)
{
    const yoke_scalar number = {YOKE_ARG_FLOAT, 0, {.f = factor}};
    yoke_tensor *product = NULL, *loss = NULL, *scaled = NULL;
    OK(yoke_tensor_zero_grad(x, 1));
    OK(yoke_mul_scalar(x, &number, &product));
    OK(yoke_sum(product, NULL, 0, 0, YOKE_NONE, &loss));
    OK(yoke_grad_scaler_scale(scaler, loss, &scaled));
    OK(yoke_backward(scaled, NULL, 0));
    yoke_tensor_release(product);
    yoke_tensor_release(loss);
    yoke_tensor_release(scaled);
}

static void adam_steps_and_keeps_named_state(void)
{
    const float moved[2] = {0.5f, 1.5f}, half_back = -1.5f;
    yoke_adam_options options = {sizeof options, 0, 0.5, 0.5, 0.75, 0, 0};
    yoke_optimizer *adam = NULL, *adamw = NULL;
    yoke_tensor *x = leaf(), *state = NULL;
    double step = 0;
    OK(yoke_adam_create(&options, &adam));
    OK(yoke_adam_add_group(adam, &x, 1, NULL));
    set_grad(x, 3.0f, 5.0f);
    OK(yoke_optimizer_step(adam));
    check_floats(x, moved, 2);
    OK(yoke_optimizer_get_state(adam, 0, 0, "step", &state));
    OK(yoke_tensor_item_f64(state, &step));
    CHECK(step == 1);
    OK(yoke_optimizer_set_state(adam, 0, 0, "step", state));
    yoke_tensor_release(state);
    state = floats(&half_back, NULL, 0);
    FAILS(yoke_optimizer_set_state(adam, 0, 0, "step", state), YOKE_E_VALUE,
          "\"step\" of parameter 0 of group 0 of this Adam is -1.5");
    yoke_tensor_release(state);
    OK(yoke_optimizer_get_state(adam, 0, 0, "step", &state));
    OK(yoke_tensor_item_f64(state, &step));
    CHECK(step == 1);
    yoke_tensor_release(state);
    CHECK(strcmp(yoke_optimizer_state_name(adam, 0), "exp_avg") == 0);
    CHECK(strcmp(yoke_optimizer_state_name(adam, 3), "master") == 0);
    CHECK(yoke_optimizer_state_name(adam, 4) == NULL);
    options.weight_decay = 0.25;
    OK(yoke_adam_set_options(adam, 0, &options));
    options.weight_decay = 0;
    OK(yoke_adam_get_options(adam, 0, &options));
    CHECK(options.weight_decay == 0.25);
    options.beta2 = 1;
    FAILS(yoke_adam_set_options(adam, 0, &options), YOKE_E_VALUE, "'betas' is (0.5, 1)");
    FAILS(yoke_adamw_create(&options, &adamw), YOKE_E_VALUE, "AdamW");
    FAILS(yoke_sgd_add_group(adam, &x, 1, NULL), YOKE_E_TYPE, "the optimizer is Adam");
    yoke_tensor_release(x);
    yoke_optimizer_release(adam);
}

static void the_scaler_skips_steps_on_overflow_and_follows_its_rule(void)
{
    const float start[2] = {1.0f, 2.0f}, moved[2] = {0.0f, 1.0f};
    yoke_grad_scaler_options state = {sizeof state, 0, 1024, 2, 0.5, 2, 0};
    const yoke_sgd_options options = {sizeof options, 0, 1, 0, 0, 0, 0};
    yoke_grad_scaler *scaler = NULL;
    yoke_optimizer *sgd = NULL;
    yoke_tensor *x = leaf();
    OK(yoke_grad_scaler_create(&state, &scaler));
    OK(yoke_sgd_create(&options, &sgd));
    OK(yoke_sgd_add_group(sgd, &x, 1, NULL));
    FAILS(yoke_grad_scaler_step(scaler, sgd), YOKE_E_STATE, "no loss was scaled yet");
    scaled_backward(scaler, x, INFINITY);
    OK(yoke_grad_scaler_step(scaler, sgd));
    check_floats(x, start, 2);
    OK(yoke_grad_scaler_update(scaler));
    scaled_backward(scaler, x, 1);
    OK(yoke_grad_scaler_unscale(scaler, sgd));
    FAILS(yoke_grad_scaler_unscale(scaler, sgd), YOKE_E_STATE, "a second call");
    OK(yoke_grad_scaler_step(scaler, sgd));
    check_floats(x, moved, 2);
    OK(yoke_grad_scaler_update(scaler));
    OK(yoke_grad_scaler_get_state(scaler, &state));
    CHECK(state.scale == 512 && state.growth_tracker == 1 && state.disabled == 0);
    FAILS(yoke_grad_scaler_update(scaler), YOKE_E_STATE, "no gradients were checked");
    OK(yoke_grad_scaler_set_rule(scaler, 4, 0.25, 9));
    state.scale = 8;
    scaled_backward(scaler, x, 1);
    OK(yoke_grad_scaler_step(scaler, sgd));
    OK(yoke_grad_scaler_set_state(scaler, &state));
    OK(yoke_grad_scaler_unscale(scaler, sgd)); /* belongs to another iteration */
    yoke_tensor_release(x);
    yoke_optimizer_release(sgd);
    yoke_grad_scaler_release(scaler);
}

static void the_scale_stops_at_a_smallest_one(void)
{
    const float moved[2] = {0.5f, 1.5f};
    yoke_grad_scaler_options state = {sizeof state, 0, 65536, 2, 0.5, 2000, 0};
    const yoke_sgd_options options = {sizeof options, 0, 0.5, 0, 0, 0, 0};
    yoke_grad_scaler *scaler = NULL;
    yoke_optimizer *sgd = NULL;
    yoke_tensor *x = leaf();
    OK(yoke_sgd_create(&options, &sgd));
    OK(yoke_sgd_add_group(sgd, &x, 1, NULL));
    OK(yoke_grad_scaler_create(&state, &scaler));
    for (int step = 0; step <= 170; step++) {
        scaled_backward(scaler, x, step < 170 ? INFINITY : 1);
        OK(yoke_grad_scaler_step(scaler, sgd));
        OK(yoke_grad_scaler_update(scaler));
    }
    check_floats(x, moved, 2);
    OK(yoke_grad_scaler_get_state(scaler, &state));
    CHECK(state.scale == (double)FLT_MIN);
    state.scale = 0;
    OK(yoke_grad_scaler_set_state(scaler, &state));
    OK(yoke_grad_scaler_get_state(scaler, &state));
    CHECK(state.scale == (double)FLT_MIN);
    yoke_optimizer_release(sgd);
    yoke_tensor_release(x);
    yoke_grad_scaler_release(scaler);
}

static void a_disabled_scaler_gives_back_what_it_gets(void)
{
    const yoke_grad_scaler_options options = {sizeof options, 1, 65536, 2, 0.5, 2000, 0};
    yoke_grad_scaler *scaler = NULL;
    yoke_tensor *x = leaf(), *same = NULL;
    OK(yoke_grad_scaler_create(&options, &scaler));
    OK(yoke_grad_scaler_scale(scaler, x, &same));
    CHECK(same == x);
    OK(yoke_grad_scaler_update(scaler));
    yoke_tensor_release(same);
    yoke_tensor_release(x);
    yoke_grad_scaler_release(scaler);
}

static void gradients_are_clipped_by_their_common_norm(void)
{
    const float factor = (float)(1.0 / (5 + 1e-6)), clipped[2] = {3.0f * factor, 4.0f * factor};
    yoke_tensor *x = leaf(), *grad = NULL, *norm = NULL;
    double value = 0;
    set_grad(x, 3.0f, 4.0f);
    OK(yoke_clip_grad_norm(&x, 1, 1.0, 2.0, &norm));
    OK(yoke_tensor_item_f64(norm, &value));
    CHECK(value == 5);
    OK(yoke_tensor_grad(x, &grad));
    check_floats(grad, clipped, 2);
    yoke_tensor_release(norm);
    FAILS(yoke_clip_grad_norm(&x, 1, -1.0, 2.0, &norm), YOKE_E_VALUE, "'max_norm' is -1");
    yoke_tensor_release(grad);
    yoke_tensor_release(x);
}

static void averages_follow_their_parameters(void)
{
    const float start[2] = {1.0f, 2.0f}, zeros[2] = {0.0f, 0.0f}, half[2] = {0.5f, 1.0f};
    yoke_tensor *x = floats(start, two, 1), *average = NULL;
    const yoke_scalar zero = {YOKE_ARG_FLOAT, 0, {.f = 0}};
    yoke_ema *ema = NULL;
    OK(yoke_ema_create(&x, 1, 0.5, &ema));
    OK(yoke_fill_(x, &zero));
    OK(yoke_ema_update(ema));
    OK(yoke_ema_average(ema, 0, &average));
    check_floats(average, half, 2);
    OK(yoke_ema_swap(ema));
    check_floats(x, half, 2);
    check_floats(average, half, 2);
    FAILS(yoke_ema_update(ema), YOKE_E_STATE, "put the parameters back first");
    FAILS(yoke_ema_copy_to_params(ema), YOKE_E_STATE, "put the parameters back first");
    check_floats(average, half, 2);
    OK(yoke_ema_swap(ema));
    check_floats(x, zeros, 2);
    OK(yoke_ema_copy_to_params(ema));
    check_floats(x, half, 2);
    yoke_tensor_release(average);
    FAILS(yoke_ema_average(ema, 1, &average), YOKE_E_INDEX, "average 1");
    yoke_ema_release(ema);
    FAILS(yoke_ema_create(&x, 1, 2, &ema), YOKE_E_VALUE, "'decay' is 2");
    yoke_tensor_release(x);
}

/* The copy of a parameter has dense memory, however the parameter lies in memory, even if reversed. */
static void what_is_kept_of_a_reversed_parameter_lies_in_its_own_memory(void)
{
    const float values[] = {1, 2, 3};
    const int64_t shape[] = {3};
    yoke_tensor *base = floats(values, shape, 1), *x = NULL, *gradient = NULL;
    yoke_tensor *average = NULL, *momentum = NULL;
    yoke_ema *ema = NULL;
    yoke_optimizer *sgd = NULL;
    const yoke_sgd_options options = {sizeof options, 0, 0.5, 0.9, 0, 0, 0};
    OK(yoke_slice(base, 0, NULL, NULL, -1, &x));
    CHECK(yoke_tensor_strides(x)[0] == -1);
    OK(yoke_ema_create(&x, 1, 0.5, &ema));
    OK(yoke_ema_average(ema, 0, &average));
    CHECK(yoke_tensor_strides(average)[0] == 1);
    check_floats(average, (const float[]){3, 2, 1}, 3);
    OK(yoke_tensor_set_requires_grad(x, 1));
    OK(yoke_clone(base, &gradient));
    OK(yoke_tensor_set_grad(x, gradient));
    OK(yoke_sgd_create(&options, &sgd));
    OK(yoke_sgd_add_group(sgd, &x, 1, NULL));
    OK(yoke_optimizer_step(sgd));
    OK(yoke_optimizer_get_state(sgd, 0, 0, "momentum", &momentum));
    CHECK(yoke_tensor_strides(momentum)[0] == 1);
    check_floats(momentum, values, 3);
    check_floats(base, (const float[]){-0.5f, 1, 2.5f}, 3);
    yoke_optimizer_release(sgd);
    yoke_ema_release(ema);
    yoke_tensor_release(momentum);
    yoke_tensor_release(average);
    yoke_tensor_release(gradient);
    yoke_tensor_release(x);
    yoke_tensor_release(base);
}

static void schedules_are_plain_arithmetic(void)
{
    CHECK(yoke_schedule_constant(2, 0.25, 3, 2) == 0.5);
    CHECK(yoke_schedule_constant(2, 0.25, 3, 3) == 2);
    CHECK(yoke_schedule_step(1, 2, 0.5, 5) == 0.25);
    CHECK(fabs(yoke_schedule_cosine(1, 0, 10, 0, 5) - 0.5) < 1e-12);
    CHECK(yoke_schedule_cosine(1, 0, 10, 3, 1) == 0.5);
    CHECK(fabs(yoke_schedule_one_cycle(1, 10, 0.3, 25, 1e4, 0) - 0.04) < 1e-12);
    CHECK(yoke_schedule_one_cycle(1, 10, 0.3, 25, 1e4, 2) == 1);
}

/* Differences of such steps do not fit in an int64. */
static void schedules_take_any_number(void)
{
    CHECK(yoke_schedule_one_cycle(1, INT64_MIN, 0.3, 25, 1e4, 0) == 1.0 / 25 / 1e4);
    CHECK(fabs(yoke_schedule_one_cycle(1, INT64_MAX, 0.3, 25, 1e4, INT64_MIN) - 0.04) < 1e-12);
    CHECK(yoke_schedule_cosine(1, 0.5, INT64_MAX, INT64_MIN, 0) == 1);
    CHECK(yoke_schedule_cosine(2, 0.5, 10, INT64_MAX, INT64_MAX - 1) == 2);
    CHECK(yoke_schedule_cosine(2, 0.5, INT64_MIN, INT64_MAX, INT64_MAX) == 0.5);
    CHECK(yoke_schedule_cosine(2, 0.5, INT64_MIN, INT64_MIN, INT64_MAX) == 0.5);
    CHECK(yoke_schedule_step(1, INT64_MAX, 0.5, INT64_MAX) == 0.5);
    CHECK(yoke_schedule_step(1, INT64_MIN, 0.5, INT64_MIN) == 1);
    CHECK(yoke_schedule_linear(0, 1, INT64_MAX, INT64_MIN) == 0);
    CHECK(yoke_schedule_linear(0, 1, INT64_MIN, INT64_MAX) == 1);
    CHECK(yoke_schedule_constant(2, 0.25, INT64_MIN, INT64_MAX) == 2);
    CHECK(isnan(yoke_schedule_linear(NAN, 1, 10, 5)));
    CHECK(isnan(yoke_schedule_one_cycle(NAN, 10, 0.3, 25, 1e4, 5)));
    CHECK(yoke_schedule_one_cycle(1, 10, NAN, 25, 1e4, 5) == 1.0 / 25 / 1e4);
}

/* Holds the tensor, not its memory: so an optimizer goes on. */
static void a_parameter_that_moves_stays_the_parameter_of_its_optimizer(void)
{
    const yoke_adam_options options = {sizeof options, 0, 0.5, 0.5, 0.75, 0, 0};
    yoke_optimizer *adam = NULL;
    yoke_tensor *x = leaf(), *state = NULL, *sum = NULL, *grad = NULL;
    double value = 0;
    OK(yoke_adam_create(&options, &adam));
    OK(yoke_adam_add_group(adam, &x, 1, NULL));
    set_grad(x, 3.0f, 5.0f);
    OK(yoke_optimizer_step(adam));
    OK(yoke_sum(x, NULL, 0, 0, YOKE_NONE, &sum));
    OK(yoke_tensor_to_(x, NULL, YOKE_F64));
    CHECK(yoke_tensor_dtype(x) == YOKE_F64);
    OK(yoke_tensor_grad(x, &grad));
    CHECK(yoke_tensor_dtype(grad) == YOKE_F64);
    yoke_tensor_release(grad);
    FAILS(yoke_backward(sum, NULL, 0), YOKE_E_STATE, "sum used a parameter that has moved");
    yoke_tensor_release(sum);
    OK(yoke_optimizer_step(adam));
    OK(yoke_optimizer_get_state(adam, 0, 0, "exp_avg", &state));
    CHECK(yoke_tensor_dtype(state) == YOKE_F64);
    yoke_tensor_release(state);
    OK(yoke_sum(x, NULL, 0, 0, YOKE_NONE, &sum));
    OK(yoke_tensor_item_f64(sum, &value));
    CHECK(fabs(value - 1.0) < 1e-6);
    FAILS(yoke_tensor_to_(sum, NULL, YOKE_F32), YOKE_E_STATE, "only leaves can move in place");
    FAILS(yoke_tensor_to_(NULL, NULL, YOKE_F32), YOKE_E_VALUE, "tensor");
    yoke_tensor_release(sum);
    yoke_tensor_release(x);
    yoke_optimizer_release(adam);
}

static void a_parameter_with_other_data_stays_the_parameter_of_its_optimizer(void)
{
    const yoke_sgd_options options = {sizeof options, 0, 1.0, 0, 0, 0, 0};
    yoke_optimizer *sgd = NULL;
    yoke_tensor *x = leaf(), *other = leaf(), *sum = NULL;
    OK(yoke_sgd_create(&options, &sgd));
    OK(yoke_sgd_add_group(sgd, &x, 1, NULL));
    OK(yoke_tensor_set_data(x, other));
    CHECK(yoke_shares_memory(x, other) == 1);
    set_grad(x, 3.0f, 5.0f);
    OK(yoke_optimizer_step(sgd));
    CHECK(yoke_tensor_data(x) == yoke_tensor_data(other));
    OK(yoke_sum(x, NULL, 0, 0, YOKE_NONE, &sum));
    FAILS(yoke_tensor_set_data(sum, sum), YOKE_E_STATE, "only a leaf can take other data");
    FAILS(yoke_tensor_set_data(x, sum), YOKE_E_VALUE, "argument 'data' has shape []");
    FAILS(yoke_tensor_set_data(x, NULL), YOKE_E_VALUE, "data");
    FAILS(yoke_tensor_set_data(NULL, x), YOKE_E_VALUE, "tensor");
    yoke_tensor_release(sum);
    yoke_tensor_release(other);
    yoke_tensor_release(x);
    yoke_optimizer_release(sgd);
}

static int warned;
static void count_warning(void *user, int32_t level, const char *message)
{
    (void)user;
    if (level == 1 &&
        (strstr(message, "before the first step() of its") ||
         strstr(message, "no tensor to clip") || strstr(message, "broadcast to [2, 2]")))
        ++warned;
}

static void what_trains_nothing_is_said_once(void)
{
    const yoke_sgd_options options = {sizeof options, 0, 0.5, 0, 0, 0, 0};
    const float values[2] = {1.0f, 2.0f};
    const int64_t column[2] = {2, 1};
    yoke_optimizer *sgd = NULL;
    yoke_tensor *x = leaf(), *y = floats(values, column, 2), *out = NULL;
    OK(yoke_log_set_callback(count_warning, NULL, NULL));
    OK(yoke_sgd_create(&options, &sgd));
    OK(yoke_sgd_add_group(sgd, &x, 1, NULL));
    for (int i = 0; i < 2; ++i) {
        OK(yoke_optimizer_note_schedule(sgd));
        OK(yoke_clip_grad_norm(NULL, 0, 1, 2, &out));
        yoke_tensor_release(out);
        OK(yoke_l1_loss(x, y, "mean", &out));
        yoke_tensor_release(out);
    }
    CHECK(warned == 3);
    OK(yoke_log_set_callback(NULL, NULL, NULL));
    yoke_optimizer_release(sgd);
    yoke_tensor_release(x);
    yoke_tensor_release(y);
}

int main(void)
{
    RUN(what_trains_nothing_is_said_once);
    RUN(a_parameter_that_moves_stays_the_parameter_of_its_optimizer);
    RUN(a_parameter_with_other_data_stays_the_parameter_of_its_optimizer);
    RUN(adam_steps_and_keeps_named_state);
    RUN(the_scaler_skips_steps_on_overflow_and_follows_its_rule);
    RUN(the_scale_stops_at_a_smallest_one);
    RUN(a_disabled_scaler_gives_back_what_it_gets);
    RUN(gradients_are_clipped_by_their_common_norm);
    RUN(averages_follow_their_parameters);
    RUN(what_is_kept_of_a_reversed_parameter_lies_in_its_own_memory);
    RUN(schedules_are_plain_arithmetic);
    RUN(schedules_take_any_number);
    return report();
}
