-- The beginning of the scripts of a filter with a configuration, a hash. KEYS: the bitmap, the
-- configuration. ARGV: the number of bits of a key, the number of bits of the bitmap, then as for
-- the rest. A script answers 0 if there is no filter, -1 if there is a bitmap without a
-- configuration, and says what the configuration has if that is something else.
if redis.call('EXISTS', KEYS[2]) == 0 then
    return -redis.call('EXISTS', KEYS[1])
end
local configured = redis.call('HMGET', KEYS[2], 'size', 'hashIterations')
if configured[1] ~= ARGV[2] or configured[2] ~= ARGV[1] then
    return (configured[1] or 'no') .. ' bits and ' .. (configured[2] or 'no') .. ' hash functions'
end
table.remove(ARGV, 2)

