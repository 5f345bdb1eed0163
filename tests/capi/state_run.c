/*
 * The run of tests/python/state_run.py, in C: the same steps, the same files.
 *
 *     test_capi_state_run begin OUT STEPS | go IN OUT STEPS | copy IN OUT | show IN
 *
 * Without arguments, the program interrupts a run, goes on from its file, and compares with an undisturbed run.
 */
#define _POSIX_C_SOURCE 200809L /* mkdtemp */

#include "check.h"
#include "state_show.h"

#include <math.h>
#include <stdlib.h>

enum { kParams = 2 };

typedef struct Run {
    yoke_tensor *params[kParams];
    yoke_optimizer *optimizer;
    yoke_grad_scaler *scaler;
    yoke_ema *ema;
    yoke_state *schedule, *plain;
} Run;

/* ---- The run ------------------------------------------------------------------------------------------------- */

static yoke_state *node(void)
{
    yoke_state *made = NULL;
    OK(yoke_state_create(&made));
    return made;
}

static yoke_tensor *random_leaf(const int64_t *shape, int64_t ndim)
{
    yoke_tensor *made = NULL;
    OK(yoke_rand(shape, ndim, YOKE_F32, NULL, NULL, &made));
    OK(yoke_tensor_set_requires_grad(made, 1));
    return made;
}

static yoke_state *cosine(void)
{
    yoke_state *made = node();
    OK(yoke_state_set_string(made, "kind", "cosine", -1));
    OK(yoke_state_set_int(made, "total_steps", 10));
    OK(yoke_state_set_float(made, "min_lr", 0.0625));
    OK(yoke_state_set_int(made, "warmup_steps", 2));
    OK(yoke_state_set_int(made, "last_step", 0));
    OK(yoke_state_set_list(made, "base_lrs", 0));
    OK(yoke_state_set_float(made, "base_lrs/0", 0.125));
    OK(yoke_state_set_float(made, "base_lrs/1", 0.25));
    return made;
}

static void put_numbers(yoke_state *plain)
{
    OK(yoke_state_set_none(plain, "none"));
    OK(yoke_state_set_bool(plain, "true", 1));
    OK(yoke_state_set_bool(plain, "false", 0));
    OK(yoke_state_set_int(plain, "most", INT64_MAX));
    OK(yoke_state_set_int(plain, "least", INT64_MIN));
    OK(yoke_state_set_int(plain, "three", 3));
    OK(yoke_state_set_float(plain, "three.0", 3.0));
    OK(yoke_state_set_float(plain, "-0.0", -0.0));
    OK(yoke_state_set_float(plain, "nan", (double)NAN));
    OK(yoke_state_set_float(plain, "inf", (double)INFINITY));
    OK(yoke_state_set_float(plain, "-inf", -(double)INFINITY));
    OK(yoke_state_set_float(plain, "tiny", 5e-324));
    OK(yoke_state_set_string(plain, "text", "ü\n\"\\$", -1));
}

/* Under a key that no path can name. */
static void put_text(yoke_state *dict, const char *key, int64_t number, const char *text)
{
    const yoke_state_key name = {sizeof name, !key, number, key, -1};
    yoke_state *value = node();
    OK(yoke_state_set_string(value, "", text, -1));
    OK(yoke_state_put(dict, &name, value));
    yoke_state_release(value);
}

static void put_keys(yoke_state *plain)
{
    yoke_state *keys = node(), *counted = node();
    OK(yoke_state_set_dict(keys, ""));
    put_text(keys, NULL, 5, "five");
    put_text(keys, NULL, -1, "one");
    put_text(keys, "5", 0, "text");
    OK(yoke_state_set_dict(keys, "a~1b~0c.d"));
    OK(yoke_state_set(plain, "keys", keys));
    OK(yoke_state_set_dict(counted, ""));
    put_text(counted, NULL, 1, "a");
    put_text(counted, NULL, 2, "b");
    OK(yoke_state_set(plain, "one to two", counted));
    yoke_state_release(keys);
    yoke_state_release(counted);
    put_text(plain, "", 0, "");
}

