--- PyTorch's words for backends.allow_tf32.
local core = require "yoke.core"

local precision = {}
local words = { highest = false, high = true, medium = true }
local word = "high" -- the last of the two words for TF32

--- "highest" turns TF32 off; "high" and "medium" turn it on.
function precision.set_float32_matmul_precision(name)
    if words[name] == nil then
        core.raise("value", "set_float32_matmul_precision", ("argument 'precision' is '%s'; it must be \"highest\", \"high\" or \"medium\""):format(tostring(name)))
    end
    if words[name] then word = name end
    core.set_allow_tf32(words[name])
end

--- "highest", unless TF32 is on; then the word that turned it on, or "high".
function precision.get_float32_matmul_precision()
    return core.get_allow_tf32() and word or "highest"
end

return precision
