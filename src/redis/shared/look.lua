-- What a node of a window is to know before it exchanges generations; and begins the window, or keeps it.
--
-- KEYS: 1 meta of the window, 2 versions of the generation after the node's newest, then the metas of the node's generations
-- ARGV: 1 description, 2 for how many ms meta is to last at least, 3 for how many where that is not so
--
-- Answers { description, '1' if there is a generation after the newest, each generation's last exchange ... }; the description is another one
-- if the set is another's, and empty if it could not be written.
local description = redis.call('HGET', KEYS[1], 'description')
if (description or ARGV[1]) == ARGV[1] and redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then
    -- A server that is full, or must not be written to, still gives what it has.
    redis.pcall('HSET', KEYS[1], 'description', ARGV[1])
    redis.pcall('PEXPIRE', KEYS[1], ARGV[3])
    description = redis.call('HGET', KEYS[1], 'description')
end
local answer = { description or '', tostring(redis.call('EXISTS', KEYS[2])) }
for i = 3, #KEYS do
    answer[i] = redis.call('HGET', KEYS[i], 'head') or '0-0'
end
return answer
