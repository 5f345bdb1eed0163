-- One call of each op of core/ops/reduce and what it must give.
local yoke = require "yoke"
local t = yoke.tensor

return {
}
