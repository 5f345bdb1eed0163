--- Attention and the transformer block.
local core = require "yoke.core"
local base = require "yoke.nn.module"
local layers = require "yoke.nn.layers"
local norm = require "yoke.nn.norm"

local attention = {}
local none = base.none

local function check_places(x, width, call, name)
    local shape = x.shape
    if #shape ~= 3 or shape[3] ~= width then
        core.raise("value", call, ("argument 'x' has shape [%s]; it must be [N, length, %s] with %s %d; unsqueeze(0) makes a batch of one sequence"):format(table.concat(shape, ", "), name, name, width))
    end
end

--- nn.MultiheadAttention(embed_dim, num_heads, {num_kv_heads =, bias = true, dropout = 0, causal = false, dtype =,
--- device =}): self-attention over x [N, length, embed_dim].
---
--- One product with `qkv` gives queries, keys and values, heads of queries first. With num_kv_heads below num_heads
--- several heads of queries share a head of keys and values. In a causal layer each place sees itself and earlier
--- places.
attention.MultiheadAttention = base.Module:extend("MultiheadAttention")

function attention.MultiheadAttention:init(embed_dim, num_heads, options)
    local call = "MultiheadAttention"
    options = base.options(call, options,
        { num_kv_heads = num_heads, bias = true, dropout = 0.0, causal = false, dtype = none, device = none })
    local kv_heads = options.num_kv_heads
    base.positive(call, { "embed_dim", embed_dim }, { "num_heads", num_heads }, { "num_kv_heads", kv_heads })
    if embed_dim % num_heads ~= 0 or num_heads % kv_heads ~= 0 then
        core.raise("value", call, ("arguments 'embed_dim', 'num_heads' and 'num_kv_heads' are %d, %d and %d; 'num_heads' must divide 'embed_dim' evenly, and 'num_kv_heads' must divide 'num_heads'"):format(embed_dim, num_heads, kv_heads))
    end
    self.embed_dim, self.num_heads, self.num_kv_heads = embed_dim, num_heads, kv_heads
    self.head_dim, self.dropout, self.causal = embed_dim // num_heads, options.dropout, options.causal
    local linear = { bias = options.bias, dtype = options.dtype, device = options.device }
    self.qkv = layers.Linear(embed_dim, (num_heads + 2 * kv_heads) * self.head_dim, linear)
    self.out = layers.Linear(embed_dim, embed_dim, linear)
end

--- `mask` [length, length], or with axes for N and heads before: bool keeps what is true, floating is added.
function attention.MultiheadAttention:forward(x, mask)
    check_places(x, self.embed_dim, "MultiheadAttention", "embed_dim")
    local n, length = x.shape[1], x.shape[2]
    local q, kv = self.num_heads, self.num_kv_heads
    local heads = self.qkv(x):reshape { n, length, q + 2 * kv, self.head_dim }
    local parts = heads:split({ q, kv, kv }, 2)
    for i, part in ipairs(parts) do parts[i] = part:transpose(1, 2) end
    local y = core.scaled_dot_product_attention(parts[1], parts[2], parts[3], { mask = mask,
        dropout_p = self.training and self.dropout or 0.0, is_causal = self.causal, enable_gqa = q ~= kv })
    return self.out(y:transpose(1, 2):reshape { n, length, self.embed_dim })
end

function attention.MultiheadAttention:extra()
    return ("embed_dim=%d, num_heads=%d, num_kv_heads=%d, causal=%s"):format(self.embed_dim, self.num_heads,
        self.num_kv_heads, self.causal)
end

--- nn.TransformerBlock(width, num_heads, {num_kv_heads =, hidden = 4 * width, dropout = 0, causal = false, activation
--- = "gelu", dtype =, device =}): x + attention(norm(x)), then x + mlp(norm(x)). The MLP has its activation in the
--- product: see yoke.linear.
---
--- Each addition runs in one pass with the following norm. block(x, mask, true) leaves the last addition to the next
--- layer: it returns a list of the two summands. The next block takes the list for x, or a LayerNorm takes it,
--- unpacked, at the end.
attention.TransformerBlock = base.Module:extend("TransformerBlock")

function attention.TransformerBlock:init(width, num_heads, options)
    base.positive("TransformerBlock", { "width", width }, { "num_heads", num_heads })
    options = base.options("TransformerBlock", options, { num_kv_heads = num_heads, hidden = 4 * width, dropout = 0.0,
        causal = false, activation = "gelu", dtype = none, device = none })
    local where = { dtype = options.dtype, device = options.device }
    self.activation = options.activation
    self.norm1 = norm.LayerNorm(width, where)
    self.attention = attention.MultiheadAttention(width, num_heads, { num_kv_heads = options.num_kv_heads,
        dropout = options.dropout, causal = options.causal, dtype = options.dtype, device = options.device })
    self.norm2 = norm.LayerNorm(width, where)
    self.up = layers.Linear(width, options.hidden, where)
    self.down = layers.Linear(options.hidden, width, where)
    self.dropout = layers.Dropout(options.dropout)
end

function attention.TransformerBlock:forward(x, mask, hand_on)
    local is_pair = type(x) == "table"
    for _, part in ipairs(is_pair and x or { x }) do
        check_places(part, self.attention.embed_dim, "TransformerBlock", "width")
    end
    local stream, y = x, nil
    if is_pair then stream, y = self.norm1(x[1], x[2]) else y = self.norm1(x) end
    stream, y = self.norm2(self.dropout(self.attention(y, mask)), stream)
    y = self.dropout(self.down(core.linear(y, self.up.weight, self.up.bias, self.activation)))
    return hand_on and { y, stream } or stream + y
end

return attention
