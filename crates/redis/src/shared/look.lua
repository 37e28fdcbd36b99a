-- Tells a node of a window what it needs before it exchanges generations. Begins the window, or keeps it alive.
--
-- KEYS: 1 meta of the window, 2 versions of the generation after the node's newest, then the metas of the node's generations
-- ARGV: 1 description, 2 the least ms that meta must last, 3 the ms that it lasts from now on if it lasts less
--
-- Answers { description, '1' if there is a generation after the newest, each generation's last exchange ... }. The description differs if the
-- set is another one, and is empty if it could not be written.
local description = redis.call('HGET', KEYS[1], 'description')
if (description or ARGV[1]) == ARGV[1] and redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then
    -- A server that is full, or takes no writes, still gives its data.
    redis.pcall('HSET', KEYS[1], 'description', ARGV[1])
    redis.pcall('PEXPIRE', KEYS[1], ARGV[3])
    description = redis.call('HGET', KEYS[1], 'description')
end
local answer = { description or '', tostring(redis.call('EXISTS', KEYS[2])) }
for i = 3, #KEYS do
    answer[i] = redis.call('HGET', KEYS[i], 'head') or '0-0'
end
return answer
