// Attention: the arithmetic of one row, forward and backward, in the computing type.
//
// Contract
//  * A score is q . k * scale + mask. If the mask is -infinity, the score is -infinity. The values of a forbidden
//    pair, also infinity and NaN, have no influence: in a launch with forbidden pairs, a weight of 0 adds 0 to a sum.
//  * A row's maximum and sum are carried from one block of keys to the next (T. Dao, D. Fu, S. Ermon, A. Rudra, C.
//    Ré, "FlashAttention", 2022). When the maximum grows, the earlier sums are multiplied by attention_rescale.
//  * A row may have no allowed key: every score is -infinity, or there are no keys. Then the row gives zeros and
//    passes no gradient. Its log-sum-exp is kept as +infinity, so every probability is 0.
//  * Dropout acts on the normalised probabilities. Its mask is a draw of `Keep` (philox.h), indexed by
//    attention_draw. The backward pass draws the mask again.
#pragma once

#include "kernels/common/math.h"

YOKE_KERNELS_BEGIN

// Returns the number subtracted from scores before exp. If the maximum is -infinity, the number is 0, so -infinity
// less -infinity never occurs.
template <class C>
YOKE_HD C attention_shift(C max)
{
    return select(max == -(C)kInfinity, (C)0, max);
}

// Returns the score of a pair plus the mask's term. If the term is -infinity, returns -infinity, even for a score of
// NaN.
template <class C>
YOKE_HD C attention_masked(C score, C term)
{
    return select(term == -(C)kInfinity, term, score + term);
}

// Returns whether x is infinite or NaN. The product of such an x and a weight of 0 is NaN.
template <class C>
YOKE_HD bool is_stray(C x)
{
    return !(x - x == (C)0);
}

template <class C>
YOKE_HD C attention_weight(C score, C shift)
{
    return kernels::exp(score - shift);
}

template <class C>
YOKE_HD C attention_rescale(C old_max, C new_shift)
{
    return kernels::exp(old_max - new_shift);
}

template <class C>
YOKE_HD C attention_normaliser(C sum)
{
    return select(sum == (C)0, (C)0, (C)1 / sum);
}

template <class C>
YOKE_HD C attention_log_sum_exp(C max, C sum)
{
    return select(sum == (C)0, (C)kInfinity, max + kernels::log(sum));
}

template <class C>
YOKE_HD C attention_probability(C score, C log_sum_exp)
{
    return select(score == -(C)kInfinity, (C)0, kernels::exp(score - log_sum_exp));
}

// Returns the gradient of a score from the gradient of its probability; 0 if the probability is 0. `dot` is the dot
// product of the row's result and the result's gradient.
template <class C>
YOKE_HD C attention_score_backward(C probability, C gradient, C dot)
{
    return select(probability == (C)0, (C)0, probability * (gradient - dot));
}

// Returns the index, in dropout's draw, of the element for a pair of query and key. Queries are padded to whole
// blocks of the draw, so neighbouring queries share a block.
YOKE_HD int64_t attention_draw(int64_t head, int64_t key, int64_t query, int64_t keys,
                               int64_t queries)
{
    return (head * keys + key) * ((queries + 3) / 4 * 4) + query;
}

YOKE_KERNELS_END
