-- The layers of yoke.nn beyond Linear, buffers, containers, losses and init schemes.
local yoke = require "yoke"
local support = dofile "tests/lua/support.lua"
local it, fails, close_to = support.leak_free(it), support.fails, support.close_to
local nn = yoke.nn

local function same(a, b, tolerance) assert.is_true(close_to(a:tolist(), b:tolist(), tolerance or 1e-5)) end

local function names(iterator)
    local list = {}
    for name in iterator do list[#list + 1] = name end
    return list
end

describe("norms", function()
    it("are their ops with weights of ones and biases of zeros", function()
        local x = yoke.randn { 4, 6, 5 }
        same(nn.LayerNorm(5)(x), x:layer_norm { 5 })
        same(nn.LayerNorm({ 6, 5 }, { eps = 0.1 })(x), x:layer_norm({ 6, 5 }, { eps = 0.1 }))
        same(nn.RMSNorm(5)(x), x:rms_norm { 5 })
        same(nn.GroupNorm(2, 6)(x), x:group_norm(2))
        assert.same({ 6, 5 }, nn.LayerNorm({ 6, 5 }).weight.shape)
        assert.is_nil(nn.LayerNorm(5, { bias = false }).bias)
        assert.equal(0, #nn.LayerNorm(5, { elementwise_affine = false }):parameters())
    end)

    it("keep running statistics of batches and use them in evaluation", function()
        for _, case in ipairs { { nn.BatchNorm1d, { 8, 3 } }, { nn.BatchNorm2d, { 4, 3, 2, 5 } } } do
            local layer, x = case[1](3, { momentum = 0.25 }), yoke.randn(case[2])
            local flat = x:transpose(0, 1):reshape { 3, -1 }
            layer(x)
            same(layer.running_mean, flat:mean(1) * 0.25)
            same(layer.running_var, flat:var(1) * 0.25 + 0.75)
            assert.equal(1, layer.num_batches_tracked:item())
            layer:eval()
            same(layer(x), yoke.batch_norm(x, layer.running_mean, layer.running_var, layer.weight, layer.bias))
            assert.same({ "running_mean", "running_var", "num_batches_tracked" }, names(layer:named_buffers()))
        end
        local average, a, b = nn.BatchNorm1d(2, { momentum = false }), yoke.randn { 6, 2 }, yoke.randn { 6, 2 }
        average(a)
        average(b)
        same(average.running_mean, (a:mean(0) + b:mean(0)) / 2)
        fails("value", { "[2, 3]", "[N, C, H, W]" }, nn.BatchNorm2d(3), yoke.ones { 2, 3 })
    end)

    it("pass a ReLU, and a residual before it, in one pass", function()
        local plain, fused = nn.BatchNorm2d(3), nn.BatchNorm2d(3, { relu = true })
        local x, residual = yoke.randn { 4, 3, 2, 5 }, yoke.randn { 4, 3, 2, 5 }
        assert.same((plain(x) + residual):relu():tolist(), fused(x, residual):tolist())
        assert.same(plain(x):relu():tolist(), fused(x):tolist())
        assert.same(plain.running_var:tolist(), fused.running_var:tolist())
        assert.is_truthy(tostring(fused):find("relu=true", 1, true))
        fails("value", { "residual", "relu = false" }, plain, x, residual)
    end)

    it("norm a sum and give both", function()
        local layer, x, residual = nn.LayerNorm(5), yoke.randn { 4, 5 }, yoke.randn { 4, 5 }
        local total, y = layer(x, residual)
        assert.same((x + residual):tolist(), total:tolist())
        assert.same(layer(x + residual):tolist(), y:tolist())
        yoke.autocast("bfloat16", function()
            total, y = layer(x:to "bfloat16", residual)
            assert.same({ "float32", "bfloat16" }, { tostring(total.dtype), tostring(y.dtype) })
            total, y = layer(x:to "bfloat16", residual:to "bfloat16")
            assert.same({ "bfloat16", "float32" }, { tostring(total.dtype), tostring(y.dtype) })
        end)
    end)
end)

describe("nn.Embedding", function()
    it("gives the rows that indices name, and its padding learns nothing", function()
        yoke.manual_seed(5)
        local layer = nn.Embedding(6, 3, { padding_idx = -1 })
        yoke.manual_seed(5)
        local drawn = yoke.randn { 6, 3 }
        same(layer.weight:slice(0, 0, 5), drawn:slice(0, 0, 5), 0)
        assert.same({ 0.0, 0.0, 0.0 }, layer.weight[5]:tolist())
        layer(yoke.tensor { { 1, 5 }, { 1, 2 } }):sum():backward()
        assert.same({ 0.0, 2.0, 1.0, 0.0, 0.0, 0.0 }, layer.weight.grad:sum(1):div(3.0):tolist())
        fails("index", { "'padding_idx' is 6", "6 rows", "-6 to 5" }, nn.Embedding, 6, 3, { padding_idx = 6 })
        fails("index", "6", layer, yoke.tensor { 6 })
    end)

    it("takes given rows, and trains them only if asked", function()
        local rows = yoke.randn { 5, 3 }
        local layer = nn.Embedding.from_pretrained(rows)
        assert.same({ 5, 3, false }, { layer.num_embeddings, layer.embedding_dim, layer.weight.requires_grad })
        assert.is_true(yoke.shares_memory(layer.weight, rows))
        assert.equal(1, #layer:parameters())
        assert.equal("Embedding(5, 3)", tostring(layer))
        local trained = nn.Embedding.from_pretrained(rows, { freeze = false, padding_idx = -1 })
        trained(yoke.tensor { 4, 1 }):sum():backward()
        assert.same({ 0.0, 1.0, 0.0, 0.0, 0.0 }, trained.weight.grad:sum(1):div(3.0):tolist())
        fails("value", { "from_pretrained", "'embeddings' has shape [3]; it must be [num_embeddings, embedding_dim]" }, nn.Embedding.from_pretrained, yoke.ones(3))
        fails("index", { "from_pretrained", "'padding_idx' is 9; for 5 rows" }, nn.Embedding.from_pretrained, rows, { padding_idx = 9 })
    end)
end)

describe("attention", function()
    it("is scaled_dot_product_attention of each head", function()
        for _, kv in ipairs { 4, 2, 1 } do
            local layer, x = nn.MultiheadAttention(32, 4, { num_kv_heads = kv, causal = true }), yoke.randn { 2, 5, 32 }
            local heads = layer.qkv(x):reshape { 2, 5, 4 + 2 * kv, 8 }:transpose(1, 2)
            local function repeated(first)
                local parts = {}
                for i = 0, 3 do
                    local at = first + i // (4 // kv)
                    parts[#parts + 1] = heads:slice(1, at, at + 1)
                end
                return yoke.cat(parts, 1)
            end
            local y = yoke.scaled_dot_product_attention(heads:slice(1, 0, 4), repeated(4), repeated(4 + kv),
                { is_causal = true })
            same(layer(x), layer.out(y:transpose(1, 2):reshape { 2, 5, 32 }), 1e-4)
        end
        fails("value", { "'embed_dim', 'num_heads' and 'num_kv_heads' are 10, 3 and 3" }, nn.MultiheadAttention, 10, 3)
        fails("value", "are 12, 6 and 4", nn.MultiheadAttention, 12, 6, { num_kv_heads = 4 })
    end)

    it("makes a block that learns in every parameter", function()
        local block, x = nn.TransformerBlock(16, 2, { causal = true, dropout = 0.5 }), yoke.randn { 2, 3, 16 }
        assert.not_same(block(x):tolist(), block(x):tolist())
        block:eval()
        local middle = x + block.attention(block.norm1(x))
        same(block(x), middle + block.down(block.up(block.norm2(middle)):gelu()))
        local pair = block(x, nil, true)
        assert.same(block(x):tolist(), (pair[1] + pair[2]):tolist())
        same(block(pair), block(block(x)))
        block(x):sum():backward()
        for _, parameter in ipairs(block:parameters()) do assert.is_not_nil(parameter.grad) end
        fails("value", { "activations", "activation" }, nn.TransformerBlock, 16, 2, { activations = "relu" })
    end)
end)

describe("losses", function()
    it("are their ops with their options", function()
        local x, target = yoke.randn { 4, 3 }, yoke.rand { 4, 3 }
        same(nn.MSELoss()(x, target), x:mse_loss(target))
        same(nn.L1Loss { reduction = "sum" }(x, target), x:l1_loss(target, { reduction = "sum" }))
        same(nn.SmoothL1Loss { beta = 0.5 }(x, target), x:smooth_l1_loss(target, { beta = 0.5 }))
        same(nn.KLDivLoss { reduction = "batchmean" }(x, target), x:kl_div(target, { reduction = "batchmean" }))
        local weight = yoke.tensor { 1., 2., 3. }
        local bce = nn.BCEWithLogitsLoss { pos_weight = weight }
        same(bce(x, target), x:binary_cross_entropy_with_logits(target, { pos_weight = weight }))
        assert.same({ "pos_weight" }, names(bce:named_buffers()))
        local labels = yoke.tensor { 0, 2, 1, -100 }
        same(nn.NLLLoss()(nn.LogSoftmax()(x), labels), nn.CrossEntropyLoss()(x, labels))
        fails("value", { "CrossEntropyLoss", "speed", "reduction" }, nn.CrossEntropyLoss, { speed = 1 })
        local weight = yoke.tensor { 1., 2., 0.5 }
        for class, op in pairs { CrossEntropyLoss = yoke.cross_entropy, NLLLoss = yoke.nll_loss } do
            local weighted = nn[class] { weight = weight, reduction = "sum" }
            local scores = yoke.randn { 4, 3 }
            local classes = yoke.tensor { 0, 2, 1, 0 }
            same(weighted(scores, classes), op(scores, classes, weight, { reduction = "sum" }))
            assert.equal(1, #weighted:double():buffers())
            assert.equal("float64", weighted.weight.dtype)
        end
    end)
end)

describe("activations", function()
    it("are their ops", function()
        local x = yoke.randn { 3, 4 }
        for name, op in pairs { ReLU = "relu", Sigmoid = "sigmoid", SiLU = "silu", Tanh = "tanh", GELU = "gelu",
            Softmax = "softmax", LogSoftmax = "log_softmax" } do
            same(nn[name]()(x), yoke[op](x), 0)
        end
        same(nn.GELU { approximate = "tanh" }(x), x:gelu "tanh", 0)
        same(nn.Softmax(0)(x), x:softmax(0), 0)
    end)
end)

describe("containers", function()
    it("hold modules by number, from 0", function()
        local list = nn.ModuleList { nn.Linear(2, 2), nn.ReLU() }
        assert.equal(list, list:append(nn.Tanh()))
        assert.equal(3, #list)
        assert.equal("Tanh()", tostring(list[2]))
        assert.is_nil(list[3])
        assert.same({ "0", "1", "2" }, names(list:children()))
        assert.is_not_nil(list:state_dict()["0.weight"])
        assert.equal(2, #nn.Sequential(nn.ReLU(), nn.Tanh()))
        fails("type", { "ModuleList", "argument 0 is 1", "modules" }, nn.ModuleList, { 1 })
    end)

    it("are reached by apply before their parent", function()
        local seen = {}
        local net = nn.Sequential(nn.Sequential(nn.ReLU()), nn.Tanh())
        assert.equal(net, net:apply(function(m) seen[#seen + 1] = m.class_name end))
        assert.same({ "ReLU", "Sequential", "Tanh", "Sequential" }, seen)
    end)
end)

describe("buffers", function()
    local function make()
        local Net = nn.Module:extend "Net"
        function Net:init()
            self:register_buffer("steps", yoke.zeros({}, "int64"))
            self:register_buffer("table", yoke.ones { 2 }, { persistent = false })
            self.weight = nn.Parameter(yoke.ones { 3 })
        end
        return Net()
    end

    it("move with the module, whole numbers as they are, and are saved if persistent", function()
        local net = make()
        assert.equal(2, #net:buffers())
        local state = net:state_dict()
        assert.is_true(state.steps ~= nil and state.weight ~= nil and state.table == nil)
        net.table = yoke.zeros { 2 }
        assert.equal(2, #net:buffers())
        net:to "float64"
        assert.same({ "float64", "float64", "int64" }, { net.weight.dtype, net.table.dtype, net.steps.dtype })
        fails("type", { "tensor", "'tensor' is 3" }, net.register_buffer, net, "bad", 3)
    end)

    it("and shared tensors load under every name", function()
        local net = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
        net[1].weight = net[0].weight
        local state = net:state_dict()
        assert.is_not_nil(state["1.weight"])
        assert.equal(3, #net:parameters())
        net:load_state_dict(state)
        local missing, unexpected = net:load_state_dict({ ["0.bias"] = yoke.ones { 3 }, extra = yoke.ones { 1 } },
            { strict = false })
        assert.same({ { "0.weight", "1.weight", "1.bias" }, { "extra" } }, { missing, unexpected })
        fails("value", "0.bias is a table, not a tensor", net.load_state_dict, net, { ["0.bias"] = {} }, { strict = false })
    end)
end)

describe("nn.init", function()
    local init = nn.init

    it("fills in place, unrecorded, and gives the tensor back", function()
        local p = nn.Parameter(yoke.empty { 3 })
        assert.equal(p, init.ones_(p))
        assert.same({ 1.0, 1.0, 1.0 }, p:tolist())
        assert.is_true(p.requires_grad and p.is_leaf)
        assert.same({ 2.5, 2.5, 2.5 }, init.constant_(p, 2.5):tolist())
        assert.same({ 0.0, 0.0, 0.0 }, init.zeros_(p):tolist())
    end)

    it("draws within bounds and makes orthonormal rows", function()
        local x = init.trunc_normal_(yoke.empty { 50, 40 }, 0.0, 1.0, -0.5, 1.0)
        assert.is_true(x:amin():item() >= -0.5 and x:amax():item() <= 1.0)
        local bound = (6 / 90) ^ 0.5
        assert.is_true(init.xavier_uniform_(x):abs():amax():item() <= bound)
        local q = init.orthogonal_(yoke.empty { 4, 9 })
        same(q:matmul(q:transpose(0, 1)), yoke.eye(4))
    end)

    it("refuses wrong input by name", function()
        fails("value", "'std' is -1", init.normal_, yoke.empty { 2 }, 0, -1)
        fails("value", { "kaiming_uniform_", "[5]" }, init.kaiming_uniform_, yoke.empty { 5 })
        fails("value", "'mode' is 'fan'", init.kaiming_normal_, yoke.empty { 2, 2 }, { mode = "fan" })
        fails("value", "swoosh", init.calculate_gain, "swoosh")
        fails("value", { "are 1, 2 and 1" }, init.trunc_normal_, yoke.empty { 2 }, 0, 1, 2, 1)
    end)
end)
