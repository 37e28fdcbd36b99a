-- Begins the next generation of a set, unless another node has begun one.
--
-- KEYS: 1 root
-- ARGV: 1 the generation that the node takes for the newest, 2 the next one, 3 its expected keys, 4 '1' if keys may have been lost: then
--       no older generation has all of them
--
-- Answers nothing, or 'another' if it did nothing.
if redis.call('HGET', KEYS[1], 'newest') ~= ARGV[1] then
    return { 'another' }
end
local before = redis.call('HGET', KEYS[1], 'before')
redis.call('HSET', KEYS[1], 'newest', ARGV[2], 'keys', ARGV[3], 'before', (before and before .. ' ' or '') .. ARGV[1])
if ARGV[4] == '1' then
    redis.call('HSET', KEYS[1], 'lost', '1')
end
return {}
