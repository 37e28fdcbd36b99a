-- One exchange of a node with the set: it pulls what other nodes pushed since its last exchange, and pushes, with nothing in between.
--
-- KEYS: 1 meta, 2 log, 3 versions, 4 scratch, then the chunks in the order of the delta
-- ARGV: 1 description, 2 the last exchange that the node knows, 3 token, 4 the log's limit in bytes, 5 the delta,
--       6 when the set expires: in ms since 1970, or after a "+" in ms from now; 0 if never
--       7 the tolerance of a time from now, in ms
--       8 the node's part in filling the set: '' none, its token if it fills or wants to, 'all' if all keys of the set are on the
--         server once this delta is
--       9 with a token: for how many ms the node then holds the lease; 0 ends it
--       10 the root key if this is a generation of a set, or '' (it is on the same server, by the set's hash tag)
--       11 with a root key: this generation's id, 12 its expected keys
--
-- Answers { what, id, id of an exchange, its delta, ... }:
--   'other'   the set has another description, which takes the place of the id
--   'lost'    the log does not go back to the node's last exchange: the node must read the chunks
--   'more'    one answer cannot hold all deltas; nothing was pushed
--   'done'    everything was pulled, and the delta is in; the id is the node's exchange, or the last one
--   'holds'   the same, and the node holds the lease: it fills the set
--   'filled'  the same, and a node has filled the set
--   'next'    everything was pulled and nothing pushed: another generation is the newest
--   'gone'    the same, but nothing was pulled, since this generation is not on the server
local function number(id)
    return tonumber(string.match(id, '^%d+'))
end

local function milliseconds()
    local now = redis.call('TIME')
    return now[1] * 1000 + math.floor(now[2] / 1000)
end

local meta = redis.call('HMGET', KEYS[1], 'description', 'head', 'bytes', 'base', 'expires', 'filled', 'filler', 'lease')

-- All keys of a set expire at one moment, whatever the server's clock does until then: if chunks
-- expired before their versions, no node would notice. If nodes give the time from now, since the
-- server's clock is not theirs, the first node that writes decides, and a later time moves all
-- present keys. (Called after every write, since some writes remove the time.)
local expires = ARGV[6]
local later = false
if string.sub(expires, 1, 1) == '+' then
    local wanted = milliseconds() + tonumber(expires)
    local kept = tonumber(meta[5] or '0')
    later = wanted > kept + tonumber(ARGV[7])
    expires = string.format('%.0f', later and wanted or kept)
end
local function expire(key)
    if expires ~= '0' then
        redis.call('PEXPIREAT', key, expires)
    end
end

-- Only the newest generation takes pushes, so an older one does not change any more. (A server without a root has lost everything, and
-- this node's generation goes on.)
local next = false
if ARGV[10] ~= '' then
    local newest = redis.call('HGET', ARGV[10], 'newest')
    next = newest and newest ~= ARGV[11]
    if next and not meta[1] then
        return { 'gone', ARGV[11] }
    elseif not newest then
        redis.call('HSET', ARGV[10], 'newest', ARGV[11], 'keys', ARGV[12])
    end
end

-- It may not be among KEYS, but is on the same server, by the set's hash tag.
local function key_of(chunk)
    return string.sub(KEYS[1], 1, -5) .. chunk
end

if not meta[1] then
    redis.call('HSET', KEYS[1], 'description', ARGV[1], 'expires', expires)
    expire(KEYS[1])
    -- If only the meta key was deleted: a log takes no lesser id than its last, and old keys would come
    -- back with the chunks.
    for _, chunk in ipairs(redis.call('HKEYS', KEYS[3])) do
        redis.call('DEL', key_of(chunk))
    end
    redis.call('DEL', KEYS[2], KEYS[3])
elseif meta[1] ~= ARGV[1] then
    return { 'other', meta[1] }
end

-- The lease, by the server's clock. It only spares the store: two nodes that fill at once do no harm. A server that is full, or takes
-- no writes, gives no lease. (A lease of more time than this node asks for was given before the clock was set back.)
local filled = meta[6]
local holds = false
if not filled and ARGV[8] ~= '' and ARGV[8] ~= 'all' then
    local now, time, lease = milliseconds(), tonumber(ARGV[9]), tonumber(meta[8] or '0')
    local mine = meta[7] == ARGV[8]
    if time == 0 and mine then
        redis.pcall('HDEL', KEYS[1], 'filler', 'lease')
    elseif time > 0 and (mine or now >= lease or lease > now + time) then
        holds = type(redis.pcall('HSET', KEYS[1], 'filler', ARGV[8], 'lease', string.format('%.0f', now + time))) == 'number'
    end
end

local head = meta[2] or '0-0'
local answer = { 'done', head }

-- The end of an exchange after which everything is pulled and pushed. The mark is made here, where the server has every bit that the
-- node knows: a server that loses bits loses the mark with them, since it lost the last writes.
local function done()
    if not filled and ARGV[8] == 'all' and type(redis.pcall('HSET', KEYS[1], 'filled', '1')) == 'number' then
        filled = true
        redis.call('HDEL', KEYS[1], 'filler', 'lease')
        -- From here on no node needs the generations before.
        local before = ARGV[10] ~= '' and redis.call('HGET', ARGV[10], 'before') or ''
        for id in string.gmatch(before, '%S+') do
            local prefix = ARGV[10]:sub(1, -5) .. id .. ':'
            for _, chunk in ipairs(redis.call('HKEYS', prefix .. 'versions')) do
                redis.call('UNLINK', prefix .. chunk)
            end
            redis.call('UNLINK', prefix .. 'meta', prefix .. 'log', prefix .. 'versions')
        end
        if before ~= '' then
            redis.call('HDEL', ARGV[10], 'before', 'lost')
        end
    end
    if filled then
        answer[1] = 'filled'
    elseif holds then
        answer[1] = 'holds'
    end
    return answer
end

-- Pull. A node that knows the last exchange has nothing to pull, and most calls end here.
local at = ARGV[2]
local pulled = 0
if at ~= head then
    -- The node's last exchange is in the log, or directly before the log. Otherwise the log was cut off, or the server has lost
    -- that exchange.
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

if next then
    answer[1] = 'next'
    return answer
end

-- Push.
local delta = ARGV[5]
if #delta == 0 then
    return done()
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

-- Log: an entry counts as its delta and 64 bytes. Beyond the limit the oldest entries are removed.
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
    for _, chunk in ipairs(redis.call('HKEYS', KEYS[3])) do
        expire(key_of(chunk))
    end
end
answer[2] = id
return done()
