// ema.h: an exponential moving average of parameters, which often predicts better than the parameters themselves.
//
// The average begins as a copy of the parameters. Averages of half parameters are kept in float32, where a small
// weight still counts. An average serves a single thread at a time.
#pragma once

#include "core/base/turn.h"
#include "core/tensor/tensor.h"

#include <vector>

struct yoke_ema final : public yoke::RefCounted {
    // Begins averages as copies of the parameters. Raises YOKE_E_TYPE for a parameter that is not floating, and
    // YOKE_E_VALUE for an empty list, several devices, or a decay outside [0, 1].
    yoke_ema(yoke::TensorList params, double decay);
    yoke::Turns turns;

    // Sets the averages to decay * averages + (1 - decay) * parameters, in a single launch. Raises YOKE_E_STATE
    // between two swaps.
    void update();
    // Puts the averages into the parameters. Raises YOKE_E_STATE between two swaps.
    void copy_to_params();
    // Puts the averages into the parameters, for an evaluation. The next call puts the parameters' own values back.
    // The averages do not change.
    void swap();

    size_t count() const { return params_.size(); }
    double decay() const { return decay_; }
    // Returns the average of a parameter. Raises YOKE_E_INDEX for an unknown index.
    const yoke::Tensor &average(int64_t index) const;
    // Replaces decay and averages; the averages are copied. Raises YOKE_E_STATE between two swaps, and YOKE_E_VALUE
    // or TYPE if an argument does not fit the parameters. After an error, nothing has changed.
    void load(double decay, const std::vector<yoke::Tensor> &averages);

private:
    void need_own_values(const char *call, const char *why) const;
    void put_averages();
    void follow_params();

    std::vector<yoke::Tensor> params_, averages_;
    std::vector<yoke::Tensor> kept_;  // the parameters' own values during a swap
    double decay_;
};
