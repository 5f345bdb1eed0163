/* Memory budgets from C: gradients are equal to gradients without a budget, and a budget's figures belong to its
 * steps. A thread that may not use a budget gets an error. */
#include "check.h"

#include <pthread.h>

static const int64_t square[2] = {2, 2};
static const float numbers[4] = {0.5f, -1.0f, 2.0f, 0.25f};

/* exp(exp(x)) in scopes, one in the other where there are two policies; the gradient goes to `got`. */
static void run(const yoke_checkpoint_options *outer, const yoke_checkpoint_options *inner,
                float *got)
{
    yoke_tensor *x = floats(numbers, square, 2), *y = NULL, *z = NULL, *sum = NULL, *grad = NULL;
    yoke_checkpoint *scopes[2] = {NULL, NULL};
    OK(yoke_tensor_set_requires_grad(x, 1));
    if (outer) OK(yoke_checkpoint_begin(outer, &scopes[0]));
    OK(yoke_exp(x, &y));
    if (inner) OK(yoke_checkpoint_begin(inner, &scopes[1]));
    OK(yoke_exp(y, &z));
    if (inner) OK(yoke_checkpoint_end(scopes[1]));
    if (outer) OK(yoke_checkpoint_end(scopes[0]));
    OK(yoke_sum(z, NULL, 0, 0, YOKE_NONE, &sum));
    yoke_tensor_release(y);
    yoke_tensor_release(z);
    OK(yoke_backward(sum, NULL, 0));
    OK(yoke_tensor_grad(x, &grad));
    OK(yoke_tensor_copy_to_host(grad, got, 16));
    yoke_tensor_release(grad);
    yoke_tensor_release(sum);
    yoke_tensor_release(x);
    yoke_checkpoint_release(scopes[1]);
    yoke_checkpoint_release(scopes[0]);
}

static yoke_checkpoint_options under(yoke_memory_budget *budget)
{
    return (yoke_checkpoint_options){
        .struct_size = sizeof(yoke_checkpoint_options), .policy = "budget", .budget = budget};
}

static yoke_memory_budget_figures figures_of(yoke_memory_budget *budget)
{
    yoke_memory_budget_figures figures = {.struct_size = sizeof figures};
    OK(yoke_memory_budget_report(budget, &figures));
    return figures;
}

static void budgets_change_no_bit_and_count_their_steps(void)
{
    float expected[4], got[4];
    run(NULL, NULL, expected);
    const char *const amounts[] = {"0.5", "1", "1KiB", "2 GiB"};
    for (size_t i = 0; i < sizeof amounts / sizeof amounts[0]; ++i) {
        yoke_memory_budget *budget = NULL;
        OK(yoke_memory_budget_create(amounts[i], &budget));
        const yoke_checkpoint_options options = under(budget);
        CHECK(figures_of(budget).limit == 0 && figures_of(budget).steps == 0);
        for (int step = 1; step <= 4; ++step) {
            run(&options, step % 2 ? &options : NULL, got);
            CHECK(memcmp(expected, got, sizeof got) == 0);
            const yoke_memory_budget_figures figures = figures_of(budget);
            CHECK(figures.steps == step && figures.forwards == 1);
            CHECK(figures.peak_bytes[1] >= figures.held_bytes[1] && figures.plain_peak > 0);
        }
        yoke_memory_budget_release(budget);
    }
}

static void *begin_elsewhere(void *budget)
{
    const yoke_checkpoint_options options = under(budget);
    yoke_checkpoint *scope = NULL;
    FAILS(yoke_checkpoint_begin(&options, &scope), YOKE_E_STATE, "memory budget that is in use");
    CHECK(scope == NULL && yoke_checkpoint_current() == NULL);
    CHECK(figures_of(budget).steps == 0);
    return NULL;
}

static void *leave_open(void *budget)
{
    const yoke_checkpoint_options options = under(budget);
    yoke_checkpoint *scope = NULL;
    yoke_tensor *x = floats(numbers, square, 2), *y = NULL;
    OK(yoke_tensor_set_requires_grad(x, 1));
    OK(yoke_checkpoint_begin(&options, &scope));
    OK(yoke_exp(x, &y));
    yoke_tensor_release(y);
    yoke_tensor_release(x);
    return scope;
}

static void a_budget_has_one_forward_at_a_time(void)
{
    yoke_memory_budget *budget = NULL;
    yoke_checkpoint *scope = NULL;
    pthread_t thread;
    void *left = NULL;
    float got[4];
    OK(yoke_memory_budget_create("0.5", &budget));
    const yoke_checkpoint_options options = under(budget);
    OK(yoke_checkpoint_begin(&options, &scope));
    pthread_create(&thread, NULL, begin_elsewhere, budget);
    pthread_join(thread, NULL);
    yoke_checkpoint *aside = yoke_checkpoint_swap(NULL); /* as a coroutine that waits */
    begin_elsewhere(budget);
    (void)yoke_checkpoint_swap(aside);
    OK(yoke_checkpoint_end(scope));
    yoke_checkpoint_release(scope);
    pthread_create(&thread, NULL, leave_open, budget);
    pthread_join(thread, &left);
    begin_elsewhere(budget);
    yoke_checkpoint_release(left); /* last handle of the scope left open by its thread */
    run(&options, NULL, got);
    OK(yoke_checkpoint_begin(&options, &scope));
    yoke_checkpoint_release(scope); /* closes the scope */
    run(&options, NULL, got);
    CHECK(figures_of(budget).steps == 2);
    OK(yoke_checkpoint_begin(&options, &scope));
    yoke_memory_budget_release(budget); /* its scope goes on */
    OK(yoke_checkpoint_end(scope));
    yoke_checkpoint_release(scope);
}

static void budgets_that_are_none_are_refused(void)
{
    const char *const amounts[] = {"",   "0",   "-1",  "nan",  "inf",  "2",   "1e-3", "GiB",
                                   "0B", "0,5", "50%", "2Gub", " 1KB", "+1B", "0x1B"};
    yoke_memory_budget *budget = (yoke_memory_budget *)&amounts;
    yoke_memory_budget_figures figures = {.struct_size = 0};
    for (size_t i = 0; i < sizeof amounts / sizeof amounts[0]; ++i) {
        FAILS(yoke_memory_budget_create(amounts[i], &budget), YOKE_E_VALUE, "'amount'");
        CHECK(budget == NULL);
    }
    FAILS(yoke_memory_budget_create(NULL, &budget), YOKE_E_VALUE, "amount");
    FAILS(yoke_memory_budget_create("0.5", NULL), YOKE_E_VALUE, "'out'");
    FAILS(yoke_memory_budget_report(NULL, &figures), YOKE_E_VALUE, "'budget'");
    OK(yoke_memory_budget_create("0.5", &budget));
    FAILS(yoke_memory_budget_report(budget, &figures), YOKE_E_VALUE, "struct_size");
    FAILS(yoke_memory_budget_report(budget, NULL), YOKE_E_VALUE, "figures");
    yoke_memory_budget_release(budget);
    yoke_memory_budget_release(NULL);
    yoke_checkpoint_options options = under(NULL);
    yoke_checkpoint *scope = NULL;
    FAILS(yoke_checkpoint_begin(&options, &scope), YOKE_E_VALUE, "'budget' is NULL");
}

int main(void)
{
    RUN(budgets_change_no_bit_and_count_their_steps);
    RUN(a_budget_has_one_forward_at_a_time);
    RUN(budgets_that_are_none_are_refused);
    return report();
}
