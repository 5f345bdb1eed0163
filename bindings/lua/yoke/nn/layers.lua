--- Linear, Embedding, Dropout, Identity, Flatten, Unflatten.
local core = require "yoke.core"
local base = require "yoke.nn.module"
local options = require "yoke.options"

local layers = {}
local Module, Parameter, none = base.Module, base.Parameter, base.none

--- nn.Linear(in_features, out_features, {bias = true, dtype =, device =}): x times weight transposed, plus
--- bias. Both start uniform in ±1/√in_features; weight is drawn before bias.
layers.Linear = Module:extend("Linear")

function layers.Linear:init(in_features, out_features, options)
    base.positive("Linear", { "in_features", in_features }, { "out_features", out_features })
    options = base.options("Linear", options, { bias = true, dtype = none, device = none })
    self.in_features, self.out_features = in_features, out_features
    local bound = 1 / math.sqrt(in_features)
    local function uniform(shape)
        local x = core.rand(shape, { dtype = options.dtype, device = options.device })
        return Parameter(x * (2 * bound) - bound)
    end
    self.weight = uniform { out_features, in_features }
    self:register_parameter("bias", options.bias ~= false and uniform { out_features } or nil)
end

function layers.Linear:forward(x) return core.linear(x, self.weight, self.bias) end

function layers.Linear:extra()
    return ("in_features=%d, out_features=%d, bias=%s"):format(self.in_features, self.out_features, self.bias ~= nil)
end

-- Returns the row of padding, counted from the first row.
local function row_of(call, padding, count)
    if not padding then return nil end
    if math.type(padding) ~= "integer" or padding < -count or padding >= count then
        core.raise("index", call, ("argument 'padding_idx' is %s; for %d rows it must be %d to %d"):format(padding, count, -count, count - 1))
    end
    return padding % count
end

--- nn.Embedding(num_embeddings, embedding_dim, {padding_idx =, dtype =, device =}): a row of weight for each
--- index. weight starts normal; row padding_idx starts as zeros and gets no gradient.
layers.Embedding = Module:extend("Embedding")

function layers.Embedding:init(num_embeddings, embedding_dim, options)
    base.positive("Embedding", { "num_embeddings", num_embeddings }, { "embedding_dim", embedding_dim })
    options = base.options("Embedding", options, { padding_idx = none, dtype = none, device = none })
    self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
    self.padding_idx = row_of("Embedding", options.padding_idx, num_embeddings)
    local weight = core.randn({ num_embeddings, embedding_dim }, { dtype = options.dtype, device = options.device })
    if self.padding_idx then weight[self.padding_idx] = 0.0 end
    self.weight = Parameter(weight)
end

local Given = layers.Embedding:extend("Embedding")

function Given:init(embeddings, named)
    self.num_embeddings, self.embedding_dim = embeddings.shape[1], embeddings.shape[2]
    self.padding_idx = row_of("from_pretrained", named.padding_idx, self.num_embeddings)
    self.weight = Parameter(embeddings):requires_grad_(not named.freeze)
end

--- nn.Embedding.from_pretrained(embeddings, {freeze = true, padding_idx =}): a layer with the rows of a tensor
--- [num_embeddings, embedding_dim] as weight, in the same memory. freeze: the rows are not trained.
function layers.Embedding.from_pretrained(embeddings, given)
    local named = base.options("from_pretrained", given, { freeze = true, padding_idx = none })
    local x = base.need_tensor("from_pretrained", embeddings)
    if x.ndim ~= 2 or x.numel == 0 then
        core.raise("value", "from_pretrained", ("argument 'embeddings' has shape [%s]; it must be [num_embeddings, embedding_dim], both of at least 1"):format(table.concat(x.shape, ", ")))
    end
    return Given(x, named)
end

function layers.Embedding:forward(index) return core.embedding(index, self.weight, self.padding_idx) end

function layers.Embedding:extra() return ("%d, %d"):format(self.num_embeddings, self.embedding_dim) end

--- nn.Dropout{p = 0.5} or nn.Dropout(0.5): zeroes elements with probability p while training, and scales the rest by 1
--- / (1 - p).
layers.Dropout = Module:extend("Dropout")

function layers.Dropout:init(...)
    self.p = base.read("Dropout", { { "p", 0.5 } }, ...)
    if not (self.p and self.p >= 0 and self.p <= 1) then
        core.raise("value", "Dropout", ("argument 'p' is %s; it must be a probability between 0 and 1"):format(self.p))
    end
end

function layers.Dropout:forward(x) return core.dropout(x, self.p, self.training) end

function layers.Dropout:extra() return "p=" .. self.p end

--- nn.Identity(...): returns its argument, in the place of a layer that is not there. It takes any arguments, and uses
--- none.
layers.Identity = Module:extend("Identity")

function layers.Identity:init(...) end

function layers.Identity:forward(x) return x end

--- nn.Flatten{start_dim = 1, end_dim = -1}, or in order: joins these axes and those between; [N, …] becomes [N, rest].
layers.Flatten = Module:extend("Flatten")

function layers.Flatten:init(...)
    self.start_dim, self.end_dim = base.read("Flatten", { { "start_dim", 1 }, { "end_dim", -1 } }, ...)
    for _, name in ipairs { "start_dim", "end_dim" } do
        if not math.tointeger(self[name]) then
            core.raise("type", "Flatten", ("option '%s' is %s; it takes an integer"):format(name, self[name]))
        end
    end
end

-- Returns the axis that the field `name` says, counted from 1.
local function axis_of(self, name, shape)
    local axis, count = self[name], #shape
    if axis < -count or axis >= count then
        core.raise("index", "Flatten", ("argument '%s' is %d; for x of %d axes it must be %d to %d"):format(name, axis, count, -count, count - 1))
    end
    return axis % count + 1
end

function layers.Flatten:forward(x)
    local shape = #x.shape > 0 and x.shape or { 1 } -- a single number becomes an axis of its own
    local first, last = axis_of(self, "start_dim", shape), axis_of(self, "end_dim", shape)
    if first > last then
        core.raise("value", "Flatten", ("argument 'start_dim' is %d and 'end_dim' is %d; for x of %d axes 'start_dim' must not come after 'end_dim'"):format(self.start_dim, self.end_dim, #shape))
    end
    local flat, joined = {}, 1
    for i = 1, first - 1 do flat[i] = shape[i] end
    for i = first, last do joined = joined * shape[i] end
    flat[first] = joined
    for i = last + 1, #shape do flat[#flat + 1] = shape[i] end
    return core.reshape(x, flat)
end

function layers.Flatten:extra() return ("start_dim=%d, end_dim=%d"):format(self.start_dim, self.end_dim) end

--- nn.Unflatten(dim, sizes): cuts an axis into several with these lengths; a single -1 is found.
layers.Unflatten = Module:extend("Unflatten")

function layers.Unflatten:init(dim, unflattened_size)
    if not math.tointeger(dim) then
        core.raise("type", "Unflatten", ("argument 'dim' is %s; it takes an integer"):format(options.shown(dim)))
    elseif type(unflattened_size) ~= "table" or getmetatable(unflattened_size) then
        core.raise("type", "Unflatten", ("argument 'unflattened_size' is %s; it takes a list of lengths"):format(options.shown(unflattened_size)))
    end
    self.dim, self.unflattened_size = dim, unflattened_size
end

function layers.Unflatten:forward(x) return core.unflatten(x, self.dim, self.unflattened_size) end

function layers.Unflatten:extra()
    return ("dim=%d, unflattened_size={%s}"):format(self.dim, table.concat(self.unflattened_size, ", "))
end

return layers
