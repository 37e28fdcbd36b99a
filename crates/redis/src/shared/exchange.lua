-- One exchange of a node with the set: it pulls what other nodes pushed since its last exchange, and pushes, with nothing in between.
--
-- KEYS: 1 meta, 2 log, 3 versions, 4 scratch, then the chunks in the order of the delta
-- ARGV: 1 description, 2 the last exchange that the node knows, 3 token, 4 the log's limit in bytes, 5 the delta,
--       6 when the set expires: in ms since 1970, or after a "+" in ms from now; 0 if never
--       7 the tolerance of a time from now, in ms
--       8 the node's part in filling the set: '' none, its token if it fills or wants to, 'all' if its source has inserted all keys,
--         and they are on the server once this delta is
--       9 with a token: for how many ms the node then holds the lease; 0 ends it
--       10 the era that the node knows, and in which its source began, or ''
--       11 '1' if a chunk lacked bits that the node has seen there
--       12 a chunk: this one and the next 15 are checked
--       13 lost chunks whose bits the node had, all of them, and which are on the server once this delta is: numbers
--       14 the root key if this is a generation of a set, or '' (it is on the same server, by the set's hash tag)
--       15 with a root key: this generation's id, 16 its expected keys
--
-- Answers { what, id, era, id of an exchange, its delta, ... }:
--   'other'   the set, or the root, has another description, which takes the place of the id
--   'lost'    the log does not go back to the node's last exchange: the node must read the chunks
--   'more'    one answer cannot hold all deltas; nothing was pushed
--   'gaps'    everything was pulled, and nothing pushed, since chunks are lost: the last delta says which
--   'done'    everything was pulled, and the delta is in; the id is the node's exchange, or the last one
--   'holds'   the same, and the node holds the lease: it fills the set
--   'filled'  the same, and the set has all keys of its source
--   'next'    everything was pulled and nothing pushed: another generation is the newest
--   'gone'    the same, but nothing was pulled, since this generation is not on the server
local function number(id)
    return tonumber(string.match(id, '^%d+'))
end

local function milliseconds()
    local now = redis.call('TIME')
    return now[1] * 1000 + math.floor(now[2] / 1000)
end

local meta = redis.call('HMGET', KEYS[1], 'description', 'head', 'bytes', 'base', 'expires', 'filled', 'filler', 'lease', 'era', 'lost')

-- All keys of a set expire at one moment, whatever the server's clock does until then. If nodes give the time from now, since the
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
local function expire(key, time)
    time = time or expires
    if time ~= '0' then
        redis.call('PEXPIREAT', key, time)
    end
end

-- Only the newest generation takes pushes, so an older one does not change any more. (A server without a root has lost everything, and
-- this node's generation goes on.)
local next = false
if ARGV[14] ~= '' then
    local root = redis.call('HMGET', ARGV[14], 'newest', 'description')
    local newest = root[1]
    next = newest and newest ~= ARGV[15]
    if root[2] and string.sub(root[2], -2) ~= ' *' then
        -- A set without generations, or a window, has this name.
        return { 'other', root[2], '' }
    elseif next and not meta[1] then
        return { 'gone', ARGV[15], '' }
    elseif not newest then
        local now = string.format('%.0f', milliseconds())
        redis.call('HSET', ARGV[14], 'newest', ARGV[15], 'keys', ARGV[16], 'begun', now, 'description', ARGV[1])
    end
end

-- It may not be among KEYS, but is on the same server, by the set's hash tag.
local function key_of(chunk)
    return string.sub(KEYS[1], 1, -5) .. chunk
end
local chunks = math.ceil(tonumber(string.match(ARGV[1], '^%d+ (%d+)')) / 128)

-- Whether the server takes writes. (A write that needs no memory, after which a full server takes the others of a script.)
local function is_writable()
    return type(redis.pcall('DEL', KEYS[4])) == 'number'
end

-- The era is a later one after each loss that was noticed, so its number tells a node that comes late whether its loss was. A source
-- that began before it may lack keys that were lost since, so its node makes no mark.
local filled = meta[6]
local lost = meta[10]
local era = meta[9] or '0-0'
local known_era = ARGV[10] ~= '' and number(ARGV[10])
local function begin_era()
    era = string.format('%.0f-%s', math.max(number(era), known_era or 0) + 1, string.sub(ARGV[3], -9))
    redis.call('HSET', KEYS[1], 'era', era)
end

-- Keys were lost that perhaps no node has: only a source can fill the set. `is_noticed` says that the node notices it, which others may
-- have done before.
local function unfill(is_noticed)
    if is_noticed and known_era and known_era < number(era) then
        return
    end
    filled = false
    if is_writable() then
        lost = false
        redis.call('HDEL', KEYS[1], 'filled', 'lost')
        begin_era()
    end
end

local head = meta[2] or '0-0'
local base = meta[4] or '0-0'
local bytes = tonumber(meta[3] or '0')
if not meta[1] then
    redis.call('HSET', KEYS[1], 'description', ARGV[1], 'expires', expires)
    begin_era()
    expire(KEYS[1])
    -- If not all keys were deleted: a log takes no lesser id than its last, and a chunk would have bits that are in no delta.
    local rest = {}
    for chunk = 0, chunks - 1 do
        rest[#rest + 1] = key_of(chunk)
        if #rest == 1000 or chunk == chunks - 1 then
            redis.call('DEL', unpack(rest))
            rest = {}
        end
    end
    redis.call('DEL', KEYS[2], KEYS[3])
elseif meta[1] ~= ARGV[1] then
    return { 'other', meta[1], '' }
elseif meta[2] and not next and redis.call('EXISTS', KEYS[2], KEYS[3]) < 2 then
    if redis.call('EXISTS', KEYS[3]) == 1 then
        -- The log alone is lost: it begins anew after the last exchange.
        base, bytes = head, 0
        redis.pcall('HSET', KEYS[1], 'base', base, 'bytes', bytes)
    elseif is_writable() then
        -- Without versions no node reads a chunk. The chunks that are there get new ones, and nobody knows which are not.
        head = string.format('%.0f-%s', number(head) + 1, ARGV[3])
        base, bytes = head, 0
        redis.call('HSET', KEYS[3], '0', '')
        for chunk = 0, chunks - 1 do
            if redis.call('EXISTS', key_of(chunk)) == 1 then
                redis.call('HSET', KEYS[3], chunk, head)
            end
        end
        expire(KEYS[3], meta[5])
        redis.call('DEL', KEYS[2])
        redis.call('HSET', KEYS[1], 'head', head, 'base', base, 'bytes', bytes)
        unfill()
    else
        filled = false
    end
end
if ARGV[11] == '1' then
    unfill(true)
end

-- The lease, by the server's clock. It only spares the store: two nodes that fill at once do no harm. A server that is full, or takes
-- no writes, gives no lease. (A lease of more time than this node asks for was given before the clock was set back.)
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

local answer = { 'done', head, era }

-- The lost chunks, less those that the node has pushed again. The node must have known of their loss before this call.
local function restore()
    local restored, rest = {}, {}
    for chunk in string.gmatch(ARGV[13], '%d+') do
        restored[chunk] = true
    end
    for chunk in string.gmatch(lost, '%d+') do
        if not restored[chunk] then
            rest[#rest + 1] = chunk
        end
    end
    if #rest > 0 then
        redis.pcall('HSET', KEYS[1], 'lost', table.concat(rest, ' '))
    elseif type(redis.pcall('HSET', KEYS[1], 'filled', '1')) == 'number' then
        filled = true
        redis.call('HDEL', KEYS[1], 'lost')
    end
end

-- The end of an exchange after which everything is pulled and pushed. The mark is made here, where the server has every bit that the
-- node knows: a server that loses bits loses the mark with them, since it lost the last writes.
local is_current = ARGV[2] == head
local function done()
    if lost and is_current and ARGV[13] ~= '' then
        restore()
    end
    if not filled and ARGV[8] == 'all' and ARGV[10] == era and type(redis.pcall('HSET', KEYS[1], 'filled', '1')) == 'number' then
        filled = true
        redis.call('HDEL', KEYS[1], 'filler', 'lease', 'lost')
        -- From here on no node needs the generations before.
        local before = ARGV[14] ~= '' and redis.call('HGET', ARGV[14], 'before') or ''
        for id in string.gmatch(before, '%S+') do
            local prefix = ARGV[14]:sub(1, -5) .. id .. ':'
            for _, chunk in ipairs(redis.call('HKEYS', prefix .. 'versions')) do
                redis.call('UNLINK', prefix .. chunk)
            end
            redis.call('UNLINK', prefix .. 'meta', prefix .. 'log', prefix .. 'versions')
        end
        if before ~= '' then
            redis.call('HDEL', ARGV[14], 'before', 'lost')
        end
    end
    if filled then
        answer[1] = 'filled'
    elseif holds then
        answer[1] = 'holds'
    end
    return answer
end

-- The node reads the chunks. All exchanges after `base` are in the log: if the node knows another one, the server has lost it, and
-- perhaps others that no node knows.
local at = ARGV[2]
local function behind()
    if at ~= base and number(at) >= number(base) then
        unfill(true)
    end
    return { 'lost', head, era }
end

-- Pull. A node that knows the last exchange has nothing to pull, and most calls end here.
local pulled = 0
if at ~= head then
    -- The node's last exchange is in the log, or directly before the log. Otherwise the log was cut off, or the server has lost
    -- that exchange.
    local page = redis.call('XRANGE', KEYS[2], at, '+', 'COUNT', 64)
    local first = 2
    if #page > 0 and page[1][1] ~= at and at == base and number(page[1][1]) == number(at) + 1 then
        first = 1
    elseif #page == 0 or page[1][1] ~= at then
        return behind()
    end
    while at ~= head do
        if #page < first then
            return { 'lost', head, era }
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

-- The records of the delta: the chunk, the number of its bits, and where they begin.
local delta = ARGV[5]
local records, checked = {}, {}
local from = 1
while from <= #delta do
    local chunk, n, begin = struct.unpack('<I4I2', delta, from)
    records[#records + 1] = { chunk, n, begin }
    checked[#checked + 1] = chunk
    from = begin + (n >= 32768 and n - 32768 or 2 * n)
end

-- A chunk that has a version and no bytes is lost: deleted, expired alone, or evicted. If one is, all are looked at.
for chunk = tonumber(ARGV[12]), tonumber(ARGV[12]) + 15 do
    checked[#checked + 1] = chunk
end
local there = {}
for i, version in ipairs(redis.call('HMGET', KEYS[3], unpack(checked))) do
    if version and version ~= '' then
        there[#there + 1] = key_of(checked[i])
    end
end
if #there > 0 and redis.call('EXISTS', unpack(there)) < #there then
    local gaps, last = {}, nil
    for i, each in ipairs(redis.call('HGETALL', KEYS[3])) do
        if i % 2 == 1 then
            last = each
        elseif each ~= '' and redis.call('EXISTS', key_of(last)) == 0 then
            gaps[#gaps + 1] = last
        end
    end
    if is_writable() then
        -- The log tells all nodes, by records without bits. While chunks of a filled set are lost, it has no mark: the nodes that had
        -- all their bits bring it back, or a source.
        local gone = {}
        for i, chunk in ipairs(gaps) do
            redis.call('HSET', KEYS[3], chunk, '')
            gone[i] = struct.pack('<I4I2', tonumber(chunk), 0)
        end
        local id = string.format('%.0f-%s', number(head) + 1, ARGV[3])
        gone = table.concat(gone)
        redis.call('XADD', KEYS[2], id, 'delta', gone)
        expire(KEYS[2], meta[5])
        redis.call('HSET', KEYS[1], 'head', id, 'bytes', bytes + #gone + 64)
        if filled or lost then
            redis.call('HDEL', KEYS[1], 'filled')
            redis.call('HSET', KEYS[1], 'lost', (lost and lost .. ' ' or '') .. table.concat(gaps, ' '))
        end
        begin_era()
        answer[1], answer[2], answer[3] = 'gaps', id, era
        answer[#answer + 1] = id
        answer[#answer + 1] = gone
        return answer
    end
    filled = false
end

-- Push.
if #delta == 0 then
    return done()
end
local id = string.format('%.0f-%s', number(head) + 1, ARGV[3])
local versions = {}
for i, record in ipairs(records) do
    local chunk, n, begin = record[1], record[2], record[3]
    local key = KEYS[4 + i]
    if n >= 32768 then
        local words = string.sub(delta, begin, begin + n - 32768 - 1)
        if redis.call('EXISTS', key) == 0 then
            redis.call('SET', key, words)
        else
            redis.call('SET', KEYS[4], words)
            redis.call('BITOP', 'OR', key, key, KEYS[4])
            redis.call('DEL', KEYS[4])
        end
    else
        for place = begin, begin + 2 * n - 2, 2 do
            local low, high = string.byte(delta, place, place + 1)
            redis.call('SETBIT', key, low + 256 * high, '1')
        end
    end
    expire(key)
    versions[#versions + 1] = chunk
    versions[#versions + 1] = id
end
redis.call('HSET', KEYS[3], unpack(versions))
expire(KEYS[3])

-- Log: an entry counts as its delta and 64 bytes. Beyond the limit the oldest entries are removed.
redis.call('XADD', KEYS[2], id, 'delta', delta)
expire(KEYS[2])
bytes = bytes + #delta + 64
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
