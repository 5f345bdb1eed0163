--- Losses as modules: nn.CrossEntropyLoss{options}(x, target). Options are the op's, for example reduction = "mean",
--- "sum" or "none"; docs/ops.md has the list. A weight of the classes is a buffer.
local core = require "yoke.core"
local base = require "yoke.nn.module"

local loss = {}

local defaults = {
    CrossEntropyLoss = { reduction = "mean", ignore_index = -100, label_smoothing = 0.0, weight = base.none },
    NLLLoss = { reduction = "mean", ignore_index = -100, weight = base.none },
    MSELoss = { reduction = "mean" },
    L1Loss = { reduction = "mean" },
    SmoothL1Loss = { reduction = "mean", beta = 1.0 },
    KLDivLoss = { reduction = "mean", log_target = false },
}
local ops = {
    CrossEntropyLoss = "cross_entropy", NLLLoss = "nll_loss", MSELoss = "mse_loss", L1Loss = "l1_loss",
    SmoothL1Loss = "smooth_l1_loss", KLDivLoss = "kl_div",
}

for name, known in pairs(defaults) do
    local class, op = base.Module:extend(name), ops[name]
    loss[name] = class
    function class:init(options)
        local own = base.options(name, options, known)
        if own.weight then self:register_buffer("weight", own.weight) end -- moves with the module
        own.weight = nil
        self.options = own
    end

    if known.weight then
        function class:forward(x, target) return core[op](x, target, self.weight, self.options) end
    else
        function class:forward(x, target) return core[op](x, target, self.options) end
    end
end

--- nn.BCEWithLogitsLoss{weight =, reduction = "mean", pos_weight =}: cross entropy of sigmoid(x) and target;
--- weight and pos_weight are buffers.
loss.BCEWithLogitsLoss = base.Module:extend("BCEWithLogitsLoss")

function loss.BCEWithLogitsLoss:init(options)
    options = base.options("BCEWithLogitsLoss", options, { reduction = "mean", weight = base.none, pos_weight = base.none })
    self.reduction = options.reduction
    if options.weight then self:register_buffer("weight", options.weight) end
    if options.pos_weight then self:register_buffer("pos_weight", options.pos_weight) end
end

function loss.BCEWithLogitsLoss:forward(x, target)
    return core.binary_cross_entropy_with_logits(x, target,
        { weight = self.weight, reduction = self.reduction, pos_weight = self.pos_weight })
end

return loss
