--- yoke.save, yoke.load and yoke.load_info: states in safetensors files.
local core = require "yoke.core"
local options = require "yoke.options"
local tree = require "yoke.tree"

local state = { none = tree.none, list = tree.list, dict = tree.dict }

--- Writes a state to a safetensors file: yoke.save("run.safetensors", {net = net, epoch = 3}, {metadata = {who =
--- "me"}}). If only the second argument is a string, it is the path. At any stop of the process or the machine the file
--- is whole: the former or the new file. Returns the work, or nil and an error if the system refuses. {blocking =
--- false} returns at once: the state of the call is written in the background. work:wait() reports the result; else the
--- next such save, which waits for this save, reports it. With max_shard = "5GiB" a state with more bytes of tensors is
--- a set of files and an index, "model.safetensors.index.json" for "model.safetensors"; load takes either name.
function state.save(path, value, given)
    if type(value) == "string" and type(path) ~= "string" then path, value = value, path end
    local named = options.named("save", given, { metadata = options.none, blocking = true, max_shard = options.none })
    local node = tree.of(value, "save", "state")
    local about = named.metadata and tree.of(named.metadata, "save", "metadata") or nil
    return core._save(path, node, about, not named.blocking, named.max_shard)
end

local function names_that(wanted, path)
    local node, problem = core._load_info(path)
    if not node then return nil, problem end
    local names = {}
    for name in pairs(tree.value(node).tensors) do
        if wanted(name) then names[#names + 1] = name end
    end
    return names
end

--- Loads the state in a safetensors file or a set of files, from any writer; nil and an error if it is damaged or the
--- system refuses. Its code is "checkpoint" with the native_code 22, EINVAL, if there is no state at all. `path` is a
--- file, the index of a set, a file replaced by a set, or a folder with one of these. On the CPU tensors are pages of
--- the file, or copies with {mmap = false}. `names` is a prefix or a function of a name; the selected tensors come as
--- a dict by their names in the file. {device =, mmap = true, dtype =, names =}. map_location is PyTorch's name of
--- device; weights_only changes nothing, because no code of a file ever runs.
function state.load(path, given)
    local named = options.named("load", given, { device = options.none, mmap = true, dtype = options.none, names = options.none,
        map_location = options.none, weights_only = true })
    if named.map_location ~= nil and named.device ~= nil then
        core.raise("value", "load", "options 'device' and 'map_location' are the same option; give one of the two")
    end
    local prefix, names, problem = named.names, nil, nil
    if type(prefix) == "function" then
        names, problem = names_that(prefix, path)
        if not names then return nil, problem end
        prefix = nil
    elseif prefix ~= nil and type(prefix) ~= "string" then
        core.raise("type", "load", ("option 'names' is %s; it takes a prefix or a function"):format(options.shown(prefix)))
    end
    local node, failure = core._load(path, named.device or named.map_location, not named.mmap, named.dtype, prefix, names)
    if not node then return nil, failure end
    return tree.value(node)
end

--- Describes a safetensors file or a set of files without the data: {path, kind = "file" or "set", bytes,
--- header_bytes, files = {name = bytes}, has_tree, metadata = {key = string}, tensors = {name = {dtype, shape, bytes,
--- offset, and for a set file}}}; nil and an error as load.
function state.load_info(path)
    local node, problem = core._load_info(path)
    if not node then return nil, problem end
    return tree.value(node)
end

return state
