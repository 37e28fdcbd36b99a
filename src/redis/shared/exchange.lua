-- One exchange of a node with the set: what others pushed since it was here last, then what it pushes. Nothing is in between.
--
-- KEYS: 1 meta, 2 log, 3 versions, 4 scratch, then the chunks in the order of the delta
-- ARGV: 1 description, 2 the last exchange that the node knows, 3 token, 4 the log's limit in bytes, 5 the delta,
--       6 when the set expires: in ms since 1970, or after a "+" in so many ms from now; 0 if never
--       7 so many ms later than that it may expire in the latter case
--
-- Answers { what, id, id of an exchange, its delta, ... }:
--   'other'   the set has another description, which is in the place of the id
--   'lost'    the log does not go back to what the node knows: it is to read the chunks
--   'more'    there is more to pull than is answered at once; nothing was pushed
--   'done'    all was pulled, and the delta is in; the id is that of the node's exchange, or of the last of all
local function number(id)
    return tonumber(string.match(id, '^%d+'))
end

local meta = redis.call('HMGET', KEYS[1], 'description', 'head', 'bytes', 'base', 'expires')

-- All keys of a set go at one moment, whatever the server's clock does until then: chunks that went
-- before what says that they are there would be missed by nobody. Where nodes know only how long it
-- is until then, since the server's clock is none of theirs, the first that writes decides; and a
-- later time is one for all keys that there are. (To be called after every write: some of them take
-- the time away.)
local expires = ARGV[6]
local later = false
if string.sub(expires, 1, 1) == '+' then
    local now = redis.call('TIME')
    local wanted = now[1] * 1000 + math.floor(now[2] / 1000) + tonumber(expires)
    local kept = tonumber(meta[5] or '0')
    later = wanted > kept + tonumber(ARGV[7])
    expires = string.format('%.0f', later and wanted or kept)
end
local function expire(key)
    if expires ~= '0' then
        redis.call('PEXPIREAT', key, expires)
    end
end

if not meta[1] then
    redis.call('HSET', KEYS[1], 'description', ARGV[1], 'expires', expires)
    expire(KEYS[1])
    -- Where somebody deleted only the meta key: a log does not take up from a lesser id again.
    redis.call('DEL', KEYS[2], KEYS[3])
elseif meta[1] ~= ARGV[1] then
    return { 'other', meta[1] }
end

local head = meta[2] or '0-0'
local answer = { 'done', head }

-- Pull. Whoever knows the last exchange has nothing to pull, and most calls end here.
local at = ARGV[2]
local pulled = 0
if at ~= head then
    -- What the node knows is in the log, or is what went before all that is there. Otherwise the log was cut off, or the server has
    -- lost what the node knows.
    local page = redis.call('XRANGE', KEYS[2], at, '+', 'COUNT', 64)
    local first = 2
    if #page > 0 and page[1][1] ~= at and at == (meta[4] or '0-0') and number(page[1][1]) == number(at) + 1 then
        first = 1
    elseif #page == 0 or page[1][1] ~= at then
        return { 'lost', head }
    end
    while at ~= head do
        if #page < first then
            return { 'lost', head }
        end
        for i = first, #page do
            at = page[i][1]
            local delta = page[i][2][2]
            answer[#answer + 1] = at
            answer[#answer + 1] = delta
            pulled = pulled + #delta
            if pulled >= 1048576 and at ~= head then
                answer[1] = 'more'
                answer[2] = at
                return answer
            end
        end
        page = redis.call('XRANGE', KEYS[2], at, '+', 'COUNT', 64)
        first = 2
    end
end

-- Push.
local delta = ARGV[5]
if #delta == 0 then
    return answer
end
local id = string.format('%.0f-%s', number(head) + 1, ARGV[3])
local versions = {}
local from, key = 1, 5
while from <= #delta do
    local chunk, n, next = struct.unpack('<I4I2', delta, from)
    if n >= 32768 then
        local len = n - 32768
        local words = string.sub(delta, next, next + len - 1)
        if redis.call('EXISTS', KEYS[key]) == 0 then
            redis.call('SET', KEYS[key], words)
        else
            redis.call('SET', KEYS[4], words)
            redis.call('BITOP', 'OR', KEYS[key], KEYS[key], KEYS[4])
            redis.call('DEL', KEYS[4])
        end
        from = next + len
    else
        for place = next, next + 2 * n - 2, 2 do
            local low, high = string.byte(delta, place, place + 1)
            redis.call('SETBIT', KEYS[key], low + 256 * high, '1')
        end
        from = next + 2 * n
    end
    expire(KEYS[key])
    versions[#versions + 1] = chunk
    versions[#versions + 1] = id
    key = key + 1
end
redis.call('HSET', KEYS[3], unpack(versions))
expire(KEYS[3])

-- Log: an entry counts as its delta and 64 bytes, and the oldest go where the limit is reached.
redis.call('XADD', KEYS[2], id, 'delta', delta)
expire(KEYS[2])
local bytes = tonumber(meta[3] or '0') + #delta + 64
local limit = tonumber(ARGV[4])
while bytes > limit do
    local page = redis.call('XRANGE', KEYS[2], '-', '(' .. id, 'COUNT', 16)
    if #page == 0 then
        break
    end
    for i = 1, #page do
        if bytes > limit then
            bytes = bytes - #page[i][2][2] - 64
            redis.call('XDEL', KEYS[2], page[i][1])
            redis.call('HSET', KEYS[1], 'base', page[i][1])
        end
    end
end
redis.call('HSET', KEYS[1], 'head', id, 'bytes', bytes, 'expires', expires)
expire(KEYS[1])
if later then
    -- These keys are not among KEYS, but they are where those are, by the set's hash tag.
    for _, chunk in ipairs(redis.call('HKEYS', KEYS[3])) do
        expire(string.sub(KEYS[1], 1, -5) .. chunk)
    end
end
answer[2] = id
return answer
