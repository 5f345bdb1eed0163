// Attention: the arithmetic of one row, forward and backward, in the type it is computed in.
//
// Contract
//  * Scores are q . k * scale + mask, and -infinity where the mask is that. What a forbidden pair holds, infinity and
//    NaN too, has no influence: in a launch that can forbid pairs a weight of 0 adds nothing to a sum.
//  * A row's maximum and sum are carried from one block of keys to the next (T. Dao, D. Fu, S. Ermon, A. Rudra, C. Ré,
//    "FlashAttention", 2022); what was summed before is multiplied by attention_rescale when the maximum grows.
//  * A row of which no key is allowed (every score is -infinity, or there are no keys) gives zeros
//    and passes no gradient: its log-sum-exp is kept as +infinity, under which every probability
//    is 0.
//  * Dropout acts on the probabilities, after they were normalised. Its mask is a draw of `Keep`
//    (philox.h) whose element is attention_draw; it is drawn again for the gradient.
#pragma once

#include "kernels/common/math.h"

YOKE_KERNELS_BEGIN

// What is subtracted from scores before exp, so that -infinity less -infinity never occurs.
template <class C>
YOKE_HD C attention_shift(C max)
{
    return select(max == -(C)kInfinity, (C)0, max);
}

// The score of a pair with what the mask says of it.
template <class C>
YOKE_HD C attention_masked(C score, C term)
{
    return select(term == -(C)kInfinity, term, score + term);
}

// What is not finite, and so would make NaN of a weight of 0.
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

// From the gradient of a probability; `dot` is that of the row's result with its gradient.
template <class C>
YOKE_HD C attention_score_backward(C probability, C gradient, C dot)
{
    return select(probability == (C)0, (C)0, probability * (gradient - dot));
}

// The element of dropout's draw for a pair of query and key. Queries are padded to whole blocks of
// the draw, so that neighbouring queries share one.
YOKE_HD int64_t attention_draw(int64_t head, int64_t key, int64_t query, int64_t keys,
                               int64_t queries)
{
    return (head * keys + key) * ((queries + 3) / 4 * 4) + query;
}

YOKE_KERNELS_END
