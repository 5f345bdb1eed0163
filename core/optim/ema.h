// ema.h: an exponential moving average of parameters, which often predicts better than the parameters themselves.
//
// The average begins as a copy of the parameters. Averages of half parameters are kept in float32, where a small
// weight still counts. An average serves a single thread at a time.
#pragma once

#include "core/base/turn.h"
#include "core/tensor/tensor.h"

#include <vector>

struct yoke_ema final : public yoke::RefCounted {
    // Parameters are floating tensors on one device. Raises YOKE_E_VALUE or TYPE.
    yoke_ema(yoke::TensorList params, double decay);
    yoke::Turns turns;

    // averages = decay * averages + (1 - decay) * parameters, in one launch. Raises YOKE_E_STATE between two swaps.
    void update();
    // Puts the averages into the parameters. Raises YOKE_E_STATE between two swaps.
    void copy_to_params();
    // Puts the averages into the parameters, and at the next call the parameters' own values back: before an
    // evaluation, and afterwards. The averages do not change.
    void swap();

    size_t count() const { return params_.size(); }
    double decay() const { return decay_; }
    // Raises YOKE_E_INDEX.
    const yoke::Tensor &average(int64_t index) const;
    // Goes on with copies of other averages, of the same shapes, or changes nothing. Raises YOKE_E_STATE between two
    // swaps.
    void load(double decay, const std::vector<yoke::Tensor> &averages);

private:
    void need_own_values(const char *call, const char *why) const;
    void put_averages();
    void follow_params();

    std::vector<yoke::Tensor> params_, averages_;
    std::vector<yoke::Tensor> kept_;  // the parameters' own values during a swap
    double decay_;
};
