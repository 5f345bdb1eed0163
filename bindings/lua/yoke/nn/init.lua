--- yoke.nn: layers in plain Lua. A new class:
---
---     local Net = nn.Module:extend("Net")
---     function Net:init(width)
---         self.hidden = nn.Linear(784, width)
---         self.out = nn.Linear(width, 10)
---     end
---     function Net:forward(x) return self.out(self.hidden(x):relu()) end
---     local net = Net(512)
---
--- A tensor that requires grad, or a module, becomes a member at its assignment; members keep the order of their
--- first assignment. parameters() lists a module's own first, then the parameters of its inner modules.
---
--- Initial values are drawn in the same order in the Python and C programs; nn.init has other ways to fill a tensor.
local base = require "yoke.nn.module"

local nn = { Module = base.Module, Parameter = base.Parameter, init = require "yoke.nn.schemes" }
for _, part in ipairs { "layers", "norm", "conv", "activation", "containers", "attention", "loss" } do
    for name, class in pairs(require("yoke.nn." .. part)) do nn[name] = class end
end

return require "yoke.missing".module("nn", nn,
    { functional = "yoke.nn.functional", parallel = "yoke.nn.parallel", utils = "yoke.nn.utils" })
