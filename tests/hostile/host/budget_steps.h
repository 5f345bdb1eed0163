/* Steps under a memory budget, for allocations.c: a learning step, and two steps by the plan. */
#pragma once

#include <stdlib.h>

#include "tests/capi/check.h"

/* Gives up at the first failure, with its status. */
#define TRY(call)                     \
    do {                              \
        if (!status) status = (call); \
    } while (0)

static const int64_t kShape[] = {48, 48};
static yoke_tensor *g_x, *g_weight;

/* Runs a forward under a budget, with all of its parts: sum(relu(...(x @ w)...)). Checks the gradient. */
static yoke_status walk_within(yoke_memory_budget *budget, yoke_tensor *w)
{
    yoke_status status = YOKE_OK;
    const yoke_checkpoint_options options = {
        .struct_size = sizeof options, .policy = "budget", .budget = budget};
    yoke_tensor *y = NULL, *z = NULL, *loss = NULL, *grad = NULL, *sum = NULL;
    yoke_checkpoint *scope = NULL;
    double value = 0;
    TRY(yoke_checkpoint_begin(&options, &scope));
    TRY(yoke_matmul(g_x, w, &y));
    for (int i = 0; i < 4; ++i) {
        TRY(yoke_relu(y, &z));
        yoke_tensor_release(y);
        y = NULL;
        TRY(yoke_mul(z, g_x, &y));
        yoke_tensor_release(z);
        z = NULL;
    }
    TRY(yoke_add_(y, g_x));
    TRY(yoke_sum(y, NULL, 0, 0, YOKE_NONE, &loss));
    if (scope && !status) TRY(yoke_checkpoint_end(scope));
    yoke_checkpoint_release(scope);
    if (yoke_checkpoint_current()) abort();
    yoke_tensor_release(y);
    TRY(yoke_backward(loss, NULL, 0));
    TRY(yoke_tensor_grad(w, &grad));
    TRY(yoke_sum(grad, NULL, 0, 0, YOKE_NONE, &sum));
    if (!status) TRY(yoke_tensor_item_f64(sum, &value));
    if (!status && value != 48.0 * 48 * 48) abort();
    yoke_tensor_release(sum);
    yoke_tensor_release(grad);
    yoke_tensor_release(loss);
    return status;
}

/* Runs a learning step and two following steps. After any failure the budget must work in the next step. */
static yoke_status budget_steps(void)
{
    yoke_status status = YOKE_OK;
    yoke_memory_budget *budget = NULL;
    yoke_tensor *w = NULL;
    TRY(yoke_memory_budget_create("0.6", &budget));
    yoke_memory_budget_figures figures = {.struct_size = sizeof figures};
    for (int step = 0; step < 3 && !status; ++step) {
        TRY(yoke_ones(kShape, 2, YOKE_F32, NULL, &w));
        TRY(yoke_tensor_set_requires_grad(w, 1));
        TRY(walk_within(budget, w));
        yoke_tensor_release(w);
        w = NULL;
    }
    TRY(yoke_memory_budget_report(budget, &figures));
    /* A failing allocation fails once only. */
    for (int step = 0; step < 2 && status == YOKE_E_OOM && budget; ++step) {
        if (yoke_ones(kShape, 2, YOKE_F32, NULL, &w)) abort();
        if (yoke_tensor_set_requires_grad(w, 1) || walk_within(budget, w)) abort();
        yoke_tensor_release(w);
        w = NULL;
    }
    yoke_memory_budget_release(budget);
    return status;
}