static yoke_state *plain_values(void)
{
    const int64_t nothing[] = {0, 3};
    const uint16_t half = 0x3fc0;
    yoke_state *plain = node();
    yoke_tensor *x = NULL;
    put_numbers(plain);
    put_keys(plain);
    OK(yoke_state_set_list(plain, "list", 0));
    OK(yoke_state_set_int(plain, "list/0", 1));
    OK(yoke_state_set_list(plain, "list/1", 0));
    OK(yoke_state_set_float(plain, "list/1/0", 2.5));
    OK(yoke_state_set_list(plain, "list/1/1", 0));
    OK(yoke_state_set_none(plain, "list/2"));
    OK(yoke_state_set_dict(plain, "empty"));
    OK(yoke_state_set_list(plain, "$dict", 0));
    OK(yoke_state_set_dict(plain, "$dict/0"));
    OK(yoke_state_set_int(plain, "$dict/0/$", 1));
    OK(yoke_tensor_from_data(&half, sizeof half, NULL, 0, YOKE_BF16, NULL, &x));
    OK(yoke_state_set_tensor(plain, "half", x));
    yoke_tensor_release(x);
    OK(yoke_zeros(nothing, 2, YOKE_I64, NULL, &x));
    OK(yoke_state_set_tensor(plain, "nothing", x));
    yoke_tensor_release(x);
    return plain;
}

static Run make(uint64_t seed)
{
    const int64_t shapes[kParams][2] = {{4, 0}, {2, 3}};
    const yoke_adam_options options = {sizeof options, 0, 0.125, 0.9, 0.999, 1e-8, 0.5};
    const yoke_grad_scaler_options scaling = {sizeof scaling, 0, 8, 2, 0.5, 2, 0};
    Run run = {{NULL}, NULL, NULL, NULL, cosine(), NULL};
    OK(yoke_manual_seed(seed));
    OK(yoke_adamw_create(&options, &run.optimizer));
    for (int i = 0; i < kParams; ++i) {
        run.params[i] = random_leaf(shapes[i], i + 1);
        OK(yoke_adam_add_group(run.optimizer, &run.params[i], 1, NULL));
    }
    OK(yoke_grad_scaler_create(&scaling, &run.scaler));
    OK(yoke_ema_create(run.params, kParams, 0.75, &run.ema));
    OK(yoke_optimizer_set_lr(run.optimizer, 1, 0.25));
    OK(yoke_schedule_apply(run.schedule, run.optimizer, 0));
    run.plain = plain_values();
    return run;
}

static void drop(Run *run)
{
    for (int i = 0; i < kParams; ++i) yoke_tensor_release(run->params[i]);
    yoke_optimizer_release(run->optimizer);
    yoke_grad_scaler_release(run->scaler);
    yoke_ema_release(run->ema);
    yoke_state_release(run->schedule);
    yoke_state_release(run->plain);
}

static yoke_tensor *sum_of_squares(yoke_tensor *x)
{
    yoke_tensor *square = NULL, *sum = NULL;
    OK(yoke_mul(x, x, &square));
    OK(yoke_sum(square, NULL, 0, 0, YOKE_NONE, &sum));
    yoke_tensor_release(square);
    return sum;
}

static yoke_tensor *loss_of(const Run *run)
{
    const int64_t shape[] = {4};
    yoke_tensor *noise = NULL, *product = NULL, *loss = NULL;
    OK(yoke_rand(shape, 1, YOKE_F32, NULL, NULL, &noise));
    OK(yoke_mul(run->params[0], noise, &product));
    yoke_tensor *first = sum_of_squares(product), *second = sum_of_squares(run->params[1]);
    OK(yoke_add(first, second, &loss));
    yoke_tensor_release(noise);
    yoke_tensor_release(product);
    yoke_tensor_release(first);
    yoke_tensor_release(second);
    return loss;
}

static void go_on(Run *run, int64_t steps)
{
    while (steps-- > 0) {
        int64_t last = 0;
        yoke_tensor *loss = loss_of(run), *scaled = NULL;
        OK(yoke_optimizer_zero_grad(run->optimizer, 1));
        OK(yoke_grad_scaler_scale(run->scaler, loss, &scaled));
        OK(yoke_backward(scaled, NULL, 0));
        OK(yoke_grad_scaler_step(run->scaler, run->optimizer));
        OK(yoke_grad_scaler_update(run->scaler));
        OK(yoke_state_get_int(run->schedule, "last_step", &last));
        OK(yoke_schedule_apply(run->schedule, run->optimizer, last + 1));
        OK(yoke_ema_update(run->ema));
        yoke_tensor_release(loss);
        yoke_tensor_release(scaled);
    }
}

/* ---- Its file ------------------------------------------------------------------------------------------------ */

static void put(yoke_state *state, const char *path, yoke_status status, yoke_state *value)
{
    OK(status);
    OK(yoke_state_set(state, path, value));
    yoke_state_release(value);
}

