-- Begins the next generation of a set, unless another node has begun one.
--
-- KEYS: 1 root
-- ARGV: 1 the generation that the node takes for the newest, 2 the next one, 3 its expected keys, 4 '1' if keys may have been lost: then
--       no older generation has all of them
--       5 for how many ms the newest one must be there
--
-- Answers nothing, or 'another' or 'young' if it did nothing.
if redis.call('HGET', KEYS[1], 'newest') ~= ARGV[1] then
    return { 'another' }
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local begun = tonumber(redis.call('HGET', KEYS[1], 'begun') or '0')
-- (A generation that begins later than now began before the clock was set back.)
if begun <= now and now - begun < tonumber(ARGV[5]) then
    return { 'young' }
end
local before = redis.call('HGET', KEYS[1], 'before')
redis.call('HSET', KEYS[1], 'newest', ARGV[2], 'keys', ARGV[3], 'begun', string.format('%.0f', now), 'before', (before and before .. ' ' or '') .. ARGV[1])
if ARGV[4] == '1' then
    redis.call('HSET', KEYS[1], 'lost', '1')
end
return {}
