-- Trains a GPT on the bytes of a text, or on the tokens of a file, and lets it write.
--
--     lua5.4 gpt.lua [--amp bf16] [--steps 300] [--text FILE] [--seed 0] [--threads N] [--losses] …
--     lua5.4 gpt.lua --preset gpt2 --tokens FILE --amp bf16
--
-- The text is the GNU General Public License, present on every Debian. gpt.py does the same, explains the options,
-- and gives the same losses bit for bit. With --save FOLDER each program continues a run of the other from the
-- folder.
package.path = (arg[0]:match "^.*/" or "") .. "?.lua;" .. package.path
local SavedRun = require "saved_run"
local yoke = require "yoke"
local nn = yoke.nn
local AMP = { off = false, bf16 = "bfloat16", f16 = "float16" }
local CHECKPOINT = { off = false, full = "full", matmul = "matmul" }
local on_terminal = os.execute "test -t 2"

local PRESETS = {
    small = { layers = 6, width = 256, heads = 4, context = 256, vocabulary = 256, tied = false },
    gpt2 = { layers = 12, width = 768, heads = 12, context = 1024, vocabulary = 50304, tied = true } }
local at_least = { [0] = { 0, math.huge }, { 1, math.huge } }
local RANGES = { threads = at_least[0], sample = at_least[0], temperature = at_least[0], vocabulary = { 256, 1 << 16 },
    layers = at_least[1], width = at_least[1], heads = at_least[1], context = at_least[1], batch = at_least[1],
    steps = at_least[1] }
-- Options that stay the same for a whole run.
local BEGUN_WITH = { "amp", "batch", "context", "heads", "layers", "lr", "seed", "steps", "text", "tied", "vocabulary", "width" }

-- A whole number where the default is one.
local function read_number(name, text, default)
    local value, whole = tonumber(text), math.type(default) == "integer"
    if value then value = whole and math.tointeger(value) or not whole and value + 0.0 end
    return value or error(("--%s is '%s'; it must be a %s"):format(name, text, whole and "whole number of 64 bits" or "number"), 0)
end

local function check_range(name, value, range)
    local least, most = range[1], range[2]
    if value >= least and value <= most then return end
    local allowed = most == math.huge and "at least " .. least or least .. " to " .. most
    error(("--%s is %s; it must be %s"):format(name, value, allowed), 0)
end

local HELP = { device = 'where to train, such as "cpu" or "cuda:1"', threads = "CPU threads; 0: all that are granted",
    seed = "seed of the weights and of the written text", layers = "transformer blocks", width = "numbers for each byte or token",
    heads = "attention heads; their number divides the width", context = "bytes or tokens that the network sees at once", vocabulary = "number of different tokens, 256 or more",
    preset = "the network's size, if these options do not give it: small or gpt2", tokens = "file of tokens of 16 bits, to learn in place of a text", batch = "pieces of text in a step",
    steps = "steps of training", lr = "the largest learning rate", sample = "bytes or tokens to write at the end",
    temperature = "randomness of the written text; 0: always the likeliest byte", ["top-k"] = "number of likeliest bytes from which a byte is drawn", prompt = "beginning of the written text",
    text = "the file to learn", amp = "mixed precision: off, bf16 or f16",
    checkpoint = "results that backward recomputes: off, full or matmul of each block; or a budget, 0.5 or 2GiB" }

-- off, full, matmul, or a yoke.MemoryBudget.
local function read_policy(text)
    if CHECKPOINT[text] ~= nil then return text end
    local ok, budget = pcall(yoke.MemoryBudget, text)
    if ok then return budget end
    error(("--checkpoint is '%s'; it must be off, full, matmul, or a budget such as 0.5 or 2GiB"):format(text), 0)
end

