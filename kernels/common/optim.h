// One optimizer step for one element; kernels run it over every parameter in a single pass.
//
// Contract: State and arithmetic are in compute_type of the parameter, or of its f32 master copy.
// On the first step the momentum buffer's old content is not read, so it need not be initialised.
#pragma once

#include "kernels/common/numeric.h"

YOKE_KERNELS_BEGIN

// Stochastic gradient descent with momentum (no dampening), as in I. Sutskever et al., "On the
// importance of initialization and momentum in deep learning", 2013, in PyTorch's form: the
// learning rate multiplies the buffer.
template <class T>
struct Sgd {
    T learning_rate;
    T momentum;
    T weight_decay;
    bool nesterov;
    bool first_step;

    // Without decay the parameter is left out, not multiplied by 0: an infinite one must not spoil
    // the gradient.
    YOKE_HD T decayed(T parameter, T gradient) const
    {
        return select(weight_decay != (T)0, gradient + weight_decay * parameter, gradient);
    }

    // Without momentum: no buffer.
    YOKE_HD T operator()(T parameter, T gradient) const
    {
        return parameter - learning_rate * decayed(parameter, gradient);
    }

    YOKE_HD T operator()(T parameter, T gradient, T &buffer) const
    {
        T g = decayed(parameter, gradient);
        buffer = select(first_step, g, momentum * buffer + g);
        return parameter - learning_rate * select(nesterov, g + momentum * buffer, buffer);
    }
};

YOKE_KERNELS_END
