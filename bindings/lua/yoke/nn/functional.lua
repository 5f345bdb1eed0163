--- PyTorch's words for ops of networks: functional.relu is yoke.relu.
local missing = require "yoke.missing"

local names = [[adaptive_avg_pool2d avg_pool2d batch_norm binary_cross_entropy binary_cross_entropy_with_logits conv1d conv2d
conv_transpose2d cosine_similarity cross_entropy dropout elu elu_ embedding gelu group_norm interpolate kl_div l1_loss layer_norm
leaky_relu leaky_relu_ linear log_softmax max_pool2d mse_loss nll_loss normalize one_hot pad pixel_shuffle pixel_unshuffle relu relu_
rms_norm scaled_dot_product_attention sigmoid silu smooth_l1_loss softmax softplus tanh unfold]]

local functional, yoke = {}, require "yoke"
for name in names:gmatch "%S+" do functional[name] = rawget(yoke, name) end

return missing.module("nn.functional", functional)