local function show_help(options)
    local names = {}
    for name in pairs(HELP) do names[#names + 1] = name end
    table.sort(names)
    print "usage: lua5.4 gpt.lua [option value]... [--losses]\n"
    for _, name in ipairs(names) do print(("  --%-12s %s (%s)"):format(name, HELP[name], options[name] or PRESETS.small[name] or "none")) end
    print(("  --%-12s print the loss of every step, in hexadecimal"):format "losses")
    print(("  --%-12s folder of the saved run; a new start continues from there"):format "save")
    print(("  --%-12s steps from one save to the next (100)"):format "every")
    os.exit(0)
end

-- Returns the value of --NAME VALUE; nil without such an option, or without a value.
local function read_value(name, value, options)
    local default = options[name]
    if name == "losses" then return true end
    if default == nil or value == nil then return nil end
    if name == "amp" and AMP[value] == nil then error(("--amp is '%s'; it must be off, bf16 or f16"):format(value), 0) end
    if name == "preset" and not PRESETS[value] then error(("--preset is '%s'; it must be small or gpt2"):format(value), 0) end
    if name == "checkpoint" then return read_policy(value) end
    if name == "every" or PRESETS.small[name] then default = 100 end
    return type(default) == "number" and read_number(name, value, default) or value
end

-- Fills missing options from the preset, and checks all ranges.
local function complete(options)
    for name, value in pairs(PRESETS[options.preset]) do options[name] = options[name] or value end
    options.kinds = options.tokens and options.vocabulary or 256 -- number of token kinds
    for name, range in pairs(RANGES) do check_range(name, options[name], range) end
    check_range("top-k", options["top-k"], { 1, options.kinds })
    if options.prompt == "" then
        error("--prompt is ''; it must have one byte or more, because the written text follows the prompt", 0)
    end
    return options
end

local function read_options()
    local options = { device = "auto", threads = 0, seed = 0, preset = "small", layers = false, width = false, heads = false,
        context = false, vocabulary = false, batch = 8, steps = 300, lr = 1e-3, sample = 200, temperature = 0.8, ["top-k"] = 20,
        prompt = "You may ", text = "/usr/share/common-licenses/GPL-3", tokens = false, amp = "off", checkpoint = "off",
        losses = false, save = false, every = false }
    local i = 1
    while arg[i] do
        if arg[i] == "--help" or arg[i] == "-h" then show_help(options) end
        local name = arg[i]:match "^%-%-([%a-]+)$" or ""
        local value = read_value(name, arg[i + 1], options)
        if value == nil then
            error(("cannot use '%s'; options are --device --threads --seed --preset --layers --width --heads --context --vocabulary --batch --steps --lr --sample --temperature --top-k --prompt --text --tokens --amp --checkpoint --save --every, each with its value, and --losses"):format(arg[i]),
                0)
        end
        options[name], i = value, i + (name == "losses" and 1 or 2)
    end
    return complete(options)
end

local function indices(text) return yoke.frombuffer(text, #text, "uint8"):to(yoke.current_device(), "int64") end

local function read_file(path, option)
    local file <close>, err = io.open(path, "rb")
    local text = file and file:read "a"
    return text or error(("%s\nName another file with --%s."):format(err or path, option), 0)
end

local function load_text(path, context)
    local text = read_file(path, "text")
    if #text <= context then error(("%s has %d bytes; it must have more than --context %d"):format(path, #text, context), 0) end
    return indices(text)
end

-- The tokens of a file, each two bytes, the lower one first.
local function load_tokens(path, context, vocabulary)
    local text = read_file(path, "tokens")
    if #text % 2 ~= 0 or #text // 2 <= context then
        error(("%s has %d bytes; it must have two bytes for each token, and more tokens than --context %d"):format(path, #text, context), 0)
    end
    local halves = yoke.frombuffer(text, #text, "uint8"):to(yoke.current_device(), "int32")
    local tokens = halves:slice(0, 0, #text, 2) + halves:slice(0, 1, #text, 2) * 256
    local largest = tokens:amax():item()
    if largest < vocabulary then return tokens end
    error(("%s has the token %d; it must be below --vocabulary %d"):format(path, largest, vocabulary), 0)
end

-- Tells one text from another, wherever the file lies.
local function content(text, items)
    return ("of %d %s with the sum %d"):format(text.numel, items, (text * (yoke.arange(text.numel) + 1)):sum():item())
end

local GPT = nn.Module:extend "GPT"
-- With `tied` the head's weights are those of the bytes (or tokens).
function GPT:init(layers, width, heads, context, vocabulary, tied)
    self.context = context
    self.byte = nn.Embedding(vocabulary, width)
    self.place = nn.Embedding(context, width)
    self.blocks = nn.ModuleList()
    for _ = 1, layers do self.blocks:append(nn.TransformerBlock(width, heads, { causal = true })) end
    self.norm = nn.LayerNorm(width)
    self.head = nn.Linear(width, vocabulary, { bias = false })
    if tied then self.head.weight = self.byte.weight end
    for name, parameter in self:named_parameters() do
        if parameter.ndim == 2 then -- weights of the residual stream start smaller in deeper networks
            local deep = name:find "out%.weight$" or name:find "down%.weight$"
            nn.init.normal_(parameter, 0.0, deep and 0.02 / (2 * layers) ^ 0.5 or 0.02)
        end
    end
end

function GPT:forward(index)
    local x = self.byte(index) + self.place(yoke.arange(index.shape[2]))
    for _, block in self.blocks:children() do x = block(x, nil, true) end
    local _, y = self.norm(x[1], x[2])
    return self.head(y)
end

-- Returns pieces of the text [batch, context], and the next byte after each of their bytes [batch * context].
local function draw_batch(text, batch, context)
    local starts = yoke.randint(0, text.numel - context, { batch, 1 })
    local pieces = text:index_select(0, (starts + yoke.arange(context + 1)):reshape { -1 }):reshape { batch, context + 1 }
    return pieces:slice(1, 0, context), pieces:slice(1, 1, context + 1):reshape { -1 }
end

local function make_optimizer(net, lr, steps)
    local groups = { { params = {}, weight_decay = 0.1 }, { params = {}, weight_decay = 0.0 } }
    for _, p in ipairs(net:parameters()) do table.insert(groups[p.ndim == 2 and 1 or 2].params, p) end
    local optimizer = yoke.optim.AdamW(groups, { lr = lr, betas = { 0.9, 0.95 } })
    return optimizer, yoke.optim.schedule.cosine(optimizer, steps, { min_lr = 0.1 * lr, warmup_steps = steps // 10 })
end

local function show_progress(step, steps, loss)
    if on_terminal then
        io.stderr:write(("\r[%-40s] %d/%d  loss %.3f"):format(("#"):rep(40 * step // steps), step, steps, loss:item()))
    elseif step % math.max(steps // 10, 1) == 0 then
        io.stderr:write(("step %d: loss %.4f\n"):format(step, loss:item()))
    end
end

local function train(net, text, o, saved)
    local optimizer, schedule = make_optimizer(net, o.lr, o.steps)
    local scaler, losses = yoke.GradScaler { enabled = o.amp == "f16" }, yoke.zeros { o.steps }
    local parts = { net = net, optimizer = optimizer, schedule = schedule, scaler = scaler, losses = losses }
    for step in saved:steps(o.steps, parts) do
        local x, target = draw_batch(text, o.batch, o.context)
        local loss = yoke.autocast({ dtype = AMP[o.amp] or nil, enabled = o.amp ~= "off" }, function()
            return net(x):reshape { -1, o.vocabulary }:cross_entropy(target)
        end)
        optimizer:zero_grad()
        scaler:scale(loss):backward()
        scaler:unscale_(optimizer)
        yoke.clip_grad_norm_(net:parameters(), 1.0)
        scaler:step(optimizer)
        scaler:update()
        schedule:step()
        losses[step] = loss:detach() -- not yet :item(), which would wait for the device
        show_progress(step + 1, o.steps, loss)
    end
    return losses:tolist()
end

-- `text` [length] and o.sample more, each drawn from the likeliest by Gumbel's trick.
local function write(net, text, o)
    local _ <close> = yoke.no_grad()
    for _ = 1, o.sample do
        local window = text:slice(0, math.max(text.numel - net.context, 0))
        local logits = net(window:unsqueeze(0))[0][window.numel - 1]:slice(0, 0, o.kinds)
        local values, kinds = yoke.topk(logits, o["top-k"])
        if o.temperature > 0 then values = values / o.temperature - yoke.log(-yoke.log(yoke.rand(o["top-k"]))) end
        text = yoke.cat { text, kinds:index_select(0, values:argmax():reshape { 1 }) }
    end
    return text
end

-- Returns seconds of wall time, because Lua itself has only whole seconds.
local function now()
    local file <close> = assert(io.open "/proc/uptime")
    return file:read "n"
end

local function main()
    local o = read_options()
    yoke.set_device(o.device)
    yoke.set_num_threads(o.threads)
    yoke.manual_seed(o.seed)
    local text = o.tokens and load_tokens(o.tokens, o.context, o.vocabulary) or load_text(o.text, o.context)
    local net = GPT(o.layers, o.width, o.heads, o.context, o.vocabulary, o.tied)
    if type(o.checkpoint) == "userdata" then
        net:checkpoint_(o.checkpoint)
    else
        for _, block in net.blocks:children() do block:checkpoint_(CHECKPOINT[o.checkpoint]) end
    end
    local begun_with = {}
    for _, name in ipairs(BEGUN_WITH) do begun_with[name] = o[name] end
    begun_with.text = content(text, o.tokens and "tokens" or "bytes")
    local saved = SavedRun("gpt", o.save, o.every, begun_with)
    local start, losses = now(), train(net, text, o, saved)
    if on_terminal then io.stderr:write "\n" end
    local seconds, device = math.max(now() - start, 0.01), yoke.current_device()
    print(("device: %s (%s), %d threads, amp %s"):format(device, device.name, yoke.get_num_threads(), o.amp))
    print(("tokens/s: %.0f"):format((o.steps - saved.first) * o.batch * o.context / seconds))
    print(("peak memory: %.1f MiB"):format(yoke.max_memory_allocated() / 2 ^ 20))
    print(("loss: %.4f to %.4f in %d steps"):format(losses[1], losses[#losses], #losses))
    for i, loss in ipairs(losses) do losses[i] = ("%a"):format(loss) end
    if o.losses then print("losses: " .. table.concat(losses, " ")) end
    if o.tokens then
        print("tokens: " .. table.concat(write(net, text:slice(0, 0, 1):to "int64", o):tolist(), " "))
    else
        print("text: " .. write(net, indices(o.prompt), o):to("uint8"):tobytes())
    end
end

local done, err = pcall(main)
if not done then
    io.stderr:write(tostring(err), "\n")
    os.exit(1)
end