static void save(const Run *run, const char *path)
{
    yoke_state *state = node(), *part = NULL;
    OK(yoke_state_set_tensor(state, "x", run->params[0]));
    OK(yoke_state_set_list(state, "again", 0));
    OK(yoke_state_set_tensor(state, "again/0", run->params[0]));
    OK(yoke_state_set_tensor(state, "y", run->params[1]));
    yoke_status status = yoke_optimizer_state(run->optimizer, &part);
    put(state, "optimizer", status, part);
    status = yoke_grad_scaler_state(run->scaler, &part);
    put(state, "scaler", status, part);
    status = yoke_ema_state(run->ema, &part);
    put(state, "ema", status, part);
    status = yoke_rng_state(&part);
    put(state, "rng", status, part);
    OK(yoke_state_set(state, "schedule", run->schedule));
    OK(yoke_state_set(state, "plain", run->plain));
    OK(yoke_save(path, state, NULL, NULL));
    yoke_state_release(state);
}

static yoke_state *part_of(yoke_state *state, const char *path)
{
    yoke_state *part = NULL;
    OK(yoke_state_get(state, path, &part));
    return part;
}

static void load(Run *run, const char *path)
{
    const char *const names[kParams] = {"x", "y"};
    yoke_state *state = NULL, *parts[4];
    OK(yoke_load(path, NULL, &state));
    yoke_set_grad_enabled(0);
    for (int i = 0; i < kParams; ++i) {
        yoke_tensor *saved = NULL;
        OK(yoke_state_get_tensor(state, names[i], &saved));
        OK(yoke_copy_(run->params[i], saved));
        yoke_tensor_release(saved);
    }
    yoke_set_grad_enabled(1);
    OK(yoke_optimizer_load_state(run->optimizer, parts[0] = part_of(state, "optimizer")));
    OK(yoke_grad_scaler_load_state(run->scaler, parts[1] = part_of(state, "scaler")));
    OK(yoke_ema_load_state(run->ema, parts[2] = part_of(state, "ema")));
    OK(yoke_rng_load_state(parts[3] = part_of(state, "rng")));
    for (int i = 0; i < 4; ++i) yoke_state_release(parts[i]);
    yoke_state_release(run->schedule);
    yoke_state_release(run->plain);
    run->schedule = part_of(state, "schedule");
    run->plain = part_of(state, "plain");
    OK(yoke_schedule_check(run->schedule, kParams));
    yoke_state_release(state);
}

/* ---- Programs ------------------------------------------------------------------------------------------------ */

static void begin(const char *to, int64_t steps)
{
    Run run = make(5);
    go_on(&run, steps);
    save(&run, to);
    drop(&run);
}

static void go(const char *from, const char *to, int64_t steps)
{
    Run run = make(99);
    load(&run, from);
    go_on(&run, steps);
    save(&run, to);
    drop(&run);
}

static void copy_or_show(const char *from, const char *to)
{
    yoke_state *state = NULL;
    OK(yoke_load(from, NULL, &state));
    if (!state) return;
    if (to)
        OK(yoke_save(to, state, NULL, NULL));
    else
        show(state, "");
    forget_met();
    yoke_state_release(state);
}

static char folder[] = "/tmp/yoke-state-XXXXXX";

static void check_same_file(const char *one, const char *other)
{
    char a[20000], b[sizeof a];
    FILE *first = fopen(one, "rb"), *second = fopen(other, "rb");
    const size_t count = fread(a, 1, sizeof a, first);
    CHECK(count > 1000 && count < sizeof a && fread(b, 1, sizeof b, second) == count);
    CHECK(memcmp(a, b, count) == 0);
    fclose(first);
    fclose(second);
}

static void a_run_goes_on_from_a_file(void)
{
    char paths[3][40];
    for (int i = 0; i < 3; ++i) snprintf(paths[i], sizeof paths[i], "%s/%d", folder, i);
    begin(paths[0], 2);
    go(paths[0], paths[1], 3);
    begin(paths[2], 5);
    check_same_file(paths[1], paths[2]);
    copy_or_show(paths[1], paths[0]);
    check_same_file(paths[0], paths[1]);
    for (int i = 0; i < 3; ++i) remove(paths[i]);
}

int main(int count, char **arguments)
{
    const char *mode = count > 2 ? arguments[1] : "";
    if (!strcmp(mode, "begin") && count == 4) begin(arguments[2], atoll(arguments[3]));
    if (!strcmp(mode, "go") && count == 5) go(arguments[2], arguments[3], atoll(arguments[4]));
    if (!strcmp(mode, "copy") && count == 4) copy_or_show(arguments[2], arguments[3]);
    if (!strcmp(mode, "show")) copy_or_show(arguments[2], NULL);
    if (count > 1) return checks_failed ? 1 : 0;
    CHECK(mkdtemp(folder) != NULL);
    RUN(a_run_goes_on_from_a_file);
    remove(folder);
    return report();
}
