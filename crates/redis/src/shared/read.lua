-- Reads a set at one moment: its versions, or chunks. (Not a transaction, since a full server queues
-- no commands, but runs scripts.)
--
-- KEYS: 1 meta, 2 versions, then chunks
-- ARGV: the numbers of those chunks
--
-- Answers { description, last exchange, lost chunks, chunk, its version, ... }, or { version, chunk, ... } of the
-- given chunks. A missing value is an empty text.
if #ARGV == 0 then
    local answer = redis.call('HMGET', KEYS[1], 'description', 'head', 'lost')
    if not answer[1] then
        -- What is left of a set without its meta is not of the one that begins now.
        return { '', '', '' }
    end
    answer = { answer[1], answer[2] or '', answer[3] or '' }
    for i, each in ipairs(redis.call('HGETALL', KEYS[2])) do
        answer[i + 3] = each
    end
    return answer
end
local answer = {}
for i, version in ipairs(redis.call('HMGET', KEYS[2], unpack(ARGV))) do
    answer[2 * i - 1] = version or ''
    answer[2 * i] = redis.call('GET', KEYS[i + 2]) or ''
end
return answer
